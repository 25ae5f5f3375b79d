/* See fold_vmm.h: physical memory by handle, address ranges, multicast. An object is alive exactly
 * while something refers to it, and is kept as long as something may yet refer to it again:
 * whatever an UNDO brings back. It is carried with the number of its handle references, a mapping
 * or binding by its own record. CUDA unmaps whole mappings only: an unmapping of less than that is
 * kept word for word, with all it touched. */
#include "flight/fold_vmm.h"
#include "flight/alive.h"
#include "flight/fold_lives.h"

static uint32_t kept_mappings; /* which are in no tree */

/* ---- objects --------------------------------------------------------------------------------- */

static bool is_multicast(uint32_t object)
{
    return gm_carry_at(object)->record.type == GM_EVENT_MULTICAST_CREATE;
}

/* The object alive under a handle, 0 if there is none. */
static uint32_t find_object(uint64_t handle)
{
    uint32_t number = gm_carry_find(GM_CARRY_OBJECT, handle);
    return number && !gm_carry_at(number)->ended ? number : 0;
}

/* The next binding of a multicast object behind `after` that was not unbound, 0 if there is none.
 */
static uint32_t binding_of(uint32_t multicast, uint32_t after)
{
    uint32_t at = after ? gm_carry_at(after)->next : gm_carry_first();
    while (at && !(gm_carry_at(at)->role == GM_CARRY_BINDING && !gm_carry_at(at)->ended &&
                   gm_carry_at(at)->multicast == multicast))
        at = gm_carry_at(at)->next;
    return at;
}

static void settle_mapping(uint32_t number, uint32_t status);

/* Bindings refer to their memory as long as their multicast object is alive. */
static void count_bindings(uint32_t multicast, uint32_t status)
{
    uint32_t by = gm_carry_at(multicast)->ended ? UINT32_MAX : 1; /* down or up */
    for (uint32_t at = 0; (at = binding_of(multicast, at));) {
        uint32_t memory = gm_carry_at(at)->other;
        gm_carry_at(memory)->uses += by;
        gm_carry_at(memory)->held -= by;
        settle_mapping(memory, status);
    }
}

/* Ends an object that nothing refers to any more, or brings back one that something refers to after
 * all: `status` is that of the call which failed. */
static void settle_mapping(uint32_t number, uint32_t status)
{
    struct gm_carried *object = gm_carry_at(number);
    bool alive = object->handles || object->uses || object->kept;
    if (alive == !object->ended)
        return;
    object->ended = !alive;
    if (is_multicast(number)) {
        count_bindings(number, status);
        return;
    }
    gm_fold_totals.frees += alive ? UINT64_MAX : 1;
    alive ? gm_alive_enter(object) : gm_alive_leave(object);
    if (alive)
        gm_fold_mark_late(number, status);
}

/* Removes an object that nothing can bring back. */
static void forget_object(uint32_t number)
{
    const struct gm_carried *object = gm_carry_at(number);
    if (!object->ended || object->held || object->releases)
        return;
    for (uint32_t at; is_multicast(number) && (at = binding_of(number, 0));) {
        uint32_t memory = gm_carry_at(at)->other;
        gm_carry_remove(at);
        gm_carry_at(memory)->held--;
        forget_object(memory);
    }
    gm_carry_remove(number);
}

/* A handle value that the driver gave out anew: the old object lost its references unseen. */
static void make_handle_free(uint64_t handle)
{
    uint32_t number = gm_carry_find(GM_CARRY_OBJECT, handle);
    if (!number)
        return;
    gm_fold_lost_frees += gm_carry_at(number)->handles > 0;
    gm_carry_at(number)->handles = 0;
    gm_carry_at(number)->nameless = true;
    gm_carry_hide(number);
    settle_mapping(number, 0);
    forget_object(number);
}

static void create_object(const struct gm_record *record, uint32_t lane)
{
    make_handle_free(record->address);
    uint32_t number = gm_fold_add(GM_CARRY_OBJECT, record->address, record, NULL, lane);
    if (number) {
        gm_carry_at(number)->handles = 1;
        gm_alive_enter(gm_carry_at(number));
    }
    gm_fold_totals.allocs += record->type != GM_EVENT_MULTICAST_CREATE;
}

/* A further reference to an object that is there. */
static bool retain(const struct gm_record *record, bool only_if_held)
{
    uint32_t number = find_object(record->address);
    if (!number || (only_if_held && !gm_carry_at(number)->handles))
        return false;
    gm_carry_at(number)->handles++;
    return true;
}

