/* Names code addresses: module and address in, function, file and line out.
 *
 * Works from the files on this machine, after the fact; nothing of the recorded program runs. The
 * build-id recorded in the trace decides whether a file is the one that was loaded: a file with
 * another one is never used. Damaged or hostile files lead to fewer names, never to a crash, and
 * the work spent on one module is bounded. A file that shrinks while it is being read can still
 * end the process (libelf maps files). Not thread-safe: one symbolizer belongs to one thread. */
#ifndef GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_H
#define GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_H

#include "names/symbols/types.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* One source-level frame. Strings are valid UTF-8 without control characters, shorter than 4 KiB,
 * and live as long as the symbolizer. */
struct gm_source_frame {
    const char *function; /* demangled; "??" if unknown, never NULL */
    const char *file;     /* as in the line table, absolute where the compiler recorded its
                             directory; not looked up on disk; NULL if unknown */
    unsigned line;        /* from 1; 0 if unknown */
    bool inlined;         /* the code was inlined into the next frame */
};

struct gm_symbolizer;

/* `options` may be NULL for the defaults. Without `debuginfod` this removes DEBUGINFOD_URLS from
 * the environment of the process, the only switch that libdwfl has. */
struct gm_symbolizer *gm_symbolizer_new(const struct gm_symbolizer_options *options);
void gm_symbolizer_free(struct gm_symbolizer *symbolizer);

/* Names the code at `address`, a virtual address of the module's ELF file (pc minus load bias; for
 * a return address the caller has already subtracted 1). Fills up to `max` (1 at least) of
 * `frames`, innermost first, so that a function follows the code inlined into it. Returns how many
 * were filled, 1 at least: an address without a name yields one frame "??". Answers are kept, so
 * asking again is cheap. */
size_t gm_symbolize(struct gm_symbolizer *symbolizer, const struct gm_module_reference *module,
                    uint64_t address, struct gm_source_frame *frames, size_t max);

/* What became of a module; opens it if no address of it was asked for yet. */
struct gm_symbol_outcome gm_symbolizer_outcome(struct gm_symbolizer *symbolizer,
                                               const struct gm_module_reference *module);

/* A phrase for reports, such as "changed since the recording". */
const char *gm_symbol_status_text(enum gm_symbol_status status);

#endif
