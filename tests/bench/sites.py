"""Sources of a C++ program with many allocation sites and much debug info, to measure what it takes to name sites.

    sites.py FOLDER

Writes main.cpp and UNITS units. A site is an instance of the template site(), which is not inlined, and its call of
cuMemAlloc_v2 is in take(), inlined into hold(), inlined into keep(), inlined into site(). The rest of a site, and
the types, make up what a program has besides: most of its debug info describes what no query asks for. The units
include no header and have few templates, since a compiler takes its time over both. Compiled with -Og -g the program
has 10,000 sites and 50 MB of debug info; -O1 takes a third longer for about the same.
"""
import sys

UNITS, SITES, TYPES = 50, 200, 300

TYPE = """\
struct Type{n} {{
    int first_{n}, second_{n};
    Type{before} *before, *others[4];
    int size_{n}(const Type{n} &other) const;
    int order_{n}(const Type{n} &one, const Type{n} &other, int by);
    static Type{n} *make_{n}(int first, int second, Type{before} *before);
}};
"""

UNIT = """\
#define INLINED inline __attribute__((always_inline))
extern "C" int cuMemAlloc_v2(unsigned long long *, unsigned long);
namespace unit{unit} {{
{types}
struct Row {{
    int sum, last;
    {members}
}};
INLINED int add(Row *row, int value)
{{
    Row *here = row;
    int before = here->sum, by = value, after = before + by;
    here->sum = after;
    return before;
}}
INLINED int replace(Row *row, int value)
{{
    Row *here = row;
    int before = here->last, now = value;
    here->last = now;
    return add(here, before);
}}
INLINED int turn(Row *row, int value)
{{
    Row *here = row;
    int by = value, first = add(here, by), second = replace(here, first);
    return first ^ second;
}}
template <int N> INLINED int take(unsigned long long *to)
{{
    int result = cuMemAlloc_v2(to, 256 + N);
    return result;
}}
template <int N> INLINED int hold(unsigned long long *to)
{{
    int result = take<N>(to);
    return result;
}}
template <int N> INLINED int keep(unsigned long long *to)
{{
    int result = hold<N>(to);
    return result;
}}
template <int N> __attribute__((noinline)) int site(Row *row, unsigned long long *to)
{{
    int result = keep<N>(to);
    result += turn(row, N);
    result += turn(row, result);
    result += turn(row, N + 1);
    result += turn(row, result + 1);
    return result;
}}
int run(unsigned long long *to)
{{
    static Row row;
    int sum = 0;
    {calls}
    return sum;
}}
}}
"""

MAIN = """\
extern "C" int cuInit(unsigned);
extern "C" int cuDevicePrimaryCtxRetain(void **, int);
extern "C" int cuCtxSetCurrent(void *);
{declarations}
int main()
{{
    unsigned long long to;
    void *context;
    if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0 || cuCtxSetCurrent(context) != 0)
        return 1;
    int sum = 0;
    {calls}
    return sum == 12345;
}}
"""


def unit_source(unit):
    types = "struct Type;\n" + "".join(TYPE.format(n=n, before=n - 1 if n else "") for n in range(TYPES))
    return UNIT.format(unit=unit, types=types,
                       members="\n    ".join(f"Type{n} member{n};" for n in range(TYPES)),
                       calls="\n    ".join(f"sum += site<{n}>(&row, to);" for n in range(SITES)))


def main_source():
    return MAIN.format(declarations="\n".join(f"namespace unit{unit} {{ int run(unsigned long long *); }}" for unit in range(UNITS)),
                       calls="\n    ".join(f"sum += unit{unit}::run(&to);" for unit in range(UNITS)))


def main():
    sources = {f"unit{unit}.cpp": unit_source(unit) for unit in range(UNITS)}
    sources["main.cpp"] = main_source()
    for name, text in sources.items():
        with open(f"{sys.argv[1]}/{name}", "w", encoding="utf-8") as file:
            file.write(text)


main()