static void release_object(const struct gm_record *record, uint32_t lane, uint32_t ending)
{
    uint32_t number = find_object(record->address);
    if (!number || !gm_carry_at(number)->handles) {
        gm_fold_unknown_free(lane, ending);
        return;
    }
    gm_carry_at(number)->handles--;
    if (ending) {
        gm_carry_at(number)->releases++;
        gm_carry_at(ending)->other = number;
    }
    settle_mapping(number, 0);
    forget_object(number);
}

void gm_fold_vmm_released(const struct gm_carried *ending, bool undone, uint32_t status)
{
    uint32_t number = ending->other;
    if (!number)
        return; /* nothing was known of it */
    struct gm_carried *object = gm_carry_at(number);
    object->releases--;
    if (undone && !object->nameless) /* else the driver gave its handle to another: it did happen */
        object->handles++;
    settle_mapping(number, status);
    forget_object(number);
}

/* ---- mappings and bindings ------------------------------------------------------------------- */

static void hold_object(uint32_t object, uint32_t by)
{
    if (object)
        gm_carry_at(object)->held += by;
}

static void let_go(uint32_t object)
{
    if (!object)
        return;
    gm_carry_at(object)->held--;
    forget_object(object);
}

/* Ends a mapping, or unbinds a binding of a multicast object that is alive. */
static void end_use(uint32_t number, uint32_t ending)
{
    uint32_t memory = gm_carry_at(number)->other, multicast = gm_carry_at(number)->multicast;
    gm_fold_end(number, ending, false);
    hold_object(memory, ending != 0);
    hold_object(multicast, ending != 0);
    gm_carry_at(memory)->uses--;
    settle_mapping(memory, 0);
    forget_object(memory);
}

void gm_fold_vmm_over(uint32_t number)
{
    uint32_t memory = gm_carry_at(number)->other, multicast = gm_carry_at(number)->multicast;
    gm_carry_remove(number);
    let_go(multicast);
    let_go(memory);
}

/* Whether more than one thing may bring an object back. */
static bool is_held_else(uint32_t object)
{
    return gm_carry_at(object)->held + gm_carry_at(object)->releases > 1;
}

bool gm_fold_vmm_revive(uint32_t number, uint32_t status)
{
    struct gm_carried *entry = gm_carry_at(number);
    uint32_t memory = entry->other, multicast = entry->multicast;
    if (entry->role == GM_CARRY_MAPPING &&
        gm_carry_overlapping(GM_CARRY_MAPPING, entry->record.address, entry->record.size))
        return false;
    if (multicast && gm_carry_at(multicast)->ended) {
        if (!is_held_else(multicast))
            return false;
        gm_carry_at(multicast)->held--;
        return true; /* it counts when that is alive again */
    }
    gm_carry_at(memory)->uses++;
    gm_carry_at(memory)->held--;
    settle_mapping(memory, status);
    hold_object(multicast, UINT32_MAX);
    return true;
}

/* The handle by which a replay finds an object: one of its own if the driver's is another's. */
static uint64_t handle_of(uint32_t object)
{
    return gm_carry_at(object)->nameless ? UINT64_MAX - object : gm_carry_at(object)->key;
}

bool gm_fold_vmm_prepare(uint32_t number, struct gm_record *record)
{
    const struct gm_carried *entry = gm_carry_at(number);
    uint64_t handle = record->address;
    switch (record->type) {
    case GM_EVENT_VMM_CREATE:
    case GM_EVENT_VMM_IMPORT:
    case GM_EVENT_MULTICAST_CREATE:
        record->address = handle_of(number);
        record->aux = entry->handles + entry->releases;
        return record->address != handle;
    case GM_EVENT_VMM_RELEASE:
    case GM_EVENT_MULTICAST_UNBIND:
        if (entry->other)
            record->address = handle_of(entry->other);
        return record->address != handle;
    case GM_EVENT_MULTICAST_BIND:
        record->address = handle_of(entry->multicast);
        record->aux = handle_of(entry->other);
        return false;
    case GM_EVENT_VMM_MAP:
        record->aux = handle_of(entry->other);
        return false;
    default:
        return false;
    }
}

/* As report/replay/rules/vmm.c has it. */
static void learn_size(struct gm_carried *memory, const struct gm_record *map, uint64_t offset)
{
    const uint64_t most = UINT64_C(1) << 57; /* more cannot live */
    if (memory->record.type != GM_EVENT_VMM_IMPORT || map->address & GM_TILE || map->size > most ||
        offset > most || offset + map->size <= memory->record.size)
        return;
    gm_alive_leave(memory);
    memory->record.size = offset + map->size;
    gm_alive_enter(memory);
}

