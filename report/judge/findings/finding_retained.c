/* Memory that a place takes again and again, and that lives on: a list of losses that keeps the
 * graphs of all steps, outputs collected on the device, a cache without a bound. rounds/rounds.h has
 * the rule of what grows; here it is told, once for each device and sort of memory. */
#include "base/memory.h"
#include "base/size.h"
#include "judge/analysis/growing.h"
#include "judge/findings/rules.h"
#include <limits.h>
#include <stdio.h>

#define SETUP_NS                                                                                   \
    1000000000u /* work goes on for so long, and for longer than before: it was setup */

#define LONGEST_NS 1e17 /* three years: what lies further away is not told */

/* What grows on one device, of one sort: told together. */
struct cause {
    const struct gm_round_growth *most;
    uint64_t bytes;  /* of all places, */
    uint64_t gain;   /* and how much of them grew */
    uint64_t places; /* that grow */
};

/* Memory that the program never gives back is told as a leak; but it is told if it made memory run out. */
bool gm_retained_is_leak(const struct gm_analysis *analysis, const struct gm_round_growth *growth)
{
    return !gm_rounds_is_of_refusal(growth) && growth->sort == GM_ROUND_OWN &&
           analysis->trace->ending == GM_ENDING_NORMAL &&
           analysis->activity.sites[growth->site].live >= growth->bytes / 2;
}

static bool is_told_elsewhere(const struct gm_analysis *analysis,
                              const struct gm_round_growth *growth)
{
    const struct gm_active_site *site = &analysis->activity.sites[growth->site];
    return gm_retained_is_leak(analysis, growth) ||
           gm_growing_tells(analysis, site->stack, site->kind, site->device, site->is_block);
}

static bool is_proved_once(const struct gm_round_growth *growth)
{
    unsigned rounds = growth->evidence & GM_ROUND_ROUNDS;
    return (rounds & (rounds - 1)) == 0;
}

/* All that this stream took was taken at once, and then the work began; unless rounds are proved twice,
 * because a short run that leaks is over before the interpreter has ended. */
static bool was_setup(const struct gm_analysis *analysis, const struct gm_round_growth *growth)
{
    const struct gm_clock_scale *clock = &analysis->trace->clock;
    uint64_t last = gm_clock_elapsed(clock, growth->last);
    uint64_t rest = analysis->duration > last ? analysis->duration - last : 0;
    return !growth->at_refusal && is_proved_once(growth) && !(growth->evidence & GM_ROUND_FREED) &&
           rest > SETUP_NS && rest > last;
}

/* A graph that is kept holds, besides what an operation made, all that it was made from. So of places
 * that hold about as much (ALIKE percent of the most), the one that began last is the cause. */
#define ALIKE 75u

static bool is_later_cause(const struct gm_round_growth *cause, const struct gm_round_growth *most,
                           const struct gm_round_growth *other)
{
    return other->weight == most->weight && other->bytes / ALIKE >= most->bytes / 100 &&
           other->begin > cause->begin;
}

static bool is_sure(const struct gm_round_growth *growth)
{
    return growth->weight >= GM_ROUND_WARNING;
}

static struct cause cause_of(const struct gm_analysis *analysis, size_t first)
{
    const struct gm_rounds *rounds = &analysis->activity.rounds;
    const struct gm_round_growth *most = &rounds->found[first];
    struct cause cause = {.most = most};
    for (size_t i = first; i < rounds->found_count; i++) {
        const struct gm_round_growth *growth = &rounds->found[i];
        if (growth->device != most->device || growth->sort != most->sort ||
            is_sure(growth) != is_sure(most) || is_told_elsewhere(analysis, growth))
            continue;
        if (is_later_cause(cause.most, most, growth))
            cause.most = growth;
        cause.bytes += growth->bytes;
        cause.gain += growth->gain;
        cause.places++;
    }
    return cause;
}

static unsigned percent_of(uint64_t part, uint64_t all)
{
    return all ? (unsigned)((unsigned __int128)part * 100 / all) : 0; /* GNU */
}

