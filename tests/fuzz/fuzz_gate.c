/* Fuzz target: what people write for the gate. The first byte of the input says what the rest is:
 *
 *     r  a file of rules        b  a baseline        o  a line for each argument of gpumem check
 *     n  names of frames, a line each: the rule that is made of them must be understood and match
 *
 * What is read must be read the same again from what it is written as. See fuzz_main.c.
 */
#include "base/memory.h"
#include "commands/check/check.h"
#include "model/tables.h"
#include <getopt.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINES_MAX 64

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

static void demand(bool condition)
{
    if (!condition)
        abort();
}

/* Lines of the text, which is changed. */
static size_t split(char *text, char *lines[LINES_MAX])
{
    size_t count = 0;
    for (char *rest = text, *line; count < LINES_MAX && (line = strsep(&rest, "\n"));)
        lines[count++] = line;
    return count;
}

/* ---- rules ----------------------------------------------------------------------------------- */

static bool read_rules(struct gm_suppressions *rules, char *text)
{
    FILE *file = fmemopen(text, strlen(text) + 1, "r");
    demand(file != NULL);
    bool good = gm_suppressions_read(rules, file, "rules", 20261122);
    fclose(file);
    return good;
}

/* The number of a stack with frames of these names, of three sorts in turn. */
static uint32_t make_stack(struct gm_model *model, char *const *names, size_t count)
{
    struct gm_frame *frames = gm_allocate(count + 1, sizeof(*frames));
    for (size_t i = 0; i < count; i++) {
        frames[i] = (struct gm_frame){.function = names[i], .module = "libsome.so.1"};
        if (i % 3 == 1)
            frames[i] = (struct gm_frame){.function = names[i], .file = names[i], .script = true};
        if (i % 3 == 2)
            frames[i] = (struct gm_frame){.function = "libsome.so.1+0x1234", .module = names[i]};
    }
    uint32_t stack =
        gm_model_add_stack(model, &(struct gm_stack){.frames = frames, .count = count});
    free(frames);
    return stack;
}

static uint32_t find(const struct gm_suppressions *rules, const struct gm_model *model,
                     uint32_t stack)
{
    struct gm_issue issue = {.code = (char *)"leak", .bytes = 1, .count = 1};
    return gm_suppressions_find(rules, &issue, model, stack);
}

static void try_rules(char *text)
{
    static char *const names[] = {"operator new(unsigned long)",
                                  "train",
                                  "std::vector<int>::grow",
                                  "main",
                                  "_start",
                                  "a",
                                  "b*",
                                  "$"};
    struct gm_suppressions rules = {0};
    struct gm_model *model = gm_model_new();
    uint32_t stack = make_stack(model, names, sizeof(names) / sizeof(names[0]));
    if (read_rules(&rules, text))
        find(&rules, model, stack);
    find(&rules, model, make_stack(model, names, 0));
    gm_suppressions_free(&rules);
    gm_model_free(model);
}

static void try_names(char *text)
{
    char *lines[LINES_MAX];
    size_t count = split(text, lines);
    for (size_t i = 0; i < count; i++)
        gm_clean_text(lines[i]);
    struct gm_suppressions rules = {0};
    struct gm_model *model = gm_model_new();
    uint32_t stack = make_stack(model, lines, count);
    char *frames = gm_rule_frames_of(gm_model_stack(model, stack)), *file;
    demand(asprintf(&file, "[made]\n%s", frames) > 0);
    demand(read_rules(&rules, file));
    demand(find(&rules, model, stack) == 0);
    free(file);
    free(frames);
    gm_suppressions_free(&rules);
    gm_model_free(model);
}

/* ---- a baseline ------------------------------------------------------------------------------ */

static bool read_baseline(struct gm_baseline *baseline, FILE *file)
{
    bool good = gm_baseline_read(baseline, file, "baseline");
    fclose(file);
    return good;
}

/* Written and read again, it is the same. */
static void try_baseline(char *text)
{
    static char path[64];
    struct gm_baseline one = {0}, other = {0};
    FILE *file = fmemopen(text, strlen(text) + 1, "r");
    demand(file != NULL);
    if (!*path)
        snprintf(path, sizeof(path), "/tmp/gpumem-fuzz-baseline-%d", getpid());
    if (read_baseline(&one, file) && one.count) {
        demand(gm_baseline_write(path, &one));
        file = fopen(path, "r");
        demand(file != NULL && read_baseline(&other, file));
        demand(one.count == other.count);
        for (size_t i = 0; i < one.count; i++) {
            const struct gm_baseline_entry *same =
                gm_baseline_find(&other, one.entries[i].fingerprint);
            demand(same && same->bytes == one.entries[i].bytes &&
                   same->count == one.entries[i].count);
        }
        unlink(path);
    }
    gm_baseline_free(&one);
    gm_baseline_free(&other);
}

/* ---- options --------------------------------------------------------------------------------- */

static void try_options(char *text)
{
    char *arguments[LINES_MAX + 1] = {(char *)"check"};
    int count = 1 + (int)split(text, arguments + 1);
    struct gm_check check = gm_check_default();
    bool is_over;
    /* Files that an option names are another target's. */
    for (int i = 1; i < count; i++)
        if (strncmp(arguments[i], "--supp", 6) == 0)
            arguments[i] = (char *)"--max-leak";
    if (count > LINES_MAX)
        count = LINES_MAX;
    arguments[count] = NULL;
    optind = 0;
    gm_check_take_options(&check, count, arguments, &is_over);
    gm_check_free(&check);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (size < 2)
        return 0;
    char *text = gm_allocate(size, 1); /* with a NUL behind it */
    memcpy(text, data + 1, size - 1);
    for (size_t i = 0; i + 1 < size; i++)
        if (!text[i])
            text[i] = '\n';
    switch (data[0]) {
    case 'r':
        try_rules(text);
        break;
    case 'n':
        try_names(text);
        break;
    case 'b':
        try_baseline(text);
        break;
    case 'o':
        try_options(text);
        break;
    default:
        break;
    }
    free(text);
    return 0;
}
