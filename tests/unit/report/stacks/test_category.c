/* What memory is for, whose line a stack shows, and whose headers C++ functions come from. */
#include "input/trace/same_stacks.h"
#include "names/stacks/category.h"
#include "names/stacks/known_libraries.h"
#include "names/stacks/stacks.h"
#include "trace_scene.h"

#define TORCH "/v/lib/python3.11/site-packages/torch/"

/* A line of the program, and a block that a stack makes. */
static uint32_t line_of(struct scene *scene, uint32_t line)
{
    uint32_t frame = writer_script_frame(&scene->writer, "/home/me/train.py", "step", line);
    return writer_node(&scene->writer, 0, 0, frame, GM_NODE_SCRIPT);
}

static void block(struct scene *scene, uint32_t stack)
{
    EVENT(GM_EVENT_BLOCK_ALLOC, .address = 0x7f0000000000u + stack * MIB, .size = MIB,
          .stack = stack);
}

static uint32_t called_by(struct scene *scene, uint32_t caller, const char *file,
                          const char *function)
{
    uint32_t frame = writer_script_frame(&scene->writer, file, function, 1);
    return writer_node(&scene->writer, caller, 0, frame, GM_NODE_SCRIPT);
}

static uint32_t native(struct scene *scene, uint32_t caller, const char *path)
{
    uint16_t module = writer_module(&scene->writer, path);
    return writer_node(&scene->writer, caller, module, 0x100, GM_NODE_NATIVE);
}

static void expect(struct scene *scene, uint32_t stack, enum gm_category category)
{
    assert_string_equal(gm_category_name(gm_categories_get(scene->analysis->categories, stack)),
                        gm_category_name(category));
}

static void the_innermost_frame_that_is_known_tells(void **state)
{
    struct scene *scene = *state;
    uint32_t user = line_of(scene, 7);
    uint32_t state_of = called_by(scene, user, TORCH "optim/adam.py", "Adam._init_group");
    uint32_t step = called_by(scene, user, TORCH "optim/adam.py", "_single_tensor_adam");
    uint32_t moved = called_by(scene, user, TORCH "nn/modules/module.py", "Module._apply");
    uint32_t older = called_by(scene, user, TORCH "nn/modules/module.py", "_apply"); /* to 3.10 */
    uint32_t alike = called_by(scene, user, TORCH "nn/modules/module.py", "not_apply");
    uint32_t call = called_by(scene, user, TORCH "nn/modules/module.py", "Module._call_impl");
    uint32_t forward = called_by(scene, call, "/home/me/model.py", "Model.forward");
    uint32_t closure = called_by(scene, step, "/home/me/model.py", "closure");
    uint32_t product = native(scene, call, "/v/libcublas.so.13");
    scene_analyse(scene);
    expect(scene, state_of, GM_CATEGORY_OPTIMIZER);
    expect(scene, step, GM_CATEGORY_WORKSPACE);
    expect(scene, moved, GM_CATEGORY_PARAMETER);
    expect(scene, older, GM_CATEGORY_PARAMETER);
    expect(scene, alike, GM_CATEGORY_OTHER);
    expect(scene, forward, GM_CATEGORY_ACTIVATION); /* also outside of the program's frame */
    expect(scene, closure, GM_CATEGORY_OTHER);      /* the optimizer only calls it */
    expect(scene, product, GM_CATEGORY_WORKSPACE);
    expect(scene, user, GM_CATEGORY_OTHER);
    expect(scene, 0, GM_CATEGORY_OTHER);
}

/* The caller of a stack, and what a reader is shown, are the frame of that line. */
static void expect_line(struct scene *scene, struct gm_stacks *stacks, uint32_t stack,
                        unsigned line)
{
    const struct gm_stack *shown = gm_stacks_get(stacks, stack, 0);
    uint32_t caller = gm_callers_get(scene->analysis->callers, stack);
    const struct gm_node *node = gm_trace_node(scene->trace, caller);
    assert_int_equal(gm_trace_script_frame(scene->trace, node->address)->line, line);
    assert_int_equal(gm_stack_telling_frame(shown)->line, line);
}

static uint32_t at_line(struct scene *scene, uint32_t parent, const char *file, unsigned line)
{
    uint32_t frame = writer_script_frame(&scene->writer, file, "f", line);
    return writer_node(&scene->writer, parent, 0, frame, GM_NODE_SCRIPT);
}

#define VLLM "/v/lib/python3.12/site-packages/vllm/"
#define SGLANG "/v/lib/python3.12/site-packages/sglang/srt/"

