/* See top.h. */
#include "tools/top/top.h"
#include "base/memory.h"
#include "base/order.h"
#include "replay/ledger/counters.h"
#include <stdlib.h>
#include <string.h>

#define KEPT_EVERY_NS UINT64_C(5000000000)

static void free_look(struct gm_top_look *look)
{
    gm_sites_free(&look->allocations);
    gm_sites_free(&look->blocks);
    *look = (struct gm_top_look){0};
}

static void free_answers(struct gm_top *top)
{
    for (size_t i = 0; i < top->place_count; i++)
        free(top->places[i].name);
    free(top->places);
    free(top->libraries);
    if (top->naming)
        gm_libraries_free(top->naming);
    top->naming = NULL;
    top->places = NULL;
    top->libraries = NULL;
    top->place_count = top->library_count = 0;
}

void gm_top_begin(struct gm_top *top, const struct gm_top_options *options)
{
    *top = (struct gm_top){.options = options, .shown = {.device = GM_TOP_ALL_DEVICES}};
}

void gm_top_end(struct gm_top *top)
{
    for (size_t i = 0; i < top->kept_count; i++)
        free_look(&top->kept[i]);
    free_look(&top->now);
    free_answers(top);
}

/* ---- looks ----------------------------------------------------------------------------------- */

/* The look before becomes one of the last minute, if the latest of those is old enough. */
static void keep_rows(struct gm_top *top)
{
    const struct gm_top_look *latest = top->kept_count ? &top->kept[top->kept_count - 1] : NULL;
    if (!top->looks || (latest && top->now.time_ns < latest->time_ns + KEPT_EVERY_NS)) {
        free_look(&top->now);
        return;
    }
    if (top->kept_count == GM_TOP_MINUTE) {
        free_look(&top->kept[0]);
        memmove(top->kept, top->kept + 1, sizeof(top->kept) - sizeof(top->kept[0]));
        top->kept_count--;
    }
    top->kept[top->kept_count++] = top->now;
    top->now = (struct gm_top_look){0};
}

static void note_curves(struct gm_top *top, const struct gm_follow *follow)
{
    if (top->curve_count == GM_TOP_CURVE) {
        for (unsigned device = 0; device < GM_TOP_DEVICES; device++)
            memmove(top->curves[device], top->curves[device] + 1,
                    sizeof(top->curves[0]) - sizeof(top->curves[0][0]));
        top->curve_count--;
    }
    for (unsigned device = 0; device < GM_TOP_DEVICES; device++)
        top->curves[device][top->curve_count] =
            follow->replay->ledger.counters.device[device + 1].live;
    top->curve_count++;
}

/* ---- places ---------------------------------------------------------------------------------- */

static uint64_t bytes_of(const struct gm_sites *sites, const struct gm_site *site)
{
    uint64_t key = gm_place_key(site->stack, site->api, site->kind, site->device, site->class);
    uint32_t number = gm_map_get(&sites->by_key, key);
    return number == GM_NONE ? 0 : sites->entries[number].bytes;
}

static bool is_shown(const struct gm_top *top, const struct gm_site *site)
{
    int device = top->shown.device;
    return device == GM_TOP_ALL_DEVICES || (site->device == device && !gm_kind_is_host(site->kind));
}

static void add_places(struct gm_top *top, const struct gm_sites *sites,
                       const struct gm_sites *before, bool is_block)
{
    for (size_t i = 0; i < sites->count; i++)
        if (sites->entries[i].count && is_shown(top, &sites->entries[i]))
            top->places[top->place_count++] = (struct gm_top_place){
                .site = sites->entries[i],
                .is_block = is_block,
                .grown = before ? (int64_t)(sites->entries[i].bytes -
                                            bytes_of(before, &sites->entries[i]))
                                : 0};
}

static int largest_rows_first(const void *left, const void *right, void *order_of)
{
    const struct gm_top_place *a = left, *b = right;
    enum gm_top_order order = *(const enum gm_top_order *)order_of;
    if (order == GM_TOP_BY_GROWTH && a->grown != b->grown)
        return a->grown > b->grown ? -1 : 1;
    if (order == GM_TOP_BY_COUNT && a->site.count != b->site.count)
        return a->site.count > b->site.count ? -1 : 1;
    if (a->site.bytes != b->site.bytes)
        return a->site.bytes > b->site.bytes ? -1 : 1;
    if (a->is_block != b->is_block)
        return a->is_block ? -1 : 1;
    return a->site.order < b->site.order ? -1 : a->site.order > b->site.order;
}

