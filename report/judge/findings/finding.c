/* See finding.h. */
#include "judge/findings/finding.h"
#include "base/memory.h"
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

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
