/*
 * NVTX: the marks and ranges that programs and libraries name anyway, as those of gpumem.h. On with
 * GPUMEM_NVTX=1 and NVTX_INJECTION64_PATH=libgpumem.so, which `gpumem run` sets.
 *
 * Guarantees
 *   - A tool that was to be injected (GPUMEM_NVTX_NEXT, where `gpumem run` puts a path it found
 * set) is injected all the same, before us, by the same call with the same argument, and gets every
 *     call with its arguments; what it returns, the program gets.
 *   - Without one, levels of pushes and pops are those of a program without a tool. Handles and
 *     numbers of ranges are made up, as by any tool: nobody but NVTX's functions can use them.
 *   - Injection never fails because of us. No malloc, no lock that the program could hold.
 *
 * Each library's copy of NVTX calls InitializeInjectionNvtx2. All copies share our functions, so
 * these know one successor each: a copy for which the other tool chose another function keeps
 * that function alone, and is not recorded.
 *
 * Not covered: a tool linked into the program, which NVTX passes over for any path that is set, and
 * which nobody else can find; one that CUDA's driver supplies, for which NVTX (of CUDA 13.5 and
 * later) asks only where no path is set; ranges with extended payloads, which go past these
 * functions; resources and categories. Stacks are not recorded: names say where it is.
 */
#include "sources/nvtx.h"
#include "base/config.h"
#include "base/platform.h"
#include "base/process_state.h"
#include "loader/libc_dlsym.h"
#include "loader/objects.h"
#include "sources/mark.h"
#include "sources/nvtx_names.h"
#include <dlfcn.h>

GM_EXPORT int InitializeInjectionNvtx2(gm_nvtx_get_table *get_table);
GM_EXPORT int InitializeInjectionNvtxExtension(void *module);

#define DEFAULT_DOMAIN                                                                             \
    1u /* as record.address; domains of their own have their handles, pointers                     \
        */

/* ---- who comes after us ---------------------------------------------------------------------- */

enum hook {
    MARK_EX,
    MARK_A,
    MARK_W,
    START_EX,
    START_A,
    START_W,
    END,
    PUSH_EX,
    PUSH_A,
    PUSH_W,
    POP,
    DOMAIN_MARK_EX,
    DOMAIN_START_EX,
    DOMAIN_END,
    DOMAIN_PUSH_EX,
    DOMAIN_POP,
    REGISTER_STRING_A,
    REGISTER_STRING_W,
    DOMAIN_CREATE_A,
    DOMAIN_CREATE_W,
    HOOKS
};

/* The function of another tool behind each of ours; `nobody` if there is none; NULL before the
 * first copy of NVTX came. */
static _Atomic(gm_nvtx_function *) successors[HOOKS];

static void nobody(void)
{
}

static gm_nvtx_function *successor(enum hook hook)
{
    gm_nvtx_function *found = atomic_load_explicit(&successors[hook], memory_order_acquire);
    return found == nobody ? NULL : found;
}

/* ---- marks and ranges ------------------------------------------------------------------------ */

typedef struct gm_nvtx_attributes attributes;

/* The name in a struct of the program's. Only what it says to have is read. */
static struct gm_name message_of(const attributes *given, char buffer[GM_NVTX_NAME_MAX])
{
    static const struct gm_name none = {NULL, 0};
    if (given == NULL || given->size < offsetof(attributes, message) + sizeof(given->message))
        return none;
    switch (given->message_type) {
    case GM_NVTX_ASCII:
        return gm_nvtx_narrow(given->message.ascii);
    case GM_NVTX_UNICODE:
        return gm_nvtx_wide(given->message.unicode, buffer);
    case GM_NVTX_REGISTERED:
        return gm_nvtx_name_of(given->message.registered);
    default:
        return none;
    }
}

static uint64_t domain_number(const void *domain)
{
    return domain != NULL ? (uintptr_t)domain : DEFAULT_DOMAIN;
}

