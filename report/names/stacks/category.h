/* What memory is for, as far as its stack tells: by the files and functions of PyTorch that it was
 * allocated in, and by whether the allocation was made on the way back through a graph.
 *
 * Told by the names of files and functions alone; what is known of a module and of a Python frame is
 * kept. */
#ifndef GPUMEM_REPORT_STACKS_CATEGORY_H
#define GPUMEM_REPORT_STACKS_CATEGORY_H

#include "base/names.h"
#include "input/trace/trace_file.h"
#include <stdint.h>

struct gm_categories;
struct gm_categories *gm_categories_new(const struct gm_trace *trace);
void gm_categories_free(struct gm_categories *categories);

/* Never INPUT for what only a copy tells, and never CACHE. A stack in which all frames are of PyTorch
 * and of the system, and none is of Python, is one of autograd's threads: they run backward passes. */
enum gm_category gm_categories_get(struct gm_categories *categories, uint32_t stack);

#endif
