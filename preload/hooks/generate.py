#!/usr/bin/env python3
"""Makes the hooks, the lookup tables, the export list and docs/coverage.md from api.table.

    generate.py api.table --exports exports.list --out FOLDER    C sources and gm_exports.map into FOLDER
    generate.py api.table --coverage                             the coverage page on standard output
"""
import argparse
import os
import re
import sys

# What a hook answers when there is no function behind it: that the function is not there, as near as the
# layer can say it. A program gets here only by calling a hook that it found without its library.
RUNTIME_ERROR = "cudaErrorUnknown"
DRIVER_ERROR = "CUDA_ERROR_NOT_FOUND"


class Symbol:
    """One exported function."""

    def __init__(self, name, since, entry):
        self.name, self.since, self.entry = name, since, entry
        self.base = re.sub(r"(_v\d+)?(_pt[sd][sz])?$", "", name)
        self.per_thread = bool(re.search(r"_pt[sd][sz]$", name))


class Entry:
    """Symbols with one prototype and one effect."""

    def __init__(self, layer, section, result=None, parameters=""):
        self.layer, self.section, self.result, self.parameters = layer, section, result, parameters
        self.symbols, self.before, self.after, self.unless, self.refusal = [], None, None, None, None

    def arguments(self):
        if self.parameters == "void":
            return []
        return [re.search(r"(\w+)$", part.strip())[1] for part in self.parameters.split(",")]


def fail(number, text):
    sys.exit(f"api.table:{number}: {text}")


def parse(path):
    """Entries and left-out functions, [(reason, [names])]."""
    entries, left_out, layer, section = [], [], None, ""
    with open(path, encoding="utf-8") as file:
        for number, line in enumerate(file, 1):
            text = line.strip()
            if not text or text.startswith("#"):
                continue
            if match := re.fullmatch(r"\[(driver|runtime|custom|left out)\] (.*)", text):
                layer, section = match[1], match[2]
                if layer == "left out":
                    left_out.append((section, []))
                elif layer == "custom":
                    entries.append(Entry(layer, section))
            elif layer == "left out":
                left_out[-1][1].extend(text.split())
            elif match := re.fullmatch(r"(CUresult|cudaError_t) \((.*)\)", text):
                entries.append(Entry(layer, section, match[1], match[2]))
            elif text.startswith("symbols: "):
                for word in text.split()[1:]:
                    name, _, since = word.partition("@")
                    entries[-1].symbols.append(Symbol(name, int(since or 0), entries[-1]))
            elif match := re.fullmatch(r"(before|after): (\w+)\((.*)\)", text):
                setattr(entries[-1], match[1], (match[2], match[3]))
            elif match := re.fullmatch(r"unless: (\w+\(.*\))", text):
                entries[-1].unless = match[1]
            elif match := re.fullmatch(r"refusal: ([A-Z]+)(?:\((\w+)\))?", text):
                entries[-1].refusal = (match[1], match[2] or "-1")
            else:
                fail(number, f"not understood: {text}")
    for entry in entries:
        if entry.after and COPIES.match(entry.after[0]):
            entry.refusal = ("COPY", "-1")
    return entries, left_out


def stream_key(symbol, stream):
    return f"gm_stream_key({stream}, {'true' if symbol.per_thread else 'false'})"


def async_flags(symbol):
    """Flags of work that the function puts on a stream, or does at once."""
    if "Async" not in symbol.base:
        return "0"
    stream = re.search(r"\b(?:CUstream|cudaStream_t) (\w+)", symbol.entry.parameters)
    return f"gm_async_flags({stream_key(symbol, stream[1])})"


def effect(place, symbol, name_and_arguments):
    name, arguments = name_and_arguments
    arguments = re.sub(r"\bASYNC\b", async_flags(symbol), arguments)
    arguments = re.sub(r"\bSTREAM\((\w+)\)", lambda match: stream_key(symbol, match[1]), arguments)
    layer = "before" if place == "before" else symbol.entry.layer
    state = "&call, &begun" if place == "before" else "&call, (int)result"
    return f"gm_{layer}_{name}({state}{', ' if arguments else ''}{arguments});"


def prototype(symbol, name):
    return f"{symbol.entry.result} {name}({symbol.entry.parameters})"


