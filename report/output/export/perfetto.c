/* Perfetto's protobuf trace: https://perfetto.dev/docs/reference/trace-packet-proto. A counter for
 * each group, on one scale; the program's marks; and for each group two heap profiles, at its peak and
 * at the end of the run. All packets are of one sequence, whose first clears its state. */
#include "base/memory.h"
#include "base/text.h"
#include "output/export/proto.h"
#include <stdlib.h>
#include <string.h>

enum {
    SEQUENCE = 1,
    PROCESS_TRACK = 1,
    MARKS_TRACK = 2,
    FIRST_COUNTER = 3,
    GROUPS = 300,       /* more than there are devices; further ones share the last */
    WHOLE_SEQUENCE = 1, /* TracePacket.sequence_flags: its interned data begin here ... */
    USES_SEQUENCE = 2,  /* ... and are needed here */
};

struct group {
    char name[GM_GROUP_TEXT];
    uint64_t live;
    uint64_t peak;
    uint64_t peak_ns;
};

enum table { FUNCTIONS, PATHS, CALLSTACKS, TABLES };

struct trace {
    FILE *out;
    const struct gm_model *model;
    struct gm_export_text packet, part, inner;
    struct gm_proto_strings strings;
    struct gm_map interned[TABLES]; /* numbers that were written: of strings, of places */
    struct group groups[GROUPS];
    unsigned group_count;
    uint16_t *group_of; /* by place: number and one; 0 not met */
    bool *has_frame;    /* by number of the model */
    size_t frame_capacity;
    uint32_t dumps;
};

/* Ends the packet that `packet` holds. */
static void end_packet(struct trace *trace)
{
    struct gm_export_text whole = {0};
    gm_proto_number(&trace->packet, 10, SEQUENCE);
    gm_proto_message(&whole, 1, &trace->packet);
    fwrite(whole.bytes, 1, whole.size, trace->out);
    gm_export_text_free(&whole);
}

/* ---- tracks ---------------------------------------------------------------------------------- */

static void write_process(struct trace *trace, const struct gm_model_run *run)
{
    char *name = gm_clean_copy(run->executable);
    gm_proto_number(&trace->inner, 1, run->pid);
    gm_proto_text(&trace->inner, 6, name);
    gm_proto_number(&trace->part, 1, PROCESS_TRACK);
    gm_proto_message(&trace->part, 3, &trace->inner);
    gm_proto_number(&trace->packet, 13, WHOLE_SEQUENCE);
    gm_proto_message(&trace->packet, 60, &trace->part);
    end_packet(trace);
    free(name);
}

static void write_track(struct trace *trace, uint64_t track, const char *name, bool is_counter)
{
    gm_proto_number(&trace->part, 1, track);
    gm_proto_text(&trace->part, 2, name);
    gm_proto_number(&trace->part, 5, PROCESS_TRACK);
    if (is_counter) {
        gm_proto_number(&trace->inner, 3, 3); /* bytes */
        gm_proto_text(&trace->inner, 7, "gpumem");
        gm_proto_message(&trace->part, 8, &trace->inner);
    }
    gm_proto_message(&trace->packet, 60, &trace->part);
    end_packet(trace);
}

static struct group *group_of(struct trace *trace, uint32_t place)
{
    char name[GM_GROUP_TEXT];
    unsigned number = 0;
    if (trace->group_of[place])
        return &trace->groups[trace->group_of[place] - 1];
    gm_place_group(&trace->model->places[place], name);
    while (number < GROUPS - 1 && number < trace->group_count &&
           strcmp(trace->groups[number].name, name) != 0)
        number++;
    if (number == trace->group_count) {
        memcpy(trace->groups[trace->group_count++].name, name, sizeof(name));
        write_track(trace, FIRST_COUNTER + number, name, true);
    }
    trace->group_of[place] = (uint16_t)(number + 1);
    return &trace->groups[number];
}

/* ---- events ---------------------------------------------------------------------------------- */

static void write_counter(struct trace *trace, const struct group *group, uint64_t time_ns)
{
    gm_proto_number(&trace->part, 9, 4); /* a counter */
    gm_proto_number(&trace->part, 11, FIRST_COUNTER + (uint64_t)(group - trace->groups));
    gm_proto_number(&trace->part, 30, group->live);
    gm_proto_number(&trace->packet, 8, time_ns);
    gm_proto_message(&trace->packet, 11, &trace->part);
    end_packet(trace);
}

