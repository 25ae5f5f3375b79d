/* See subtract.h. */
#include "tools/diff/subtract.h"
#include "base/assert.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/text.h"
#include "model/copy.h"
#include "tools/diff/match.h"
#include <stdlib.h>
#include <string.h>

/* One of the two models. */
struct side {
    const struct gm_model *model;
    struct gm_copier copier;
    uint32_t *places; /* [number] -> place of the difference; GM_NONE: not matched yet */
    unsigned number;
    int sign;
};

struct difference {
    struct gm_model *model;
    struct gm_model *transfers; /* what transfers are matched by, as places */
    struct gm_match match;
    uint32_t *shown; /* [key of a stack] -> stack of the difference; GM_NONE: not met yet */
    size_t shown_capacity;
    struct side sides[2]; /* the newer one first: its lines are shown */
};

/* ---- matching -------------------------------------------------------------------------------- */

static uint32_t match_stack(struct difference *difference, struct side *side, uint32_t number)
{
    uint32_t key = gm_match_stack(&difference->match, side->number, number);
    size_t before = difference->shown_capacity;
    GM_RESERVE(difference->shown, difference->shown_capacity, (size_t)key + 1);
    for (size_t i = before; i < difference->shown_capacity; i++)
        difference->shown[i] = GM_NONE;
    if (difference->shown[key] == GM_NONE)
        difference->shown[key] = gm_copy_stack(&side->copier, number);
    return difference->shown[key];
}

static uint32_t match_place(struct difference *difference, struct side *side, uint32_t number)
{
    uint32_t *known = &side->places[number];
    if (*known == GM_NONE) {
        struct gm_model_place place = side->model->places[number];
        place.stack = match_stack(difference, side, place.stack);
        place.unlike = GM_NONE;
        *known = gm_model_add_place(difference->model, &place);
    }
    return *known;
}

/* ---- sums by place --------------------------------------------------------------------------- */

static int64_t absolute_value(int64_t value)
{
    return value < 0 ? -value : value;
}

/* A place in a moment of both runs. */
struct sums {
    struct gm_model_sample change;
    struct gm_model_sample before;
};

/* Of struct sums, whose first member this is; what is the same in bytes and count comes last. */
GM_ORDER(most_changed_first, struct gm_model_sample,
         GM_UP_OF(absolute_value(b->bytes), absolute_value(a->bytes))
             GM_UP_OF(a->count == 0, b->count == 0) GM_UP(place))

/* Both moments by place, most change first; either can be NULL. The caller frees. */
static struct sums *sum_samples(struct difference *difference,
                                const struct gm_model_moment *const moments[2], size_t *count)
{
    size_t most = 0, used = 0;
    struct gm_map by_place = {0};
    for (size_t i = 0; i < 2; i++)
        most += moments[i] ? moments[i]->sample_count : 0;
    struct sums *sums = gm_allocate(most + 1, sizeof(*sums));
    for (size_t i = 0; i < 2; i++) {
        struct side *side = &difference->sides[i];
        for (size_t s = 0; moments[i] && s < moments[i]->sample_count; s++) {
            const struct gm_model_sample *sample = &moments[i]->samples[s];
            uint32_t place = match_place(difference, side, sample->place);
            uint32_t at = gm_map_get(&by_place, place);
            if (at == GM_NONE) {
                gm_map_set(&by_place, place, at = (uint32_t)used++);
                sums[at].change.place = sums[at].before.place = place;
            }
            sums[at].change.bytes += side->sign * sample->bytes;
            sums[at].change.count += side->sign * sample->count;
            sums[at].before.bytes += side->sign < 0 ? sample->bytes : 0;
            sums[at].before.count += side->sign < 0 ? sample->count : 0;
        }
    }
    gm_map_free(&by_place);
    *count = used;
    qsort(sums, used, sizeof(*sums), most_changed_first);
    return sums;
}

