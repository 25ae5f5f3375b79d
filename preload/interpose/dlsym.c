/*
 * The dlsym hook: programs that open the driver by hand get our functions too.
 *
 * Guarantees
 *   - A name that is not in the table, RTLD_NEXT and RTLD_DEFAULT are answered by a jump to the
 * real dlsym that leaves the return address and the arguments as they came: glibc tells by the
 * return address who asks, and what "next" means.
 *   - A name of the table is looked up for real first. What does not exist without us stays NULL,
 *     with an error in dlerror. What exists is kept as the function behind our wrapper (real.c).
 *     A form of such a function that is not in the table (cuMemAlloc_v9) is found as natively, and
 *     noted: an ABI which the table does not know is left alone.
 *   - No lookup initialises anything: no trace, no thread, no CUDA call. No lock and no allocation
 *     besides libc's own.
 *
 * Two functions called dlsym stand behind this one. The *next* dlsym, of another preloaded library
 * or of libc, answers the program, so that other interposers stay in the chain. Our own lookups go
 * to *libc's*, found by its symbol version, which interposers do not carry.
 *
 * dlvsym is left alone: only the runtime's symbols carry versions, so all it can fetch is a runtime
 * function whose calls go by their driver names (e2e.road.dlvsym).
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/api.h"
#include "base/platform.h"
#include "interpose/newer_abi.h"
#include "interpose/real.h"
#include "interpose/roads.h"

typedef void *dlsym_function(void *handle, const char *symbol);

static _Atomic(dlsym_function *) libc_dlsym;
static _Atomic(dlsym_function *) next_dlsym;

/* Version of the first dlsym of each architecture: all later glibc still have it. The new one comes
 * last, so that no lookup fails on a common machine and leaves an error behind in dlerror. */
static const char *const dlsym_versions[] = {
#if defined(__x86_64__)
    "GLIBC_2.2.5",
#elif defined(__aarch64__)
    "GLIBC_2.17",
#endif
    "GLIBC_2.34",
};

/* What stands in where libc has no dlsym of any known version. */
static void *dlsym_of_nothing(void *handle, const char *symbol)
{
    (void)handle;
    (void)symbol;
    return NULL;
}

/* A call from here must return here: as a tail call it would be made in the name of our caller. */
#define KEEP_THIS_FRAME(result) __asm__ volatile("" : "+r"(result)::"memory")

/*
 * Finds both functions. Other libraries' constructors can look symbols up before ours has run, so
 * every use asks here; threads that meet find the same and need no lock.
 */
GM_BEFORE_SANITIZERS static dlsym_function *find_dlsym(void)
{
    dlsym_function *libc = NULL;
    for (size_t i = 0; libc == NULL && i < sizeof dlsym_versions / sizeof dlsym_versions[0]; i++)
        libc = (dlsym_function *)dlvsym(RTLD_NEXT, "dlsym", dlsym_versions[i]);
    if (libc == NULL)
        libc = dlsym_of_nothing;
    dlsym_function *next = (dlsym_function *)libc(RTLD_NEXT, "dlsym");
    atomic_store_explicit(&next_dlsym, next != NULL ? next : libc, memory_order_release);
    atomic_store_explicit(&libc_dlsym, libc, memory_order_release);
    return libc;
}

GM_BEFORE_SANITIZERS static dlsym_function *dlsym_of_libc(void)
{
    dlsym_function *function = atomic_load_explicit(&libc_dlsym, memory_order_acquire);
    return gm_likely(function != NULL) ? function : find_dlsym();
}

GM_BEFORE_SANITIZERS static dlsym_function *dlsym_of_next(void)
{
    dlsym_of_libc();
    return atomic_load_explicit(&next_dlsym, memory_order_acquire);
}

__attribute__((constructor)) static void find_dlsym_early(void)
{
    dlsym_of_libc();
}

const void *gm_libc_address(void)
{
    return (const void *)dlsym_of_libc();
}

static void *find_in(void *handle, const char *symbol, const char *version)
{
    void *found =
        version == NULL ? dlsym_of_libc()(handle, symbol) : dlvsym(handle, symbol, version);
    KEEP_THIS_FRAME(found);
    return found;
}

void *gm_real_dlsym(void *handle, const char *symbol)
{
    return find_in(handle, symbol, NULL);
}

/*
 * An undefined symbol of a program that is not position independent has an address too: that of a
 * jump in the program, which can lead to our wrapper.
 */
