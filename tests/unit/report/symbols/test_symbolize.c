/* The symbolizer against programs that report where their own code is (symbolize_samples/marks.h),
 * built and treated in many ways, and against damaged and hostile files. */
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>
#include <gelf.h>

#include <cmocka.h> /* needs the headers above */

#include "assert_between.h"

#include "base/text.h"
#include "names/symbols/demangle.h"
#include "names/symbols/symbolize.h"
#include "names/symbols/symbolize_intervals.h"

enum { MAX_MARKS = 32, MAX_FRAMES = 8, MAX_BUILD_ID = 64 };

/* ---- what the samples say about themselves --------------------------------------------------- */

struct mark {
    char name[64];
    uint64_t address;
    unsigned line;
};

struct sample {
    char path[512];
    uint8_t build_id[MAX_BUILD_ID];
    struct gm_module_reference module;
    struct mark marks[MAX_MARKS];
    size_t mark_count;
};

static void read_build_id(struct sample *sample)
{
    const void *build_id;
    int fd = open(sample->path, O_RDONLY);

    assert_true(fd >= 0);
    elf_version(EV_CURRENT);
    Elf *elf = elf_begin(fd, ELF_C_READ, NULL);
    ssize_t size = dwelf_elf_gnu_build_id(elf, &build_id);
    sample->module = (struct gm_module_reference){.path = sample->path};
    if (size > 0) {
        assert_true((size_t)size <= sizeof(sample->build_id));
        memcpy(sample->build_id, build_id, (size_t)size);
        sample->module.build_id = sample->build_id;
        sample->module.build_id_size = (size_t)size;
    }
    elf_end(elf);
    close(fd);
}

static void run_sample(struct sample *sample)
{
    FILE *output = popen(sample->path, "r");

    assert_non_null(output);
    sample->mark_count = 0;
    struct mark *mark = sample->marks;
    while (sample->mark_count < MAX_MARKS &&
           fscanf(output, "%63s %" SCNx64 " %u", mark->name, &mark->address, &mark->line) == 3) {
        sample->mark_count++;
        mark++;
    }
    assert_int_equal(pclose(output), 0);
    assert_true(sample->mark_count > 0);
}

static struct sample load_sample(const char *name)
{
    struct sample sample = {0};

    snprintf(sample.path, sizeof(sample.path), SAMPLES "/%s", name);
    read_build_id(&sample);
    run_sample(&sample);
    sample.module.path = NULL; /* the copy that is returned has another address: see module_of */
    return sample;
}

static struct gm_module_reference module_of(const struct sample *sample)
{
    return (struct gm_module_reference){.path = sample->path,
                                        .build_id = sample->build_id,
                                        .build_id_size = sample->module.build_id_size};
}

static const struct mark *find_mark(const struct sample *sample, const char *name)
{
    for (size_t i = 0; i < sample->mark_count; i++) {
        if (strcmp(sample->marks[i].name, name) == 0)
            return &sample->marks[i];
    }
    fail_msg("%s has no mark \"%s\"", sample->path, name);
    return NULL;
}

/* ---- programs with debug info ---------------------------------------------------------------- */

struct expected_frame {
    const char *function;
    const char *line_mark; /* whose line it is */
};

struct expectation {
    const char *mark; /* whose address it is; NULL ends a list */
    struct expected_frame frames[4];
};

static const struct expectation nested_expectations[] = {
    {"outer", {{"outer", "outer"}}},
    {"innermost",
     {{"innermost", "innermost"}, {"middle", "call_innermost"}, {"outer", "call_middle"}}},
    {"hot", {{"split", "hot"}}},
    {"cold", {{"split", "cold"}}},
    {"return", {{"caller", "call_callee"}}},
    {NULL, {{NULL, NULL}}},
};

static const struct expectation function_in_function_expectations[] = {
    {"held", {{"held", "held"}}},
    {NULL, {{NULL, NULL}}},
};

#define BOX "geometry::Box<long>::"
#define HIDDEN "geometry::(anonymous namespace)::hidden(char const*, geometry::Box<long>&)"

static const struct expectation shapes_expectations[] = {
    {"constructor", {{BOX "Box(long, long)", "constructor"}}},
    {"scaled", {{BOX "scaled(long) const", "scaled"}, {BOX "area(long) const", "call_scaled"}}},
    {"hidden", {{HIDDEN, "hidden"}}},
    {NULL, {{NULL, NULL}}},
};

/* The reduced debug info of clang has no linkage names, so inlined code keeps its plain name. */
static const struct expectation shapes_lines_only_expectations[] = {
    {"constructor", {{BOX "Box(long, long)", "constructor"}}},
    {"scaled", {{"scaled", "scaled"}, {BOX "area(long) const", "call_scaled"}}},
    {"hidden", {{HIDDEN, "hidden"}}},
    {NULL, {{NULL, NULL}}},
};

static const struct expectation gxx_lambda_expectations[] = {
    {"lambda", {{"main::{lambda(int)#1}::operator()(int) const", "lambda"}}},
    {NULL, {{NULL, NULL}}},
};

static void check_frame(const struct sample *sample, const struct gm_source_frame *frame,
                        const struct expected_frame *expected, const char *source)
{
    assert_string_equal(frame->function, expected->function);
    if (source == NULL) {
        assert_null(frame->file);
        assert_int_equal(frame->line, 0);
        return;
    }
    assert_non_null(frame->file);
    assert_string_equal(frame->file, source);
    assert_int_equal(frame->line, find_mark(sample, expected->line_mark)->line);
}

static void check_expectation(struct gm_symbolizer *symbolizer, const struct sample *sample,
                              const struct expectation *expectation, const char *source)
{
    struct gm_module_reference module = module_of(sample);
    struct gm_source_frame frames[MAX_FRAMES];
    size_t expected_count = 0;

    while (expected_count < 4 && expectation->frames[expected_count].function != NULL)
        expected_count++;
    size_t count = gm_symbolize(symbolizer, &module, find_mark(sample, expectation->mark)->address,
                                frames, MAX_FRAMES);
    assert_int_equal(count, expected_count);
    for (size_t i = 0; i < count; i++) {
        check_frame(sample, &frames[i], &expectation->frames[i], source);
        assert_int_equal(frames[i].inlined, i + 1 < count);
    }
}

