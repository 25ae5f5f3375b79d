/* Finds the functions, inlined calls and lines of an address in the debug info of one module.
 *
 * Relies on libdw for decoding. What libdw does not bound (the number and nesting of entries that
 * a damaged file makes us visit) is bounded here. */
#ifndef GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_DWARF_H
#define GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_DWARF_H

#include <stdbool.h>
#include <stddef.h>

#include "names/cache/answers.h"
#include <elfutils/libdw.h>

struct gm_dwarf_index;

/* `dwarf`, and `path`, the file that it is from, stay the caller's and must live longer. */
struct gm_dwarf_index *gm_dwarf_index_new(Dwarf *dwarf, const char *path);
void gm_dwarf_index_free(struct gm_dwarf_index *index);

/* Whether no unit of the debug info describes any code. */
bool gm_dwarf_index_empty(const struct gm_dwarf_index *index);

/* Fills `frames` (room for GM_FRAMES_AT_ONE_ADDRESS), innermost first, and returns how many: 0 if
 * the address is not covered. A single frame without name means that only the line is known.
 * Strings belong to libdw and live as long as the Dwarf handle. */
size_t gm_dwarf_index_find(struct gm_dwarf_index *index, Dwarf_Addr pc,
                           struct gm_raw_frame *frames);

/* Whether code may be described in further files (.dwo, .dwp). */
bool gm_dwarf_index_is_split(const struct gm_dwarf_index *index);

/* Whether the index has given up because the file is not sound; it then finds nothing more. */
bool gm_dwarf_index_exhausted(const struct gm_dwarf_index *index);

#endif
