/*
 * The cuGetProcAddress hooks, of the 11.3 ABI (four arguments) and of the 12.0 ABI (five).
 *
 * The driver answers first and its answer stands, in every output; only a function pointer is
 * replaced, by our function of the very ABI that was returned. One row of the table is exactly one
 * ABI, and which row an address belongs to the driver itself must say:
 *   - it exports that address under the symbol of the row, or
 *   - asked at the version that brought the row's ABI it gives that address, and not before (of a
 *     first ABI: or another at the next).
 * All else goes back as it came, and is noted (newer_abi.c): nobody but the driver knows what a
 * function is called with whose ABI is younger than the table. The version asked for alone tells
 * nothing: drivers come out that have ABIs which the table has not, and others that lack some which
 * it has, and both may answer with addresses that they do not export.
 *
 * Asking for pointers is not calling CUDA: nothing is recorded here and no trace begins.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/api.h"
#include "base/platform.h"
#include "interpose/get_proc_address.h"
#include "interpose/newer_abi.h"
#include "interpose/real.h"
#include "loader/objects.h"

enum {
    CUDA_SUCCESS = 0,
    CUDA_ERROR_NOT_FOUND = 500,
    /* CUdriverProcAddress_flags */
    FLAG_LEGACY_STREAM = 1,
    FLAG_PER_THREAD_STREAM = 2, /* wins where both are given */
    FLAGS_KNOWN = FLAG_LEGACY_STREAM | FLAG_PER_THREAD_STREAM,
};

typedef int get_proc_address_v1(const char *symbol, void **function, int version, uint64_t flags);
typedef int get_proc_address_v2(const char *symbol, void **function, int version, uint64_t flags,
                                int *symbol_status);

/* What the driver exports for each row of the table; filled once, by whoever comes first. */
static _Atomic(void *) exported[GM_API_MAX];
static _Atomic bool exports_known;

static bool is_driver(const struct gm_object *object)
{
    const char *name = strrchr(object->map->l_name, '/');
    return strcmp(name != NULL ? name + 1 : object->map->l_name, "libcuda.so.1") == 0;
}

/*
 * The driver: the library of that name, or else the object that the address is of. Not asked of the
 * loader, which may be busy with a constructor that waits for this thread.
 */
static bool find_driver(const void *address, struct gm_object *driver)
{
    for (uint16_t api = 1; api < gm_api_count && api < GM_API_MAX; api++) {
        const void *function = atomic_load_explicit(&gm_real_first[api], memory_order_acquire);
        if (function != NULL && gm_api[api].layer == GM_LAYER_DRIVER &&
            gm_object_of(function, driver) && is_driver(driver))
            return true;
    }
    return gm_object_of(address, driver);
}

static void learn_exports(const void *address)
{
    struct gm_object driver;
    if (atomic_load_explicit(&exports_known, memory_order_acquire) ||
        !find_driver(address, &driver))
        return;
    for (uint16_t api = 1; api < gm_api_count && api < GM_API_MAX; api++)
        if (gm_api[api].layer == GM_LAYER_DRIVER)
            atomic_store_explicit(&exported[api], gm_object_function(&driver, gm_api[api].symbol),
                                  memory_order_relaxed);
    atomic_store_explicit(&exports_known, true, memory_order_release);
}

static void *exported_address(uint16_t api)
{
    return api < GM_API_MAX ? atomic_load_explicit(&exported[api], memory_order_relaxed) : NULL;
}

/* What the program asked, and whom. One of the two functions is NULL. */
struct question {
    get_proc_address_v1 *v1;
    get_proc_address_v2 *v2;
    const char *name;
    int version;
    uint64_t flags;
};

static int ask_driver(const struct question *question, void **function, int *symbol_status)
{
    return question->v2 != NULL
               ? question->v2(question->name, function, question->version, question->flags,
                              symbol_status)
               : question->v1(question->name, function, question->version, question->flags);
}

/* The driver's answer to the same at another version and in another form; NULL if it has none. */
static void *answer_at(const struct question *question, uint32_t version, bool per_thread)
{
    struct question other = *question;
    void *function = NULL;
    int symbol_status = 0;
    other.version = (int)version;
    other.flags = per_thread ? FLAG_PER_THREAD_STREAM : 0;
    return ask_driver(&other, &function, &symbol_status) == CUDA_SUCCESS ? function : NULL;
}

/* A driver that does not bind its own references to itself answers with our function, too. */
static bool is_exported_at(uint16_t api, const void *function)
{
    return exported_address(api) == function || (const void *)gm_api[api].wrapper == function;
}

