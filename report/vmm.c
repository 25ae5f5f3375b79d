/* See vmm.h. */
#include "vmm.h"
#include <stdlib.h>
#include "limit.h"
#include "memory.h"
#include "replay.h"

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
    vmm->objects[number] =
        (struct gm_vmm_object){.handle = handle, .life = GM_NONE, .handles = 1, .used = true};
    gm_map_set(&vmm->by_handle, handle, number);
    return number;
}

static bool referred_to(const struct gm_vmm_object *object)
{
    return object->handles || object->mappings || object->bindings;
}

static void recycle(struct gm_vmm *vmm, uint32_t number)
{
    struct gm_vmm_object *object = &vmm->objects[number];
    if (!object->used || object->held || referred_to(object))
        return;
    free(object->bound);
    *object = (struct gm_vmm_object){.life = GM_NONE};
    GM_RESERVE(vmm->unused, vmm->unused_capacity, vmm->unused_count + 1);
    vmm->unused[vmm->unused_count++] = number;
}

static void unbind(struct gm_replay *replay, uint32_t multicast, size_t which,
                   struct gm_journal *journal);

/* Ends an object that nothing refers to any more. */
static void settle(struct gm_replay *replay, uint32_t number, struct gm_journal *journal)
{
    struct gm_vmm *vmm = &replay->vmm;
    struct gm_vmm_object *object = &vmm->objects[number];
    if (!object->used || referred_to(object))
        return;
    if (object->life != GM_NONE)
        gm_replay_end_life(replay, object->life, false, journal);
    object->life = GM_NONE;
    while (object->bound_count)
        unbind(replay, number, object->bound_count - 1, journal);
    if (gm_map_get(&vmm->by_handle, object->handle) == number)
        gm_map_remove(&vmm->by_handle, object->handle);
    recycle(vmm, number);
}

static void unbind(struct gm_replay *replay, uint32_t multicast, size_t which,
                   struct gm_journal *journal)
{
    struct gm_vmm_object *object = &replay->vmm.objects[multicast];
    struct gm_vmm_binding binding = object->bound[which];
    object->bound[which] = object->bound[--object->bound_count];
    gm_replay_note(
        replay, journal,
        &(struct gm_undo){.action = GM_UNDO_UNBIND, .object = multicast, .binding = binding});
    replay->vmm.objects[binding.memory].bindings--;
    settle(replay, binding.memory, journal);
}

/* A handle value that the driver gave out anew: the old object lost its references unseen. */
static void make_handle_free(struct gm_replay *replay, uint64_t handle)
{
    uint32_t number = gm_map_get(&replay->vmm.by_handle, handle);
    if (number == GM_NONE)
        return;
    replay->vmm.lost_frees += replay->vmm.objects[number].handles > 0;
    replay->vmm.objects[number].handles = 0;
    replay->vmm.objects[number].nameless = true;
    gm_map_remove(&replay->vmm.by_handle, handle);
    settle(replay, number, NULL);
}

static void create(struct gm_replay *replay, const struct gm_record *record, unsigned kind)
{
    make_handle_free(replay, record->address);
    uint32_t number = new_object(&replay->vmm, record->address);
    struct gm_life life = gm_replay_life(record, kind);
    life.object = number;
    replay->vmm.objects[number].life = gm_replay_begin_life(replay, &life);
}

/* An object as a checkpoint has it: with the references by handle in `aux`; if the handle has
 * become another's, under a handle of the checkpoint's own, with the former one in the detail. */
static void carry(struct gm_replay *replay, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    make_handle_free(replay, record->address);
    uint32_t number = new_object(&replay->vmm, record->address);
    replay->vmm.objects[number].handles =
        record->aux > UINT32_MAX ? UINT32_MAX : (uint32_t)record->aux;
    if (record->type == GM_EVENT_MULTICAST_CREATE)
        return;
    struct gm_life life =
        gm_replay_life(record, record->type == GM_EVENT_VMM_IMPORT ? GM_KIND_EXTERNAL
                               : record->kind == GM_KIND_HOST_VMM  ? GM_KIND_HOST_VMM
                                                                   : GM_KIND_VMM);
    life.object = number;
    life.address = entry->detail ? entry->detail->address : life.address;
    life.flags = (uint8_t)gm_replay_carried_flags(entry);
    replay->vmm.objects[number].life = gm_replay_begin_life(replay, &life);
}

static void import(struct gm_replay *replay, const struct gm_record *record)
{
    uint32_t number = gm_map_get(&replay->vmm.by_handle, record->address);
    if (number != GM_NONE && replay->vmm.objects[number].handles)
        replay->vmm.objects[number].handles++; /* our own memory, exported and imported again */
    else
        create(replay, record, GM_KIND_EXTERNAL);
}

static void release(struct gm_replay *replay, const struct gm_record *record,
                    struct gm_journal *journal)
{
    uint32_t number = gm_map_get(&replay->vmm.by_handle, record->address);
    if (number == GM_NONE || !replay->vmm.objects[number].handles) {
        replay->vmm.unknown_frees++;
        gm_replay_note(replay, journal, &(struct gm_undo){.action = GM_UNDO_UNKNOWN_RELEASE});
        return;
    }
    replay->vmm.objects[number].handles--;
    gm_replay_note(replay, journal, &(struct gm_undo){.action = GM_UNDO_HANDLE, .object = number});
    settle(replay, number, journal);
}

