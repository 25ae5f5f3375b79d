/* The index behind symbolize_dwarf.h.
 *
 * libdw finds the functions at an address by walking the whole compilation unit, for every
 * address anew: milliseconds each in C++ code. Here a unit is walked once, on the first address
 * in it, for the ranges of its functions; after that an address costs a binary search and a
 * descent from that one function through the blocks and inlined calls that hold the address.
 *
 * Units are found by their own ranges and not by .debug_aranges, which clang does not write. */
#include "names/symbols/symbolize_dwarf.h"

#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dwarf.h>

#include "base/memory.h"
#include "names/symbols/symbolize_intervals.h"
#include "names/symbols/symbolize_special.h"

enum {
    NESTING_LIMIT = 256, /* of entries: namespaces while indexing, blocks while searching */
    BYTES_PER_STEP = 16  /* bytes of entries that cost about as much to skip as one visit */
};

/* Steps (visits of entries or ranges) that one module may cost. A gigabyte of debug info and a
 * million addresses need less; at this bound a hostile file has cost a minute or two. */
static const uint64_t STEP_LIMIT = UINT64_C(1) << 31;

enum unit_state {
    UNIT_UNTOUCHED,
    UNIT_INDEXED,        /* functions outside of functions */
    UNIT_INDEXED_DEEPLY, /* functions inside of functions, too */
};

struct unit {
    Dwarf_CU *handle;
    Dwarf_Die root; /* has the line table, even where the code is described in a .dwo file */
    enum unit_state state;
    struct gm_intervals ranges; /* values are indices of `functions` */
    Dwarf_Die *functions;
    size_t function_count;
    size_t function_capacity;
};

struct gm_dwarf_index {
    const char *path;         /* of the file that has the debug info */
    bool has_special_package; /* its .dwp is no file to open */
    bool is_split;            /* a unit's code is described in a .dwo file */
    struct unit *units;
    size_t unit_count;
    size_t unit_capacity;
    struct gm_intervals ranges; /* values are indices of `units` */
    uint64_t steps_left;
};

static bool spend(struct gm_dwarf_index *index, uint64_t steps)
{
    if (index->steps_left < steps) {
        index->steps_left = 0;
        return false;
    }
    index->steps_left -= steps;
    return true;
}

/* Moves `die` to its next sibling. Without a sibling attribute libdw has to read all entries in
 * between, so the distance counts; a distance backwards shows a damaged file. */
static bool next_sibling(struct gm_dwarf_index *index, Dwarf_Die *die)
{
    Dwarf_Off before = dwarf_dieoffset(die);

    if (dwarf_siblingof(die, die) != 0)
        return false;
    Dwarf_Off after = dwarf_dieoffset(die);
    return after > before && spend(index, 1 + (after - before) / BYTES_PER_STEP);
}

/* Adds all ranges of an entry to a set. Linkers leave the ranges of functions that they dropped at
 * address 0 (or, all bits set, empty): code is never at 0 in a linked file. */
static bool add_ranges(struct gm_dwarf_index *index, Dwarf_Die *die, struct gm_intervals *set,
                       size_t value)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t offset = 0;

    while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
        struct gm_interval item = {.start = start, .end = end, .value = (uint32_t)value};
        if (!spend(index, 1) || (start != 0 && !gm_intervals_add(set, item)))
            return false;
    }
    return true;
}

static bool covers(struct gm_dwarf_index *index, Dwarf_Die *die, Dwarf_Addr pc)
{
    Dwarf_Addr base, start, end;
    ptrdiff_t offset = 0;

    while ((offset = dwarf_ranges(die, offset, &base, &start, &end)) > 0) {
        if (!spend(index, 1))
            return false;
        if (start <= pc && pc < end)
            return true;
    }
    return false;
}

/* ---- indexing -------------------------------------------------------------------------------- */

static bool add_unit(struct gm_dwarf_index *index, Dwarf_CU *handle, const Dwarf_Die *root)
{
    size_t number = index->unit_count;

    GM_APPEND(index->units, index->unit_capacity, index->unit_count,
              (struct unit){.handle = handle, .root = *root});
    return add_ranges(index, &index->units[number].root, &index->ranges, number);
}

