/* What memory is for, as far as its stack tells: by the files and functions of PyTorch that it was
 * allocated in, and by whether the allocation was made on the way back through a graph.
 *
 * Told by the names of files and functions alone; what is known of a module and of a Python frame is
 * kept. */
#ifndef GPUMEM_REPORT_STACKS_CATEGORY_H
#define GPUMEM_REPORT_STACKS_CATEGORY_H

#include "trace/trace_file.h"
#include <stdint.h>

enum gm_category {
    GM_CATEGORY_OTHER,      /* what nothing below is known of */
    GM_CATEGORY_PARAMETER,  /* a model's weights and buffers: made, loaded or moved */
    GM_CATEGORY_GRADIENT,   /* made by a backward pass */
    GM_CATEGORY_OPTIMIZER,  /* an optimizer's state */
    GM_CATEGORY_ACTIVATION, /* made in a module's forward pass */
    GM_CATEGORY_INPUT,      /* filled from the host, or by a data loader */
    GM_CATEGORY_WORKSPACE,  /* of the vendor's libraries, and of an optimizer's step */
    GM_CATEGORY_CACHE,      /* reserved by the pool, and in no block */
    GM_CATEGORIES
};

/* "optimizer-state" */
const char *gm_category_name(enum gm_category category);

struct gm_categories;
struct gm_categories *gm_categories_new(const struct gm_trace *trace);
void gm_categories_free(struct gm_categories *categories);

/* Never INPUT for what only a copy tells, and never CACHE. A stack in which all frames are of PyTorch
 * and of the system, and none is of Python, is one of autograd's threads: they run backward passes. */
enum gm_category gm_categories_get(struct gm_categories *categories, uint32_t stack);

#endif
