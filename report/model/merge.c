/* See merge.h. */
#include "model/merge.h"
#include "base/assert.h"
#include "base/memory.h"
#include "model/copy.h"
#include <stdlib.h>
#include <string.h>

/* A run, and the model that it is of. */
struct source {
    const struct gm_model_run *run;
    size_t model;
};

static int compare_numbers(uint64_t a, uint64_t b)
{
    return a < b ? -1 : a > b;
}

static int compare_texts(struct gm_text a, struct gm_text b)
{
    size_t size = a.size < b.size ? a.size : b.size;
    int order = size ? memcmp(a.bytes, b.bytes, size) : 0;
    return order ? order : compare_numbers(a.size, b.size);
}

/* Two runs that no key tells apart are one process at one time, in two copies. Runs without a rank
 * come last. */
static int by_identity(const void *left, const void *right)
{
    const struct gm_model_run *a = ((const struct source *)left)->run;
    const struct gm_model_run *b = ((const struct source *)right)->run;
    const int orders[] = {
        compare_numbers((uint64_t)a->rank.rank, (uint64_t)b->rank.rank),
        compare_texts(a->host_name, b->host_name),
        compare_numbers(a->pid, b->pid),
        compare_numbers(a->start_realtime_ns, b->start_realtime_ns),
        compare_texts(a->run_id, b->run_id),
        strcmp(a->path, b->path),
        compare_numbers(a->duration_ns, b->duration_ns),
        compare_numbers(a->events, b->events),
    };
    for (size_t i = 0; i < sizeof(orders) / sizeof(orders[0]); i++)
        if (orders[i])
            return orders[i];
    return 0;
}

struct gm_model *gm_model_merge(const struct gm_model *const *models, size_t count)
{
    struct gm_model *merged = gm_model_new();
    struct gm_copier *copiers = gm_allocate(count + 1, sizeof(*copiers));
    size_t run_count = 0, at = 0;
    for (size_t i = 0; i < count; i++) {
        run_count += models[i]->run_count;
        merged->is_difference |= models[i]->is_difference;
        copiers[i] = gm_copier_begin(merged, models[i]);
    }
    struct source *sources = gm_allocate(run_count + 1, sizeof(*sources));
    for (size_t i = 0; i < count; i++)
        for (size_t run = 0; run < models[i]->run_count; run++)
            sources[at++] = (struct source){&models[i]->runs[run], i};
    qsort(sources, run_count, sizeof(*sources), by_identity);
    for (size_t i = 0; i < run_count; i++)
        *gm_model_add_run(merged) = gm_copy_run(&copiers[sources[i].model], sources[i].run);
    for (size_t i = 0; i < count; i++)
        gm_copier_end(&copiers[i]);
    free(copiers);
    free(sources);
    GM_ASSERT(gm_model_is_valid(merged));
    return merged;
}
