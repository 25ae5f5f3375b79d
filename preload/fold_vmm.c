/* See fold.h: physical memory by handle, address ranges, multicast. An object is carried with the
 * number of its handle references, a mapping or binding by its own record. CUDA unmaps whole
 * mappings only: an unmapping of less than that is kept word for word, with all it touched. */
#include "fold.h"

/* ---- objects ----------------------------------------------------------------------------------
 */

static void end_mapping(uint32_t number, uint32_t ending);

/* The first binding of a multicast object, 0 if there is none. */
static uint32_t binding_of(uint32_t multicast)
{
    uint32_t at = gm_carry_first();
    while (at && !(gm_carry_at(at)->role == GM_CARRY_BINDING && !gm_carry_at(at)->ended &&
                   gm_carry_at(at)->multicast == multicast))
        at = gm_carry_at(at)->next;
    return at;
}

/* What may yet be undone shall not find another object in the place of this one. */
static void let_go(uint32_t object)
{
    for (uint32_t at = gm_carry_first(); at; at = gm_carry_at(at)->next) {
        struct gm_carried *entry = gm_carry_at(at);
        if ((entry->role == GM_CARRY_MAPPING || entry->role == GM_CARRY_BINDING ||
             entry->record.type == GM_EVENT_VMM_RELEASE) &&
            entry->other == object)
            entry->other = 0;
        if (entry->role == GM_CARRY_BINDING && entry->multicast == object)
            entry->multicast = 0;
    }
}

/* Ends an object that nothing refers to any more. */
static void settle(uint32_t number, uint32_t ending)
{
    const struct gm_carried *object = gm_carry_at(number);
    if (object->handles || object->uses || object->kept || object->ended)
        return;
    for (uint32_t at;
         object->record.type == GM_EVENT_MULTICAST_CREATE && (at = binding_of(number));)
        end_mapping(at, ending);
    if (!ending && (object->held || object->releases))
        let_go(number);
    gm_fold_end(number, ending, false);
}

/* A handle value that the driver gave out anew: the old object lost its references unseen. */
static void make_handle_free(uint64_t handle)
{
    uint32_t number = gm_carry_find(GM_CARRY_OBJECT, handle);
    if (!number)
        return;
    gm_carry_at(number)->handles = 0;
    gm_carry_at(number)->nameless = true;
    gm_carry_hide(number);
    settle(number, 0);
}

static void create(const struct gm_record *record, uint32_t lane)
{
    make_handle_free(record->address);
    uint32_t number = gm_fold_add(GM_CARRY_OBJECT, record->address, record, NULL, lane);
    if (number)
        gm_carry_at(number)->handles = 1;
    gm_fold_totals.allocs += record->type != GM_EVENT_MULTICAST_CREATE;
}

/* A further reference to an object that is there. */
static bool retain(const struct gm_record *record, bool only_if_held)
{
    uint32_t number = gm_carry_find(GM_CARRY_OBJECT, record->address);
    if (!number || (only_if_held && !gm_carry_at(number)->handles))
        return false;
    gm_carry_at(number)->handles++;
    return true;
}

static void release(const struct gm_record *record, uint32_t ending)
{
    uint32_t number = gm_carry_find(GM_CARRY_OBJECT, record->address);
    if (!number || !gm_carry_at(number)->handles)
        return;
    gm_carry_at(number)->handles--;
    if (ending) {
        gm_carry_at(number)->releases++;
        gm_carry_at(ending)->other = number;
    }
    settle(number, ending);
}

/* An object that is alive again is found by its handle, as before. */
static void bring_handle_back(uint32_t number)
{
    const struct gm_carried *object = gm_carry_at(number);
    if (!object->nameless && !object->found && !gm_carry_find(GM_CARRY_OBJECT, object->key))
        gm_carry_show(number);
}

void gm_fold_vmm_released(const struct gm_carried *ending, bool undone)
{
    if (!ending->other)
        return; /* the object is gone by another way */
    struct gm_carried *object = gm_carry_at(ending->other);
    object->releases--;
    if (!undone || object->nameless)
        return; /* the driver gave its handle to another: the release did happen */
    object->handles++;
    bring_handle_back(ending->other);
}

/* ---- mappings and bindings --------------------------------------------------------------------
 */

static void end_mapping(uint32_t number, uint32_t ending)
{
    uint32_t memory = gm_carry_at(number)->other;
    gm_fold_end(number, ending, false);
    if (!memory)
        return;
    gm_carry_at(memory)->uses--;
    gm_carry_at(memory)->held += ending != 0;
    settle(memory, ending);
}

