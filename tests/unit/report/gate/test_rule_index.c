/* The rules of a gate by their index, against each rule tried. */
#include "model/tables.h"
#include "tools/gate/suppressions.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define RULES 60
#define STACKS 500
#define NAME_SIZE 16

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)*seed * below >> 32);
}

/* Few letters, so that pieces are shared, and names shorter than what the index looks for. */
static void draw_name(uint32_t *seed, char name[NAME_SIZE], const char *letters)
{
    uint32_t size = 3 + draw(seed, NAME_SIZE - 4);
    for (uint32_t i = 0; i < size; i++)
        name[i] = letters[draw(seed, (uint32_t)strlen(letters))];
    name[size] = 0;
}

static void write_rule(FILE *file, uint32_t *seed)
{
    static const char *const kinds[] = {"", "fun:", "obj:", "src:"};
    char pattern[NAME_SIZE];
    draw_name(seed, pattern, "abcabcabc*");
    if (draw(seed, 4) == 0) {
        fprintf(file, "leak:c%s%s\n", pattern, draw(seed, 3) == 0 ? "$" : "");
        return;
    }
    fprintf(file, "[rule]\nmatch = %s", draw(seed, 2) ? "..., " : "");
    for (uint32_t i = 0, count = 1 + draw(seed, 3); i < count; i++) {
        draw_name(seed, pattern, "abcabcabc*");
        fprintf(file, "%s%s%s%s", i ? ", " : "", kinds[draw(seed, 4)],
                draw(seed, 3) == 0 ? "^" : "c", pattern);
    }
    fputs(draw(seed, 4) == 0 ? ", $\n" : "\n", file);
    if (draw(seed, 8) == 0)
        fputs("device = 1\n", file);
}

static uint32_t make_stack(struct gm_model *model, uint32_t *seed)
{
    char names[4][3][NAME_SIZE];
    struct gm_frame frames[4] = {0};
    size_t count = 1 + draw(seed, 4);
    for (size_t i = 0; i < count; i++) {
        for (unsigned kind = 0; kind < 3; kind++)
            draw_name(seed, names[i][kind], "abc");
        frames[i] = (struct gm_frame){.function = names[i][0],
                                      .file = draw(seed, 2) ? names[i][1] : NULL,
                                      .module = draw(seed, 2) ? names[i][2] : NULL};
    }
    return gm_model_add_stack(model, &(struct gm_stack){.frames = frames, .count = count});
}

static uint32_t find(const struct gm_suppressions *rules, const struct gm_model *model,
                     uint32_t stack, int device)
{
    struct gm_issue issue = {.code = (char *)"leak", .device = device, .bytes = 1, .count = 1};
    return gm_suppressions_find(rules, &issue, model, stack);
}

static void the_index_finds_the_same_rule(void **state)
{
    struct gm_suppressions rules = {0};
    struct gm_model *model = gm_model_new();
    uint32_t seed = 7, stacks[STACKS], wanted[STACKS], matched = 0;
    char *text = NULL;
    size_t size = 0;
    (void)state;
    FILE *file = open_memstream(&text, &size);
    assert_non_null(file);
    for (unsigned i = 0; i < RULES; i++)
        write_rule(file, &seed);
    fclose(file);
    file = fmemopen(text, size, "r");
    assert_non_null(file);
    assert_true(gm_suppressions_read(&rules, file, "rules", 20261122));
    fclose(file);
    assert_int_equal(rules.count, RULES);
    for (unsigned i = 0; i < STACKS; i++) {
        stacks[i] = make_stack(model, &seed);
        wanted[i] = find(&rules, model, stacks[i], (int)i % 2);
        matched += wanted[i] != GM_NONE;
    }
    assert_in_range(matched, STACKS / 10, STACKS - STACKS / 10);
    gm_suppressions_finish(&rules);
    for (unsigned i = 0; i < STACKS; i++)
        assert_int_equal(find(&rules, model, stacks[i], (int)i % 2), wanted[i]);
    gm_suppressions_free(&rules);
    gm_model_free(model);
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(the_index_finds_the_same_rule)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
