/* See library_table.h. */
#include "judge/analysis/library_table.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

/* One line for one site; lines of one name are joined when all are there. */
static void add_library(struct gm_library_table *table, struct gm_libraries *libraries,
                        const struct gm_site *site, enum gm_library_moment moment)
{
    struct gm_library owner = gm_libraries_of_site(libraries, site);
    struct gm_library_line line = {.name = owner.name, .pool = owner.pool};
    line.at[moment].bytes = owner.bytes;
    line.at[moment].count = owner.count;
    GM_APPEND(table->lines, table->capacity, table->count, line);
    table->bytes[moment] += site->bytes;
}

static int by_library_name(const void *left, const void *right)
{
    const struct gm_library_line *a = left, *b = right;
    int names = strcmp(a->name, b->name);
    return names ? names : strcmp(a->pool ? a->pool : "", b->pool ? b->pool : "");
}

static int most_first_library(const void *left, const void *right)
{
    const struct gm_library_line *a = left, *b = right;
    for (unsigned moment = 0; moment < GM_LIBRARY_MOMENTS; moment++)
        if (a->at[moment].bytes != b->at[moment].bytes)
            return a->at[moment].bytes > b->at[moment].bytes ? -1 : 1;
    return by_library_name(left, right);
}

static void join_libraries(struct gm_library_table *table)
{
    size_t kept = 0;
    if (table->count == 0)
        return;
    qsort(table->lines, table->count, sizeof(*table->lines), by_library_name);
    for (size_t i = 1; i < table->count; i++) {
        struct gm_library_line *line = &table->lines[kept], *next = &table->lines[i];
        if (by_library_name(line, next) != 0) {
            table->lines[++kept] = *next;
            continue;
        }
        for (unsigned moment = 0; moment < GM_LIBRARY_MOMENTS; moment++) {
            line->at[moment].bytes += next->at[moment].bytes;
            line->at[moment].count += next->at[moment].count;
        }
    }
    table->count = kept + 1;
    qsort(table->lines, table->count, sizeof(*table->lines), most_first_library);
}

/* The latest failure of a device for lack of memory, NULL if there is none. */
static const struct gm_failure *last_failure(const struct gm_analysis *analysis, int device)
{
    for (size_t i = analysis->failure_count; i-- > 0;)
        if (analysis->failures[i].snapshot.step && analysis->failures[i].device == device)
            return &analysis->failures[i];
    return NULL;
}

struct gm_library_table gm_library_table_of(struct gm_libraries *libraries,
                                            const struct gm_analysis *analysis, int device)
{
    struct gm_library_table table = {0};
    const struct gm_snapshot *peak = gm_analysis_peak(analysis, device);
    const struct gm_failure *failure = last_failure(analysis, device);
    for (size_t i = 0; peak && i < peak->owners.count; i++)
        add_library(&table, libraries, &peak->owners.entries[i], GM_AT_PEAK);
    for (size_t i = 0; i < analysis->leaks.count; i++) {
        const struct gm_site *site = &analysis->leaks.entries[i];
        if (site->device == device && site->class != GM_LEAK_IMPLICIT &&
            site->kind != GM_KIND_EXTERNAL && !gm_kind_is_host(site->kind))
            add_library(&table, libraries, site, GM_AT_END);
    }
    for (size_t i = 0; failure && i < failure->snapshot.owners.count; i++)
        add_library(&table, libraries, &failure->snapshot.owners.entries[i], GM_AT_FAILURE);
    if (failure)
        table.failure_time = failure->time;
    join_libraries(&table);
    return table;
}

void gm_library_table_free(struct gm_library_table *table)
{
    free(table->lines);
}

size_t gm_library_shares(struct gm_libraries *libraries, const struct gm_sites *owners,
                         struct gm_library_share *shares, size_t most)
{
    struct gm_library_table table = {0};
    size_t count = 0;
    for (size_t i = 0; i < owners->count; i++)
        add_library(&table, libraries, &owners->entries[i], GM_AT_PEAK);
    join_libraries(&table);
    for (; count < table.count && count < most; count++)
        shares[count] = (struct gm_library_share){table.lines[count].name,
                                                  table.lines[count].at[GM_AT_PEAK].bytes};
    gm_library_table_free(&table);
    return count;
}
