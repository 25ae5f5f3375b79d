/* See unwind_image.h. */
#include "stack/native/unwind_image.h"
#include "base/platform.h"
#include "stack/native/unwind_maps.h"
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stddef.h>
#include <string.h>

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* the headers are of glibc 2.35 or newer */
#define HAVE_FIND_OBJECT 1
typedef int find_object_function(void *address, struct dl_find_object *result);

/*
 * Found by name at run time: a reference, even a weak one, would make the library need the symbol
 * version GLIBC_2.35 and so refuse to load on an older system.
 */
static _Atomic(find_object_function *) find_object;
#endif

void gm_image_open(void)
{
#ifdef HAVE_FIND_OBJECT
    find_object_function *function = (find_object_function *)dlsym(RTLD_DEFAULT, "_dl_find_object");
    atomic_store_explicit(&find_object, function, memory_order_release);
#endif
}

bool gm_image_segments(uint64_t base, const ElfW(Phdr) * *segments, uint16_t *count, uint64_t *bias)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)(uintptr_t)base;
    uint64_t lowest = UINT64_MAX;
    if (memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_ident[EI_CLASS] != (sizeof(void *) == 8 ? ELFCLASS64 : ELFCLASS32) ||
        header->e_phentsize != sizeof(ElfW(Phdr)))
        return false;
    *segments = (const ElfW(Phdr) *)(uintptr_t)(base + header->e_phoff);
    *count = header->e_phnum;
    for (unsigned i = 0; i < *count; i++)
        if ((*segments)[i].p_type == PT_LOAD && (*segments)[i].p_vaddr < lowest)
            lowest = (*segments)[i].p_vaddr;
    *bias = base - (lowest & ~(uint64_t)4095);
    return lowest != UINT64_MAX;
}

/* The image whose file starts at `base` in memory, from its own program headers. */
static bool read_headers(uint64_t base, struct gm_image *image)
{
    const ElfW(Phdr) * segment;
    uint16_t count;
    uint64_t bias;
    if (!gm_image_segments(base, &segment, &count, &bias))
        return false;
    *image = (struct gm_image){.start = base};
    for (; count-- > 0; segment++) {
        uint64_t start = bias + segment->p_vaddr, end = start + segment->p_memsz;
        if (segment->p_type == PT_GNU_EH_FRAME)
            image->eh_frame_header = (const uint8_t *)(uintptr_t)start;
        if (segment->p_type == PT_LOAD && end > image->end)
            image->end = end;
    }
    return true;
}

static bool find_in_maps(uint64_t address, struct gm_image *image)
{
    struct gm_mapping mapping;
    return gm_mapping_find(address, &mapping) && mapping.readable && mapping.file_start &&
           read_headers(mapping.file_start, image) && address < image->end;
}

bool gm_image_find_is_slow(void)
{
#ifdef HAVE_FIND_OBJECT
    return atomic_load_explicit(&find_object, memory_order_relaxed) == NULL;
#else
    return true;
#endif
}

bool gm_image_find(uint64_t address, struct gm_image *image)
{
#ifdef HAVE_FIND_OBJECT
    find_object_function *function = atomic_load_explicit(&find_object, memory_order_acquire);
    if (function) {
        struct dl_find_object object;
        if (function((void *)(uintptr_t)address, &object) != 0)
            return false;
        *image = (struct gm_image){.start = (uint64_t)(uintptr_t)object.dlfo_map_start,
                                   .end = (uint64_t)(uintptr_t)object.dlfo_map_end,
                                   .eh_frame_header = object.dlfo_eh_frame};
        return true;
    }
#endif
    return find_in_maps(address, image);
}
