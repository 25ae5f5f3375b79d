/* See rows.h. */
#include "output/export/rows.h"
#include "base/memory.h"
#include <stdlib.h>

bool gm_export_rows_begin(struct gm_export_rows *rows, const struct gm_model *model)
{
    *rows = (struct gm_export_rows){.model = model};
    if (!gm_model_history(model, NULL, &rows->history))
        return false;
    rows->places = gm_allocate(model->place_count + 1, sizeof(*rows->places));
    for (size_t i = 0; i < rows->history.count; i++) {
        uint32_t number = rows->history.lives[i].place;
        const struct gm_model_place *place = &model->places[number];
        if (rows->places[number].place)
            continue;
        rows->places[number] = (struct gm_export_row_place){
            gm_export_stack(&rows->stacks, model, place->stack), gm_export_place(model, place)};
    }
    return true;
}

void gm_export_rows_end(struct gm_export_rows *rows)
{
    for (size_t i = 0; rows->places && i < rows->model->place_count; i++)
        free(rows->places[i].place);
    free(rows->places);
    gm_export_stacks_free(&rows->stacks);
    gm_model_history_free(&rows->history);
}

const char *gm_export_ended(const struct gm_model_life *life)
{
    if (life->end_step == GM_NONE)
        return "alive";
    return life->implicit ? "context" : "freed";
}
