/*
 * What the loader's own tables say of a loaded object.
 *
 * Everything here only reads memory of objects that stay loaded during the call (the caller of a
 * hook, the owner of a function just found); no lock is taken where glibc offers _dl_find_object
 * (2.35), nothing is allocated, and dlerror's state is left alone. Relies on the ELF tables that
 * the loader itself used: they were good enough to load the object.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <stdatomic.h>
#include <stddef.h>
#include <string.h>

#include "base/platform.h"
#include "loader/libc_dlsym.h"
#include "loader/objects.h"

/* The dynamic section, with addresses made absolute. Absent tables are NULL. */
struct dynamic {
    const ElfW(Sym) * symbols;
    const char *strings;
    const uint32_t *gnu_hash;
    const uint32_t *hash;
    const ElfW(Half) * versions;
    const char *needed_versions;
    size_t needed_version_count;
    bool defines_versions;
    const ElfW(Rela) * jump_relocations;
    size_t jump_relocation_count;
    const ElfW(Rela) * relocations;
    size_t relocation_count;
    size_t relative_count; /* the first of them that name no symbol */
};

/* The loader makes most of these addresses absolute in place, but not in read-only sections. */
static const void *absolute_address(const struct link_map *map, ElfW(Addr) value)
{
    return (const void *)(value < map->l_addr ? map->l_addr + value : value);
}

static struct dynamic read_dynamic(const struct link_map *map)
{
    struct dynamic dynamic = {0};
    for (const ElfW(Dyn) *entry = map->l_ld; entry != NULL && entry->d_tag != DT_NULL; entry++) {
        const void *pointer = absolute_address(map, entry->d_un.d_ptr);
        switch (entry->d_tag) {
        case DT_SYMTAB:
            dynamic.symbols = pointer;
            break;
        case DT_STRTAB:
            dynamic.strings = pointer;
            break;
        case DT_GNU_HASH:
            dynamic.gnu_hash = pointer;
            break;
        case DT_HASH:
            dynamic.hash = pointer;
            break;
        case DT_VERSYM:
            dynamic.versions = pointer;
            break;
        case DT_VERNEED:
            dynamic.needed_versions = pointer;
            break;
        case DT_VERNEEDNUM:
            dynamic.needed_version_count = entry->d_un.d_val;
            break;
        case DT_VERDEF:
            dynamic.defines_versions = true;
            break;
        case DT_JMPREL:
            dynamic.jump_relocations = pointer;
            break;
        case DT_PLTRELSZ:
            dynamic.jump_relocation_count = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_RELA:
            dynamic.relocations = pointer;
            break;
        case DT_RELASZ:
            dynamic.relocation_count = entry->d_un.d_val / sizeof(ElfW(Rela));
            break;
        case DT_RELACOUNT:
            dynamic.relative_count = entry->d_un.d_val;
            break;
        default:
            break;
        }
    }
    return dynamic;
}

#ifdef DLFO_STRUCT_HAS_EH_DBASE /* glibc 2.35 */
typedef int find_object_function(void *address, struct dl_find_object *result);

/* Looked up, not linked: a library built here must still load where only the older way exists. Set
 * by the constructor, before the one of process.c; a lookup before that takes the older way, which
 * is right at any time. */
static _Atomic(find_object_function *) find_object;

__attribute__((constructor(150))) static void look_find_object_up(void)
{
    void *function = gm_real_dlsym(RTLD_DEFAULT, "_dl_find_object");
    if (function == NULL)
        dlerror(); /* not the program's error */
    atomic_store_explicit(&find_object, (find_object_function *)function, memory_order_release);
}

static bool find_without_lock(const void *address, struct gm_object *object, bool *tried)
{
    struct dl_find_object result;
    find_object_function *find = atomic_load_explicit(&find_object, memory_order_acquire);
    *tried = find != NULL;
    if (find == NULL || find((void *)address, &result) != 0)
        return false;
    object->map = result.dlfo_link_map;
    object->start = (uintptr_t)result.dlfo_map_start;
    object->end = (uintptr_t)result.dlfo_map_end;
    return true;
}
#else
static bool find_without_lock(const void *address, struct gm_object *object, bool *tried)
{
    (void)address;
    (void)object;
    *tried = false;
    return false;
}
#endif

