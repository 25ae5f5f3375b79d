/* What a process costs beside others: a worker with a context of its own, and memory of another process
 * that stays open. */
#include "base/limit.h"
#include "base/map.h"
#include "base/size.h"
#include "judge/findings/rules.h"
#include "names/stacks/callers.h"
#include <stdio.h>
#include <string.h>

/* ---- worker-context -------------------------------------------------------------------------- */

#define CONTEXT (256 * GM_MIB) /* bytes that a context takes of a device, at least */

/* What a frame says of the process that its stack began in. */
enum {
    SAYS_NOTHING,
    IS_WORKER, /* one that Python's multiprocessing started for work */
    IS_LOADER, /* of a data loader of PyTorch: it prepares data, and nothing else */
    IS_RANK,   /* of torch.multiprocessing.spawn: ranks have a device each, as they should */
};

static uint32_t said_by(const struct gm_trace *trace, uint64_t number, struct gm_map *by_script)
{
    uint32_t said = gm_map_get(by_script, number);
    if (said != GM_NONE)
        return said;
    const struct gm_script_frame *frame = gm_trace_script_frame(trace, number);
    struct gm_text file = gm_trace_string(trace, frame ? frame->file : 0);
    said = gm_text_contains(file, "/torch/multiprocessing/spawn.py")      ? IS_RANK
           : gm_text_contains(file, "/torch/utils/data/_utils/worker.py") ? IS_LOADER
           : gm_text_contains(file, "/multiprocessing/process.py")        ? IS_WORKER
                                                                          : SAYS_NOTHING;
    gm_map_set(by_script, number, said);
    return said;
}

static uint32_t process_of(const struct gm_trace *trace, uint32_t stack, struct gm_map *by_script)
{
    uint32_t process = SAYS_NOTHING;
    for (uint32_t id = stack; id;) {
        const struct gm_node *node = gm_trace_node(trace, id);
        if (!node || node->kind > GM_NODE_SCRIPT || !gm_limits_spend(GM_STEPS_NODE))
            return SAYS_NOTHING;
        uint32_t said =
            node->kind == GM_NODE_SCRIPT ? said_by(trace, node->address, by_script) : SAYS_NOTHING;
        if (said > process)
            process = said;
        id = node->parent < id ? node->parent : 0;
    }
    return process;
}

#define OF(category) (1u << GM_CATEGORY_##category)

/* It has weights, or learns: its work is that of a model then, not the preparation of data. */
static const unsigned of_model = OF(PARAMETER) | OF(GRADIENT) | OF(OPTIMIZER) | OF(ACTIVATION);

/* Whether it had blocks of one of these categories: a mask. */
static bool has_blocks_of(const struct gm_analysis *analysis, unsigned categories)
{
    for (size_t i = 0; i < analysis->activity.count; i++) {
        const struct gm_active_site *site = &analysis->activity.sites[i];
        if (site->is_block &&
            categories & 1u << gm_categories_get(analysis->categories, site->stack))
            return true;
    }
    return false;
}

/* A worker that has no model, needs less than the context that it opened for that, and sends what it made back
 * through the host: the process that started it could do the same without another context. */
static bool only_prepares(const struct gm_analysis *analysis, int device, uint64_t peak)
{
    return analysis->blocks.device[device + 1].allocs && peak < CONTEXT &&
           analysis->transfers.total[GM_COPY_DEVICE_TO_HOST].count &&
           !has_blocks_of(analysis, of_model);
}

static void find_worker_context(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    const struct gm_active_site *first = NULL;
    uint32_t process = SAYS_NOTHING;
    struct gm_map by_script = {0};
    for (size_t i = 0; i < analysis->activity.count && !first; i++) {
        if (analysis->activity.sites[i].device < 0) /* the order is that of first allocations */
            continue;
        process = process_of(analysis->trace, analysis->activity.sites[i].stack, &by_script);
        if (process == IS_WORKER || process == IS_LOADER)
            first = &analysis->activity.sites[i];
    }
    gm_map_free(&by_script);
    if (!first || has_blocks_of(analysis, OF(KV_CACHE)))
        return; /* none uses a device, or it is a server's engine */
    const struct gm_device_facts *facts = &analysis->facts[first->device + 1];
    uint64_t peak = analysis->replay.ledger.counters.device[first->device + 1].peak.bytes;
    bool is_waste = process == IS_LOADER || only_prepares(analysis, first->device, peak);
    char driver[96] = "";
    if (facts->last.bytes)
        snprintf(driver, sizeof(driver), ", besides %s of the driver for its context",
                 SIZE(facts->last.bytes));
    gm_findings_add(
        findings,
        &(struct gm_finding){.code = GM_FINDING_WORKER_CONTEXT,
                             .severity = is_waste ? GM_SEVERITY_WARNING : GM_SEVERITY_NOTE,
                             .device = first->device,
                             .bytes = peak,
                             .stack = first->stack,
                             .api = first->api},
        "This process is a worker of %s and uses the device%s: its peak was %s%s. Each "
        "such worker has a context and a cache of its own.",
        process == IS_LOADER ? "a data loader" : "Python's multiprocessing",
        is_waste && process != IS_LOADER ? " without a model, for results that go back to the host"
                                         : "",
        SIZE(peak), driver);
    gm_findings_remedy(findings, is_waste
                                     ? "Leave tensors on the host in workers, and copy them to "
                                       "the device in the process that computes."
                                     : "If workers only prepare data, leave tensors on the host "
                                       "there, and copy them in the main process.");
}

/* ---- ipc-handles ----------------------------------------------------------------------------- */

#define OPEN_AT_LEAST 8u /* handles of one place that are open at the end, */
#define OPEN_SHARE 2u    /* and half of all that it ever opened */

static void find_ipc_handles(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    for (size_t i = 0; i < analysis->activity.count; i++) {
        const struct gm_active_site *site = &analysis->activity.sites[i];
        if (site->kind != GM_KIND_EXTERNAL || site->live_count < OPEN_AT_LEAST ||
            site->live_count < site->allocs / OPEN_SHARE ||
            !strstr(gm_trace_api(analysis->trace, site->api), "IpcOpenMemHandle"))
            continue;
        gm_findings_add(findings,
                        &(struct gm_finding){.code = GM_FINDING_IPC_HANDLES,
                                             .severity = GM_SEVERITY_NOTE,
                                             .device = site->device,
                                             .bytes = site->live,
                                             .stack = site->stack,
                                             .api = site->api},
                        "%s of the %s IPC handles opened here are open %s. The process that "
                        "exported the memory cannot give it back to the device meanwhile.",
                        COUNT(site->live_count), COUNT(site->allocs),
                        analysis->trace->as_of_ns ? "now" : "at the end");
        gm_findings_remedy(findings, "Close each with cudaIpcCloseMemHandle after its last use.");
    }
}

void gm_find_process_costs(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    find_worker_context(analysis, findings);
    find_ipc_handles(analysis, findings);
}
