/* Who held memory at a moment of the reader's choice, or what of it he asks for: see sections.h. */
#include "base/memory.h"
#include "base/text.h"
#include "output/headline.h"
#include "output/text/sections.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define TOP_OF_GROUP 10u

static bool is_wanted(const struct gm_model_place *place, const struct gm_output_filter *filter)
{
    return (filter->device == GM_FILTER_ANY ||
            (place->device == filter->device && !gm_kind_is_host(place->kind))) &&
           (filter->kind == GM_FILTER_ANY || place->kind == filter->kind);
}

/* ", on device 1, pinned memory": what the reader asked for. The caller frees it. */
static char *describe_filter(const struct gm_output_filter *filter)
{
    char *text = NULL;
    size_t size = 0;
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return NULL;
    if (filter->device != GM_FILTER_ANY)
        fprintf(out, ", on device %d", filter->device);
    if (filter->kind != GM_FILTER_ANY)
        fprintf(out, ", %s memory", gm_kind_name((unsigned)filter->kind));
    if (filter->scope.thread)
        fprintf(out, ", allocated by thread %s", filter->scope.thread);
    if (filter->scope.phase)
        fprintf(out, ", allocated in phase %s", filter->scope.phase);
    if (filter->min_size)
        fprintf(out, ", places of %s and more", SIZE(filter->min_size));
    fclose(out);
    gm_clean_text(text); /* names are the reader's own, but may be pasted from anywhere */
    return text;
}

static void print_title(const struct gm_view *view, const struct gm_when *when,
                        const struct gm_output_filter *filter)
{
    bool has_scope = gm_scope_is_set(&filter->scope);
    const char *const names[] = {
        [GM_WHEN_DEFAULT] = has_scope ? "when most of it was held" : "at the peak",
        [GM_WHEN_PEAK] = has_scope ? "when most of it was held" : "at the peak",
        [GM_WHEN_OOM] = "when memory last ran out",
        [GM_WHEN_END] = gm_when_left(view->run)};
    char time[48] = "";
    char *filtered = describe_filter(filter);
    if (when->kind == GM_WHEN_TIME)
        snprintf(time, sizeof(time), "%s after the start", TIME(when->time_ns));
    fputc('\n', view->page->out);
    gm_page_paragraph(view->page, GM_BOLD, 0, "Who held memory %s%s",
                      when->kind == GM_WHEN_TIME ? time : names[when->kind],
                      filtered ? filtered : "");
    free(filtered);
}

/* Samples of one group. `min_size` is of places: what stacks that read the same hold together. */
static void print_group(const struct gm_view *view, const char *name,
                        const struct gm_model_sample *samples, size_t count, uint64_t min_size)
{
    int64_t whole = 0, allocations = 0;
    for (size_t i = 0; i < count; i++) {
        whole += samples[i].bytes;
        allocations += samples[i].count;
    }
    gm_page_print(view->page, GM_BOLD, "%s", name);
    gm_page_print(view->page, GM_PLAIN, "  %s in %s allocation%s\n", BYTES(whole),
                  NUMBER(allocations), gm_plural((uint64_t)allocations));
    gm_samples_text(view, samples, count, whole, min_size, GM_VIEW_ROWS);
}

static void print_groups(const struct gm_view *view, const struct gm_model_sample *samples,
                         size_t count, uint64_t min_size)
{
    char name[GM_GROUP_TEXT], other[GM_GROUP_TEXT];
    for (size_t at = 0, end; at < count; at = end) {
        gm_place_group(&view->model->places[samples[at].place], name);
        for (end = at + 1; end < count; end++)
            if (strcmp(name, gm_place_group(&view->model->places[samples[end].place], other)) != 0)
                break;
        print_group(view, name, samples + at, end - at, min_size);
    }
}

#define NAMES_SHOWN 8u

