/* See sections.h. */
#include "base/memory.h"
#include "output/headline.h"
#include "output/text/sections.h"
#include <stdlib.h>
#include <string.h>

#define MOMENT_NAME 96
#define INDENT 5u         /* of a stack, behind its number */
#define LINES_OF_STACK 3u /* on the page; -v and --site have all */

const char *gm_where_text(const struct gm_model_place *place, char text[GM_SIZE_TEXT])
{
    if (gm_kind_is_host(place->kind))
        return "the host";
    if (place->device < 0)
        return "an unknown device";
    snprintf(text, GM_SIZE_TEXT, "device %d", place->device);
    return text;
}

void gm_more_places_text(const struct gm_view *view, size_t count, size_t top)
{
    if (count > top)
        gm_page_print(view->page, GM_DIM, "  ... and %zu more place%s\n", count - top,
                      gm_plural(count - top));
}

unsigned gm_site_number(struct gm_page_sites *sites, const struct gm_model *model, uint32_t stack)
{
    if (stack == GM_NONE)
        return 0;
    uint32_t same = gm_model_same_stack(model, stack);
    for (size_t i = 0; i < sites->count; i++)
        if (sites->stacks[i] == same)
            return (unsigned)i + 1;
    GM_APPEND(sites->stacks, sites->capacity, sites->count, same);
    return (unsigned)sites->count;
}

/* The stack with its number in the place of the first blanks. */
static void print_stack(const struct gm_view *view, unsigned number, uint32_t stack, size_t lines)
{
    char *text = NULL;
    size_t size = 0;
    struct gm_page page = *view->page;
    page.out = open_memstream(&text, &size);
    if (!page.out)
        return;
    page.stack_lines = lines;
    gm_page_stack(&page, INDENT, gm_model_stack(view->model, stack));
    fclose(page.out);
    size_t blanks = strspn(text, " ");
    gm_page_print(view->page, GM_BOLD, "[%u]", number);
    fprintf(view->page->out, "%*s%s",
            number < 10    ? 2
            : number < 100 ? 1
                           : 0,
            "", text + (blanks < INDENT ? blanks : INDENT));
    free(text);
}

void gm_frame_text(const struct gm_view *view, uint32_t stack, const struct gm_frame *frame,
                   unsigned indent)
{
    char number[16] = "";
    if (view->sites && stack != GM_NONE)
        snprintf(number, sizeof(number), "[%u] ", gm_site_number(view->sites, view->model, stack));
    gm_page_print(view->page, GM_BOLD, "%*s%s", (int)indent, "", number);
    if (frame)
        gm_page_frame(view->page, frame,
                      gm_page_columns(view->page) - indent - (unsigned)strlen(number));
    else
        fputs("(no stack was recorded)", view->page->out);
    fputc('\n', view->page->out);
}

void gm_place_text(const struct gm_view *view, uint32_t stack, unsigned indent)
{
    const struct gm_stack *frames = gm_model_stack(view->model, stack);
    if (view->sites)
        gm_frame_text(view, stack, gm_stack_telling_frame(frames), indent);
    else
        gm_page_stack(view->page, indent, frames);
}

void gm_stacks_text(const struct gm_view *view, size_t most)
{
    const struct gm_page_sites *sites = view->sites;
    if (!sites->count)
        return;
    gm_page_heading(view->page, "Stacks", "innermost frame first");
    for (size_t i = 0; i < sites->count && i < most; i++)
        print_stack(view, (unsigned)i + 1, sites->stacks[i],
                    view->page->all_frames || view->verbose ? 0 : LINES_OF_STACK);
}

/* ---- one place ------------------------------------------------------------------------------- */

static const char *moment_name(const struct gm_model_run *run, const struct gm_model_moment *moment,
                               char text[MOMENT_NAME])
{
    static const char *const names[] = {
        [GM_MODEL_PEAK] = "at the peak of device %d",
        [GM_MODEL_PINNED_PEAK] = "at the peak of pinned memory",
        [GM_MODEL_FAILURE] = "when device %d refused",
        [GM_MODEL_END] = "",
        [GM_MODEL_POOL_PEAK] = "in blocks at the peak of device %d's pool",
        [GM_MODEL_POOL_LAST] = "in blocks after the last use of device %d's pool",
        [GM_MODEL_POOL_FAILURE] = "in blocks when device %d's pool gave up",
        [GM_MODEL_POOL_END] = "in blocks ",
    };
    const char *name = names[moment->kind], *at = strstr(name, "%d");
    size_t head = at ? (size_t)(at - name) : strlen(name);
    char device[16] = "";
    if (at)
        snprintf(device, sizeof(device), "%d", moment->device);
    bool is_last = moment->kind == GM_MODEL_END || moment->kind == GM_MODEL_POOL_END;
    snprintf(text, MOMENT_NAME, "%.*s%s%s%s", (int)head, name, device, at ? at + 2 : "",
             is_last ? gm_when_left(run) : "");
    return text;
}

static bool reads_as_site(const struct gm_view *view, uint32_t stack, uint32_t other)
{
    return other != GM_NONE && gm_model_same_stack(view->model, other) == stack;
}

static void print_moment(const struct gm_view *view, const struct gm_model_moment *moment,
                         uint32_t stack)
{
    int64_t bytes = 0, count = 0;
    char name[MOMENT_NAME];
    for (size_t i = 0; i < moment->sample_count; i++) {
        const struct gm_model_sample *sample = &moment->samples[i];
        bool is_here = reads_as_site(view, stack, view->model->places[sample->place].stack);
        bytes += is_here ? sample->bytes : 0;
        count += is_here ? sample->count : 0;
    }
    if (count)
        gm_page_print(view->page, GM_PLAIN, "  %10s  %9s x  %s, %s\n", BYTES(bytes), NUMBER(count),
                      moment_name(view->run, moment, name), TIME(moment->time_ns));
}

static void print_lifetimes(const struct gm_view *view, uint32_t stack)
{
    for (size_t i = 0; i < view->run->lifetime_count; i++) {
        const struct gm_model_lifetime *life = &view->run->lifetimes[i];
        const struct gm_model_place *place = &view->model->places[life->place];
        if (reads_as_site(view, stack, place->stack))
            gm_page_print(view->page, GM_PLAIN,
                          "  %10s  %9s x  by %s in all, %s of them short-lived\n",
                          BYTES(life->allocated), NUMBER(life->allocs),
                          place->api[0] ? place->api : "?", NUMBER(life->short_lived));
    }
}

static void print_transfers(const struct gm_view *view, uint32_t stack)
{
    for (size_t i = 0; i < view->run->transfer_count; i++) {
        const struct gm_model_transfer *transfer = &view->run->transfers[i];
        if (reads_as_site(view, stack, transfer->stack))
            gm_page_print(view->page, GM_PLAIN, "  %10s  %9s x  copied, %s\n",
                          BYTES(transfer->bytes), NUMBER(transfer->count),
                          gm_direction_name(transfer->direction));
    }
}

void gm_site_text(const struct gm_view *view, unsigned number, uint32_t stack)
{
    for (size_t i = 0; i < view->run->moment_count; i++)
        print_moment(view, &view->run->moments[i], stack);
    print_lifetimes(view, stack);
    print_transfers(view, stack);
    gm_page_print(view->page, GM_DIM, "  id %s\n", ID(gm_model_site_id(view->model, stack)));
    print_stack(view, number, stack, 0);
}