/* ---- address ranges -------------------------------------------------------------------------- */

/* Removes all mappings in [start, end); of those that reach beyond it, the rest stays. */
static void unmap(struct gm_replay *replay, uint64_t start, uint64_t end,
                  struct gm_journal *journal)
{
    struct gm_vmm *vmm = &replay->vmm;
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
        range.start = range.start < start ? start : range.start;
        range.end = range.end > end ? end : range.end;
        gm_replay_note(
            replay, journal,
            &(struct gm_undo){.action = GM_UNDO_UNMAP, .object = range.value, .range = range});
        settle(replay, range.value, journal);
    }
}

static void map(struct gm_replay *replay, const struct gm_record *record)
{
    uint64_t end = gm_range_end(record->address, record->size);
    uint32_t number = gm_map_get(&replay->vmm.by_handle, record->aux);
    struct gm_range range;
    if (number == GM_NONE || record->size == 0) {
        replay->malformed++;
        return;
    }
    replay->vmm.objects[number].mappings++; /* first: what is in the way may be its own */
    if (gm_ranges_find(&replay->vmm.mappings, record->address, end, &range)) {
        replay->vmm.lost_frees++;
        unmap(replay, record->address, end, NULL);
    }
    gm_ranges_add(&replay->vmm.mappings, (struct gm_range){record->address, end, number});
}

static void remove_reservations(struct gm_vmm *vmm, uint64_t start, uint64_t end,
                                struct gm_replay *replay, struct gm_journal *journal)
{
    struct gm_range range;
    while (gm_ranges_find(&vmm->reservations, start, end, &range)) {
        gm_ranges_remove(&vmm->reservations, range.start);
        vmm->reserved -= range.end - range.start;
        gm_replay_note(replay, journal,
                       &(struct gm_undo){.action = GM_UNDO_RESERVATION, .range = range});
    }
}

static void reserve(struct gm_vmm *vmm, struct gm_range range)
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
static uint32_t meant(const struct gm_vmm *vmm, uint64_t handle_or_address)
{
    struct gm_range range;
    uint32_t number = gm_map_get(&vmm->by_handle, handle_or_address);
    if (number != GM_NONE)
        return number;
    bool mapped = gm_ranges_find(&vmm->mappings, handle_or_address,
                                 gm_range_end(handle_or_address, 1), &range);
    return mapped ? range.value : GM_NONE;
}

static void bind(struct gm_replay *replay, const struct gm_entry *entry)
{
    const struct gm_record *record = entry->record;
    struct gm_vmm *vmm = &replay->vmm;
    uint32_t multicast = gm_map_get(&vmm->by_handle, record->address);
    uint32_t memory = meant(vmm, record->aux);
    if (multicast != GM_NONE && memory == GM_NONE &&
        gm_lives_find(&replay->lives, record->aux) != GM_NONE)
        return; /* stream-ordered memory, which may be bound by its address: its pool keeps it */
    if (multicast == GM_NONE || memory == GM_NONE || multicast == memory ||
        vmm->objects[multicast].life != GM_NONE || vmm->objects[memory].life == GM_NONE) {
        replay->malformed++;
        return;
    }
    struct gm_vmm_object *object = &vmm->objects[multicast];
    GM_RESERVE(object->bound, object->bound_capacity, object->bound_count + 1);
    object->bound[object->bound_count++] = (struct gm_vmm_binding){
        .offset = entry->detail ? entry->detail->address : 0,
        .size = record->size,
        .memory = memory,
        .device = replay->lives.slots[vmm->objects[memory].life].device,
    };
    vmm->objects[memory].bindings++;
}

static void unbind_one(struct gm_replay *replay, const struct gm_record *record,
                       struct gm_journal *journal)
{
    uint32_t multicast = gm_map_get(&replay->vmm.by_handle, record->address);
    if (multicast == GM_NONE)
        return;
    const struct gm_vmm_object *object = &replay->vmm.objects[multicast];
    size_t best = object->bound_count;
    int likeness = 0; /* how much of what the record tells agrees */
    if (object->bound_count > 16 && !gm_limits_spend(object->bound_count / 16))
        return;
    for (size_t i = 0; i < object->bound_count; i++) {
        const struct gm_vmm_binding *binding = &object->bound[i];
        int now = 4 * (binding->device == record->device) + 2 * (binding->size == record->size) +
                  (binding->offset == record->aux);
        if (now > likeness) {
            likeness = now;
            best = i;
        }
        if (likeness == 4 + 2 + 1)
            break;
    }
    if (best < object->bound_count)
        unbind(replay, multicast, best, journal);
}

/* ---- records and undoing --------------------------------------------------------------------- */