/* Fills in the samples of a moment: those of `moments`, of which either can be NULL. */
static void subtract_samples(struct difference *difference, struct gm_model_moment *to,
                             const struct gm_model_moment *const moments[2])
{
    size_t count;
    struct sums *sums = sum_samples(difference, moments, &count);
    to->samples = GM_MODEL_ARRAY(difference->model, struct gm_model_sample, count);
    to->before = GM_MODEL_ARRAY(difference->model, struct gm_model_sample, count);
    for (size_t i = 0; i < count; i++) {
        to->samples[i] = sums[i].change;
        to->before[i] = sums[i].before;
        to->bytes += sums[i].change.bytes;
        to->sample_count += sums[i].change.bytes || sums[i].change.count;
    }
    to->unchanged = count - to->sample_count;
    free(sums);
}

/* ---- moments --------------------------------------------------------------------------------- */

/* The moment of a kind that a run has once for each device, or once. */
static const struct gm_model_moment *find_moment(const struct gm_model_run *run,
                                                 enum gm_model_moment_kind kind, int device)
{
    for (size_t i = 0; run && i < run->moment_count; i++)
        if (run->moments[i].kind == kind && run->moments[i].device == device)
            return &run->moments[i];
    return NULL;
}

/* Adds the difference of a moment; GM_NONE where neither run has it. */
static uint32_t subtract_moment(struct difference *difference, struct gm_model_run *to,
                                const struct gm_model_run *const runs[2],
                                enum gm_model_moment_kind kind, int device)
{
    const struct gm_model_moment *const moments[2] = {find_moment(runs[0], kind, device),
                                                      find_moment(runs[1], kind, device)};
    const struct gm_model_moment *one = moments[0] ? moments[0] : moments[1];
    if (!one)
        return GM_NONE;
    struct gm_model_moment *moment = &to->moments[to->moment_count];
    *moment = (struct gm_model_moment){.kind = kind, .device = device, .time_ns = one->time_ns};
    subtract_samples(difference, moment, moments);
    return (uint32_t)to->moment_count++;
}

/* ---- totals ---------------------------------------------------------------------------------- */

static void add_tally(struct gm_model_tally *to, const struct gm_model_tally *from, int sign)
{
    to->live += sign * from->live;
    to->peak += sign * from->peak;
    to->allocs += sign * from->allocs;
    to->frees += sign * from->frees;
    to->implicit_frees += sign * from->implicit_frees;
    if (sign > 0)
        to->peak_time_ns = from->peak_time_ns;
}

static struct gm_model_device *same_device(struct gm_model_run *run, int id)
{
    size_t at = 0;
    while (at < run->device_count && run->devices[at].id != id)
        at++;
    if (at == run->device_count)
        run->devices[run->device_count++] =
            (struct gm_model_device){.id = id, .peak = GM_NONE, .name = {"", 0}};
    return &run->devices[at];
}

GM_ORDER(by_id, struct gm_model_device, GM_UP(id))

static void add_difference_device(struct difference *difference, struct gm_model_device *to,
                                  const struct gm_model_device *from, int sign)
{
    to->is_listed |= from->is_listed;
    to->seen |= from->seen;
    if (!to->name.size && from->name.size)
        to->name = gm_arena_text(&difference->model->tables->arena, from->name);
    if (!to->total)
        to->total = from->total;
    add_tally(&to->all, &from->all, sign);
    for (unsigned kind = 0; kind <= GM_KIND_EXTERNAL; kind++)
        add_tally(&to->kinds[kind], &from->kinds[kind], sign);
}