/* Frames of one serving program, outermost first, and what the innermost one's memory is for. */
static void a_serving_program_is_told_by_stage(void **state)
{
    enum { FRAMES = 6 };
    struct frame {
        const char *file, *function;
    };
    static const struct frame
        load = {VLLM "v1/worker/gpu/model_runner.py", "GPUModelRunner.load_model"},
        model = {VLLM "model_executor/models/qwen3.py", "Qwen3Attention.__init__"},
        weights = {VLLM "model_executor/layers/linear.py",
                   "UnquantizedLinearMethod.create_weights"},
        profile = {VLLM "v1/worker/gpu/model_runner.py", "GPUModelRunner.profile_run"},
        dummy = {VLLM "v1/worker/gpu_model_runner.py", "GPUModelRunner._dummy_run"},
        call = {TORCH "nn/modules/module.py", "Module._call_impl"},
        forward = {VLLM "model_executor/models/qwen3.py", "Qwen3Attention.forward"},
        capture = {VLLM "v1/worker/gpu_model_runner.py", "GPUModelRunner.capture_model"},
        cache = {VLLM "v1/worker/utils.py", "allocate_kv_cache"},
        older = {VLLM "v1/worker/gpu_model_runner.py", "_allocate_kv_cache_tensors"},
        sample = {VLLM "v1/sample/sampler.py", "Sampler.forward"},
        warm = {VLLM "model_executor/warmup/kernel_warmup.py", "kernel_warmup"},
        inductor = {TORCH "_inductor/compile_fx.py", "compile_fx_inner"},
        lora = {VLLM "lora/layers/base_linear.py", "BaseLinearLayerWithLoRA.create_lora_weights"},
        reduce = {VLLM "distributed/device_communicators/custom.py", "CustomAllreduce.__init__"},
        user = {"/home/me/serve.py", "<module>"},
        pool = {SGLANG "mem_cache/memory_pool.py", "MHATokenToKVPool._create_buffers"},
        runner = {SGLANG "model_executor/model_runner.py", "ModelRunner.__init__"},
        graphs = {SGLANG "model_executor/cuda_graph_runner.py", "CudaGraphRunner.capture"},
        later = {SGLANG "model_executor/runner/decode_cuda_graph_runner.py",
                 "DecodeCudaGraphRunner.capture"},
        setup = {SGLANG "model_executor/model_runner_components/attention_backend_setup.py",
                 "build_attention_backends"},
        layer = {SGLANG "models/qwen3.py", "Qwen3Attention.forward"};
    static const struct {
        struct frame frames[FRAMES];
        enum gm_category category;
    } cases[] = {
        {{user, load, model, weights}, GM_CATEGORY_PARAMETER},
        {{user, load, model}, GM_CATEGORY_PARAMETER},
        {{user, profile, dummy, call, forward}, GM_CATEGORY_ACTIVATION},
        {{user, profile, dummy, call, sample}, GM_CATEGORY_SAMPLER},
        {{user, profile, dummy, inductor, user}, GM_CATEGORY_COMPILE},
        {{user, capture, dummy, call, forward}, GM_CATEGORY_CUDA_GRAPH},
        {{user, profile, cache}, GM_CATEGORY_KV_CACHE},
        {{user, older}, GM_CATEGORY_KV_CACHE},
        {{user, warm, dummy, call, forward}, GM_CATEGORY_COMPILE},
        {{user, load, lora}, GM_CATEGORY_LORA},
        {{user, load, reduce}, GM_CATEGORY_COMMUNICATION},
        {{user, forward}, GM_CATEGORY_OTHER}, /* a model, called by nobody that is known */
        {{user, runner, pool}, GM_CATEGORY_KV_CACHE},
        {{user, runner, graphs, call, layer}, GM_CATEGORY_CUDA_GRAPH},
        {{user, runner, later, call, layer}, GM_CATEGORY_CUDA_GRAPH},
        {{user, setup}, GM_CATEGORY_WORKSPACE},
        {{user, runner}, GM_CATEGORY_INPUT},
    };
    struct scene *scene = *state;
    uint32_t stacks[sizeof(cases) / sizeof(cases[0])] = {0};
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        for (size_t k = 0; k < FRAMES && cases[i].frames[k].file; k++)
            stacks[i] =
                called_by(scene, stacks[i], cases[i].frames[k].file, cases[i].frames[k].function);
    scene_analyse(scene);
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++)
        expect(scene, stacks[i], cases[i].category);
}

