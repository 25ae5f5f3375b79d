/* One module file, checked against the trace and opened for naming addresses. */
#ifndef GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_MODULE_H
#define GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_MODULE_H

#include "names/symbols/symbolize_dwarf.h"
#include "names/symbols/types.h"

struct gm_symbol_module;

/* Looks for the file of `reference` and opens it. A module without a usable file is one that finds
 * nothing, its outcome says why. */
struct gm_symbol_module *gm_symbol_module_open(const struct gm_module_reference *reference,
                                               const struct gm_symbolizer_options *options);
void gm_symbol_module_free(struct gm_symbol_module *module);

/* Fills `frames` (room for GM_FRAMES_AT_ONE_ADDRESS), innermost first, for an ELF virtual address.
 * Returns how many; 0 if nothing is known. Strings live until the next call. */
size_t gm_symbol_module_find(struct gm_symbol_module *module, uint64_t address,
                             struct gm_raw_frame *frames);

struct gm_symbol_outcome gm_symbol_module_outcome(const struct gm_symbol_module *module);

#endif
