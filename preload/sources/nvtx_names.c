/* See nvtx_names.h. A hash table with open addressing: entries are filled, then published by their
 * handle; a name changes by one store of where it stands. */
#include "sources/nvtx_names.h"
#include "base/count.h"
#include "base/lock.h"
#include <sched.h>
#include <string.h>

#define NAMES_MAX 4096u
#define NAME_BYTES_MAX (256u << 10)
#define ENTRIES (2 * NAMES_MAX) /* a power of two, at most half full: a search ends */

struct entry {
    _Atomic uintptr_t handle; /* 0: free */
    _Atomic uint64_t place;   /* of the name: offset << 16 | size */
};

static struct entry entries[ENTRIES];
static char bytes[NAME_BYTES_MAX];
static uint32_t bytes_used;
static uint32_t entry_count;
static struct gm_lock lock = GM_LOCK(GM_RANK_ALONE);

/* What handles of our own point to: nothing ever reads it, but the addresses are ours. */
static char tokens[NAMES_MAX];
static uint64_t token_places[NAMES_MAX];
static uint32_t token_count;

/* Names that had no room, in this process and its parents. */
static _Atomic uint64_t refused;

static void note_refused_name(void)
{
    atomic_fetch_add_explicit(&refused, 1, memory_order_seq_cst);
    gm_nvtx_names_tell();
}

void gm_nvtx_names_tell(void)
{
    gm_count_up_to(GM_COUNT_NAME_LIMIT, atomic_load(&refused));
}

static bool take_lock(void)
{
    for (int attempt = 0; attempt < 5000; attempt++) {
        if (gm_lock_try(&lock))
            return true;
        if (attempt < 100)
            gm_pause();
        else
            sched_yield();
    }
    return false;
}

static struct entry *slot_of(uintptr_t handle)
{
    uint32_t at = (uint32_t)((handle * 0x9e3779b97f4a7c15u) >> 40);
    for (;; at++) {
        struct entry *entry = &entries[at & (ENTRIES - 1)];
        uintptr_t there = atomic_load_explicit(&entry->handle, memory_order_acquire);
        if (there == handle || there == 0)
            return entry;
    }
}

static struct gm_name name_at(uint64_t place)
{
    return (struct gm_name){bytes + (place >> 16), place & 0xffff};
}

struct gm_name gm_nvtx_name_of(const void *handle)
{
    struct entry *entry = slot_of((uintptr_t)handle);
    if (handle == NULL || atomic_load_explicit(&entry->handle, memory_order_acquire) == 0)
        return (struct gm_name){NULL, 0};
    return name_at(atomic_load_explicit(&entry->place, memory_order_acquire));
}

/* Under the lock. False when there is no room. */
static bool keep_nvtx_name(struct gm_name name, uint64_t *place)
{
    if (name.size > NAME_BYTES_MAX - bytes_used)
        return false;
    memcpy(bytes + bytes_used, name.bytes, name.size);
    *place = (uint64_t)bytes_used << 16 | name.size;
    bytes_used += (uint32_t)name.size;
    return true;
}

static bool is_same_nvtx_name(struct gm_name one, struct gm_name other)
{
    return one.size == other.size && memcmp(one.bytes, other.bytes, one.size) == 0;
}

/* Under the lock. */
static void publish(struct entry *entry, uintptr_t handle, uint64_t place)
{
    atomic_store_explicit(&entry->place, place, memory_order_release);
    if (atomic_load_explicit(&entry->handle, memory_order_relaxed) == 0) {
        atomic_store_explicit(&entry->handle, handle, memory_order_release);
        entry_count++;
    }
}

void gm_nvtx_name_set(const void *handle, struct gm_name name)
{
    uint64_t place;
    if (handle == NULL || name.bytes == NULL)
        return;
    if (!take_lock()) {
        note_refused_name();
        return;
    }
    struct entry *entry = slot_of((uintptr_t)handle);
    bool is_known = atomic_load_explicit(&entry->handle, memory_order_relaxed) != 0;
    bool is_there = is_known && is_same_nvtx_name(name_at(entry->place), name);
    bool has_room =
        is_there || ((is_known || entry_count < NAMES_MAX) && keep_nvtx_name(name, &place));
    if (has_room && !is_there)
        publish(entry, (uintptr_t)handle, place);
    gm_lock_release(&lock);
    if (!has_room)
        note_refused_name();
}

const void *gm_nvtx_name_register(struct gm_name name)
{
    const void *handle = NULL;
    uint64_t place;
    if (name.bytes == NULL)
        return NULL;
    if (!take_lock()) {
        note_refused_name();
        return NULL;
    }
    for (uint32_t i = 0; i < token_count && !handle; i++)
        if (is_same_nvtx_name(name_at(token_places[i]), name))
            handle = &tokens[i];
    if (!handle && entry_count < NAMES_MAX && keep_nvtx_name(name, &place)) {
        token_places[token_count] = place;
        handle = &tokens[token_count++];
        publish(slot_of((uintptr_t)handle), (uintptr_t)handle, place);
    }
    gm_lock_release(&lock);
    if (!handle)
        note_refused_name();
    return handle;
}

void gm_nvtx_names_forget(void)
{
    gm_lock_forget(&lock);
}

/* ---- texts ----------------------------------------------------------------------------------- */

struct gm_name gm_nvtx_narrow(const char *text)
{
    return (struct gm_name){text, text != NULL ? strnlen(text, GM_NVTX_NAME_MAX) : 0};
}

static size_t encode_nvtx_character(uint32_t character, char to[4])
{
    if (character < 0x80) {
        to[0] = (char)character;
        return 1;
    }
    if (character < 0x800) {
        to[0] = (char)(0xc0 | character >> 6);
        to[1] = (char)(0x80 | (character & 0x3f));
        return 2;
    }
    if (character > 0x10ffff || (character >= 0xd800 && character < 0xe000))
        character = 0xfffd;
    if (character < 0x10000) {
        to[0] = (char)(0xe0 | character >> 12);
        to[1] = (char)(0x80 | (character >> 6 & 0x3f));
        to[2] = (char)(0x80 | (character & 0x3f));
        return 3;
    }
    to[0] = (char)(0xf0 | character >> 18);
    to[1] = (char)(0x80 | (character >> 12 & 0x3f));
    to[2] = (char)(0x80 | (character >> 6 & 0x3f));
    to[3] = (char)(0x80 | (character & 0x3f));
    return 4;
}

struct gm_name gm_nvtx_wide(const wchar_t *text, char buffer[GM_NVTX_NAME_MAX])
{
    size_t size = 0;
    if (text == NULL)
        return (struct gm_name){NULL, 0};
    for (; *text && size + 4 <= GM_NVTX_NAME_MAX; text++)
        size += encode_nvtx_character((uint32_t)*text, buffer + size);
    return (struct gm_name){buffer, size};
}
