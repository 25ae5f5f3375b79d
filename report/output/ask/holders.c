/* See questions.h: who held memory, what was refused, what grows. */
#include "base/memory.h"
#include "base/order.h"
#include "output/ask/questions.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* ---- owners ---------------------------------------------------------------------------------- */

static const struct gm_frame *telling_frame(const struct gm_ask *ask, uint32_t stack)
{
    return gm_stack_telling_frame(gm_model_stack(ask->model, stack));
}

static bool is_same_group(const struct gm_model_place *one, const struct gm_model_place *other)
{
    char group[GM_GROUP_TEXT], other_group[GM_GROUP_TEXT];
    return strcmp(gm_place_group(one, group), gm_place_group(other, other_group)) == 0;
}

static bool is_same_text(const char *one, const char *other)
{
    return one == other || (one && other && strcmp(one, other) == 0);
}

static bool is_same_line(const struct gm_ask *ask, uint32_t one, uint32_t other)
{
    const struct gm_frame *first = telling_frame(ask, one), *second = telling_frame(ask, other);
    if (!first || !second)
        return first == second;
    return first->line == second->line && is_same_text(first->file, second->file) &&
           (first->line || is_same_text(first->function, second->function));
}

/* Whether both are one row. Leaks are told apart by their class, too. */
static bool is_same_owner(const struct gm_ask *ask, const struct gm_owner *owner,
                          const struct gm_model_place *place)
{
    if (!is_same_group(owner->place, place) || owner->place->leak_class != place->leak_class)
        return false;
    switch (ask->request->by) {
    case GM_ASK_BY_LINE:
        return is_same_line(ask, owner->stack, place->stack);
    case GM_ASK_BY_LIBRARY:
        return is_same_text(owner->place->library, place->library);
    case GM_ASK_BY_KIND:
        return owner->place->kind == place->kind;
    default:
        return gm_model_same_stack(ask->model, owner->stack) ==
               gm_model_same_stack(ask->model, place->stack);
    }
}

/* What a row is found by: equal for what is the same owner. */
static uint64_t owner_key(const struct gm_ask *ask, const struct gm_model_place *place)
{
    const struct gm_frame *frame;
    switch (ask->request->by) {
    case GM_ASK_BY_LINE:
        frame = telling_frame(ask, place->stack);
        return frame ? frame->line : 0;
    case GM_ASK_BY_LIBRARY:
    case GM_ASK_BY_KIND:
        return place->kind;
    default:
        return gm_model_same_stack(ask->model, place->stack);
    }
}

GM_ORDER(by_owner_bytes, struct gm_owner, GM_DOWN(place->is_block) GM_DOWN(bytes) GM_UP(stack))

/* The rows while they are added. */
struct rows {
    struct gm_map last; /* with a key */
    uint32_t *before;   /* [row]: the one before it with the same key; GM_NONE */
    size_t capacity;
};

static void add_owner(struct gm_ask *ask, struct rows *rows, const struct gm_model_sample *sample)
{
    const struct gm_model_place *place = &ask->model->places[sample->place];
    uint64_t key = owner_key(ask, place);
    uint32_t first = gm_map_get(&rows->last, key), at = first;
    while (at != GM_NONE && !is_same_owner(ask, &ask->owners[at], place))
        at = rows->before[at];
    if (at == GM_NONE) {
        at = (uint32_t)ask->owner_count++;
        GM_RESERVE(ask->owners, ask->owner_capacity, ask->owner_count);
        GM_RESERVE(rows->before, rows->capacity, ask->owner_count);
        ask->owners[at] = (struct gm_owner){.place = place, .stack = place->stack};
        rows->before[at] = first;
        gm_map_set(&rows->last, key, at);
    }
    ask->owners[at].bytes += sample->bytes;
    ask->owners[at].count += sample->count;
}

static bool is_asked_for(const struct gm_ask *ask, const struct gm_model_place *place)
{
    return ask->request->device < 0 ||
           (place->device == ask->request->device && !gm_kind_is_host(place->kind));
}