/* "in 40 of 40 rounds, by 1.50 MiB in each", or by allocation where rounds cannot be told. */
static void describe_pace(const struct gm_round_growth *growth, char *text, size_t size)
{
    if (growth->rounds && growth->parts == growth->rounds)
        snprintf(text, size, "in %u of %u rounds, by %s in each", growth->rose, growth->parts,
                 SIZE(growth->gain / growth->rounds));
    else if (growth->rounds)
        snprintf(text, size, "in %u of %u parts of about %s rounds, by %s in each round",
                 growth->rose, growth->parts, COUNT(growth->rounds),
                 SIZE(growth->gain / growth->rounds));
    else
        snprintf(text, size, "in %u of %u parts of %u%% of the run, by %s in all", growth->rose,
                 growth->parts, percent_of(growth->end - growth->begin, growth->ticks),
                 SIZE(growth->gain));
}

/* Whether what is freed here had lived for no longer than a round, or two that were cut. */
static bool is_freed_at_once(const struct gm_round_growth *growth)
{
    uint64_t window = growth->end - growth->begin;
    return growth->rounds && growth->oldest <= 2 * (window / growth->rounds) + window / 64;
}

/* " 40 of the 400 blocks made here are alive, ..." */
static void describe_alive(const struct gm_round_growth *growth, char *text, size_t size)
{
    if (growth->place == GM_NONE)
        snprintf(text, size, " Many lines keep a little each; this one keeps most.");
    else if (growth->alive >= growth->blocks)
        snprintf(text, size, " None of the %s blocks made here was ever freed.",
                 COUNT(growth->blocks));
    else
        snprintf(text, size, " %s of the %s blocks made here are alive%s.", COUNT(growth->alive),
                 COUNT(growth->blocks),
                 growth->evidence & GM_ROUND_REPLACED ? ", and each is longer than the one before"
                 : is_freed_at_once(growth) ? ", and nothing older than a round was ever freed"
                                            : "");
}

/* Why it is not certain that nothing bounds it, or why it is; the first that holds. */
static const struct {
    unsigned evidence;
    const char *text;
} reasons[] = {
    {GM_ROUND_STOPPED, "It stopped before the end, and stayed."},
    {GM_ROUND_OF_MODEL, "A model that is loaded, or in its first step, grows as well."},
    {GM_ROUND_GRAPHS, "CUDA graphs were made all the while: what they read and write stays."},
    {GM_ROUND_REFUSED, NULL},
    {GM_ROUND_FEW, "No call here was repeated often enough to tell whether it goes on."},
    {GM_ROUND_READ, "It was joined, or samples of it were: it may be collected on purpose."},
    {GM_ROUND_SLOWS, "Less and less was added, as to a cache that fills."},
    {GM_ROUND_REPLACED, "The state of one long request grows as well."},
    {GM_ROUND_FORGOTTEN, "What is freed here is freed soon, the rest never."},
    {GM_ROUND_RETURNED,
     "The program gave all of it back before its end, so that may be its bound."},
    {GM_ROUND_BACKWARD, "Backward passes ended all the while, and it outlived them."},
    {GM_ROUND_ROUNDS,
     "Rounds ended all the while; only a buffer that is not full yet looks the same."},
    {UINT_MAX,
     "Nothing tells whether it is kept for good: a buffer that is not full yet, a load, or "
     "one long pass looks the same."},
};

static const char *reason_of(const struct gm_round_growth *growth)
{
    unsigned evidence = growth->evidence & ~(is_sure(growth) ? GM_ROUND_REPLACED : 0u);
    size_t at = 0;
    while (!(evidence & reasons[at].evidence) && reasons[at].evidence != UINT_MAX)
        at++;
    return reasons[at].text;
}

const char *gm_kept_remedy(const struct gm_analysis *analysis, int device)
{
    return gm_blocks_are_of(&analysis->blocks.device[gm_device_slot(device)], GM_BLOCK_OF_XLA)
               ? "If these are results, keep them on the host (jax.device_get, or .numpy() in "
                 "TensorFlow); if they are a cache, bound it."
               : "If these are results, keep them on the host (.detach().cpu()); if they are a "
                 "cache, bound it.";
}

const char *gm_retained_remedy(const struct gm_analysis *analysis,
                               const struct gm_round_growth *growth)
{
    if (growth->category == GM_CATEGORY_OPTIMIZER)
        return "Drop the old optimizer, and what refers to it (schedulers), before making a new "
               "one.";
    if (growth->category == GM_CATEGORY_PARAMETER)
        return "Keep copies of weights on the host, and load what replaces others in their place.";
    if (growth->evidence & GM_ROUND_REPLACED)
        return "Bound its length, or allocate the longest once and write into it; drop it when its "
               "request or session ends.";
    if (growth->sort == GM_ROUND_BLOCKS && growth->category == GM_CATEGORY_ACTIVATION)
        return "Keep numbers (loss.item()) or copies without their graph (.detach().cpu()).";
    if (growth->sort == GM_ROUND_BLOCKS)
        return gm_kept_remedy(analysis, growth->device);
    return "Free what is no longer needed, or bound what keeps it.";
}

