/* See vmm.h. */
#include "replay/rules/vmm.h"
#include "base/limit.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

void gm_vmm_end(struct gm_vmm *vmm)
{
    for (size_t i = 0; i < vmm->count; i++)
        free(vmm->objects[i].bound);
    free(vmm->objects);
    free(vmm->unused);
    gm_map_free(&vmm->by_handle);
    gm_ranges_free(&vmm->mappings);
    gm_ranges_free(&vmm->reservations);
}

/* ---- objects --------------------------------------------------------------------------------- */

static uint32_t new_object(struct gm_vmm *vmm, uint64_t handle)
{
    uint32_t number;
    if (vmm->unused_count) {
        number = vmm->unused[--vmm->unused_count];
    } else {
        number = (uint32_t)vmm->count++;
        GM_RESERVE(vmm->objects, vmm->capacity, vmm->count);
    }
    vmm->objects[number] = (struct gm_vmm_object){
        .handle = handle, .life = GM_NONE, .handles = 1, .used = true, .alive = true};
    gm_map_set(&vmm->by_handle, handle, number);
    return number;
}

/* The object alive under a handle, GM_NONE if there is none. */
static uint32_t find_object(const struct gm_vmm *vmm, uint64_t handle)
{
    uint32_t number = gm_map_get(&vmm->by_handle, handle);
    return number != GM_NONE && vmm->objects[number].alive ? number : GM_NONE;
}

static bool referred_to(const struct gm_vmm_object *object)
{
    return object->handles || object->mappings || object->bindings;
}

/* Forgets an object that nothing can bring back. */
static void recycle(struct gm_vmm *vmm, uint32_t number)
{
    struct gm_vmm_object object = vmm->objects[number];
    if (!object.used || object.alive || object.held)
        return;
    if (gm_map_get(&vmm->by_handle, object.handle) == number)
        gm_map_remove(&vmm->by_handle, object.handle);
    vmm->objects[number] = (struct gm_vmm_object){.life = GM_NONE};
    GM_APPEND(vmm->unused, vmm->unused_capacity, vmm->unused_count, number);
    for (size_t i = 0; i < object.bound_count; i++) {
        vmm->objects[object.bound[i].memory].held--;
        recycle(vmm, object.bound[i].memory);
    }
    free(object.bound);
}

static void settle_object(struct gm_vmm *vmm, uint32_t number, bool late);

/* Bindings refer to their memory as long as their multicast object is alive. */
static void count_bindings(struct gm_vmm *vmm, uint32_t multicast, bool late)
{
    struct gm_vmm_object *objects = vmm->objects;
    uint32_t by = objects[multicast].alive ? 1 : UINT32_MAX; /* up or down */
    gm_limits_spend(GM_STEPS_UNDO * objects[multicast].bound_count);
    for (size_t i = 0; i < objects[multicast].bound_count; i++) {
        uint32_t memory = objects[multicast].bound[i].memory;
        objects[memory].bindings += by;
        objects[memory].held -= by;
        settle_object(vmm, memory, late);
    }
}

/* Ends an object that nothing refers to any more, or brings back one that something refers to after
 * all. While records are carried it is not known yet what will refer to it. */
static void settle_object(struct gm_vmm *vmm, uint32_t number, bool late)
{
    struct gm_vmm_object *object = &vmm->objects[number];
    if (vmm->ledger->carrying || object->alive == referred_to(object))
        return;
    object->alive = !object->alive;
    if (object->is_memory && object->alive) {
        object->life = gm_ledger_revive(
            vmm->ledger, &(struct gm_undo){.action = GM_UNDO_LIFE, .life = object->was}, late,
            object->is_past);
    } else if (object->is_memory) {
        object->was = vmm->ledger->lives.slots[object->life];
        object->is_past = false;
        gm_ledger_end_life(vmm->ledger, object->life, NULL, false, NULL);
        object->life = GM_NONE;
    }
    count_bindings(vmm, number, late);
    recycle(vmm, number);
}

void gm_vmm_begin_history(struct gm_vmm *vmm)
{
    for (uint32_t number = 0; number < vmm->count; number++)
        if (vmm->objects[number].used)
            settle_object(vmm, number, false);
    for (uint32_t number = 0; number < vmm->count; number++)
        vmm->objects[number].is_past = !vmm->objects[number].alive;
}

