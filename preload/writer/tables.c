/*
 * See tables.h. Each table is an array cut into extents of the trace, and beside it, in private
 * memory, an open-addressing index of ids. Readers of the index take no lock: an id is stored with
 * release order after its entry is complete, and a grown index replaces the old one, which stays
 * mapped (a reader may still be in it; each is half the size of the next, so all old ones together
 * are as large as the newest).
 */
#include "writer/tables.h"
#include "base/change.h"
#include "base/count.h"
#include "base/lock.h"
#include "writer/trace_file.h"
#include <gpumem/checksum.h>
#include <string.h>
#include <sys/mman.h>

#define FIRST_SLOTS 4096u

struct index_slots {
    uint32_t mask; /* slots - 1 */
    _Atomic uint32_t ids[];
};

struct table {
    _Atomic(struct index_slots *) index;
    struct gm_lock lock;
    uint32_t count;   /* entries, or bytes of strings; guarded by the lock */
    uint32_t indexed; /* entries in the index */
    uint32_t extent_count;
    uint32_t sealed;                      /* entries or bytes when it was sealed the last time */
    _Atomic bool full;                    /* for good: new entries take no lock to be refused */
    _Atomic(struct gm_extent *) *extents; /* by number */
    uint32_t max;                         /* entries, 0 included */
    uint32_t per_extent;
    uint32_t entry_size;
    enum gm_extent_type type;
};

#define TABLE(name, TYPE, RANK, MAX, PER, SIZE)                                                    \
    static _Atomic(struct gm_extent *) name##_extents[(MAX) / (PER) + 1];                          \
    static struct table name = {                                                                   \
        .extents = name##_extents,                                                                 \
        .max = (MAX),                                                                              \
        .per_extent = (PER),                                                                       \
        .entry_size = (SIZE),                                                                      \
        .lock = GM_LOCK(RANK),                                                                     \
        .type = (TYPE),                                                                            \
    }

TABLE(nodes, GM_EXTENT_NODES, GM_RANK_TABLE, GM_NODES_MAX, GM_NODES_PER_EXTENT,
      sizeof(struct gm_node));
TABLE(frames, GM_EXTENT_FRAMES, GM_RANK_TABLE, GM_FRAMES_MAX, GM_FRAMES_PER_EXTENT,
      sizeof(struct gm_script_frame));
TABLE(modules, GM_EXTENT_MODULES, GM_RANK_UNSET, GM_MODULES_MAX, GM_MODULES_PER_EXTENT,
      sizeof(struct gm_module));
TABLE(strings, GM_EXTENT_STRINGS, GM_RANK_STRINGS, GM_STRINGS_MAX, GM_STRINGS_PER_EXTENT, 1);

static void *table_entry(struct table *table, uint32_t id)
{
    struct gm_extent *extent =
        atomic_load_explicit(&table->extents[id / table->per_extent], memory_order_acquire);
    return (char *)(extent + 1) + (size_t)(id % table->per_extent) * table->entry_size;
}

/* Room for entry `id` (or the byte at offset `id`); caller holds the table's lock. A file that
 * cannot grow now may do so later; a table that is full stays so. */
static bool make_room_in_table(struct table *table, uint32_t id)
{
    uint32_t number = id / table->per_extent;
    if (id >= table->max) {
        atomic_store_explicit(&table->full, true, memory_order_relaxed);
        return false;
    }
    if (number < table->extent_count)
        return true;
    if (!gm_trace_may_grow())
        return false;
    gm_lock_take(&gm_file.lock);
    struct gm_extent *extent = gm_trace_map_extents(table->type, number, GM_TABLE_EXTENT, 1);
    if (extent)
        gm_trace_publish_extents(extent, 1, 0);
    gm_lock_release(&gm_file.lock);
    if (!extent)
        return false;
    atomic_store_explicit(&table->extents[number], extent, memory_order_release);
    table->extent_count = number + 1;
    return true;
}

