/* See finding.h. */
#include "findings/finding.h"
#include "base/memory.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

const char *gm_finding_name(enum gm_finding_code code)
{
    static const char *const names[GM_FINDING_CODES] = {
        [GM_FINDING_OUT_OF_MEMORY] = "out-of-memory",
        [GM_FINDING_POOL_FRAGMENTATION] = "pool-fragmentation",
        [GM_FINDING_RETAINED] = "retained",
        [GM_FINDING_DEVICE_IMBALANCE] = "device-imbalance",
        [GM_FINDING_PINNED_GROWTH] = "pinned-growth",
        [GM_FINDING_PINNED_WASTE] = "pinned-waste",
        [GM_FINDING_CACHED] = "cached",
        [GM_FINDING_BATCH_SIZE_SEARCH] = "batch-size-search",
        [GM_FINDING_PAGEABLE_COPIES] = "pageable-copies",
        [GM_FINDING_GROWING] = "growing",
        [GM_FINDING_CHURN] = "churn",
        [GM_FINDING_SECOND_COPY] = "second-copy",
        [GM_FINDING_DENSE_GRADIENT] = "dense-gradient",
        [GM_FINDING_WORKER_CONTEXT] = "worker-context",
        [GM_FINDING_IPC_HANDLES] = "ipc-handles",
    };
    return names[code];
}

const char *gm_severity_name(enum gm_severity severity)
{
    static const char *const names[] = {
        [GM_SEVERITY_NOTE] = "note",
        [GM_SEVERITY_WARNING] = "warning",
        [GM_SEVERITY_ERROR] = "error",
    };
    return names[severity];
}

static char *format_text(const char *format, va_list list)
{
    va_list copy;
    va_copy(copy, list);
    size_t size = (size_t)vsnprintf(NULL, 0, format, copy) + 1;
    va_end(copy);
    char *text = gm_allocate(size, 1);
    vsnprintf(text, size, format, list);
    return text;
}

void gm_findings_add(struct gm_findings *findings, const struct gm_finding *finding,
                     const char *cause, ...)
{
    va_list list;
    GM_RESERVE(findings->entries, findings->capacity, findings->count + 1);
    struct gm_finding *added = &findings->entries[findings->count++];
    *added = *finding;
    va_start(list, cause);
    added->cause = format_text(cause, list);
    va_end(list);
    added->remedy = NULL;
    added->evidence = NULL;
}

void gm_findings_remedy(struct gm_findings *findings, const char *remedy, ...)
{
    va_list list;
    va_start(list, remedy);
    findings->entries[findings->count - 1].remedy = format_text(remedy, list);
    va_end(list);
}

void gm_findings_evidence(struct gm_findings *findings, const char *evidence, ...)
{
    va_list list;
    va_start(list, evidence);
    findings->entries[findings->count - 1].evidence = format_text(evidence, list);
    va_end(list);
}

void gm_findings_free(struct gm_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++) {
        free(findings->entries[i].cause);
        free(findings->entries[i].remedy);
        free(findings->entries[i].evidence);
    }
    free(findings->entries);
    *findings = (struct gm_findings){0};
}