static void add_totals(struct difference *difference, struct gm_model_run *to,
                       const struct gm_model_run *from, int sign)
{
    int64_t *const totals[][2] = {
        {&to->failed, (int64_t[]){from->failed}},
        {&to->rejected, (int64_t[]){from->rejected}},
        {&to->refused_by_runtime, (int64_t[]){from->refused_by_runtime}},
        {&to->unknown_frees, (int64_t[]){from->unknown_frees}},
        {&to->lost_frees, (int64_t[]){from->lost_frees}},
        {&to->malformed, (int64_t[]){from->malformed}},
        {&to->not_understood, (int64_t[]){from->not_understood}},
        {&to->reserved_addresses_peak, (int64_t[]){from->reserved_addresses_peak}},
        {&to->graph_launches, (int64_t[]){from->graph_launches}},
        {&to->marks, (int64_t[]){from->marks}},
    };
    for (size_t i = 0; i < sizeof(totals) / sizeof(totals[0]); i++)
        *totals[i][0] += sign * *totals[i][1];
    for (size_t i = 0; i < from->device_count; i++)
        add_difference_device(difference, same_device(to, from->devices[i].id), &from->devices[i],
                              sign);
    for (unsigned kind = 0; kind < GM_KINDS; kind++)
        add_tally(&to->host[kind], &from->host[kind], sign);
    for (unsigned i = 0; i < GM_LEAK_CLASSES; i++) {
        to->leaked[i] += sign * from->leaked[i];
        to->leaked_count[i] += sign * from->leaked_count[i];
    }
}

/* ---- pools ----------------------------------------------------------------------------------- */

static void add_pool(struct gm_model_pool *to, const struct gm_model_pool *from, int sign)
{
    to->allocs += sign * from->allocs;
    to->frees += sign * from->frees;
    to->live += sign * from->live;
    to->peak += sign * from->peak;
    to->reserved += sign * from->reserved;
    to->reserved_peak += sign * from->reserved_peak;
    to->requested_peak += sign * from->requested_peak;
    to->is_requested_known |= from->is_requested_known;
    to->out_of_memory += sign * from->out_of_memory;
    if (sign > 0) {
        to->peak_time_ns = from->peak_time_ns;
        to->reserved_peak_time_ns = from->reserved_peak_time_ns;
    }
}

static struct gm_model_pool *same_pool(struct gm_model_run *run, int device)
{
    size_t at = 0;
    while (at < run->pool_count && run->pools[at].device != device)
        at++;
    if (at == run->pool_count)
        run->pools[run->pool_count++] = (struct gm_model_pool){.device = device};
    return &run->pools[at];
}

static void subtract_pools(struct difference *difference, struct gm_model_run *to,
                           const struct gm_model_run *const runs[2])
{
    for (size_t i = 0; i < 2; i++)
        for (size_t at = 0; runs[i] && at < runs[i]->pool_count; at++) {
            const struct gm_model_pool *pool = &runs[i]->pools[at];
            add_pool(same_pool(to, pool->device), pool, difference->sides[i].sign);
        }
    for (size_t i = 0; i < to->pool_count; i++) {
        struct gm_model_pool *pool = &to->pools[i];
        pool->at_peak = subtract_moment(difference, to, runs, GM_MODEL_POOL_PEAK, pool->device);
        pool->last = subtract_moment(difference, to, runs, GM_MODEL_POOL_LAST, pool->device);
        pool->at_end = subtract_moment(difference, to, runs, GM_MODEL_POOL_END, pool->device);
    }
}

/* ---- lifetimes, transfers -------------------------------------------------------------------- */

static bool is_lifetime_zero(const struct gm_model_lifetime *lifetime)
{
    return !lifetime->allocs && !lifetime->allocated && !lifetime->short_lived &&
           !lifetime->short_bytes && !lifetime->live_count && !lifetime->live && !lifetime->peak;
}

GM_ORDER(most_allocated_first, struct gm_model_lifetime,
         GM_UP_OF(absolute_value(b->allocated), absolute_value(a->allocated)) GM_UP(place))