/* One number for a range of the process, whichever domain gave its own. */
static uint64_t range_number(const void *domain, uint64_t id)
{
    return id ^ ((uintptr_t)domain * 0x9e3779b97f4a7c15u);
}

static void record_nvtx(enum gm_event type, uint64_t address, struct gm_name name,
                        const void *domain, void *frame)
{
    gm_mark_record(&(struct gm_mark){type, address, name, gm_nvtx_name_of(domain)}, frame);
}

/* The number of a new range if no other tool gives one. */
static uint64_t new_range(void)
{
    static _Atomic uint64_t last;
    return atomic_fetch_add_explicit(&last, 1, memory_order_relaxed) + 1;
}

#define FRAME __builtin_frame_address(0)

static void mark_ex(const attributes *given)
{
    char buffer[GM_NVTX_NAME_MAX];
    void (*next)(const attributes *) = (void (*)(const attributes *))successor(MARK_EX);
    record_nvtx(GM_EVENT_MARK, 0, message_of(given, buffer), NULL, FRAME);
    if (next)
        next(given);
}

static void mark_a(const char *text)
{
    void (*next)(const char *) = (void (*)(const char *))successor(MARK_A);
    record_nvtx(GM_EVENT_MARK, 0, gm_nvtx_narrow(text), NULL, FRAME);
    if (next)
        next(text);
}

static void mark_w(const wchar_t *text)
{
    char buffer[GM_NVTX_NAME_MAX];
    void (*next)(const wchar_t *) = (void (*)(const wchar_t *))successor(MARK_W);
    record_nvtx(GM_EVENT_MARK, 0, gm_nvtx_wide(text, buffer), NULL, FRAME);
    if (next)
        next(text);
}

static void domain_mark_ex(const void *domain, const attributes *given)
{
    char buffer[GM_NVTX_NAME_MAX];
    void (*next)(const void *, const attributes *) =
        (void (*)(const void *, const attributes *))successor(DOMAIN_MARK_EX);
    record_nvtx(GM_EVENT_MARK, 0, message_of(given, buffer), domain, FRAME);
    if (next)
        next(domain, given);
}

/* A range whose number another tool does not give cannot be told apart, and is not recorded. */
static void record_start(const void *domain, uint64_t id, struct gm_name name, void *frame)
{
    if (id)
        record_nvtx(GM_EVENT_RANGE_START, range_number(domain, id), name, domain, frame);
}

static uint64_t start_ex(const attributes *given)
{
    char buffer[GM_NVTX_NAME_MAX];
    uint64_t (*next)(const attributes *) = (uint64_t(*)(const attributes *))successor(START_EX);
    uint64_t id = next ? next(given) : new_range();
    record_start(NULL, id, message_of(given, buffer), FRAME);
    return id;
}

static uint64_t start_a(const char *text)
{
    uint64_t (*next)(const char *) = (uint64_t(*)(const char *))successor(START_A);
    uint64_t id = next ? next(text) : new_range();
    record_start(NULL, id, gm_nvtx_narrow(text), FRAME);
    return id;
}

static uint64_t start_w(const wchar_t *text)
{
    char buffer[GM_NVTX_NAME_MAX];
    uint64_t (*next)(const wchar_t *) = (uint64_t(*)(const wchar_t *))successor(START_W);
    uint64_t id = next ? next(text) : new_range();
    record_start(NULL, id, gm_nvtx_wide(text, buffer), FRAME);
    return id;
}

static uint64_t domain_start_ex(const void *domain, const attributes *given)
{
    char buffer[GM_NVTX_NAME_MAX];
    uint64_t (*next)(const void *, const attributes *) =
        (uint64_t(*)(const void *, const attributes *))successor(DOMAIN_START_EX);
    uint64_t id = next ? next(domain, given) : new_range();
    record_start(domain, id, message_of(given, buffer), FRAME);
    return id;
}

static void record_end(const void *domain, uint64_t id, void *frame)
{
    if (id)
        record_nvtx(GM_EVENT_RANGE_END, range_number(domain, id), (struct gm_name){0}, NULL, frame);
}