/* Several rows can share an address: then the one that was asked for is the best label. */
static uint16_t find_by_export(const struct question *question, struct gm_api_rows rows,
                               const void *function)
{
    bool per_thread = (question->flags & FLAG_PER_THREAD_STREAM) != 0;
    uint32_t version = question->version > 0 ? (uint32_t)question->version : 0;
    uint16_t asked = gm_api_find_version(question->name, version, per_thread);
    if (asked != 0 && is_exported_at(asked, function))
        return asked;
    for (size_t i = 0; i < rows.count; i++)
        if (is_exported_at(rows.row[i], function))
            return rows.row[i];
    return 0;
}

/*
 * Whether the driver began to answer with `function` at the version of row `i`. Some answer versions
 * from before there was the function, too: of its first ABI it is enough that the next has another
 * address, if there is a next.
 */
static bool came_with(const struct question *question, struct gm_api_rows rows, size_t i,
                      const void *function)
{
    const struct gm_api_entry *entry = &gm_api[rows.row[i]];
    const struct gm_api_entry *before = i > 0 ? &gm_api[rows.row[i - 1]] : NULL;
    const struct gm_api_entry *next = i + 1 < rows.count ? &gm_api[rows.row[i + 1]] : NULL;
    bool per_thread = entry->per_thread != 0;
    if (answer_at(question, entry->since, per_thread) != function)
        return false;
    if (answer_at(question, entry->since - 1, per_thread) != function)
        return true;
    bool first = before == NULL || before->per_thread != entry->per_thread;
    bool last = next == NULL || next->per_thread != entry->per_thread;
    return first && (last || answer_at(question, next->since, per_thread) != function);
}

/* The row whose ABI the driver's answers say that `function` has. */
static uint16_t find_by_answers(const struct question *question, struct gm_api_rows rows,
                                const void *function)
{
    for (size_t i = 0; i < rows.count; i++)
        if ((!gm_api[rows.row[i]].per_thread || (question->flags & FLAG_PER_THREAD_STREAM)) &&
            came_with(question, rows, i, function))
            return rows.row[i];
    return 0;
}

/* Our function for the one that the driver returned; that one itself where there is none. */
static void *replace(const struct question *question, void *function, const void *asker)
{
    /* Programs may ask by an exported symbol, too: its name goes up to the suffix. */
    size_t length = strcspn(question->name, "_");
    struct gm_api_rows rows = gm_api_rows(question->name, length);
    if (rows.count == 0)
        return function;
    learn_exports(function);
    bool flags_known = question->flags <= FLAGS_KNOWN;
    uint16_t api = flags_known ? find_by_export(question, rows, function) : 0;
    if (api == 0 && flags_known && question->name[length] == '\0')
        api = find_by_answers(question, rows, function);
    if (!gm_real_is_wanted(api != 0 ? api : rows.row[0], function, asker))
        return function;
    if (api == 0) {
        gm_newer_abi_note(rows.row[0], question->version, question->name + length);
        return function;
    }
    gm_real_set(api, function);
    return (void *)gm_api[api].wrapper;
}

static int answer_question(const struct question *question, void **function, int *symbol_status,
                           const void *asker)
{
    int result = ask_driver(question, function, symbol_status);
    int error = errno;
    if (result == CUDA_SUCCESS && question->name != NULL && function != NULL && *function != NULL)
        *function = replace(question, *function, asker);
    errno = error;
    return result;
}

GM_EXPORT int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags);
GM_EXPORT int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                                  int *symbol_status);

int cuGetProcAddress(const char *symbol, void **function, int version, uint64_t flags)
{
    const void *asker = __builtin_return_address(0);
    get_proc_address_v1 *real = (get_proc_address_v1 *)gm_real(gm_api_find(__func__), asker);
    struct question question = {.v1 = real, .name = symbol, .version = version, .flags = flags};
    return real != NULL ? answer_question(&question, function, NULL, asker) : CUDA_ERROR_NOT_FOUND;
}

int cuGetProcAddress_v2(const char *symbol, void **function, int version, uint64_t flags,
                        int *symbol_status)
{
    const void *asker = __builtin_return_address(0);
    get_proc_address_v2 *real = (get_proc_address_v2 *)gm_real(gm_api_find(__func__), asker);
    struct question question = {.v2 = real, .name = symbol, .version = version, .flags = flags};
    return real != NULL ? answer_question(&question, function, symbol_status, asker)
                        : CUDA_ERROR_NOT_FOUND;
}

void gm_get_proc_address_forget(void)
{
    struct gm_object object;
    for (uint16_t api = 1; api < gm_api_count && api < GM_API_MAX; api++) {
        void *address = exported_address(api);
        if (address == NULL)
            continue;
        if (!gm_object_of(address, &object)) /* the driver is gone: all of them are */
            atomic_store_explicit(&exports_known, false, memory_order_release);
        return;
    }
}