/* An error while listing units ends the list; what came before it stays usable. */
static void add_units(struct gm_dwarf_index *index, Dwarf *dwarf)
{
    Dwarf_CU *handle = NULL;
    Dwarf_Half version;
    uint8_t type;
    Dwarf_Die root;

    while (dwarf_get_units(dwarf, handle, &handle, &version, &type, &root, NULL) == 0) {
        if (!spend(index, 1))
            return;
        bool has_code = type == DW_UT_compile || type == DW_UT_skeleton;
        index->is_split |= type == DW_UT_skeleton;
        if (has_code && !add_unit(index, handle, &root))
            return;
    }
}

struct gm_dwarf_index *gm_dwarf_index_new(Dwarf *dwarf, const char *path)
{
    struct gm_dwarf_index *index = gm_allocate(1, sizeof(*index));
    char package[PATH_MAX];

    index->path = path;
    snprintf(package, sizeof(package), "%s.dwp", path);
    index->has_special_package = gm_is_special_file(NULL, NULL, package);
    index->steps_left = STEP_LIMIT;
    add_units(index, dwarf);
    gm_intervals_sort(&index->ranges);
    return index;
}

static void forget_functions(struct unit *unit)
{
    gm_intervals_clear(&unit->ranges);
    free(unit->functions);
    unit->functions = NULL;
    unit->function_count = 0;
    unit->function_capacity = 0;
}

void gm_dwarf_index_free(struct gm_dwarf_index *index)
{
    if (index == NULL)
        return;
    for (size_t i = 0; i < index->unit_count; i++)
        forget_functions(&index->units[i]);
    free(index->units);
    gm_intervals_clear(&index->ranges);
    free(index);
}

bool gm_dwarf_index_empty(const struct gm_dwarf_index *index)
{
    return index->ranges.count == 0;
}

bool gm_dwarf_index_is_split(const struct gm_dwarf_index *index)
{
    return index->is_split;
}

bool gm_dwarf_index_exhausted(const struct gm_dwarf_index *index)
{
    return index->steps_left == 0;
}

/* A function without ranges (a declaration, or only the model for inlined copies) is not kept. */
static bool add_function(struct gm_dwarf_index *index, struct unit *unit, Dwarf_Die *die)
{
    size_t ranges_before = unit->ranges.count;

    GM_RESERVE(unit->functions, unit->function_capacity, unit->function_count + 1);
    unit->functions[unit->function_count] = *die;
    bool complete = add_ranges(index, die, &unit->ranges, unit->function_count);
    if (unit->ranges.count > ranges_before)
        unit->function_count++;
    return complete;
}

static bool may_contain_functions(int tag, bool deeply)
{
    switch (tag) {
    case DW_TAG_namespace:
    case DW_TAG_module:
    case DW_TAG_class_type:
    case DW_TAG_structure_type:
    case DW_TAG_union_type:
    case DW_TAG_interface_type:
    case DW_TAG_enumeration_type: /* Rust */
        return true;
    case DW_TAG_subprogram: /* nested functions of GNU C, outlined OpenMP regions */
    case DW_TAG_lexical_block:
    case DW_TAG_inlined_subroutine:
    case DW_TAG_try_block:
    case DW_TAG_catch_block:
        return deeply;
    default:
        return false;
    }
}

/* Walks the entries below `root` without recursion: `path` holds the entry of each level. */
static void add_functions(struct gm_dwarf_index *index, struct unit *unit, Dwarf_Die *root,
                          bool deeply)
{
    Dwarf_Die path[NESTING_LIMIT];
    int depth = 0;

    if (dwarf_child(root, &path[0]) != 0)
        return;
    while (depth >= 0 && spend(index, 1)) {
        int tag = dwarf_tag(&path[depth]);
        if (tag == DW_TAG_subprogram && !add_function(index, unit, &path[depth]))
            return;
        bool enter = may_contain_functions(tag, deeply) && depth + 1 < NESTING_LIMIT;
        if (enter && dwarf_child(&path[depth], &path[depth + 1]) == 0) {
            depth++;
            continue;
        }
        while (depth >= 0 && !next_sibling(index, &path[depth]))
            depth--;
    }
}