static void check_expectations(struct gm_symbolizer *symbolizer, const struct sample *sample,
                               const struct expectation *expectations, const char *source)
{
    for (; expectations->mark != NULL; expectations++)
        check_expectation(symbolizer, sample, expectations, source);
}

/* A symbol table has only the outermost function. */
static void check_functions_only(struct gm_symbolizer *symbolizer, const struct sample *sample,
                                 const struct expectation *expectations)
{
    for (; expectations->mark != NULL; expectations++) {
        struct expectation reduced = {.mark = expectations->mark};
        for (size_t i = 0; i < 4 && expectations->frames[i].function != NULL; i++)
            reduced.frames[0].function = expectations->frames[i].function;
        check_expectation(symbolizer, sample, &reduced, NULL);
    }
}

static void check_status(struct gm_symbolizer *symbolizer, const struct sample *sample,
                         enum gm_symbol_status expected)
{
    struct gm_module_reference module = module_of(sample);
    struct gm_symbol_outcome outcome = gm_symbolizer_outcome(symbolizer, &module);

    assert_string_equal(gm_symbol_status_text(outcome.status), gm_symbol_status_text(expected));
    assert_int_equal(outcome.verified, module.build_id_size > 0);
    assert_false(outcome.limited);
    assert_string_equal(outcome.file, sample->path);
}

static struct gm_symbolizer *new_symbolizer(void)
{
    struct gm_symbolizer *symbolizer = gm_symbolizer_new(NULL);

    assert_non_null(symbolizer);
    return symbolizer;
}

/* The state is the sample's name. A sample of a compiler that is not installed is skipped. */
static void skip_if_not_built(const char *name)
{
    char path[512];

    snprintf(path, sizeof(path), SAMPLES "/%s", name);
    if (access(path, X_OK) != 0)
        skip();
}

static void names_functions_files_and_lines_of_c(void **state)
{
    const char *name = *state;
    skip_if_not_built(name);
    struct sample sample = load_sample(name);
    struct gm_symbolizer *symbolizer = new_symbolizer();

    check_expectations(symbolizer, &sample, nested_expectations, SAMPLE_SOURCES "/nested.c");
    if (strncmp(name, "gcc", 3) == 0)
        check_expectations(symbolizer, &sample, function_in_function_expectations,
                           SAMPLE_SOURCES "/nested.c");
    check_status(symbolizer, &sample, GM_SYMBOLS_FULL);
    gm_symbolizer_free(symbolizer);
}

static void names_functions_files_and_lines_of_cxx(void **state)
{
    const char *name = *state;
    skip_if_not_built(name);
    struct sample sample = load_sample(name);
    struct gm_symbolizer *symbolizer = new_symbolizer();

    check_expectations(symbolizer, &sample, shapes_expectations, SAMPLE_SOURCES "/shapes.cpp");
    if (strcmp(name, "gxx") == 0)
        check_expectations(symbolizer, &sample, gxx_lambda_expectations,
                           SAMPLE_SOURCES "/shapes.cpp");
    check_status(symbolizer, &sample, GM_SYMBOLS_FULL);
    gm_symbolizer_free(symbolizer);
}

static void completes_names_of_reduced_debug_info_from_symbols(void **state)
{
    skip_if_not_built(*state);
    struct sample sample = load_sample(*state);
    struct gm_symbolizer *symbolizer = new_symbolizer();

    check_expectations(symbolizer, &sample, shapes_lines_only_expectations,
                       SAMPLE_SOURCES "/shapes.cpp");
    gm_symbolizer_free(symbolizer);
}

static void gcc_did_split_the_function_that_must_be_found_in_both_parts(void **state)
{
    (void)state;
    struct sample sample = load_sample("gcc");

    assert_true(find_mark(&sample, "cold")->address < find_mark(&sample, "outer")->address);
    assert_true(find_mark(&sample, "hot")->address > find_mark(&sample, "outer")->address);
}

/* ---- programs without, or with other debug info ---------------------------------------------- */

static void names_functions_from_symbols_of_c(void **state)
{
    skip_if_not_built(*state);
    struct sample sample = load_sample(*state);
    struct gm_symbolizer *symbolizer = new_symbolizer();

    check_functions_only(symbolizer, &sample, nested_expectations);
    check_status(symbolizer, &sample, GM_SYMBOLS_FUNCTIONS_ONLY);
    gm_symbolizer_free(symbolizer);
}

static void names_functions_from_symbols_of_cxx(void **state)
{
    skip_if_not_built(*state);
    struct sample sample = load_sample(*state);
    struct gm_symbolizer *symbolizer = new_symbolizer();

    check_functions_only(symbolizer, &sample, shapes_expectations);
    check_functions_only(symbolizer, &sample, gxx_lambda_expectations);
    check_status(symbolizer, &sample, GM_SYMBOLS_FUNCTIONS_ONLY);
    gm_symbolizer_free(symbolizer);
}

static void keeps_function_and_line_when_the_split_file_is_lost(void **state)
{
    (void)state;
    struct sample sample = load_sample("gcc-split-lost");
    struct gm_symbolizer *symbolizer = new_symbolizer();
    static const struct expectation expectations[] = {
        {"outer", {{"outer", "outer"}}},
        {"innermost", {{"outer", "innermost"}}},
        {"cold", {{"split", "cold"}}},
        {NULL, {{NULL, NULL}}},
    };

    check_expectations(symbolizer, &sample, expectations, SAMPLE_SOURCES "/nested.c");
    gm_symbolizer_free(symbolizer);
}

static void an_address_without_name_is_one_frame_of_question_marks(void **state)
{
    (void)state;
    struct sample sample = load_sample("gcc-bare");
    struct gm_module_reference module = module_of(&sample);
    struct gm_symbolizer *symbolizer = new_symbolizer();
    struct gm_source_frame frames[MAX_FRAMES];

    assert_int_equal(
        gm_symbolize(symbolizer, &module, find_mark(&sample, "hot")->address, frames, MAX_FRAMES),
        1);
    assert_string_equal(frames[0].function, "??");
    assert_null(frames[0].file);
    assert_false(frames[0].inlined);
    check_status(symbolizer, &sample, GM_SYMBOLS_NONE);
    gm_symbolizer_free(symbolizer);
}

