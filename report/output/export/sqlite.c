/* SQL that makes an SQLite database: `gpumem export -f sqlite run.trace | sqlite3 run.db`. Tables of the
 * run, stacks, frames, places and allocations, what was held at the peaks and left at the end, and
 * views of the questions that come first. */
#include "base/text.h"
#include "output/export/rows.h"
#include <inttypes.h>
#include <stdlib.h>

#define ROWS_PER_INSERT 200u

static const char schema[] =
    "BEGIN;\n"
    "CREATE TABLE run(executable TEXT, host_name TEXT, pid INTEGER, start_realtime_ns INTEGER,\n"
    " duration_ns INTEGER, complete INTEGER, simulated INTEGER);\n"
    "CREATE TABLE frames(stack INTEGER, depth INTEGER, function TEXT, file TEXT, line INTEGER);\n"
    "CREATE TABLE places(place INTEGER PRIMARY KEY, stack INTEGER, name TEXT, device INTEGER,\n"
    " kind TEXT, is_block INTEGER, memory TEXT, api TEXT, library TEXT, pool TEXT, class TEXT);\n"
    "CREATE TABLE allocations(id INTEGER PRIMARY KEY, begin_ns INTEGER, end_ns INTEGER, ended "
    "TEXT,\n"
    " address INTEGER, bytes INTEGER, place INTEGER);\n"
    "CREATE TABLE held(moment TEXT, place INTEGER, bytes INTEGER, count INTEGER);\n"
    "CREATE VIEW v_peak AS SELECT memory, bytes, count, name, api, library FROM held\n"
    " JOIN places USING(place) WHERE moment = 'peak' ORDER BY memory, bytes DESC;\n"
    "CREATE VIEW v_leaks AS SELECT memory, class, bytes, count, name, api, library FROM held\n"
    " JOIN places USING(place) WHERE moment = 'end' ORDER BY bytes DESC;\n"
    "CREATE VIEW v_by_place AS SELECT memory, name, count(*) AS count, sum(bytes) AS allocated,\n"
    " sum(CASE WHEN end_ns IS NULL THEN bytes ELSE 0 END) AS alive FROM allocations\n"
    " JOIN places USING(place) GROUP BY place ORDER BY allocated DESC;\n";

static const char indices[] = "CREATE INDEX frames_by_stack ON frames(stack, depth);\n"
                              "CREATE INDEX allocations_by_begin ON allocations(begin_ns);\n"
                              "CREATE INDEX allocations_by_place ON allocations(place);\n"
                              "COMMIT;\n";

/* Rows of one table, several to a statement. */
struct rows {
    FILE *out;
    const char *table;
    uint64_t count;
};

static void begin_row(struct rows *rows)
{
    if (rows->count++ % ROWS_PER_INSERT == 0)
        fprintf(rows->out, "%sINSERT INTO %s VALUES(", rows->count > 1 ? ";\n" : "", rows->table);
    else
        fputs(",\n(", rows->out);
}

static void end_rows(struct rows *rows)
{
    if (rows->count)
        fputs(";\n", rows->out);
    rows->count = 0;
}

/* A literal; NULL for no text. */
static void write_sqlite_text(FILE *out, const char *text)
{
    if (!text) {
        fputs("NULL", out);
        return;
    }
    putc('\'', out);
    for (const char *at = text; *at; at++) {
        if (*at == '\'')
            putc('\'', out);
        putc(*at, out);
    }
    putc('\'', out);
}

static void write_bytes(FILE *out, struct gm_text text)
{
    char *clean = gm_clean_copy(text);
    write_sqlite_text(out, clean);
    free(clean);
}

static void write_sqlite_run(FILE *out, const struct gm_model_run *run)
{
    fputs("INSERT INTO run VALUES(", out);
    write_bytes(out, run->executable);
    putc(',', out);
    write_bytes(out, run->host_name);
    fprintf(out, ",%" PRIu32 ",%" PRIu64 ",%" PRIu64 ",%d,%d);\n", run->pid, run->start_realtime_ns,
            run->duration_ns, run->complete, run->simulated);
}

