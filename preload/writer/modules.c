/* See modules.h. */
#include "writer/modules.h"
#include "base/change.h"
#include "base/count.h"
#include "writer/tables.h"
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>

#define KNOWN_MAX 4096u

/*
 * One mapped range as found in /proc/self/maps: a module's span, or a stretch of memory without a
 * file. No two have an address in common. Who has the lock changes them in place; who has not
 * believes what it read only if `sequence` was even before and is the same behind.
 */
struct known {
    _Atomic uint32_t sequence;
    uint32_t generation; /* when it was last checked */
    uint64_t start;
    uint64_t end; /* start: nothing */
    uint64_t load_bias;
    uint16_t number; /* 0: no module */
    bool lost;       /* there is one, but the table of modules was full */
};

static struct known known[KNOWN_MAX];
static _Atomic uint32_t known_count;
static uint32_t victim; /* guarded by the lock, as all writing */
static _Atomic uint32_t generation;
static struct gm_lock lock = GM_LOCK(GM_RANK_MODULES);

/* ---- /proc/self/maps ------------------------------------------------------------------------- */

static struct mapping {
    uint64_t start;
    uint64_t end;
    uint64_t offset;
    uint64_t inode;
    bool readable;
    char path[GM_STRING_LENGTH_MAX];
} mapping;

static struct maps {
    int descriptor;
    size_t at;
    size_t filled;
    char text[16384];
} maps; /* static, as `mapping` is: a hook's stack may be small. Guarded by the lock. */

static int next_byte(void)
{
    if (maps.at == maps.filled) {
        ssize_t got;
        do
            got = syscall(SYS_read, maps.descriptor, maps.text, sizeof(maps.text));
        while (got < 0 && errno == EINTR);
        if (got <= 0)
            return -1;
        maps.at = 0;
        maps.filled = (size_t)got;
    }
    return (unsigned char)maps.text[maps.at++];
}

/* A number in `base`; *stop is the byte behind it, -1 at the end. */
static uint64_t number(unsigned base, int *stop)
{
    uint64_t value = 0;
    for (;;) {
        int byte = next_byte();
        unsigned digit = byte >= '0' && byte <= '9'   ? (unsigned)(byte - '0')
                         : byte >= 'a' && byte <= 'f' ? (unsigned)(byte - 'a' + 10)
                                                      : base;
        if (digit >= base) {
            *stop = byte;
            return value;
        }
        value = value * base + digit;
    }
}

/* One line: start-end perms offset major:minor inode path. */
static bool next_mapping(void)
{
    int byte;
    mapping.start = number(16, &byte);
    if (byte != '-')
        return false;
    mapping.end = number(16, &byte);
    byte = next_byte();
    mapping.readable = byte == 'r';
    while (byte > ' ')
        byte = next_byte(); /* the other permissions */
    mapping.offset = number(16, &byte);
    number(16, &byte);
    number(16, &byte);
    mapping.inode = number(10, &byte);
    size_t length = 0;
    while (byte == ' ')
        byte = next_byte();
    for (; byte >= 0 && byte != '\n'; byte = next_byte())
        if (length < sizeof(mapping.path) - 1)
            mapping.path[length++] = (char)byte;
    mapping.path[length] = 0;
    return byte == '\n';
}

/* ---- the ELF image in memory ----------------------------------------------------------------- */

/* Finds the build id among the notes at [at, end). */
static void read_notes(struct gm_module *module, const char *at, const char *end)
{
    while ((size_t)(end - at) >= sizeof(ElfW(Nhdr))) {
        ElfW(Nhdr) note;
        memcpy(&note, at, sizeof(note));
        uint64_t name = (note.n_namesz + 3u) & ~3ull, content = (note.n_descsz + 3u) & ~3ull;
        at += sizeof(note);
        if (name + content > (uint64_t)(end - at))
            return;
        if (note.n_type == NT_GNU_BUILD_ID && note.n_namesz == 4 && memcmp(at, "GNU", 4) == 0 &&
            note.n_descsz <= sizeof(module->build_id)) {
            module->build_id_size = (uint8_t)note.n_descsz;
            memcpy(module->build_id, at + name, note.n_descsz);
            return;
        }
        at += name + content;
    }
}