static void addresses_outside_of_code_have_no_name(void **state)
{
    (void)state;
    struct sample sample = load_sample("gcc");
    struct gm_module_reference module = module_of(&sample);
    struct gm_symbolizer *symbolizer = new_symbolizer();
    static const uint64_t addresses[] = {0, 1, 0x10, 0x7fffffff, UINT64_MAX, UINT64_MAX - 0x1000};

    for (size_t i = 0; i < sizeof(addresses) / sizeof(addresses[0]); i++) {
        struct gm_source_frame frame;
        assert_int_equal(gm_symbolize(symbolizer, &module, addresses[i], &frame, 1), 1);
        assert_string_equal(frame.function, "??");
    }
    gm_symbolizer_free(symbolizer);
}

static void fills_no_more_frames_than_asked_for(void **state)
{
    (void)state;
    struct sample sample = load_sample("gcc");
    struct gm_module_reference module = module_of(&sample);
    struct gm_symbolizer *symbolizer = new_symbolizer();
    struct gm_source_frame frames[2] = {{.function = "before"}, {.function = "before"}};

    assert_int_equal(
        gm_symbolize(symbolizer, &module, find_mark(&sample, "innermost")->address, frames, 1), 1);
    assert_string_equal(frames[0].function, "innermost");
    assert_string_equal(frames[1].function, "before");
    gm_symbolizer_free(symbolizer);
}

static void equal_names_are_one_string(void **state)
{
    (void)state;
    struct sample sample = load_sample("gcc");
    struct gm_module_reference module = module_of(&sample);
    struct gm_symbolizer *symbolizer = new_symbolizer();
    struct gm_source_frame hot, cold, again;

    gm_symbolize(symbolizer, &module, find_mark(&sample, "hot")->address, &hot, 1);
    gm_symbolize(symbolizer, &module, find_mark(&sample, "cold")->address, &cold, 1);
    gm_symbolize(symbolizer, &module, find_mark(&sample, "hot")->address, &again, 1);
    assert_ptr_equal(hot.function, cold.function);
    assert_ptr_equal(hot.file, cold.file);
    assert_memory_equal(&hot, &again, sizeof(hot));
    gm_symbolizer_free(symbolizer);
}

/* ---- finding the right file ------------------------------------------------------------------ */

static void check_refused(const struct gm_symbolizer_options *options,
                          const struct gm_module_reference *module, uint64_t address,
                          enum gm_symbol_status expected)
{
    struct gm_symbolizer *symbolizer = gm_symbolizer_new(options);
    struct gm_source_frame frame;

    assert_int_equal(gm_symbolize(symbolizer, module, address, &frame, 1), 1);
    assert_string_equal(frame.function, "??");
    struct gm_symbol_outcome outcome = gm_symbolizer_outcome(symbolizer, module);
    assert_string_equal(gm_symbol_status_text(outcome.status), gm_symbol_status_text(expected));
    assert_null(outcome.file);
    assert_false(outcome.verified);
    gm_symbolizer_free(symbolizer);
}

static void refuses_a_file_with_another_build_id(void **state)
{
    (void)state;
    struct sample sample = load_sample("gcc");
    struct gm_module_reference module = module_of(&sample);
    uint64_t address = find_mark(&sample, "hot")->address;

    sample.build_id[3] ^= 1;
    check_refused(NULL, &module, address, GM_SYMBOLS_MODULE_CHANGED);
    sample.build_id[3] ^= 1;
    module.build_id_size--; /* a prefix is not enough */
    check_refused(NULL, &module, address, GM_SYMBOLS_MODULE_CHANGED);
}

static void refuses_a_file_without_the_recorded_build_id(void **state)
{
    (void)state;
    struct sample sample = load_sample("gcc");
    struct gm_module_reference module = module_of(&sample);

    module.path = SAMPLES "/gcc-no-build-id";
    check_refused(NULL, &module, find_mark(&sample, "hot")->address, GM_SYMBOLS_MODULE_CHANGED);
}

static void believes_a_file_if_no_build_id_was_recorded_but_says_so(void **state)
{
    (void)state;
    struct sample sample = load_sample("gcc");
    struct gm_symbolizer *symbolizer = new_symbolizer();

    sample.module.build_id_size = 0;
    check_expectations(symbolizer, &sample, nested_expectations, SAMPLE_SOURCES "/nested.c");
    check_status(symbolizer, &sample, GM_SYMBOLS_FULL);
    gm_symbolizer_free(symbolizer);
}

static void make_parents(const char *path)
{
    char partial[1024];

    snprintf(partial, sizeof(partial), "%s", path);
    for (char *slash = strchr(partial + 1, '/'); slash != NULL; slash = strchr(slash + 1, '/')) {
        *slash = '\0';
        assert_true(mkdir(partial, 0777) == 0 || errno == EEXIST);
        *slash = '/';
    }
}

struct content {
    uint8_t *bytes;
    size_t size;
};

static struct content read_content(const char *path)
{
    struct stat status;
    FILE *file = fopen(path, "rb");

    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &status), 0);
    struct content content = {.bytes = malloc((size_t)status.st_size),
                              .size = (size_t)status.st_size};
    assert_non_null(content.bytes);
    assert_int_equal(fread(content.bytes, 1, content.size, file), content.size);
    fclose(file);
    return content;
}

static void write_content(const char *path, struct content content)
{
    unlink(path);
    FILE *file = fopen(path, "wb");

    assert_non_null(file);
    assert_int_equal(fwrite(content.bytes, 1, content.size, file), content.size);
    assert_int_equal(fclose(file), 0);
}

static void copy_file(const char *from, const char *to)
{
    struct content content = read_content(from);

    make_parents(to);
    write_content(to, content);
    free(content.bytes);
}

/* Where a debug file for the build-id belongs below `root`. */
static void build_id_path(const char *root, const struct sample *sample, char *path, size_t size)
{
    size_t used =
        (size_t)snprintf(path, size, "%s/usr/lib/debug/.build-id/%02x/", root, sample->build_id[0]);

    for (size_t i = 1; i < sample->module.build_id_size; i++)
        used += (size_t)snprintf(path + used, size - used, "%02x", sample->build_id[i]);
    snprintf(path + used, size - used, ".debug");
}