static void map_pages(const struct gm_record *record, const struct gm_record *detail, uint32_t lane)
{
    uint32_t memory = find_object(record->aux), there;
    if (!memory || record->size == 0)
        return;
    gm_carry_at(memory)->uses++; /* first: what is in the way may be its own */
    bool first = true;
    for (; (there = gm_carry_overlapping(GM_CARRY_MAPPING, record->address, record->size));
         first = false) {
        gm_fold_lost_frees += first;
        end_use(there, 0);
    }
    learn_size(gm_carry_at(memory), record, detail ? detail->address : 0);
    uint32_t number = gm_fold_add(GM_CARRY_MAPPING, record->address, record, detail, lane);
    if (number)
        gm_carry_at(number)->other = memory;
}

static bool lies_within(const struct gm_record *range, const struct gm_record *record)
{
    uint64_t offset = range->address - record->address;
    return offset <= record->size && range->size <= record->size - offset;
}

/* Keeps all that a mapping, of which a part was unmapped, is told of. */
static void keep_mapping(uint32_t mapping, uint32_t ending)
{
    kept_mappings += !gm_carry_at(mapping)->kept;
    gm_carry_at(mapping)->kept = true;
    gm_carry_leave_tree(mapping);
    gm_carry_at(gm_carry_at(mapping)->other)->kept = true;
    if (ending)
        gm_carry_at(ending)->kept = true;
}

/* Whether the range has something of such a mapping; then also this unmapping is kept. */
static bool touches_kept(const struct gm_record *record, uint32_t ending)
{
    bool touches = false;
    for (uint32_t at = kept_mappings ? gm_carry_first() : 0; at; at = gm_carry_at(at)->next) {
        const struct gm_carried *other = gm_carry_at(at);
        uint64_t ahead = other->record.address - record->address; /* one of the two wraps */
        uint64_t behind = record->address - other->record.address;
        if (other->role != GM_CARRY_MAPPING || !other->kept ||
            (ahead >= record->size && behind >= other->record.size))
            continue;
        keep_mapping(at, ending);
        touches = true;
    }
    return touches;
}

/* Whether other mappings lie end to end over the range: then those that are kept are over. */
static bool is_tiled(const struct gm_record *record)
{
    uint64_t start = record->address, left = record->size;
    while (left) {
        uint32_t number = gm_carry_overlapping(GM_CARRY_MAPPING, start, 1);
        if (!number || gm_carry_at(number)->record.size > left)
            return false;
        start += gm_carry_at(number)->record.size;
        left -= gm_carry_at(number)->record.size;
    }
    return true;
}

static uint32_t mapped(const struct gm_record *record)
{
    return gm_carry_overlapping(GM_CARRY_MAPPING, record->address, record->size);
}

/* Whether mappings are unmapped as a whole. Only the first and the last one can reach beyond. */
static bool is_whole_mapping(const struct gm_record *record)
{
    uint32_t first = mapped(record);
    uint64_t end = gm_carry_last(record->address, record->size);
    uint32_t last = first ? gm_carry_overlapping(GM_CARRY_MAPPING, end, 1) : 0;
    return (!first || lies_within(&gm_carry_at(first)->record, record)) &&
           (!last || lies_within(&gm_carry_at(last)->record, record));
}

static void unmap_pages(const struct gm_record *record, uint32_t ending)
{
    bool keeps = !is_whole_mapping(record) ||
                 (kept_mappings && !is_tiled(record) && touches_kept(record, ending));
    for (uint32_t at; (at = mapped(record));)
        keeps ? keep_mapping(at, ending) : end_use(at, ending);
}

/* As report/replay/rules/vmm.c has it. */
void gm_fold_vmm_array_ended(uint64_t array, uint32_t ending)
{
    unmap_pages(&(struct gm_record){.address = GM_TILES_OF(array), .size = GM_TILES_MAX}, ending);
}

/* ---- reservations ---------------------------------------------------------------------------- */

/* Ends all that lie in the range, or partly. */
static void unreserve(const struct gm_record *record, uint32_t ending)
{
    uint32_t at;
    while ((at = gm_carry_overlapping(GM_CARRY_RESERVATION, record->address, record->size)))
        gm_fold_end(at, ending, false);
}

static void reserve_range(const struct gm_record *record, uint32_t lane)
{
    unreserve(record, 0);
    if (record->size)
        gm_fold_add(GM_CARRY_RESERVATION, record->address, record, NULL, lane);
}