static void write_sqlite_stacks(FILE *out, const struct gm_export_rows *of)
{
    struct rows rows = {.out = out, .table = "frames"};
    for (size_t i = 0; i < of->stacks.count; i++) {
        const struct gm_stack *stack = gm_model_stack(of->model, of->stacks.stacks[i]);
        size_t count = gm_export_frame_count(stack);
        for (size_t depth = 0; depth < count; depth++) {
            begin_row(&rows);
            fprintf(out, "%zu,%zu,", i, depth);
            write_sqlite_text(out, stack->frames[depth].function);
            putc(',', out);
            write_sqlite_text(out, stack->frames[depth].file);
            fprintf(out, ",%u)", stack->frames[depth].line);
        }
    }
    end_rows(&rows);
}

static void write_sqlite_place(struct rows *rows, struct gm_export_rows *of, uint32_t number)
{
    const struct gm_model_place *place = &of->model->places[number];
    FILE *out = rows->out;
    char group[GM_GROUP_TEXT], *name = gm_export_place(of->model, place);
    begin_row(rows);
    fprintf(out, "%" PRIu32 ",%" PRIu32 ",", number,
            gm_export_stack(&of->stacks, of->model, place->stack));
    write_sqlite_text(out, name);
    if (gm_kind_is_host(place->kind))
        fputs(",NULL,", out);
    else
        fprintf(out, ",%d,", place->device);
    fprintf(out, "'%s',%d,'%s',", gm_kind_name(place->kind), place->is_block,
            gm_place_group(place, group));
    write_sqlite_text(out, place->api);
    putc(',', out);
    write_sqlite_text(out, place->library);
    putc(',', out);
    write_sqlite_text(out, place->pool);
    putc(',', out);
    write_sqlite_text(out, place->leak_class ? gm_leak_class_name(place->leak_class) : NULL);
    putc(')', out);
    free(name);
}

static void write_sqlite_lives(FILE *out, const struct gm_model_history *history)
{
    struct rows rows = {.out = out, .table = "allocations"};
    for (size_t i = 0; i < history->count; i++) {
        const struct gm_model_life *life = &history->lives[i];
        begin_row(&rows);
        fprintf(out, "%zu,%" PRIu64 ",", i, life->begin_ns);
        if (life->end_step == GM_NONE)
            fputs("NULL", out);
        else
            fprintf(out, "%" PRIu64, life->end_ns);
        /* SQLite's integers are signed. */
        fprintf(out, ",'%s',%" PRId64 ",%" PRIu64 ",%" PRIu32 ")", gm_export_ended(life),
                (int64_t)life->address, life->size, life->place);
    }
    end_rows(&rows);
}

static void write_sqlite_held(struct rows *rows, const struct gm_model *model, const char *moment,
                              const struct gm_when *when)
{
    struct gm_model_held held;
    gm_model_held_at(model, when, &held);
    for (size_t i = 0; i < held.count; i++) {
        begin_row(rows);
        fprintf(rows->out, "'%s',%" PRIu32 ",%" PRId64 ",%" PRId64 ")", moment,
                held.samples[i].place, held.samples[i].bytes, held.samples[i].count);
    }
    gm_model_held_free(&held);
}

static void write_sqlite(FILE *out, const struct gm_model *model,
                         const struct gm_output_options *options)
{
    struct gm_export_rows of;
    struct rows rows = {.out = out, .table = "places"};
    gm_export_rows_begin(&of, model);
    fputs(schema, out);
    write_sqlite_run(out, &model->runs[0]);
    for (uint32_t i = 0; i < model->place_count; i++)
        write_sqlite_place(&rows, &of, i);
    end_rows(&rows);
    write_sqlite_stacks(out, &of);
    write_sqlite_lives(out, &of.history);
    rows.table = "held";
    write_sqlite_held(&rows, model, "peak", &(struct gm_when){.kind = GM_WHEN_PEAK});
    write_sqlite_held(&rows, model, "end", &(struct gm_when){.kind = GM_WHEN_END});
    if (options->when.kind == GM_WHEN_TIME || options->when.kind == GM_WHEN_OOM)
        write_sqlite_held(&rows, model, options->when.kind == GM_WHEN_OOM ? "oom" : "time",
                          &options->when);
    end_rows(&rows);
    fputs(indices, out);
    gm_export_rows_end(&of);
}

const struct gm_output gm_export_sqlite = {
    .name = "sqlite", .needs = GM_NEEDS_MOMENTS, .write = write_sqlite};