static void write_events(struct trace *trace, const struct gm_model_history *history)
{
    uint64_t *order = gm_model_history_order(history);
    for (uint32_t step = 0; step < history->steps; step++) {
        if (!order[step])
            continue;
        const struct gm_model_life *life = &history->lives[GM_STEP_LIFE(order[step])];
        bool ends = GM_STEP_ENDS(order[step]);
        uint64_t time = ends ? life->end_ns : life->begin_ns;
        struct group *group = group_of(trace, life->place);
        group->live += ends ? 0 - life->size : life->size;
        if (group->live > group->peak) {
            group->peak = group->live;
            group->peak_ns = time;
        }
        write_counter(trace, group, time);
    }
    free(order);
}

static void write_marks(struct trace *trace, const struct gm_model_history *history)
{
    if (history->marks.count)
        write_track(trace, MARKS_TRACK, "marks", false);
    for (size_t i = 0; i < history->marks.count; i++) {
        char *name = gm_clean_copy(history->marks.list[i].name);
        gm_proto_number(&trace->part, 9, 3); /* an instant */
        gm_proto_number(&trace->part, 11, MARKS_TRACK);
        gm_proto_text(&trace->part, 23, name);
        gm_proto_number(&trace->packet, 8, history->marks.list[i].time_ns);
        gm_proto_message(&trace->packet, 11, &trace->part);
        end_packet(trace);
        free(name);
    }
}

/* ---- heap profiles --------------------------------------------------------------------------- */

/* Interned strings, frames and mappings have numbers from 1: those of the model or of `strings`, and
 * one. The callstack of a place has the place's. */

/* The number of a string in a table of strings, which gets it if it is new. */
static uint64_t string(struct trace *trace, enum table table, const char *text)
{
    static const unsigned fields[] = {[FUNCTIONS] = 5, [PATHS] = 18};
    uint32_t number = gm_proto_string(&trace->strings, text);
    if (gm_map_get(&trace->interned[table], number) == GM_NONE) {
        gm_map_set(&trace->interned[table], number, number);
        gm_proto_number(&trace->inner, 1, (uint64_t)number + 1);
        gm_proto_text(&trace->inner, 2, text);
        gm_proto_message(&trace->part, fields[table], &trace->inner);
    }
    return (uint64_t)number + 1;
}

/* Interns what a frame refers to, and notes the frame for this packet. */
static uint64_t frame(struct trace *trace, struct gm_export_text *frames, uint32_t number)
{
    size_t before = trace->frame_capacity;
    GM_RESERVE(trace->has_frame, trace->frame_capacity, (size_t)number + 1);
    for (size_t i = before; i < trace->frame_capacity; i++)
        trace->has_frame[i] = false;
    if (trace->has_frame[number])
        return (uint64_t)number + 1;
    trace->has_frame[number] = true;
    const struct gm_frame *of = gm_model_frame(trace->model, number);
    struct gm_export_text one = {0};
    gm_proto_number(&one, 1, (uint64_t)number + 1);
    gm_proto_number(&one, 2, string(trace, FUNCTIONS, of->function));
    gm_proto_number(&one, 3, 1); /* the only mapping: the functions have names already */
    if (of->file)
        gm_proto_number(&one, 5, string(trace, PATHS, of->file));
    if (of->line)
        gm_proto_number(&one, 6, of->line);
    gm_proto_message(frames, 6, &one);
    gm_export_text_free(&one);
    return (uint64_t)number + 1;
}

/* The callstack of a place, outermost frame first. */
static void intern_place(struct trace *trace, struct gm_export_text *rest, uint32_t number)
{
    uint32_t stack_number = trace->model->places[number].stack;
    const struct gm_stack *stack = gm_model_stack(trace->model, stack_number);
    const uint32_t *numbers = gm_model_frames(trace->model, stack_number);
    struct gm_export_text callstack = {0};
    if (gm_map_get(&trace->interned[CALLSTACKS], number) != GM_NONE)
        return;
    gm_map_set(&trace->interned[CALLSTACKS], number, number);
    gm_proto_number(&callstack, 1, (uint64_t)number + 1);
    for (size_t i = gm_export_frame_count(stack); i-- > 0;)
        gm_proto_number(&callstack, 2, frame(trace, rest, numbers[i]));
    gm_proto_message(rest, 7, &callstack);
    gm_export_text_free(&callstack);
}