static void finds_separate_debug_info_by_build_id(void **state)
{
    (void)state;
    static const struct gm_symbolizer_options options = {.sysroot = SAMPLES "/debug-root"};
    struct sample sample = load_sample("gcc-symbols-only");
    struct gm_symbolizer *symbolizer = gm_symbolizer_new(&options);
    char path[1024];

    build_id_path(options.sysroot, &sample, path, sizeof(path));
    copy_file(SAMPLES "/gcc-only-debug", path);
    check_expectations(symbolizer, &sample, nested_expectations, SAMPLE_SOURCES "/nested.c");
    check_status(symbolizer, &sample, GM_SYMBOLS_FULL);
    gm_symbolizer_free(symbolizer);
}

static void a_debug_file_stands_in_for_a_module_that_is_gone(void **state)
{
    (void)state;
    static const struct gm_symbolizer_options options = {.sysroot = SAMPLES "/gone-root"};
    struct sample sample = load_sample("gcc");
    struct gm_symbolizer *symbolizer = gm_symbolizer_new(&options);
    char path[1024];

    build_id_path(options.sysroot, &sample, path, sizeof(path));
    copy_file(SAMPLES "/gcc-only-debug", path);
    snprintf(sample.path, sizeof(sample.path), "/nowhere/program");
    check_expectations(symbolizer, &sample, nested_expectations, SAMPLE_SOURCES "/nested.c");
    struct gm_module_reference module = module_of(&sample);
    struct gm_symbol_outcome outcome = gm_symbolizer_outcome(symbolizer, &module);
    assert_int_equal(outcome.status, GM_SYMBOLS_FULL);
    assert_true(outcome.verified);
    assert_string_equal(outcome.file, path);
    gm_symbolizer_free(symbolizer);
}

static void looks_below_the_sysroot_first(void **state)
{
    (void)state;
    static const struct gm_symbolizer_options options = {.sysroot = SAMPLES "/other-root"};
    struct sample sample = load_sample("gcc");
    struct gm_symbolizer *symbolizer = gm_symbolizer_new(&options);

    copy_file(SAMPLES "/gcc", SAMPLES "/other-root/opt/program");
    snprintf(sample.path, sizeof(sample.path), "/opt/program");
    check_expectations(symbolizer, &sample, nested_expectations, SAMPLE_SOURCES "/nested.c");
    struct gm_module_reference module = module_of(&sample);
    assert_string_equal(gm_symbolizer_outcome(symbolizer, &module).file,
                        SAMPLES "/other-root/opt/program");
    gm_symbolizer_free(symbolizer);
}

static void with_a_sysroot_believes_other_files_only_by_build_id(void **state)
{
    (void)state;
    static const struct gm_symbolizer_options options = {.sysroot = SAMPLES "/empty-root"};
    struct sample sample = load_sample("gcc");
    struct gm_symbolizer *symbolizer = gm_symbolizer_new(&options);
    struct gm_module_reference module = module_of(&sample);

    check_status(symbolizer, &sample, GM_SYMBOLS_FULL);
    gm_symbolizer_free(symbolizer);
    module.build_id_size = 0;
    check_refused(&options, &module, find_mark(&sample, "hot")->address, GM_SYMBOLS_MODULE_MISSING);
}

static void tells_missing_files_from_unreadable_ones(void **state)
{
    (void)state;
    static const struct {
        const char *path;
        enum gm_symbol_status expected;
    } cases[] = {
        {NULL, GM_SYMBOLS_MODULE_MISSING},
        {"", GM_SYMBOLS_MODULE_MISSING},
        {"/nowhere/program", GM_SYMBOLS_MODULE_MISSING},
        {"linux-vdso.so.1", GM_SYMBOLS_MODULE_MISSING},
        {"[anon]", GM_SYMBOLS_MODULE_MISSING},
        {"/dev/zero", GM_SYMBOLS_MODULE_MISSING},
        {SAMPLES, GM_SYMBOLS_MODULE_MISSING},
        {SAMPLES "/pipe", GM_SYMBOLS_MODULE_MISSING},
        {SAMPLE_SOURCES "/nested.c", GM_SYMBOLS_UNREADABLE},
        {SAMPLES "/nothing", GM_SYMBOLS_UNREADABLE},
    };

    assert_true(mkfifo(SAMPLES "/pipe", 0600) == 0 || errno == EEXIST);
    write_content(SAMPLES "/nothing", (struct content){.bytes = (uint8_t[1]){0}, .size = 0});
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct gm_module_reference module = {.path = cases[i].path};
        check_refused(NULL, &module, 0x1000, cases[i].expected);
    }
}

/* ---- answers that are kept on the disk ------------------------------------------------------- */

#define CACHE SAMPLES "/cache"

/* How many modules have answers there; none any more if `empty`. */
static int count_kept(bool empty)
{
    char path[1024];
    int count = 0;
    DIR *folder = opendir(CACHE);

    for (struct dirent *entry; folder != NULL && (entry = readdir(folder)) != NULL;) {
        if (entry->d_name[0] == '.')
            continue;
        count++;
        snprintf(path, sizeof(path), CACHE "/%s", entry->d_name);
        if (empty)
            unlink(path);
    }
    if (folder != NULL)
        closedir(folder);
    return count;
}

struct named {
    size_t count;
    struct gm_source_frame frames[MAX_FRAMES];
};

/* Whether an address is named as a symbolizer that keeps nothing names it. */
static void check_named_as_without(struct gm_symbolizer *symbolizer, struct gm_symbolizer *without,
                                   const struct gm_module_reference *module, uint64_t address)
{
    struct named one = {0}, other = {0};

    one.count = gm_symbolize(symbolizer, module, address, one.frames, MAX_FRAMES);
    other.count = gm_symbolize(without, module, address, other.frames, MAX_FRAMES);
    assert_int_equal(one.count, other.count);
    for (size_t i = 0; i < one.count; i++) {
        assert_string_equal(one.frames[i].function, other.frames[i].function);
        assert_string_equal(one.frames[i].file ? one.frames[i].file : "-",
                            other.frames[i].file ? other.frames[i].file : "-");
        assert_int_equal(one.frames[i].line, other.frames[i].line);
        assert_int_equal(one.frames[i].inlined, other.frames[i].inlined);
    }
}

