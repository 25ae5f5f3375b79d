/* See balance.h. */
#include "output/text/balance.h"
#include "base/memory.h"
#include "base/text.h"
#include "output/amount.h"
#include "output/page.h"
#include <stdlib.h>
#include <string.h>

void gm_balance_of(struct gm_balance_part *part, const struct gm_model *model,
                   const struct gm_model_run *run)
{
    const struct gm_model_moment *end = gm_model_moment(run, run->end);
    for (size_t i = 0; i < run->device_count; i++) {
        const struct gm_model_device *device = &run->devices[i];
        struct gm_balance_line line = {
            .device = device->id, .peak = device->all.peak, .live = device->all.live};
        if (!device->seen)
            continue;
        for (size_t at = 0; end && at < end->sample_count; at++) {
            const struct gm_model_place *place = &model->places[end->samples[at].place];
            if (place->leak_class == GM_LEAK && !gm_kind_is_host(place->kind) &&
                place->device == device->id)
                line.leaked += end->samples[at].bytes;
        }
        part->lines[part->count++] = line;
    }
}

void gm_balance_add(struct gm_balance *balance, const char *path,
                    const struct gm_balance_part *part)
{
    const char *name = gm_name_behind_slash(path);
    for (size_t i = 0; i < part->count; i++) {
        struct gm_balance_line line = part->lines[i];
        line.trace = gm_clean_copy((struct gm_text){name, strlen(name)});
        GM_APPEND(balance->lines, balance->capacity, balance->count, line);
    }
}

void gm_balance_text(FILE *out, const struct gm_balance *balance, bool colour)
{
    struct gm_page page = {.out = out, .colour = colour};
    int64_t live = 0, leaked = 0;
    gm_page_print(&page, GM_BOLD, "All traces\n");
    gm_page_print(&page, GM_DIM, "  %-36s %8s %10s %10s %10s\n", "", "device", "peak", "at the end",
                  "leaked");
    for (size_t i = 0; i < balance->count; i++) {
        const struct gm_balance_line *line = &balance->lines[i];
        fputs("  ", out);
        gm_page_cell(&page, line->trace, 36);
        fprintf(out, " %8d %10s %10s %10s\n", line->device, BYTES(line->peak), BYTES(line->live),
                BYTES(line->leaked));
        live += line->live;
        leaked += line->leaked;
    }
    gm_page_print(&page, GM_BOLD, "  %-36s %8s %10s %10s %10s\n", "sum", "",
                  "-", /* peaks are of different moments */
                  BYTES(live), BYTES(leaked));
}

void gm_balance_free(struct gm_balance *balance)
{
    for (size_t i = 0; i < balance->count; i++)
        free(balance->lines[i].trace);
    free(balance->lines);
}
