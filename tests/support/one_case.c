/* GPUMEM_TEST_CASE=PATTERN runs the cases of a test whose names match, with * and ?, and no others. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>

#include <cmocka.h>

__attribute__((constructor)) static void choose_cases(void)
{
    const char *pattern = getenv("GPUMEM_TEST_CASE");
    if (pattern)
        cmocka_set_test_filter(pattern);
}