static void add_owners(struct gm_ask *ask, const struct gm_model_sample *samples, size_t count,
                       bool (*is_wanted)(const struct gm_ask *ask,
                                         const struct gm_model_place *place))
{
    struct rows rows = {0};
    for (size_t i = 0; i < count; i++)
        if (is_wanted(ask, &ask->model->places[samples[i].place]))
            add_owner(ask, &rows, &samples[i]);
    gm_map_free(&rows.last);
    free(rows.before);
    if (ask->owner_count)
        qsort(ask->owners, ask->owner_count, sizeof(*ask->owners), by_owner_bytes);
    ask->answer.row_count = ask->owner_count;
}

static void owner_members(struct gm_ask *ask, struct gm_json *json, const struct gm_owner *owner)
{
    char group[GM_GROUP_TEXT];
    enum gm_ask_by by = ask->request->by;
    gm_json_string(json, "memory", gm_place_group(owner->place, group));
    if (by == GM_ASK_BY_LIBRARY)
        gm_answer_text(&ask->answer, json, "library", owner->place->library, GM_ANSWER_PLACE_BYTES);
    else if (!owner->place->is_block)
        gm_json_string(json, "kind", gm_kind_name(owner->place->kind));
    gm_json_signed(json, "bytes", owner->bytes);
    gm_json_signed(json, "allocations", owner->count);
    if (by == GM_ASK_BY_SITE || by == GM_ASK_BY_LINE)
        gm_ask_where(ask, json, owner->stack,
                     by == GM_ASK_BY_SITE ? gm_model_place_frame(ask->model, owner->place) : NULL);
}

static void owner_row(struct gm_answer *answer, struct gm_json *json, size_t row)
{
    struct gm_ask *ask = gm_ask_of(answer);
    gm_json_open_object(json, NULL);
    owner_members(ask, json, &ask->owners[row]);
    gm_json_close_object(json);
}

