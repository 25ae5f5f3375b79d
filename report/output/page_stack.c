/* See page_stack.h. */
#include "output/page_stack.h"
#include "base/short_name.h"
#include "base/text.h"
#include <stdio.h>
#include <string.h>

#define OWN_FRAMES_MAX 8    /* of the application; a framework's run before each comes on top */
#define FUNCTION_COLUMNS 44 /* of a line; longer names are cut */
#define NAME_COLUMNS_LEAST 8
#define ROOM_FOR_MORE 5 /* columns of "..." and a comma and blank before it */

/* One line: a frame, and what it stands for. */
struct line {
    char name[GM_SHORT_NAME_SIZE];
    const struct gm_frame *frame;
    const struct gm_frame *first; /* of the run */
    size_t count;                 /* frames it stands for */
    bool folded;                  /* a framework's; else `count` times the same */
    char times[32];               /* " (x12)" behind the name; else empty */
};

/* ---- folding --------------------------------------------------------------------------------- */

static bool is_same_frame(const struct gm_frame *one, const struct gm_frame *other)
{
    return one->line == other->line && one->script == other->script &&
           strcmp(one->function, other->function) == 0 &&
           strcmp(one->file ? one->file : "", other->file ? other->file : "") == 0 &&
           strcmp(one->module ? one->module : "", other->module ? other->module : "") == 0;
}

static bool is_named(const struct gm_frame *frame)
{
    return frame->script || !strstr(frame->function, "+0x");
}

/* A function inside another one: in a framework that is most often what a decorator put around the
 * function that was called, and all functions have the same. */
static bool is_wrapper(const struct gm_frame *frame)
{
    return frame->script && strstr(frame->function, "<locals>.");
}

/* The frame of a run that says most: the operation called, else the named frame which is nearest to
 * the application. That is the outermost one, unless the run is how the program began. */
static const struct gm_frame *most_telling(const struct gm_frame *run, size_t count, bool outwards)
{
    for (size_t i = count; i-- > 0;)
        if (gm_frame_is_operation(&run[i]))
            return &run[i];
    const struct gm_frame *named = NULL;
    for (size_t i = 0; i < count; i++) {
        const struct gm_frame *frame = &run[outwards ? i : count - 1 - i];
        if (!is_named(frame))
            continue;
        if (!is_wrapper(frame))
            return frame;
        if (!named)
            named = frame;
    }
    return named ? named : &run[outwards ? 0 : count - 1];
}

/* The line that begins with frame `at`. */
static struct line next_line(const struct gm_page *page, const struct gm_stack *stack, size_t at)
{
    const struct gm_frame *first = &stack->frames[at];
    struct line line = {.frame = first, .first = first, .count = 1};
    line.folded = first->framework && !page->all_frames;
    while (at + line.count < stack->count) {
        const struct gm_frame *next = first + line.count;
        if (line.folded ? !next->framework : page->all_frames || !is_same_frame(first, next))
            break;
        line.count++;
    }
    if (line.folded)
        line.frame = most_telling(first, line.count, at > 0 && at + line.count == stack->count);
    else if (line.count > 1)
        snprintf(line.times, sizeof(line.times), " (x%zu)", line.count);
    if (line.frame->script)
        snprintf(line.name, sizeof(line.name), "%s", line.frame->function);
    else
        gm_short_name(line.frame->function, line.name);
    return line;
}

/* ---- printing -------------------------------------------------------------------------------- */

static void blanks(struct gm_page *page, size_t count)
{
    fprintf(page->out, "%*s", (int)count, "");
}

/* Prints a C++ name in at most `columns`: its last components are what tells. */
static size_t print_frame_name(struct gm_page *page, const char *name, size_t columns)
{
    const char *tail = name;
    while (gm_utf8_columns(tail) + (tail > name ? 5 : 0) > columns) {
        const char *scope = strstr(tail, "::");
        if (!scope)
            break;
        tail = scope + 2;
    }
    if (tail == name)
        return gm_page_cut(page, name, columns);
    fputs("...::", page->out);
    return 5 + gm_page_cut(page, tail, columns - 5);
}

static bool is_listed(const struct line *line, size_t at)
{
    for (size_t i = 0; i < at; i++)
        if (strcmp(line->first[i].framework, line->first[at].framework) == 0)
            return true;
    return false;
}