/* Samples [from, to), which are of one group, as a heap profile of that name. */
static void write_dump(struct trace *trace, const struct gm_model_run *run,
                       const struct gm_model_held *held, size_t from, size_t to, uint64_t time_ns)
{
    struct gm_export_text rest = {0}, dump = {0};
    char name[GM_GROUP_TEXT];
    for (size_t i = from; i < to; i++)
        intern_place(trace, &rest, held->samples[i].place);
    if (trace->dumps == 0) {
        gm_proto_number(&trace->inner, 1, 1);
        gm_proto_message(&rest, 19, &trace->inner);
    }
    gm_export_add_bytes(&trace->part, rest.bytes, rest.size);
    gm_proto_message(&trace->packet, 12, &trace->part);
    gm_proto_number(&dump, 1, run->pid);
    for (size_t i = from; i < to; i++) {
        gm_proto_number(&trace->inner, 1, (uint64_t)held->samples[i].place + 1);
        gm_proto_number(&trace->inner, 2, (uint64_t)held->samples[i].bytes);
        gm_proto_number(&trace->inner, 5, (uint64_t)held->samples[i].count);
        gm_proto_message(&dump, 2, &trace->inner);
    }
    gm_proto_number(&dump, 9, time_ns);
    gm_proto_text(&dump, 11,
                  gm_place_group(&trace->model->places[held->samples[from].place], name));
    gm_proto_message(&trace->part, 5, &dump);
    gm_proto_number(&trace->part, 7, trace->dumps++);
    gm_proto_number(&trace->packet, 8, time_ns);
    gm_proto_number(&trace->packet, 13, USES_SEQUENCE);
    gm_proto_message(&trace->packet, 37, &trace->part);
    end_packet(trace);
    gm_export_text_free(&rest);
    gm_export_text_free(&dump);
}

/* When a moment was: each group has a peak of its own. */
static uint64_t time_of(struct trace *trace, const struct gm_model_run *run,
                        const struct gm_when *when, uint32_t place)
{
    if (when->kind == GM_WHEN_PEAK)
        return group_of(trace, place)->peak_ns;
    return when->kind == GM_WHEN_TIME ? when->time_ns : run->duration_ns;
}

static void write_dumps(struct trace *trace, const struct gm_model_run *run,
                        const struct gm_when *when)
{
    const struct gm_model_place *places = trace->model->places;
    struct gm_model_held held;
    gm_model_held_at(trace->model, when, &held);
    for (size_t from = 0, to = 0; from < held.count; from = to) {
        char group[GM_GROUP_TEXT], other[GM_GROUP_TEXT];
        gm_place_group(&places[held.samples[from].place], group);
        while (to < held.count &&
               strcmp(gm_place_group(&places[held.samples[to].place], other), group) == 0)
            to++;
        write_dump(trace, run, &held, from, to,
                   time_of(trace, run, when, held.samples[from].place));
    }
    gm_model_held_free(&held);
}

static void write_perfetto(FILE *out, const struct gm_model *model,
                           const struct gm_output_options *options)
{
    struct trace *trace = gm_allocate(1, sizeof(*trace));
    const struct gm_model_run *run = &model->runs[0];
    struct gm_model_history history;
    gm_model_history(model, NULL, &history);
    trace->out = out;
    trace->model = model;
    trace->group_of = gm_allocate(model->place_count + 1, sizeof(*trace->group_of));
    write_process(trace, run);
    write_marks(trace, &history);
    write_events(trace, &history);
    if (options->when.kind == GM_WHEN_DEFAULT) {
        write_dumps(trace, run, &(struct gm_when){.kind = GM_WHEN_PEAK});
        write_dumps(trace, run, &(struct gm_when){.kind = GM_WHEN_END});
    } else {
        write_dumps(trace, run, &options->when);
    }
    gm_model_history_free(&history);
    gm_export_text_free(&trace->packet);
    gm_export_text_free(&trace->part);
    gm_export_text_free(&trace->inner);
    gm_proto_strings_free(&trace->strings);
    for (unsigned table = 0; table < TABLES; table++)
        gm_map_free(&trace->interned[table]);
    free(trace->has_frame);
    free(trace->group_of);
    free(trace);
}

const struct gm_output gm_export_perfetto = {
    .name = "perfetto", .needs = GM_NEEDS_MOMENTS, .write = write_perfetto};