static const char *text_of_die(Dwarf_Die *die, unsigned name)
{
    Dwarf_Attribute attribute;

    return dwarf_attr(die, name, &attribute) == NULL ? NULL : dwarf_formstring(&attribute);
}

/* Whether libdw, asked for the unit's .dwo file, would open something else than a regular file. */
static bool is_split_special(const struct gm_dwarf_index *index, Dwarf_Die *root)
{
    const char *name = text_of_die(root, DW_AT_dwo_name);

    if (name == NULL)
        name = text_of_die(root, DW_AT_GNU_dwo_name);
    return index->has_special_package ||
           (name != NULL &&
            (gm_is_special_file(index->path, NULL, name) ||
             gm_is_special_file(index->path, text_of_die(root, DW_AT_comp_dir), name)));
}

/* With split debug info the code is described in a .dwo file. If that is not there, what is left
 * in the main file has to do: the line table and, from some compilers, the inlined calls. */
static void index_unit(struct gm_dwarf_index *index, struct unit *unit, bool deeply)
{
    Dwarf_Die split;
    Dwarf_Die *root = &unit->root;
    uint8_t type;

    if (dwarf_cu_info(unit->handle, NULL, &type, NULL, NULL, NULL, NULL, NULL) == 0 &&
        type == DW_UT_skeleton && !is_split_special(index, root) &&
        dwarf_cu_info(unit->handle, NULL, NULL, NULL, &split, NULL, NULL, NULL) == 0 &&
        split.cu != NULL)
        root = &split;
    forget_functions(unit);
    unit->state = deeply ? UNIT_INDEXED_DEEPLY : UNIT_INDEXED;
    add_functions(index, unit, root, deeply);
    gm_intervals_sort(&unit->ranges);
}

/* ---- searching ------------------------------------------------------------------------------- */

static bool describes_code(int tag)
{
    return tag == DW_TAG_inlined_subroutine || tag == DW_TAG_lexical_block ||
           tag == DW_TAG_try_block || tag == DW_TAG_catch_block;
}

/* Moves `die` to that of its children whose code holds `pc`. */
static bool enter_child_at(struct gm_dwarf_index *index, Dwarf_Die *die, Dwarf_Addr pc)
{
    Dwarf_Die child;

    if (dwarf_child(die, &child) != 0)
        return false;
    do {
        if (!spend(index, 1))
            return false;
        if (describes_code(dwarf_tag(&child)) && covers(index, &child, pc)) {
            *die = child;
            return true;
        }
    } while (next_sibling(index, &child));
    return false;
}

/* Fills `chain` with the function and, from the outside in, the calls inlined into it at `pc`. */
static size_t follow_inlining(struct gm_dwarf_index *index, const Dwarf_Die *function,
                              Dwarf_Addr pc, Dwarf_Die *chain)
{
    Dwarf_Die current = *function;
    size_t length = 0;

    chain[length++] = current;
    for (int depth = 0; depth < NESTING_LIMIT && enter_child_at(index, &current, pc); depth++) {
        if (dwarf_tag(&current) == DW_TAG_inlined_subroutine) {
            if (length == GM_FRAMES_AT_ONE_ADDRESS)
                break;
            chain[length++] = current;
        }
    }
    return length;
}

static const char *linkage_name(Dwarf_Die *die)
{
    Dwarf_Attribute attribute;
    const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_linkage_name, &attribute));

    if (name == NULL) /* DWARF 3 and before */
        name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_MIPS_linkage_name, &attribute));
    return name;
}

static void set_name(struct gm_raw_frame *frame, Dwarf_Die *die)
{
    frame->name = linkage_name(die);
    frame->name_source = GM_NAME_FROM_LINKAGE;
    if (frame->name == NULL) {
        frame->name = dwarf_diename(die);
        frame->name_source = GM_NAME_FROM_SOURCE;
    }
}

/* libdw calls the file number 0 of DWARF 4 "???". */
static void set_file(struct gm_raw_frame *frame, Dwarf_Die *root, const char *file)
{
    Dwarf_Attribute attribute;

    if (file == NULL || strcmp(file, "???") == 0)
        return;
    frame->file = file;
    frame->directory = dwarf_formstring(dwarf_attr(root, DW_AT_comp_dir, &attribute));
}