/* How long the growth took, in nanoseconds. */
static uint64_t duration_of(const struct gm_analysis *analysis,
                            const struct gm_round_growth *growth)
{
    const struct gm_clock_scale *clock = &analysis->trace->clock;
    uint64_t since = gm_clock_elapsed(clock, growth->since),
             until = gm_clock_elapsed(clock, growth->until);
    return until > since ? until - since : 0;
}

/* Whether it grew until the end, also by the clock: a program may do something else without allocating. */
static bool goes_on_in_time(const struct gm_analysis *analysis,
                            const struct gm_round_growth *growth)
{
    const struct gm_clock_scale *clock = &analysis->trace->clock;
    uint64_t last = gm_clock_elapsed(clock, growth->last),
             until = gm_clock_elapsed(clock, growth->until);
    return growth->goes_on && last <= until + duration_of(analysis, growth);
}

/* "another 12 rounds, in 3.10 s", at the pace of all places; "" where that cannot be told. */
static void describe_rest(const struct gm_analysis *analysis, const struct cause *cause,
                          uint64_t left, char *text, size_t size)
{
    const struct gm_round_growth *growth = cause->most;
    uint64_t duration = duration_of(analysis, growth);
    uint64_t pace = growth->rounds ? cause->gain / growth->rounds : 0;
    double nanoseconds = (double)left / (double)cause->gain * (double)duration;
    text[0] = '\0';
    if (!cause->gain || !duration || nanoseconds >= LONGEST_NS)
        return;
    if (pace && left < pace)
        return; /* it is full in this round */
    if (pace)
        snprintf(text, size, "another %s rounds, in %s", COUNT(left / pace),
                 TIME((uint64_t)nanoseconds));
    else
        snprintf(text, size, "another %s", TIME((uint64_t)nanoseconds));
}

/* When memory runs out at that pace, or would have; "" where that cannot be told. */
static void describe_end(const struct gm_analysis *analysis, const struct cause *cause, char *text,
                         size_t size)
{
    const struct gm_round_growth *growth = cause->most;
    uint64_t total = analysis->facts[gm_device_slot(growth->device)].total;
    char rest[96] = "";
    text[0] = '\0';
    if (goes_on_in_time(analysis, growth) && total > growth->peak)
        describe_rest(analysis, cause, total - growth->peak, rest, sizeof(rest));
    if (growth->at_refusal && rest[0])
        snprintf(text, size,
                 " Then a request was refused; at that pace the device's %s would have been full "
                 "after %s.",
                 SIZE(total), rest);
    else if (growth->at_refusal)
        snprintf(text, size, " Then a request was refused.");
    else if (rest[0])
        snprintf(text, size, " At that pace the device's %s are full after %s.", SIZE(total), rest);
}

static void add_evidence(const struct gm_analysis *analysis, struct gm_findings *findings,
                         const struct gm_round_growth *growth)
{
    const struct gm_clock_scale *clock = &analysis->trace->clock;
    gm_findings_evidence(findings,
                         "grew from %s to %s, allocations %s to %s of %s, %s of them here; least "
                         "held rose by %s; of "
                         "all %s allocations meanwhile %u%% were freed; all memory fell by up to "
                         "%s of %s; %s copies "
                         "repeated; rounds %s",
                         TIME(gm_clock_elapsed(clock, growth->since)),
                         TIME(gm_clock_elapsed(clock, growth->until)), COUNT(growth->begin),
                         COUNT(growth->end), COUNT(growth->ticks), COUNT(growth->blocks),
                         SIZE(growth->rise), COUNT(growth->end - growth->begin),
                         percent_of(growth->frees, growth->end - growth->begin), SIZE(growth->fall),
                         SIZE(growth->peak), COUNT(growth->copies), COUNT(growth->rounds));
}

/* Of the stacks that reach the same line on ways that do not grow, the one that has most of the program's frames
 * in common with what grows; 0: none. */
