/* See symbolize_unpacked.h.
 *
 * The format of xz is that of "The .xz File Format" 1.2.0; chunks of LZMA2 say in their headers what
 * they unpack to, and decoders hold them to it, while the sizes in a stream's index are compared
 * only when all has been unpacked. */
#include "names/symbols/symbolize_unpacked.h"

#include <gelf.h>
#include <string.h>

/* A file of the size of a small trace (2 MB) may unpack to 96 MiB, in less than half a second. */
#define UNPACKED_ANY (UINT64_C(48) << 20)
#define UNPACKED_PER_BYTE 24u

#define UNKNOWN UINT64_MAX

/* ---- xz -------------------------------------------------------------------------------------- */

struct reader {
    const uint8_t *bytes;
    size_t size;
    size_t at;
    bool good; /* all was there so far */
};

static uint8_t read_byte(struct reader *reader)
{
    reader->good = reader->good && reader->at < reader->size;
    return reader->good ? reader->bytes[reader->at++] : 0;
}

static void skip_bytes(struct reader *reader, size_t count)
{
    reader->good = reader->good && count <= reader->size - reader->at;
    if (reader->good)
        reader->at += count;
}

static uint32_t read_two(struct reader *reader)
{
    uint32_t high = read_byte(reader);
    return high << 8 | read_byte(reader);
}

static uint64_t read_unpacked_number(struct reader *reader)
{
    uint64_t value = 0;
    for (unsigned shift = 0; shift < 63; shift += 7) {
        uint8_t byte = read_byte(reader);
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
    reader->good = false;
    return 0;
}

/* A chunk of LZMA2; false behind the last one. */
static bool read_chunk(struct reader *reader, uint64_t *unpacked)
{
    uint8_t control = read_byte(reader);
    if (control == 0 || !reader->good)
        return false;
    uint32_t size = read_two(reader) + 1; /* at most 64 KiB are stored as they are */
    if (control >= 0x80) {
        size += (control & 0x1fu) << 16;
        uint32_t packed = read_two(reader) + 1;
        if (control >= 0xc0)
            read_byte(reader); /* new properties */
        skip_bytes(reader, packed);
    } else {
        skip_bytes(reader, size);
        reader->good = reader->good && control <= 2;
    }
    *unpacked += size;
    return reader->good;
}

#define BLOCK_FILTERS 0x03 /* less one */
#define BLOCK_HAS_PACKED 0x40
#define BLOCK_HAS_UNPACKED 0x80
#define FILTER_LZMA2 0x21

/* Behind the byte with the size of its header. */
static void read_unpacked_block(struct reader *reader, uint8_t header, size_t check,
                                uint64_t *unpacked)
{
    size_t start = reader->at - 1;
    uint8_t flags = read_byte(reader);
    if (flags & BLOCK_HAS_PACKED)
        read_unpacked_number(reader);
    if (flags & BLOCK_HAS_UNPACKED)
        read_unpacked_number(reader);
    if ((flags & BLOCK_FILTERS) != 0 || read_unpacked_number(reader) != FILTER_LZMA2)
        reader->good = false;
    reader->at = start;
    skip_bytes(reader, (header + 1u) * 4u);
    while (read_chunk(reader, unpacked))
        ;
    skip_bytes(reader, (start - reader->at) % 4 + check);
}

uint64_t gm_xz_unpacked_size(const uint8_t *bytes, size_t size)
{
    static const uint8_t magic[] = {0xfd, '7', 'z', 'X', 'Z', 0};
    struct reader reader = {.bytes = bytes, .size = size, .good = true};
    uint64_t unpacked = 0;

    if (size < sizeof(magic) || memcmp(bytes, magic, sizeof(magic)) != 0)
        return UNKNOWN;
    reader.at = sizeof(magic) + 1;
    uint8_t type = read_byte(&reader) & 0x0f; /* of the check behind each block */
    size_t check = type == 0 ? 0 : (size_t)4 << (type - 1) / 3;
    skip_bytes(&reader, 4);
    for (uint8_t header; reader.good && (header = read_byte(&reader)) != 0;) /* 0: the index */
        read_unpacked_block(&reader, header, check, &unpacked);
    return reader.good ? unpacked : UNKNOWN;
}

/* ---- sections -------------------------------------------------------------------------------- */

/* What binutils wrote before there was SHF_COMPRESSED: "ZLIB", then the size, the highest byte first. */
static uint64_t size_in_old_header(Elf_Scn *section)
{
    const Elf_Data *data = elf_rawdata(section, NULL);
    uint64_t size = 0;

    if (data == NULL || data->d_buf == NULL || data->d_size < 12 ||
        memcmp(data->d_buf, "ZLIB", 4) != 0)
        return 0; /* nothing unpacks it */
    for (size_t i = 4; i < 12; i++)
        size = size << 8 | ((const uint8_t *)data->d_buf)[i];
    return size;
}

static uint64_t size_of_symbols(Elf_Scn *section)
{
    const Elf_Data *data = elf_rawdata(section, NULL);

    return data == NULL || data->d_buf == NULL ? 0 : gm_xz_unpacked_size(data->d_buf, data->d_size);
}

static uint64_t size_by_name(Elf *elf, Elf_Scn *section, size_t names)
{
    GElf_Shdr header;

    if (gelf_getshdr(section, &header) == NULL || header.sh_type == SHT_NOBITS)
        return 0;
    const char *name = elf_strptr(elf, names, header.sh_name);
    if (name == NULL)
        return 0;
    if (strncmp(name, ".zdebug", strlen(".zdebug")) == 0)
        return size_in_old_header(section);
    return strcmp(name, ".gnu_debugdata") == 0 ? size_of_symbols(section) : 0;
}

static uint64_t size_by_flag(Elf_Scn *section)
{
    GElf_Shdr header;
    GElf_Chdr compression;

    if (gelf_getshdr(section, &header) == NULL || (header.sh_flags & SHF_COMPRESSED) == 0)
        return 0;
    return gelf_getchdr(section, &compression) == NULL ? 0 : compression.ch_size;
}

/* Counts `bytes`; false if that is more than is left. */
static bool take_bytes(uint64_t *left, uint64_t bytes)
{
    if (bytes > *left)
        return false;
    *left -= bytes;
    return true;
}

/* Names are looked at last: the section that holds them can itself be compressed. */
bool gm_unpacks_to_too_much(Elf *elf)
{
    size_t size, names;

    if (elf_rawfile(elf, &size) == NULL)
        return true;
    uint64_t left = UNPACKED_ANY + (uint64_t)size * UNPACKED_PER_BYTE;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;)
        if (!take_bytes(&left, size_by_flag(section)))
            return true;
    if (elf_getshdrstrndx(elf, &names) != 0)
        return false;
    for (Elf_Scn *section = NULL; (section = elf_nextscn(elf, section)) != NULL;)
        if (!take_bytes(&left, size_by_name(elf, section, names)))
            return true;
    return false;
}