def refusal(symbol):
    """What a hook that opened a call does about a refusal."""
    purpose, device = symbol.entry.refusal
    return f"gm_{symbol.entry.layer}_refused(&call, (int)result, GM_PURPOSE_{purpose}, {device});"


def hook_of_refusals(symbol, begin, end):
    """The rest of a wrapper that does nothing unless the call is refused. Of the runtime: and unless a driver hook below
    has recorded that."""
    entry, is_runtime = symbol.entry, symbol.entry.layer == "runtime"
    lines = begin + ["    const uint32_t events = gm_thread_events();"] * is_runtime
    lines.append(f"    {entry.result} result = real({', '.join(entry.arguments())});")
    lines.append("    if (gm_unlikely(result != 0)" + (" && events == gm_thread_events())" if is_runtime else ")"))
    lines.append(f"        gm_refused_alone(GM_API_{symbol.name}, (int)result, GM_PURPOSE_{entry.refusal[0]}, "
                 f"__builtin_frame_address(0), {'GM_FLAG_RUNTIME' if is_runtime else '0'});")
    return "\n".join(lines + end)


def hook(symbol):
    """The text of one wrapper."""
    entry = symbol.entry
    error = RUNTIME_ERROR if entry.layer == "runtime" else DRIVER_ERROR
    lines = [f"GM_EXPORT {prototype(symbol, symbol.name)}", "{"]
    lookup = f"gm_real_driver(GM_API_{symbol.name})"
    if entry.layer == "runtime":
        lookup = f"gm_real(GM_API_{symbol.name}, __builtin_return_address(0))"
    lines.append(f"    {entry.result} (*real)({entry.parameters}) = {lookup};")
    none, end = ["    if (gm_unlikely(!real))", f"        return {error};"], ["    return result;", "}", ""]
    if not entry.before and not entry.after:
        return hook_of_refusals(symbol, lines + none, end)
    lines += ["    struct gm_call call;"] + none
    begin = f"    gm_call_begin(&call, GM_API_{symbol.name}, __builtin_frame_address(0));"
    if not entry.unless:
        lines.append(begin)
    if entry.before:
        lines.append("    struct gm_record begun = {0};")
        lines.append("    " + effect("before", symbol, entry.before))
    if entry.after and (COPIES.match(entry.after[0]) or entry.after[0] == "graph_launch"):
        lines.append("    gm_call_clock(&call);")
    if entry.layer == "driver" and entry.after and entry.after[0] in TAKES_MEMORY:
        lines.append("    gm_call_clock_slow(&call);")
    lines.append(f"    {entry.result} result = real({', '.join(entry.arguments())});")
    if entry.unless:
        lines += [f"    if (gm_likely(gm_{entry.unless}))", "        return result;", begin]
    if entry.before:
        lines.append("    gm_after_begun(&call, (int)result, &begun);")
    after = [effect("after", symbol, entry.after)] if entry.after and entry.after[0] != "label" else []
    after += [refusal(symbol)] if entry.refusal else []
    if after:
        lines += ["    if (gm_call_active(&call)) {", *("        " + line for line in after), "    }"]
    return "\n".join(lines + ["    gm_call_end(&call);"] + end)


# Effects of copies and sets.
COPIES = re.compile(r"(copy|set)(_(?!device)\w+)?$")

# Effects of calls that take memory from a device: their records tell how long a slow one took.
TAKES_MEMORY = ("alloc", "vmm_create", "vmm_map")

# Effects that neither make nor end memory, nor tell whose it is: a call that is not seen leaves all totals right.
NOT_VITAL = re.compile(r"(copy|set)(_\w+)?|hint(_batch)?|host_call|export|label|device_(memory|name)")


def is_vital(entry):
    effects = [name for name, _ in filter(None, (entry.before, entry.after))]
    return entry.layer == "custom" or not all(NOT_VITAL.fullmatch(name) for name in effects)


NOTE = "/* Made by generate.py from api.table. */\n"


def write(folder, name, text):
    """Writes only what changed, so that a rebuild recompiles only that."""
    path = os.path.join(folder, name)
    try:
        with open(path, encoding="utf-8") as file:
            if file.read() == text:
                return
    except FileNotFoundError:
        pass
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)