/* A handle value that the driver gave out anew: the old object lost its references unseen. */
static void make_handle_free(struct gm_vmm *vmm, uint64_t handle)
{
    uint32_t number = gm_map_get(&vmm->by_handle, handle);
    if (number == GM_NONE)
        return;
    vmm->ledger->lost_frees += vmm->objects[number].handles > 0;
    vmm->objects[number].handles = 0;
    vmm->objects[number].nameless = true;
    gm_map_remove(&vmm->by_handle, handle);
    settle_object(vmm, number, false);
}

static void give_life(struct gm_vmm *vmm, uint32_t number, struct gm_life *life)
{
    life->object = number;
    vmm->objects[number].is_memory = true;
    vmm->objects[number].life = gm_ledger_begin_life(vmm->ledger, life);
}

static void create_object(struct gm_vmm *vmm, const struct gm_record *record, unsigned kind)
{
    make_handle_free(vmm, record->address);
    uint32_t number = new_object(vmm, record->address);
    give_life(vmm, number, gm_ledger_draft(vmm->ledger, record, kind));
}

/* An object as a checkpoint has it: with the references by handle in `aux`; if the handle has
 * become another's, under a handle of the checkpoint's own, with the former one in the detail. */
static void carry(struct gm_vmm *vmm, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    make_handle_free(vmm, record->address);
    uint32_t number = new_object(vmm, record->address);
    vmm->objects[number].nameless = entry->detail != NULL;
    vmm->objects[number].handles = record->aux > UINT32_MAX ? UINT32_MAX : (uint32_t)record->aux;
    if (record->type == GM_EVENT_MULTICAST_CREATE)
        return;
    struct gm_life *life = gm_ledger_draft(vmm->ledger, record,
                                           record->type == GM_EVENT_VMM_IMPORT ? GM_KIND_EXTERNAL
                                           : record->kind == GM_KIND_HOST_VMM  ? GM_KIND_HOST_VMM
                                                                               : GM_KIND_VMM);
    life->address = entry->detail ? entry->detail->address : life->address;
    life->flags = (uint8_t)gm_life_carried_flags(entry);
    give_life(vmm, number, life);
}

static void release_object(struct gm_vmm *vmm, const struct gm_record *record,
                           struct gm_journal *journal)
{
    uint32_t number = find_object(vmm, record->address);
    if (number == GM_NONE || !vmm->objects[number].handles) {
        vmm->ledger->unknown_frees++;
        gm_ledger_note(vmm->ledger, journal, &(struct gm_undo){.action = GM_UNDO_UNKNOWN_RELEASE});
        return;
    }
    vmm->objects[number].handles--;
    gm_ledger_note(vmm->ledger, journal,
                   &(struct gm_undo){.action = GM_UNDO_HANDLE, .object = number});
    settle_object(vmm, number, false);
}

/* ---- address ranges -------------------------------------------------------------------------- */

static void move_object(struct gm_vmm *vmm, struct gm_vmm_object *object, uint64_t address)
{
    object->whole_at = address;
    if (vmm->moved)
        vmm->moved(vmm->moved_argument, &vmm->ledger->lives.slots[object->life], address);
}

/* Notes a mapping of an object, which is counted already. Of several that show all of the memory
 * the first one counts. */
static void add_mapping(struct gm_vmm *vmm, struct gm_range range)
{
    struct gm_vmm_object *object = &vmm->objects[range.value];
    gm_ranges_add(&vmm->mappings, range);
    if (object->life != GM_NONE && object->mappings == 1 && range.start &&
        range.end - range.start == vmm->ledger->lives.slots[object->life].size)
        move_object(vmm, object, range.start);
}

/* Removes all mappings in [start, end); of those that reach beyond it, the rest stays. */
static void unmap_range(struct gm_vmm *vmm, uint64_t start, uint64_t end,
                        struct gm_journal *journal)
{
    struct gm_range range;
    while (gm_ranges_find(&vmm->mappings, start, end, &range)) {
        struct gm_range before = {range.start, start, range.value};
        struct gm_range behind = {end, range.end, range.value};
        struct gm_vmm_object *object = &vmm->objects[range.value];
        gm_ranges_remove(&vmm->mappings, range.start);
        gm_ranges_add(&vmm->mappings, before);
        gm_ranges_add(&vmm->mappings, behind);
        object->mappings += before.start < before.end ? 1u : 0u;
        object->mappings += behind.start < behind.end ? 1u : 0u;
        object->mappings--;
        if (object->whole_at && object->whole_at == range.start)
            move_object(vmm, object, 0);
        range.start = range.start < start ? start : range.start;
        range.end = range.end > end ? end : range.end;
        gm_ledger_note(
            vmm->ledger, journal,
            &(struct gm_undo){.action = GM_UNDO_UNMAP, .object = range.value, .range = range});
        settle_object(vmm, range.value, false);
    }
}