static char *site_name(struct gm_stacks *stacks, const struct gm_trace *trace,
                       const struct gm_site *site)
{
    const struct gm_stack *stack = gm_stacks_get(stacks, site->stack, site->api);
    const struct gm_frame *frame = gm_stack_telling_frame(stack);
    const char *api = gm_trace_api(trace, site->api);
    char *name = NULL;
    size_t size = 0;
    FILE *text = open_memstream(&name, &size);
    if (!text)
        return gm_copy_text("");
    if (frame && frame->file)
        fprintf(text, "%s  %s:%u", frame->function, frame->file, frame->line);
    else
        fputs(frame ? frame->function : api[0] ? api : "(no stack)", text);
    fclose(text);
    return name;
}

static void add_library(struct gm_top *top, const struct gm_library *library)
{
    size_t number = 0;
    while (number < top->library_count && strcmp(top->libraries[number].name, library->name) != 0)
        number++;
    if (number == top->library_count)
        top->libraries[top->library_count++] = (struct gm_library){.name = library->name};
    top->libraries[number].bytes += library->bytes;
    top->libraries[number].count += library->count;
}

GM_ORDER(most_bytes_first, struct gm_library, GM_DOWN(bytes) GM_BY_TEXT(name))

/* Of memory on devices: whose it is, in a pool or not. */
static void add_libraries(struct gm_top *top, const struct gm_follow *follow)
{
    const struct gm_sites *sites = &top->now.allocations;
    top->naming = gm_libraries_new(follow->trace);
    top->libraries = gm_allocate(sites->count + 1, sizeof(*top->libraries));
    for (size_t i = 0; i < sites->count; i++) {
        const struct gm_site *site = &sites->entries[i];
        if (!site->bytes || gm_kind_is_host(site->kind) || site->kind == GM_KIND_EXTERNAL ||
            !is_shown(top, site))
            continue;
        struct gm_library library = gm_libraries_of_site(top->naming, site);
        library.bytes = site->bytes;
        library.count = site->count;
        add_library(top, &library);
    }
    qsort(top->libraries, top->library_count, sizeof(*top->libraries), most_bytes_first);
}

static void name_places(struct gm_top *top, const struct gm_follow *follow)
{
    struct gm_stacks *stacks = gm_stacks_new(follow->trace, &top->options->stacks);
    for (size_t i = 0; i < top->place_count; i++)
        top->places[i].name = site_name(stacks, follow->trace, &top->places[i].site);
    gm_stacks_free(stacks);
}

void gm_top_note(struct gm_top *top, const struct gm_follow *follow, uint64_t time_ns)
{
    keep_rows(top);
    top->now.time_ns = time_ns;
    gm_follow_sites(follow, false, &top->now.allocations);
    gm_follow_sites(follow, true, &top->now.blocks);
    note_curves(top, follow);
    gm_top_choose(top, follow);
    top->looks++;
}

void gm_top_choose(struct gm_top *top, const struct gm_follow *follow)
{
    const struct gm_top_look *before = top->kept_count ? &top->kept[0] : NULL;
    size_t most = top->now.allocations.count + top->now.blocks.count;
    free_answers(top);
    top->since_ns = before ? top->now.time_ns - before->time_ns : 0;
    top->places = gm_allocate(most + 1, sizeof(*top->places));
    add_places(top, &top->now.allocations, before ? &before->allocations : NULL, false);
    add_places(top, &top->now.blocks, before ? &before->blocks : NULL, true);
    qsort_r(top->places, top->place_count, sizeof(*top->places), largest_rows_first,
            &top->shown.order);
    if (top->place_count > top->options->top)
        top->place_count = (size_t)top->options->top;
    name_places(top, follow);
    add_libraries(top, follow);
}

int gm_top_next_device(const struct gm_top *top, const struct gm_follow *follow)
{
    int slot = top->shown.device == GM_TOP_ALL_DEVICES ? 0 : top->shown.device + 2;
    for (; slot < GM_DEVICES; slot++)
        if (follow->replay->ledger.counters.device[slot].seen || follow->devices[slot].used)
            return slot - 1;
    return GM_TOP_ALL_DEVICES;
}
