/*
 * Blocks of PyTorch's caching allocator.
 *
 * libc10_cuda calls a function of libc10 at each block it hands out, takes back or cannot find, for
 * the sake of PyTorch's own profiler. The functions below have its name, so the dynamic linker
 * binds the calls to us; the record made, they go on to the original.
 *
 * Relies on
 *   - the call coming with the device's allocator mutex held: nothing here takes the GIL, calls
 *     into PyTorch (but for the original) or allocates;
 *   - the names and argument lists of PyTorch 1.10 and later. Before that the call named neither
 *     the device address nor the totals, so there is no block to record, and it is left alone.
 *
 * The stack is that of the block, not of its segment: the allocation of a segment is recorded by
 * the hooks of CUDA.
 *
 * The call does not tell the size asked for, the stream and the pool, nor whether memory that is
 * given back stays unusable because another stream may still use it: torch_block.h does.
 */
#include "base/config.h"
#include "base/platform.h"
#include "loader/objects.h"
#include "record/recorder.h"
#include "sources/torch_block.h"
#include <stddef.h>

/*
 * C++ names, spelled with assembly labels. c10::Device is a struct of two bytes passed by value:
 * the low 16 bits of a register whose other bits mean nothing.
 */

/* (void *address, int64_t size, size_t allocated, size_t reserved, Device) */
#define MEMORY_USAGE "_ZN3c1027reportMemoryUsageToProfilerEPvlmmNS_6DeviceE"
#if defined(__x86_64__)
/* Keeps rax as a sixth argument and rbx in the unused bits of the device, for torch_block.h, and jumps. */
__asm__(".pushsection .text\n"
        ".p2align 4\n"
        ".globl " MEMORY_USAGE "\n"
        ".type " MEMORY_USAGE ", @function\n" MEMORY_USAGE ":\n"
        ".cfi_startproc\n"
        "endbr64\n"
        "movq %rax, %r9\n"
        "movzwl %r8w, %r8d\n"
        "movq %rbx, %r10\n"
        "shlq $16, %r10\n"
        "orq %r10, %r8\n"
        "jmp gm_torch_memory_usage\n"
        ".cfi_endproc\n"
        ".size " MEMORY_USAGE ", .-" MEMORY_USAGE "\n"
        ".popsection\n");
void gm_torch_memory_usage(void *address, int64_t size, size_t allocated, size_t reserved,
                           uint64_t device, uint64_t held);
void gm_torch_memory_usage_name(void) __asm__(MEMORY_USAGE); /* never called by this name */
#define MEMORY_USAGE_SELF ((const void *)gm_torch_memory_usage_name)
#define HELD_PARAMETER , uint64_t held
#else
GM_EXPORT void gm_torch_memory_usage(void *address, int64_t size, size_t allocated, size_t reserved,
                                     uint64_t device) __asm__(MEMORY_USAGE);
#define MEMORY_USAGE_SELF ((const void *)gm_torch_memory_usage)
#define HELD_PARAMETER
static const uint64_t held = 0;
#endif

/* (size, allocated, reserved, Device), the types of the first three having varied in sign. */
#define OUT_OF_MEMORY "_ZN3c1027reportOutOfMemoryToProfilerElmmNS_6DeviceE"
#define OUT_OF_MEMORY_UNSIGNED "_ZN3c1027reportOutOfMemoryToProfilerEmmmNS_6DeviceE"
#define OUT_OF_MEMORY_SIGNED "_ZN3c1027reportOutOfMemoryToProfilerElllNS_6DeviceE"
GM_EXPORT void gm_torch_out_of_memory(int64_t size, size_t allocated, size_t reserved,
                                      uint64_t device) __asm__(OUT_OF_MEMORY);
GM_EXPORT void gm_torch_out_of_memory_unsigned(size_t size, size_t allocated, size_t reserved,
                                               uint64_t device) __asm__(OUT_OF_MEMORY_UNSIGNED);
GM_EXPORT void gm_torch_out_of_memory_signed(int64_t size, int64_t allocated, int64_t reserved,
                                             uint64_t device) __asm__(OUT_OF_MEMORY_SIGNED);

typedef void memory_usage(void *, int64_t, size_t, size_t, uint64_t);
typedef void out_of_memory(uint64_t, uint64_t, uint64_t, uint64_t);

/* c10::DeviceType */
enum { TYPE_CUDA = 1, TYPE_HIP = 6, TYPE_XPU = 12, TYPE_PRIVATE = 20 };

static inline bool is_accelerator(uint64_t device)
{
    switch ((int8_t)device) {
    case TYPE_CUDA:
    case TYPE_HIP:
    case TYPE_XPU:
    case TYPE_PRIVATE:
        return true;
    default:
        return false;
    }
}

struct block {
    uint64_t address;
    uint64_t size;
    uint64_t allocated;
    uint64_t reserved;
    uint64_t device; /* as passed */
};

static inline int8_t ordinal_of(const struct block *block)
{
    return (int8_t)(block->device >> 8);
}

