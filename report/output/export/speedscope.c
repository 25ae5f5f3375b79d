/* speedscope's own JSON (https://www.speedscope.app/file-format-schema.json): a sampled profile for
 * each group that held memory at a moment, weights in bytes. Default: the peaks. */
#include "base/limit.h"
#include "base/memory.h"
#include "output/export/export.h"
#include "output/json.h"
#include "version.h"
#include <stdlib.h>
#include <string.h>

struct view {
    struct gm_json json;
    const struct gm_model *model;
    struct gm_model_held held;
    size_t *frame_counts; /* of each sample: what the limits allow */
};

static void write_speedscope_frames(struct view *view)
{
    struct gm_json *json = &view->json;
    gm_json_open_array(json, "frames");
    for (size_t i = 0; i < gm_model_frame_count(view->model); i++) {
        const struct gm_frame *frame = gm_model_frame(view->model, (uint32_t)i);
        gm_json_open_object(json, NULL);
        gm_json_string(json, "name", frame->function);
        if (frame->file)
            gm_json_string(json, "file", frame->file);
        if (frame->line)
            gm_json_number(json, "line", frame->line);
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
}

static void write_speedscope_samples(struct view *view, size_t from, size_t to)
{
    struct gm_json *json = &view->json;
    gm_json_open_array(json, "samples");
    for (size_t i = from; i < to; i++) {
        uint32_t stack = view->model->places[view->held.samples[i].place].stack;
        const uint32_t *frames = gm_model_frames(view->model, stack);
        gm_json_open_array(json, NULL);
        for (size_t frame = view->frame_counts[i]; frame-- > 0;)
            gm_json_number(json, NULL, frames[frame]);
        gm_json_close_array(json);
    }
    gm_json_close_array(json);
    gm_json_open_array(json, "weights");
    for (size_t i = from; i < to; i++)
        gm_json_signed(json, NULL, view->held.samples[i].bytes);
    gm_json_close_array(json);
}

static void write_profile(struct view *view, const char *name, size_t from, size_t to)
{
    struct gm_json *json = &view->json;
    int64_t bytes = 0;
    for (size_t i = from; i < to; i++)
        bytes += view->held.samples[i].bytes;
    gm_json_open_object(json, NULL);
    gm_json_string(json, "type", "sampled");
    gm_json_string(json, "name", name);
    gm_json_string(json, "unit", "bytes");
    gm_json_number(json, "startValue", 0);
    gm_json_signed(json, "endValue", bytes);
    write_speedscope_samples(view, from, to);
    gm_json_close_object(json);
}

static void write_profiles(struct view *view)
{
    const struct gm_model_sample *samples = view->held.samples;
    const struct gm_model_place *places = view->model->places;
    gm_json_open_array(&view->json, "profiles");
    for (size_t from = 0, to = 0; from < view->held.count; from = to) {
        char group[GM_GROUP_TEXT], other[GM_GROUP_TEXT];
        gm_place_group(&places[samples[from].place], group);
        while (to < view->held.count &&
               strcmp(gm_place_group(&places[samples[to].place], other), group) == 0)
            to++;
        write_profile(view, group, from, to);
    }
    gm_json_close_array(&view->json);
}

static void write_speedscope(FILE *out, const struct gm_model *model,
                             const struct gm_output_options *options)
{
    struct view view = {.json = {.out = out}, .model = model};
    gm_model_held_at(model, &options->when, &view.held);
    view.frame_counts = gm_allocate(view.held.count + 1, sizeof(*view.frame_counts));
    for (size_t i = 0; i < view.held.count; i++)
        view.frame_counts[i] = gm_export_frame_count(
            gm_model_stack(model, model->places[view.held.samples[i].place].stack));
    gm_json_open_object(&view.json, NULL);
    gm_json_string(&view.json, "$schema", "https://www.speedscope.app/file-format-schema.json");
    gm_json_string(&view.json, "exporter", "gpumem@" GPUMEM_VERSION);
    gm_json_number(&view.json, "activeProfileIndex", 0);
    gm_json_open_object(&view.json, "shared");
    write_speedscope_frames(&view);
    gm_json_close_object(&view.json);
    write_profiles(&view);
    gm_json_close_object(&view.json);
    gm_json_end(&view.json);
    free(view.frame_counts);
    gm_model_held_free(&view.held);
}

const struct gm_output gm_export_speedscope = {
    .name = "speedscope", .needs = GM_NEEDS_MOMENTS, .write = write_speedscope};