void gm_vmm_array_ended(struct gm_vmm *vmm, uint64_t array, struct gm_journal *journal)
{
    const uint64_t tiles = GM_TILES_OF(array);
    unmap_range(vmm, tiles, gm_range_end(tiles, GM_TILES_MAX), journal);
}

/* An import does not tell how large the memory is: it is known as far as it was mapped. */
static void learn_size(struct gm_vmm *vmm, const struct gm_vmm_object *object,
                       const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    const uint64_t offset = entry->detail ? entry->detail->address : 0;
    if (object->life == GM_NONE ||
        vmm->ledger->lives.slots[object->life].kind != GM_KIND_EXTERNAL ||
        record->address & GM_TILE || record->size > GM_LIVE_MAX || offset > GM_LIVE_MAX)
        return;
    if (offset + record->size > vmm->ledger->lives.slots[object->life].size)
        gm_ledger_grow(vmm->ledger, object->life, offset + record->size);
}

static void map_range(struct gm_vmm *vmm, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    uint64_t end = gm_range_end(record->address, record->size);
    uint32_t number = find_object(vmm, record->aux);
    struct gm_range range;
    if (number == GM_NONE || record->size == 0) {
        vmm->ledger->malformed++;
        return;
    }
    vmm->objects[number].mappings++; /* first: what is in the way may be its own */
    bool is_lost = false;
    while (gm_ranges_find(&vmm->mappings, record->address, end, &range)) {
        unmap_range(vmm, range.start, range.end, NULL); /* as a whole: CUDA has no other way */
        is_lost = true;
    }
    vmm->ledger->lost_frees += is_lost;
    learn_size(vmm, &vmm->objects[number], entry);
    add_mapping(vmm, (struct gm_range){record->address, end, number});
}

static void remove_reservations(struct gm_vmm *vmm, uint64_t start, uint64_t end,
                                struct gm_journal *journal)
{
    struct gm_range range;
    while (gm_ranges_find(&vmm->reservations, start, end, &range)) {
        gm_ranges_remove(&vmm->reservations, range.start);
        vmm->reserved -= range.end - range.start;
        gm_ledger_note(vmm->ledger, journal,
                       &(struct gm_undo){.action = GM_UNDO_RESERVATION, .range = range});
    }
}

static void reserve_range(struct gm_vmm *vmm, struct gm_range range)
{
    if (range.start >= range.end)
        return;
    gm_ranges_add(&vmm->reservations, range);
    vmm->reserved += range.end - range.start;
    if (vmm->reserved > vmm->reserved_peak)
        vmm->reserved_peak = vmm->reserved;
}

/* ---- multicast ------------------------------------------------------------------------------- */

/* The object that a handle, or an address that is mapped, stands for. */
static uint32_t object_meant(const struct gm_vmm *vmm, uint64_t handle_or_address)
{
    struct gm_range range;
    uint32_t number = find_object(vmm, handle_or_address);
    if (number != GM_NONE)
        return number;
    bool mapped = gm_ranges_find(&vmm->mappings, handle_or_address,
                                 gm_range_end(handle_or_address, 1), &range);
    return mapped ? range.value : GM_NONE;
}

static void add_binding(struct gm_vmm *vmm, uint32_t multicast,
                        const struct gm_vmm_binding *binding, bool late)
{
    struct gm_vmm_object *object = &vmm->objects[multicast];
    GM_APPEND(object->bound, object->bound_capacity, object->bound_count, *binding);
    struct gm_vmm_object *memory = &vmm->objects[binding->memory];
    *(object->alive ? &memory->bindings : &memory->held) += 1;
    settle_object(vmm, binding->memory, late);
}

/* The memory that a handle of memory stands for: that itself, or what the process imported from
 * itself (`import`). */
static uint32_t memory_of(const struct gm_vmm *vmm, uint32_t number)
{
    const struct gm_vmm_object *object = number == GM_NONE ? NULL : &vmm->objects[number];
    return object && !object->is_memory && object->bound_count ? object->bound[0].memory : number;
}

