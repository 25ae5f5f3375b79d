/* See print.h. */
#include "base/memory.h"
#include "output/amount.h"
#include "output/headline.h"
#include "output/page_stack.h"
#include "output/text/sections.h"
#include "tools/diff/print.h"
#include <stdlib.h>

#define NAME_COLUMNS 32u
#define PLACE_FROM 28u /* column of a place's frame */
#define STACKS_SHOWN 5u

struct printing {
    struct gm_page *page;
    const struct gm_diff *diff;
    size_t top;
    struct gm_page_sites sites; /* the numbers of places on the page */
};

/* ---- the head -------------------------------------------------------------------------------- */

static void print_process(struct gm_page *page, const struct gm_model_run *run)
{
    char start[GM_START_TEXT], ending[GM_ENDING_TEXT], name[GM_PROCESS_TEXT], process[256] = "";
    if (run->pid)
        snprintf(process, sizeof(process), "%s%s, ", gm_process_text(run, name),
                 gm_start_text(run, start));
    gm_page_paragraph(page, GM_DIM, 6, "%s%s, %s", process, TIME(run->duration_ns),
                      gm_ending_text(run, ending));
}

static void print_side(struct gm_page *page, const char *name, const struct gm_model *model)
{
    bool is_incomplete = false, is_overwritten = false;
    char *command = model->run_count ? gm_command_text(&model->runs[0]) : gm_copy_text("nothing");
    gm_page_print(page, GM_BOLD, "%-6s", name);
    gm_page_cut(page, command, gm_page_columns(page) - 6);
    fputc('\n', page->out);
    free(command);
    if (model->run_count == 1)
        print_process(page, &model->runs[0]);
    else
        gm_page_print(page, GM_DIM, "      %zu processes\n", model->run_count);
    for (size_t i = 0; i < model->run_count; i++) {
        is_incomplete |= !model->runs[i].complete;
        is_overwritten |= model->runs[i].is_overwritten;
    }
    if (is_incomplete)
        gm_page_paragraph(page, GM_BAD, 6,
                          "Incomplete (gpumem report says why): what is missing there shows as a "
                          "difference.");
    if (is_overwritten)
        gm_page_paragraph(page, GM_WARNING, 6,
                          "A flight recorder has overwritten the history before: peaks and totals "
                          "are of the rest.");
}