/* The line is the engine's that made the module, not the one that started the engine. */
static void the_line_of_a_serving_program_is_its_models(void **state)
{
    struct scene *scene = *state;
    uint32_t user = at_line(scene, 0, "/home/me/serve.py", 1);
    uint32_t engine = at_line(scene, user, VLLM "v1/engine/core.py", 2);
    uint32_t model = at_line(scene, engine, VLLM "model_executor/models/qwen3.py", 3);
    uint32_t layer = at_line(scene, model, VLLM "model_executor/layers/linear.py", 4);
    uint32_t alike = at_line(scene, user, "/home/me/vllm/model_executor/models/qwen3.py", 5);
    scene_analyse(scene);
    struct gm_stacks *stacks = gm_stacks_new(scene->trace, &(struct gm_stacks_options){0});
    expect_line(scene, stacks, engine, 1);
    expect_line(scene, stacks, layer, 3);
    expect_line(scene, stacks, alike, 5); /* from a checkout */
    gm_stacks_free(stacks);
}

/* A root gradient is made in the thread that calls backward(), all others in autograd's own. */
static void a_backward_pass_borrows_the_line_that_called_it(void **state)
{
    struct scene *scene = *state;
    uint32_t line = line_of(scene, 7);
    uint32_t tensor = called_by(scene, line, TORCH "_tensor.py", "Tensor.backward");
    uint32_t backward = called_by(scene, tensor, TORCH "autograd/__init__.py", "backward");
    uint32_t root = called_by(scene, backward, TORCH "autograd/__init__.py", "_make_grads");
    uint32_t thread = native(scene, 0, "/v/libstdc++.so.6");
    uint32_t early = native(scene, thread, "/v/libtorch_cpu.so");
    uint32_t gradient = native(scene, early, "/v/libtorch_cuda.so");
    uint32_t others = native(scene, native(scene, 0, "/home/me/program"), "/v/libtorch_cpu.so");
    block(scene, early); /* before any backward() was seen */
    block(scene, root);
    block(scene, gradient);
    block(scene, others);
    scene_analyse(scene);
    expect(scene, gradient, GM_CATEGORY_GRADIENT);
    expect(scene, root, GM_CATEGORY_GRADIENT);
    expect(scene, others, GM_CATEGORY_OTHER); /* a C++ program's own thread */
    assert_int_equal(gm_callers_get(scene->analysis->callers, gradient), line);
    assert_int_equal(gm_callers_get(scene->analysis->callers, early), early);
    assert_int_not_equal(gm_callers_get(scene->analysis->callers, others), line);
    struct gm_stacks *stacks = gm_stacks_new(scene->trace, &(struct gm_stacks_options){0});
    const struct gm_stack *shown = gm_stacks_get(stacks, gradient, 0);
    assert_int_equal(gm_stack_telling_frame(shown)->line, 7);
    assert_true(gm_stacks_get(stacks, early, 0)->count < shown->count);
    gm_stacks_free(stacks);
}

/* A compiled backward pass runs PyTorch's Python, and what Inductor wrote, in autograd's thread. */
static void a_backward_pass_in_pytorchs_own_python_borrows_it_too(void **state)
{
    struct scene *scene = *state;
    uint32_t line = line_of(scene, 7);
    uint32_t backward =
        called_by(scene, called_by(scene, line, TORCH "_tensor.py", "Tensor.backward"),
                  TORCH "autograd/__init__.py", "backward");
    uint32_t engine = native(scene, native(scene, 0, "/v/libstdc++.so.6"), "/v/libtorch_cpu.so");
    uint32_t apply = called_by(
        scene, native(scene, native(scene, engine, "/v/libtorch_python.so"), "/v/python3.11"),
        TORCH "autograd/function.py", "BackwardCFunction.apply_boxed");
    uint32_t generated = called_by(scene, apply, "/tmp/torchinductor_me/h4/ch4f.py", "Runner.call");
    uint32_t gradient = native(scene, generated, "/v/libtorch_cpu.so");
    uint32_t loader = called_by(scene, native(scene, 0, "/v/python3.11"),
                                TORCH "utils/data/_utils/pin_memory.py", "_pin_memory_loop");
    uint32_t pinned = native(scene, loader, "/v/libtorch_cpu.so");
    block(scene, backward);
    block(scene, gradient);
    block(scene, pinned);
    scene_analyse(scene);
    expect(scene, gradient, GM_CATEGORY_GRADIENT);
    expect(scene, pinned, GM_CATEGORY_INPUT); /* a thread of Python's own is no pass */
    assert_int_equal(gm_callers_get(scene->analysis->callers, gradient), line);
    assert_int_equal(gm_callers_get(scene->analysis->callers, pinned), loader);
}