/* Memory that the process itself exported is here under one more handle, which keeps it as a
 * multicast object keeps what is bound to it. */
static void import_object(struct gm_vmm *vmm, const struct gm_record *record)
{
    uint32_t number = find_object(vmm, record->address);
    uint32_t own = record->aux ? memory_of(vmm, find_object(vmm, record->aux)) : GM_NONE;
    if (number != GM_NONE && (number == own || vmm->objects[number].handles)) {
        vmm->objects[number].handles++; /* the same handle again */
    } else if (own != GM_NONE && vmm->objects[own].is_memory) {
        make_handle_free(vmm, record->address);
        number = new_object(vmm, record->address);
        add_binding(vmm, number, &(struct gm_vmm_binding){.memory = own}, false);
    } else {
        create_object(vmm, record, GM_KIND_EXTERNAL);
    }
}

static bool is_imported(const struct gm_vmm *vmm, uint32_t number)
{
    const struct gm_vmm_object *object = &vmm->objects[number];
    return object->is_memory && vmm->ledger->lives.slots[object->life].kind == GM_KIND_EXTERNAL;
}

static void bind_range(struct gm_vmm *vmm, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    uint32_t multicast = find_object(vmm, record->address);
    uint32_t memory = memory_of(vmm, object_meant(vmm, record->aux));
    if (multicast != GM_NONE && memory == GM_NONE &&
        gm_lives_find(&vmm->ledger->lives, record->aux) != GM_NONE)
        return; /* stream-ordered memory, which may be bound by its address: its pool keeps it */
    if (multicast != GM_NONE && memory != GM_NONE && multicast != memory &&
        is_imported(vmm, multicast))
        return; /* a multicast object of another process: an import does not say what it is of */
    if (multicast == GM_NONE || memory == GM_NONE || vmm->objects[multicast].is_memory ||
        !vmm->objects[memory].is_memory) {
        vmm->ledger->malformed++;
        return;
    }
    add_binding(vmm, multicast,
                &(struct gm_vmm_binding){
                    .offset = entry->detail ? entry->detail->address : 0,
                    .size = record->size,
                    .memory = memory,
                    .device = vmm->ledger->lives.slots[vmm->objects[memory].life].device,
                    .imported = is_imported(vmm, memory),
                },
                false);
}

static void remove_binding(struct gm_vmm *vmm, uint32_t multicast, size_t which,
                           struct gm_journal *journal)
{
    struct gm_vmm_object *object = &vmm->objects[multicast];
    struct gm_vmm_binding binding = object->bound[which];
    memmove(&object->bound[which], &object->bound[which + 1],
            (--object->bound_count - which) * sizeof(binding));
    gm_ledger_note(
        vmm->ledger, journal,
        &(struct gm_undo){.action = GM_UNDO_UNBIND, .object = multicast, .binding = binding});
    vmm->objects[binding.memory].bindings--;
    settle_object(vmm, binding.memory, false);
}

/* An unbinding names the place as the binding did. What is bound elsewhere is never meant: where
 * nothing is known to be, there was memory of a pool. The device says which of several; that of
 * imported memory is a guess, so the place alone finds it where no other is. Of bindings that agree
 * as well the first one is meant; one that comes back is behind all. */
static void unbind_range(struct gm_vmm *vmm, const struct gm_record *record,
                         struct gm_journal *journal)
{
    uint32_t multicast = find_object(vmm, record->address);
    if (multicast == GM_NONE)
        return;
    const struct gm_vmm_object *object = &vmm->objects[multicast];
    size_t found = object->bound_count;
    if (!gm_limits_spend(2 * object->bound_count)) /* to look at each, and to move those behind */
        return;
    for (size_t i = 0; i < object->bound_count; i++) {
        const struct gm_vmm_binding *binding = &object->bound[i];
        if (binding->size != record->size || binding->offset != record->aux)
            continue;
        bool exact = binding->device == record->device;
        if (exact || (binding->imported && found == object->bound_count))
            found = i;
        if (exact)
            break;
    }
    if (found < object->bound_count)
        remove_binding(vmm, multicast, found, journal);
}

/* ---- records and undoing --------------------------------------------------------------------- */

