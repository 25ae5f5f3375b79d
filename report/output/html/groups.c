/* See groups.h. */
#include "output/html/groups.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

void gm_html_groups_begin(struct gm_html_groups *groups, const struct gm_model *model)
{
    *groups =
        (struct gm_html_groups){.model = model, .of_place = gm_allocate(model->place_count + 1, 1)};
}

void gm_html_groups_end(struct gm_html_groups *groups)
{
    free(groups->of_place);
}

unsigned gm_html_group_of(struct gm_html_groups *groups, uint32_t place)
{
    char name[GM_GROUP_TEXT];
    unsigned number = 0;
    if (groups->of_place[place])
        return groups->of_place[place] - 1u;
    gm_place_group(&groups->model->places[place], name);
    while (number < GM_HTML_GROUPS - 1 && number < groups->count &&
           strcmp(groups->names[number], name) != 0)
        number++;
    if (number == groups->count)
        memcpy(groups->names[groups->count++], name, sizeof(name));
    groups->of_place[place] = (unsigned char)(number + 1);
    return number;
}
