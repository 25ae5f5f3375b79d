/* See top.h. A page of 80 columns. */
#include "base/text.h"
#include "output/amount.h"
#include "replay/ledger/counters.h"
#include "tools/top/top.h"
#include <inttypes.h>
#include <stdlib.h>

enum { COLUMNS = 80, LIBRARIES = 6 };

static void write_head(FILE *out, const struct gm_follow *follow)
{
    const struct gm_trace_header *header = &follow->trace->header;
    char *name =
        gm_clean_copy(gm_base_name(gm_trace_field(header->executable, sizeof(header->executable))));
    static const char *const states[] = {[GM_ENDING_NORMAL] = "ended",
                                         [GM_ENDING_RUNNING] = "running",
                                         [GM_ENDING_CUT] = "cut",
                                         [GM_ENDING_FAILED] = "ended"};
    fprintf(out, "process %" PRIu32 " %.30s, %s, as of %s, %s events%s\n", header->pid, name,
            states[follow->trace->ending], TIME(follow->as_of_ns), COUNT(follow->events),
            header->flags & GM_HEADER_SIMULATED ? " SIMULATED" : "");
    free(name);
}

/* A column for each look, by how much of the most there was. */
static void write_curve(FILE *out, const struct gm_top *top, unsigned device)
{
    static const char steps[] = " .,-=+*%";
    uint64_t most = 0;
    for (size_t i = 0; i < top->curve_count; i++)
        if (top->curves[device][i] > most)
            most = top->curves[device][i];
    fputs("             |", out);
    for (size_t i = 0; i < top->curve_count; i++)
        putc(steps[(unsigned)((double)top->curves[device][i] / (double)(most ? most : 1) *
                              (sizeof(steps) - 2))],
             out);
    fprintf(out, "| 0 to %s\n", SIZE(most));
}

static void write_top_devices(FILE *out, const struct gm_top *top, const struct gm_follow *follow)
{
    const struct gm_counters *counters = &follow->replay->ledger.counters;
    for (int slot = 0; slot < GM_DEVICES; slot++) {
        const struct gm_device_totals *totals = &counters->device[slot];
        const struct gm_follow_device *device = &follow->devices[slot];
        const struct gm_block_totals *blocks = &follow->blocks->device[slot];
        bool is_wanted = top->shown.device == GM_TOP_ALL_DEVICES || top->shown.device == slot - 1;
        if ((!totals->seen && !device->used) || !is_wanted)
            continue;
        fprintf(out, "device %-4d  %10s live  %10s peak", slot - 1, SIZE(totals->live),
                SIZE(totals->peak.bytes));
        if (device->total)
            fprintf(out, "  of %s", SIZE(device->total));
        if (device->residual)
            fprintf(out, "  +%s untracked", SIZE(device->residual));
        putc('\n', out);
        if (blocks->allocs)
            fprintf(out, "  its pool   %10s in blocks  %10s peak  %10s reserved\n",
                    SIZE(blocks->live), SIZE(blocks->peak.bytes), SIZE(blocks->reserved));
        if (slot > 0 && slot <= (int)GM_TOP_DEVICES && top->curve_count > 1)
            write_curve(out, top, (unsigned)slot - 1);
    }
    const struct gm_tally *pinned = &counters->host[GM_KIND_PINNED];
    if (pinned->allocs && top->shown.device == GM_TOP_ALL_DEVICES)
        fprintf(out, "host pinned  %10s live  %10s peak\n", SIZE(pinned->live),
                SIZE(pinned->peak.bytes));
}

static void write_libraries(FILE *out, const struct gm_top *top)
{
    if (top->library_count)
        fputs("\nby library\n", out);
    for (size_t i = 0; i < top->library_count && i < LIBRARIES; i++)
        fprintf(out, "%10s  %8s  %.58s\n", SIZE(top->libraries[i].bytes),
                COUNT(top->libraries[i].count), top->libraries[i].name);
}

/* "+1.00 MiB", or nothing. */
static const char *grown_text(int64_t grown, char text[GM_SIZE_TEXT + 1])
{
    text[0] = 0;
    if (grown > 0) {
        text[0] = '+';
        gm_size_format((uint64_t)grown, text + 1);
    } else if (grown < 0) {
        text[0] = '-';
        gm_size_format(0 - (uint64_t)grown, text + 1);
    }
    return text;
}

/* As many characters of clean text as fit. */
static void write_cut(FILE *out, const char *text, size_t columns)
{
    const char *at = text;
    for (; *at && columns; columns--)
        for (at++; ((unsigned char)*at & 0xc0) == 0x80; at++)
            ;
    fwrite(text, 1, (size_t)(at - text), out);
    putc('\n', out);
}

static void write_top_places(FILE *out, const struct gm_top *top)
{
    static const char *const orders[GM_TOP_ORDERS] = {
        [GM_TOP_BY_BYTES] = "",
        [GM_TOP_BY_GROWTH] = ", most growth first",
        [GM_TOP_BY_COUNT] = ", highest count first",
    };
    if (top->place_count)
        fprintf(out, "\n%10s  %8s  %11s  place%s\n", "bytes", "count",
                top->since_ns ? "last minute" : "", orders[top->shown.order]);
    for (size_t i = 0; i < top->place_count; i++) {
        const struct gm_top_place *place = &top->places[i];
        char grown[GM_SIZE_TEXT + 1];
        fprintf(out, "%10s  %8s  %11s  ", SIZE(place->site.bytes), COUNT(place->site.count),
                grown_text(place->grown, grown));
        if (place->is_block)
            fputs("block ", out);
        write_cut(out, place->name, COLUMNS - 35 - (place->is_block ? 6 : 0));
    }
}

/* ---- keys ------------------------------------------------------------------------------------ */

static void write_keys(FILE *out, const struct gm_top_shown *shown)
{
    char device[32] = "";
    if (shown->device != GM_TOP_ALL_DEVICES)
        snprintf(device, sizeof(device), "; device %d alone", shown->device);
    fprintf(out, "%sq quit, s sort, d device, p %s, h help%s\n\n",
            shown->is_paused ? "PAUSED; " : "", shown->is_paused ? "go on" : "pause", device);
}

static void write_help(FILE *out)
{
    fputs("  q, Ctrl-C  quit\n"
          "  s          places by bytes, by growth in the last minute, by count\n"
          "  d          the next device alone; after the last all of them\n"
          "  p, space   pause: the page stays as it is; the process does not notice\n"
          "  h, ?       this help\n"
          "\n"
          "The curve of a device has a column for each look, the latest to the right; its\n"
          "scale stands behind it. \"last minute\": how much more a place holds than a minute\n"
          "ago, or than at the first look.\n",
          out);
}

void gm_top_text(FILE *out, const struct gm_top *top, const struct gm_follow *follow)
{
    if (top->options->clears)
        fputs("\033[H\033[J", out);
    else if (top->looks > 1)
        putc('\n', out);
    write_head(out, follow);
    if (top->shown.has_keys)
        write_keys(out, &top->shown);
    if (top->shown.is_help) {
        write_help(out);
        fflush(out);
        return;
    }
    write_top_devices(out, top, follow);
    write_libraries(out, top);
    write_top_places(out, top);
    fflush(out);
}
