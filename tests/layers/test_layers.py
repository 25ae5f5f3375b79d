#!/usr/bin/env python3
"""scripts/check-layers turns red on each sort of violation, planted into a sound tree of a few files.

    test_layers.py CHECK_LAYERS CC
"""
import os
import shutil
import subprocess
import sys
import tempfile

checker, compiler = os.path.abspath(sys.argv[1]), sys.argv[2]
failures = 0

PLAN = """<!-- layers of preload -->

| folder | what it holds | may use |
|---|---|---|
| `base/` | base | |
| `hooks/` | hooks | |

<!-- ports of preload -->

| symbol | why it is a port |
|---|---|
| `gm_port` | it has to be |

<!-- layers of report -->

| folder | what it holds | may use |
|---|---|---|
| `base/` | base | |
| `trace/` | trace | |
| `model/` | model | `trace/` |
| `output/` | pages | `model/` |

<!-- layers of sim -->

| folder | what it holds | may use |
|---|---|---|
| `driver/` | driver | |
| `runtime/` | runtime | `driver/` |
"""
SOUND = {
    "docs/architecture.md": PLAN,
    "preload/base/base.h": "void gm_base(void);\nvoid gm_port(void);\n",
    "preload/base/base.c": '#include "base/base.h"\nvoid gm_base(void)\n{\n    gm_port();\n}\n',
    "preload/hooks/hook.c": '#include "base/base.h"\nvoid gm_port(void)\n{\n}\nvoid gm_hook(void)\n{\n    gm_base();\n}\n',
    "report/base/base.h": "int gm_base(void);\n",
    "report/base/base.c": '#include "base/base.h"\nint gm_base(void)\n{\n    return 1;\n}\n',
    "report/trace/trace.h": "#pragma once\nstatic inline int gm_trace(void)\n{\n    return 1;\n}\n",
    "report/model/model.h": '#include "base/base.h"\nint gm_model(void);\n',
    "report/model/build.c": '#include "model/model.h"\n#include "trace/trace.h"\n'
                            "int gm_model(void)\n{\n    return gm_trace() + gm_base();\n}\n",
    "report/output/page.c": '#include "model/model.h"\nint gm_page(void)\n{\n    return gm_model();\n}\n',
    "sim/driver/driver.h": "int gpusim_driver(void);\n",
    "sim/driver/driver.c": '#include "driver.h"\nint gpusim_driver(void)\n{\n    return 1;\n}\n',
    "sim/runtime/runtime.c": '#include "driver/driver.h"\nint gpusim_runtime(void)\n{\n    return gpusim_driver();\n}\n',
    "tests/unit/test.c": "",
}


def with_row(part, row, new):
    """The plan with one row of a part's list changed."""
    start = PLAN.index(f"<!-- layers of {part} -->")
    return PLAN[:start] + PLAN[start:].replace(row, new, 1)