/* Says why there is no entry: the limit of the table, or the file could not grow. */
static void count_refused(const struct table *table, enum gm_counter limit)
{
    bool full = atomic_load_explicit(&table->full, memory_order_relaxed);
    gm_count(full ? limit : GM_COUNT_GROW_FAILED, 1);
}

static uint64_t mix_words(uint64_t a, uint64_t b)
{
    uint64_t hash = (a ^ (b * 0x9e3779b97f4a7c15u)) * 0xbf58476d1ce4e5b9u;
    return hash ^ (hash >> 29);
}

typedef bool equal_function(const void *entry, const void *key);
typedef uint64_t hash_function(const void *entry);

static uint32_t find_in_table(struct table *table, uint64_t hash, const void *key,
                              equal_function *equal)
{
    struct index_slots *index = atomic_load_explicit(&table->index, memory_order_acquire);
    if (!index)
        return 0;
    for (uint32_t at = (uint32_t)hash & index->mask;; at = (at + 1) & index->mask) {
        uint32_t id = atomic_load_explicit(&index->ids[at], memory_order_acquire);
        if (!id || equal(table_entry(table, id), key))
            return id;
    }
}

static void place(struct index_slots *index, uint64_t hash, uint32_t id)
{
    uint32_t at = (uint32_t)hash & index->mask;
    while (atomic_load_explicit(&index->ids[at], memory_order_relaxed))
        at = (at + 1) & index->mask;
    atomic_store_explicit(&index->ids[at], id, memory_order_release);
}

