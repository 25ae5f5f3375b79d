/* Fuzz target: rules of the gate. The input is a file of rules; its lines are the names of a stack's frames, too, of
 * which a rule is made. That rule must be understood, and must match the stack. */
#include "fuzz.h"
#include "model/tables.h"
#include "tools/gate/suppressions.h"
#include <stdio.h>

#define FRAMES_MAX 64
#define TODAY 20261122

static bool read_rules(struct gm_suppressions *rules, char *text)
{
    FILE *file = fmemopen(text, strlen(text) + 1, "r");
    demand(file != NULL);
    bool good = gm_suppressions_read(rules, file, "rules", TODAY);
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

/* A stack that the seeds' rules are about, one of the input's own lines, and none: each rule tried
 * finds what the index finds. */
static void try_rules(char *text, struct gm_model *model, uint32_t own)
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
    uint32_t stacks[] = {make_stack(model, names, sizeof(names) / sizeof(names[0])), own,
                         make_stack(model, names, 0)};
    bool is_understood = read_rules(&rules, text);
    uint32_t found[sizeof(stacks) / sizeof(stacks[0])];
    for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++) {
        found[i] = find(&rules, model, stacks[i]);
        demand(found[i] == GM_NONE || found[i] < rules.count);
    }
    gm_suppressions_finish(&rules);
    for (size_t i = 0; i < sizeof(stacks) / sizeof(stacks[0]); i++)
        demand(find(&rules, model, stacks[i]) == found[i]);
    for (size_t i = 0; is_understood && i < rules.count; i++)
        demand(rules.rules[i].frame_count > 0); /* a rule of no frames would match everything */
    gm_suppressions_free(&rules);
}

static void try_names(struct gm_model *model, uint32_t stack)
{
    struct gm_suppressions rules = {0};
    char *frames = gm_rule_frames_of(gm_model_stack(model, stack)), *file;
    demand(asprintf(&file, "[made]\n%s", frames) > 0);
    demand(read_rules(&rules, file));
    demand(find(&rules, model, stack) == 0);
    free(file);
    free(frames);
    gm_suppressions_free(&rules);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size), *copy = text_of(data, size), *lines[FRAMES_MAX];
    size_t count = split(copy, lines, FRAMES_MAX);
    for (size_t i = 0; i < count; i++)
        gm_clean_text(lines[i]); /* as all names of a model are */
    struct gm_model *model = gm_model_new();
    uint32_t stack = make_stack(model, lines, count);
    try_rules(text, model, stack);
    try_names(model, stack);
    gm_model_free(model);
    free(copy);
    free(text);
    return 0;
}
