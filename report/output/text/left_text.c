/* What was not freed: see sections.h. */
#include "base/each.h"
#include "base/memory.h"
#include "output/headline.h"
#include "output/text/sections.h"
#include <stdlib.h>

#define LEFT_SHOWN 3u /* places of what was left, on the page */

/* The samples of the end that are of some classes, a bit each, in their order; the caller frees them. */
static struct gm_model_sample *list_classes(const struct gm_view *view, unsigned classes,
                                            size_t *count)
{
    const struct gm_model_moment *end = gm_model_moment(view->run, view->run->end);
    struct gm_model_sample *samples =
        gm_allocate((end ? end->sample_count : 0) + 1, sizeof(*samples));
    *count = 0;
    for (size_t i = 0; end && i < end->sample_count; i++) {
        const struct gm_model_place *place = &view->model->places[end->samples[i].place];
        if ((classes >> place->leak_class & 1) && !place->is_block)
            samples[(*count)++] = end->samples[i];
    }
    return samples;
}

static void print_classes(const struct gm_view *view, unsigned classes)
{
    size_t count;
    int64_t whole = 0;
    struct gm_model_sample *samples = list_classes(view, classes, &count);
    for (size_t i = 0; i < count; i++)
        whole += samples[i].bytes;
    gm_samples_text(view, samples, count, whole, 0, view->verbose ? GM_VIEW_ROWS : LEFT_SHOWN);
    free(samples);
}

/* Memory that was not freed and is no leak. */
static void print_other_classes(const struct gm_view *view)
{
    static const char *const means[GM_LEAK_CLASSES] = {
        [GM_LEAK_LATE] = "freed too late: the driver was shut down when the free came",
        [GM_LEAK_IMPLICIT] = "freed with its context, not by the program",
        [GM_LEAK_EXTERNAL] = "of another owner, or held by a vendor's library",
        [GM_LEAK_CACHED] = "cached by a framework, for its next use",
        [GM_LEAK_UNTOLD] = "freed or not: the end of its context is not on record",
        [GM_LEAK_IGNORED] = "that the program says is no leak (gpumem_ignore_begin)",
    };
    for (unsigned class = GM_LEAK_LATE; class < GM_LEAK_CLASSES; class ++) {
        if (!view->run->leaked_count[class])
            continue;
        gm_page_paragraph(view->page, GM_DIM, 4, "%s %s", BYTES(view->run->leaked[class]),
                          means[class]);
        if (view->verbose && class != GM_LEAK_CACHED) /* what is in a pool its section tells */
            print_classes(view, 1u << class);
    }
}

void gm_left_text(const struct gm_view *view)
{
    static const char *const titles[] = {
        [GM_ENDING_NORMAL] = "Leaked: never freed",
        [GM_ENDING_RUNNING] = "Live now",
        [GM_ENDING_CUT] = "Live when the process was cut off",
        [GM_ENDING_FAILED] = "Live when the device failed",
    };
    const struct gm_model_run *run = view->run;
    int64_t leaks = run->leaked_count[GM_LEAK] + run->leaked_count[GM_LEAK_LIVE], others = 0;
    for (unsigned class = GM_LEAK_LATE; class < GM_LEAK_CLASSES; class ++)
        others += run->leaked_count[class];
    if (leaks || others)
        gm_page_heading(view->page,
                        !leaks && !run->as_of_ns ? "Left at the end"
                        : run->was_asked_to_end  ? "Live when SIGTERM ended it"
                                                 : titles[run->ending],
                        NULL);
    print_classes(view, 1u << GM_LEAK | 1u << GM_LEAK_LIVE);
    print_other_classes(view);
}

void gm_leaks_text(const struct gm_view *view, enum gm_leak_class leak_class)
{
    size_t count, top = gm_view_rows(view, GM_VIEW_ROWS);
    struct gm_model_sample *samples = list_classes(view, 1u << leak_class, &count);
    for (size_t i = 0; i < count && i < top; i++) {
        const struct gm_model_place *place = &view->model->places[samples[i].place];
        gm_page_print(view->page, GM_BOLD, "  %s", BYTES(samples[i].bytes));
        gm_page_print(view->page, GM_PLAIN, " of %s memory on %s, %s x %s\n",
                      gm_kind_name(place->kind), WHERE(place), NUMBER(samples[i].count),
                      place->api[0] ? place->api : "?");
        gm_place_text(view, place->stack, 6);
    }
    gm_more_places_text(view, count, top);
    free(samples);
}
