/*
 * Which loaded ELF image an address lies in, without the loader lock.
 */
#ifndef GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_IMAGE_H
#define GPUMEM_PRELOAD_STACK_NATIVE_UNWIND_IMAGE_H

#include <link.h>
#include <stdbool.h>
#include <stdint.h>

struct gm_image {
    uint64_t start;                 /* first mapped byte */
    uint64_t end;                   /* one past the last */
    const uint8_t *eh_frame_header; /* PT_GNU_EH_FRAME, NULL none */
};

/* Looks up what the C library offers for it; calls dlsym, so outside of any hook. */
void gm_image_open(void);

/*
 * The image that holds `address`. True if there is one. Asks _dl_find_object (glibc 2.35), which
 * takes no lock; with an older C library it reads /proc/self/maps.
 */
bool gm_image_find(uint64_t address, struct gm_image *image);

/*
 * The program headers of the image whose ELF header stands at `base`, and what is to be added to
 * their addresses. False if none stands there; `base` must be readable.
 */
bool gm_image_segments(uint64_t base, const ElfW(Phdr) * *segments, uint16_t *count,
                       uint64_t *bias);

/* Whether that read makes it worth keeping answers, which may be out of date some day. */
bool gm_image_find_is_slow(void);

#endif
