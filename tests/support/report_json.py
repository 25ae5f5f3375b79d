"""The output of `gpumem report --json`, in the form that tests read."""


def with_stacks(report):
    """Replaces each number of a stack by its frames, a list with the innermost first; returns the report."""
    stacks = report["stacks"]

    def resolve(value):
        if isinstance(value, dict):
            if "stack" in value:
                value["stack"] = stacks[value["stack"]]["frames"]
            value = list(value.values())
        for one in value if isinstance(value, list) else []:
            resolve(one)

    resolve([member for name, member in report.items() if name != "stacks"])
    return report
