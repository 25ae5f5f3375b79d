/* See environment.h. No malloc, no stdio: this runs in every process that inherits LD_PRELOAD. */
#include "base/environment.h"
#include "base/platform.h"
#include <gpumem/ranks.h>
#include <string.h>
#include <sys/uio.h>

#define ROOM (80u << 10) /* more than is recorded: some are only part of the trace's name */
#define COPIES_MAX 256u  /* of the start; where there are more, a title may destroy them */
#define LISTED_AT_ONCE 512u
#define LOOKS 3 /* while other threads change it */
#define PIECE_MAX (GM_VARIABLE_MAX + 1)

/* Ends of pages, where memory may end: of larger pages these are some. */
#define PAGE 4096u

/* "NAME=value", one behind the other, each with its end. */
struct variables {
    char text[ROOM];
    uint32_t used;
    uint32_t left_out;
};

static struct variables at_start, now;
static bool has_looked;

/* Of those at the start, where exec had put them, and whether the list still names that place. */
static const char *origins[COPIES_MAX];
static bool listed[COPIES_MAX];
static uint32_t copies;

/* ---- which ----------------------------------------------------------------------------------- */

static bool has_variable_name(const char *name_and_value, const char *name, size_t length)
{
    return strncmp(name_and_value, name, length) == 0 && name_and_value[length] == '=';
}

/* A variable that tells the place of the process in its job. */
static bool is_of_job(const char *name_and_value)
{
    for (size_t i = 0; i < GM_RANK_LAUNCHERS; i++)
        for (size_t column = 0; column < 3; column++) {
            const char *name = gm_rank_variables[i][column];
            if (name && has_variable_name(name_and_value, name, strlen(name)))
                return true;
        }
    for (size_t i = 0; i < GM_JOB_VARIABLES; i++)
        if (has_variable_name(name_and_value, gm_job_variables[i], strlen(gm_job_variables[i])))
            return true;
    return false;
}

static bool is_setting(const char *name_and_value)
{
    return strncmp(name_and_value, "GPUMEM_", 7) == 0;
}

