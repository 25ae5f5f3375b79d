/* See redirect.h. */
#define _GNU_SOURCE
#include "loader/redirect.h"
#include "loader/objects.h"
#include <elf.h>
#include <stdbool.h>
#include <sys/mman.h>
#include <unistd.h>

#if defined(__x86_64__)
enum { CALL_SLOT = R_X86_64_JUMP_SLOT, ADDRESS_SLOT = R_X86_64_GLOB_DAT };
#elif defined(__aarch64__)
enum { CALL_SLOT = R_AARCH64_JUMP_SLOT, ADDRESS_SLOT = R_AARCH64_GLOB_DAT };
#endif

struct redirection {
    gm_replacement *replacement;
    uintptr_t page_size;
    uintptr_t protected_start; /* pages that the loader protected after it had filled them */
    uintptr_t protected_end;
};

static void store(uintptr_t *slot, uintptr_t value)
{
    __atomic_store_n(slot, value, __ATOMIC_RELEASE);
}

static bool redirect(const struct gm_import *import, void *data)
{
    const struct redirection *how = data;
    if (import->type != CALL_SLOT && import->type != ADDRESS_SLOT)
        return true;
    uintptr_t value = how->replacement(import->name);
    if (value == 0 || *import->slot == 0) /* 0: a weak reference to nothing stays that */
        return true;
    uintptr_t address = (uintptr_t)import->slot;
    if (address < how->protected_start || address >= how->protected_end) {
        store(import->slot, value);
        return true;
    }
    void *page = (void *)(address & ~(how->page_size - 1));
    if (mprotect(page, how->page_size, PROT_READ | PROT_WRITE) == 0) {
        store(import->slot, value);
        mprotect(page, how->page_size, PROT_READ);
    }
    return true;
}

void gm_redirect_imports(const struct dl_phdr_info *object, gm_replacement *replacement)
{
    struct redirection how = {.replacement = replacement,
                              .page_size = (uintptr_t)sysconf(_SC_PAGESIZE)};
    for (size_t i = 0; i < object->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &object->dlpi_phdr[i];
        uintptr_t start = object->dlpi_addr + segment->p_vaddr;
        if (segment->p_type == PT_GNU_RELRO) {
            how.protected_start = start & ~(how.page_size - 1);
            how.protected_end = (start + segment->p_memsz) & ~(how.page_size - 1);
        }
    }
    struct link_map map;
    struct gm_object described;
    if (gm_object_told(object, &map, &described))
        gm_object_each_import(&described, redirect, &how);
}
