/* Whose code a stack is, told by its modules alone: which frames belong to the recorder and to
 * CUDA itself, and whether a library of the vendor made the allocation. */
#ifndef GM_REPORT_OWNER_H
#define GM_REPORT_OWNER_H

#include <stdbool.h>
#include <stdint.h>
#include "trace_file.h"

/* Whether a module is libgpumem, libcuda or libcudart: the road of a call, not its origin. */
bool gm_is_road(struct gm_text path);

/* Whether a module is one of the vendor's libraries that allocate for themselves (cuBLAS ...). */
bool gm_is_vendor(struct gm_text path);

/* Whether a module is a library of a framework, of the vendor, of a language or of the system: not
 * the application's own code. */
bool gm_is_framework(struct gm_text path);

/* The package if a file, of Python or a module, belongs to a framework installed by pip or the
 * distribution ("torch"); else NULL. The application's own packages may be installed just there, so
 * that only known names count. */
const char *gm_framework_package(struct gm_text path);

/* The last component of a path. */
struct gm_text gm_base_name(struct gm_text path);

/* Answers by stack, kept. */
struct gm_vendors;
struct gm_vendors *gm_vendors_new(const struct gm_trace *trace);
void gm_vendors_free(struct gm_vendors *vendors);

/* Whether the innermost frame beyond the roads is in a vendor's library. */
bool gm_vendors_own(struct gm_vendors *vendors, uint32_t stack);

#endif