void gm_vmm_apply(struct gm_replay *replay, const struct gm_entry *entry,
                  struct gm_journal *journal)
{
    const struct gm_record *record = entry->record;
    struct gm_vmm *vmm = &replay->vmm;
    uint64_t end = gm_range_end(record->address, record->size);
    uint32_t number;
    bool is_object = record->type == GM_EVENT_VMM_CREATE || record->type == GM_EVENT_VMM_IMPORT ||
                     record->type == GM_EVENT_MULTICAST_CREATE;
    if (entry->carried && is_object) {
        carry(replay, entry);
        return;
    }
    switch (record->type) {
    case GM_EVENT_VMM_CREATE:
        create(replay, record, record->kind == GM_KIND_HOST_VMM ? GM_KIND_HOST_VMM : GM_KIND_VMM);
        break;
    case GM_EVENT_VMM_IMPORT:
        import(replay, record);
        break;
    case GM_EVENT_VMM_RETAIN:
        number = gm_map_get(&vmm->by_handle, record->address);
        if (number != GM_NONE)
            vmm->objects[number].handles++;
        break;
    case GM_EVENT_VMM_RELEASE:
        release(replay, record, journal);
        break;
    case GM_EVENT_VMM_RESERVE:
        remove_reservations(vmm, record->address, end, replay, NULL);
        reserve(vmm, (struct gm_range){record->address, end, 0});
        break;
    case GM_EVENT_VMM_UNRESERVE:
        remove_reservations(vmm, record->address, end, replay, journal);
        break;
    case GM_EVENT_VMM_MAP:
        map(replay, record);
        break;
    case GM_EVENT_VMM_UNMAP:
        unmap(replay, record->address, end, journal);
        break;
    case GM_EVENT_MULTICAST_CREATE:
        make_handle_free(replay, record->address);
        new_object(vmm, record->address);
        break;
    case GM_EVENT_MULTICAST_BIND:
        bind(replay, entry);
        break;
    case GM_EVENT_MULTICAST_UNBIND:
        unbind_one(replay, record, journal);
        break;
    default:
        break;
    }
}

/* An object that is alive again is found by its handle, as before: a retain may need it. */
static void bring_handle_back(struct gm_vmm *vmm, uint32_t number)
{
    uint64_t handle = vmm->objects[number].handle;
    if (!vmm->objects[number].nameless && gm_map_get(&vmm->by_handle, handle) == GM_NONE)
        gm_map_set(&vmm->by_handle, handle, number);
}

void gm_vmm_undo(struct gm_replay *replay, const struct gm_undo *undo)
{
    struct gm_vmm *vmm = &replay->vmm;
    struct gm_range other;
    struct gm_vmm_object *object;
    switch (undo->action) {
    case GM_UNDO_HANDLE:
        object = &vmm->objects[undo->object];
        if (object->nameless)
            break; /* the driver gave its handle to another: the release did happen */
        object->handles++;
        bring_handle_back(vmm, undo->object);
        break;
    case GM_UNDO_UNMAP:
        if (gm_ranges_find(&vmm->mappings, undo->range.start, undo->range.end, &other))
            break;
        vmm->objects[undo->object].mappings++;
        gm_ranges_add(&vmm->mappings, undo->range);
        bring_handle_back(vmm, undo->object);
        break;
    case GM_UNDO_UNBIND:
        object = &vmm->objects[undo->object];
        GM_RESERVE(object->bound, object->bound_capacity, object->bound_count + 1);
        object->bound[object->bound_count++] = undo->binding;
        vmm->objects[undo->binding.memory].bindings++;
        break;
    case GM_UNDO_RESERVATION:
        if (!gm_ranges_find(&vmm->reservations, undo->range.start, undo->range.end, &other))
            reserve(vmm, undo->range);
        break;
    default:
        break;
    }
}

void gm_vmm_revive(struct gm_replay *replay, uint32_t object, uint32_t life)
{
    replay->vmm.objects[object].life = life;
    bring_handle_back(&replay->vmm, object);
}

/* ---- what journals hold ---------------------------------------------------------------------- */

/* The objects an entry is about, GM_NONE for none. */
static void objects_of(const struct gm_undo *undo, uint32_t objects[2])
{
    objects[0] = objects[1] = GM_NONE;
    switch (undo->action) {
    case GM_UNDO_LIFE:
        objects[0] = undo->life.object;
        break;
    case GM_UNDO_UNBIND:
        objects[1] = undo->binding.memory;
        objects[0] = undo->object;
        break;
    case GM_UNDO_HANDLE:
    case GM_UNDO_UNMAP:
        objects[0] = undo->object;
        break;
    default:
        break;
    }
}

void gm_vmm_hold(struct gm_vmm *vmm, const struct gm_undo *undo)
{
    uint32_t objects[2];
    objects_of(undo, objects);
    for (int i = 0; i < 2; i++)
        if (objects[i] != GM_NONE)
            vmm->objects[objects[i]].held++;
}

void gm_vmm_forget(struct gm_vmm *vmm, const struct gm_undo *undo)
{
    uint32_t objects[2];
    objects_of(undo, objects);
    for (int i = 0; i < 2; i++)
        if (objects[i] != GM_NONE) {
            vmm->objects[objects[i]].held--;
            recycle(vmm, objects[i]);
        }
}
