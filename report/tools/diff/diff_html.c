/* See print.h. */
#include "output/amount.h"
#include "output/headline.h"
#include "output/html/markup.h"
#include "tools/diff/print.h"
#include <stdlib.h>

#define STACK_SHOWN 64u /* frames */

static void put_amount(FILE *out, int64_t value, bool is_bytes, const char *sign)
{
    fprintf(out, "<td class=\"n\">%s%s</td>", sign, is_bytes ? BYTES(value) : NUMBER(value));
}

static void put_amounts(FILE *out, int64_t before, int64_t after, bool is_bytes)
{
    put_amount(out, before, is_bytes, "");
    put_amount(out, after, is_bytes, "");
    put_amount(out, after - before, is_bytes, after > before ? "+" : "");
}

static void open_table(FILE *out, const char *title, const char *first)
{
    fputs("<section>\n<h2>", out);
    gm_html_text(out, title);
    fputs(
        "</h2>\n<div class=\"scroll\"><table>\n<thead><tr><th class=\"n\">base</th><th class=\"n\">"
        "new</th><th class=\"n\">change</th><th>",
        out);
    gm_html_text(out, first);
    fputs("</th></tr></thead>\n<tbody>\n", out);
}

/* What is too much for the table is told in its last row. */
static void close_table(FILE *out, size_t left_out)
{
    if (left_out)
        fprintf(out, "<tr><td></td><td></td><td></td><td>and %zu more</td></tr>\n", left_out);
    fputs("</tbody></table></div>\n</section>\n", out);
}

static void put_diff_table(FILE *out, const struct gm_diff_table *table, const char *title,
                           size_t top)
{
    size_t shown = table->count < top ? table->count : top;
    if (!table->count)
        return;
    open_table(out, title, "of");
    for (size_t i = 0; i < shown; i++) {
        fputs("<tr>", out);
        put_amounts(out, table->rows[i].before, table->rows[i].after, table->rows[i].is_bytes);
        fputs("<td>", out);
        gm_html_text(out, table->rows[i].name);
        fputs("</td></tr>\n", out);
    }
    close_table(out, table->count - shown);
}

static void put_place(FILE *out, const struct gm_diff *diff, const struct gm_diff_places *places,
                      size_t number)
{
    const struct gm_diff_place *place = &places->entries[number];
    const struct gm_frame *user = gm_diff_user(diff, places, number);
    const struct gm_stack *stack = gm_model_stack(diff->difference, place->stack);
    const struct gm_frame *telling = gm_stack_telling_frame(stack);
    fputs("<tr>", out);
    put_amounts(out, place->bytes_before, place->bytes_after, true);
    fprintf(out,
            "<td><details><summary>%s: ", gm_diff_change(place->bytes_before, place->bytes_after));
    if (telling)
        gm_html_frame(out, telling);
    else
        gm_html_text(out, "(no stack)");
    if (user) {
        fputs(" by ", out);
        gm_html_frame(out, user);
    }
    fputs("</summary><ol>", out);
    for (size_t i = 0; i < stack->count && i < STACK_SHOWN; i++) {
        fputs("<li>", out);
        gm_html_frame(out, &stack->frames[i]);
        fputs("</li>", out);
    }
    fputs("</ol></details></td></tr>\n", out);
}

static void put_places(FILE *out, const struct gm_diff *diff, enum gm_diff_sections section,
                       size_t top)
{
    static const char *const titles[] = {
        [GM_DIFF_AT_PEAK] = "Who held the devices at their peaks",
        [GM_DIFF_IN_POOLS] = "Who held PyTorch's pools at their peaks",
        [GM_DIFF_PINNED] = "Who held pinned memory at its peak",
        [GM_DIFF_LEAKED] = "Leaked",
        [GM_DIFF_ALLOCATED] = "Allocated over the whole run",
    };
    const struct gm_diff_places *places = &diff->places[section];
    size_t shown = places->count < top ? places->count : top;
    if (!places->count)
        return;
    open_table(out, titles[section], "place");
    for (size_t i = 0; i < shown; i++)
        put_place(out, diff, places, i);
    close_table(out, places->count - shown);
}

static void put_side(FILE *out, const char *name, const struct gm_model *model)
{
    char *command = model->run_count ? gm_command_text(&model->runs[0]) : NULL;
    bool is_incomplete = false;
    fprintf(out, "<p class=\"facts\"><b>%s</b> ", name);
    gm_html_text(out, command ? command : "nothing");
    if (model->run_count != 1)
        fprintf(out, ", %zu processes", model->run_count);
    fputs("</p>\n", out);
    for (size_t i = 0; i < model->run_count; i++)
        is_incomplete |= !model->runs[i].complete;
    if (is_incomplete)
        fputs("<p class=\"bad\">Incomplete: what is missing there shows as a difference.</p>\n",
              out);
    if (model->run_count && model->runs[0].simulated)
        fputs("<p class=\"note\">Simulated: there was no GPU.</p>\n", out);
    free(command);
}

void gm_diff_html(FILE *out, const struct gm_diff *diff, size_t top)
{
    static const char *const titles[] = {
        [GM_DIFF_TOTALS] = "Totals",
        [GM_DIFF_PROCESSES] = "By process, at its peak",
        [GM_DIFF_LIBRARIES] = "By library, at the peaks",
        [GM_DIFF_CATEGORIES] = "By category, in pools",
        [GM_DIFF_PHASES] = "By phase, its peak",
        [GM_DIFF_FINDINGS] = "Findings",
    };
    fputs("<article class=\"difference\">\n<header>\n<h1>What changed</h1>\n", out);
    put_side(out, "base", diff->base);
    put_side(out, "new", diff->newer);
    if (!diff->differs)
        fputs("<p class=\"verdict\">No difference.</p>\n", out);
    fputs("</header>\n", out);
    put_diff_table(out, &diff->tables[GM_DIFF_TOTALS], titles[GM_DIFF_TOTALS], SIZE_MAX);
    put_diff_table(out, &diff->tables[GM_DIFF_FINDINGS], titles[GM_DIFF_FINDINGS], top);
    for (unsigned section = 0; section < GM_DIFF_SECTIONS; section++)
        put_places(out, diff, section, top);
    for (unsigned table = GM_DIFF_PROCESSES; table < GM_DIFF_FINDINGS; table++)
        put_diff_table(out, &diff->tables[table], titles[table], top);
    fputs("</article>\n", out);
}
