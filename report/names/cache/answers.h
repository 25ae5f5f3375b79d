/* What was found at the addresses of one module, kept on the disk for the next report.
 *
 * To read the symbols of a library of half a gigabyte takes longer than to read most traces, and the next
 * report asks for the same ones.
 *
 * Guarantees: an answer is given only for the very files, reader and libdw that it came from: see
 * `identity`. A file that is damaged, too large, or another user's is as good as none; one is written
 * whole or not at all. Whatever fails here costs time and nothing else. The folder stays below
 * GM_ANSWERS_FOLDER_MAX: what was written longest ago goes first.
 */
#ifndef GPUMEM_REPORT_CACHE_ANSWERS_H
#define GPUMEM_REPORT_CACHE_ANSWERS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define GM_ANSWERS_FOLDER_MAX (UINT64_C(256) << 20) /* bytes */

/* Longest chain of frames at one address, counting the containing function. */
enum { GM_FRAMES_AT_ONE_ADDRESS = 128 };

enum gm_name_source {
    GM_NAME_FROM_SOURCE,  /* as written, without namespace or class */
    GM_NAME_FROM_LINKAGE, /* the linker's name, from debug info */
    GM_NAME_FROM_SYMBOL   /* from the symbol table: may have a version or a clone suffix */
};

/* A frame in the words of the module's file: nothing is demangled or checked. */
struct gm_raw_frame {
    const char *name; /* NULL if unknown */
    enum gm_name_source name_source;
    bool inlined;
    const char *directory; /* of the compilation, for a relative `file`; may be NULL */
    const char *file;      /* NULL if unknown */
    unsigned line;         /* 0 if unknown */
};

struct gm_answers;

/* What `folder` has of a module. `identity`: a hash of all that decides an answer. Never NULL. */
struct gm_answers *gm_answers_open(const char *folder, const uint8_t *build_id,
                                   size_t build_id_size, uint64_t identity);

/* Keeps what is new, if that is to be kept, and frees. */
void gm_answers_close(struct gm_answers *answers, bool keep);

/* What the caller noted of the whole module; false: nothing is kept of it yet. */
bool gm_answers_note(const struct gm_answers *answers, uint32_t *note);
void gm_answers_set_note(struct gm_answers *answers, uint32_t note);

/* Fills `frames` (room for GM_FRAMES_AT_ONE_ADDRESS) with what is kept of an address, which may be that
 * there are none. False: nothing is. Strings live until the next gm_answers_add. */
bool gm_answers_find(const struct gm_answers *answers, uint64_t address,
                     struct gm_raw_frame *frames, size_t *count);

/* Takes a copy. `address` is not there yet. */
void gm_answers_add(struct gm_answers *answers, uint64_t address, const struct gm_raw_frame *frames,
                    size_t count);

#endif
