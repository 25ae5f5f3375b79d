/* CUDA's errors by the layer that the program called. tests/table/cuda_errors.py has the names. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h> /* needs the headers above */

#include "output/cuda_error.h"

static void an_error_has_the_name_of_its_layer(void **state)
{
    (void)state;
    assert_string_equal(gm_cuda_error_name(2, false), "CUDA_ERROR_OUT_OF_MEMORY");
    assert_string_equal(gm_cuda_error_name(2, true), "cudaErrorMemoryAllocation");
    assert_string_equal(gm_cuda_error_name(999, true), "cudaErrorUnknown");
}

static void a_name_of_the_other_layer_is_better_than_none(void **state)
{
    (void)state;
    assert_string_equal(gm_cuda_error_name(12, false), "cudaErrorInvalidPitchValue");
    assert_string_equal(gm_cuda_error_name(202, true), "CUDA_ERROR_CONTEXT_ALREADY_CURRENT");
    assert_null(gm_cuda_error_name(0, true));
    assert_null(gm_cuda_error_name(UINT32_MAX, false));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_error_has_the_name_of_its_layer),
        cmocka_unit_test(a_name_of_the_other_layer_is_better_than_none),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