static void a_line_is_one_on_whatever_way_it_was_reached(void **state)
{
    struct scene *scene = *state;
    uint32_t frame = writer_script_frame(&scene->writer, "/home/me/model.py", "forward", 5);
    uint32_t one = writer_node(&scene->writer, line_of(scene, 1), 0, frame, GM_NODE_SCRIPT);
    uint32_t other = writer_node(&scene->writer, line_of(scene, 2), 0, frame, GM_NODE_SCRIPT);
    uint32_t generated = called_by(scene, one, "/tmp/torchinductor_me/ab/cabc.py", "call");
    scene_analyse(scene);
    struct gm_callers *callers = scene->analysis->callers;
    assert_int_equal(gm_callers_line(callers, one), gm_callers_line(callers, other));
    assert_int_not_equal(gm_callers_get(callers, one), gm_callers_get(callers, other));
    assert_int_equal(gm_callers_get(callers, generated), one);
    assert_int_equal(gm_callers_line(callers, 0), 0);
}

/* Files that a compiler of PyTorch's wrote, and others that look like them. */
static void files_of_compilers_are_known_wherever_their_cache_is(void **state)
{
    static const struct {
        const char *path;
        bool is_generated;
    } files[] = {
        {"/tmp/torchinductor_me/zl/czl5.py", true},
        {"/scratch/cache/zl/czl5wmufqlkykqhi4hymlj3xapyu43fnsd6g47ynfqtd3gckbnqr.py", true},
        {"/scratch/cache/za/czl5wmufqlkykqhi4hymlj3xapyu43fnsd6g47ynfqtd3gckbnqr.py", false},
        {"/scratch/cache/zl/dzl5wmufqlkykqhi4hymlj3xapyu43fnsd6g47ynfqtd3gckbnqr.py", false},
        {"/scratch/cache/zl/czl5wmufqlkykqhi4hymlj3xapyu43fnsd6g47ynfqtd3gckbn_r.py", false},
        {"/scratch/cachezl/czl5wmufqlkykqhi4hymlj3xapyu43fnsd6g47ynfqtd3gckbnqr.py", false},
        {"zl/czl5wmufqlkykqhi4hymlj3xapyu43fnsd6g47ynfqtd3gckbnqr.py", false},
        {"/zl/czl5wmufqlkykqhi4hymlj3xapyu43fnsd6g47ynfqtd3gckbnqr.py", true},
        {"/home/me/model.py", false},
        {"", false},
    };
    (void)state;
    for (size_t i = 0; i < sizeof(files) / sizeof(files[0]); i++)
        assert_int_equal(gm_is_generated((struct gm_text){files[i].path, strlen(files[i].path)}),
                         files[i].is_generated);
}

static void what_pip_installed_is_not_the_users_unless_there_is_nothing_else(void **state)
{
    static const char helper[] = "/v/lib/python3.12/site-packages/transformers/trainer.py";
    static const char mine[] = "/v/lib/python3.12/site-packages/mine/loop.py";
    struct scene *scene = *state;
    uint32_t user = at_line(scene, at_line(scene, 0, "/home/me/train.py", 1), helper, 2);
    uint32_t editable = at_line(scene, at_line(scene, 0, "/home/me/src/mine/a.py", 3), helper, 4);
    uint32_t launched = at_line(scene, 0, "/v/bin/train", 5);
    uint32_t package = at_line(scene, at_line(scene, launched, mine, 6), mine, 7);
    uint32_t inner = at_line(scene, at_line(scene, package, helper, 8), TORCH "_tensor.py", 9);
    uint32_t script = at_line(scene, at_line(scene, 0, "/home/me/bin/train", 10), helper, 11);
    uint32_t again = at_line(scene, at_line(scene, user, mine, 12), helper, 13);
    scene_analyse(scene);
    struct gm_stacks *stacks = gm_stacks_new(scene->trace, &(struct gm_stacks_options){0});
    expect_line(scene, stacks, user, 1);
    expect_line(scene, stacks, editable, 3);
    expect_line(scene, stacks, inner, 7);
    expect_line(scene, stacks, script, 10);
    expect_line(scene, stacks, again, 1);
    assert_string_equal(gm_stacks_get(stacks, inner, 0)->frames[1].framework, "transformers");
    gm_stacks_free(stacks);
}