void gm_fold_vmm_unheld(const struct gm_carried *entry)
{
    bool is_use = entry->role == GM_CARRY_MAPPING || entry->role == GM_CARRY_BINDING;
    if (is_use && entry->other)
        gm_carry_at(entry->other)->held--;
}

void gm_fold_vmm_remove(uint32_t number)
{
    const struct gm_carried *entry = gm_carry_at(number);
    if (entry->role == GM_CARRY_OBJECT && (entry->held || entry->releases))
        let_go(number);
    gm_carry_remove(number);
}

bool gm_fold_vmm_revive(uint32_t number)
{
    const struct gm_carried *entry = gm_carry_at(number);
    if (entry->role == GM_CARRY_OBJECT) {
        bring_handle_back(number);
        return true;
    }
    if (!entry->other)
        return false;
    struct gm_carried *memory = gm_carry_at(entry->other);
    memory->held--;
    if (entry->role == GM_CARRY_MAPPING && gm_fold_overlapping(GM_CARRY_MAPPING, &entry->record, 0))
        return false;
    memory->uses++;
    if (entry->role == GM_CARRY_MAPPING)
        bring_handle_back(entry->other);
    return true;
}

/* The handle by which a replay finds an object: one of its own if the driver's is another's. */
static uint64_t handle_of(uint32_t object)
{
    return gm_carry_at(object)->nameless ? UINT64_MAX - object : gm_carry_at(object)->key;
}

void gm_fold_vmm_prepare(uint32_t number, struct gm_record *record)
{
    const struct gm_carried *entry = gm_carry_at(number);
    if (entry->role == GM_CARRY_OBJECT) {
        record->address = handle_of(number);
        record->aux = entry->handles + (entry->nameless ? 0 : entry->releases);
    }
    if ((entry->role == GM_CARRY_MAPPING || entry->role == GM_CARRY_BINDING) && entry->other)
        record->aux = handle_of(entry->other);
    if (entry->role == GM_CARRY_BINDING && entry->multicast)
        record->address = handle_of(entry->multicast);
}

static void map(const struct gm_record *record, const struct gm_record *detail, uint32_t lane)
{
    uint32_t memory = gm_carry_find(GM_CARRY_OBJECT, record->aux);
    if (!memory || record->size == 0)
        return;
    gm_carry_at(memory)->uses++; /* first: what is in the way may be its own */
    uint32_t there = gm_carry_find(GM_CARRY_MAPPING, record->address);
    if (there && !gm_carry_at(there)->kept)
        end_mapping(there, 0);
    uint32_t number = gm_fold_add(GM_CARRY_MAPPING, record->address, record, detail, lane);
    if (number)
        gm_carry_at(number)->other = memory;
}

/* Whether mappings lie end to end over the range: nothing else then has to be looked at. */
static bool is_tiled(uint64_t start, uint64_t size)
{
    while (size) {
        uint32_t number = gm_carry_find(GM_CARRY_MAPPING, start);
        const struct gm_carried *mapping = number ? gm_carry_at(number) : NULL;
        if (!mapping || mapping->kept || mapping->record.size > size)
            return false;
        start += mapping->record.size;
        size -= mapping->record.size;
    }
    return true;
}

static bool lies_within(const struct gm_record *range, const struct gm_record *record)
{
    uint64_t offset = range->address - record->address;
    return offset <= record->size && range->size <= record->size - offset;
}

/* What an unmapping that is no such thing touched, its memory included, stays as it is told. */
static void keep_all(const struct gm_record *record, uint32_t ending)
{
    uint32_t at = 0;
    while ((at = gm_fold_overlapping(GM_CARRY_MAPPING, record, at))) {
        struct gm_carried *mapping = gm_carry_at(at);
        mapping->kept = true;
        if (mapping->other)
            gm_carry_at(mapping->other)->kept = true;
        if (ending)
            gm_carry_at(ending)->kept = true;
    }
}

static bool is_whole(const struct gm_record *record)
{
    uint32_t at = 0;
    while ((at = gm_fold_overlapping(GM_CARRY_MAPPING, record, at)))
        if (gm_carry_at(at)->kept || !lies_within(&gm_carry_at(at)->record, record))
            return false;
    return true;
}

static void unmap(const struct gm_record *record, uint32_t ending)
{
    uint32_t number;
    if (is_tiled(record->address, record->size)) {
        uint64_t start = record->address, end = start + record->size;
        while (start != end) {
            number = gm_carry_find(GM_CARRY_MAPPING, start);
            start += gm_carry_at(number)->record.size;
            end_mapping(number, ending);
        }
    } else if (is_whole(record)) {
        while ((number = gm_fold_overlapping(GM_CARRY_MAPPING, record, 0)))
            end_mapping(number, ending);
    } else {
        keep_all(record, ending);
    }
}