/* Looks for the build id in those notes of the header at `image` that lie in a readable mapping. */
static void read_notes_within(struct gm_module *module, uint64_t image, uint64_t start,
                              uint64_t end)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)image;
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)(image + header->e_phoff);
    for (unsigned i = 0; i < header->e_phnum && !module->build_id_size; i++) {
        uint64_t at = module->load_bias + segments[i].p_vaddr;
        if (segments[i].p_type == PT_NOTE && at >= start && at <= end &&
            segments[i].p_memsz <= end - at)
            read_notes(module, (const char *)at, (const char *)at + segments[i].p_memsz);
    }
}

/*
 * Fills the module from its ELF header, which stands at `image` and is readable for `size` bytes
 * there. False when it is no ELF image (a mapped data file with code jumped into, or a header not
 * mapped).
 */
static bool read_image(struct gm_module *module, uint64_t image, uint64_t size)
{
    const ElfW(Ehdr) *header = (const ElfW(Ehdr) *)image;
    if (size < sizeof(*header) || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
        header->e_phentsize != sizeof(ElfW(Phdr)) ||
        header->e_phoff + (uint64_t)header->e_phnum * sizeof(ElfW(Phdr)) > size)
        return false;
    const ElfW(Phdr) *segments = (const ElfW(Phdr) *)(image + header->e_phoff);
    bool found = false;
    uint64_t last = 0;
    for (unsigned i = 0; i < header->e_phnum; i++) {
        if (segments[i].p_type != PT_LOAD)
            continue;
        if (!found) { /* the first one holds the header: file offset 0 is its page */
            module->load_bias = image - (segments[i].p_vaddr & ~(uint64_t)(GM_TRACE_PAGE - 1));
            found = true;
        }
        last = segments[i].p_vaddr + segments[i].p_memsz;
    }
    module->start = image;
    module->end = module->load_bias + last;
    if (found)
        read_notes_within(module, image, image, image + size);
    return found && module->end > module->start;
}

/* The same in the file's other mappings: what edits a library moves its notes to the end, as is done to
 * each that comes in a wheel of Python. Walks the maps again from their begin. */
static void read_distant_notes(struct gm_module *module, uint64_t image, uint64_t inode)
{
    if (syscall(SYS_lseek, maps.descriptor, 0, SEEK_SET) != 0)
        return;
    maps.at = maps.filled = 0;
    while (!module->build_id_size && next_mapping() && mapping.start < module->end)
        if (mapping.inode == inode && mapping.readable && mapping.start >= module->start)
            read_notes_within(module, image, mapping.start, mapping.end);
}

/* ---- lookup ---------------------------------------------------------------------------------- */

/* False if the entry is being written. */
static inline bool read_known(const struct known *entry, struct known *read)
{
    uint32_t before = atomic_load_explicit(&entry->sequence, memory_order_acquire);
    read->start = __atomic_load_n(&entry->start, __ATOMIC_RELAXED);
    read->end = __atomic_load_n(&entry->end, __ATOMIC_RELAXED);
    read->load_bias = __atomic_load_n(&entry->load_bias, __ATOMIC_RELAXED);
    read->generation = __atomic_load_n(&entry->generation, __ATOMIC_RELAXED);
    read->number = __atomic_load_n(&entry->number, __ATOMIC_RELAXED);
    read->lost = __atomic_load_n(&entry->lost, __ATOMIC_RELAXED);
    atomic_thread_fence(memory_order_acquire);
    return !(before & 1) && atomic_load_explicit(&entry->sequence, memory_order_relaxed) == before;
}

static void write_known(struct known *entry, const struct known *to)
{
    uint32_t sequence = atomic_load_explicit(&entry->sequence, memory_order_relaxed);
    atomic_store_explicit(&entry->sequence, sequence + 1, memory_order_relaxed);
    atomic_thread_fence(memory_order_release);
    __atomic_store_n(&entry->start, to->start, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->end, to->end, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->load_bias, to->load_bias, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->generation, to->generation, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->number, to->number, __ATOMIC_RELAXED);
    __atomic_store_n(&entry->lost, to->lost, __ATOMIC_RELAXED);
    atomic_store_explicit(&entry->sequence, sequence + 2, memory_order_release);
}