/* The older way: dladdr1, which takes the loader's lock, and the program headers for the end. */
static bool find_with_lock(const void *address, struct gm_object *object)
{
    Dl_info info;
    void *map = NULL;
    if (dladdr1(address, &info, &map, RTLD_DL_LINKMAP) == 0 || map == NULL)
        return false;
    const ElfW(Ehdr) *header = info.dli_fbase;
    const ElfW(Phdr) *segment = (const void *)((const char *)header + header->e_phoff);
    object->map = map;
    object->start = (uintptr_t)header;
    object->end = object->start;
    for (size_t i = 0; i < header->e_phnum; i++) {
        uintptr_t end = object->map->l_addr + segment[i].p_vaddr + segment[i].p_memsz;
        if (segment[i].p_type == PT_LOAD && end > object->end)
            object->end = end;
    }
    return true;
}

bool gm_object_of(const void *address, struct gm_object *object)
{
    bool tried;
    return find_without_lock(address, object, &tried) ||
           (!tried && find_with_lock(address, object));
}

/* ---- what the process was started with ---------------------------------------------------------
 *
 * The loader appends what it loads to one list and takes out only what was opened later. So the
 * list from its first map to the one that was last at the start may be walked at any time, and one
 * load tells whether anything was opened since.
 */

static struct link_map *first_of_start;
static struct link_map *last_of_start;

void gm_objects_note_start(void)
{
    struct gm_object us;
    if (!gm_is_preloaded() || !gm_object_of((const void *)gm_objects_note_start, &us))
        return;
    for (first_of_start = us.map; first_of_start->l_prev != NULL;)
        first_of_start = first_of_start->l_prev;
    for (last_of_start = us.map; last_of_start->l_next != NULL;)
        last_of_start = last_of_start->l_next;
}

bool gm_objects_came_since_start(void)
{
    return last_of_start == NULL ||
           __atomic_load_n(&last_of_start->l_next, __ATOMIC_ACQUIRE) != NULL;
}

bool gm_object_is_of_start(const struct gm_object *object)
{
    for (const struct link_map *map = first_of_start; map != NULL; map = map->l_next) {
        if (map == object->map)
            return true;
        if (map == last_of_start)
            return false;
    }
    return false;
}

bool gm_object_same(const void *one, const void *other)
{
    struct gm_object object;
    return one == other || (gm_object_of(one, &object) && (uintptr_t)other >= object.start &&
                            (uintptr_t)other < object.end);
}

/* Whether `map` stands before this library in the loader's list. */
static bool stands_before_us(const struct link_map *map)
{
    struct gm_object us;
    if (!gm_object_of((const void *)stands_before_us, &us))
        return false;
    for (const struct link_map *before = us.map->l_prev; before != NULL; before = before->l_prev)
        if (before == map)
            return true;
    return false;
}

bool gm_is_preloaded(void)
{
    struct gm_object libc;
    return gm_object_of(gm_libc_address(), &libc) && !stands_before_us(libc.map);
}

bool gm_object_precedes_us(const struct gm_object *object)
{
    return stands_before_us(object->map) && gm_is_preloaded();
}

bool gm_object_is_versioned(const struct gm_object *object)
{
    return read_dynamic(object->map).defines_versions;
}

static uint32_t gnu_hash_of(const char *symbol)
{
    uint32_t hash = 5381;
    for (const unsigned char *c = (const unsigned char *)symbol; *c != '\0'; c++)
        hash = hash * 33 + *c;
    return hash;
}

