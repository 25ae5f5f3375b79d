/* See page.h. */
#include "page.h"
#include <stdarg.h>
#include <string.h>
#include "memory.h"
#include "utf8.h"

#define FRAMES_MAX 16       /* lines per stack */
#define FUNCTION_COLUMNS 44 /* of a line; longer names are cut */

static void begin_style(struct gm_page *page, enum gm_style style)
{
    static const char *const codes[] = {
        [GM_BOLD] = "1", [GM_DIM] = "2", [GM_GOOD] = "32", [GM_BAD] = "1;31", [GM_WARNING] = "33"};
    if (page->colour && style != GM_PLAIN)
        fprintf(page->out, "\033[%sm", codes[style]);
}

static void end_style(struct gm_page *page, enum gm_style style)
{
    if (page->colour && style != GM_PLAIN)
        fputs("\033[0m", page->out);
}

void gm_page_print(struct gm_page *page, enum gm_style style, const char *format, ...)
{
    va_list list;
    begin_style(page, style);
    va_start(list, format);
    vfprintf(page->out, format, list);
    va_end(list);
    end_style(page, style);
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
        if (column && column + 1 + width > GM_PAGE_COLUMNS) {
            end_style(page, style);
            fputc('\n', page->out);
            column = 0;
        }
        if (column == 0) {
            blanks(page, indent);
            begin_style(page, style);
            column = indent;
        } else {
            fputc(' ', page->out);
            column++;
        }
        fputs(word, page->out);
        column += width;
    }
    end_style(page, style);
    fputc('\n', page->out);
}

/* ---- stacks ---------------------------------------------------------------------------------- */

/* Prints at most `columns` of a text, "..." in place of the rest. Returns the columns used. */
static size_t print_cut(struct gm_page *page, const char *text, size_t columns)
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

/* The part of a path that fits: whole components from the end. */
static const char *end_of_path(const char *path, size_t columns)
{
    while (gm_utf8_columns(path) > columns) {
        const char *slash = strchr(path + 1, '/');
        if (!slash)
            break;
        path = slash + 1;
    }
    return path;
}

static void print_frame(struct gm_page *page, unsigned indent, size_t function_columns,
                        const struct gm_frame *frame)
{
    char line[16] = "";
    blanks(page, indent);
    size_t used = print_cut(page, frame->function, function_columns);
    if (!frame->file && (!frame->module || !frame->module[0] || strchr(frame->function, '+'))) {
        fputc('\n', page->out);
        return;
    }
    blanks(page, function_columns - used + 2);
    begin_style(page, GM_DIM);
    if (frame->file) {
        if (frame->line)
            snprintf(line, sizeof(line), ":%u", frame->line);
        size_t left = GM_PAGE_COLUMNS - indent - function_columns - 2 - strlen(line);
        print_cut(page, end_of_path(frame->file, left), left);
        fputs(line, page->out);
    } else {
        print_cut(page, frame->module, GM_PAGE_COLUMNS - indent - function_columns - 2);
    }
    end_style(page, GM_DIM);
    fputc('\n', page->out);
}

void gm_page_stack(struct gm_page *page, unsigned indent, const struct gm_stack *stack)
{
    size_t columns = 0, shown = stack->count < FRAMES_MAX ? stack->count : FRAMES_MAX;
    for (size_t i = 0; i < shown; i++) {
        size_t width = gm_utf8_columns(stack->frames[i].function);
        columns = width > columns ? width : columns;
    }
    if (columns > FUNCTION_COLUMNS)
        columns = FUNCTION_COLUMNS;
    for (size_t i = 0; i < shown; i++)
        print_frame(page, indent, columns, &stack->frames[i]);
    if (shown < stack->count)
        gm_page_print(page, GM_DIM, "%*s... %zu more\n", (int)indent, "", stack->count - shown);
    else if (stack->cut)
        gm_page_print(page, GM_DIM, "%*s... (cut here)\n", (int)indent, "");
    if (stack->count == 0)
        gm_page_print(page, GM_DIM, "%*s(no stack was recorded)\n", (int)indent, "");
}