/* ---- reservations -----------------------------------------------------------------------------
 */

/* Ends all that lie in the range, or partly. */
static void unreserve(const struct gm_record *record, uint32_t ending)
{
    uint32_t number = gm_carry_find(GM_CARRY_RESERVATION, record->address);
    if (number && gm_carry_at(number)->record.size == record->size) {
        gm_fold_end(number, ending, false);
        return;
    }
    while ((number = gm_fold_overlapping(GM_CARRY_RESERVATION, record, 0)))
        gm_fold_end(number, ending, false);
}

static void reserve(const struct gm_record *record, uint32_t lane)
{
    if (gm_carry_find(GM_CARRY_RESERVATION, record->address))
        unreserve(record, 0);
    if (record->size)
        gm_fold_add(GM_CARRY_RESERVATION, record->address, record, NULL, lane);
}

/* ---- multicast --------------------------------------------------------------------------------
 */

/* The object that a handle, or an address that is mapped, stands for. */
static uint32_t meant(uint64_t handle_or_address)
{
    uint32_t number = gm_carry_find(GM_CARRY_OBJECT, handle_or_address);
    if (number)
        return number;
    struct gm_record byte = {.address = handle_or_address, .size = 1};
    uint32_t mapping = gm_fold_overlapping(GM_CARRY_MAPPING, &byte, 0);
    return mapping ? gm_carry_at(mapping)->other : 0;
}

static bool is_multicast(uint32_t object)
{
    return gm_carry_at(object)->record.type == GM_EVENT_MULTICAST_CREATE;
}

static void bind(const struct gm_record *record, const struct gm_record *detail, uint32_t lane)
{
    uint32_t multicast = gm_carry_find(GM_CARRY_OBJECT, record->address);
    uint32_t memory = meant(record->aux);
    if (!multicast || !memory || !is_multicast(multicast) || is_multicast(memory))
        return;
    uint32_t number = gm_fold_add(GM_CARRY_BINDING, 0, record, detail, lane);
    if (!number)
        return;
    gm_carry_at(number)->other = memory;
    gm_carry_at(number)->multicast = multicast;
    gm_carry_at(memory)->uses++;
}

/* Ends the binding that agrees most with what the record tells, as report/vmm.c has it. */
static void unbind(const struct gm_record *record, uint32_t ending)
{
    uint32_t multicast = gm_carry_find(GM_CARRY_OBJECT, record->address), best = 0;
    int likeness = 0;
    for (uint32_t at = multicast ? gm_carry_first() : 0; at; at = gm_carry_at(at)->next) {
        const struct gm_carried *binding = gm_carry_at(at);
        if (binding->role != GM_CARRY_BINDING || binding->ended || binding->multicast != multicast)
            continue;
        int now = 4 * (gm_carry_at(binding->other)->record.device == record->device) +
                  2 * (binding->record.size == record->size) + (binding->detail == record->aux);
        if (now > likeness) {
            likeness = now;
            best = at;
        }
    }
    if (best)
        end_mapping(best, ending);
}

/* ---- records ----------------------------------------------------------------------------------
 */

void gm_fold_vmm_apply(const struct gm_record *record, const struct gm_record *detail,
                       uint32_t lane, uint32_t ending)
{
    switch (record->type) {
    case GM_EVENT_VMM_IMPORT:
        if (retain(record, true))
            break; /* our own memory, exported and imported again */
        create(record, lane);
        break;
    case GM_EVENT_VMM_CREATE:
    case GM_EVENT_MULTICAST_CREATE:
        create(record, lane);
        break;
    case GM_EVENT_VMM_RETAIN:
        retain(record, false);
        break;
    case GM_EVENT_VMM_RELEASE:
        release(record, ending);
        break;
    case GM_EVENT_VMM_RESERVE:
        reserve(record, lane);
        break;
    case GM_EVENT_VMM_UNRESERVE:
        unreserve(record, ending);
        break;
    case GM_EVENT_VMM_MAP:
        map(record, detail, lane);
        break;
    case GM_EVENT_VMM_UNMAP:
        unmap(record, ending);
        break;
    case GM_EVENT_MULTICAST_BIND:
        bind(record, detail, lane);
        break;
    case GM_EVENT_MULTICAST_UNBIND:
        unbind(record, ending);
        break;
    default:
        break;
    }
}