static void a_cell_of_a_notebook_has_its_number(void **state)
{
    struct scene *scene = *state;
    uint32_t cell = called_by(scene, 0, "<ipython-input-12-8d0a2f3f1c77>", "<module>");
    uint32_t inside = called_by(scene, cell, "<ipython-input-12-8d0a2f3f1c77>", "train");
    uint32_t strange = called_by(scene, 0, "<ipython-input-x>", "train");
    scene_analyse(scene);
    struct gm_stacks *stacks = gm_stacks_new(scene->trace, &(struct gm_stacks_options){0});
    assert_string_equal(gm_stacks_get(stacks, cell, 0)->frames[0].function, "In [12]");
    assert_string_equal(gm_stacks_get(stacks, inside, 0)->frames[0].function, "train (In [12])");
    assert_string_equal(gm_stacks_get(stacks, strange, 0)->frames[0].function, "train");
    gm_stacks_free(stacks);
}

static void headers_are_known_by_name_or_file(void **state)
{
    (void)state;
    assert_string_equal(gm_known_header(NULL, "thrust::device_vector<int>::resize(unsigned)"),
                        "Thrust");
    assert_string_equal(gm_known_header(NULL, "void* cub::detail::take<int>(int)"), "CUB");
    assert_string_equal(gm_known_header("/x/include/cuda_runtime.h", "cudaMalloc<float>"),
                        "CUDA runtime");
    assert_string_equal(gm_known_header("/usr/include/c++/12/vector", "push_back"), "libstdc++");
    assert_null(gm_known_header("/home/me/queue.cpp", "Queue::push(std::vector<int> const&)"));
    assert_null(gm_known_header("/home/me/a.cpp", "run<thrust::plus<int>>(int)"));
    assert_null(gm_known_header(NULL, "mythrust::make()"));
    assert_null(gm_known_header(NULL, ""));
}

/* Frames, innermost first: of PyTorch in C++, of its Python, of the user's, and what it was asked to do. */
static void a_stack_tells_what_pytorch_was_asked_to_do(void **state)
{
    static const struct gm_frame empty = {.function = "at::_ops::empty_strided::redispatch(int)"},
                                 mul = {.function =
                                            "at::_ops::mul_Tensor::call(at::Tensor const&)"},
                                 backward = {.function = "torch::autograd::generated::"
                                                         "MulBackward0_apply_functional(int)"},
                                 optimizer = {.function = "Adam.step",
                                              .file = TORCH "optim/adam.py",
                                              .script = true,
                                              .framework = "torch"},
                                 module = {.function = "Module._call_impl",
                                           .file = TORCH "nn/modules/module.py",
                                           .script = true,
                                           .framework = "torch"},
                                 user = {.function = "step", .file = "train.py", .script = true};
    const struct {
        struct gm_frame frames[4];
        size_t count;
        const char *operation;
    } cases[] = {
        {{empty, mul, user}, 3, "mul"},
        {{empty, mul, module, user}, 4, "mul"},
        {{empty, mul, backward, user}, 4, "MulBackward0"},
        {{empty, optimizer, user}, 3, "optimizer step"},
        {{user, mul}, 2, ""}, /* beyond the line */
        {{module, user}, 2, ""},
        {{empty}, 1, "empty_strided"},
        {{user}, 0, ""},
    };
    char text[GM_OPERATION_TEXT], many[4 * GM_OPERATION_TEXT];
    (void)state;
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gm_stack stack = {(struct gm_frame *)cases[i].frames, cases[i].count, false};
        assert_string_equal(gm_stack_operation(&stack, text), cases[i].operation);
    }
    memset(many, 'x', sizeof(many));
    memcpy(many, "at::_ops::", 10);
    many[sizeof(many) - 1] = 0;
    struct gm_frame hostile = {.function = many};
    struct gm_stack stack = {&hostile, 1, false};
    assert_int_equal(strlen(gm_stack_operation(&stack, text)), GM_OPERATION_TEXT - 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        SCENE_TEST(the_innermost_frame_that_is_known_tells),
        SCENE_TEST(a_serving_program_is_told_by_stage),
        SCENE_TEST(the_line_of_a_serving_program_is_its_models),
        SCENE_TEST(a_backward_pass_borrows_the_line_that_called_it),
        SCENE_TEST(a_backward_pass_in_pytorchs_own_python_borrows_it_too),
        cmocka_unit_test(files_of_compilers_are_known_wherever_their_cache_is),
        SCENE_TEST(a_line_is_one_on_whatever_way_it_was_reached),
        SCENE_TEST(what_pip_installed_is_not_the_users_unless_there_is_nothing_else),
        SCENE_TEST(a_cell_of_a_notebook_has_its_number),
        cmocka_unit_test(headers_are_known_by_name_or_file),
        cmocka_unit_test(a_stack_tells_what_pytorch_was_asked_to_do),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
