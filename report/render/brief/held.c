/* Who held memory at a moment of the reader's choice, or what of it he asks for: see brief.h. */
#include "base/memory.h"
#include "ledger/counters.h"
#include "render/brief/brief.h"
#include <stdlib.h>
#include <string.h>

#define TOP_OF_GROUP 10u

static bool is_wanted(const struct gm_model_place *place, const struct gm_output_filter *filter)
{
    return (filter->device == GM_FILTER_ANY ||
            (place->device == filter->device && !gm_kind_is_host(place->kind))) &&
           (filter->kind == GM_FILTER_ANY || place->kind == filter->kind);
}

static void print_title(const struct gm_view *view, const struct gm_when *when,
                        const struct gm_output_filter *filter)
{
    static const char *const names[] = {[GM_WHEN_DEFAULT] = "at the peak",
                                        [GM_WHEN_PEAK] = "at the peak",
                                        [GM_WHEN_OOM] = "when memory last ran out",
                                        [GM_WHEN_END] = "at the end"};
    char device[32] = "", kind[48] = "", size[64] = "", time[48] = "";
    if (filter->device != GM_FILTER_ANY)
        snprintf(device, sizeof(device), ", on device %d", filter->device);
    if (filter->kind != GM_FILTER_ANY)
        snprintf(kind, sizeof(kind), ", %s memory", gm_kind_name((unsigned)filter->kind));
    if (filter->min_size)
        snprintf(size, sizeof(size), ", places of %s and more", SIZE(filter->min_size));
    if (when->kind == GM_WHEN_TIME)
        snprintf(time, sizeof(time), "%s after the start", TIME(when->time_ns));
    gm_page_print(view->page, GM_BOLD, "\nWho held memory %s%s%s%s\n",
                  when->kind == GM_WHEN_TIME ? time : names[when->kind], device, kind, size);
}

/* Samples of one group. `min_size` is of places: what stacks that read the same hold together. */
static void print_group(const struct gm_view *view, struct gm_brief_sites *sites, const char *name,
                        const struct gm_model_sample *samples, size_t count, uint64_t min_size)
{
    struct gm_holder *parts = gm_allocate(count + 1, sizeof(*parts));
    int64_t whole = 0, allocations = 0;
    size_t holder_count, shown = 0;
    for (size_t i = 0; i < count; i++) {
        parts[i] = (struct gm_holder){view->model->places[samples[i].place].stack, samples[i].bytes,
                                      samples[i].count};
        whole += samples[i].bytes;
        allocations += samples[i].count;
    }
    struct gm_holder *holders = gm_holders_add(view->model, parts, count, &holder_count);
    while (shown < holder_count && gm_amount(min_size) <= holders[shown].bytes)
        shown++;
    gm_page_print(view->page, GM_BOLD, "%s", name);
    gm_page_print(view->page, GM_PLAIN, "  %s in %s allocation%s\n", BYTES(whole),
                  NUMBER(allocations), gm_plural((uint64_t)allocations));
    gm_brief_holders(view, sites, holders, shown, whole, view->top);
    free(holders);
    free(parts);
}

static void print_groups(const struct gm_view *view, struct gm_brief_sites *sites,
                         const struct gm_model_sample *samples, size_t count, uint64_t min_size)
{
    char name[GM_GROUP_TEXT], other[GM_GROUP_TEXT];
    for (size_t at = 0, end; at < count; at = end) {
        gm_place_group(&view->model->places[samples[at].place], name);
        for (end = at + 1; end < count; end++)
            if (strcmp(name, gm_place_group(&view->model->places[samples[end].place], other)) != 0)
                break;
        print_group(view, sites, name, samples + at, end - at, min_size);
    }
}

void gm_brief_held(const struct gm_view *view, struct gm_brief_sites *sites,
                   const struct gm_when *when, const struct gm_output_filter *filter)
{
    struct gm_model_held held;
    size_t kept = 0;
    print_title(view, when, filter);
    if (!gm_model_held_at(view->model, when, &held))
        gm_page_print(view->page, GM_WARNING, "There was no such moment.\n");
    for (size_t i = 0; i < held.count; i++)
        if (is_wanted(&view->model->places[held.samples[i].place], filter))
            held.samples[kept++] = held.samples[i];
    print_groups(view, sites, held.samples, kept, filter->min_size);
    if (!kept)
        gm_page_print(view->page, GM_PLAIN, "Nobody held any.\n");
    gm_brief_stacks(view, sites, TOP_OF_GROUP);
    gm_model_held_free(&held);
}