static void subtract_lifetimes(struct difference *difference, struct gm_model_run *to,
                               const struct gm_model_run *const runs[2])
{
    struct gm_map by_place = {0};
    uint32_t count = 0;
    for (size_t i = 0; i < 2; i++)
        for (size_t at = 0; runs[i] && at < runs[i]->lifetime_count; at++) {
            const struct gm_model_lifetime *from = &runs[i]->lifetimes[at];
            int sign = difference->sides[i].sign;
            uint32_t place = match_place(difference, &difference->sides[i], from->place);
            uint32_t number = gm_map_get(&by_place, place);
            if (number == GM_NONE) {
                gm_map_set(&by_place, place, number = count++);
                to->lifetimes[number].place = place;
            }
            struct gm_model_lifetime *sum = &to->lifetimes[number];
            sum->allocs += sign * from->allocs;
            sum->allocs_before += sign < 0 ? from->allocs : 0;
            sum->allocated_before += sign < 0 ? from->allocated : 0;
            sum->allocated += sign * from->allocated;
            sum->short_lived += sign * from->short_lived;
            sum->short_bytes += sign * from->short_bytes;
            sum->live_count += sign * from->live_count;
            sum->live += sign * from->live;
            sum->peak += sign * from->peak;
        }
    for (uint32_t i = 0; i < count; i++)
        if (!is_lifetime_zero(&to->lifetimes[i])) {
            struct gm_model_lifetime same = to->lifetimes[to->lifetime_count];
            to->lifetimes[to->lifetime_count++] = to->lifetimes[i];
            to->lifetimes[i] = same;
        }
    to->lifetimes_unchanged = count - to->lifetime_count;
    if (to->lifetime_count)
        qsort(to->lifetimes, to->lifetime_count, sizeof(*to->lifetimes), most_allocated_first);
    gm_map_free(&by_place);
}

static void add_transfer(struct gm_model_transfer *to, const struct gm_model_transfer *from,
                         int sign)
{
    to->bytes += sign * from->bytes;
    to->count += sign * from->count;
    to->call_ns += sign * from->call_ns;
    to->tiny += sign * from->tiny;
    to->pageable_bytes += sign * from->pageable_bytes;
    to->pageable_count += sign * from->pageable_count;
    to->unknown += sign * from->unknown;
}

/* Of a difference: the time that calls took differs from run to run. */
static bool is_transfer_zero(const struct gm_model_transfer *transfer)
{
    return !transfer->bytes && !transfer->count && !transfer->tiny && !transfer->pageable_bytes &&
           !transfer->pageable_count;
}

GM_ORDER(most_copied_first, struct gm_model_transfer,
         GM_UP_OF(absolute_value(b->bytes), absolute_value(a->bytes)) GM_UP(direction) GM_UP(stack))

static size_t keep_transfers(struct gm_model_transfer *transfers, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++)
        if (!is_transfer_zero(&transfers[i]))
            transfers[kept++] = transfers[i];
    return kept;
}

/* The transfers of a place: a place of its own in terms of the difference. */
static uint32_t match_transfer(struct difference *difference, struct side *side,
                               const struct gm_model_transfer *transfer)
{
    struct gm_model_place place = {.stack = match_stack(difference, side, transfer->stack),
                                   .api = transfer->api,
                                   .library = "",
                                   .device = -1,
                                   .kind = (uint8_t)transfer->direction,
                                   .leak_class = UINT8_MAX,
                                   .unlike = GM_NONE};
    return gm_model_add_place(difference->transfers, &place);
}

