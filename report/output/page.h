/* Text for people: 80 columns or as many as the terminal has, a little colour on a terminal, nothing that could steer it. */
#ifndef GPUMEM_REPORT_RENDER_PAGE_H
#define GPUMEM_REPORT_RENDER_PAGE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#define GM_PAGE_COLUMNS 80

enum gm_style { GM_PLAIN, GM_BOLD, GM_DIM, GM_GOOD, GM_BAD, GM_WARNING };

struct gm_page {
    FILE *out;
    bool colour;
    bool all_frames;    /* stacks: no frames of frameworks are folded, none are left out */
    unsigned columns;   /* of the terminal; 0: GM_PAGE_COLUMNS */
    size_t stack_lines; /* of a stack at most; 0: as many as are worth reading */
    bool ascii;         /* bars and curves by ASCII alone */
};

static inline unsigned gm_page_columns(const struct gm_page *page)
{
    return page->columns ? page->columns : GM_PAGE_COLUMNS;
}

/* Formatted text in a style. Texts from the trace must have been cleaned before. */
void gm_page_print(struct gm_page *page, enum gm_style style, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

/* What is printed in between is in that style. */
void gm_page_begin(struct gm_page *page, enum gm_style style);
void gm_page_end(struct gm_page *page, enum gm_style style);

/* A heading with an empty line before it; `about` (may be NULL) stands behind it. */
void gm_page_heading(struct gm_page *page, const char *title, const char *about);

/* Prints a clean text in at most `columns` (3 at least), "..." in place of what is too much.
 * Returns the columns used. */
size_t gm_page_cut(struct gm_page *page, const char *text, size_t columns);

/* How a clean path is spelled on every page, in at most GM_PATH_COLUMNS: whole, or as many whole
 * components from its end as there is room for behind ".../"; of a name that is too long itself the
 * end behind "...". Whatever stands beside it, one file has one spelling. Returns `text`. */
#define GM_PATH_COLUMNS 30
#define GM_PATH_SIZE (4 * GM_PATH_COLUMNS + 5)
const char *gm_path_spelling(const char *path, char text[GM_PATH_SIZE]);

/* The same as gm_page_cut, filled up with blanks. */
void gm_page_cell(struct gm_page *page, const char *text, size_t columns);

/* A paragraph, broken into lines that begin `indent` columns in. */
void gm_page_paragraph(struct gm_page *page, enum gm_style style, unsigned indent,
                       const char *format, ...) __attribute__((format(printf, 4, 5)));

#endif
