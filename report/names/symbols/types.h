/* What the files of symbols/ say to one another about a module. */
#ifndef GPUMEM_REPORT_SYMBOLS_TYPES_H
#define GPUMEM_REPORT_SYMBOLS_TYPES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* A module as the trace recorded it. */
struct gm_module_reference {
    const char *path;        /* absolute path; NULL or "" if unknown */
    const uint8_t *build_id; /* may be NULL if build_id_size is 0 */
    size_t build_id_size;    /* bytes; 0 if the module has none */
};

struct gm_symbolizer_options {
    const char *sysroot; /* directory in which module paths are looked up first; NULL if none */
    bool no_local_files; /* none is opened by its path alone: in the sysroot or by build-id */
    bool debuginfod;     /* may missing debug info be downloaded, from DEBUGINFOD_URLS? */
    const char *cache_folder; /* where answers are kept for the next run; NULL: they are not */
};

/* Ordered from the best to the worst that can be said. */
enum gm_symbol_status {
    GM_SYMBOLS_FULL,           /* functions, inlining and lines */
    GM_SYMBOLS_FUNCTIONS_ONLY, /* no debug info: names from the symbol table */
    GM_SYMBOLS_COMPRESSION,    /* as before: its debug info is compressed in a way that the
                                  installed libelf cannot read (zstd with elfutils < 0.189) */
    GM_SYMBOLS_NONE,           /* neither debug info nor a symbol table */
    GM_SYMBOLS_UNREADABLE,     /* not a usable ELF executable or library */
    GM_SYMBOLS_TOO_MUCH,       /* its debug info unpacks to more than a compiler writes; not used */
    GM_SYMBOLS_MODULE_CHANGED, /* only files with another build-id were found; not used */
    GM_SYMBOLS_MODULE_MISSING  /* no such file */
};

struct gm_symbol_outcome {
    enum gm_symbol_status status;
    bool verified; /* the build-id of the trace is that of the file; false if the trace has none */
    bool limited;  /* reading its debug info cost more than a sound file can; given up half way */
    const char *file; /* the file that was used; NULL if none; lives as long as the symbolizer */
};

#endif
