/* What is kept of a module's symbols: it comes back as it was, or not at all. */
#include <dirent.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h> /* needs the headers above */

#define XXH_INLINE_ALL
#include <xxhash.h>

#include "names/cache/answers.h"
#include "names/cache/folder.h"

static const uint8_t build_id[20] = {0xab, 0xcd, 0xef, 1, 2, 3};
enum { IDENTITY = 7 };

/* ---- a folder for each test ------------------------------------------------------------------- */

static int make_folder(void **state)
{
    char path[] = "/tmp/test_answers.XXXXXX";
    *state = mkdtemp(path) ? strdup(path) : NULL;
    return *state ? 0 : -1;
}

static int remove_folder(void **state)
{
    char command[PATH_MAX];
    snprintf(command, sizeof(command), "rm -rf '%s'", (char *)*state);
    free(*state);
    return system(command);
}

/* The only file of the folder. */
static void find_file(const char *folder, char path[PATH_MAX])
{
    DIR *open_folder = opendir(folder);
    int count = 0;
    assert_non_null(open_folder);
    for (struct dirent *entry; (entry = readdir(open_folder));)
        if (entry->d_name[0] != '.') {
            snprintf(path, PATH_MAX, "%s/%s", folder, entry->d_name);
            count++;
        }
    closedir(open_folder);
    assert_int_equal(count, 1);
}

static size_t read_all(const char *path, uint8_t **bytes)
{
    struct stat status;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fstat(fileno(file), &status), 0);
    *bytes = malloc((size_t)status.st_size + 1);
    assert_int_equal(fread(*bytes, 1, (size_t)status.st_size, file), status.st_size);
    fclose(file);
    return (size_t)status.st_size;
}

static void write_all(const char *path, const uint8_t *bytes, size_t size)
{
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    fclose(file);
}

/* ---- what is kept ----------------------------------------------------------------------------- */

static const struct gm_raw_frame chain[] = {
    {"_ZN1a1bEv", GM_NAME_FROM_LINKAGE, true, "/build", "a.cpp", 12},
    {"c", GM_NAME_FROM_SOURCE, true, NULL, "/src/c.h", 4294967295u},
    {"d@@V1", GM_NAME_FROM_SYMBOL, false, NULL, NULL, 0},
};
static const struct gm_raw_frame line_alone = {NULL, GM_NAME_FROM_SOURCE, false, "/build", "a.cpp",
                                               3};

static struct gm_answers *open_answers(const char *folder)
{
    return gm_answers_open(folder, build_id, sizeof(build_id), IDENTITY);
}

static void keep_some(const char *folder)
{
    struct gm_answers *answers = open_answers(folder);
    gm_answers_set_note(answers, 1);
    gm_answers_add(answers, 0x1000, chain, 3);
    gm_answers_add(answers, 0, NULL, 0);
    gm_answers_add(answers, UINT64_MAX, &line_alone, 1);
    gm_answers_close(answers, true);
}

static void check_text(const char *text, const char *expected)
{
    if (expected)
        assert_string_equal(text, expected);
    else
        assert_null(text);
}

static void check_frames(const struct gm_answers *answers, uint64_t address,
                         const struct gm_raw_frame *expected, size_t expected_count)
{
    struct gm_raw_frame frames[GM_FRAMES_AT_ONE_ADDRESS];
    size_t count = 99;
    assert_true(gm_answers_find(answers, address, frames, &count));
    assert_int_equal(count, expected_count);
    for (size_t i = 0; i < count; i++) {
        check_text(frames[i].name, expected[i].name);
        check_text(frames[i].directory, expected[i].directory);
        check_text(frames[i].file, expected[i].file);
        assert_int_equal(frames[i].line, expected[i].line);
        assert_int_equal(frames[i].name_source, expected[i].name_source);
        assert_int_equal(frames[i].inlined, expected[i].inlined);
    }
}

static bool has_some(const char *folder)
{
    struct gm_raw_frame frames[GM_FRAMES_AT_ONE_ADDRESS];
    struct gm_answers *answers = open_answers(folder);
    uint32_t note;
    size_t count;
    bool known = gm_answers_find(answers, 0x1000, frames, &count);
    assert_int_equal(gm_answers_note(answers, &note), known);
    gm_answers_close(answers, true);
    return known;
}

static void all_comes_back(void **state)
{
    keep_some(*state);
    struct gm_answers *answers = open_answers(*state);
    struct gm_raw_frame frames[GM_FRAMES_AT_ONE_ADDRESS];
    uint32_t note = 0;
    size_t count;
    assert_true(gm_answers_note(answers, &note));
    assert_int_equal(note, 1);
    check_frames(answers, 0x1000, chain, 3);
    check_frames(answers, 0, NULL, 0);
    check_frames(answers, UINT64_MAX, &line_alone, 1);
    assert_false(gm_answers_find(answers, 0x1001, frames, &count));
    gm_answers_close(answers, true);
}