void gm_vmm_apply(struct gm_vmm *vmm, const struct gm_entry *entry, struct gm_journal *journal)
{
    const struct gm_record *record = entry->record;
    uint64_t end = gm_range_end(record->address, record->size);
    uint32_t number;
    bool is_object = record->type == GM_EVENT_VMM_CREATE || record->type == GM_EVENT_VMM_IMPORT ||
                     record->type == GM_EVENT_MULTICAST_CREATE;
    if (entry->carried && is_object) {
        carry(vmm, entry);
        return;
    }
    switch (record->type) {
    case GM_EVENT_VMM_CREATE:
        create_object(vmm, record,
                      record->kind == GM_KIND_HOST_VMM ? GM_KIND_HOST_VMM : GM_KIND_VMM);
        break;
    case GM_EVENT_VMM_IMPORT:
        import_object(vmm, record);
        break;
    case GM_EVENT_VMM_RETAIN:
        number = find_object(vmm, record->address);
        if (number != GM_NONE)
            vmm->objects[number].handles++;
        break;
    case GM_EVENT_VMM_RELEASE:
        release_object(vmm, record, journal);
        break;
    case GM_EVENT_VMM_RESERVE:
        remove_reservations(vmm, record->address, end, NULL);
        reserve_range(vmm, (struct gm_range){record->address, end, 0});
        break;
    case GM_EVENT_VMM_UNRESERVE:
        remove_reservations(vmm, record->address, end, journal);
        break;
    case GM_EVENT_VMM_MAP:
        map_range(vmm, entry);
        break;
    case GM_EVENT_VMM_UNMAP:
        unmap_range(vmm, record->address, end, journal);
        break;
    case GM_EVENT_MULTICAST_CREATE:
        make_handle_free(vmm, record->address);
        new_object(vmm, record->address);
        break;
    case GM_EVENT_MULTICAST_BIND:
        bind_range(vmm, entry);
        break;
    case GM_EVENT_MULTICAST_UNBIND:
        unbind_range(vmm, record, journal);
        break;
    default:
        break;
    }
}

void gm_vmm_undo(struct gm_vmm *vmm, const struct gm_undo *undo, bool late)
{
    struct gm_range other;
    switch (undo->action) {
    case GM_UNDO_HANDLE:
        if (vmm->objects[undo->object].nameless)
            break; /* the driver gave its handle to another: the release did happen */
        vmm->objects[undo->object].handles++;
        settle_object(vmm, undo->object, late);
        break;
    case GM_UNDO_UNMAP:
        if (gm_ranges_find(&vmm->mappings, undo->range.start, undo->range.end, &other))
            break;
        vmm->objects[undo->object].mappings++;
        settle_object(vmm, undo->object, late);
        add_mapping(vmm, undo->range);
        break;
    case GM_UNDO_UNBIND:
        add_binding(vmm, undo->object, &undo->binding, late);
        break;
    case GM_UNDO_RESERVATION:
        if (!gm_ranges_find(&vmm->reservations, undo->range.start, undo->range.end, &other))
            reserve_range(vmm, undo->range);
        break;
    default:
        break;
    }
}

/* ---- what journals hold ---------------------------------------------------------------------- */

/* The objects an entry is about, GM_NONE for none. */
static void objects_of(const struct gm_undo *undo, uint32_t objects[2])
{
    objects[0] = gm_undo_holds(undo) ? undo->object : GM_NONE;
    objects[1] = undo->action == GM_UNDO_UNBIND ? undo->binding.memory : GM_NONE;
}

static void hold_objects(void *argument, const struct gm_undo *undo)
{
    struct gm_vmm *vmm = argument;
    uint32_t objects[2];
    objects_of(undo, objects);
    for (int i = 0; i < 2; i++)
        if (objects[i] != GM_NONE)
            vmm->objects[objects[i]].held++;
}

static void release_objects(void *argument, const struct gm_undo *undo)
{
    struct gm_vmm *vmm = argument;
    uint32_t objects[2];
    objects_of(undo, objects);
    for (int i = 0; i < 2; i++)
        if (objects[i] != GM_NONE) {
            vmm->objects[objects[i]].held--;
            recycle(vmm, objects[i]);
        }
}

void gm_vmm_begin(struct gm_vmm *vmm, struct gm_ledger *ledger)
{
    *vmm = (struct gm_vmm){.ledger = ledger};
    ledger->keeper = (struct gm_undo_keeper){hold_objects, release_objects, vmm};
}