static void set_line_at(struct gm_raw_frame *frame, struct unit *unit, Dwarf_Addr pc)
{
    Dwarf_Line *row = dwarf_getsrc_die(&unit->root, pc);
    int line = 0;

    if (row == NULL)
        return;
    set_file(frame, &unit->root, dwarf_linesrc(row, NULL, NULL));
    if (dwarf_lineno(row, &line) == 0 && line > 0)
        frame->line = (unsigned)line;
}

static bool read_dwarf_number(Dwarf_Die *die, unsigned name, Dwarf_Word *number)
{
    Dwarf_Attribute attribute;

    return dwarf_formudata(dwarf_attr(die, name, &attribute), number) == 0;
}

/* The place of an inlined call lies in the function that contains it. File numbers count in the
 * unit of the entry itself, which may be a .dwo file's; its directory is the unit's in any case. */
static void set_call_site(struct gm_raw_frame *frame, struct unit *unit, Dwarf_Die *call)
{
    Dwarf_Die root;
    Dwarf_Word number;
    Dwarf_Files *files;
    size_t file_count;

    if (read_dwarf_number(call, DW_AT_call_line, &number) && number <= INT32_MAX)
        frame->line = (unsigned)number;
    if (read_dwarf_number(call, DW_AT_call_file, &number) &&
        dwarf_diecu(call, &root, NULL, NULL) != NULL &&
        dwarf_getsrcfiles(&root, &files, &file_count) == 0 && number < file_count) {
        set_file(frame, &unit->root, dwarf_filesrc(files, number, NULL, NULL));
    }
}

static size_t describe_function(struct gm_dwarf_index *index, struct unit *unit,
                                const Dwarf_Die *function, Dwarf_Addr pc,
                                struct gm_raw_frame *frames)
{
    Dwarf_Die chain[GM_FRAMES_AT_ONE_ADDRESS];
    size_t length = follow_inlining(index, function, pc, chain);

    for (size_t i = 0; i < length; i++) {
        Dwarf_Die *die = &chain[length - 1 - i];
        frames[i] = (struct gm_raw_frame){.inlined = i + 1 < length};
        set_name(&frames[i], die);
        if (i == 0)
            set_line_at(&frames[i], unit, pc);
        else
            set_call_site(&frames[i], unit, &chain[length - i]);
    }
    return length;
}

static size_t find_indexed(struct gm_dwarf_index *index, struct unit *unit, Dwarf_Addr pc,
                           struct gm_raw_frame *frames)
{
    struct gm_interval_search search = gm_intervals_search(&unit->ranges, pc);
    const struct gm_interval *found = gm_intervals_next(&search);

    return found == NULL
               ? 0
               : describe_function(index, unit, &unit->functions[found->value], pc, frames);
}

static size_t find_in_unit(struct gm_dwarf_index *index, struct unit *unit, Dwarf_Addr pc,
                           struct gm_raw_frame *frames)
{
    if (unit->state == UNIT_UNTOUCHED)
        index_unit(index, unit, false);
    size_t count = find_indexed(index, unit, pc, frames);
    if (count == 0 && unit->state == UNIT_INDEXED) {
        index_unit(index, unit, true);
        count = find_indexed(index, unit, pc, frames);
    }
    return count;
}

/* Several units may claim an address where a linker dropped code; one that has a function there
 * is believed, otherwise one that has a line there. */
size_t gm_dwarf_index_find(struct gm_dwarf_index *index, Dwarf_Addr pc, struct gm_raw_frame *frames)
{
    struct gm_interval_search search = gm_intervals_search(&index->ranges, pc);
    const struct gm_interval *range;
    struct gm_raw_frame line_only = {0};

    while ((range = gm_intervals_next(&search)) != NULL && !gm_dwarf_index_exhausted(index)) {
        struct unit *unit = &index->units[range->value];
        size_t count = find_in_unit(index, unit, pc, frames);
        if (count > 0)
            return count;
        if (line_only.file == NULL)
            set_line_at(&line_only, unit, pc);
    }
    if (line_only.file == NULL)
        return 0;
    frames[0] = line_only;
    return 1;
}
