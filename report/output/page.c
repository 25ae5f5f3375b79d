/* See page.h. */
#include "output/page.h"
#include "base/text.h"
#include <stdarg.h>
#include <string.h>

void gm_page_begin(struct gm_page *page, enum gm_style style)
{
    static const char *const codes[] = {
        [GM_BOLD] = "1", [GM_DIM] = "2", [GM_GOOD] = "32", [GM_BAD] = "1;31", [GM_WARNING] = "33"};
    if (page->colour && style != GM_PLAIN)
        fprintf(page->out, "\033[%sm", codes[style]);
}

void gm_page_end(struct gm_page *page, enum gm_style style)
{
    if (page->colour && style != GM_PLAIN)
        fputs("\033[0m", page->out);
}

void gm_page_print(struct gm_page *page, enum gm_style style, const char *format, ...)
{
    va_list list;
    gm_page_begin(page, style);
    va_start(list, format);
    vfprintf(page->out, format, list);
    va_end(list);
    gm_page_end(page, style);
}

void gm_page_heading(struct gm_page *page, const char *title, const char *about)
{
    fputc('\n', page->out);
    gm_page_print(page, GM_BOLD, "%s", title);
    if (about)
        fprintf(page->out, "  %s", about);
    fputc('\n', page->out);
}

static void blanks(struct gm_page *page, size_t count)
{
    fprintf(page->out, "%*s", (int)count, "");
}

size_t gm_page_cut(struct gm_page *page, const char *text, size_t columns)
{
    size_t width = gm_utf8_columns(text);
    if (width <= columns) {
        fputs(text, page->out);
        return width;
    }
    size_t left = columns - 3;
    for (; *text; text++) {
        if (((unsigned char)*text & 0xc0) != 0x80 && left-- == 0)
            break;
        fputc(*text, page->out);
    }
    fputs("...", page->out);
    return columns;
}

const char *gm_path_spelling(const char *path, char text[GM_PATH_SIZE])
{
    const char *tail = path;
    size_t room = GM_PATH_COLUMNS;
    while (gm_utf8_columns(tail) > room) {
        const char *slash = strchr(tail + 1, '/');
        if (!slash)
            break;
        tail = slash;
        room = GM_PATH_COLUMNS - 3; /* of the dots before it */
    }
    const char *dots = tail == path ? "" : "...";
    if (gm_utf8_columns(tail) > room) {
        dots = "...";
        for (size_t extra = gm_utf8_columns(tail) - (GM_PATH_COLUMNS - 3); extra;)
            extra -= ((unsigned char)*++tail & 0xc0) != 0x80;
    }
    snprintf(text, GM_PATH_SIZE, "%s%s", dots, tail);
    return text;
}

void gm_page_cell(struct gm_page *page, const char *text, size_t columns)
{
    blanks(page, columns - gm_page_cut(page, text, columns));
}

void gm_page_paragraph(struct gm_page *page, enum gm_style style, unsigned indent,
                       const char *format, ...)
{
    char text[2048];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    size_t column = 0;
    for (char *word = strtok(text, " "); word; word = strtok(NULL, " ")) {
        size_t width = gm_utf8_columns(word);
        if (column && column + 1 + width > gm_page_columns(page)) {
            gm_page_end(page, style);
            fputc('\n', page->out);
            column = 0;
        }
        if (column == 0) {
            blanks(page, indent);
            gm_page_begin(page, style);
            column = indent;
        } else {
            fputc(' ', page->out);
            column++;
        }
        fputs(word, page->out);
        column += width;
    }
    gm_page_end(page, style);
    fputc('\n', page->out);
}
