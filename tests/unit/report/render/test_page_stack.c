/* Stacks for people: their own frames in full, a framework's folded, names without noise. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h> /* needs the headers above */

#include "base/short_name.h"
#include "base/text.h"
#include "names/stacks/owner.h"
#include "output/page_stack.h"

#define COUNT(array) (sizeof(array) / sizeof((array)[0]))
#define CPU "libtorch_cpu.so"
#define TORCH(name, library)                                                                       \
    {                                                                                              \
        .function = (name), .module = (library), .framework = (library)                            \
    }
#define PYTHON(name, path, number)                                                                 \
    {                                                                                              \
        .function = (name), .file = (path), .line = (number), .script = true                       \
    }
#define NATIVE(name)                                                                               \
    {                                                                                              \
        .function = (name), .module = "program"                                                    \
    }

static void check_page(const struct gm_frame *frames, size_t count, bool all_frames,
                       const char *wanted)
{
    struct gm_stack stack = {(struct gm_frame *)frames, count, false};
    char *text = NULL;
    size_t size;
    struct gm_page page = {.out = open_memstream(&text, &size), .all_frames = all_frames};
    assert_non_null(page.out);
    gm_page_stack(&page, 2, &stack);
    fclose(page.out);
    assert_string_equal(text, wanted);
    free(text);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void names_lose_types_parameters_and_templates(void **state)
{
    static const char *const names[][2] = {
        {"main", "main"},
        {"at::detail::empty_cuda(c10::ArrayRef<long>, c10::Device)", "at::detail::empty_cuda"},
        {"void at::native::gpu_reduce<float, 512>(at::Tensor const&)", "at::native::gpu_reduce"},
        {"unsigned long sum<int>(int)", "sum"},
        {"at::(anonymous namespace)::create_out(long)", "at::create_out"},
        {"a::b<c<d>, (e)1>::f<&g::h>(int)::{lambda(int)#1}::operator()(int) const",
         "a::b::f::{lambda}::operator()"},
        {"std::ostream& operator<< <char>(std::ostream&, char)", "operator<<"},
        {"a::operator bool() const", "a::operator bool"},
        {"operator new(unsigned long)", "operator new"},
        {"a::operator->()", "a::operator->"},
        {"operator_of(int)", "operator_of"},
        {"decltype(auto) a::b<int>(int)", "a::b"},
        {"decltype (a->b) c::d(int)", "c::d"},
        {"a::b(int) [clone .cold]", "a::b"},
        {"core::drop_in_place::<alloc::Vec<u8>>", "core::drop_in_place"},
        {"<T as core::fmt::Debug>::fmt", "<T as core::fmt::Debug>::fmt"},
        {"libfoo.so+0x12", "libfoo.so+0x12"},
        {"(", "("},
        {"a<", "a"},
        {"", ""},
    };
    (void)state;
    for (size_t i = 0; i < COUNT(names); i++) {
        char text[GM_SHORT_NAME_SIZE];
        gm_short_name(names[i][0], text);
        assert_string_equal(text, names[i][1]);
    }
}

static void a_name_of_any_length_is_cut_between_characters(void **state)
{
    char name[4096], text[GM_SHORT_NAME_SIZE];
    (void)state;
    for (size_t offset = 0; offset < 3; offset++) {
        memset(name, 'x', sizeof(name));
        for (size_t at = offset; at + 3 < sizeof(name); at += 3)
            memcpy(name + at, "\xe2\x82\xac", 3);
        name[sizeof(name) - 1] = 0;
        gm_short_name(name, text);
        for (size_t at = 0, size = strlen(text); at < size;) {
            size_t length = gm_utf8_length((unsigned char *)text + at, size - at);
            assert_true(length > 0);
            at += length;
        }
    }
}

/* ---- whose frame ----------------------------------------------------------------------------- */

static struct gm_text path(const char *text)
{
    return (struct gm_text){text, strlen(text)};
}

static void only_known_libraries_are_a_frameworks(void **state)
{
    (void)state;
    assert_true(gm_is_framework(path("/x/libtorch_cuda.so")));
    assert_true(gm_is_framework(path("/lib/libstdc++.so.6")));
    assert_true(gm_is_framework(path("/lib/ld-linux-x86-64.so.2")));
    assert_true(gm_is_framework(path("libcublas.so.12")));
    assert_true(gm_is_framework(path("/v/site-packages/cupy/cuda/memory.cpython-311.so")));
    assert_false(gm_is_framework(path("/x/libtorch_my_model.so")));
    assert_false(gm_is_framework(path("/home/cupy/program")));
    assert_false(gm_is_framework(path("/v/site-packages/torchlike/x.so")));
    assert_false(gm_is_framework(path("")));
    assert_string_equal(gm_framework_package(path("/v/site-packages/torch/nn/modules/module.py")),
                        "torch");
    assert_null(gm_framework_package(path("/v/site-packages/mine/train.py")));
}

/* ---- folding --------------------------------------------------------------------------------- */

static void a_frameworks_frames_are_one_line_before_the_script(void **state)
{
    static const struct gm_frame frames[] = {
        TORCH("c10::cuda::malloc(int)", "libc10_cuda.so"),
        TORCH("at::_ops::mul_Tensor::redispatch(long)", CPU),
        TORCH("at::_ops::mul_Tensor::call(at::Tensor const&)", CPU),
        TORCH("torch::autograd::THPVariable_mul(_object*)", "libtorch_python.so"),
        PYTHON("step", "/home/me/train.py", 6),
        PYTHON("<module>", "/home/me/train.py", 20),
    };
    (void)state;
    check_page(frames, COUNT(frames), false,
               "  at::_ops::mul_Tensor::call  (4 frames of libc10_cuda.so, libtorch_cpu.so, ...)\n"
               "  step                        /home/me/train.py:6\n"
               "  <module>                    /home/me/train.py:20\n");
}

static void all_frames_folds_nothing(void **state)
{
    static const struct gm_frame frames[] = {
        TORCH("at::inner<int>(int)", CPU),
        TORCH("at::outer(int)", CPU),
        NATIVE("main"),
    };
    (void)state;
    check_page(frames, COUNT(frames), true,
               "  at::inner  libtorch_cpu.so\n"
               "  at::outer  libtorch_cpu.so\n"
               "  main       program\n");
}

static void the_frame_nearest_to_the_application_tells(void **state)
{
    static const struct gm_frame frames[] = {
        TORCH("std::vector<int>::grow()", "libstdc++.so.6"),
        TORCH("std::vector<int>::resize(unsigned long)", "libstdc++.so.6"),
        TORCH("libstdc++.so.6+0x100", "libstdc++.so.6"),
        NATIVE("callback(int)"),
        TORCH("std::thread::run()", "libstdc++.so.6"),
        TORCH("start()", "libc.so.6"),
    };
    (void)state;
    check_page(frames, COUNT(frames), false,
               "  std::vector::resize  (3 frames of libstdc++.so.6)\n"
               "  callback             program\n"
               "  std::thread::run     (2 frames of libstdc++.so.6, libc.so.6)\n");
}

static void a_decorators_wrapper_does_not_stand_for_what_it_wraps(void **state)
{
    static const struct gm_frame frames[] = {
        TORCH("tensorflow::TFE_Execute()", "libtensorflow_cc.so.2"),
        {.function = "zeros", .script = true, .framework = "tensorflow"},
        {.function = "filter.<locals>.wrapper", .script = true, .framework = "tensorflow"},
        PYTHON("keep", "/home/me/train.py", 7),
        {.function = "filter.<locals>.wrapper", .script = true, .framework = "tensorflow"},
        PYTHON("<module>", "/home/me/train.py", 9),
    };
    (void)state;
    check_page(frames, COUNT(frames), false,
               "  zeros                    (3 frames of libtensorflow_cc.so.2, tensorflow)\n"
               "  keep                     /home/me/train.py:7\n"
               "  filter.<locals>.wrapper\n"
               "  <module>                 /home/me/train.py:9\n");
}

static void recursion_is_counted_and_long_stacks_end(void **state)
{
    struct gm_frame frames[40];
    static const char *const names[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j"};
    (void)state;
    for (size_t i = 0; i < 12; i++)
        frames[i] = (struct gm_frame)PYTHON("walk", "/x/tree.py", 3);
    for (size_t i = 0; i < 10; i++)
        frames[12 + i] = (struct gm_frame)NATIVE(names[i]);
    check_page(frames, 22, false,
               "  walk (x12)  /x/tree.py:3\n"
               "  a           program\n"
               "  b           program\n"
               "  c           program\n"
               "  d           program\n"
               "  e           program\n"
               "  f           program\n"
               "  g           program\n"
               "  ... 3 more\n");
}

static void long_names_keep_their_end_and_lines_fit(void **state)
{
    static const struct gm_frame frames[] = {
        NATIVE("first_namespace_of_all::second_namespace::third_namespace::method(int)"),
        NATIVE("a_function_without_any_scope_whose_name_is_longer_than_the_room"),
    };
    (void)state;
    check_page(frames, COUNT(frames), false,
               "  ...::third_namespace::method                  program\n"
               "  a_function_without_any_scope_whose_name_i...  program\n");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(names_lose_types_parameters_and_templates),
        cmocka_unit_test(a_name_of_any_length_is_cut_between_characters),
        cmocka_unit_test(only_known_libraries_are_a_frameworks),
        cmocka_unit_test(a_frameworks_frames_are_one_line_before_the_script),
        cmocka_unit_test(all_frames_folds_nothing),
        cmocka_unit_test(the_frame_nearest_to_the_application_tells),
        cmocka_unit_test(a_decorators_wrapper_does_not_stand_for_what_it_wraps),
        cmocka_unit_test(recursion_is_counted_and_long_stacks_end),
        cmocka_unit_test(long_names_keep_their_end_and_lines_fit),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