static bool is_definition(const void *found, const char *symbol)
{
    struct gm_object object;
    return gm_object_of(found, &object) && gm_object_function(&object, symbol) == found;
}

static void *find_first(const char *symbol, const char *version)
{
    void *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
    void *found = program != NULL ? find_in(program, symbol, version) : NULL;
    return found != NULL && is_definition(found, symbol) ? found : NULL;
}

void *gm_next_symbol(const char *symbol, const char *version)
{
    return gm_is_preloaded() ? find_in(RTLD_NEXT, symbol, version) : find_first(symbol, version);
}

/*
 * A link_map is not a handle: given to dlsym, that of an object loaded as a dependency crashes
 * glibc 2.36. Opening the object again by the loader's own name for it gives a handle.
 */
void *gm_object_search(const struct gm_object *object, const char *symbol, const char *version)
{
    if (object->map->l_name[0] == '\0')
        return NULL; /* the program: its search list is the global one */
    void *handle = dlopen(object->map->l_name, RTLD_LAZY | RTLD_NOLOAD);
    if (handle == NULL)
        return NULL;
    void *found = version == NULL ? gm_real_dlsym(handle, symbol) : dlvsym(handle, symbol, version);
    gm_next_dlclose(handle);
    return found;
}

bool gm_road_is_ours(uint16_t api, const void *found, const void *asker)
{
    struct gm_object object;
    if (gm_object_of(found, &object) && gm_object_precedes_us(&object))
        return false;
    return !gm_object_of(asker, &object) || gm_object_precedes_us(&object) ||
           gm_object_function(&object, gm_api[api].symbol) == NULL;
}

static void *wrapper_of(uint16_t api)
{
    return (void *)gm_api[api].wrapper;
}

/* A copy of the driver in a dlmopen namespace is another driver: it stays apart. */
static bool is_in_our_namespace(void *handle)
{
    Lmid_t namespace;
    return dlinfo(handle, RTLD_DI_LMID, &namespace) != 0 || namespace == LM_ID_BASE;
}

/* dlopen(NULL): the global scope, in which we stand ourselves. */
static bool is_global_scope(void *handle)
{
    struct link_map *map;
    return dlinfo(handle, RTLD_DI_LINKMAP, &map) == 0 && map->l_prev == NULL;
}

/* Real lookup of a name of the table through a handle. Jumped to by the hook, so that the return
 * address is the asker's. */
static void *find_in_handle(void *handle, const char *symbol)
{
    const void *asker = __builtin_return_address(0);
    uint16_t api = gm_api_find(symbol);
    void *found = dlsym_of_next()(handle, symbol);
    if (found == NULL)
        return NULL;
    if (found == wrapper_of(api)) {
        /* Without us the global scope would hold what comes after us, or nothing. */
        if (is_global_scope(handle) && gm_next_symbol(symbol, NULL) == NULL)
            return NULL;
        return found;
    }
    bool ours = is_in_our_namespace(handle) && gm_road_is_ours(api, found, asker) &&
                (gm_is_preloaded() || is_definition(found, symbol)) &&
                gm_real_offer(api, found, asker);
    return ours ? wrapper_of(api) : found;
}

/* Real lookup of a form of a function of the table that the table does not know. */
static void *find_newer_abi(void *handle, const char *symbol)
{
    void *found = dlsym_of_next()(handle, symbol);
    if (found != NULL)
        gm_newer_abi_note(gm_newer_abi_form(symbol), 0, strchr(symbol, '_'));
    return found;
}

/*
 * Whether RTLD_DEFAULT finds a name of the table without our help. It searches the global scope
 * and then the asker's own; in both our export must not count. Not seen: a definition that only a
 * sibling of the asker depends on, loaded with RTLD_LOCAL together with both.
 */
static bool exists_by_default(uint16_t api, const char *symbol, const void *asker)
{
    struct gm_object object;
    void *found = gm_real_dlsym(RTLD_DEFAULT, symbol);
    if (found != wrapper_of(api))
        return true; /* we are not what is found: nothing to hide */
    if (gm_next_symbol(symbol, NULL) != NULL)
        return true;
    /* Last, so that the text it leaves in dlerror is the one that the asker would have got. */
    return gm_object_of(asker, &object) && gm_object_search(&object, symbol, NULL) != NULL;
}

/*
 * The same for RTLD_NEXT. Only an asker before us (the program, an interposer) has us behind it;
 * natively it finds what stands between or what comes after us.
 */
