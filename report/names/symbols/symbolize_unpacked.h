/* How much the compressed parts of a module's file unpack to.
 *
 * The libraries that read debug info unpack whole sections, as large as the file says, and a file
 * of a megabyte can hold a gigabyte of zeros. So this is found out before they are asked, without
 * unpacking anything. */
#ifndef GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_UNPACKED_H
#define GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_UNPACKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include <libelf.h>

/* Whether an ELF file unpacks to more than debug info that a compiler wrote: that shrinks to a
 * third or a tenth. True also where that cannot be told. */
bool gm_unpacks_to_too_much(Elf *elf);

/* Bytes that a stream of xz unpacks to; UINT64_MAX if it is none, or has another filter than LZMA2. */
uint64_t gm_xz_unpacked_size(const uint8_t *bytes, size_t size);

#endif
