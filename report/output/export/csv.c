/* CSV (RFC 4180): one row for each allocation and each block, in the order in which they began; with a
 * moment, one for each place that held memory then. */
#include "output/export/rows.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

/* A text field. A spreadsheet takes what begins with = + - @ for a formula and may run it, so such a
 * name gets an apostrophe in front, as spreadsheets themselves write text. */
static void write_csv_text(FILE *out, const char *text)
{
    const char *guard = text[0] && strchr("=+-@", text[0]) ? "'" : "";
    if (!strpbrk(text, "\",\r\n")) {
        fprintf(out, "%s%s", guard, text);
        return;
    }
    fprintf(out, "\"%s", guard);
    for (const char *at = text; *at; at++) {
        if (*at == '"')
            putc('"', out);
        putc(*at, out);
    }
    putc('"', out);
}

static void write_texts(FILE *out, const struct gm_model_place *place, const char *where)
{
    const char *texts[] = {place->api, place->library ? place->library : "",
                           place->pool ? place->pool : "", where};
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++) {
        putc(',', out);
        write_csv_text(out, texts[i]);
    }
    fputs("\r\n", out);
}

static void write_device(FILE *out, const struct gm_model_place *place)
{
    if (gm_kind_is_host(place->kind))
        fprintf(out, ",%s,%d", gm_kind_name(place->kind), place->is_block);
    else
        fprintf(out, "%d,%s,%d", place->device, gm_kind_name(place->kind), place->is_block);
}

static void write_life(FILE *out, const struct gm_export_rows *rows, size_t number)
{
    const struct gm_model_life *life = &rows->history.lives[number];
    const struct gm_model_place *place = &rows->model->places[life->place];
    const struct gm_export_row_place *row = &rows->places[life->place];
    fprintf(out, "%zu,%" PRIu64 ",", number, life->begin_ns);
    if (life->end_step != GM_NONE)
        fprintf(out, "%" PRIu64, life->end_ns);
    fprintf(out, ",%s,", gm_export_ended(life));
    write_device(out, place);
    fprintf(out, ",0x%" PRIx64 ",%" PRIu64 ",%u", life->address, life->size, row->stack);
    write_texts(out, place, row->place);
}

static void write_csv_lives(FILE *out, const struct gm_model *model)
{
    struct gm_export_rows rows;
    gm_export_rows_begin(&rows, model);
    fputs("id,begin_ns,end_ns,ended,device,kind,is_block,address,bytes,stack,api,library,pool,"
          "place\r\n",
          out);
    for (size_t i = 0; i < rows.history.count; i++)
        write_life(out, &rows, i);
    gm_export_rows_end(&rows);
}

static void write_csv_held(FILE *out, const struct gm_model *model, const struct gm_when *when)
{
    struct gm_model_held held;
    gm_model_held_at(model, when, &held);
    fputs("device,kind,is_block,bytes,count,class,api,library,pool,place\r\n", out);
    for (size_t i = 0; i < held.count; i++) {
        const struct gm_model_sample *sample = &held.samples[i];
        const struct gm_model_place *place = &model->places[sample->place];
        char *where = gm_export_place(model, place);
        write_device(out, place);
        fprintf(out, ",%" PRId64 ",%" PRId64 ",%s", sample->bytes, sample->count,
                place->leak_class ? gm_leak_class_name(place->leak_class) : "");
        write_texts(out, place, where);
        free(where);
    }
    gm_model_held_free(&held);
}

static void write_csv(FILE *out, const struct gm_model *model,
                      const struct gm_output_options *options)
{
    if (options->when.kind == GM_WHEN_DEFAULT)
        write_csv_lives(out, model);
    else
        write_csv_held(out, model, &options->when);
}

const struct gm_output gm_export_csv = {
    .name = "csv", .needs = GM_NEEDS_MOMENTS, .write = write_csv};