/* Whether an address is of the entry, which is read as a whole only if it seems so. */
static inline bool is_in_module(uint64_t address, const struct known *entry, struct known *found)
{
    uint64_t start = __atomic_load_n(&entry->start, __ATOMIC_RELAXED);
    uint64_t end = __atomic_load_n(&entry->end, __ATOMIC_RELAXED);
    return address - start < end - start && read_known(entry, found) &&
           address - found->start < found->end - found->start;
}

/* What is known of an address, as long as no dlclose came since. An entry that is missed because it is
 * being written is looked up. */
static inline bool find_known(uint64_t address, struct known *found)
{
    uint32_t now = atomic_load_explicit(&generation, memory_order_acquire);
    for (uint32_t i = atomic_load_explicit(&known_count, memory_order_acquire); i-- > 0;)
        if (is_in_module(address, &known[i], found))
            return found->generation == now;
    return false;
}

/* Where a range is to be remembered: in the place of what it has an address in common with (there
 * it is as it was, or something else is there now), or of nothing, or of what is to be checked
 * anyway, or of whichever is next. */
static struct known *place_for(const struct known *range)
{
    struct known *free = NULL, *old = NULL, *same = NULL;
    uint32_t count = atomic_load_explicit(&known_count, memory_order_relaxed);
    for (uint32_t i = 0; i < count; i++) {
        struct known *entry = &known[i];
        if (entry->start < range->end && range->start < entry->end) {
            if (same)
                write_known(entry, &(struct known){0});
            else
                same = entry;
        } else if (entry->start == entry->end) {
            free = entry;
        } else if (entry->generation != range->generation) {
            old = entry;
        }
    }
    if (same || free)
        return same ? same : free;
    if (count < KNOWN_MAX) {
        atomic_store_explicit(&known_count, count + 1, memory_order_release);
        return &known[count];
    }
    return old ? old : &known[victim++ % KNOWN_MAX];
}

/* The same file, wherever it is mapped: what is told of it is told in its own terms. Without a
 * build id only its place tells it from another one that has taken its name. */
static bool is_same_module(const struct gm_module *one, const struct gm_module *other)
{
    return one->path == other->path && one->end - one->start == other->end - other->start &&
           one->start - one->load_bias == other->start - other->load_bias &&
           one->build_id_size == other->build_id_size &&
           memcmp(one->build_id, other->build_id, sizeof(one->build_id)) == 0 &&
           (one->build_id_size || one->start == other->start);
}

/* Its number in the trace, given now if it has none; 0: it could not be recorded. */
static uint16_t module_number(const struct gm_module *module)
{
    uint16_t number;
    for (uint32_t at = gm_module_count(); at-- > 1;)
        if (is_same_module(gm_module_entry((uint16_t)at), module))
            return (uint16_t)at;
    gm_change_begin();
    struct gm_module *entry = gm_module_append(&number);
    if (entry) {
        *entry = *module;
        gm_module_publish();
    }
    gm_change_end();
    return entry ? number : 0;
}

/* Records the module around `found`, whose header is mapped at `image`. Caller holds the lock.
 * What the file had no room for just now is not remembered, so that it is tried again. */
static struct known record_module(const struct mapping *found, uint64_t image, uint64_t image_size)
{
    struct gm_module module = {.start = found->start, .end = found->end};
    struct known range = {.generation = atomic_load_explicit(&generation, memory_order_relaxed)};
    bool is_module = image && read_image(&module, image, image_size);
    bool refused = false;
    if (is_module) {
        uint64_t inode = found->inode; /* `found` may be the mapping that is read next */
        module.generation = range.generation;
        module.path = gm_string_intern(found->path, strlen(found->path));
        if (inode && !module.build_id_size)
            read_distant_notes(&module, image, inode);
        refused = !module.path && !gm_strings_full();
        range.number = refused ? 0 : module_number(&module);
        range.lost = !refused && !range.number && gm_modules_full();
        if (!refused && !range.number && !range.lost) {
            gm_count(GM_COUNT_GROW_FAILED, 1);
            refused = true;
        }
    }
    range.start = module.start;
    range.end = module.end;
    range.load_bias = module.load_bias;
    if (!refused)
        write_known(place_for(&range), &range);
    return range;
}

