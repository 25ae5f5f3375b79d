/* See sections.h. */
#include "output/headline.h"
#include "output/text/sections.h"
#include <string.h>

#define ROWS 10u
#define NAME_COLUMNS 30

/* "cuDNN, in PyTorch's pool", "PyTorch, in its pool". Pools are known, so their names are short. */
static void print_library_name(struct gm_page *page, const struct gm_library_line *line)
{
    char suffix[NAME_COLUMNS] = "";
    if (line->pool && strcmp(line->name, line->pool) == 0)
        snprintf(suffix, sizeof(suffix), ", in its pool");
    else if (line->pool)
        snprintf(suffix, sizeof(suffix), ", in %.10s's pool", line->pool);
    size_t used = gm_page_cut(page, line->name, NAME_COLUMNS - strlen(suffix));
    gm_page_cell(page, suffix, NAME_COLUMNS - used);
}

static void print_library_line(struct gm_page *page, const struct gm_model_device *device,
                               const struct gm_library_line *line)
{
    uint64_t bytes = line->at[GM_AT_PEAK].bytes, whole = device->library_bytes[GM_AT_PEAK];
    fputs("  ", page->out);
    print_library_name(page, line);
    gm_page_print(page, GM_BOLD, "%11s", bytes ? SIZE(bytes) : "-");
    gm_page_print(page, GM_PLAIN, " %5.1f%% %7s", whole ? 100.0 * (double)bytes / (double)whole : 0,
                  COUNT(line->at[GM_AT_PEAK].count));
    bytes = line->at[GM_AT_END].bytes;
    gm_page_print(page, GM_PLAIN, "%11s", bytes ? SIZE(bytes) : "-");
    bytes = line->at[GM_AT_FAILURE].bytes;
    if (device->has_failed)
        gm_page_print(page, GM_PLAIN, "%11s", bytes ? SIZE(bytes) : "-");
    fputc('\n', page->out);
}

void gm_libraries_text(const struct gm_view *view, const struct gm_model_device *device)
{
    struct gm_page *page = view->page;
    size_t count = device->library_count, shown = gm_view_rows(view, ROWS);
    char title[64];
    if (count == 0 || (count == 1 && strcmp(device->libraries[0].name, GM_APPLICATION) == 0))
        return;
    snprintf(title, sizeof(title), "Device %d by library", device->id);
    gm_page_heading(page, title, NULL);
    gm_page_print(page, GM_DIM, "  %-*s%11s %6s %7s%11s%s\n", NAME_COLUMNS, "", "at the peak", "",
                  "count", gm_when_left(view->run), device->has_failed ? "     at OOM" : "");
    for (size_t i = 0; i < count && i < shown; i++)
        print_library_line(page, device, &device->libraries[i]);
    if (count > shown)
        gm_page_print(page, GM_DIM, "  ... and %zu more\n", count - shown);
}