static void end_nvtx_range(uint64_t id)
{
    void (*next)(uint64_t) = (void (*)(uint64_t))successor(END);
    record_end(NULL, id, FRAME);
    if (next)
        next(id);
}

static void domain_end(const void *domain, uint64_t id)
{
    void (*next)(const void *, uint64_t) = (void (*)(const void *, uint64_t))successor(DOMAIN_END);
    record_end(domain, id, FRAME);
    if (next)
        next(domain, id);
}

static int push_ex(const attributes *given)
{
    char buffer[GM_NVTX_NAME_MAX];
    int (*next)(const attributes *) = (int (*)(const attributes *))successor(PUSH_EX);
    record_nvtx(GM_EVENT_RANGE_PUSH, DEFAULT_DOMAIN, message_of(given, buffer), NULL, FRAME);
    return next ? next(given) : GM_NVTX_NO_LEVEL;
}

static int push_a(const char *text)
{
    int (*next)(const char *) = (int (*)(const char *))successor(PUSH_A);
    record_nvtx(GM_EVENT_RANGE_PUSH, DEFAULT_DOMAIN, gm_nvtx_narrow(text), NULL, FRAME);
    return next ? next(text) : GM_NVTX_NO_LEVEL;
}

static int push_w(const wchar_t *text)
{
    char buffer[GM_NVTX_NAME_MAX];
    int (*next)(const wchar_t *) = (int (*)(const wchar_t *))successor(PUSH_W);
    record_nvtx(GM_EVENT_RANGE_PUSH, DEFAULT_DOMAIN, gm_nvtx_wide(text, buffer), NULL, FRAME);
    return next ? next(text) : GM_NVTX_NO_LEVEL;
}

static int pop_nvtx_range(void)
{
    int (*next)(void) = (int (*)(void))successor(POP);
    record_nvtx(GM_EVENT_RANGE_POP, DEFAULT_DOMAIN, (struct gm_name){0}, NULL, FRAME);
    return next ? next() : GM_NVTX_NO_LEVEL;
}

static int domain_push_ex(const void *domain, const attributes *given)
{
    char buffer[GM_NVTX_NAME_MAX];
    int (*next)(const void *, const attributes *) =
        (int (*)(const void *, const attributes *))successor(DOMAIN_PUSH_EX);
    record_nvtx(GM_EVENT_RANGE_PUSH, domain_number(domain), message_of(given, buffer), domain,
                FRAME);
    return next ? next(domain, given) : GM_NVTX_NO_LEVEL;
}

static int domain_pop(const void *domain)
{
    int (*next)(const void *) = (int (*)(const void *))successor(DOMAIN_POP);
    record_nvtx(GM_EVENT_RANGE_POP, domain_number(domain), (struct gm_name){0}, NULL, FRAME);
    return next ? next(domain) : GM_NVTX_NO_LEVEL;
}

/* ---- handles --------------------------------------------------------------------------------- */

/* The handle of another tool, or one of ours. */
static const void *named(bool has_next, const void *handle, struct gm_name name)
{
    if (!has_next)
        return gm_nvtx_name_register(name);
    gm_nvtx_name_set(handle, name);
    return handle;
}

static const void *register_string_a(const void *domain, const char *text)
{
    const void *(*next)(const void *, const char *) =
        (const void *(*)(const void *, const char *))successor(REGISTER_STRING_A);
    return named(next, next ? next(domain, text) : NULL, gm_nvtx_narrow(text));
}

static const void *register_string_w(const void *domain, const wchar_t *text)
{
    char buffer[GM_NVTX_NAME_MAX];
    const void *(*next)(const void *, const wchar_t *) =
        (const void *(*)(const void *, const wchar_t *))successor(REGISTER_STRING_W);
    return named(next, next ? next(domain, text) : NULL, gm_nvtx_wide(text, buffer));
}

static const void *domain_create_a(const char *text)
{
    const void *(*next)(const char *) = (const void *(*)(const char *))successor(DOMAIN_CREATE_A);
    return named(next, next ? next(text) : NULL, gm_nvtx_narrow(text));
}