/* Half of the addresses in a first run, all of them in a second and a third. */
static void names_are_the_same_from_the_cache(void **state)
{
    static const struct gm_symbolizer_options options = {.cache_folder = CACHE};
    const char *name = *state;
    skip_if_not_built(name);
    struct sample sample = load_sample(name);
    struct gm_module_reference module = module_of(&sample);
    bool is_split = strstr(name, "split") != NULL;

    count_kept(true);
    for (int run = 0; run < 3; run++) {
        struct gm_symbolizer *symbolizer = gm_symbolizer_new(&options);
        struct gm_symbolizer *without = new_symbolizer();
        for (size_t i = 0; i < (run == 0 ? sample.mark_count / 2 : sample.mark_count); i++)
            check_named_as_without(symbolizer, without, &module, sample.marks[i].address);
        for (uint64_t address = 0; address < 0x5000; address += run == 0 ? 0x100 : 0x80)
            check_named_as_without(symbolizer, without, &module, address);
        assert_int_equal(gm_symbolizer_outcome(symbolizer, &module).status,
                         gm_symbolizer_outcome(without, &module).status);
        assert_string_equal(gm_symbolizer_outcome(symbolizer, &module).file, sample.path);
        gm_symbolizer_free(symbolizer);
        gm_symbolizer_free(without);
        assert_int_equal(count_kept(false), is_split || module.build_id_size == 0 ? 0 : 1);
    }
}