/* "(26 frames of libtorch_cuda.so, libtorch_cpu.so)", as many names as fit. */
static void print_run(struct gm_page *page, const struct line *line, size_t columns)
{
    char text[GM_PAGE_COLUMNS + 1];
    columns = columns < GM_PAGE_COLUMNS ? columns : GM_PAGE_COLUMNS;
    size_t used = (size_t)snprintf(text, sizeof(text), "(%zu frames of ", line->count);
    const char *separator = "";
    for (size_t i = 0; i < line->count; i++) {
        const char *name = line->first[i].framework;
        if (is_listed(line, i))
            continue;
        if (used + strlen(separator) + strlen(name) + ROOM_FOR_MORE + 1 > columns) {
            snprintf(text + used, sizeof(text) - used, "%s...", separator);
            break;
        }
        used += (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", separator, name);
        separator = ", ";
    }
    gm_page_print(page, GM_DIM, "%s)", text);
}

/* Where a frame is, of those with a file: spelled as everywhere, and the line. */
#define PLACE_SIZE (GM_PATH_SIZE + 16)
static const char *place_of_frame(const struct gm_frame *frame, char text[PLACE_SIZE])
{
    char path[GM_PATH_SIZE];
    gm_path_spelling(frame->file, path);
    if (frame->line)
        snprintf(text, PLACE_SIZE, "%s:%u", path, frame->line);
    else
        snprintf(text, PLACE_SIZE, "%s", path);
    return text;
}

/* Columns that a file and a line take; 0 for a module, which takes what is left. */
static size_t place_columns(const struct gm_frame *frame)
{
    char text[PLACE_SIZE];
    return frame->file ? gm_utf8_columns(place_of_frame(frame, text)) : 0;
}

/* Where a frame is: file and line, else the module. */
static void print_frame_place(struct gm_page *page, const struct gm_frame *frame, size_t columns)
{
    char text[PLACE_SIZE];
    gm_page_begin(page, GM_DIM);
    gm_page_cut(page, frame->file ? place_of_frame(frame, text) : frame->module, columns);
    gm_page_end(page, GM_DIM);
}

/* "inner" of "outer.<locals>.inner". */
static const char *innermost_name(const char *function)
{
    static const char scope[] = "<locals>.";
    for (const char *at; (at = strstr(function, scope));)
        function = at + strlen(scope);
    return function;
}

static size_t shorter(const char *text, size_t most)
{
    size_t columns = gm_utf8_columns(text);
    return columns < most ? columns : most;
}

void gm_page_frame(struct gm_page *page, const struct gm_frame *frame, size_t columns)
{
    char name[GM_SHORT_NAME_SIZE];
    /* A module is short and says little: leave more room for the name. */
    size_t place = frame->file     ? place_columns(frame)
                   : frame->module ? shorter(frame->module, columns / 3)
                                   : columns / 2;
    size_t room = columns - 2 - place;
    if (room > columns || room < NAME_COLUMNS_LEAST)
        room = NAME_COLUMNS_LEAST;
    if (frame->script)
        snprintf(name, sizeof(name), "%s", innermost_name(frame->function));
    else
        gm_short_name(frame->function, name);
    size_t used = (frame->script ? gm_page_cut : print_frame_name)(page, name, room);
    if (frame->file || (frame->module && frame->module[0] && is_named(frame))) {
        blanks(page, 2);
        print_frame_place(page, frame, columns - used - 2);
    }
}

static void print_stack_line(struct gm_page *page, unsigned indent, size_t name_columns,
                             const struct line *line)
{
    const struct gm_frame *frame = line->frame;
    size_t room = name_columns - strlen(line->times);
    blanks(page, indent);
    size_t used = (frame->script ? gm_page_cut : print_frame_name)(page, line->name, room);
    fputs(line->times, page->out);
    used += strlen(line->times);
    size_t left = gm_page_columns(page) - indent - name_columns - 2;
    if (line->folded && line->count > 1) {
        blanks(page, name_columns - used + 2);
        print_run(page, line, left);
    } else if (frame->file || (frame->module && frame->module[0] && is_named(frame))) {
        blanks(page, name_columns - used + 2);
        print_frame_place(page, frame, left);
    } else if (frame->trouble) {
        blanks(page, name_columns - used + 2);
        gm_page_print(page, GM_DIM, "(%s)", frame->trouble);
    }
    fputc('\n', page->out);
}

/* Columns of the names: as many as the longest takes, up to a limit and to what the places leave.
 */
static size_t name_columns(const struct gm_page *page, const struct line *lines, size_t count,
                           unsigned indent)
{
    size_t columns = 0, most = FUNCTION_COLUMNS;
    for (size_t i = 0; i < count; i++) {
        size_t width = gm_utf8_columns(lines[i].name) + strlen(lines[i].times);
        size_t left = gm_page_columns(page) - indent - 2 - place_columns(lines[i].frame);
        columns = width > columns ? width : columns;
        most = left < most ? left : most;
    }
    most = most < NAME_COLUMNS_LEAST ? NAME_COLUMNS_LEAST : most;
    return columns < most ? columns : most;
}

void gm_page_stack(struct gm_page *page, unsigned indent, const struct gm_stack *stack)
{
    struct line lines[2 * OWN_FRAMES_MAX + 1];
    size_t at = 0;
    if (stack->count == 0) {
        gm_page_print(page, GM_DIM, "%*s(no stack was recorded)\n", (int)indent, "");
        return;
    }
    do {
        size_t count = 0, own = 0;
        while (at < stack->count && count < sizeof(lines) / sizeof(lines[0])) {
            struct line line = next_line(page, stack, at);
            bool is_full = page->stack_lines && count == page->stack_lines;
            if (!page->all_frames && (is_full || (!line.folded && ++own > OWN_FRAMES_MAX)))
                break;
            lines[count++] = line;
            at += line.count;
        }
        size_t columns = name_columns(page, lines, count, indent);
        for (size_t i = 0; i < count; i++)
            print_stack_line(page, indent, columns, &lines[i]);
    } while (page->all_frames && at < stack->count);
    if (at < stack->count)
        gm_page_print(page, GM_DIM, "%*s... %zu more\n", (int)indent, "", stack->count - at);
    else if (stack->cut)
        gm_page_print(page, GM_DIM, "%*s... (cut here)\n", (int)indent, "");
}