static void subtract_transfers(struct difference *difference, struct gm_model_run *to,
                               const struct gm_model_run *const runs[2])
{
    struct gm_map by_place = {0};
    uint32_t count = 0;
    for (unsigned i = 0; i < GM_DIRECTIONS; i++)
        to->directions[i] = (struct gm_model_transfer){.stack = GM_NONE, .direction = i};
    for (size_t i = 0; i < 2; i++) {
        struct side *side = &difference->sides[i];
        for (size_t at = 0; runs[i] && at < runs[i]->direction_count; at++) {
            const struct gm_model_transfer *from = &runs[i]->directions[at];
            add_transfer(&to->directions[from->direction], from, side->sign);
        }
        for (size_t at = 0; runs[i] && at < runs[i]->transfer_count; at++) {
            const struct gm_model_transfer *from = &runs[i]->transfers[at];
            uint32_t place = match_transfer(difference, side, from);
            uint32_t number = gm_map_get(&by_place, place);
            if (number == GM_NONE) {
                gm_map_set(&by_place, place, number = count++);
                to->transfers[number] = (struct gm_model_transfer){
                    .stack = match_stack(difference, side, from->stack),
                    .api = gm_arena_string(&difference->model->tables->arena, from->api),
                    .direction = from->direction};
            }
            add_transfer(&to->transfers[number], from, side->sign);
        }
    }
    to->direction_count = keep_transfers(to->directions, GM_DIRECTIONS);
    to->transfer_count = keep_transfers(to->transfers, count);
    if (to->transfer_count)
        qsort(to->transfers, to->transfer_count, sizeof(*to->transfers), most_copied_first);
    gm_map_free(&by_place);
}

/* ---- runs ------------------------------------------------------------------------------------ */

static size_t sum_of_member(const struct gm_model_run *const runs[2], size_t member)
{
    size_t sum = 0;
    for (size_t i = 0; i < 2; i++)
        if (runs[i])
            sum += *(const size_t *)((const char *)runs[i] + member);
    return sum;
}
#define SUM_OF(runs, member) sum_of_member((runs), offsetof(struct gm_model_run, member))

static void add_living(struct gm_model_verdict *to, const struct gm_model_verdict *from, int sign)
{
    const struct gm_model_living *const living[] = {&from->on_devices, &from->on_host,
                                                    &from->leaked};
    struct gm_model_living *const sums[] = {&to->on_devices, &to->on_host, &to->leaked};
    for (size_t i = 0; i < sizeof(sums) / sizeof(sums[0]); i++) {
        sums[i]->bytes += sign * living[i]->bytes;
        sums[i]->count += sign * living[i]->count;
    }
}

/* Of one run there can be none; the difference is shown as one of the other. */
static void subtract_run(struct difference *difference, const struct gm_model_run *newer,
                         const struct gm_model_run *older)
{
    const struct gm_model_run *const runs[2] = {newer, older};
    struct gm_model *model = difference->model;
    struct gm_model_run *to = gm_model_add_run(model);
    gm_copy_facts(&difference->sides[newer ? 0 : 1].copier, to, newer ? newer : older);
    to->base_path = gm_arena_string(&model->tables->arena, older ? older->path : "");
    to->path = gm_arena_string(&model->tables->arena, newer ? newer->path : "");
    to->complete = (!newer || newer->complete) && (!older || older->complete);
    to->verdict.on_devices = to->verdict.on_host = to->verdict.leaked =
        (struct gm_model_living){0, 0};
    to->has_blocks = (newer && newer->has_blocks) || (older && older->has_blocks);
    to->moments = GM_MODEL_ARRAY(model, struct gm_model_moment, SUM_OF(runs, moment_count));
    to->devices = GM_MODEL_ARRAY(model, struct gm_model_device, SUM_OF(runs, device_count));
    to->pools = GM_MODEL_ARRAY(model, struct gm_model_pool, SUM_OF(runs, pool_count));
    to->lifetimes = GM_MODEL_ARRAY(model, struct gm_model_lifetime, SUM_OF(runs, lifetime_count));
    to->directions = GM_MODEL_ARRAY(model, struct gm_model_transfer, GM_DIRECTIONS);
    to->transfers = GM_MODEL_ARRAY(model, struct gm_model_transfer, SUM_OF(runs, transfer_count));
    for (size_t i = 0; i < 2; i++) {
        if (!runs[i])
            continue;
        add_totals(difference, to, runs[i], difference->sides[i].sign);
        add_living(&to->verdict, &runs[i]->verdict, difference->sides[i].sign);
    }
    if (to->device_count)
        qsort(to->devices, to->device_count, sizeof(*to->devices), by_id);
    to->end = subtract_moment(difference, to, runs, GM_MODEL_END, -1);
    to->pinned_peak = subtract_moment(difference, to, runs, GM_MODEL_PINNED_PEAK, -1);
    for (size_t i = 0; i < to->device_count; i++)
        to->devices[i].peak =
            subtract_moment(difference, to, runs, GM_MODEL_PEAK, to->devices[i].id);
    subtract_pools(difference, to, runs);
    subtract_lifetimes(difference, to, runs);
    subtract_transfers(difference, to, runs);
}