static void set_times(const char *path, const struct stat *status)
{
    struct timespec times[2] = {status->st_atim, status->st_mtim};

    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Zeros in place of all names, in the same file. */
static void wipe_names(const char *path, const char *name)
{
    struct content content = read_content(path);
    int fd = open(path, O_WRONLY);

    for (size_t i = 0; i + strlen(name) <= content.size; i++)
        if (memcmp(content.bytes + i, name, strlen(name)) == 0)
            memset(content.bytes + i, 'x', strlen(name));
    assert_true(fd >= 0);
    assert_int_equal(write(fd, content.bytes, content.size), (ssize_t)content.size);
    close(fd);
    free(content.bytes);
}

static void check_name_of_hot(const struct sample *sample, const char *expected)
{
    static const struct gm_symbolizer_options options = {.cache_folder = CACHE};
    struct gm_symbolizer *symbolizer = gm_symbolizer_new(&options);
    struct gm_module_reference module = module_of(sample);
    struct gm_source_frame frame;

    gm_symbolize(symbolizer, &module, find_mark(sample, "hot")->address, &frame, 1);
    assert_string_equal(frame.function, expected);
    gm_symbolizer_free(symbolizer);
}

static void answers_are_of_the_file_as_it_was(void **state)
{
    (void)state;
    static const char path[] = SAMPLES "/cached/program";
    struct sample sample = load_sample("gcc");
    struct stat status;

    count_kept(true);
    copy_file(SAMPLES "/gcc", path);
    snprintf(sample.path, sizeof(sample.path), "%s", path);
    check_name_of_hot(&sample, "split");
    assert_int_equal(stat(path, &status), 0);
    wipe_names(path, "split");
    set_times(path, &status);
    check_name_of_hot(&sample, "split"); /* nothing tells that it was changed: not read again */
    status.st_mtim.tv_sec--;
    set_times(path, &status);
    check_name_of_hot(&sample, "xxxxx");
    assert_int_equal(count_kept(false), 2);
    status.st_mtim.tv_sec++;
    set_times(path, &status);
    check_name_of_hot(&sample, "split");
    count_kept(true);
    check_name_of_hot(&sample, "xxxxx");
}

static void a_debug_file_that_comes_later_is_read(void **state)
{
    (void)state;
    static const struct gm_symbolizer_options options = {.sysroot = SAMPLES "/later-root",
                                                         .cache_folder = CACHE};
    struct sample sample = load_sample("gcc-symbols-only");
    char path[1024];

    count_kept(true);
    build_id_path(options.sysroot, &sample, path, sizeof(path));
    make_parents(path);
    unlink(path);
    for (int run = 0; run < 2; run++) {
        struct gm_symbolizer *symbolizer = gm_symbolizer_new(&options);
        check_functions_only(symbolizer, &sample, nested_expectations);
        check_status(symbolizer, &sample, GM_SYMBOLS_FUNCTIONS_ONLY);
        gm_symbolizer_free(symbolizer);
    }
    copy_file(SAMPLES "/gcc-only-debug", path);
    for (int run = 0; run < 2; run++) {
        struct gm_symbolizer *symbolizer = gm_symbolizer_new(&options);
        check_expectations(symbolizer, &sample, nested_expectations, SAMPLE_SOURCES "/nested.c");
        check_status(symbolizer, &sample, GM_SYMBOLS_FULL);
        gm_symbolizer_free(symbolizer);
    }
    assert_int_equal(count_kept(false), 2);
}

/* ---- files that are none --------------------------------------------------------------------- */

/* How often a file was opened since the last time. */
static int count_opens(int watch)
{
    struct inotify_event event;
    int count = 0;

    while (read(watch, &event, sizeof(event)) == (ssize_t)sizeof(event))
        count++;
    assert_int_equal(errno, EAGAIN);
    return count;
}

/* A module, and where libdw looks for a file that it names, or that is named after it. */
static void opens_no_pipe_where_a_module_leads(void **state)
{
    (void)state;
    static const struct {
        const char *sample, *pipe;
    } cases[] = {
        {"gcc-linked", SAMPLES "/pipes/gcc-linked.debug"},
        {"gcc-linked", SAMPLES "/pipes/.debug/gcc-linked.debug"},
        {"gcc-bare", SAMPLES "/pipes/gcc-bare.debug"},
        {"gcc-bare", SAMPLES "/pipes/.debug/gcc-bare"},
        {"gcc-shared", SAMPLES "/pipes/gcc-sharing"},
        {"gcc-shared", SAMPLES "/pipes/.dwz/gcc-sharing"},
        {"gcc-split", SAMPLES "/pipes/gcc-split-nested.dwo"},
        {"gcc-split", SAMPLES "/pipes/gcc-split.dwp"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        struct sample sample = load_sample(cases[i].sample);
        struct gm_source_frame frames[MAX_FRAMES];
        struct gm_symbolizer *symbolizer = new_symbolizer();
        struct gm_module_reference module = module_of(&sample);
        char copy[1024];
        snprintf(copy, sizeof(copy), SAMPLES "/pipes/%s", cases[i].sample);
        copy_file(sample.path, copy);
        make_parents(cases[i].pipe);
        unlink(cases[i].pipe);
        assert_int_equal(mkfifo(cases[i].pipe, 0600), 0);
        int watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
        assert_true(inotify_add_watch(watch, cases[i].pipe, IN_OPEN) >= 0);
        int held = open(cases[i].pipe, O_RDWR | O_CLOEXEC); /* so that an open does not wait */
        assert_int_equal(count_opens(watch), 1);
        module.path = copy;
        gm_symbolize(symbolizer, &module, find_mark(&sample, "hot")->address, frames, MAX_FRAMES);
        assert_string_equal(gm_symbolizer_outcome(symbolizer, &module).file, copy);
        gm_symbolizer_free(symbolizer);
        if (count_opens(watch) != 0)
            fail_msg("%s: opened", cases[i].pipe);
        close(held);
        close(watch);
        unlink(cases[i].pipe);
    }
}

static void reports_debug_info_in_an_unsupported_compression(void **state)
{
    (void)state;
    struct sample sample = load_sample("gcc-other-compression");
    struct content content = read_content(sample.path);
    struct gm_symbolizer *symbolizer = new_symbolizer();
    Elf *elf = elf_memory((char *)content.bytes, content.size);
    Elf_Scn *section = NULL;
    size_t changed = 0;

    while ((section = elf_nextscn(elf, section)) != NULL) {
        GElf_Shdr header;
        assert_non_null(gelf_getshdr(section, &header));
        if ((header.sh_flags & SHF_COMPRESSED) == 0)
            continue;
        const uint32_t unheard_of_method = 0x4711; /* ch_type is first in every Elf*_Chdr */
        memcpy(content.bytes + header.sh_offset, &unheard_of_method, sizeof(unheard_of_method));
        changed++;
    }
    elf_end(elf);
    assert_true(changed > 0);
    snprintf(sample.path, sizeof(sample.path), SAMPLES "/unheard-of-compression");
    write_content(sample.path, content);
    free(content.bytes);
    check_functions_only(symbolizer, &sample, nested_expectations);
    check_status(symbolizer, &sample, GM_SYMBOLS_COMPRESSION);
    gm_symbolizer_free(symbolizer);
}

/* ---- damaged and hostile files --------------------------------------------------------------- */

static void replace_text(struct content content, const char *from, const char *to)
{
    size_t length = strlen(from) + 1;
    size_t replaced = 0;

    for (size_t i = 0; i + length <= content.size; i++) {
        if (memcmp(content.bytes + i, from, length) == 0) {
            memcpy(content.bytes + i, to, length);
            replaced++;
        }
    }
    assert_true(replaced > 0);
}

static void control_characters_in_names_do_not_get_through(void **state)
{
    (void)state;
    struct sample sample = load_sample("gcc-symbols-only");
    struct content content = read_content(sample.path);
    struct gm_module_reference module = module_of(&sample);
    struct gm_symbolizer *symbolizer = new_symbolizer();
    struct gm_source_frame frame;

    replace_text(content, "caller", "\033[2J\n\xff");
    write_content(SAMPLES "/hostile-name", content);
    free(content.bytes);
    module.path = SAMPLES "/hostile-name";
    gm_symbolize(symbolizer, &module, find_mark(&sample, "return")->address, &frame, 1);
    assert_string_equal(frame.function, "?[2J??");
    gm_symbolizer_free(symbolizer);
}

static const char damaged_path[] = SAMPLES "/damaged/copy";

/* Any result must be sane; it need not be true. */
static void symbolize_damaged(const struct sample *sample, struct content content)
{
    struct gm_module_reference module = {.path = damaged_path};
    struct gm_symbolizer *symbolizer = new_symbolizer();

    write_content(damaged_path, content);
    for (size_t i = 0; i < sample->mark_count; i++) {
        struct gm_source_frame frames[MAX_FRAMES];
        size_t count =
            gm_symbolize(symbolizer, &module, sample->marks[i].address, frames, MAX_FRAMES);
        assert_between(count, 1, MAX_FRAMES);
        for (size_t k = 0; k < count; k++) {
            assert_true(strlen(frames[k].function) < GM_DEMANGLE_OUTPUT_SIZE);
            assert_true(frames[k].file == NULL || strlen(frames[k].file) < GM_DEMANGLE_OUTPUT_SIZE);
        }
    }
    gm_symbolizer_free(symbolizer);
}

static void truncated_files_do_not_crash(void **state)
{
    struct sample sample = load_sample(*state);
    struct content content = read_content(sample.path);
    size_t whole = content.size;

    for (size_t part = 0; part < 64; part++) {
        content.size = whole * part / 64;
        symbolize_damaged(&sample, content);
    }
    free(content.bytes);
}

static uint64_t random_state;

static uint64_t next_random(void)
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Bytes change in one window at a time, so that much of the file stays sound and gets read. */
static void damage(struct content content)
{
    static const uint8_t telling[] = {0x00, 0x01, 0x7f, 0x80, 0xff};
    size_t window = 1 + next_random() % 4096;
    size_t start = next_random() % content.size;
    size_t changes = 1 + next_random() % 32;

    for (size_t i = 0; i < changes; i++) {
        uint8_t *byte = &content.bytes[(start + next_random() % window) % content.size];
        uint64_t choice = next_random();
        *byte = choice % 2 == 0 ? (uint8_t)(choice >> 8) : telling[(choice >> 8) % sizeof(telling)];
    }
}

/* GPUMEM_SYMBOLIZE_ROUNDS makes this a longer hunt. */
static void damaged_files_do_not_crash(void **state)
{
    struct sample sample = load_sample(*state);
    struct content sound = read_content(sample.path);
    struct content copy = {.bytes = malloc(sound.size), .size = sound.size};
    const char *rounds_text = getenv("GPUMEM_SYMBOLIZE_ROUNDS");
    unsigned long rounds = rounds_text == NULL ? 150 : strtoul(rounds_text, NULL, 10);

    assert_non_null(copy.bytes);
    for (unsigned long round = 1; round <= rounds; round++) {
        random_state = round * UINT64_C(0x9e3779b97f4a7c15);
        memcpy(copy.bytes, sound.bytes, sound.size);
        damage(copy);
        symbolize_damaged(&sample, copy);
    }
    free(copy.bytes);
    free(sound.bytes);
}

/* ---- names ----------------------------------------------------------------------------------- */

static void decodes_mangled_names(void **state)
{
    (void)state;
    static const struct {
        const char *mangled, *expected;
    } cases[] = {
        {"_ZN3foo3barEi", "foo::bar(int)"},
        {"_ZN3fooILi3EE3barEv", "foo<3>::bar()"},
        {"_ZNSt6vectorIiSaIiEE9push_backEOi",
         "std::vector<int, std::allocator<int> >::push_back(int&&)"},
        {"_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE", "core::fmt::Write::write_fmt"},
        {"_ZN71_$LT$Test$u20$$u2b$$u20$$u27$static$u20$as$u20$foo..Bar$LT$Test$GT$$GT$3bar"
         "17h930b740aa94f1d3aE",
         "<Test + 'static as foo::Bar<Test>>::bar"},
        {"_RNvC6_123foo3bar", "123foo::bar"},
        {"_RNvCs1234_7mycrate3foo", "mycrate::foo"},
        {"_RNvNtNtCs1234_7mycrate3foo3bar3baz.llvm.9D1C9369", "mycrate::foo::bar::baz"},
        {"_RINvNtC3std3mem8align_ofjE", "std::mem::align_of::<usize>"},
    };
    char text[GM_DEMANGLE_OUTPUT_SIZE];

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        assert_true(gm_demangle(cases[i].mangled, text, sizeof(text)));
        assert_string_equal(text, cases[i].expected);
    }
}

static void leaves_other_names_alone(void **state)
{
    (void)state;
    static const char *const names[] = {"main",          "_start",          "_Z", "_R", "_ZN3fo",
                                        "__libc_malloc", "_Zebra crossing", ""};
    char text[GM_DEMANGLE_OUTPUT_SIZE];

    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        assert_false(gm_demangle(names[i], text, sizeof(text)));
        assert_string_equal(text, names[i]);
    }
}