/* Index of a defined symbol in the GNU hash table, 0 if it is not there. */
static uint32_t find_by_gnu_hash(const struct dynamic *dynamic, const char *symbol)
{
    const uint32_t *table = dynamic->gnu_hash;
    uint32_t bucket_count = table[0];
    uint32_t first_hashed = table[1];
    uint32_t filter_words = table[2];
    const uint32_t *buckets = table + 4 + filter_words * (sizeof(ElfW(Addr)) / 4);
    const uint32_t *chains = buckets + bucket_count;
    uint32_t hash = gnu_hash_of(symbol);
    uint32_t index = bucket_count > 0 ? buckets[hash % bucket_count] : 0;
    if (index < first_hashed)
        return 0;
    for (;; index++) {
        uint32_t chain = chains[index - first_hashed];
        if ((chain | 1) == (hash | 1) &&
            strcmp(dynamic->strings + dynamic->symbols[index].st_name, symbol) == 0)
            return index;
        if ((chain & 1) != 0)
            return 0;
    }
}

/* The same in the table that objects without a GNU hash table have; a plain scan is enough. */
static uint32_t find_by_hash(const struct dynamic *dynamic, const char *symbol)
{
    uint32_t count = dynamic->hash[1];
    for (uint32_t index = 1; index < count; index++)
        if (dynamic->symbols[index].st_shndx != SHN_UNDEF &&
            strcmp(dynamic->strings + dynamic->symbols[index].st_name, symbol) == 0)
            return index;
    return 0;
}

/* NULL if the object does not define it. */
static const ElfW(Sym) * find_symbol(const struct gm_object *object, const char *symbol)
{
    struct dynamic dynamic = read_dynamic(object->map);
    uint32_t index = 0;
    if (dynamic.symbols == NULL || dynamic.strings == NULL)
        return NULL;
    if (dynamic.gnu_hash != NULL)
        index = find_by_gnu_hash(&dynamic, symbol);
    else if (dynamic.hash != NULL)
        index = find_by_hash(&dynamic, symbol);
    if (index == 0 || dynamic.symbols[index].st_shndx == SHN_UNDEF)
        return NULL;
    return &dynamic.symbols[index];
}

void *gm_object_function(const struct gm_object *object, const char *symbol)
{
    const ElfW(Sym) *found = find_symbol(object, symbol);
    if (found == NULL || ELF64_ST_TYPE(found->st_info) != STT_FUNC)
        return NULL;
    return (void *)(object->map->l_addr + found->st_value);
}

bool gm_object_defines(const struct gm_object *object, const char *symbol)
{
    return find_symbol(object, symbol) != NULL;
}

void gm_object_each_needed(const struct gm_object *object,
                           void (*visit)(const char *name, void *data), void *data)
{
    struct dynamic dynamic = read_dynamic(object->map);
    if (dynamic.symbols == NULL || dynamic.strings == NULL)
        return;
    /* In a GNU hash table what is needed comes before all that can be found. */
    uint32_t count = dynamic.gnu_hash != NULL ? dynamic.gnu_hash[1]
                     : dynamic.hash != NULL   ? dynamic.hash[1]
                                              : 0;
    for (uint32_t index = 1; index < count; index++)
        if (dynamic.symbols[index].st_shndx == SHN_UNDEF)
            visit(dynamic.strings + dynamic.symbols[index].st_name, data);
}

bool gm_object_told(const struct dl_phdr_info *info, struct link_map *map, struct gm_object *object)
{
    const uintptr_t here = (uintptr_t)gm_object_told;
    *map = (struct link_map){.l_addr = info->dlpi_addr, .l_name = (char *)info->dlpi_name};
    *object = (struct gm_object){.map = map, .start = UINTPTR_MAX};
    for (size_t i = 0; i < info->dlpi_phnum; i++) {
        const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
        uintptr_t start = info->dlpi_addr + segment->p_vaddr, end = start + segment->p_memsz;
        if (segment->p_type == PT_DYNAMIC)
            map->l_ld = (ElfW(Dyn) *)start;
        if (segment->p_type != PT_LOAD)
            continue;
        object->start = start < object->start ? start : object->start;
        object->end = end > object->end ? end : object->end;
    }
    return map->l_ld != NULL && !(here >= object->start && here < object->end);
}

