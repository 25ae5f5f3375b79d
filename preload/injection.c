/*
 * The second door: CUDA_INJECTION64_PATH=libgpumem.so, where LD_PRELOAD cannot be set.
 *
 * The driver's first cuInit opens the library and calls InitializeInjection. It is too late then to
 * stand before anyone in the search order; instead the words through which the loaded objects call
 * imported functions are pointed at our hooks, once.
 *
 * Covered from then on, in objects that were loaded before cuInit: functions of the driver and of
 * the shared runtime that they import, and what they look up by dlsym.
 * Not covered: objects loaded later; the call under way; pointers fetched earlier, be it by taking
 * the address of an import, by dlsym or by cuGetProcAddress. A runtime fetches all of its own
 * before it calls cuInit, so programs with the static runtime go unseen, and with the shared one
 * only calls of the runtime's functions are seen, not what lies below them. LD_PRELOAD has none of
 * these limits.
 *
 * A word is replaced by one aligned store: other threads call the one function or the other. A word
 * on a page that the loader made read-only is made writable for that store only.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>
#include <sys/mman.h>

#include "api.h"
#include "platform.h"
#include "real.h"
#include "roads.h"

#if defined(__x86_64__)
enum { CALL_SLOT = R_X86_64_JUMP_SLOT, ADDRESS_SLOT = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { CALL_SLOT = R_AARCH64_JUMP_SLOT, ADDRESS_SLOT = R_AARCH64_GLOB_DAT };
#endif

/* Pages that the loader protected after it had filled them: [start, end). */
struct protected_pages {
    uintptr_t start;
    uintptr_t end;
    uintptr_t page_size;
};

static uintptr_t replacement(const char *name)
{
    if (strcmp(name, "dlsym") == 0)
        return (uintptr_t)gm_dlsym_hook;
    if (strcmp(name, "dlclose") == 0)
        return (uintptr_t)gm_dlclose_hook;
    uint16_t api = gm_api_find(name);
    return api != 0 ? (uintptr_t)gm_api[api].wrapper : 0;
}

static void store(uintptr_t *slot, uintptr_t value)
{
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
}

static bool redirect(const struct gm_import *import, void *data)
{
    const struct protected_pages *pages = data;
    if (import->type != CALL_SLOT && import->type != ADDRESS_SLOT)
        return true;
    uintptr_t value = replacement(import->name);
    if (value == 0 || *import->slot == 0) /* 0: a weak reference to nothing stays that */
        return true;
    uintptr_t address = (uintptr_t)import->slot;
    if (address < pages->start || address >= pages->end) {
        store(import->slot, value);
        return true;
    }
    void *page = (void *)(address & ~(pages->page_size - 1));
    if (mprotect(page, pages->page_size, PROT_READ | PROT_WRITE) == 0) {
        store(import->slot, value);
        mprotect(page, pages->page_size, PROT_READ);
    }
    return true;
}

static int redirect_object(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    const uintptr_t *page_size = data;
    const uintptr_t mask = ~(*page_size - 1);
    struct protected_pages pages = {.page_size = *page_size};
    /* Just what reading the object's tables takes: the loader's own map is not at hand here. */
    struct link_map map = {.l_addr = info->dlpi_addr, .l_name = (char *)info->dlpi_name};
    struct gm_object object = {.map = &map};
    uintptr_t here = (uintptr_t)redirect_object;
    bool ours = false;
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_DYNAMIC)
            map.l_ld = (ElfW(Dyn) *)start;
        if (segment->p_type == PT_LOAD && here - start < segment->p_memsz)
            ours = true;
        if (segment->p_type == PT_GNU_RELRO) {
            pages.start = start & mask;
            pages.end = (start + segment->p_memsz) & mask;
        }
    }
    /* The driver itself calls its own functions for its own reasons. */
    if (map.l_ld != NULL && !ours && gm_object_function(&object, "cuInit") == NULL)
        gm_object_each_import(&object, redirect, &pages);
    return 0;
}

/* Whether this library or another copy of it was preloaded and does the work already. Known by its
 * hooks: other tools export InitializeInjection too. */
static bool is_preloaded_somehow(void)
{
    struct gm_object object;
    void *program = dlopen(NULL, RTLD_LAZY | RTLD_NOLOAD);
    void *found = program != NULL ? gm_real_dlsym(program, "InitializeInjection") : NULL;
    return found != NULL && gm_object_of(found, &object) &&
           gm_object_function(&object, "dlsym") != NULL &&
           gm_object_function(&object, "cuGetProcAddress_v2") != NULL;
}

/* Called by the driver's first cuInit. Not 0: success. */
GM_EXPORT int InitializeInjection(void);

int InitializeInjection(void)
{
    static _Atomic bool done;
    const int error = errno;
    if (!atomic_exchange(&done, true) && !is_preloaded_somehow()) {
        uintptr_t page_size = (uintptr_t)sysconf(_SC_PAGESIZE);
        dl_iterate_phdr(redirect_object, &page_size);
    }
    errno = error;
    return 1;
}
