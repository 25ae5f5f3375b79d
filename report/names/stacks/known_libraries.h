/* The libraries that are known by the name of their file: what people call them, and what is true
 * of memory that they allocate. The one list behind owner.h and libraries.h. */
#ifndef GPUMEM_REPORT_STACKS_KNOWN_LIBRARIES_H
#define GPUMEM_REPORT_STACKS_KNOWN_LIBRARIES_H

#include "base/text.h"
#include <stdbool.h>

enum gm_library_trait {
    GM_LIBRARY_ROAD = 1u << 0,      /* the recorder, the driver, the runtime: on every way */
    GM_LIBRARY_VENDOR = 1u << 1,    /* the vendor's, and what it leaves behind is its own affair */
    GM_LIBRARY_ALLOCATOR = 1u << 2, /* hands memory on to whoever calls it */
    GM_LIBRARY_SYSTEM = 1u << 3,    /* of the language or the system: owns nothing */
    GM_LIBRARY_DEVICE_CACHE = 1u << 4, /* keeps memory of a device by design */
    GM_LIBRARY_HOST_CACHE = 1u << 5,   /* keeps pinned memory by design */
};

struct gm_known_library {
    const char *file; /* without what follows the first dot or dash; a package: its folder */
    const char *name; /* "cuBLAS" */
    unsigned traits;  /* enum gm_library_trait */
};

/* What is known of a module by its path, NULL if nothing is. */
const struct gm_known_library *gm_known_library(struct gm_text path);

/* The package that a file, of Python or a module, belongs to, if it is a known one installed by pip
 * or the distribution; else NULL. */
const struct gm_known_library *gm_known_package(struct gm_text path);

/* The folder or file below site-packages or dist-packages that a Python file lies in: "transformers". Empty:
 * it is installed nowhere, as what a developer runs from a checkout, also one that is installed as editable. */
struct gm_text gm_installed_package(struct gm_text path);

/* Whether `script` is the program that an installer put beside `installed`, a file of a package, to start it:
 * /venv/bin/train beside /venv/lib/python3.12/site-packages/... */
bool gm_is_launcher(struct gm_text script, struct gm_text installed);

/* The library whose headers a C++ function comes from, by its file (NULL: unknown) or its demangled name:
 * the toolkit's, the language's, Thrust, CUB, RMM, PyTorch. What they instantiate lies in the program's
 * own module, but is not the program's code. NULL: none that is known. */
const char *gm_known_header(const char *file, const char *function);

/* Whether a Python file was written by a compiler of the framework's (Inductor, Triton, FX): its lines
 * say nothing to a reader. */
bool gm_is_generated(struct gm_text path);

#endif
