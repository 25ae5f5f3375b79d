#!/usr/bin/env python3
"""Every link of the documentation leads somewhere, and docs/README.md leads to every page."""
import glob
import os
import re
import sys

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def read(path):
    with open(path, encoding="utf-8") as file:
        return re.sub(r"^```.*?^```", "", file.read(), flags=re.M | re.S)


def anchor_of(heading):
    """As GitHub and GitLab make it of a heading."""
    return re.sub(r"[^\w\- ]", "", heading.strip().lower()).replace(" ", "-")


def anchors(path):
    return {anchor_of(found[1]) for found in re.finditer(r"^#+ (.*)$", read(path), re.M)}


def links(path):
    for found in re.finditer(r"\]\(([^)\s]+)\)", read(path)):
        if "://" not in found[1]:
            target, _, anchor = found[1].partition("#")
            yield found[1], os.path.normpath(os.path.join(os.path.dirname(path), target)) if target else path, anchor


def main():
    problems = []
    pages = [ROOT + "/README.md", ROOT + "/CONTRIBUTING.md", *glob.glob(ROOT + "/docs/**/*.md", recursive=True)]
    for path in pages:
        for link, target, anchor in links(path):
            if not os.path.exists(target):
                problems.append(f"{os.path.relpath(path, ROOT)}: {link} leads nowhere")
            elif anchor and target.endswith(".md") and anchor not in anchors(target):
                problems.append(f"{os.path.relpath(path, ROOT)}: {link}: no such heading")
    listed = {target for _, target, _ in links(ROOT + "/docs/README.md")}
    problems += [f"docs/README.md does not list {os.path.relpath(path, ROOT)}" for path in pages
                 if path.startswith(ROOT + "/docs/") and path not in listed and not path.endswith("docs/README.md")]
    assert len(pages) > 20 and len(listed) > 20, "the documentation was not found"
    print("\n".join(problems) or f"{len(pages)} pages: all links lead somewhere")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