def make_header(symbols):
    lines = [NOTE, "#ifndef GPUMEM_PRELOAD_GM_API_H", "#define GPUMEM_PRELOAD_GM_API_H", ""]
    lines += ["#ifndef GM_CUDA_HEADERS /* the coverage test compares with the real ones */", '#include "hooks/cuda_abi.h"', "#endif", "", "enum {"]
    lines += [f"    GM_API_{symbol.name} = {number}," for number, symbol in enumerate(symbols, 1)]
    lines += ["    GM_API_COUNT", "};", ""]
    lines += [prototype(symbol, symbol.name) + ";" for symbol in symbols if symbol.entry.layer != "custom"]
    return "\n".join(lines + ["", "#endif", ""])


def make_table(symbols):
    lines = [NOTE, "#include <string.h>", '#include "base/api.h"', '#include "gm_api.h"', ""]
    lines += ['_Static_assert((int)GM_API_COUNT <= (int)GM_API_MAX, "api ids index fixed tables");', ""]
    lines += [f"extern void gm_custom_{s.name}(void) __asm__(\"{s.name}\");" for s in symbols if s.entry.layer == "custom"]
    lines += ["", "#define HOOK(name) ((void (*)(void))(name))", ""]
    lines += ["/* Sorted by symbol. */", "const struct gm_api_entry gm_api[] = {", '    {"", NULL, NULL, 0, 0, 0, 0},']
    for symbol in symbols:
        runtime = symbol.entry.layer == "runtime"
        name = "NULL" if runtime else f'"{symbol.base}"'
        wrapper = f"gm_custom_{symbol.name}" if symbol.entry.layer == "custom" else f"HOOK({symbol.name})"
        layer = "GM_LAYER_RUNTIME" if runtime else "GM_LAYER_DRIVER"
        lines.append(f'    {{"{symbol.name}", {name}, {wrapper}, {symbol.since}, {layer}, {int(symbol.per_thread)}, '
                     f'{int(is_vital(symbol.entry))}}},')
    lines += ["};", "", "const uint16_t gm_api_count = GM_API_COUNT;", ""]
    numbers = {symbol: number for number, symbol in enumerate(symbols, 1)}
    driver = sorted((s for s in symbols if s.entry.layer != "runtime"), key=lambda s: (s.base, s.per_thread, s.since))
    lines += ["/* Driver functions by the name cuGetProcAddress knows, the plain forms first, then by version. */"]
    lines += ["static const uint16_t by_name[] = {"] + [f"    {numbers[s]}, /* {s.name} */" for s in driver] + ["};", ""]
    lines.append("""uint16_t gm_api_find(const char *symbol)
{
    if (symbol[0] != 'c' || symbol[1] != 'u')
        return 0;
    uint16_t low = 1, high = GM_API_COUNT;
    while (low < high) {
        uint16_t middle = (uint16_t)((low + high) / 2);
        int order = strcmp(symbol, gm_api[middle].symbol);
        if (order == 0)
            return middle;
        if (order < 0)
            high = middle;
        else
            low = (uint16_t)(middle + 1);
    }
    return 0;
}

GM_BEFORE_SANITIZERS static int order_of(const char *name, size_t length, uint16_t api)
{
    int order = strncmp(name, gm_api[api].name, length);
    return order != 0 ? order : gm_api[api].name[length] != '\\0' ? -1 : 0;
}

struct gm_api_rows gm_api_rows(const char *name, size_t length)
{
    const size_t count = sizeof(by_name) / sizeof(by_name[0]);
    size_t low = 0, high = count;
    while (low < high) { /* the first row of that name */
        size_t middle = low + (high - low) / 2;
        if (order_of(name, length, by_name[middle]) > 0)
            low = middle + 1;
        else
            high = middle;
    }
    struct gm_api_rows rows = {&by_name[low], 0};
    while (low + rows.count < count && order_of(name, length, by_name[low + rows.count]) == 0)
        rows.count++;
    return rows;
}

uint16_t gm_api_find_version(const char *name, uint32_t version, int per_thread)
{
    const struct gm_api_rows rows = gm_api_rows(name, strlen(name));
    uint16_t plain = 0, own_stream = 0;
    for (size_t i = 0; i < rows.count; i++) {
        const struct gm_api_entry *entry = &gm_api[rows.row[i]];
        if (entry->since <= version)
            *(entry->per_thread ? &own_stream : &plain) = rows.row[i];
    }
    return per_thread && own_stream ? own_stream : plain;
}
""")
    return "\n".join(lines)