static void what_is_new_joins_what_was_there(void **state)
{
    keep_some(*state);
    struct gm_answers *answers = open_answers(*state);
    gm_answers_add(answers, 0x2000, chain + 1, 2);
    check_frames(answers, 0x2000, chain + 1, 2);
    check_frames(answers, 0x1000, chain, 3);
    gm_answers_close(answers, true);
    answers = open_answers(*state);
    check_frames(answers, 0x2000, chain + 1, 2);
    check_frames(answers, 0x1000, chain, 3);
    gm_answers_close(answers, true);
}

static void another_identity_has_none(void **state)
{
    keep_some(*state);
    uint8_t other_id[20];
    memcpy(other_id, build_id, sizeof(other_id));
    other_id[19] = 1;
    struct gm_answers *cases[] = {
        gm_answers_open(*state, build_id, sizeof(build_id), IDENTITY + 1),
        gm_answers_open(*state, build_id, sizeof(build_id) - 1, IDENTITY),
        gm_answers_open(*state, other_id, sizeof(other_id), IDENTITY),
    };
    for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
        uint32_t note;
        assert_false(gm_answers_note(cases[i], &note));
        gm_answers_close(cases[i], true);
    }
    assert_true(has_some(*state));
}

static void nothing_is_written_without_need(void **state)
{
    char path[PATH_MAX];
    struct stat before, after;
    gm_answers_close(open_answers(*state), true); /* no note, no answer */
    struct gm_answers *answers = open_answers(*state);
    gm_answers_set_note(answers, 1);
    gm_answers_add(answers, 0x1000, chain, 3);
    gm_answers_close(answers, false);
    assert_false(has_some(*state));
    keep_some(*state);
    find_file(*state, path);
    assert_int_equal(stat(path, &before), 0);
    assert_true(has_some(*state));
    assert_int_equal(stat(path, &after), 0);
    assert_int_equal(before.st_ino, after.st_ino); /* a file that is written is another one */
    assert_int_equal(after.st_mode & 0777, 0600);
}

/* ---- files that are not what was written -------------------------------------------------------- */

static void a_damaged_file_is_as_good_as_none(void **state)
{
    char path[PATH_MAX];
    uint8_t *bytes;
    keep_some(*state);
    find_file(*state, path);
    size_t size = read_all(path, &bytes);
    for (size_t at = 0; at < size; at++) {
        bytes[at] ^= 0x11;
        write_all(path, bytes, size);
        assert_false(has_some(*state));
        bytes[at] ^= 0x11;
    }
    for (size_t shorter = 0; shorter < size; shorter++) {
        write_all(path, bytes, shorter);
        assert_false(has_some(*state));
    }
    write_all(path, bytes, size);
    assert_true(has_some(*state));
    free(bytes);
}

/* Each word of the file replaced by what leads out of its table, with a hash that fits. */
static void a_forged_file_leads_nowhere(void **state)
{
    static const uint32_t values[] = {0, 1, 3, 4, 127, 128, 129, 0x7fffffff, 0xffffffff};
    struct gm_raw_frame frames[GM_FRAMES_AT_ONE_ADDRESS];
    char path[PATH_MAX];
    uint8_t *bytes;
    keep_some(*state);
    find_file(*state, path);
    size_t size = read_all(path, &bytes);
    for (size_t at = 0; at + 12 <= size; at += 4)
        for (size_t i = 0; i < sizeof(values) / sizeof(values[0]); i++) {
            uint8_t *forged = malloc(size);
            memcpy(forged, bytes, size);
            memcpy(forged + at, &values[i], sizeof(values[i]));
            XXH64_hash_t hash = XXH3_64bits(forged, size - sizeof(hash));
            memcpy(forged + size - sizeof(hash), &hash, sizeof(hash));
            write_all(path, forged, size);
            free(forged);
            struct gm_answers *answers = open_answers(*state);
            uint64_t addresses[] = {0, 0x1000, UINT64_MAX, values[i]};
            for (size_t k = 0; k < 4; k++) {
                size_t count = 0, length = 0;
                if (gm_answers_find(answers, addresses[k], frames, &count))
                    assert_true(count <= GM_FRAMES_AT_ONE_ADDRESS);
                for (size_t n = 0; n < count; n++) { /* a sanitizer sees what is read outside */
                    length += frames[n].name ? strlen(frames[n].name) : 0;
                    length += frames[n].file ? strlen(frames[n].file) : 0;
                    length += frames[n].directory ? strlen(frames[n].directory) : 0;
                }
                assert_true(length < size * GM_FRAMES_AT_ONE_ADDRESS);
            }
            gm_answers_close(answers, false);
        }
    free(bytes);
}

static void only_a_file_of_our_own_counts(void **state)
{
    char path[PATH_MAX], elsewhere[PATH_MAX + 8];
    keep_some(*state);
    find_file(*state, path);
    snprintf(elsewhere, sizeof(elsewhere), "%s.moved", path);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, path), 0);
    assert_false(has_some(*state));
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_false(has_some(*state)); /* and does not wait for a writer */
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    keep_some(*state); /* cannot replace it, and leaves no draft */
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(rename(elsewhere, path), 0);
    find_file(*state, elsewhere);
    assert_true(has_some(*state));
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, 12345), 0);
        assert_false(has_some(*state));
    }
}

