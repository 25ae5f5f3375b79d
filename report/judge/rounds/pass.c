/* See pass.h. docs/findings.md has the reasons for the thresholds. */
#include "judge/rounds/pass.h"

#define MOST 10u      /* of what is asked about, all but a tenth had not come yet when it began */
#define PASS_SHARE 4u /* a pass takes a quarter of all allocations at most */

static const struct gm_round_stream *find_stream(const struct gm_rounds *rounds, int device,
                                                 enum gm_round_sort sort)
{
    for (size_t i = 0; i < rounds->stream_count; i++)
        if (rounds->streams[i]->device == device && rounds->streams[i]->sort == sort)
            return rounds->streams[i];
    return NULL;
}

/* The last bucket in which the stream held `bytes` at most; the first one if it always held more. */
static size_t last_with(const struct gm_trail *trail, uint64_t bytes)
{
    size_t at = trail->count - 1;
    while (at > trail->first && trail->buckets[at].least > bytes)
        at--;
    return at;
}

/* Whether a stack has allocated more than once since a tick, by its mean distance. */
static bool has_repeated(const struct gm_rounds *rounds, const struct gm_round_stream *stream,
                         uint64_t since)
{
    for (size_t i = 0; i < rounds->site_count; i++) {
        const struct gm_round_site *site = &rounds->sites[i];
        uint64_t from = site->first > since ? site->first : since;
        uint64_t until = site->last < stream->refusal.clock ? site->last : stream->refusal.clock;
        if (site->stream == stream && site->births > 1 && until > from &&
            (site->last - site->first) / (site->births - 1) <= until - from)
            return true;
    }
    return false;
}

struct gm_round_pass gm_rounds_pass(const struct gm_rounds *rounds, int device,
                                    enum gm_round_sort sort, uint64_t live, uint64_t rest)
{
    const struct gm_round_stream *stream = find_stream(rounds, device, sort);
    struct gm_round_pass pass = {.came = GM_ROUND_UNTOLD};
    if (!stream || !rest || rest > live || stream->refusal.live != live ||
        !stream->refusal.trail.count)
        return pass;
    const struct gm_trail *trail = &stream->refusal.trail;
    size_t begin = last_with(trail, live - rest + rest / MOST);
    uint64_t clock = stream->refusal.clock, first = (uint64_t)begin << trail->shift;
    pass.came = clock - (first < clock ? first : clock) <= clock / PASS_SHARE ? GM_ROUND_LATELY
                                                                              : GM_ROUND_EARLIER;
    for (size_t i = trail->first; pass.came == GM_ROUND_LATELY && i < begin; i++)
        if (trail->buckets[i].most > pass.before)
            pass.before = trail->buckets[i].most;
    pass.repeats = pass.came == GM_ROUND_LATELY && has_repeated(rounds, stream, first);
    return pass;
}
