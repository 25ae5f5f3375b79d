/* See verdict.h. */
#include "judge/verdict/verdict.h"
#include "judge/verdict/completeness.h"

bool gm_verdict_has_events(const struct gm_analysis *analysis)
{
    return analysis->replay.ledger.step != 0 || analysis->transfers.site_count != 0 ||
           analysis->blocks.records != 0 || analysis->replay.ledger.unknown_frees != 0;
}

static void add_living(struct gm_living *living, const struct gm_tally *tally)
{
    living->bytes += tally->live;
    living->count += tally->allocs - tally->frees - tally->implicit_frees;
}

struct gm_verdict gm_verdict_of(const struct gm_analysis *analysis)
{
    const struct gm_counters *counters = &analysis->replay.ledger.counters;
    struct gm_verdict verdict = {
        .leaked = {analysis->leaked[GM_LEAK], analysis->leaked_count[GM_LEAK]}};
    for (int device = 0; device < GM_DEVICES; device++)
        for (int kind = 0; kind < GM_KIND_EXTERNAL; kind++)
            add_living(&verdict.on_devices, &counters->device[device].kind[kind]);
    for (int kind = 0; kind < GM_KINDS; kind++)
        add_living(&verdict.on_host, &counters->host[kind]);
    if (!gm_verdict_has_events(analysis))
        verdict.state = GM_VERDICT_NOTHING;
    else if (analysis->trace->ending != GM_ENDING_NORMAL)
        verdict.state = GM_VERDICT_LIVE;
    else if (verdict.leaked.count)
        verdict.state = GM_VERDICT_LEAKS;
    else
        verdict.state =
            gm_analysis_is_complete(analysis) ? GM_VERDICT_NO_LEAKS : GM_VERDICT_NO_LEAKS_SEEN;
    return verdict;
}