static bool open_maps(void)
{
    char path[GM_OWN_PROC_MAX];
    maps.descriptor =
        (int)syscall(SYS_openat, AT_FDCWD, gm_own_proc(path, "maps"), O_RDONLY | O_CLOEXEC);
    maps.at = maps.filled = 0;
    return maps.descriptor >= 0;
}

/* Where the header of the file is whose mappings are being read. A module's is the mapping of the
 * same file at offset 0 that comes last before it (a file can be mapped more than once). */
struct header {
    uint64_t start; /* 0: it cannot be read */
    uint64_t size;
    uint64_t inode;
};

static void note_header(struct header *header)
{
    bool is_vdso = !mapping.inode && strcmp(mapping.path, "[vdso]") == 0;
    if (is_vdso || (mapping.offset == 0 && mapping.inode))
        *header = (struct header){mapping.readable ? mapping.start : 0, mapping.end - mapping.start,
                                  mapping.inode};
}

static bool is_headed(const struct header *header)
{
    return mapping.inode ? mapping.inode == header->inode : mapping.start == header->start;
}

/* Walks the maps to the line that holds `address`. */
static struct known look_up(uint64_t address)
{
    struct header header = {0};
    struct known result = {0};
    if (!open_maps()) {
        gm_count(GM_COUNT_MODULE_UNREAD, 1);
        return result;
    }
    while (next_mapping() && mapping.start <= address) {
        note_header(&header);
        if (address < mapping.end) {
            result = record_module(&mapping, is_headed(&header) ? header.start : 0, header.size);
            break;
        }
    }
    syscall(SYS_close, maps.descriptor);
    return result;
}

static uint32_t count_unknown(const uint64_t *addresses, uint32_t count, uint64_t start,
                              uint64_t end)
{
    struct known found;
    uint32_t unknown = 0;
    for (uint32_t i = 0; i < count; i++)
        unknown += addresses[i] - start < end - start && !find_known(addresses[i], &found);
    return unknown;
}

void gm_modules_check(const uint64_t *addresses, uint32_t count)
{
    struct header header = {0};
    if (count_unknown(addresses, count, 0, UINT64_MAX) < 2)
        return; /* one is looked up when it is met */
    gm_lock_take(&lock);
    uint32_t unknown = count_unknown(addresses, count, 0, UINT64_MAX);
    bool is_open = unknown && open_maps();
    while (is_open && unknown && next_mapping()) {
        note_header(&header);
        if (!is_headed(&header) || !count_unknown(addresses, count, mapping.start, mapping.end))
            continue;
        record_module(&mapping, header.start, header.size);
        unknown = count_unknown(addresses, count, 0, UINT64_MAX);
    }
    if (is_open)
        syscall(SYS_close, maps.descriptor);
    gm_lock_release(&lock);
}

uint16_t gm_module_of(uint64_t address, uint64_t *offset)
{
    struct known found;
    if (gm_unlikely(!find_known(address, &found))) {
        gm_lock_take(&lock);
        if (!find_known(address, &found))
            found = look_up(address);
        gm_lock_release(&lock);
    }
    if (gm_unlikely(found.lost))
        gm_count(GM_COUNT_MODULE_LIMIT, 1);
    *offset = found.number ? address - found.load_bias : address;
    return found.number;
}

bool gm_module_is_mapped(const char *prefix)
{
    bool found = false;
    gm_lock_take(&lock);
    if (open_maps()) {
        while (!found && next_mapping()) {
            const char *slash = strrchr(mapping.path, '/');
            found = slash && strncmp(slash + 1, prefix, strlen(prefix)) == 0;
        }
        syscall(SYS_close, maps.descriptor);
    }
    gm_lock_release(&lock);
    return found;
}

void gm_modules_changed(void)
{
    atomic_fetch_add_explicit(&generation, 1, memory_order_acq_rel);
}

void gm_modules_forget(void)
{
    memset(known, 0, sizeof(known[0]) * atomic_load_explicit(&known_count, memory_order_relaxed));
    atomic_store_explicit(&known_count, 0, memory_order_relaxed);
    victim = 0;
    gm_lock_forget(&lock);
}