static int add_definition(struct dl_phdr_info *info, size_t size, void *data)
{
    struct gm_definitions *found = data;
    struct link_map map;
    struct gm_object object;
    (void)size;
    void *function = NULL;
    if (gm_object_told(info, &map, &object))
        function = gm_object_function(&object, found->symbol);
    if (function != NULL && found->count++ == 0)
        found->first = function;
    return 0;
}

struct gm_definitions gm_object_definitions(const char *symbol)
{
    struct gm_definitions found = {.symbol = symbol};
    dl_iterate_phdr(add_definition, &found);
    return found;
}

static bool visit_relocations(const struct gm_object *object, const struct dynamic *dynamic,
                              const ElfW(Rela) * relocation, size_t count,
                              bool (*visit)(const struct gm_import *import, void *data), void *data)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t index = (uint32_t)ELF64_R_SYM(relocation[i].r_info);
        if (index == 0)
            continue;
        struct gm_import import = {
            .name = dynamic->strings + dynamic->symbols[index].st_name,
            .index = index,
            .type = (uint32_t)ELF64_R_TYPE(relocation[i].r_info),
            .slot = (uintptr_t *)(object->map->l_addr + relocation[i].r_offset),
        };
        if (!visit(&import, data))
            return false;
    }
    return true;
}

bool gm_object_each_import(const struct gm_object *object,
                           bool (*visit)(const struct gm_import *import, void *data), void *data)
{
    struct dynamic dynamic = read_dynamic(object->map);
    if (dynamic.symbols == NULL || dynamic.strings == NULL)
        return true;
    /* Calls first: that is where a function is found soonest. */
    if (dynamic.jump_relocations != NULL &&
        !visit_relocations(object, &dynamic, dynamic.jump_relocations,
                           dynamic.jump_relocation_count, visit, data))
        return false;
    if (dynamic.relocations == NULL || dynamic.relocation_count <= dynamic.relative_count)
        return true;
    return visit_relocations(object, &dynamic, dynamic.relocations + dynamic.relative_count,
                             dynamic.relocation_count - dynamic.relative_count, visit, data);
}

/* Name of the version that symbol `index` was linked with, NULL if none. */
static const char *version_needed(const struct dynamic *dynamic, uint32_t index)
{
    if (dynamic->versions == NULL || dynamic->needed_versions == NULL)
        return NULL;
    const unsigned wanted = dynamic->versions[index] & 0x7fffu;
    const char *need_at = dynamic->needed_versions;
    for (size_t i = 0; i < dynamic->needed_version_count; i++) {
        const ElfW(Verneed) *need = (const void *)need_at;
        const char *entry_at = need_at + need->vn_aux;
        for (unsigned j = 0; j < need->vn_cnt; j++) {
            const ElfW(Vernaux) *entry = (const void *)entry_at;
            if ((entry->vna_other & 0x7fffu) == wanted)
                return dynamic->strings + entry->vna_name;
            entry_at += entry->vna_next;
        }
        need_at += need->vn_next;
    }
    return NULL;
}

struct wanted_import {
    const char *symbol;
    uint32_t index;
};

static bool is_not_wanted(const struct gm_import *import, void *data)
{
    struct wanted_import *wanted = data;
    if (strcmp(import->name, wanted->symbol) != 0)
        return true;
    wanted->index = import->index;
    return false;
}

bool gm_object_imports(const struct gm_object *object, const char *symbol, const char **version)
{
    struct wanted_import wanted = {.symbol = symbol};
    *version = NULL;
    if (gm_object_each_import(object, is_not_wanted, &wanted))
        return false;
    struct dynamic dynamic = read_dynamic(object->map);
    *version = version_needed(&dynamic, wanted.index);
    return true;
}