bool gm_environment_is_recorded(const char *name_and_value)
{
    static const char *const prefixes[] = {
        "PYTORCH_CUDA_ALLOC_CONF=",
        "PYTORCH_ALLOC_CONF=",
        "PYTORCH_HIP_ALLOC_CONF=",
        "PYTORCH_NO_CUDA_MEMORY_CACHING=",
        "CUDA_VISIBLE_DEVICES=",
        "CUDA_DEVICE_ORDER=",
        "CUDA_MODULE_LOADING=",
        "CUDA_LAUNCH_BLOCKING=",
        "XLA_",
        "TF_FORCE_GPU_ALLOW_GROWTH=",
        "TF_GPU_",
        "TF_XLA_FLAGS=",
        "NCCL_CUMEM_ENABLE=",
        "CUBLAS_WORKSPACE_CONFIG=",
        "CUBLASLT_WORKSPACE_SIZE=",
    };
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(name_and_value, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return is_setting(name_and_value) || is_of_job(name_and_value);
}

/* Named in the pattern by %q{NAME}. */
static bool is_in_pattern(const char *name_and_value, const char *pattern)
{
    for (const char *at = pattern; (at = strstr(at, "%q{"));) {
        at += 3;
        if (has_variable_name(name_and_value, at, strcspn(at, "}")))
            return true;
    }
    return false;
}

static bool is_wanted(const char *name_and_value, const char *pattern)
{
    return gm_environment_is_recorded(name_and_value) || is_in_pattern(name_and_value, pattern);
}

/* ---- a list of them -------------------------------------------------------------------------- */

static const char *next_of(const struct variables *list, const char *before)
{
    const char *next = before ? before + strlen(before) + 1 : list->text;
    return next < list->text + list->used ? next : NULL;
}

/* Of several with one name the first counts, as for getenv. */
static const char *value_in(const struct variables *list, const char *name, size_t length)
{
    for (const char *at = NULL; (at = next_of(list, at));)
        if (has_variable_name(at, name, length))
            return at + length + 1;
    return NULL;
}

/* False: there is no room. */
static bool add_variable(struct variables *list, const char *name_and_value)
{
    size_t length = strnlen(name_and_value, GM_VARIABLE_MAX);
    if (length + 1 > sizeof(list->text) - list->used) {
        list->left_out++;
        return false;
    }
    memcpy(list->text + list->used, name_and_value, length);
    list->text[list->used + length] = 0;
    list->used += (uint32_t)length + 1;
    return true;
}

/* ---- at the start ---------------------------------------------------------------------------- */

void gm_environment_note(char *const *environment, const char *pattern)
{
    at_start.used = at_start.left_out = copies = 0;
    has_looked = false;
    for (; environment && *environment && copies < COPIES_MAX; environment++)
        if (is_wanted(*environment, pattern) && add_variable(&at_start, *environment))
            origins[copies++] = *environment;
}

/* ---- when a trace begins --------------------------------------------------------------------- */

/* Memory of this process, by the kernel. Returns the bytes read, to the end of a page if what is
 * behind it cannot be; -1: nothing, and errno. `size`: at most a page. */
static ssize_t read_own(void *to, const void *from, size_t size)
{
    size_t first = PAGE - (uintptr_t)from % PAGE;
    struct iovec local = {to, size}, pieces[2] = {{(void *)(uintptr_t)from, size}};
    if (first < size) {
        pieces[0].iov_len = first;
        pieces[1] = (struct iovec){(char *)(uintptr_t)from + first, size - first};
    }
    return syscall(SYS_process_vm_readv, syscall(SYS_gettid), &local, 1UL, pieces,
                   first < size ? 2UL : 1UL, 0UL);
}

/* False: it is not there any more. */
static bool matches_pattern(const char *at, const char *pattern)
{
    static char text[PIECE_MAX + 1]; /* static: a hook's stack may be small */
    ssize_t got = read_own(text, at, PIECE_MAX);
    for (uint32_t copy = 0; copy < copies; copy++)
        listed[copy] |= origins[copy] == at;
    if (got < 0)
        return false;
    text[got] = 0;
    if (is_wanted(text, pattern) && !is_setting(text) && !value_in(&now, text, strcspn(text, "=")))
        add_variable(&now, text);
    return true;
}

/* The list to its end; `pattern` NULL: only what it is. Returns a number that is another one for any
 * other list; 0: something could not be read. */
static uint64_t go_through(char *const *environment, const char *pattern)
{
    static char *list[LISTED_AT_ONCE];
    uint64_t which = 1;
    bool is_there = true;
    while (environment) {
        ssize_t got = read_own(list, environment, sizeof(list));
        size_t count = got > 0 ? (size_t)got / sizeof(*list) : 0;
        for (size_t i = 0; i < count; i++) {
            if (!list[i])
                return is_there ? which | 1 : 0;
            which = (which ^ (uintptr_t)list[i]) * UINT64_C(0x9e3779b97f4a7c15);
            is_there &= !pattern || matches_pattern(list[i], pattern);
        }
        if (count == 0)
            return 0;
        environment += count;
    }
    return 1;
}

/* False: it cannot be read, or has changed meanwhile. An address may have come back to another list,
 * so the list is looked at once more. */
static bool see_all(const char *pattern)
{
    char **volatile *now_used = (char **volatile *)&environ;
    char *const *before = *now_used;
    memset(listed, 0, sizeof(listed));
    now.used = now.left_out = 0;
    uint64_t seen = go_through(before, pattern);
    return seen && *now_used == before && go_through(before, NULL) == seen;
}

/*
 * Of the start, what is not seen: settings of the recorder, and what is still listed, but is not
 * what it was: the program has written over it. Whatever is listed no more, it has taken back.
 */
static void keep_from_start(bool is_seen)
{
    const char *at = NULL;
    for (uint32_t copy = 0; (at = next_of(&at_start, at)); copy++)
        if ((!is_seen || listed[copy] || is_setting(at)) && !value_in(&now, at, strcspn(at, "=")))
            add_variable(&now, at);
}

void gm_environment_look(const char *pattern)
{
    bool is_seen = false;
    for (int look = 0; look < LOOKS && !is_seen; look++)
        is_seen = see_all(pattern);
    keep_from_start(is_seen);
    has_looked = true;
}

const char *gm_environment_value(const char *name)
{
    return value_in(has_looked ? &now : &at_start, name, strlen(name));
}

const char *gm_environment_next(const char *before)
{
    return next_of(&now, before);
}

uint32_t gm_environment_left_out(void)
{
    return now.left_out;
}