static const void *domain_create_w(const wchar_t *text)
{
    char buffer[GM_NVTX_NAME_MAX];
    const void *(*next)(const wchar_t *) =
        (const void *(*)(const wchar_t *))successor(DOMAIN_CREATE_W);
    return named(next, next ? next(text) : NULL, gm_nvtx_wide(text, buffer));
}

/* ---- injection ------------------------------------------------------------------------------- */

static const struct {
    enum gm_nvtx_module module;
    unsigned number;
    gm_nvtx_function *function;
} hooks[HOOKS] = {
    [MARK_EX] = {GM_NVTX_CORE, GM_NVTX_MARK_EX, (gm_nvtx_function *)mark_ex},
    [MARK_A] = {GM_NVTX_CORE, GM_NVTX_MARK_A, (gm_nvtx_function *)mark_a},
    [MARK_W] = {GM_NVTX_CORE, GM_NVTX_MARK_W, (gm_nvtx_function *)mark_w},
    [START_EX] = {GM_NVTX_CORE, GM_NVTX_START_EX, (gm_nvtx_function *)start_ex},
    [START_A] = {GM_NVTX_CORE, GM_NVTX_START_A, (gm_nvtx_function *)start_a},
    [START_W] = {GM_NVTX_CORE, GM_NVTX_START_W, (gm_nvtx_function *)start_w},
    [END] = {GM_NVTX_CORE, GM_NVTX_END, (gm_nvtx_function *)end_nvtx_range},
    [PUSH_EX] = {GM_NVTX_CORE, GM_NVTX_PUSH_EX, (gm_nvtx_function *)push_ex},
    [PUSH_A] = {GM_NVTX_CORE, GM_NVTX_PUSH_A, (gm_nvtx_function *)push_a},
    [PUSH_W] = {GM_NVTX_CORE, GM_NVTX_PUSH_W, (gm_nvtx_function *)push_w},
    [POP] = {GM_NVTX_CORE, GM_NVTX_POP, (gm_nvtx_function *)pop_nvtx_range},
    [DOMAIN_MARK_EX] = {GM_NVTX_CORE2, GM_NVTX_DOMAIN_MARK_EX, (gm_nvtx_function *)domain_mark_ex},
    [DOMAIN_START_EX] = {GM_NVTX_CORE2, GM_NVTX_DOMAIN_START_EX,
                         (gm_nvtx_function *)domain_start_ex},
    [DOMAIN_END] = {GM_NVTX_CORE2, GM_NVTX_DOMAIN_END, (gm_nvtx_function *)domain_end},
    [DOMAIN_PUSH_EX] = {GM_NVTX_CORE2, GM_NVTX_DOMAIN_PUSH_EX, (gm_nvtx_function *)domain_push_ex},
    [DOMAIN_POP] = {GM_NVTX_CORE2, GM_NVTX_DOMAIN_POP, (gm_nvtx_function *)domain_pop},
    [REGISTER_STRING_A] = {GM_NVTX_CORE2, GM_NVTX_REGISTER_STRING_A,
                           (gm_nvtx_function *)register_string_a},
    [REGISTER_STRING_W] = {GM_NVTX_CORE2, GM_NVTX_REGISTER_STRING_W,
                           (gm_nvtx_function *)register_string_w},
    [DOMAIN_CREATE_A] = {GM_NVTX_CORE2, GM_NVTX_DOMAIN_CREATE_A,
                         (gm_nvtx_function *)domain_create_a},
    [DOMAIN_CREATE_W] = {GM_NVTX_CORE2, GM_NVTX_DOMAIN_CREATE_W,
                         (gm_nvtx_function *)domain_create_w},
};