/* The sums of all rows, each of its own capacity: blocks lie in the memory of a device. */
static void write_sums(struct gm_ask *ask, struct gm_json *json)
{
    char group[GM_GROUP_TEXT];
    gm_json_open_array(json, "sums");
    for (size_t i = 0; i < ask->owner_count; i++) {
        int64_t bytes = 0, count = 0;
        bool is_first = true;
        for (size_t k = 0; k < i && is_first; k++)
            is_first = !is_same_group(ask->owners[k].place, ask->owners[i].place);
        for (size_t k = i; k < ask->owner_count && is_first; k++)
            if (is_same_group(ask->owners[k].place, ask->owners[i].place)) {
                bytes += ask->owners[k].bytes;
                count += ask->owners[k].count;
            }
        if (!is_first)
            continue;
        gm_json_open_object(json, NULL);
        gm_json_string(json, "memory", gm_place_group(ask->owners[i].place, group));
        gm_json_signed(json, "bytes", bytes);
        gm_json_signed(json, "allocations", count);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

static const char *const moment_names[] = {[GM_WHEN_DEFAULT] = "peak",
                                           [GM_WHEN_PEAK] = "peak",
                                           [GM_WHEN_OOM] = "oom",
                                           [GM_WHEN_END] = "end",
                                           [GM_WHEN_TIME] = "time"};

static void owners_head(struct gm_answer *answer, struct gm_json *json)
{
    struct gm_ask *ask = gm_ask_of(answer);
    const struct gm_when *when = &ask->request->when;
    gm_json_string(json, "at", moment_names[when->kind]);
    if (when->kind == GM_WHEN_TIME)
        gm_json_number(json, "time_ns", when->time_ns);
    gm_json_string(json, "by", gm_ask_by_name(ask->request->by));
    write_sums(ask, json);
}

#define SITE_STEPS 2u

static void prepare_owners(struct gm_ask *ask)
{
    char *missing = gm_no_moment_text(ask->run, &ask->request->when);
    if (missing || !gm_model_held_at(ask->model, &ask->request->when, &ask->held)) {
        ask->error_code = "no-such-moment";
        ask->error =
            "the trace has no such moment: memory never ran out, or nothing was allocated, "
            "or the time is behind the end";
        free(missing);
        return;
    }
    add_owners(ask, ask->held.samples, ask->held.count, is_asked_for);
    ask->answer.write_row = owner_row;
    for (size_t i = 0; i < ask->owner_count && i < SITE_STEPS; i++)
        if (ask->request->by == GM_ASK_BY_SITE)
            gm_answer_step(&ask->answer, "all that is known of the place", "site %s",
                           ID(gm_model_site_id(ask->model, ask->owners[i].stack)));
}

void gm_ask_owners(struct gm_ask *ask)
{
    const struct gm_when *when = &ask->request->when;
    char at[32];
    ask->answer.write_head = owners_head;
    prepare_owners(ask);
    if (when->kind == GM_WHEN_TIME)
        snprintf(at, sizeof(at), "%" PRIu64 "ns", when->time_ns);
    else
        snprintf(at, sizeof(at), "%s", moment_names[when->kind]);
    if (ask->request->by != GM_ASK_BY_LINE)
        gm_answer_step(&ask->answer, "the same by line", "owners --at %s --by line", at);
    if (ask->request->by != GM_ASK_BY_LIBRARY)
        gm_answer_step(&ask->answer, "the same by library", "owners --at %s --by library", at);
}

/* ---- the peak -------------------------------------------------------------------------------- */

static void write_peak(struct gm_ask *ask, struct gm_json *json,
                       const struct gm_model_device *device)
{
    gm_json_open_object(json, NULL);
    gm_ask_device(json, device->id);
    if (device->total)
        gm_json_number(json, "total_bytes", device->total);
    gm_json_signed(json, "peak_bytes", device->all.peak);
    gm_json_number(json, "peak_time_ns", device->all.peak_time_ns);
    if (device->largest.bytes)
        gm_json_number(json, "not_tracked_bytes", device->largest.bytes);
    for (size_t i = 0; i < ask->run->pool_count; i++) {
        const struct gm_model_pool *pool = &ask->run->pools[i];
        if (pool->device != device->id)
            continue;
        gm_json_signed(json, "pool_allocated_peak_bytes", pool->peak);
        gm_json_signed(json, "pool_reserved_peak_bytes", pool->reserved_peak);
        break;
    }
    gm_json_close_object(json);
}

static void peak_head(struct gm_answer *answer, struct gm_json *json)
{
    struct gm_ask *ask = gm_ask_of(answer);
    unsigned shown = 0;
    gm_json_open_array(json, "devices");
    for (size_t i = 0; i < ask->run->device_count && shown < 8; i++) {
        const struct gm_model_device *device = &ask->run->devices[i];
        if (!device->is_listed || (ask->request->device >= 0 && device->id != ask->request->device))
            continue;
        write_peak(ask, json, device);
        shown++;
    }
    gm_json_close_array(json);
    owners_head(answer, json);
}

void gm_ask_peak(struct gm_ask *ask)
{
    ask->answer.write_head = peak_head;
    prepare_owners(ask);
    gm_answer_step(&ask->answer, "the same by line", "owners --at peak --by line");
    gm_answer_step(&ask->answer, "the same by library", "owners --at peak --by library");
    gm_answer_step(&ask->answer, "what was never freed", "leaks");
}

/* ---- leaks ----------------------------------------------------------------------------------- */

static bool is_left(const struct gm_ask *ask, const struct gm_model_place *place)
{
    return place->leak_class >= GM_LEAK && !place->is_block && is_asked_for(ask, place);
}

/* Leaks first, then what is none, each with most bytes first. */
static int by_class(const void *left, const void *right)
{
    const struct gm_owner *one = left, *other = right;
    int difference = (int)one->place->leak_class - (int)other->place->leak_class;
    return difference ? difference : by_owner_bytes(left, right);
}

static void leak_row(struct gm_answer *answer, struct gm_json *json, size_t row)
{
    struct gm_ask *ask = gm_ask_of(answer);
    const struct gm_owner *owner = &ask->owners[row];
    const char *class = gm_leak_class_name(owner->place->leak_class);
    gm_json_open_object(json, NULL);
    gm_json_string(json, "id",
                   ID(gm_model_fingerprint(ask->model, owner->stack, class,
                                           gm_kind_name(owner->place->kind))));
    gm_json_string(json, "class", class);
    owner_members(ask, json, owner);
    gm_json_close_object(json);
}

static void leaks_head(struct gm_answer *answer, struct gm_json *json)
{
    const struct gm_model_run *run = gm_ask_of(answer)->run;
    gm_json_open_object(json, "classes");
    for (unsigned class = GM_LEAK; class < GM_LEAK_CLASSES; class ++) {
        if (!run->leaked_count[class])
            continue;
        gm_json_open_object(json, gm_leak_class_name(class));
        gm_json_signed(json, "bytes", run->leaked[class]);
        gm_json_signed(json, "allocations", run->leaked_count[class]);
        gm_json_close_object(json);
    }
    gm_json_close_object(json);
}

void gm_ask_leaks(struct gm_ask *ask)
{
    const struct gm_model_moment *end = gm_model_moment(ask->run, ask->run->end);
    ask->answer.write_head = leaks_head;
    ask->answer.write_row = leak_row;
    if (end)
        add_owners(ask, end->samples, end->sample_count, is_left);
    if (ask->owner_count)
        qsort(ask->owners, ask->owner_count, sizeof(*ask->owners), by_class);
    for (size_t i = 0; i < ask->owner_count && i < SITE_STEPS; i++)
        gm_answer_step(&ask->answer, "all that is known of the place", "site %s",
                       ID(gm_model_site_id(ask->model, ask->owners[i].stack)));
    gm_answer_step(&ask->answer, "what grows from round to round", "growth");
}

/* ---- out of memory --------------------------------------------------------------------------- */

static void request_members(struct gm_json *json, uint64_t size, uint8_t purpose, int device)
{
    gm_ask_device(json, device);
    if (purpose)
        gm_json_string(json, "purpose", gm_purpose_text(purpose));
    else
        gm_json_number(json, "requested_bytes", size);
}

static void oom_head(struct gm_answer *answer, struct gm_json *json)
{
    struct gm_ask *ask = gm_ask_of(answer);
    const struct gm_refusal *refusal = &ask->refusal;
    const struct gm_model_moment *moment = gm_model_moment(ask->run, refusal->moment);
    gm_json_bool(json, "ran_out", refusal->is_there);
    if (!refusal->is_there)
        return;
    gm_json_open_object(json, "worst");
    request_members(json, refusal->size, refusal->purpose, refusal->device);
    GM_JSON_MEMBERS(json, refusal, survived, time_ns);
    if (refusal->free != UINT64_MAX)
        gm_json_number(json, "free_bytes", refusal->free);
    if (moment && moment->holes.count) {
        gm_json_number(json, "holes_bytes", moment->holes.free);
        gm_json_number(json, "largest_hole_bytes", moment->holes.largest);
    }
    if (refusal->place != GM_NONE)
        gm_ask_where(ask, json, ask->model->places[refusal->place].stack, NULL);
    gm_json_close_object(json);
}

/* The pool's first, then the driver's, each latest first. */
static void oom_row(struct gm_answer *answer, struct gm_json *json, size_t row)
{
    struct gm_ask *ask = gm_ask_of(answer);
    const struct gm_model_run *run = ask->run;
    uint32_t place;
    gm_json_open_object(json, NULL);
    if (row < run->pool_failure_count) {
        const struct gm_model_pool_failure *failure =
            &run->pool_failures[run->pool_failure_count - 1 - row];
        gm_json_string(json, "by", "pool");
        request_members(json, failure->size, 0, failure->device);
        GM_JSON_MEMBERS(json, failure, count, survived);
        place = failure->place;
    } else {
        const struct gm_model_failure *failure =
            &run->failures[run->failure_count - 1 - (row - run->pool_failure_count)];
        gm_json_string(json, "by", "driver");
        request_members(json, failure->size, failure->purpose, failure->device);
        GM_JSON_MEMBERS(json, failure, count, survived, out_of_memory);
        place = failure->place;
    }
    if (place != GM_NONE)
        gm_ask_where(ask, json, ask->model->places[place].stack, NULL);
    gm_json_close_object(json);
}

void gm_ask_oom(struct gm_ask *ask)
{
    ask->refusal = gm_refusal_of(ask->run);
    ask->answer.write_head = oom_head;
    ask->answer.write_row = oom_row;
    ask->answer.row_count = ask->run->pool_failure_count + ask->run->failure_count;
    gm_ask_step_findings(ask,
                         1u << GM_FINDING_OUT_OF_MEMORY | 1u << GM_FINDING_POOL_FRAGMENTATION |
                             1u << GM_FINDING_RETAINED,
                         2);
    if (ask->refusal.is_there)
        gm_answer_step(&ask->answer, "who held the memory then", "owners --at oom");
    if (ask->refusal.is_of_pool)
        gm_answer_step(&ask->answer, "settings of PyTorch's allocator that help", "whatif");
}

/* ---- growth ---------------------------------------------------------------------------------- */

#define GROWTH_SHOWN 4u /* findings */
#define GROWTH_CODES                                                                               \
    (1u << GM_FINDING_RETAINED | 1u << GM_FINDING_GROWING | 1u << GM_FINDING_PINNED_GROWTH |       \
     1u << GM_FINDING_IPC_HANDLES | 1u << GM_FINDING_GROWING_CODE)

static void growth_head(struct gm_answer *answer, struct gm_json *json)
{
    struct gm_ask *ask = gm_ask_of(answer);
    gm_json_number(json, "marks", ask->run->series_marks);
    gm_json_open_array(json, "findings");
    for (size_t i = 0, shown = 0; i < ask->run->finding_count; i++) {
        const struct gm_model_finding *finding = &ask->run->findings[i];
        if (!(GROWTH_CODES >> finding->code & 1) || shown++ >= GROWTH_SHOWN)
            continue;
        gm_json_open_object(json, NULL);
        gm_json_string(json, "id", ID(gm_model_finding_id(ask->model, ask->run, finding)));
        gm_json_string(json, "code", gm_finding_name(finding->code));
        GM_JSON_MEMBERS(json, finding, bytes, bytes_per_round, is_unbounded);
        gm_ask_where(ask, json, finding->stack, gm_model_finding_frame(ask->model, finding));
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

static void growth_row(struct gm_answer *answer, struct gm_json *json, size_t row)
{
    struct gm_ask *ask = gm_ask_of(answer);
    const struct gm_model_growing *growing = &ask->run->growing[row];
    char *name = gm_clean_copy(growing->name);
    gm_json_open_object(json, NULL);
    gm_answer_text(answer, json, "series", name, GM_ANSWER_PLACE_BYTES);
    gm_json_number(json, "marks", growing->marks);
    gm_json_number(json, "first_bytes", growing->bytes[0]);
    gm_json_number(json, "last_bytes", growing->bytes[GM_GROWTH_PARTS]);
    gm_ask_where(ask, json, ask->model->places[growing->place].stack, NULL);
    gm_json_close_object(json);
    free(name);
}

void gm_ask_growth(struct gm_ask *ask)
{
    ask->answer.write_head = growth_head;
    ask->answer.write_row = growth_row;
    ask->answer.row_count = ask->run->growing_count;
    gm_ask_step_findings(ask, GROWTH_CODES, 3);
    gm_answer_step(&ask->answer, "what was left at the end", "owners --at end");
}