def make_hooks(symbols, layer):
    lines = [NOTE, '#include "hooks/effects.h"', '#include "gm_api.h"', '#include "base/platform.h"', '#include "interpose/real.h"', '#include "record/recorder.h"', ""]
    return "\n".join(lines + [hook(symbol) for symbol in symbols if symbol.entry.layer == layer])


def make_exports(symbols, more):
    names = sorted({symbol.name for symbol in symbols} | set(more))
    return "{\n    global:\n" + "".join(f"        {name};\n" for name in names) + "    local: *;\n};\n"


def version_text(since):
    return f"{since // 1000}.{since % 1000 // 10}"


def recorded(effect_text):
    """What an effect records, in words: the event or the kind of memory it names, else its own name."""
    name, arguments = effect_text
    event = re.match(r"GM_EVENT_(\w+)", arguments)
    kind = re.match(r"GM_KIND_(\w+)", arguments)
    words = event[1].lower() if event else f"{name} {kind[1].lower()}" if kind else name
    return "its name" if name == "label" else words.replace("_", " ")


def coverage_row(rows):
    symbols = [symbol for row in rows for symbol in row.symbols]
    forms = ", ".join(f"`{symbol.name}`" + (f" {version_text(symbol.since)}" if symbol.since else "")
                      for symbol in sorted(symbols, key=lambda symbol: (symbol.since, symbol.name)))
    effects = dict.fromkeys(recorded(effect_text) for row in rows for effect_text in (row.before, row.after) if effect_text)
    effects.update(dict.fromkeys("refusals" for row in rows if row.refusal))
    return f"| `{symbols[0].base}` | {', '.join(effects)} | {forms} |"


def make_coverage(entries, left_out):
    lines = ["# Coverage", "",
             "Made from `preload/hooks/api.table` by `preload/hooks/generate.py --coverage`; a test fails when it is stale.", "",
             "Driver rows are the truth: programs and runtimes all end there. Runtime rows name the call, and record it only",
             "if no driver hook below did. Behind each exported form stands the CUDA version from which the driver has it.", ""]
    sections = {}
    for entry in entries:
        if entry.layer != "custom":
            functions = sections.setdefault((entry.layer, entry.section), {})
            functions.setdefault(entry.symbols[0].base, []).append(entry)
    for (layer, section), functions in sections.items():
        lines += [f"## {layer}: {section}", "", "| function | recorded | exported forms |", "|---|---|---|"]
        lines += [coverage_row(rows) for rows in functions.values()] + [""]
    lines += ["## Left out", "", "| why | functions |", "|---|---|"]
    lines += [f"| {reason} | {', '.join(f'`{name}`' for name in names)} |" for reason, names in left_out]
    return "\n".join(lines) + "\n"


def main():
    options = argparse.ArgumentParser()
    options.add_argument("table")
    options.add_argument("--exports")
    options.add_argument("--out")
    options.add_argument("--coverage", action="store_true")
    arguments = options.parse_args()
    entries, left_out = parse(arguments.table)
    symbols = sorted((symbol for entry in entries for symbol in entry.symbols), key=lambda symbol: symbol.name)
    if arguments.coverage:
        sys.stdout.write(make_coverage(entries, left_out))
        return
    with open(arguments.exports, encoding="utf-8") as file:
        more = [line.strip() for line in file if line.strip() and not line.startswith("#")]
    write(arguments.out, "gm_api.h", make_header(symbols))
    write(arguments.out, "gm_api.c", make_table(symbols))
    write(arguments.out, "gm_hooks_driver.c", make_hooks(symbols, "driver"))
    write(arguments.out, "gm_hooks_runtime.c", make_hooks(symbols, "runtime"))
    write(arguments.out, "gm_exports.map", make_exports(symbols, more))


if __name__ == "__main__":
    main()