/* Where the copy of NVTX keeps its pointer to the function of a hook; NULL if it has none. */
static gm_nvtx_function **word_of(gm_nvtx_get_table *get_table, enum hook hook)
{
    const struct gm_nvtx_callbacks *callbacks = get_table(GM_NVTX_TABLE_CALLBACKS);
    gm_nvtx_function ***words = NULL;
    unsigned count = 0;
    if (callbacks == NULL || callbacks->size < sizeof(*callbacks) ||
        !callbacks->words_of((int)hooks[hook].module, &words, &count) || words == NULL)
        return NULL;
    return hooks[hook].number < count ? words[hooks[hook].number] : NULL;
}

/* The words of a copy of NVTX, as they are before anyone changes them. */
struct words {
    gm_nvtx_function **word[HOOKS];
    gm_nvtx_function *before[HOOKS];
};

static void read_words(gm_nvtx_get_table *get_table, struct words *words)
{
    for (int hook = 0; hook < HOOKS; hook++) {
        words->word[hook] = word_of(get_table, (enum hook)hook);
        words->before[hook] = words->word[hook] != NULL ? *words->word[hook] : NULL;
    }
}

/* Puts our functions before whatever another tool has put there. What still has its first value, a
 * function that starts the injection, is nobody's. */
static void take_words(const struct words *words)
{
    for (int hook = 0; hook < HOOKS; hook++) {
        gm_nvtx_function **word = words->word[hook], *known = NULL;
        if (word == NULL)
            continue;
        gm_nvtx_function *there = *word != words->before[hook] && *word != NULL ? *word : nobody;
        if (atomic_compare_exchange_strong(&successors[hook], &known, there) || known == there)
            *word = hooks[hook].function;
    }
}

typedef int initialize(gm_nvtx_get_table *get_table);

/* The function `name` of the tool that would have been injected without us; NULL if there is none.
 */
static void *next_tool(const char *name, void **library)
{
    *library = gm_config.nvtx_next[0] ? dlopen(gm_config.nvtx_next, RTLD_LAZY) : NULL;
    return *library != NULL ? gm_real_dlsym(*library, name) : NULL;
}

/* As NVTX itself would do it: a library whose tool fails is closed. */
static int inject_next(gm_nvtx_get_table *get_table)
{
    void *library;
    initialize *next = (initialize *)next_tool("InitializeInjectionNvtx2", &library);
    int result = next != NULL && next != InitializeInjectionNvtx2 ? next(get_table) : 0;
    if (result == 0 && library != NULL)
        dlclose(library);
    return result;
}

/* Where this is a second copy of the library, found under another path: the one that was preloaded
 * and has the trace. */
static initialize *preloaded_copy(void)
{
    struct gm_object object;
    if (gm_is_preloaded())
        return NULL;
    void *found = gm_real_dlsym(RTLD_DEFAULT, "InitializeInjectionNvtx2");
    return found != NULL && found != (void *)InitializeInjectionNvtx2 &&
                   gm_object_of(found, &object) && gm_object_function(&object, "gpumem_mark")
               ? (initialize *)found
               : NULL;
}

static int inject(gm_nvtx_get_table *get_table)
{
    struct words words;
    if (!gm_config.nvtx)
        return inject_next(get_table);
    read_words(get_table, &words);
    inject_next(get_table);
    take_words(&words);
    return 1;
}

/* Called by each copy of NVTX before its first function returns. 0: failure, all stays without
 * effect. */
int InitializeInjectionNvtx2(gm_nvtx_get_table *get_table)
{
    const int saved_errno = errno;
    initialize *other = preloaded_copy();
    if (other != NULL)
        gm_process_refuse();
    int result = other != NULL ? other(get_table) : inject(get_table);
    errno = saved_errno;
    return result;
}

/* The same for NVTX's extensions, of which we record none: what another tool makes of it. */
int InitializeInjectionNvtxExtension(void *module)
{
    void *library;
    int (*next)(void *) = (int (*)(void *))next_tool("InitializeInjectionNvtxExtension", &library);
    int result = next != NULL && next != InitializeInjectionNvtxExtension ? next(module) : 0;
    if (result == 0 && library != NULL)
        dlclose(library);
    return result;
}