static void decodes_names_of_thousands_of_bytes(void **state)
{
    (void)state;
    char name[GM_DEMANGLE_INPUT_LIMIT + 1] = "_ZN";
    char text[GM_DEMANGLE_OUTPUT_SIZE];

    for (int i = 0; i < 1000; i++)
        strcat(name, "1a");
    strcat(name, "Ev");
    assert_true(gm_demangle(name, text, sizeof(text)));
    assert_int_equal(strlen(text), 1000 + 999 * 2 + 2); /* a::a::...::a() */
}

static void cuts_names_that_are_too_long(void **state)
{
    (void)state;
    size_t length = 1 << 20;
    char *name = malloc(length + 1);
    char text[GM_DEMANGLE_OUTPUT_SIZE];

    assert_non_null(name);
    memset(name, 'P', length);
    name[length] = '\0';
    memcpy(name, "_Z1f", 4);
    assert_false(gm_demangle(name, text, sizeof(text)));
    assert_int_equal(strlen(text), sizeof(text) - 1);
    assert_string_equal(text + sizeof(text) - 4, "...");
    free(name);
}

/* Each step doubles the type: the whole name would have 2^60 characters and more. */
static void cuts_names_that_explode(void **state)
{
    (void)state;
    char name[GM_DEMANGLE_INPUT_LIMIT + 1] = "_Z1fSt4pairIiiE";
    char text[GM_DEMANGLE_OUTPUT_SIZE];
    static const char digits[] = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";

    /* S_ is std::pair, S0_ is std::pair<int, int>, S1_ is std::pair<S0_, S0_> and so on */
    for (size_t i = 0; i + 1 < sizeof(digits) - 1; i++) {
        char step[32];
        snprintf(step, sizeof(step), "S_IS%c_S%c_E", digits[i], digits[i]);
        strcat(name, step);
    }
    assert_true(gm_demangle(name, text, sizeof(text)));
    assert_int_equal(strlen(text), sizeof(text) - 1);
    assert_string_equal(text + sizeof(text) - 4, "...");
    assert_memory_equal(text, "f(std::pair<int, int>, ", 23);
}

/* The deepest nesting a name of the permitted length can have must not exhaust the stack. */
static void deeply_nested_names_do_not_crash(void **state)
{
    (void)state;
    static const char *const pieces[] = {"P", "PF", "N1a", "1fI1", "XngI", "I", "J", "M1aM"};
    char name[GM_DEMANGLE_INPUT_LIMIT + 1];
    char text[GM_DEMANGLE_OUTPUT_SIZE];

    for (size_t i = 0; i < sizeof(pieces) / sizeof(pieces[0]); i++) {
        size_t used = (size_t)snprintf(name, sizeof(name), "_Z1f");
        while (used + strlen(pieces[i]) + 2 < sizeof(name))
            used += (size_t)snprintf(name + used, sizeof(name) - used, "%s", pieces[i]);
        strcat(name, "i");
        gm_demangle(name, text, sizeof(text));
        assert_true(strlen(text) < sizeof(text));
    }
}

static void cleans_text(void **state)
{
    (void)state;
    static const struct {
        const char *raw, *expected;
    } cases[] = {
        {"plain", "plain"},
        {"tab\tline\nescape\033[0m\x7f", "tab?line?escape?[0m?"},
        {"gr\xc3\xbc\xc3\x9f", "gr\xc3\xbc\xc3\x9f"},
        {"\xe2\x82\xac \xf0\x9f\x98\x80", "\xe2\x82\xac \xf0\x9f\x98\x80"},
        {"C1 \xc2\x9b", "C1 ??"},
        {"cut \xe2\x82", "cut ??"},
        {"overlong \xc0\x80 \xe0\x80\x80 \xf0\x80\x80\x80", "overlong ?? ??? ????"},
        {"surrogate \xed\xa0\x80", "surrogate ???"},
        {"\xe2\x80\xae order \xe2\x81\xa6 lines \xe2\x80\xa8 \xe2\x80\x94",
         "??? order ??? lines ??? \xe2\x80\x94"},
        {"beyond \xf4\x90\x80\x80 \xf8", "beyond ???? ?"},
    };

    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        char text[64];
        snprintf(text, sizeof(text), "%s", cases[i].raw);
        gm_clean_text(text);
        assert_string_equal(text, cases[i].expected);
    }
}

