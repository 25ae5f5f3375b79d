/* Whose code a stack is, told by its modules alone: which frames belong to the recorder and to
 * CUDA itself, and whether a library of the vendor or a framework's cache made the allocation. */
#ifndef GPUMEM_REPORT_STACKS_OWNER_H
#define GPUMEM_REPORT_STACKS_OWNER_H

#include "input/trace/trace_file.h"
#include <stdbool.h>
#include <stdint.h>

/* Whether a module is libgpumem, libcuda or libcudart: the road of a call, not its origin. */
bool gm_is_road(struct gm_text path);
bool gm_is_recorder(struct gm_text path); /* libgpumem */

/* Whether a module is a library of a framework, of the vendor, of a language or of the system: not
 * the application's own code. */
bool gm_is_framework(struct gm_text path);

/* The package if a file, of Python or a module, belongs to a framework installed by pip or the
 * distribution ("torch"), "python" if to Python's own library, "generated" if a compiler wrote it; else NULL. The application's own
 * packages may be installed just there, so that only known names count. */
const char *gm_framework_package(struct gm_text path);

/* Who made an allocation, by the innermost frame beyond the roads. */
enum gm_owner {
    GM_OWNER_VENDOR = 1u << 0,       /* a library of the vendor, for itself */
    GM_OWNER_DEVICE_CACHE = 1u << 1, /* a framework's cache, if it is memory on a device */
    GM_OWNER_HOST_CACHE = 1u << 2,   /* a framework's cache, if it is pinned memory */
};

/* Answers by stack, kept. */
struct gm_owners;
struct gm_owners *gm_owners_new(const struct gm_trace *trace);
void gm_owners_free(struct gm_owners *owners);

/* The flags of enum gm_owner that are true of a stack; 0: the program itself, or unknown. */
unsigned gm_owners_get(struct gm_owners *owners, uint32_t stack);

/* Whether memory of this kind, allocated there, is what a framework caches by design. */
bool gm_owners_cache(struct gm_owners *owners, unsigned kind, uint32_t stack);

#endif