# What is planted, and what the checker must say of it.
PLANTED = [
    ("nothing", {}, None),
    ("an output asks the trace, inline",
     {"report/output/page.c": '#include "trace/trace.h"\nint gm_page(void)\n{\n    return gm_trace();\n}\n'},
     "report/output/page.c: includes from trace/, which output/ may not use"),
    ("an output asks the trace, and the plan allows it",
     {"report/output/page.c": '#include "trace/trace.h"\n#include "model/model.h"\n',
      "docs/architecture.md": with_row("report", "| pages | `model/` |", "| pages | `model/` `trace/` |")},
     "report/output/page.c: includes from trace/: an output knows base/, model/ and output/ alone"),
    ("the model's header shows the trace",
     {"report/model/model.h": '#include "base/base.h"\n#include "trace/trace.h"\nint gm_model(void);\n'},
     "report/model/model.h: includes from trace/: a model stands on base/ alone"),
    ("a call upward without a header",
     {"report/base/base.c": '#include "base/base.h"\nint gm_page(void);\nint gm_base(void)\n{\n    return gm_page();\n}\n'},
     "report/base/base: uses gm_page of output/, which base/ may not use"),
    ("the plan goes upward",
     {"docs/architecture.md": with_row("report", "| trace | |", "| trace | `model/` |")},
     "report/trace may use model/, which does not stand before it"),
    ("the plan allows what nobody does",
     {"docs/architecture.md": with_row("preload", "| hooks | |", "| hooks | `base/` |"),
      "preload/hooks/hook.c": "void gm_port(void)\n{\n}\n"},
     "preload/hooks may use base/, but does not"),
    ("the folders of a room stand apart",
     {"docs/architecture.md": with_row("report", "| pages | `model/` |", "| pages | `model/` |\n| `trace/late/` | late | |"),
      "report/trace/late/late.c": ""},
     "the folders of report/trace/ do not stand together"),
    ("two headers in a circle",
     {"report/base/one.h": '#include "base/two.h"\n', "report/base/two.h": '#include "base/one.h"\n'},
     "report: they include one another: base/one, base/two"),
    ("two files that call one another",
     {"report/trace/one.c": "void gm_two(void);\nvoid gm_one(void)\n{\n    gm_two();\n}\n",
      "report/trace/two.c": "void gm_one(void);\nvoid gm_two(void)\n{\n    gm_one();\n}\n"},
     "report: a circle of 2 modules"),
    ("a folder of the simulator uses one above it",
     {"sim/driver/driver.c": '#include "driver.h"\n#include "runtime/runtime.h"\n', "sim/runtime/runtime.h": ""},
     "sim/driver/driver.c: includes from runtime/, which driver/ may not use"),
    ("the same by a call",
     {"sim/driver/driver.c": "int gpusim_runtime(void);\nint gpusim_driver(void)\n{\n    return gpusim_runtime();\n}\n"},
     "sim/driver/driver: uses gpusim_runtime of runtime/, which driver/ may not use"),
    ("a port that is none", {"preload/base/base.c": '#include "base/base.h"\nvoid gm_base(void)\n{\n}\n'},
     "preload: gm_port is listed as a port, but is none"),
    ("a folder that nobody listed", {"report/new/new.c": ""}, "report/new: not in the list of folders"),
    ("a folder that is gone", {"docs/architecture.md": PLAN + "\n", "report/output/page.c": None},
     "report/output: listed, but not there"),
    ("too many modules", {f"tests/unit/test_{i}.c": "" for i in range(20)}, "tests/unit: 21 modules, 20 at most"),
]


def check(files):
    """What the checker says of a tree, with its objects: exit code and text."""
    root = tempfile.mkdtemp()
    try:
        for path, text in files.items():
            if text is None:
                continue
            os.makedirs(os.path.join(root, os.path.dirname(path)), exist_ok=True)
            with open(os.path.join(root, path), "w", encoding="utf-8") as file:
                file.write(text)
        for path, text in files.items():
            part = path.split("/")[0]
            if text is None or part not in ("preload", "report", "sim") or not path.endswith(".c"):
                continue
            goal = os.path.join(root, "build", part, "CMakeFiles", f"gpumem_{part}.dir", path[len(part) + 1:] + ".o")
            os.makedirs(os.path.dirname(goal), exist_ok=True)
            subprocess.check_call([compiler, "-O0", "-I", os.path.join(root, part), "-c", os.path.join(root, path),
                                   "-o", goal])
        ran = subprocess.run([sys.executable, checker, os.path.join(root, "build")], text=True, capture_output=True,
                             env={**os.environ, "CHECK_LAYERS_ROOT": root}, check=False)
        return ran.returncode, ran.stdout + ran.stderr
    finally:
        shutil.rmtree(root)


for name, planted, complaint in PLANTED:
    code, said = check({**SOUND, **planted})
    if (code, said) != (0, "layers: in order\n") if complaint is None else code != 1 or complaint not in said:
        failures += 1
        print(f"{name}: expected {complaint or 'no complaint'}, got {code}:\n{said}", file=sys.stderr)
sys.exit(1 if failures else 0)
