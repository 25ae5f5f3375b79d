/* pprof's profile.proto, gzipped: `go tool pprof`, Grafana, Datadog, speedscope. One sample for each
 * place, with three pairs of values: what was allocated over the whole run, what was held at a moment
 * (default: the peaks), and the same of the blocks of a framework's pool, which lie in memory that the
 * second pair counts. Labels: device, kind, api, library, and class of what was left at the end. */
#include "base/memory.h"
#include "output/export/proto.h"
#include "output/gzip.h"
#include <stdlib.h>

enum value {
    ALLOC_OBJECTS,
    ALLOC_SPACE,
    INUSE_OBJECTS,
    INUSE_SPACE,
    BLOCK_OBJECTS,
    BLOCK_SPACE,
    VALUES
};

struct row {
    int64_t values[VALUES];
    bool is_used;
};

struct profile {
    const struct gm_model *model;
    uint64_t first_frame; /* number of the location of the model's first frame */
    bool is_base; /* of a comparison: its samples count down, and pprof knows them as such */
    struct gm_export_text bytes; /* the message */
    struct gm_export_text part;
    struct gm_proto_strings strings;
    bool *has_location; /* of a frame */
    size_t frame_capacity;
};

static uint64_t string(struct profile *profile, const char *text)
{
    return gm_proto_string(&profile->strings, text);
}

/* ---- samples --------------------------------------------------------------------------------- */

static void add_label(struct profile *profile, struct gm_export_text *sample, const char *key,
                      const char *value)
{
    if (!value || !*value)
        return;
    gm_proto_number(&profile->part, 1, string(profile, key));
    gm_proto_number(&profile->part, 2, string(profile, value));
    gm_proto_message(sample, 3, &profile->part);
}

static void add_pprof_device(struct profile *profile, struct gm_export_text *sample, int device)
{
    gm_proto_number(&profile->part, 1, string(profile, "device"));
    gm_proto_number(&profile->part, 3, (uint64_t)device);
    gm_proto_message(sample, 3, &profile->part);
}

/* A location is a frame: its number in the model and `first_frame`. pprof drops samples without one, so
 * those without a stack have a location of their own. */
enum { NO_STACK = 1, FIRST_FRAME };

static void note_location(struct profile *profile, uint32_t frame)
{
    size_t before = profile->frame_capacity;
    GM_RESERVE(profile->has_location, profile->frame_capacity, frame + 1);
    for (size_t i = before; i < profile->frame_capacity; i++)
        profile->has_location[i] = false;
    profile->has_location[frame] = true;
}

static void write_sample(struct profile *profile, const struct gm_model_place *place,
                         const struct row *row)
{
    const struct gm_stack *stack = gm_model_stack(profile->model, place->stack);
    const uint32_t *frames = gm_model_frames(profile->model, place->stack);
    size_t count = gm_export_frame_count(stack);
    struct gm_export_text sample = {0};
    for (size_t i = 0; i < count; i++) {
        note_location(profile, frames[i]);
        gm_proto_number(&sample, 1, (uint64_t)frames[i] + profile->first_frame);
    }
    if (count == 0)
        gm_proto_number(&sample, 1, NO_STACK);
    for (unsigned i = 0; i < VALUES; i++)
        gm_proto_number(&sample, 2,
                        (uint64_t)(profile->is_base ? -row->values[i] : row->values[i]));
    if (!gm_kind_is_host(place->kind))
        add_pprof_device(profile, &sample, place->device);
    add_label(profile, &sample, "kind", place->is_block ? "block" : gm_kind_name(place->kind));
    add_label(profile, &sample, "api", place->api);
    add_label(profile, &sample, "library", place->library);
    if (profile->is_base)
        add_label(profile, &sample, "pprof::base", "true");
    if (place->leak_class)
        add_label(profile, &sample, "class", gm_leak_class_name(place->leak_class));
    gm_proto_message(&profile->bytes, 2, &sample);
    gm_export_text_free(&sample);
}

/* ---- what samples refer to ------------------------------------------------------------------- */

static void write_location(struct profile *profile, uint64_t number, unsigned line_number)
{
    struct gm_export_text line = {0};
    gm_proto_number(&line, 1, number);
    gm_proto_number(&line, 2, line_number);
    gm_proto_number(&profile->part, 1, number);
    gm_proto_message(&profile->part, 4, &line);
    gm_proto_message(&profile->bytes, 4, &profile->part);
    gm_export_text_free(&line);
}

static void write_function(struct profile *profile, uint64_t number, const char *name,
                           const char *file)
{
    gm_proto_number(&profile->part, 1, number);
    gm_proto_number(&profile->part, 2, string(profile, name));
    gm_proto_number(&profile->part, 3, string(profile, name));
    gm_proto_number(&profile->part, 4, string(profile, file));
    gm_proto_message(&profile->bytes, 5, &profile->part);
}