static bool exists_next(const char *symbol, const void *asker)
{
    struct gm_object object;
    struct gm_object us;
    if (!gm_object_of(asker, &object) || !gm_object_precedes_us(&object) ||
        !gm_object_of((const void *)exists_next, &us))
        return true;
    for (us.map = us.map->l_prev; us.map != object.map; us.map = us.map->l_prev)
        if (gm_object_function(&us, symbol) != NULL)
            return true;
    return gm_next_symbol(symbol, NULL) != NULL;
}

static void *find_nothing(void *handle, const char *symbol)
{
    (void)handle;
    (void)symbol;
    return NULL; /* dlerror's text was left by the search */
}

/* The search must be the asker's own; another one before it tells whether it will find something. */
static void note_newer_abi(const char *symbol)
{
    if (gm_next_symbol(symbol, NULL) != NULL)
        gm_newer_abi_note(gm_newer_abi_form(symbol), 0, strchr(symbol, '_'));
}

/* Where a call of dlsym goes on: called by the hook below, which then jumps there. */
__attribute__((used, visibility("hidden"))) dlsym_function *
gm_dlsym_target(void *handle, const char *symbol, const void *asker);

GM_BEFORE_SANITIZERS dlsym_function *gm_dlsym_target(void *handle, const char *symbol,
                                                     const void *asker)
{
    uint16_t api = symbol == NULL ? 0 : gm_api_find(symbol);
    bool by_handle = handle != RTLD_DEFAULT && handle != RTLD_NEXT;
    if (gm_likely(api == 0)) {
        if (gm_likely(symbol == NULL || gm_newer_abi_form(symbol) == 0))
            return dlsym_of_next();
        if (by_handle)
            return find_newer_abi;
        note_newer_abi(symbol);
        return dlsym_of_next();
    }
    if (by_handle)
        return find_in_handle;
    /* Where there is something to find, the loader's answer is right: our wrapper, or whatever
     * comes before it for the asker. */
    bool exists =
        handle == RTLD_NEXT ? exists_next(symbol, asker) : exists_by_default(api, symbol, asker);
    return exists ? dlsym_of_next() : find_nothing;
}

/*
 * void *dlsym(void *handle, const char *symbol): keeps both arguments and the return address, asks
 * gm_dlsym_target, jumps. Assembly, because a compiler makes a jump of a call only when it
 * optimises.
 */
#if defined(__x86_64__)
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        ".globl dlsym, gm_dlsym_hook\n"
        ".hidden gm_dlsym_hook\n"
        ".type dlsym, @function\n"
        ".type gm_dlsym_hook, @function\n"
        "dlsym:\n"
        "gm_dlsym_hook:\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "subq $24, %rsp\n"
        ".cfi_adjust_cfa_offset 24\n"
        "movq %rdi, (%rsp)\n"
        "movq %rsi, 8(%rsp)\n"
        "movq 24(%rsp), %rdx\n"
        "call gm_dlsym_target\n"
        "movq (%rsp), %rdi\n"
        "movq 8(%rsp), %rsi\n"
        "addq $24, %rsp\n"
        ".cfi_adjust_cfa_offset -24\n"
        "jmp *%rax\n"
        ".cfi_endproc\n"
        ".size dlsym, .-dlsym\n"
        ".popsection\n");
#elif defined(__aarch64__)
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        ".globl dlsym, gm_dlsym_hook\n"
        ".hidden gm_dlsym_hook\n"
        ".type dlsym, %function\n"
        ".type gm_dlsym_hook, %function\n"
        "dlsym:\n"
        "gm_dlsym_hook:\n"
        ".cfi_startproc\n"
        "hint #34\n" /* bti c */
        "stp x29, x30, [sp, #-32]!\n"
        ".cfi_def_cfa_offset 32\n"
        ".cfi_offset 29, -32\n"
        ".cfi_offset 30, -24\n"
        "mov x29, sp\n"
        "stp x0, x1, [sp, #16]\n"
        "mov x2, x30\n"
        "bl gm_dlsym_target\n"
        "mov x16, x0\n" /* a jump through x16 may land on bti c */
        "ldp x0, x1, [sp, #16]\n"
        "ldp x29, x30, [sp], #32\n"
        ".cfi_restore 29\n"
        ".cfi_restore 30\n"
        ".cfi_def_cfa_offset 0\n"
        "br x16\n"
        ".cfi_endproc\n"
        ".size dlsym, .-dlsym\n"
        ".popsection\n");
#else
#error "The dlsym hook needs a jump for this architecture."
#endif
