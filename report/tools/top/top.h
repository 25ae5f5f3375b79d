/* What `gpumem top` shows of a process that is followed: memory now and at its peak, by library, and
 * the places that hold most or grew most in the last minute. */
#ifndef GPUMEM_REPORT_TOP_TOP_H
#define GPUMEM_REPORT_TOP_TOP_H

#include "judge/pool/libraries.h"
#include "names/stacks/stacks.h"
#include "tools/top/follow.h"
#include <stdbool.h>
#include <stdio.h>

struct gm_top_options {
    uint64_t top; /* places */
    bool json;
    bool clears; /* the screen, before each look */
    struct gm_stacks_options stacks;
};

enum gm_top_order { GM_TOP_BY_BYTES, GM_TOP_BY_GROWTH, GM_TOP_BY_COUNT, GM_TOP_ORDERS };

#define GM_TOP_ALL_DEVICES (-2) /* and the host */

/* What keys change while the page is looked at. */
struct gm_top_shown {
    bool has_keys;
    bool is_paused;
    bool is_help;
    enum gm_top_order order; /* of places */
    int device;              /* -1: the unknown one; GM_TOP_ALL_DEVICES */
};

#define GM_TOP_MINUTE 12u  /* looks that are kept to compare with, one each 5 s */
#define GM_TOP_CURVE 40u   /* looks that the curve of a device shows */
#define GM_TOP_DEVICES 16u /* that have a curve */

/* Who held memory at a look. */
struct gm_top_look {
    uint64_t time_ns; /* of this machine */
    struct gm_sites allocations;
    struct gm_sites blocks;
};

struct gm_top_place {
    struct gm_site site;
    bool is_block;
    int64_t grown; /* bytes, in the last minute or since the first look */
    char *name;    /* clean */
};

struct gm_top {
    const struct gm_top_options *options;
    struct gm_top_shown shown;
    struct gm_top_look kept[GM_TOP_MINUTE]; /* oldest first */
    size_t kept_count;
    struct gm_top_look now;
    uint64_t curves[GM_TOP_DEVICES]
                   [GM_TOP_CURVE]; /* bytes live at the latest looks, oldest first */
    size_t curve_count;
    uint64_t since_ns;           /* how long ago the look was that `grown` compares with */
    struct gm_top_place *places; /* in the order that is wanted, blocks of pools among them */
    size_t place_count;
    struct gm_library *libraries; /* of memory on devices; most bytes first */
    size_t library_count;
    struct gm_libraries *naming; /* whose names they have */
    uint64_t looks;
};

/* The options must stay. */
void gm_top_begin(struct gm_top *top, const struct gm_top_options *options);
void gm_top_end(struct gm_top *top);

/* Takes in a look, which was at `time_ns`. */
void gm_top_note(struct gm_top *top, const struct gm_follow *follow, uint64_t time_ns);

/* Chooses anew what is shown of the latest look, after `shown` was changed. */
void gm_top_choose(struct gm_top *top, const struct gm_follow *follow);

/* The device after the one that is shown, of those that the process has; after the last all of them. */
int gm_top_next_device(const struct gm_top *top, const struct gm_follow *follow);

/* Prints it, as text or as JSON. */
void gm_top_text(FILE *out, const struct gm_top *top, const struct gm_follow *follow);
void gm_top_json(FILE *out, const struct gm_top *top, const struct gm_follow *follow);

#endif
