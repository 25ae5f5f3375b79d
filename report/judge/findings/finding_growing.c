/* Places that hold more and more from mark to mark: what was kept of one step is there in the next.
 *
 * One finding is one cause: blocks of a pool that grow on one device are one, since a graph that is
 * kept holds what many lines allocated; other memory is told by the line that takes it.
 */
#include "base/map.h"
#include "base/memory.h"
#include "base/size.h"
#include "judge/analysis/growing.h"
#include "judge/findings/rules.h"
#include "names/stacks/redact.h"
#include "names/stacks/stacks.h"
#include <stdio.h>
#include <stdlib.h>

/* Places that are told together. */
struct cause {
    const struct gm_growing *most;
    uint64_t before, after;
    uint64_t left; /* held in the end */
    uint64_t places;
};

#define RETURNED 10u /* the tenth part, at most, was not given back: as in rounds/judge.c */

static uint32_t caller_of(const struct gm_analysis *analysis, const struct gm_active_site *site)
{
    return gm_callers_get(analysis->callers, site->stack);
}

/* What tells one cause from another. */
static uint64_t growing_key(const struct gm_analysis *analysis, const struct gm_active_site *site)
{
    uint64_t where = (uint64_t)site->kind << 32 | (uint64_t)(uint8_t)site->device << 40;
    return where | (site->is_block ? (uint64_t)1 << 48 : caller_of(analysis, site));
}

/* Whether the program gave back itself what grew. Frameworks give back theirs as Python's scopes end. */
static bool was_returned(const struct cause *cause, const struct gm_active_site *site)
{
    return !site->is_block && cause->left <= cause->after / RETURNED;
}

static void add_finding(const struct gm_analysis *analysis, struct gm_findings *findings,
                        const struct cause *cause)
{
    const struct gm_active_site *site = gm_growing_site(analysis, cause->most);
    const struct gm_growth_series *series = cause->most->series;
    struct gm_text name = gm_shown_name(analysis->trace, series->name);
    bool is_returned = was_returned(cause, site);
    char others[64] = "", quoted[64] = "";
    char *clean = gm_clean_copy((struct gm_text){name.bytes, name.size < 40 ? name.size : 40});
    if (series->kind != GM_MOMENT_NONE)
        snprintf(quoted, sizeof(quoted), " \"%s\"", clean);
    free(clean);
    if (cause->places > 1)
        snprintf(others, sizeof(others), " (with %s more place%s)", COUNT(cause->places - 1),
                 gm_plural(cause->places - 1));
    gm_findings_add(
        findings,
        &(struct gm_finding){.code = GM_FINDING_GROWING,
                             .severity = is_returned ? GM_SEVERITY_NOTE : GM_SEVERITY_WARNING,
                             .device = site->device,
                             .bytes = cause->after - cause->before,
                             .stack = site->stack,
                             .api = site->api},
        "Live memory from here%s rose all through the last %s of %s %s%s, from %s to "
        "%s: what one step keeps, the next one keeps again.%s",
        others, COUNT(cause->most->over), COUNT(series->marks),
        series->kind == GM_MOMENT_RANGE ? "ranges" : "marks", quoted, SIZE(cause->before),
        SIZE(cause->after),
        is_returned ? " The program gave all of it back before its end, so that may be "
                      "its bound."
                    : "");
    gm_findings_remedy(findings, "%s",
                       site->is_block ? gm_kept_remedy(analysis, site->device)
                                      : "Free what is no longer needed, or bound what keeps it.");
    const uint64_t *parts = cause->most->bytes;
    gm_findings_evidence(findings,
                         "at the ends of the parts %s, %s, %s, %s, %s; all that grew gained %s",
                         SIZE(parts[0]), SIZE(parts[1]), SIZE(parts[2]), SIZE(parts[3]),
                         SIZE(parts[GM_GROWTH_PARTS]), SIZE(gm_growth_bytes(analysis)));
}

void gm_find_growing(const struct gm_analysis *analysis, struct gm_findings *findings)
{
    const struct gm_growth *growth = &analysis->activity.growth;
    struct cause *causes = gm_allocate(growth->found_count + 1, sizeof(*causes));
    struct gm_map by_key = {0};
    uint32_t count = 0;
    for (size_t i = 0; i < growth->found_count; i++) {
        const struct gm_growing *growing = &growth->found[i];
        if (!gm_growth_counts(analysis, growing))
            continue;
        uint64_t key = growing_key(analysis, gm_growing_site(analysis, growing));
        uint32_t at = gm_map_get(&by_key, key);
        if (at == GM_NONE) {
            at = count++;
            causes[at].most = growing; /* most growth comes first */
            gm_map_set(&by_key, key, at);
        }
        causes[at].before += growing->bytes[0];
        causes[at].after += growing->bytes[GM_GROWTH_PARTS];
        causes[at].left += gm_growing_site(analysis, growing)->live;
        causes[at].places++;
    }
    for (uint32_t i = 0; i < count; i++)
        add_finding(analysis, findings, &causes[i]);
    free(causes);
    gm_map_free(&by_key);
}
