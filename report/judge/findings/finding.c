/* See finding.h. */
#include "judge/findings/finding.h"
#include "base/map.h"
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

static bool are_of_devices(const struct gm_finding *one, const struct gm_finding *other)
{
    return one->code == other->code && one->severity == other->severity &&
           one->severity != GM_SEVERITY_ERROR && one->stack && one->stack == other->stack &&
           one->api == other->api && one->device >= 0 && other->device >= 0 &&
           one->device != other->device;
}

static void free_texts(struct gm_finding *finding)
{
    free(finding->cause);
    free(finding->remedy);
    free(finding->evidence);
}

static char *print_text(const char *format, ...)
{
    va_list list;
    va_start(list, format);
    char *text = format_text(format, list);
    va_end(list);
    return text;
}

static void tell_devices(struct gm_finding *finding)
{
    char *alone = finding->cause;
    finding->cause = print_text("%s The same on %u other device%s.", alone, finding->other_devices,
                                finding->other_devices > 1 ? "s" : "");
    free(alone);
}

void gm_findings_join_devices(struct gm_findings *findings)
{
    struct gm_map by_stack = {0}; /* and code */
    size_t count = 0;
    for (size_t i = 0; i < findings->count; i++) {
        struct gm_finding *finding = &findings->entries[i];
        uint64_t key = (uint64_t)finding->code << 32 | finding->stack;
        uint32_t number = gm_map_get(&by_stack, key);
        if (number != GM_NONE && are_of_devices(&findings->entries[number], finding)) {
            findings->entries[number].other_devices++;
            findings->entries[number].is_unbounded |= finding->is_unbounded;
            free_texts(finding);
            continue;
        }
        gm_map_set(&by_stack, key, (uint32_t)count);
        findings->entries[count++] = *finding;
    }
    findings->count = count;
    gm_map_free(&by_stack);
    for (size_t i = 0; i < count; i++)
        if (findings->entries[i].other_devices)
            tell_devices(&findings->entries[i]);
}

void gm_findings_free(struct gm_findings *findings)
{
    for (size_t i = 0; i < findings->count; i++)
        free_texts(&findings->entries[i]);
    free(findings->entries);
    *findings = (struct gm_findings){0};
}
