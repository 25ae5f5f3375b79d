"""Whether a block that is not run is at least of its language."""
import json
import re
import shutil
import subprocess


def of_command(*command):
    def check(text):
        done = subprocess.run(command, input=text, capture_output=True, text=True, check=False)
        return done.stderr if done.returncode else None
    return check


def of_python(text):
    try:
        compile(text, "block", "exec")
    except SyntaxError as error:
        return str(error)
    return None


def of_json(text):
    try:
        json.loads(text)
    except ValueError as error:
        return str(error)
    return None


def of_yaml(text):
    """By a parser where there is one; by kubectl where it is an object of Kubernetes: without a server, it still knows the
    fields."""
    if "\t" in text:
        return "a tab in YAML"
    try:
        import yaml  # pylint: disable=import-outside-toplevel
        list(yaml.safe_load_all(text))
    except ImportError:
        pass
    except yaml.YAMLError as error:
        return str(error)
    if text.startswith("apiVersion:") and shutil.which("kubectl"):
        return of_command("kubectl", "annotate", "--local", "-f", "-", "-o", "name", "tried=yes")(text)
    return None


def of_dockerfile(text):
    for line in text.replace("\\\n", " ").split("\n"):
        if line and not re.match(r"(FROM|COPY|ENV|RUN|ENTRYPOINT|CMD|WORKDIR|ARG|#)\b ?\S|#", line):
            return f"no instruction: {line}"
    return None


CHECKS = {"sh": of_command("bash", "-n"), "python": of_python, "json": of_json, "yaml": of_yaml,
          "dockerfile": of_dockerfile}


def problem(language, text):
    """What is wrong with it; None if nothing is, or if there is no check for the language."""
    check = CHECKS.get(language)
    return check(text) if check else None
