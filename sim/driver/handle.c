/*
 * Handles: numbers, looked up in a chained hash table. They are not addresses (not canonical on
 * x86-64), so an application that looks inside one faults instead of reading ours.
 *
 * The handle of what ended last is that of what is made next of its type: NVIDIA's handles are
 * addresses of the driver's own memory, which its allocator gives out again. Nodes keep theirs for
 * good, since a clone is asked for the node of its original.
 */
#include "driver.h"

#include <stdlib.h>

#define HANDLE_BASE 0x5150000000000000ull
#define HANDLE_STEP 16u

static struct {
    struct gpusim_object **buckets;
    size_t bucket_count; /* a power of two */
    size_t object_count;
    uint64_t last;
    struct {
        uint64_t *handles; /* to be used again, the latest last */
        size_t count, capacity;
    } ended[GPUSIM_TYPES];
} table;

static void remember_handle(enum gpusim_type type, uint64_t handle)
{
    if (type == GPUSIM_TYPE_NODE)
        return;
    if (table.ended[type].count == table.ended[type].capacity) {
        size_t capacity = table.ended[type].capacity ? table.ended[type].capacity * 2 : 16;
        uint64_t *handles = realloc(table.ended[type].handles, capacity * sizeof(*handles));

        if (!handles)
            return; /* it is never used again */
        table.ended[type].handles = handles;
        table.ended[type].capacity = capacity;
    }
    table.ended[type].handles[table.ended[type].count++] = handle;
}

static uint64_t next_handle(enum gpusim_type type)
{
    if (table.ended[type].count)
        return table.ended[type].handles[--table.ended[type].count];
    return HANDLE_BASE + ++table.last * HANDLE_STEP;
}

static struct gpusim_object **handle_bucket(uint64_t handle)
{
    return &table.buckets[(handle / HANDLE_STEP) & (table.bucket_count - 1)];
}

static bool grow_table(void)
{
    size_t old_count = table.bucket_count, count = old_count ? old_count * 2 : 256;
    struct gpusim_object **old = table.buckets,
                         **buckets = calloc(count, sizeof(struct gpusim_object *));

    if (!buckets)
        return false;
    table.buckets = buckets;
    table.bucket_count = count;
    for (size_t i = 0; i < old_count; i++) {
        for (struct gpusim_object *object = old[i], *next; object; object = next) {
            struct gpusim_object **bucket = handle_bucket(object->handle);

            next = object->next;
            object->next = *bucket;
            *bucket = object;
        }
    }
    free(old);
    return true;
}

void *gpusim_object_new(size_t size, enum gpusim_type type, struct gpusim_context *context)
{
    if (table.object_count >= table.bucket_count && !grow_table())
        return NULL;

    struct gpusim_object *object = calloc(1, size);
    if (!object)
        return NULL;
    object->handle = next_handle(type);
    object->type = type;
    object->context = context;

    struct gpusim_object **bucket = handle_bucket(object->handle);
    object->next = *bucket;
    *bucket = object;
    table.object_count++;
    return object;
}

CUresult gpusim_object_take(struct gpusim_object *object, struct gpusim_device *device,
                            enum gpusim_taker taker)
{
    const uint64_t bytes = gpusim_align_up(gpusim_settings.takes[taker], GPUSIM_ARENA_ALIGNMENT);

    GPUSIM_TRY(gpusim_take_begin());
    if (!object || !device)
        return CUDA_SUCCESS;
    if (!gpusim_device_charge(device, bytes))
        return gpusim_allocation_end(CUDA_ERROR_OUT_OF_MEMORY);
    object->payer = device;
    object->taken += bytes;
    return CUDA_SUCCESS;
}

void gpusim_object_give(struct gpusim_object *object)
{
    if (object->payer)
        gpusim_device_refund(object->payer, object->taken);
    object->payer = NULL;
    object->taken = 0;
}

void gpusim_object_delete(void *deleted)
{
    struct gpusim_object *object = deleted;
    gpusim_object_give(object);
    struct gpusim_object **link = handle_bucket(object->handle);

    while (*link != object)
        link = &(*link)->next;
    *link = object->next;
    table.object_count--;
    remember_handle(object->type, object->handle);
    free(object);
}

void *gpusim_object_of(uint64_t handle, enum gpusim_type type)
{
    if (handle < HANDLE_BASE || handle % HANDLE_STEP != 0 || table.bucket_count == 0)
        return NULL;
    for (struct gpusim_object *object = *handle_bucket(handle); object; object = object->next) {
        if (object->handle == handle)
            return object->type == type ? object : NULL;
    }
    return NULL;
}

/* The first object of a bucket that belongs to the context, or NULL. */
static struct gpusim_object *owned(size_t bucket, const struct gpusim_context *context,
                                   enum gpusim_type type)
{
    struct gpusim_object *object = table.buckets[bucket];

    while (object && (object->context != context || object->type != type))
        object = object->next;
    return object;
}

void gpusim_objects_end(const struct gpusim_context *context, enum gpusim_type type,
                        void (*end)(void *object))
{
    for (size_t i = 0; i < table.bucket_count; i++) {
        for (struct gpusim_object *object; (object = owned(i, context, type));)
            end(object);
    }
}

void gpusim_objects_each(enum gpusim_type type, void (*visit)(void *object, uint64_t argument),
                         uint64_t argument)
{
    for (size_t i = 0; i < table.bucket_count; i++) {
        for (struct gpusim_object *object = table.buckets[i]; object; object = object->next) {
            if (object->type == type)
                visit(object, argument);
        }
    }
}
