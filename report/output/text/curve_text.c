/* See sections.h. */
#include "base/curve.h"
#include "output/text/sections.h"

static void print_column(const struct gm_page *page, double share)
{
    static const char *const blocks[] = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
    static const char steps[] = " .,-=+*%@";
    size_t step = (size_t)(share * 8 + 0.5);
    step = step > 8 ? 8 : step;
    if (page->ascii)
        fputc(steps[step], page->out);
    else
        fputs(blocks[step], page->out);
}

/* The largest value of each stretch, and what the height of a column means. Times of a simulated run mean nothing. */
void gm_curve_text(const struct gm_view *view, const char *name, const struct gm_curve *curve,
                   unsigned index)
{
    struct gm_page *page = view->page;
    uint64_t least = UINT64_MAX, most = 0;
    bool is_simulated = view->run->simulated;
    unsigned columns = gm_page_columns(page) - (is_simulated ? 49 : 40);
    for (unsigned column = 0; column < columns; column++) {
        uint64_t value = gm_curve_most(curve, index, column, column + 1, columns);
        least = value < least ? value : least;
        most = value > most ? value : most;
    }
    uint64_t base = least > most / 2 && least < most ? least - (most - least) / 8 : 0;
    if (!most)
        return;
    gm_page_print(page, GM_PLAIN, "    %-8s ", name);
    gm_page_begin(page, GM_DIM);
    for (unsigned column = 0; column < columns; column++) {
        uint64_t value = gm_curve_most(curve, index, column, column + 1, columns);
        double share = (double)(value - base) / (double)(most - base);
        print_column(page, value && share < 1.0 / 8 ? 1.0 / 8 : share);
    }
    gm_page_end(page, GM_DIM);
    gm_page_print(page, GM_DIM, " %s to %s%s\n", SIZE(base), SIZE(most),
                  is_simulated ? ", by call" : "");
}
