"""A validator for the part of JSON Schema that docs/report.schema.json uses."""
import re


def matches_type(value, names):
    kinds = {"object": dict, "array": list, "string": str, "boolean": bool, "null": type(None)}
    for name in [names] if isinstance(names, str) else names:
        if name == "integer" and isinstance(value, int) and not isinstance(value, bool):
            return True
        if name == "number" and isinstance(value, (int, float)) and not isinstance(value, bool):
            return True
        if name in kinds and isinstance(value, kinds[name]):
            return True
    return False


def violations(value, schema, root, where="report"):
    if "$ref" in schema:
        return violations(value, root["$defs"][schema["$ref"].rsplit("/", 1)[1]], root, where)
    found = []
    if "oneOf" in schema:
        answers = [violations(value, one, root, where) for one in schema["oneOf"]]
        good = sum(not answer for answer in answers)
        return [] if good == 1 else [f"{where}: {good} of the forms match: {min(answers, key=len)}"]
    if "type" in schema and not matches_type(value, schema["type"]):
        return [f"{where}: {value!r} is no {schema['type']}"]
    if "enum" in schema and value not in schema["enum"]:
        found.append(f"{where}: {value!r} is not in {schema['enum']}")
    if "const" in schema and value != schema["const"]:
        found.append(f"{where}: {value!r} is not {schema['const']}")
    if isinstance(value, str) and not re.search(schema.get("pattern", ""), value):
        found.append(f"{where}: {value!r} does not match {schema['pattern']}")
    if isinstance(value, str) and len(value) > schema.get("maxLength", len(value)):
        found.append(f"{where}: {len(value)} characters")
    if isinstance(value, (int, float)) and not isinstance(value, bool):
        if value < schema.get("minimum", value) or value > schema.get("maximum", value):
            found.append(f"{where}: {value} is out of bounds")
    if isinstance(value, list):
        for number, item in enumerate(value):
            found += violations(item, schema.get("items", {}), root, f"{where}[{number}]")
    if isinstance(value, dict):
        found += [f"{where}: {name} is missing" for name in schema.get("required", []) if name not in value]
        for name, member in value.items():
            rule = schema.get("properties", {}).get(name, schema.get("additionalProperties", {}))
            if rule is False:
                found.append(f"{where}: unexpected {name}")
            elif isinstance(rule, dict):
                found += violations(member, rule, root, f"{where}.{name}")
    return found