/* Nothing was of that phase: which there are. */
static void print_phase_names(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    size_t shown = run->phase_count < NAMES_SHOWN ? run->phase_count : NAMES_SHOWN;
    if (!run->phase_count)
        gm_page_print(view->page, GM_PLAIN, "The program named no phase.\n");
    for (size_t i = 0; i < shown; i++) {
        const struct gm_model_phase *phase = &run->phases[run->phase_order[i]];
        char *name = gm_clean_copy(phase->is_interval ? phase->from : phase->name);
        gm_page_print(view->page, GM_PLAIN, "%s%s", i ? ", " : "There are phases: ", name);
        free(name);
    }
    if (shown)
        gm_page_print(view->page, GM_PLAIN, "%s\n", run->phase_count > shown ? " ..." : "");
}

/* Nothing was of that thread: which there are. */
static void print_threads(const struct gm_view *view)
{
    size_t count = 0;
    struct gm_scope_thread *threads = gm_model_threads(view->model, &count);
    for (size_t i = 0; i < count && i < NAMES_SHOWN; i++) {
        char *name = gm_clean_copy(threads[i].name);
        gm_page_print(view->page, GM_PLAIN, "%s%" PRIu64 "%s%s",
                      i ? ", " : "There are threads: ", threads[i].number, name[0] ? " " : "",
                      name);
        free(name);
    }
    if (count)
        gm_page_print(view->page, GM_PLAIN, "%s\n", count > NAMES_SHOWN ? " ..." : "");
    free(threads);
}

/* Of kinds that are in no peak: the most that lived of one at one time, bytes; -1 of the others. */
static int64_t most_of_kind(const struct gm_model_run *run, const struct gm_output_filter *filter)
{
    int64_t most = -1;
    if (filter->kind == GM_KIND_REGISTERED || filter->kind == GM_KIND_HOST_VMM)
        most = run->host[filter->kind].peak;
    for (size_t i = 0; filter->kind == GM_KIND_EXTERNAL && i < run->device_count; i++)
        if (run->devices[i].kinds[GM_KIND_EXTERNAL].peak > most)
            most = run->devices[i].kinds[GM_KIND_EXTERNAL].peak;
    return most;
}

static void print_nobody(const struct gm_view *view, const struct gm_when *when,
                         const struct gm_output_filter *filter)
{
    bool is_peak = when->kind == GM_WHEN_DEFAULT || when->kind == GM_WHEN_PEAK;
    int64_t most = is_peak ? most_of_kind(view->run, filter) : -1;
    if (most > 0)
        gm_page_paragraph(view->page, GM_PLAIN, 0,
                          "%s of it lived at most, at a moment of its own, which is not kept: --at "
                          "TIME and --at end show who held it.",
                          BYTES(most));
    else
        gm_page_print(view->page, GM_PLAIN, "Nobody held any.\n");
}

void gm_held_text(const struct gm_view *view, const struct gm_when *when,
                  const struct gm_output_filter *filter)
{
    struct gm_model_held held;
    size_t kept = 0;
    print_title(view, when, filter);
    bool found = gm_scope_is_set(&filter->scope)
                     ? gm_model_held_in_scope(view->model, when, &filter->scope, &held)
                     : gm_model_held_at(view->model, when, &held);
    if (!found) /* gm_text_unanswered was not asked, or the trace cannot be replayed */
        gm_page_print(view->page, GM_WARNING, "It is not on record.\n");
    for (size_t i = 0; i < held.count; i++)
        if (is_wanted(&view->model->places[held.samples[i].place], filter))
            held.samples[kept++] = held.samples[i];
    print_groups(view, held.samples, kept, filter->min_size);
    if (!kept && found)
        print_nobody(view, when, filter);
    if (!kept && filter->scope.phase)
        print_phase_names(view);
    if (!kept && filter->scope.thread)
        print_threads(view);
    gm_stacks_text(view, TOP_OF_GROUP);
    gm_model_held_free(&held);
}
