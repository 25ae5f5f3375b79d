/* See sections.h. */
#include "base/text.h"
#include "output/text/sections.h"
#include <stdlib.h>
#include <string.h>

#define ROWS 10u
#define NAME_COLUMNS 29
#define NAME_BYTES 512 /* of a path as it is shown */

/* Puts a name in front of what is there, as far as there is room. `*start` moves. */
static void put_before(char *text, size_t *start, const char *name, const char *separator)
{
    char piece[160];
    int length = snprintf(piece, sizeof(piece), "%.120s%s", name, separator);
    if (length < 0 || (size_t)length > *start)
        return;
    *start -= (size_t)length;
    memcpy(text + *start, piece, (size_t)length);
}

static void put_name_before(char *text, size_t *start, const struct gm_model_phase *phase,
                            const char *separator)
{
    char *name = gm_clean_copy(phase->name);
    put_before(text, start, name[0] ? name : "(no name)", separator);
    free(name);
    if (phase->has_from) {
        char *owner = gm_clean_copy(phase->from);
        put_before(text, start, owner, ":");
        free(owner);
    }
}

/* "epoch > step": innermost last. */
static const char *range_name(const struct gm_model_run *run, const struct gm_model_phase *phase,
                              char text[NAME_BYTES])
{
    size_t start = NAME_BYTES - 1;
    text[start] = 0;
    put_name_before(text, &start, phase, "");
    while (phase->parent != GM_NONE) {
        phase = &run->phases[phase->parent];
        put_name_before(text, &start, phase, " > ");
    }
    return text + start;
}

static const char *interval_name(const struct gm_model_phase *phase, char text[NAME_BYTES])
{
    char *from = gm_clean_copy(phase->from);
    char *to = gm_clean_copy(phase->name);
    snprintf(text, NAME_BYTES, "%.200s .. %.200s", from[0] ? from : "(start)",
             to[0] ? to : "(end)");
    free(from);
    free(to);
    return text;
}

/* The end of a text that fits: a path is told by its inner end. */
static const char *tail_of(const char *text, size_t columns)
{
    size_t width = 0;
    for (const char *at = text; *at; at++)
        width += ((unsigned char)*at & 0xc0) != 0x80;
    while (width > columns) {
        text++;
        while (((unsigned char)*text & 0xc0) == 0x80)
            text++;
        width--;
    }
    return text;
}

static void print_phase_name(struct gm_page *page, const char *name)
{
    const char *tail = tail_of(name, NAME_COLUMNS);
    if (tail == name) {
        gm_page_cell(page, name, NAME_COLUMNS);
        return;
    }
    fputs("...", page->out);
    gm_page_cell(page, tail_of(name, NAME_COLUMNS - 3), NAME_COLUMNS - 3);
}

static const char *place_name(const struct gm_model_phase_memory *place, char text[GM_SIZE_TEXT])
{
    if (place->where == GM_PHASE_PINNED)
        snprintf(text, GM_SIZE_TEXT, "pinned");
    else if (place->device < 0)
        snprintf(text, GM_SIZE_TEXT, "%s ?", place->where == GM_PHASE_POOL ? "pool" : "device");
    else
        snprintf(text, GM_SIZE_TEXT, "%s %d", place->where == GM_PHASE_POOL ? "pool" : "device",
                 place->device);
    return text;
}

static const char *growth_text(int64_t growth, char text[GM_SIZE_TEXT])
{
    char size[GM_SIZE_TEXT];
    uint64_t bytes = growth < 0 ? 0 - (uint64_t)growth : (uint64_t)growth;
    snprintf(text, GM_SIZE_TEXT, "%s%.16s",
             growth < 0   ? "-"
             : growth > 0 ? "+"
                          : "",
             gm_size_format(bytes, size));
    return text;
}

static void print_phase(const struct gm_view *view, const struct gm_model_phase *phase)
{
    struct gm_page *page = view->page;
    char text[NAME_BYTES];
    fputs("  ", page->out);
    print_phase_name(page, phase->is_interval ? interval_name(phase, text)
                                              : range_name(view->run, phase, text));
    gm_page_print(page, GM_PLAIN, "%7s %9s  ", COUNT(phase->count), TIME(phase->time_ns));
    for (size_t i = 0; i < phase->memory_count; i++) {
        const struct gm_model_phase_memory *memory = &phase->memory[i];
        if (i)
            fprintf(page->out, "%*s", NAME_COLUMNS + 21, "");
        gm_page_print(page, GM_PLAIN, "%-9s", place_name(memory, (char[GM_SIZE_TEXT]){0}));
        gm_page_print(page, GM_BOLD, "%9s", SIZE(memory->sums.peak));
        gm_page_print(page, memory->sums.growth > 0 ? GM_WARNING : GM_PLAIN, "%11s\n",
                      growth_text(memory->sums.growth, (char[GM_SIZE_TEXT]){0}));
    }
    if (phase->memory_count == 0)
        gm_page_print(page, GM_DIM, "no memory\n");
}

void gm_phases_text(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    size_t top = gm_view_rows(view, ROWS);
    if (run->phase_count == 0)
        return;
    gm_page_heading(view->page, "Phases",
                    "between marks, and in ranges; memory of the whole process");
    gm_page_print(view->page, GM_DIM, "  %-*s%7s %9s  %-9s%9s%11s\n", NAME_COLUMNS, "", "times",
                  "time", "", "peak", "growth");
    for (size_t i = 0; i < run->phase_count && i < top; i++)
        print_phase(view, &run->phases[run->phase_order[i]]);
    if (run->phase_count > top)
        gm_page_print(view->page, GM_DIM, "  ... and %zu more\n", run->phase_count - top);
    if (run->phases_not_kept)
        gm_page_print(view->page, GM_DIM, "  %s times of phases with too many names are left out\n",
                      COUNT(run->phases_not_kept));
}