static bool is_simulated(const struct gm_model *model)
{
    for (size_t i = 0; i < model->run_count; i++)
        if (model->runs[i].simulated)
            return true;
    return false;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* "+12.0 MiB", "-3". */
static const char *change_of(const struct gm_diff_row *row, char text[GM_SIZE_TEXT + 2])
{
    int64_t change = row->after - row->before;
    text[0] = '+';
    gm_amount_format(change, text + (change >= 0),
                     row->is_bytes ? gm_size_format : gm_count_format);
    return text;
}

static const char *share_of(const struct gm_diff_row *row, char text[16])
{
    double share =
        row->before > 0 ? 100.0 * (double)(row->after - row->before) / (double)row->before : 0;
    text[0] = 0;
    if (row->before == 0)
        snprintf(text, 16, "came");
    else if (row->after == 0)
        snprintf(text, 16, "went");
    else if (share < 100000)
        snprintf(text, 16, "%+.1f%%", share);
    return text;
}

static void print_diff_row(struct gm_page *page, const struct gm_diff_row *row)
{
    char change[GM_SIZE_TEXT + 2], share[16];
    gm_page_print(page, GM_PLAIN, "  ");
    gm_page_cell(page, row->name, NAME_COLUMNS - 2);
    gm_page_print(page, GM_PLAIN, "%12s%12s",
                  row->is_bytes ? BYTES(row->before) : NUMBER(row->before),
                  row->is_bytes ? BYTES(row->after) : NUMBER(row->after));
    if (row->before == row->after)
        gm_page_print(page, GM_DIM, "%12s\n", "same");
    else
        gm_page_print(page, row->after > row->before ? GM_BAD : GM_GOOD, "%12s %8s\n",
                      change_of(row, change), share_of(row, share));
}

static void print_table(const struct printing *printing, enum gm_diff_tables number)
{
    static const char *const titles[] = {
        [GM_DIFF_TOTALS] = "Totals",
        [GM_DIFF_PROCESSES] = "By process, at its peak",
        [GM_DIFF_LIBRARIES] = "By library, at the peaks",
        [GM_DIFF_CATEGORIES] = "By category, in pools",
        [GM_DIFF_PHASES] = "By phase, its peak",
    };
    const struct gm_diff_table *table = &printing->diff->tables[number];
    size_t shown = number == GM_DIFF_TOTALS || table->count <= printing->top + 1 ? table->count
                                                                                 : printing->top;
    if (!table->count)
        return;
    fputc('\n', printing->page->out);
    gm_page_print(printing->page, GM_BOLD, "%-*s%12s%12s%12s\n", (int)NAME_COLUMNS, titles[number],
                  "base", "new", "change");
    for (size_t i = 0; i < shown; i++)
        print_diff_row(printing->page, &table->rows[i]);
    if (table->count > shown)
        gm_page_print(printing->page, GM_DIM, "  and %zu more\n", table->count - shown);
}

static void print_findings(const struct printing *printing)
{
    const struct gm_diff_table *table = &printing->diff->tables[GM_DIFF_FINDINGS];
    size_t room = gm_page_columns(printing->page) - 8;
    if (table->count)
        gm_page_heading(printing->page, "Findings", NULL);
    for (size_t i = 0; i < table->count; i++) {
        const struct gm_diff_row *row = &table->rows[i];
        const char *change = !row->before ? "new" : !row->after ? "gone" : "now";
        gm_page_print(printing->page, row->after > row->before ? GM_BAD : GM_GOOD, "  %-5s ",
                      change);
        gm_page_cut(printing->page, row->name, row->before && row->after ? room - 24 : room);
        if (row->before && row->after)
            gm_page_print(printing->page, GM_PLAIN, ", %s after %s", NUMBER(row->after),
                          NUMBER(row->before));
        fputc('\n', printing->page->out);
    }
}

/* ---- places ---------------------------------------------------------------------------------- */

static void print_diff_place(struct printing *printing, const struct gm_diff_places *places,
                             size_t at)
{
    const struct gm_diff_place *place = &places->entries[at];
    const struct gm_frame *user = gm_diff_user(printing->diff, places, at);
    struct gm_page *page = printing->page;
    const struct gm_stack *stack = gm_model_stack(printing->diff->difference, place->stack);
    const struct gm_frame *frame = gm_stack_telling_frame(stack);
    struct gm_diff_row row = {.before = place->bytes_before, place->bytes_after, true};
    char number[16], change[GM_SIZE_TEXT + 2];
    snprintf(number, sizeof(number), "[%u]",
             gm_site_number(&printing->sites, printing->diff->difference, place->stack));
    gm_page_print(page, GM_BOLD, "%-4s", number);
    gm_page_print(page, row.after > row.before ? GM_BAD : GM_GOOD, "%10s ",
                  change_of(&row, change));
    if (row.before && row.after)
        gm_page_print(page, GM_PLAIN, "to %8s  ", BYTES(row.after));
    else
        gm_page_print(page, GM_PLAIN, "%-13s", gm_diff_change(row.before, row.after));
    if (frame)
        gm_page_frame(page, frame, gm_page_columns(page) - PLACE_FROM);
    else
        fputs("(no stack was recorded)", page->out);
    fputc('\n', page->out);
    if (user) {
        gm_page_print(page, GM_DIM, "%*sby ", (int)PLACE_FROM, "");
        gm_page_frame(page, user, gm_page_columns(page) - PLACE_FROM - 3);
        fputc('\n', page->out);
    }
    if (row.before == row.after)
        gm_page_print(page, GM_DIM, "%*s%s allocations, before %s\n", (int)PLACE_FROM, "",
                      NUMBER(place->count_after), NUMBER(place->count_before));
}

static void print_section(struct printing *printing, enum gm_diff_sections section)
{
    static const char *const titles[][2] = {
        [GM_DIFF_AT_PEAK] = {"Who held the devices", "at their peaks"},
        [GM_DIFF_IN_POOLS] = {"Who held PyTorch's pools", "at their peaks"},
        [GM_DIFF_PINNED] = {"Who held pinned memory", "at its peak"},
        [GM_DIFF_LEAKED] = {"Leaked", "never freed"},
        [GM_DIFF_ALLOCATED] = {"Allocated", "over the whole run"},
    };
    const struct gm_diff_places *places = &printing->diff->places[section];
    size_t shown = places->count <= printing->top + 1 ? places->count : printing->top;
    int64_t rest = 0;
    if (!places->count)
        return;
    gm_page_heading(printing->page, titles[section][0], titles[section][1]);
    for (size_t i = 0; i < shown; i++)
        print_diff_place(printing, places, i);
    for (size_t i = shown; i < places->count; i++)
        rest += places->entries[i].bytes_after - places->entries[i].bytes_before;
    if (places->count > shown)
        gm_page_print(printing->page, GM_DIM, "    %s%s in %zu more places\n", rest < 0 ? "" : "+",
                      BYTES(rest), places->count - shown);
}

/* ---- all ------------------------------------------------------------------------------------- */

void gm_diff_text(struct gm_page *page, const struct gm_diff *diff, size_t top)
{
    struct printing printing = {.page = page, .diff = diff, .top = top};
    print_side(page, "base", diff->base);
    print_side(page, "new", diff->newer);
    if (is_simulated(diff->base) || is_simulated(diff->newer))
        gm_page_print(page, GM_WARNING, "SIMULATED: there was no GPU, all devices are simulated\n");
    if (!diff->differs)
        gm_page_print(page, GM_GOOD, "\nNo difference.\n");
    print_table(&printing, GM_DIFF_TOTALS);
    print_findings(&printing);
    for (unsigned section = 0; section < GM_DIFF_SECTIONS; section++)
        print_section(&printing, section);
    for (unsigned table = GM_DIFF_PROCESSES; table < GM_DIFF_FINDINGS; table++)
        print_table(&printing, table);
    struct gm_view view = {.page = page, .model = diff->difference, .sites = &printing.sites};
    gm_stacks_text(&view, page->all_frames ? SIZE_MAX : STACKS_SHOWN);
    free(printing.sites.stacks);
}
