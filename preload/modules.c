/* See modules.h. */
#include "modules.h"
#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <string.h>
#include "platform.h"
#include "tables.h"
#include "trace_file.h"

#define KNOWN_MAX 4096u

/* One mapped range as found in /proc/self/maps: a module's span, or a stretch of memory without a
 * file. */
struct known {
    uint64_t start;
    uint64_t end;
    uint64_t load_bias;
    uint32_t generation; /* when it was last checked */
    uint16_t number;     /* 0: no module */
};

static struct known known[KNOWN_MAX];
static _Atomic uint32_t known_count;
static _Atomic uint32_t generation;
static struct gm_lock lock;

/* ---- /proc/self/maps
 * ------------------------------------------------------------------------------ */

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

/* ---- the ELF image in memory
 * ------------------------------------------------------------------------ */

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
    for (unsigned i = 0; found && i < header->e_phnum; i++) {
        uint64_t at = module->load_bias + segments[i].p_vaddr;
        if (segments[i].p_type == PT_NOTE && at >= image && at - image <= size &&
            segments[i].p_memsz <= size - (at - image) && !module->build_id_size)
            read_notes(module, (const char *)at, (const char *)at + segments[i].p_memsz);
    }
    return found && module->end > module->start;
}

/* ---- lookup
 * --------------------------------------------------------------------------------------- */

/* Newest first: an address range can have had another owner before. */
static const struct known *find_known(uint64_t address)
{
    uint32_t now = atomic_load_explicit(&generation, memory_order_acquire);
    for (uint32_t i = atomic_load_explicit(&known_count, memory_order_acquire); i-- > 0;)
        if (address - known[i].start < known[i].end - known[i].start)
            return __atomic_load_n(&known[i].generation, __ATOMIC_ACQUIRE) == now ? &known[i]
                                                                                  : NULL;
    return NULL;
}

/* The same image that is already recorded, after a dlclose of something else. */
static struct known *find_same(const struct gm_module *module, uint32_t path)
{
    for (uint32_t i = atomic_load_explicit(&known_count, memory_order_relaxed); i-- > 0;) {
        if (known[i].start != module->start)
            continue;
        struct gm_module *before = known[i].number ? gm_module_entry(known[i].number) : NULL;
        bool same = before && before->path == path && before->end == module->end &&
                    before->build_id_size == module->build_id_size &&
                    memcmp(before->build_id, module->build_id, sizeof(module->build_id)) == 0;
        return same ? &known[i] : NULL;
    }
    return NULL;
}

static const struct known *remember(const struct gm_module *module, uint16_t module_number)
{
    uint32_t count = atomic_load_explicit(&known_count, memory_order_relaxed);
    if (count == KNOWN_MAX)
        return NULL;
    known[count] = (struct known){
        .start = module->start,
        .end = module->end,
        .load_bias = module->load_bias,
        .generation = atomic_load_explicit(&generation, memory_order_relaxed),
        .number = module_number,
    };
    atomic_store_explicit(&known_count, count + 1, memory_order_release);
    return &known[count];
}

/* Records the module around `found`, whose header is mapped at `image`. Caller holds the lock. */
static const struct known *record(const struct mapping *found, uint64_t image, uint64_t image_size)
{
    struct gm_module module = {.start = found->start, .end = found->end, .load_bias = 0};
    uint16_t module_number = 0;
    if (image && read_image(&module, image, image_size)) {
        module.generation = atomic_load_explicit(&generation, memory_order_relaxed);
        module.path = gm_string_intern(found->path, strlen(found->path));
        struct known *same = find_same(&module, module.path);
        if (same) {
            __atomic_store_n(&same->generation, module.generation, __ATOMIC_RELEASE);
            return same;
        }
        struct gm_module *entry = gm_module_append(&module_number);
        if (entry) {
            *entry = module;
            gm_module_publish();
        } else {
            gm_count(GM_COUNT_MODULE_LIMIT, 1);
        }
    }
    return remember(&module, module_number);
}

static bool open_maps(void)
{
    char path[GM_OWN_PROC_MAX];
    maps.descriptor =
        (int)syscall(SYS_openat, AT_FDCWD, gm_own_proc(path, "maps"), O_RDONLY | O_CLOEXEC);
    maps.at = maps.filled = 0;
    return maps.descriptor >= 0;
}

/*
 * Walks the maps to the line that holds `address`; the module's header is the mapping of the same
 * file at offset 0 that comes last before it (a file can be mapped more than once).
 */
static const struct known *look_up(uint64_t address)
{
    uint64_t image = 0, image_size = 0, image_inode = 0;
    if (!open_maps())
        return NULL;
    const struct known *result = NULL;
    while (next_mapping() && mapping.start <= address) {
        if (mapping.offset == 0 && mapping.inode) {
            image = mapping.readable ? mapping.start : 0;
            image_size = mapping.end - mapping.start;
            image_inode = mapping.inode;
        }
        if (address < mapping.end) {
            bool vdso = strcmp(mapping.path, "[vdso]") == 0;
            if (vdso)
                image = mapping.start, image_size = mapping.end - mapping.start;
            bool own = vdso || (mapping.inode && mapping.inode == image_inode);
            result = record(&mapping, own ? image : 0, image_size);
            break;
        }
    }
    syscall(SYS_close, maps.descriptor);
    return result;
}

uint16_t gm_module_of(uint64_t address, uint64_t *offset)
{
    const struct known *found = find_known(address);
    if (gm_unlikely(!found)) {
        gm_lock_take(&lock);
        found = find_known(address);
        if (!found)
            found = look_up(address);
        gm_lock_release(&lock);
    }
    *offset = found && found->number ? address - found->load_bias : address;
    return found ? found->number : 0;
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
    atomic_store_explicit(&known_count, 0, memory_order_relaxed);
    lock = (struct gm_lock){0};
}