static void a_folder_that_cannot_be_made_costs_nothing_but_time(void **state)
{
    char folder[PATH_MAX + 32];
    keep_some(*state);
    find_file(*state, folder);
    strcat(folder, "/below/a/file");
    keep_some(folder);
    assert_false(has_some(folder));
    snprintf(folder, sizeof(folder), "%s/new/folder", (char *)*state);
    keep_some(folder);
    assert_true(has_some(folder));
}

/* ---- bounds -------------------------------------------------------------------------------------- */

static void the_oldest_files_make_room(void **state)
{
    char path[PATH_MAX];
    struct stat status;
    for (int i = 0; i < 10; i++) { /* a tenth of the limit each; 9 is the oldest */
        snprintf(path, sizeof(path), "%s/%02d-0123456789abcdef", (char *)*state, i);
        write_all(path, build_id, 1);
        assert_int_equal(truncate(path, (off_t)(GM_ANSWERS_FOLDER_MAX / 10)), 0);
        struct timespec times[2] = {{.tv_sec = 1000 - i}, {.tv_sec = 1000 - i}};
        assert_int_equal(utimensat(0, path, times, 0), 0);
    }
    snprintf(path, sizeof(path), "%s/of-someone-else", (char *)*state);
    write_all(path, build_id, 1);
    assert_int_equal(truncate(path, (off_t)GM_ANSWERS_FOLDER_MAX), 0);
    keep_some(*state); /* the sum is above now, by a few bytes */
    for (int i = 0; i < 10; i++) {
        snprintf(path, sizeof(path), "%s/%02d-0123456789abcdef", (char *)*state, i);
        assert_int_equal(stat(path, &status) == 0, i < 7);
    }
    snprintf(path, sizeof(path), "%s/of-someone-else", (char *)*state);
    assert_int_equal(stat(path, &status), 0);
    assert_true(has_some(*state));
}

static void a_module_has_no_more_than_its_share(void **state)
{
    enum { LENGTH = 1 << 20 };
    char path[PATH_MAX], *name = malloc(LENGTH + 1);
    struct stat status;
    struct gm_answers *answers = open_answers(*state);
    struct gm_raw_frame frame = {0};
    size_t count;
    gm_answers_set_note(answers, 0);
    char *names[40];
    for (uint64_t i = 0; i < 40; i++) {
        memset(name, 'a' + (int)(i % 26), LENGTH);
        name[LENGTH] = 0;
        names[i] = strdup(name); /* equal pointers would be one text */
        frame.name = names[i];
        gm_answers_add(answers, i, &frame, 1);
    }
    gm_answers_close(answers, true);
    find_file(*state, path);
    assert_int_equal(stat(path, &status), 0);
    assert_true(status.st_size > 12 * LENGTH && status.st_size <= 16 * LENGTH);
    answers = open_answers(*state);
    assert_true(gm_answers_find(answers, 11, &frame, &count));
    assert_string_equal(frame.name, names[11]);
    assert_false(gm_answers_find(answers, 39, &frame, &count));
    gm_answers_close(answers, true);
    for (size_t i = 0; i < 40; i++)
        free(names[i]);
    free(name);
}

/* ---- where -------------------------------------------------------------------------------------- */

static void the_folder_is_the_users(void **state)
{
    (void)state;
    char path[PATH_MAX];
    setenv("HOME", "/home/me", 1);
    unsetenv("XDG_CACHE_HOME");
    assert_true(gm_cache_folder("symbols", path));
    assert_string_equal(path, "/home/me/.cache/gpumem/symbols");
    setenv("XDG_CACHE_HOME", "/scratch/me", 1);
    assert_true(gm_cache_folder("symbols", path));
    assert_string_equal(path, "/scratch/me/gpumem/symbols");
    setenv("XDG_CACHE_HOME", "relative", 1); /* the standard: to be ignored */
    assert_true(gm_cache_folder("symbols", path));
    assert_string_equal(path, "/home/me/.cache/gpumem/symbols");
    unsetenv("HOME");
    assert_false(gm_cache_folder("symbols", path));
}

#define IN_A_FOLDER(test) cmocka_unit_test_setup_teardown(test, make_folder, remove_folder)

int main(void)
{
    const struct CMUnitTest tests[] = {
        IN_A_FOLDER(all_comes_back),
        IN_A_FOLDER(what_is_new_joins_what_was_there),
        IN_A_FOLDER(another_identity_has_none),
        IN_A_FOLDER(nothing_is_written_without_need),
        IN_A_FOLDER(a_damaged_file_is_as_good_as_none),
        IN_A_FOLDER(a_forged_file_leads_nowhere),
        IN_A_FOLDER(only_a_file_of_our_own_counts),
        IN_A_FOLDER(a_folder_that_cannot_be_made_costs_nothing_but_time),
        IN_A_FOLDER(the_oldest_files_make_room),
        IN_A_FOLDER(a_module_has_no_more_than_its_share),
        cmocka_unit_test(the_folder_is_the_users),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