/* ---- multicast ------------------------------------------------------------------------------- */

/* The object that a handle, or an address that is mapped, stands for. */
static uint32_t object_meant(uint64_t handle_or_address)
{
    uint32_t number = find_object(handle_or_address);
    if (number)
        return number;
    uint32_t mapping = gm_carry_overlapping(GM_CARRY_MAPPING, handle_or_address, 1);
    return mapping ? gm_carry_at(mapping)->other : 0;
}

/* As report/replay/rules/vmm.c has it. */
static uint32_t memory_of(uint32_t number)
{
    uint32_t binding = number && is_multicast(number) ? binding_of(number, 0) : 0;
    return binding ? gm_carry_at(binding)->other : number;
}

static void add_binding(uint32_t multicast, uint32_t memory, const struct gm_record *record,
                        const struct gm_record *detail, uint32_t lane)
{
    uint32_t number = gm_fold_add(GM_CARRY_BINDING, 0, record, detail, lane);
    if (!number)
        return;
    gm_carry_at(number)->other = memory;
    gm_carry_at(number)->multicast = multicast;
    gm_carry_at(memory)->uses++;
}

static void bind_pages(const struct gm_record *record, const struct gm_record *detail,
                       uint32_t lane)
{
    uint32_t multicast = find_object(record->address);
    uint32_t memory = memory_of(object_meant(record->aux));
    if (multicast && memory && is_multicast(multicast) && !is_multicast(memory))
        add_binding(multicast, memory, record, detail, lane);
}

/* Memory that the process itself exported: carried as a multicast object and what is bound to it. */
static void import_object(const struct gm_record *record, uint32_t lane)
{
    uint32_t own = record->aux ? memory_of(find_object(record->aux)) : 0;
    if (retain(record, !own || own != find_object(record->address)))
        return; /* the same handle again */
    if (!own || is_multicast(own)) {
        create_object(record, lane);
        return;
    }
    struct gm_record part = *record;
    part.type = GM_EVENT_MULTICAST_CREATE;
    create_object(&part, lane);
    part.type = GM_EVENT_MULTICAST_BIND;
    if (find_object(record->address))
        add_binding(find_object(record->address), own, &part, NULL, lane);
}

/* Ends the binding at the place, of the device or of imported memory, as report/replay/rules/vmm.c has it. */
static void unbind_pages(const struct gm_record *record, uint32_t ending)
{
    uint32_t multicast = find_object(record->address), found = 0;
    for (uint32_t at = 0; multicast && (at = binding_of(multicast, at));) {
        const struct gm_carried *binding = gm_carry_at(at);
        if (binding->record.size != record->size || binding->detail != record->aux)
            continue;
        const struct gm_record *memory = &gm_carry_at(binding->other)->record;
        bool exact = memory->device == record->device;
        if (exact || (memory->type == GM_EVENT_VMM_IMPORT && !found))
            found = at;
        if (exact)
            break;
    }
    if (!found)
        return;
    if (ending)
        gm_carry_at(ending)->other = multicast;
    end_use(found, ending);
}

/* ---- records --------------------------------------------------------------------------------- */

void gm_fold_vmm_apply(const struct gm_record *record, const struct gm_record *detail,
                       uint32_t lane, uint32_t ending)
{
    switch (record->type) {
    case GM_EVENT_VMM_IMPORT:
        import_object(record, lane);
        break;
    case GM_EVENT_VMM_CREATE:
    case GM_EVENT_MULTICAST_CREATE:
        create_object(record, lane);
        break;
    case GM_EVENT_VMM_RETAIN:
        retain(record, false);
        break;
    case GM_EVENT_VMM_RELEASE:
        release_object(record, lane, ending);
        break;
    case GM_EVENT_VMM_RESERVE:
        reserve_range(record, lane);
        break;
    case GM_EVENT_VMM_UNRESERVE:
        unreserve(record, ending);
        break;
    case GM_EVENT_VMM_MAP:
        map_pages(record, detail, lane);
        break;
    case GM_EVENT_VMM_UNMAP:
        unmap_pages(record, ending);
        break;
    case GM_EVENT_MULTICAST_BIND:
        bind_pages(record, detail, lane);
        break;
    case GM_EVENT_MULTICAST_UNBIND:
        unbind_pages(record, ending);
        break;
    default:
        break;
    }
}

void gm_fold_vmm_forget(void)
{
    kept_mappings = 0;
}