/* How alike two processes are, of the same rank or both without one; -1: not at all. */
static int likeness(const struct gm_model_run *a, const struct gm_model_run *b)
{
    if (a->rank.rank != b->rank.rank)
        return -1;
    struct gm_text program = gm_base_name(a->executable), other = gm_base_name(b->executable);
    bool is_same = program.size == other.size &&
                   (!other.size || memcmp(program.bytes, other.bytes, other.size) == 0);
    /* A helper that used no memory is no counterpart of a worker, if there is another. */
    return 2 * is_same + ((a->device_count != 0) == (b->device_count != 0));
}

/* The run of the base that a run is compared with: of the same rank; of several, of the same program,
 * the first that has no counterpart yet. */
static const struct gm_model_run *counterpart(const struct gm_model *base, bool *is_taken,
                                              const struct gm_model_run *run)
{
    size_t best = base->run_count;
    int most = -1;
    for (size_t i = 0; i < base->run_count; i++)
        if (!is_taken[i] && likeness(run, &base->runs[i]) > most) {
            most = likeness(run, &base->runs[i]);
            best = i;
        }
    if (best == base->run_count)
        return NULL;
    is_taken[best] = true;
    return &base->runs[best];
}

static void begin_side(struct difference *difference, unsigned number, const struct gm_model *model,
                       int sign)
{
    struct side *side = &difference->sides[number];
    *side = (struct side){.model = model,
                          .copier = gm_copier_begin(difference->model, model),
                          .places = gm_allocate(model->place_count + 1, sizeof(uint32_t)),
                          .number = number,
                          .sign = sign};
    for (size_t i = 0; i < model->place_count; i++)
        side->places[i] = GM_NONE;
}

struct gm_model *gm_model_subtract(const struct gm_model *model, const struct gm_model *base,
                                   enum gm_match_level level)
{
    struct difference difference = {.model = gm_model_new(), .transfers = gm_model_new()};
    bool *is_taken = gm_allocate(base->run_count + 1, sizeof(*is_taken));
    difference.model->is_difference = true;
    gm_match_begin(&difference.match, model, base, level);
    begin_side(&difference, 0, model, 1);
    begin_side(&difference, 1, base, -1);
    bool is_pair = model->run_count == 1 && base->run_count == 1;
    for (size_t i = 0; i < model->run_count; i++)
        subtract_run(&difference, &model->runs[i],
                     is_pair ? &base->runs[0] : counterpart(base, is_taken, &model->runs[i]));
    for (size_t i = 0; i < base->run_count && !is_pair; i++)
        if (!is_taken[i])
            subtract_run(&difference, NULL, &base->runs[i]);
    for (size_t i = 0; i < 2; i++) {
        gm_copier_end(&difference.sides[i].copier);
        free(difference.sides[i].places);
    }
    gm_match_end(&difference.match);
    free(difference.shown);
    free(is_taken);
    gm_model_free(difference.transfers);
    GM_ASSERT(gm_model_is_valid(difference.model));
    return difference.model;
}