/* Keeps the index at most half full, so that a probe always ends. Caller holds the lock. */
static bool grow_index(struct table *table, hash_function *hash)
{
    struct index_slots *old = atomic_load_explicit(&table->index, memory_order_relaxed);
    if (old && (uint64_t)table->indexed * 2 < old->mask)
        return true;
    uint32_t slots = old ? (old->mask + 1) * 2 : FIRST_SLOTS;
    struct index_slots *index =
        mmap(NULL, sizeof(*index) + (size_t)slots * sizeof(index->ids[0]), PROT_READ | PROT_WRITE,
             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (index == MAP_FAILED)
        return false;
    index->mask = slots - 1;
    for (uint32_t at = 0; old && at <= old->mask; at++) {
        uint32_t id = atomic_load_explicit(&old->ids[at], memory_order_relaxed);
        if (id)
            place(index, hash(table_entry(table, id)), id);
    }
    atomic_store_explicit(&table->index, index, memory_order_release);
    return true;
}

/*
 * Appends a new entry, or returns the id another thread gave it meanwhile; 0 if there is no room.
 * `published` is the header's count of this table.
 */
static uint32_t append_to_table(struct table *table, const void *key, uint64_t value,
                                equal_function *equal, hash_function *hash, uint32_t *published)
{
    if (atomic_load_explicit(&table->full, memory_order_relaxed))
        return 0;
    gm_lock_take(&table->lock);
    uint32_t id = find_in_table(table, value, key, equal);
    if (!id) {
        uint32_t next = table->count ? table->count : 1; /* 0 is "none" */
        gm_change_begin();
        if (make_room_in_table(table, next) && grow_index(table, hash)) {
            memcpy(table_entry(table, next), key, table->entry_size);
            table->count = next + 1;
            table->indexed++;
            __atomic_store_n(published, table->count, __ATOMIC_RELEASE);
            place(atomic_load_explicit(&table->index, memory_order_relaxed), value, next);
            id = next;
        }
        gm_change_end();
    }
    gm_lock_release(&table->lock);
    return id;
}

/* The entry's id; 0 is counted, as `limit` if the table is full. */
static uint32_t intern(struct table *table, const void *key, equal_function *equal,
                       hash_function *hash, uint32_t *published, enum gm_counter limit)
{
    uint64_t value = hash(key);
    uint32_t id = find_in_table(table, value, key, equal);
    if (gm_likely(id != 0))
        return id;
    id = append_to_table(table, key, value, equal, hash, published);
    if (!id)
        count_refused(table, limit);
    return id;
}

/* ---- nodes ----------------------------------------------------------------------------------- */

static bool node_equal(const void *entry_, const void *key)
{
    return memcmp(entry_, key, sizeof(struct gm_node)) == 0;
}

static uint64_t node_hash(const void *key)
{
    const struct gm_node *node = key;
    return mix_words(node->address,
                     ((uint64_t)node->parent << 32) | ((uint32_t)node->module << 8) | node->kind);
}

uint32_t gm_node_intern(uint32_t parent, uint16_t module, uint64_t address, enum gm_node_kind kind)
{
    struct gm_node node = {
        .address = address, .parent = parent, .module = module, .kind = (uint16_t)kind};
    return intern(&nodes, &node, node_equal, node_hash, &gm_file.header->node_count,
                  GM_COUNT_STACK_LIMIT);
}

/* ---- script frames --------------------------------------------------------------------------- */

static bool frame_equal(const void *entry_, const void *key)
{
    return memcmp(entry_, key, sizeof(struct gm_script_frame)) == 0;
}

static uint64_t frame_hash(const void *key)
{
    const struct gm_script_frame *frame = key;
    return mix_words(((uint64_t)frame->file << 32) | frame->function, frame->line);
}

uint32_t gm_frame_intern(uint32_t file, uint32_t function, uint32_t line)
{
    struct gm_script_frame frame = {
        .file = file, .function = function, .line = line, .language = 1};
    return intern(&frames, &frame, frame_equal, frame_hash, &gm_file.header->frame_count,
                  GM_COUNT_FRAME_LIMIT);
}

/* ---- strings: the index holds offsets, entries are a length and bytes ------------------------ */

struct text {
    const char *bytes;
    uint16_t size;
};

static bool string_equal(const void *entry_, const void *key)
{
    const struct text *text = key;
    uint16_t size;
    memcpy(&size, entry_, sizeof(size));
    return size == text->size &&
           memcmp((const char *)entry_ + sizeof(size), text->bytes, size) == 0;
}

static uint64_t bytes_hash(const char *bytes, size_t size)
{
    uint64_t hash = 0xcbf29ce484222325u; /* FNV-1a; strings are short and rare */
    for (size_t i = 0; i < size; i++)
        hash = (hash ^ (unsigned char)bytes[i]) * 0x100000001b3u;
    return mix_words(hash, size);
}

static uint64_t string_hash(const void *entry_)
{
    uint16_t size;
    memcpy(&size, entry_, sizeof(size));
    return bytes_hash((const char *)entry_ + sizeof(size), size);
}

static uint32_t mark_bytes; /* of the strings: names that only marks have; guarded by the lock */

/* Offset for a string of `size` bytes that does not cross an extent; 0 when there is no room. */
static uint32_t string_place(uint32_t size)
{
    uint32_t offset = strings.count ? strings.count : 2; /* offset 0 is "none": an empty string */
    uint32_t left = strings.per_extent - offset % strings.per_extent;
    if (size > left)
        offset += left;
    if (offset + size > GM_STRINGS_MAX) {
        atomic_store_explicit(&strings.full, true, memory_order_relaxed);
        return 0;
    }
    return make_room_in_table(&strings, offset) ? offset : 0;
}

/* Caller holds the lock, and has begun a change. */
static uint32_t string_append(const struct text *text, uint64_t hash)
{
    uint32_t size = text->size + (uint32_t)sizeof(text->size);
    uint32_t offset = grow_index(&strings, string_hash) ? string_place(size) : 0;
    if (!offset)
        return 0;
    char *at = table_entry(&strings, offset);
    memcpy(at, &text->size, sizeof(text->size));
    memcpy(at + sizeof(text->size), text->bytes, text->size);
    strings.count = offset + size;
    strings.indexed++;
    __atomic_store_n(&gm_file.header->string_bytes, strings.count, __ATOMIC_RELEASE);
    place(atomic_load_explicit(&strings.index, memory_order_relaxed), hash, offset);
    return offset;
}

static struct text text_of_bytes(const char *bytes, size_t size)
{
    if (size > GM_STRING_LENGTH_MAX) {
        size = GM_STRING_LENGTH_MAX;
        gm_count(GM_COUNT_STRING_CUT, 1);
    }
    return (struct text){bytes, (uint16_t)size};
}

/* Marks have a share of their own: a program that names each step leaves room for its stacks. */
static uint32_t intern_string(const char *bytes, size_t size, bool is_mark)
{
    struct text text = text_of_bytes(bytes, size);
    uint64_t hash = bytes_hash(text.bytes, text.size);
    uint32_t offset = text.size ? find_in_table(&strings, hash, &text, string_equal) : 0;
    if (offset || !text.size)
        return offset;
    uint32_t room = is_mark ? text.size + (uint32_t)sizeof(text.size) : 0; /* in that share */
    gm_lock_take(&strings.lock);
    gm_change_begin();
    offset = find_in_table(&strings, hash, &text, string_equal);
    bool over = !offset && is_mark && mark_bytes + room > GM_MARK_STRINGS_MAX;
    if (!offset && !over && (offset = string_append(&text, hash)))
        mark_bytes += room;
    gm_change_end();
    gm_lock_release(&strings.lock);
    if (over)
        gm_count(GM_COUNT_MARK_LIMIT, 1);
    else if (!offset)
        count_refused(&strings, is_mark ? GM_COUNT_MARK_LIMIT : GM_COUNT_STRING_LIMIT);
    return offset;
}

uint32_t gm_string_intern(const char *bytes, size_t size)
{
    return intern_string(bytes, size, false);
}

uint32_t gm_string_intern_mark(const char *bytes, size_t size)
{
    return intern_string(bytes, size, true);
}

/* ---- modules: appended by modules.c under its own lock --------------------------------------- */

struct gm_module *gm_module_append(uint16_t *number)
{
    uint32_t next = modules.count ? modules.count : 1;
    if (!make_room_in_table(&modules, next))
        return NULL;
    modules.count = next; /* not yet published */
    *number = (uint16_t)next;
    return table_entry(&modules, next);
}

void gm_module_publish(void)
{
    modules.count++;
    __atomic_store_n(&gm_file.header->module_count, modules.count, __ATOMIC_RELEASE);
}

struct gm_module *gm_module_entry(uint16_t number)
{
    return table_entry(&modules, number);
}

uint32_t gm_module_count(void)
{
    return modules.count;
}

static bool is_full(const struct table *table)
{
    return atomic_load_explicit(&table->full, memory_order_relaxed);
}

bool gm_modules_full(void)
{
    return is_full(&modules);
}

bool gm_strings_full(void)
{
    return is_full(&strings);
}

/* Entries are only appended: none before the extent that was not full has changed. */
static void seal_table(struct table *table)
{
    uint32_t count = table->count;
    for (uint32_t number = table->sealed / table->per_extent; number < table->extent_count;
         number++) {
        struct gm_extent *extent =
            atomic_load_explicit(&table->extents[number], memory_order_acquire);
        extent->seal = gm_table_seal(extent);
    }
    table->sealed = count;
}

void gm_tables_seal(void)
{
    seal_table(&nodes);
    seal_table(&frames);
    seal_table(&modules);
    seal_table(&strings);
}

static void forget_table(struct table *table)
{
    for (uint32_t number = 0; number < table->extent_count; number++)
        atomic_store_explicit(&table->extents[number], NULL, memory_order_relaxed);
    atomic_store_explicit(&table->index, NULL, memory_order_relaxed);
    gm_lock_forget(&table->lock);
    table->full = false;
    table->count = table->indexed = table->extent_count = table->sealed = 0;
}

void gm_tables_unlock(void)
{
    gm_lock_forget(&nodes.lock);
    gm_lock_forget(&frames.lock);
    gm_lock_forget(&strings.lock);
}

void gm_tables_forget(void)
{
    forget_table(&nodes);
    forget_table(&frames);
    forget_table(&modules);
    forget_table(&strings);
    mark_bytes = 0;
}
