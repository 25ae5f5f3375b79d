/*
 * The dlsym hook: programs that open the driver by hand get our functions too.
 *
 * Guarantees
 *   - A name that is not in the table, RTLD_NEXT and RTLD_DEFAULT are answered by a jump to the real
 *     dlsym that leaves the return address and the arguments as they came: glibc tells by the return
 *     address who asks, and what "next" means.
 *   - A name of the table is looked up for real first. What does not exist without us stays NULL,
 *     with an error in dlerror. What exists is kept as the function behind our wrapper (real.c).
 *     A form of such a function that is not in the table (cuMemAlloc_v9) is found as natively, and
 *     noted: an ABI which the table does not know is left alone.
 *   - No lookup initialises anything: no trace, no thread, no CUDA call. No lock and no allocation
 *     besides libc's own.
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
#include "interpose/dlsym.h"
#include "interpose/newer_abi.h"
#include "interpose/real.h"
#include "loader/libc_dlsym.h"
#include "loader/next_symbol.h"
#include "writer/why.h"

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
    void *found = gm_next_dlsym()(handle, symbol);
    if (found == NULL)
        return NULL;
    if (found == wrapper_of(api)) {
        /* Without us the global scope would hold what comes after us, or nothing. */
        if (is_global_scope(handle) && gm_next_symbol(symbol, NULL) == NULL) {
            gm_why(GM_WHY_ROAD_ABSENT, 0, symbol);
            return NULL;
        }
        return found;
    }
    if (!is_in_our_namespace(handle)) {
        gm_why(GM_WHY_ROAD_NAMESPACE, (uintptr_t)found, symbol);
        return found;
    }
    if (!gm_real_is_wanted(api, found, asker))
        return found;
    if (!gm_is_preloaded() && !gm_object_is_definition(found, symbol)) {
        gm_why(GM_WHY_ROAD_NOT_DEFINED, (uintptr_t)found, symbol);
        return found;
    }
    return gm_real_offer(api, found, asker) ? wrapper_of(api) : found;
}

/* Real lookup of a plugin of XLA's. */
static void *find_pjrt(void *handle, const char *symbol)
{
    void *found = gm_next_dlsym()(handle, symbol);
    return found != NULL && is_in_our_namespace(handle) ? gm_pjrt_offer(found) : found;
}

/* Real lookup of a form of a function of the table that the table does not know. */
static void *find_newer_abi(void *handle, const char *symbol)
{
    void *found = gm_next_dlsym()(handle, symbol);
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
__attribute__((used, visibility("hidden"))) gm_dlsym *
gm_dlsym_target(void *handle, const char *symbol, const void *asker);

GM_BEFORE_SANITIZERS gm_dlsym *gm_dlsym_target(void *handle, const char *symbol, const void *asker)
{
    uint16_t api = symbol == NULL ? 0 : gm_api_find(symbol);
    bool by_handle = handle != RTLD_DEFAULT && handle != RTLD_NEXT;
    if (gm_likely(api == 0)) {
        if (symbol != NULL && by_handle && gm_unlikely(strcmp(symbol, GM_PJRT_GET) == 0))
            return find_pjrt;
        if (gm_likely(symbol == NULL || gm_newer_abi_form(symbol) == 0))
            return gm_next_dlsym();
        if (by_handle)
            return find_newer_abi;
        note_newer_abi(symbol);
        return gm_next_dlsym();
    }
    if (by_handle)
        return find_in_handle;
    /* Where there is something to find, the loader's answer is right: our wrapper, or whatever
     * comes before it for the asker. */
    bool exists =
        handle == RTLD_NEXT ? exists_next(symbol, asker) : exists_by_default(api, symbol, asker);
    if (!exists)
        gm_why(GM_WHY_ROAD_ABSENT, 0, symbol);
    return exists ? gm_next_dlsym() : find_nothing;
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
