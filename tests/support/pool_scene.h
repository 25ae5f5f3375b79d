/* A pool of PyTorch's, or of who else it says, in a trace that a test writes: segments, blocks, and the pool's own
 * totals. */
#ifndef GM_TESTS_POOL_SCENE_H
#define GM_TESTS_POOL_SCENE_H

#include "trace_scene.h"

struct pool {
    struct scene *scene;
    uint64_t allocated;
    uint64_t reserved;
    uint32_t segments; /* the stack that gets them from CUDA */
    int8_t device;
    uint8_t owner; /* enum gm_block_owner */
};

/* A line of a Python file of the application, without a caller. */
static uint32_t line_of(struct scene *scene, uint32_t line)
{
    uint32_t frame = writer_script_frame(&scene->writer, "/home/me/train.py", "step", line);
    return writer_node(&scene->writer, 0, 0, frame, GM_NODE_SCRIPT);
}

/* A function of PyTorch that this line calls. */
static uint32_t operation_of(struct scene *scene, uint32_t line, uint64_t address)
{
    uint16_t module = writer_module(&scene->writer, "/v/libtorch_cuda.so");
    uint32_t node = writer_node(&scene->writer, line, module, address, GM_NODE_NATIVE);
    uint16_t core = writer_module(&scene->writer, "/v/libc10_cuda.so");
    return writer_node(&scene->writer, node, core, 0x900, GM_NODE_NATIVE);
}

static struct pool pool_of(struct scene *scene)
{
    uint16_t module = writer_module(&scene->writer, "/v/libc10_cuda.so");
    return (struct pool){.scene = scene,
                         .segments = writer_node(&scene->writer, 0, module, 0x100, GM_NODE_NATIVE)};
}

static void segment(struct pool *pool, uint64_t address, uint64_t size)
{
    struct scene *scene = pool->scene;
    DEVICE_ALLOC(address, size, .stack = pool->segments, .device = pool->device);
    pool->reserved += size;
}

static void pool_event(struct pool *pool, unsigned type, uint64_t address, uint64_t size,
                       uint32_t stack)
{
    struct scene *scene = pool->scene;
    EVENT((uint8_t)type, .address = address, .size = size, .stack = stack, .aux = pool->allocated,
          .device = pool->device, .kind = pool->owner);
    EVENT(GM_EVENT_DETAIL, .address = pool->reserved, .device = pool->device);
}

static void block(struct pool *pool, uint64_t address, uint64_t size, uint32_t stack)
{
    pool->allocated += size;
    pool_event(pool, GM_EVENT_BLOCK_ALLOC, address, size, stack);
}

static void unblock(struct pool *pool, uint64_t address, uint64_t size)
{
    pool->allocated -= size;
    pool_event(pool, GM_EVENT_BLOCK_FREE, address, size, 0);
}

static void refuse(struct pool *pool, uint64_t size, uint32_t stack)
{
    pool_event(pool, GM_EVENT_BLOCK_OOM, 0, size, stack);
}

#endif