static uint32_t steady_stack(const struct gm_analysis *analysis,
                             const struct gm_round_growth *growth)
{
    const struct gm_rounds *rounds = &analysis->activity.rounds;
    uint32_t stack = analysis->activity.sites[growth->site].stack, nearest = 0;
    size_t most = 0;
    for (size_t i = 0; growth->differs && i < rounds->site_count; i++) {
        const struct gm_round_site *site = &rounds->sites[i];
        if (site->place != rounds->places[growth->line] || !site->way ||
            !gm_rounds_is_steady(site->way))
            continue;
        uint32_t other = analysis->activity.sites[i].stack;
        size_t common = gm_callers_common(analysis->callers, stack, other);
        if (common > most) {
            most = common;
            nearest = other;
        }
    }
    return nearest;
}

/* Whether the program went on after each refusal: nothing says then that it would not have come to its end. */
static bool all_survived(const struct gm_analysis *analysis)
{
    for (size_t i = 0; i < analysis->failure_count; i++)
        if (!analysis->failures[i].survived)
            return false;
    for (size_t i = 0; i < analysis->pool_failures.count; i++)
        if (!analysis->pool_failures.entries[i].survived)
            return false;
    return true;
}

static bool is_unbounded(const struct gm_analysis *analysis, const struct gm_round_growth *growth)
{
    return growth->weight == GM_ROUND_CERTAIN && !(growth->at_refusal && all_survived(analysis));
}

static void add_finding(const struct gm_analysis *analysis, struct gm_findings *findings,
                        const struct cause *cause)
{
    const struct gm_round_growth *growth = cause->most;
    const struct gm_active_site *site = &analysis->activity.sites[growth->site];
    bool is_warning = is_sure(growth) && !was_setup(analysis, growth);
    char others[96] = "", pace[128], alive[128], end[256];
    const char *reason = reason_of(growth);
    if (cause->places > 1)
        snprintf(others, sizeof(others), " (%s with %s more place%s)", SIZE(cause->bytes),
                 COUNT(cause->places - 1), gm_plural(cause->places - 1));
    describe_pace(growth, pace, sizeof(pace));
    describe_alive(growth, alive, sizeof(alive));
    describe_end(analysis, cause, end, sizeof(end));
    gm_findings_add(findings,
                    &(struct gm_finding){
                        .code = GM_FINDING_RETAINED,
                        .severity = is_warning ? GM_SEVERITY_WARNING : GM_SEVERITY_NOTE,
                        .is_unbounded = is_warning && is_unbounded(analysis, growth),
                        .device = growth->device,
                        .bytes = cause->bytes,
                        .bytes_per_round = growth->rounds ? cause->gain / growth->rounds : 0,
                        .stack = site->stack,
                        .unlike = steady_stack(analysis, growth),
                        .api = site->api,
                    },
                    "What is held from here grew %s, to %s%s.%s%s%s%s", pace, SIZE(growth->bytes),
                    others, alive, end, reason ? " " : "", reason ? reason : "");
    gm_findings_remedy(findings, "%s", gm_retained_remedy(analysis, growth));
    add_evidence(analysis, findings, growth);
}

/* Whether another finding, of which growth is a part, names this line already. */
static bool repeats(const struct gm_analysis *analysis, const struct gm_findings *findings,
                    const struct gm_round_growth *growth)
{
    uint32_t stack = analysis->activity.sites[growth->site].stack;
    uint64_t line = gm_callers_line(analysis->callers, stack);
    for (size_t i = 0; i < findings->count; i++)
        if ((findings->entries[i].code == GM_FINDING_DEVICE_IMBALANCE ||
             findings->entries[i].code == GM_FINDING_BATCH_SIZE_SEARCH) &&
            gm_callers_line(analysis->callers, findings->entries[i].stack) == line)
            return true;
    return false;
}

void gm_find_retained(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    const struct gm_rounds *rounds = &analysis->activity.rounds;
    uint8_t told[GM_DEVICES] = {0}; /* [ordinal + 1]: bit by sort */
    for (size_t i = 0; i < rounds->found_count; i++) {
        const struct gm_round_growth *growth = &rounds->found[i];
        uint8_t *bits = &told[growth->device + 1];
        if (*bits >> growth->sort & 1 || is_told_elsewhere(analysis, growth) ||
            repeats(analysis, findings, growth))
            continue;
        *bits |= (uint8_t)(1u << growth->sort);
        struct cause cause = cause_of(analysis, i);
        add_finding(analysis, findings, &cause);
    }
}