/* Each frame is a function of its own: names alone would unite lines of different files. */
static void write_locations(struct profile *profile)
{
    for (size_t i = 0; i < profile->frame_capacity; i++) {
        if (!profile->has_location[i])
            continue;
        const struct gm_frame *frame = gm_model_frame(profile->model, (uint32_t)i);
        write_location(profile, i + profile->first_frame, frame->line);
        write_function(profile, i + profile->first_frame, frame->function, frame->file);
    }
}

static void write_types(struct profile *profile)
{
    static const char *const types[VALUES] = {
        [ALLOC_OBJECTS] = "alloc_objects", [ALLOC_SPACE] = "alloc_space",
        [INUSE_OBJECTS] = "inuse_objects", [INUSE_SPACE] = "inuse_space",
        [BLOCK_OBJECTS] = "block_objects", [BLOCK_SPACE] = "block_space"};
    for (unsigned i = 0; i < VALUES; i++) {
        gm_proto_number(&profile->part, 1, string(profile, types[i]));
        gm_proto_number(&profile->part, 2, string(profile, i % 2 ? "bytes" : "count"));
        gm_proto_message(&profile->bytes, 1, &profile->part);
    }
}

static void write_rest(struct profile *profile, const struct gm_model_run *run)
{
    uint64_t preferred = string(profile, "inuse_space");
    for (size_t i = 0; i < profile->strings.count; i++)
        gm_proto_text(&profile->bytes, 6, profile->strings.strings[i]);
    gm_proto_number(&profile->bytes, 9, run->start_realtime_ns);
    gm_proto_number(&profile->bytes, 10, run->duration_ns);
    gm_proto_number(&profile->bytes, 14, preferred);
}

/* ---- values ---------------------------------------------------------------------------------- */

static struct row *collect_rows(const struct gm_model *model, const struct gm_when *when)
{
    struct gm_model_held held;
    gm_model_held_at(model, when, &held);
    struct row *rows = gm_allocate(model->place_count + 1, sizeof(*rows));
    for (size_t i = 0; i < model->run_count; i++) {
        const struct gm_model_run *run = &model->runs[i];
        for (size_t at = 0; at < run->lifetime_count; at++) {
            struct row *row = &rows[run->lifetimes[at].place];
            row->values[ALLOC_OBJECTS] += run->lifetimes[at].allocs;
            row->values[ALLOC_SPACE] += run->lifetimes[at].allocated;
            row->is_used = true;
        }
    }
    for (size_t i = 0; i < held.count; i++) {
        const struct gm_model_sample *sample = &held.samples[i];
        bool is_block = model->places[sample->place].is_block;
        struct row *row = &rows[sample->place];
        row->values[is_block ? BLOCK_OBJECTS : INUSE_OBJECTS] = sample->count;
        row->values[is_block ? BLOCK_SPACE : INUSE_SPACE] = sample->bytes;
        row->is_used = true;
    }
    gm_model_held_free(&held);
    return rows;
}

/* The samples of a model, and what they refer to. */
static void write_side(struct profile *profile, const struct gm_when *when)
{
    const struct gm_model *model = profile->model;
    struct row *rows = collect_rows(model, when);
    for (size_t i = 0; i < model->place_count; i++)
        if (rows[i].is_used)
            write_sample(profile, &model->places[i], &rows[i]);
    write_locations(profile);
    free(rows);
}

static void finish_profile(struct profile *profile, FILE *out, const struct gm_model_run *run)
{
    size_t size;
    write_location(profile, NO_STACK, 0);
    write_function(profile, NO_STACK, "(no stack)", NULL);
    write_rest(profile, run);
    unsigned char *compressed = gm_gzip(profile->bytes.bytes, profile->bytes.size, &size);
    fwrite(compressed, 1, size, out);
    free(compressed);
    gm_export_text_free(&profile->bytes);
    gm_export_text_free(&profile->part);
    gm_proto_strings_free(&profile->strings);
    free(profile->has_location);
}

static void write_pprof(FILE *out, const struct gm_model *model,
                        const struct gm_output_options *options)
{
    struct profile profile = {.model = model, .first_frame = FIRST_FRAME};
    write_types(&profile);
    write_side(&profile, &options->when);
    finish_profile(&profile, out, &model->runs[0]);
}

void gm_pprof_write_difference(FILE *out, const struct gm_model *base, const struct gm_model *newer)
{
    const struct gm_when when = {.kind = GM_WHEN_DEFAULT};
    const struct gm_model_run nothing = {0};
    struct profile profile = {.model = newer, .first_frame = FIRST_FRAME};
    write_types(&profile);
    write_side(&profile, &when);
    profile.first_frame += gm_model_frame_count(newer);
    free(profile.has_location);
    profile.has_location = NULL;
    profile.frame_capacity = 0;
    profile.model = base;
    profile.is_base = true;
    write_side(&profile, &when);
    finish_profile(&profile, out, newer->run_count ? &newer->runs[0] : &nothing);
}

const struct gm_output gm_export_pprof = {.name = "pprof",
                                          .needs = GM_NEEDS_MOMENTS | GM_NEEDS_HISTORY |
                                                   GM_NEEDS_LIFETIMES,
                                          .write = write_pprof};
