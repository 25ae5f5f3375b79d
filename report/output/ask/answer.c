/* See answer.h. */
#include "output/ask/answer.h"
#include "base/memory.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#define FORMAT 1         /* of the answers; docs/ask.md */
#define SUBJECT_MAX 300u /* a longer path stands as TRACE in the commands */
#define CUT_MAX 64u

void gm_answer_step(struct gm_answer *answer, const char *why, const char *words, ...)
{
    va_list list;
    if (answer->step_count == GM_ANSWER_STEPS)
        return;
    struct gm_answer_step *step = &answer->steps[answer->step_count++];
    step->why = why;
    va_start(list, words);
    vsnprintf(step->words, sizeof(step->words), words, list);
    va_end(list);
}

void gm_answer_step_on(struct gm_answer *answer, const char *subject, const char *why,
                       const char *words)
{
    size_t number = answer->step_count;
    gm_answer_step(answer, why, "%s", words);
    if (answer->step_count > number)
        answer->steps[number].subject = subject;
}

/* ---- texts ----------------------------------------------------------------------------------- */

static bool is_continuation(char byte)
{
    return ((unsigned char)byte & 0xc0) == 0x80;
}

static void write_cut(struct gm_answer *answer, struct gm_json *json, const char *key,
                      const char *text, size_t most, bool is_path)
{
    size_t size = text ? strlen(text) : 0;
    most = answer->cut > 1 ? most / answer->cut + 8 : most;
    if (size <= most) {
        gm_json_string(json, key, text);
        return;
    }
    char *cut = gm_allocate(most + 8, 1);
    size_t from = is_path ? size - most : 0, end = is_path ? size : most;
    while (from < end && is_continuation(text[from]))
        from++;
    while (end > from && !is_path && is_continuation(text[end]))
        end--;
    snprintf(cut, most + 8, "%s%.*s%s", is_path ? "..." : "", (int)(end - from), text + from,
             is_path ? "" : "...");
    gm_json_string(json, key, cut);
    free(cut);
}

void gm_answer_text(struct gm_answer *answer, struct gm_json *json, const char *key,
                    const char *text, size_t most)
{
    write_cut(answer, json, key, text, most, false);
}

void gm_answer_path(struct gm_answer *answer, struct gm_json *json, const char *key,
                    const char *path, size_t most)
{
    write_cut(answer, json, key, path, most, true);
}

void gm_answer_frame(struct gm_answer *answer, struct gm_json *json, const struct gm_frame *frame)
{
    gm_answer_text(answer, json, "function", frame->function, GM_ANSWER_PLACE_BYTES);
    if (!frame->file)
        return;
    gm_answer_path(answer, json, "file", frame->file, GM_ANSWER_PLACE_BYTES);
    gm_json_number(json, "line", frame->line);
}

/* ---- commands -------------------------------------------------------------------------------- */

/* A path as a word of the shell; the word TRACE for one that cannot be written so, or is long. */
static void quote_path(const char *path, char word[SUBJECT_MAX + 3])
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                "_./+:@%,-";
    size_t size = strlen(path);
    bool is_told = size && size <= SUBJECT_MAX && !strchr(path, '\'') && path[0] != '-';
    for (size_t i = 0; i < size; i++)
        is_told &= (unsigned char)path[i] >= ' ' && path[i] != 0x7f;
    const char *quote = is_told && strspn(path, plain) != size ? "'" : "";
    snprintf(word, SUBJECT_MAX + 3, "%s%.*s%s", quote, (int)SUBJECT_MAX, is_told ? path : "TRACE",
             quote);
}

static void write_step(const struct gm_answer *answer, struct gm_json *json,
                       const struct gm_answer_step *step)
{
    char subject[SUBJECT_MAX + 3] = "", command[SUBJECT_MAX + 96];
    const char *path = step->subject ? step->subject : answer->subject;
    if (path)
        quote_path(path, subject); /* "": TRACE */
    snprintf(command, sizeof(command), "gpumem ask%s %s%s%s", answer->options, subject,
             *subject ? " " : "", step->words);
    gm_json_open_object(json, NULL);
    gm_json_string(json, "command", command);
    gm_json_string(json, "why", step->why);
    gm_json_close_object(json);
}

static void write_steps(const struct gm_answer *answer, struct gm_json *json)
{
    gm_json_open_array(json, "next");
    for (size_t i = 0; i < answer->step_count; i++)
        write_step(answer, json, &answer->steps[i]);
    gm_json_close_array(json);
}

/* ---- the document ---------------------------------------------------------------------------- */

static void begin_answer(struct gm_json *json, const char *question)
{
    gm_json_open_object(json, NULL);
    gm_json_number(json, "format", FORMAT);
    gm_json_string(json, "question", question);
}

static void write_with(struct gm_answer *answer, FILE *out, size_t first, size_t count)
{
    struct gm_json writer = {.out = out, .on_one_line = true}, *json = &writer;
    char cursor[24];
    begin_answer(json, answer->question);
    if (answer->write_head)
        answer->write_head(answer, json);
    gm_json_number(json, "row_count", answer->row_count);
    gm_json_open_array(json, "rows");
    for (size_t i = 0; i < count; i++)
        answer->write_row(answer, json, first + i);
    gm_json_close_array(json);
    snprintf(cursor, sizeof(cursor), "%zu", first + count);
    gm_json_string(json, "cursor", first + count < answer->row_count ? cursor : NULL);
    write_steps(answer, json);
    gm_json_close_object(json);
    gm_json_end(json);
}

/* The document with so many rows, to be freed. */
static char *make_with(struct gm_answer *answer, size_t first, size_t count, size_t *size)
{
    char *text = NULL;
    *size = 0;
    FILE *out = open_memstream(&text, size);
    if (!out)
        return NULL;
    write_with(answer, out, first, count);
    fclose(out);
    return text;
}

/* How many rows to try next, where so many took more than there is room for. */
static size_t fewer_rows(size_t count, size_t size, size_t made)
{
    size_t fitting = count * size / made;
    return fitting < 1 ? 1 : fitting < count ? fitting : count - 1;
}

void gm_answer_write(struct gm_answer *answer, FILE *out, size_t first, size_t size)
{
    size_t left = first < answer->row_count ? answer->row_count - first : 0;
    size_t count = left < GM_ANSWER_ROWS ? left : GM_ANSWER_ROWS;
    answer->cut = 1;
    for (bool is_written = false; !is_written;) {
        size_t made;
        char *text = make_with(answer, first, count, &made);
        is_written = !text || made <= size ||
                     (count <= 1 && answer->cut == CUT_MAX && answer->step_count <= 1);
        if (text && is_written)
            fwrite(text, 1, made, out);
        else if (count > 1)
            count = fewer_rows(count, size, made);
        else if (answer->cut < CUT_MAX)
            answer->cut *= 2;
        else
            answer->step_count--;
        free(text);
    }
}

void gm_answer_refuse(FILE *out, const char *question, const char *code, const char *message)
{
    struct gm_json writer = {.out = out, .on_one_line = true}, *json = &writer;
    begin_answer(json, question);
    gm_json_open_object(json, "error");
    gm_json_string(json, "code", code);
    gm_json_string(json, "message", message);
    gm_json_close_object(json);
    gm_json_close_object(json);
    gm_json_end(json);
}