/* ---- intervals ------------------------------------------------------------------------------- */

static void finds_the_innermost_range_first(void **state)
{
    (void)state;
    struct gm_intervals set = {0};
    static const struct gm_interval ranges[] = {
        {.start = 10, .end = 100, .value = 0},
        {.start = 20, .end = 40, .value = 1},
        {.start = 20, .end = 30, .value = 2},
        {.start = 20, .end = 30, .value = 3, .preference = 1},
        {.start = 50, .end = 50, .value = 4}, /* empty */
    };
    static const uint32_t expected[] = {3, 2, 1, 0};

    for (size_t i = 0; i < sizeof(ranges) / sizeof(ranges[0]); i++)
        assert_true(gm_intervals_add(&set, ranges[i]));
    gm_intervals_sort(&set);
    assert_int_equal(set.count, 4);
    struct gm_interval_search search = gm_intervals_search(&set, 25);
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(gm_intervals_next(&search)->value, expected[i]);
    assert_null(gm_intervals_next(&search));
    search = gm_intervals_search(&set, 40);
    assert_int_equal(gm_intervals_next(&search)->value, 0);
    search = gm_intervals_search(&set, 100);
    assert_null(gm_intervals_next(&search));
    search = gm_intervals_search(&set, 9);
    assert_null(gm_intervals_next(&search));
    gm_intervals_clear(&set);
}

/* cmocka shows the name; the state is the sample's name. */
#define ON_SAMPLE(function, sample)                                                                \
    {                                                                                              \
#function " (" sample ")", function, NULL, NULL, (void *)(uintptr_t)sample                 \
    }

int main(void)
{
    const struct CMUnitTest tests[] = {
        ON_SAMPLE(names_functions_files_and_lines_of_c, "gcc"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "gcc-dwarf4"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "gcc-unoptimized"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "gcc-fixed-address"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "gcc-lto"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "gcc-compressed"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "gcc-compressed-old"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "gcc-lines-only"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "gcc-no-build-id"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "gcc-linked"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "gcc-relative"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "gcc-split"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "gcc-split-dwarf4"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "clang"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "clang-dwarf4"),
        ON_SAMPLE(names_functions_files_and_lines_of_c, "clang-split"),
        ON_SAMPLE(names_functions_files_and_lines_of_cxx, "gxx"),
        ON_SAMPLE(names_functions_files_and_lines_of_cxx, "gxx-lines-only"),
        ON_SAMPLE(names_functions_files_and_lines_of_cxx, "clangxx"),
        ON_SAMPLE(completes_names_of_reduced_debug_info_from_symbols, "clangxx-lines-only"),
        ON_SAMPLE(names_functions_from_symbols_of_c, "gcc-symbols-only"),
        ON_SAMPLE(names_functions_from_symbols_of_c, "gcc-mini-symbols"),
        ON_SAMPLE(names_functions_from_symbols_of_cxx, "gxx-symbols-only"),
        cmocka_unit_test(gcc_did_split_the_function_that_must_be_found_in_both_parts),
        cmocka_unit_test(keeps_function_and_line_when_the_split_file_is_lost),
        cmocka_unit_test(an_address_without_name_is_one_frame_of_question_marks),
        cmocka_unit_test(addresses_outside_of_code_have_no_name),
        cmocka_unit_test(fills_no_more_frames_than_asked_for),
        cmocka_unit_test(equal_names_are_one_string),
        cmocka_unit_test(refuses_a_file_with_another_build_id),
        cmocka_unit_test(refuses_a_file_without_the_recorded_build_id),
        cmocka_unit_test(believes_a_file_if_no_build_id_was_recorded_but_says_so),
        cmocka_unit_test(finds_separate_debug_info_by_build_id),
        cmocka_unit_test(a_debug_file_stands_in_for_a_module_that_is_gone),
        cmocka_unit_test(looks_below_the_sysroot_first),
        cmocka_unit_test(with_a_sysroot_believes_other_files_only_by_build_id),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gcc"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gcc-dwarf4"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gcc-lto"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gcc-compressed"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gcc-lines-only"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gcc-no-build-id"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gcc-relative"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gcc-split"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gcc-split-dwarf4"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gcc-split-lost"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gcc-symbols-only"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gcc-mini-symbols"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gcc-bare"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "clang"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "clang-split"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gxx"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gxx-lines-only"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "gxx-symbols-only"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "clangxx"),
        ON_SAMPLE(names_are_the_same_from_the_cache, "clangxx-lines-only"),
        cmocka_unit_test(answers_are_of_the_file_as_it_was),
        cmocka_unit_test(a_debug_file_that_comes_later_is_read),
        cmocka_unit_test(tells_missing_files_from_unreadable_ones),
        cmocka_unit_test(opens_no_pipe_where_a_module_leads),
        cmocka_unit_test(reports_debug_info_in_an_unsupported_compression),
        cmocka_unit_test(control_characters_in_names_do_not_get_through),
        ON_SAMPLE(truncated_files_do_not_crash, "gcc"),
        ON_SAMPLE(truncated_files_do_not_crash, "gcc-compressed"),
        ON_SAMPLE(damaged_files_do_not_crash, "gcc"),
        ON_SAMPLE(damaged_files_do_not_crash, "gcc-dwarf4"),
        ON_SAMPLE(damaged_files_do_not_crash, "gcc-symbols-only"),
        ON_SAMPLE(damaged_files_do_not_crash, "gxx"),
        cmocka_unit_test(decodes_mangled_names),
        cmocka_unit_test(leaves_other_names_alone),
        cmocka_unit_test(decodes_names_of_thousands_of_bytes),
        cmocka_unit_test(cuts_names_that_are_too_long),
        cmocka_unit_test(cuts_names_that_explode),
        cmocka_unit_test(deeply_nested_names_do_not_crash),
        cmocka_unit_test(cleans_text),
        cmocka_unit_test(finds_the_innermost_range_first),
    };

    return cmocka_run_group_tests(tests, NULL, NULL);
}
