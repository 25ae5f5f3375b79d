/* An output is one file: it prints a model, and knows nothing else. */
#ifndef GPUMEM_REPORT_RENDER_OUTPUT_H
#define GPUMEM_REPORT_RENDER_OUTPUT_H

#include "model/history.h"
#include <stdio.h>

/* What of it is asked for. */
#define GM_FILTER_ANY (-2)
struct gm_output_filter {
    bool is_set;
    int device;        /* or GM_FILTER_ANY */
    int kind;          /* enum gm_kind, or GM_FILTER_ANY */
    uint64_t min_size; /* bytes of a place */
    struct gm_scope_request scope;
};

/* How the reader wants it. An output passes over what it has no use for. */
struct gm_output_options {
    size_t top; /* places per section; 0: as many as the output shows by default */
    bool colour;
    bool verbose;        /* every section, not the page alone */
    bool all_frames;     /* of stacks: all, none folded */
    bool ascii;          /* no characters beyond ASCII but those of names */
    unsigned columns;    /* of the terminal; 0: 80 */
    unsigned site;       /* the place with this number on the page alone; 0: the page */
    uint64_t site_id;    /* the same by its id, plus 1; 0: none is asked for */
    struct gm_when when; /* of outputs that show one moment */
    struct gm_output_filter filter;
    uint64_t page_size; /* bytes of events in HTML; 0: what fits 25 MB */
    bool many;          /* the model is one of several in one document */
    bool follows;       /* another one stands before it there */
};

struct gm_output {
    const char *name; /* as commands look it up: "text" */
    unsigned needs;   /* enum gm_model_needs */
    void (*write)(FILE *out, const struct gm_model *model, const struct gm_output_options *options);
    /* Before the first and behind the last of many, `follows`: there was one; NULL: nothing. */
    void (*begin_many)(FILE *out);
    void (*end_many)(FILE *out, bool follows);
    bool is_of_run; /* and of no moment: options->when says nothing to it */
};

#endif
