/*
 * Which memory of ours a shareable handle stands for, so that an import of it in this process is
 * told as a further handle of that memory.
 *
 * Guarantees: says only what is certain. A fabric handle is known by its bytes, a file of memory
 * (a DMA-BUF) by its number in the system, under whatever descriptor it comes back. Descriptors of
 * one device node are all alike: of these nothing is said, since the number of one that was closed
 * is given to others.
 */
#include "base/handles.h"
#include "hooks/effects.h"
#include <sys/stat.h>

GM_HANDLES(exported, 64);     /* name of what was exported -> handle */
GM_HANDLES(export_names, 64); /* handle -> the latest such name */

static uint64_t mix_word(uint64_t hash, uint64_t word)
{
    return (hash ^ word) * 0x9e3779b97f4a7c15u ^ (hash ^ word) >> 29;
}

/* 0: it has none. */
static uint64_t name_of_handle(const void *shareable, CUmemAllocationHandleType type)
{
    uint64_t name = mix_word(0, (uint64_t)type);
    struct stat status;
    if (type == CU_MEM_HANDLE_TYPE_FABRIC) {
        const uint64_t *words = shareable;
        for (int i = 0; words && i < 8; i++)
            name = mix_word(name, words[i]);
        return words ? name : 0;
    }
    if (type != CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR ||
        fstat((int)(intptr_t)shareable, &status) != 0 || S_ISCHR(status.st_mode))
        return 0;
    return mix_word(mix_word(name, status.st_dev), status.st_ino);
}

void gm_driver_vmm_export(struct gm_call *call, int result, const void *shareable, uint64_t handle,
                          CUmemAllocationHandleType type)
{
    gm_effect_export(call, result, handle, 0);
    if (result != 0 || !shareable)
        return;
    if (type == CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR)
        shareable = (const void *)(intptr_t) * (const int *)shareable;
    const uint64_t name = name_of_handle(shareable, type);
    if (name && gm_handles_set(&export_names, handle, name))
        gm_handles_set(&exported, name, handle);
}

uint64_t gm_shareable_handle(const void *shareable, CUmemAllocationHandleType type)
{
    const uint64_t name = name_of_handle(shareable, type),
                   handle = name ? gm_handles_get(&exported, name) : 0;
    return handle && gm_handles_get(&export_names, handle) == name ? handle : 0;
}

void gm_shareable_handle_new(uint64_t handle)
{
    if (!gm_handles_get(&export_names, handle))
        return;
    const uint64_t name = gm_handles_take(&export_names, handle);
    /* Another handle of the same memory may have the name by now. */
    if (gm_handles_get(&exported, name) == handle)
        gm_handles_take(&exported, name);
}

void gm_shareable_forget(void)
{
    gm_handles_clear(&exported);
    gm_handles_clear(&export_names);
}