/* What the report alone does not tell. */
static inline void add_told(struct gm_record *detail, enum gm_event type, const struct block *block,
                            const struct gm_torch_caller *caller)
{
    struct gm_torch_report report = {block->address, block->size, ordinal_of(block)};
    struct gm_torch_told told;
    if (type == GM_EVENT_BLOCK_FREE) {
        detail->extra = gm_torch_block_returned(caller, &report);
    } else if (gm_torch_block_given(caller, &report, &told)) {
        detail->size = told.requested;
        detail->aux = told.stream;
        detail->extra = told.pool;
        detail->kind = told.is_common ? GM_BLOCK_POOL_COMMON : GM_BLOCK_POOL_UNTOLD;
    }
}

/* `caller`: NULL if nothing more can be told. */
static inline void record_torch(enum gm_event type, const struct block *block,
                                const struct gm_torch_caller *caller, void *frame)
{
    struct gm_call call;
    if (!gm_config.torch || !is_accelerator(block->device))
        return;
    gm_call_begin(&call, 0, frame);
    if (gm_call_active(&call)) {
        struct gm_record detail = {.address = block->reserved, .device = ordinal_of(block)};
        if (caller)
            add_told(&detail, type, block, caller);
        gm_call_commit_block(call.thread, frame,
                             gm_what(type, GM_KIND_NONE, ordinal_of(block), 0, 0), block->address,
                             block->size, block->allocated, &detail);
    }
    gm_call_end(&call);
}

/*
 * An original, looked for once, at the first call, in the loader's list: libc10 is loaded without
 * its names being global, and it stays loaded as long as who calls us. `none` stands for one that
 * does not exist; it may be called like any other.
 */
static void no_original(void)
{
}

static __attribute__((noinline)) void *find_original(_Atomic(void *) *word, const char *name,
                                                     const void *self)
{
    int saved_errno = errno;
    void *found = gm_object_definitions(name).first;
    if (found == NULL || found == self)
        found = (void *)no_original;
    atomic_store_explicit(word, found, memory_order_release);
    errno = saved_errno;
    return found;
}

static inline void *original_of(_Atomic(void *) *word, const char *name, const void *self)
{
    void *found = atomic_load_explicit(word, memory_order_acquire);
    return gm_likely(found != NULL) ? found : find_original(word, name, self);
}

void gm_torch_memory_usage(void *address, int64_t size, size_t allocated, size_t reserved,
                           uint64_t device HELD_PARAMETER)
{
    static _Atomic(void *) original;
    void *frame = __builtin_frame_address(0);
    struct gm_torch_caller caller = {.code = (uintptr_t)__builtin_return_address(0),
                                     .held = held,
                                     .allocator = device >> 16,
                                     .frame = (const uint64_t *)frame + 2};
    struct block block = {.address = (uintptr_t)address,
                          .size = size < 0 ? -(uint64_t)size : (uint64_t)size,
                          .allocated = allocated,
                          .reserved = reserved,
                          .device = device};
    record_torch(size < 0 ? GM_EVENT_BLOCK_FREE : GM_EVENT_BLOCK_ALLOC, &block, &caller, frame);
    memory_usage *next = (memory_usage *)original_of(&original, MEMORY_USAGE, MEMORY_USAGE_SELF);
    next(address, size, allocated, reserved, device);
}

/* The three forms differ in C++ only: signed and unsigned travel alike. */
static void fail_symbol(_Atomic(void *) *original, const char *name, const void *self,
                        const struct block *block, void *frame)
{
    record_torch(GM_EVENT_BLOCK_OOM, block, NULL, frame);
    out_of_memory *next = (out_of_memory *)original_of(original, name, self);
    next(block->size, block->allocated, block->reserved, block->device);
}

void gm_torch_out_of_memory(int64_t size, size_t allocated, size_t reserved, uint64_t device)
{
    static _Atomic(void *) original;
    struct block block = {0, (uint64_t)size, allocated, reserved, device};
    fail_symbol(&original, OUT_OF_MEMORY, (void *)gm_torch_out_of_memory, &block,
                __builtin_frame_address(0));
}

void gm_torch_out_of_memory_unsigned(size_t size, size_t allocated, size_t reserved,
                                     uint64_t device)
{
    static _Atomic(void *) original;
    struct block block = {0, size, allocated, reserved, device};
    fail_symbol(&original, OUT_OF_MEMORY_UNSIGNED, (void *)gm_torch_out_of_memory_unsigned, &block,
                __builtin_frame_address(0));
}

void gm_torch_out_of_memory_signed(int64_t size, int64_t allocated, int64_t reserved,
                                   uint64_t device)
{
    static _Atomic(void *) original;
    struct block block = {0, (uint64_t)size, (uint64_t)allocated, (uint64_t)reserved, device};
    fail_symbol(&original, OUT_OF_MEMORY_SIGNED, (void *)gm_torch_out_of_memory_signed, &block,
                __builtin_frame_address(0));
}
