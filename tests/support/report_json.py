"""What `gpumem report --json` says of a trace, as tests read it."""


def with_stacks(report):
    """The report, with the frames of each stack in place of its number: a list, innermost first."""
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
