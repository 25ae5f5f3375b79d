/* The groups that places of a model are of (gm_place_group), by numbers. */
#ifndef GPUMEM_REPORT_RENDER_HTML_GROUPS_H
#define GPUMEM_REPORT_RENDER_HTML_GROUPS_H

#include "model/history.h"

#define GM_HTML_GROUPS 64u /* in a trace of more the last ones share a number */

struct gm_html_groups {
    const struct gm_model *model;
    char names[GM_HTML_GROUPS][GM_GROUP_TEXT];
    unsigned count;
    unsigned char *of_place; /* number and one; 0 not met */
};

void gm_html_groups_begin(struct gm_html_groups *groups, const struct gm_model *model);
void gm_html_groups_end(struct gm_html_groups *groups);

unsigned gm_html_group_of(struct gm_html_groups *groups, uint32_t place);

#endif
