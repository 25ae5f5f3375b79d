/* Patterns of suppressions, against a matcher that tries everything. */
#include "tools/gate/pattern.h"
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* What a pattern means, in the plainest way: `*` takes nothing, or a character and then again. */
static bool tries(const char *pattern, const char *text)
{
    if (!*pattern)
        return !*text;
    if (*pattern == '*')
        return tries(pattern + 1, text) || (*text && tries(pattern, text + 1));
    return *pattern == *text && *text && tries(pattern + 1, text + 1);
}

static bool expected(const char *pattern, const char *text)
{
    char whole[64] = "";
    size_t size = strlen(pattern);
    bool begin = size && *pattern == '^', end = size > begin && pattern[size - 1] == '$';
    if (!begin)
        strcat(whole, "*");
    memcpy(whole + strlen(whole), pattern + begin, size - begin - end);
    if (!end)
        strcat(whole, "*");
    return tries(whole, text);
}

static void names_match_as_leak_sanitizer_has_it(void **state)
{
    (void)state;
    assert_true(gm_pattern_matches("libcublasLt.so", "/usr/lib/libcublasLt.so.13"));
    assert_true(gm_pattern_matches("^MyPool::grow$", "MyPool::grow"));
    assert_false(gm_pattern_matches("^MyPool::grow$", "MyPool::grow(int)"));
    assert_true(gm_pattern_matches("^My*::grow", "MyPool::grow(int)"));
    assert_true(gm_pattern_matches("*", ""));
    assert_false(gm_pattern_matches("a", ""));
}

static uint32_t draw(uint32_t *seed, uint32_t below)
{
    *seed = *seed * 1664525 + 1013904223;
    return (uint32_t)((uint64_t)*seed * below >> 32);
}

static void random_patterns_match_what_they_mean(void **state)
{
    uint32_t seed = 1;
    size_t matched = 0;
    (void)state;
    for (int round = 0; round < 200000; round++) {
        char pattern[12] = "", text[12] = "";
        for (uint32_t i = 0, size = draw(&seed, 8); i < size; i++)
            pattern[i] = i == 0          ? "ab*^"[draw(&seed, 4)]
                         : i + 1 == size ? "ab*$"[draw(&seed, 4)]
                                         : "ab*"[draw(&seed, 3)];
        for (uint32_t i = 0, size = draw(&seed, 8); i < size; i++)
            text[i] = "ab"[draw(&seed, 2)];
        bool matches = gm_pattern_matches(pattern, text);
        if (matches != expected(pattern, text))
            fail_msg("'%s' and '%s': %d", pattern, text, matches);
        matched += matches;
    }
    assert_in_range(matched, 1000, 199000);
}

static void hostile_patterns_take_linear_time(void **state)
{
    enum { SIZE = 1 << 20 };
    char *text = malloc(SIZE), pattern[] = "a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*a*b";
    (void)state;
    assert_non_null(text);
    memset(text, 'a', SIZE - 1);
    text[SIZE - 1] = 0;
    assert_false(gm_pattern_matches(pattern, text)); /* trying all would not end */
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_match_as_leak_sanitizer_has_it),
        cmocka_unit_test(random_patterns_match_what_they_mean),
        cmocka_unit_test(hostile_patterns_take_linear_time),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
