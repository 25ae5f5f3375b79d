/* See balance.h. */
#include "render/text/balance.h"
#include "base/memory.h"
#include "base/size.h"
#include "stacks/stacks.h"
#include <stdlib.h>
#include <string.h>

void gm_balance_of(struct gm_balance_part *part, const struct gm_analysis *analysis)
{
    for (int i = 0; i < GM_DEVICES; i++) {
        const struct gm_device_totals *totals = &analysis->replay.ledger.counters.device[i];
        struct gm_balance_line line = {.device = i - 1};
        if (!totals->seen)
            continue;
        line.peak = totals->peak.bytes;
        line.live = totals->live;
        for (size_t site = 0; site < analysis->leaks.count; site++) {
            const struct gm_site *leak = &analysis->leaks.entries[site];
            if (leak->class == GM_LEAK && !gm_kind_is_host(leak->kind) && leak->device == i - 1)
                line.leaked += leak->bytes;
        }
        part->lines[part->count++] = line;
    }
}

void gm_balance_add(struct gm_balance *balance, const char *path,
                    const struct gm_balance_part *part)
{
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    for (size_t i = 0; i < part->count; i++) {
        struct gm_balance_line line = part->lines[i];
        line.trace = gm_clean_copy((struct gm_text){name, strlen(name)});
        GM_RESERVE(balance->lines, balance->capacity, balance->count + 1);
        balance->lines[balance->count++] = line;
    }
}

void gm_balance_text(FILE *out, const struct gm_balance *balance,
                     const struct gm_text_options *options)
{
    struct gm_page page = {out, options->colour, false};
    uint64_t peak = 0, live = 0, leaked = 0;
    gm_page_print(&page, GM_BOLD, "All traces\n");
    gm_page_print(&page, GM_DIM, "  %-36s %8s %10s %10s %10s\n", "", "device", "peak", "at the end",
                  "leaked");
    for (size_t i = 0; i < balance->count; i++) {
        const struct gm_balance_line *line = &balance->lines[i];
        fputs("  ", out);
        gm_page_cell(&page, line->trace, 36);
        fprintf(out, " %8d %10s %10s %10s\n", line->device, SIZE(line->peak), SIZE(line->live),
                SIZE(line->leaked));
        peak += line->peak;
        live += line->live;
        leaked += line->leaked;
    }
    gm_page_print(&page, GM_BOLD, "  %-36s %8s %10s %10s %10s\n", "sum", "", SIZE(peak), SIZE(live),
                  SIZE(leaked));
}

void gm_balance_free(struct gm_balance *balance)
{
    for (size_t i = 0; i < balance->count; i++)
        free(balance->lines[i].trace);
    free(balance->lines);
}
