/*
 * Arrays of XLA: JAX, and whatever else loads a plugin of XLA's (see pjrt.h).
 *
 * XLA takes most of a device at once and divides it itself, in code that exports nothing. But every
 * array that a program holds is a buffer of the plugin, and each call that makes or ends one goes
 * through the plugin's table. Who asks the loader for GetPjrtApi gets a copy of that table, in which
 * the functions below stand before those calls.
 *
 * Guarantees
 *   - A table of another major version, or larger than any that was published, is left alone, and
 *     the trace says so. A word that the plugin's table does not have is not added.
 *   - Nothing is asked of the plugin that may wait for the device: a buffer's size and memory are
 *     told at once; its address would be known only when the work before it is done. So a block of
 *     XLA's is known by its buffer, and where it lies in XLA's memory is not told.
 *   - A process that has no trace begins none: a plugin for other hardware calls no function of CUDA.
 *
 * An array that is given away to a computation (donated) is gone when its call returns, though its
 * buffer stays: the plugin is asked, for computations that do so.
 */
#include "sources/pjrt.h"
#include "base/change.h"
#include "base/config.h"
#include "base/handles.h"
#include "base/platform.h"
#include "base/process_state.h"
#include "interpose/dlsym.h"
#include "record/recorder.h"
#include "sources/mark.h"
#include <stddef.h>
#include <string.h>

enum {
    PLUGINS = 3,     /* one for each kind of hardware, at most */
    TABLE_MAX = 512, /* words; 0.116 has 143 */
    DEVICES = 64,
};

enum { NOT_MADE, BEING_MADE, MADE, LEFT_ALONE };

struct plugin {
    _Atomic(gm_pjrt_get *) get;
    const gm_pjrt_words *real;
    gm_pjrt_words table[TABLE_MAX];
    _Atomic int state;
};

static struct plugin plugins[PLUGINS];
static _Atomic bool left_alone; /* the table of a plugin is not understood */

GM_HANDLES(buffers, 4096);     /* a live buffer: what `noted` makes of it; REFUSED */
GM_HANDLES(memories, 64);      /* a memory: its device's ordinal + 2, ON_HOST if it is the host's */
GM_HANDLES(devices, 64);       /* a memory: its device */
GM_HANDLES(executables, 4096); /* a loaded executable: what `known_of` makes of it */

GM_HANDLES(told, 64); /* an address of the device that was told: the buffer that begins there */

enum { ON_HOST = 1 };

/* What the pool of a device held when it was last asked, bytes. */
static struct pool {
    _Atomic uint64_t allocated;
    _Atomic uint64_t most_allocated; /* at any time; 0: not told */
    _Atomic uint64_t
        most_compiling;          /* the same, where it was reached while a program was compiled */
    _Atomic uint64_t most_named; /* the same, of which the executable was told */
    _Atomic uint64_t reserved;
    _Atomic uint64_t limit;        /* that it may take from the driver; 0: not told */
    _Atomic uint64_t largest_hole; /* told only together with the limit */
} pools[DEVICES];

/* ---- asking the plugin ----------------------------------------------------------------------- */

static gm_pjrt_function *function_of(const struct plugin *plugin, enum gm_pjrt_slot slot)
{
    return (slot + 1u) * sizeof(gm_pjrt_words) <= plugin->real[GM_PJRT_SIZE]
               ? (gm_pjrt_function *)plugin->real[slot]
               : NULL;
}

static void destroy_error(const struct plugin *plugin, void *error)
{
    gm_pjrt_words arguments[] = {3 * sizeof(gm_pjrt_words), 0, (uintptr_t)error};
    function_of(plugin, GM_PJRT_ERROR_DESTROY)(arguments);
}

/* Calls a function that only tells. `arguments` begins with its size in words. False: it refused. */
static bool call_slot(const struct plugin *plugin, enum gm_pjrt_slot slot, gm_pjrt_words *arguments)
{
    gm_pjrt_function *function = function_of(plugin, slot);
    if (!function)
        return false;
    arguments[0] *= sizeof(gm_pjrt_words);
    void *error = function(arguments);
    if (error)
        destroy_error(plugin, error);
    return !error;
}

/* The first answer about `object`; 0 if there is none. */
static uint64_t ask_of(const struct plugin *plugin, enum gm_pjrt_slot slot, uint64_t object)
{
    gm_pjrt_words arguments[] = {4, 0, object, 0};
    return call_slot(plugin, slot, arguments) ? arguments[3] : 0;
}

static bool is_on_device(const struct plugin *plugin, uint64_t memory)
{
    gm_pjrt_words kind[] = {6, 0, memory, 0, 0, 0}; /* text, size */
    return call_slot(plugin, GM_PJRT_MEMORY_KIND, kind) && kind[4] == strlen("device") &&
           memcmp((const char *)(uintptr_t)kind[3], "device", kind[4]) == 0;
}

/* The ordinal of a device; -1: the plugin does not tell. */
static int ordinal_of(const struct plugin *plugin, uint64_t device)
{
    gm_pjrt_words hardware[] = {4, 0, device, 0};
    return device && call_slot(plugin, GM_PJRT_HARDWARE_ID, hardware) &&
                   (uint32_t)hardware[3] < DEVICES
               ? (int)hardware[3]
               : -1;
}

/* The ordinal of a buffer's device; -1: it is in memory of the host, or the plugin does not tell. */
static int device_of_memory(const struct plugin *plugin, uint64_t memory)
{
    uint64_t noted = gm_handles_get(&memories, memory);
    if (gm_likely(noted))
        return (int)noted - 2;
    gm_pjrt_words owners[] = {5, 0, memory, 0, 0}; /* list, count */
    noted = ON_HOST;
    if (is_on_device(plugin, memory) && call_slot(plugin, GM_PJRT_MEMORY_DEVICES, owners) &&
        owners[4]) {
        uint64_t device = *(const uint64_t *)(uintptr_t)owners[3];
        int ordinal = ordinal_of(plugin, device);
        if (ordinal >= 0) {
            noted = (uint64_t)ordinal + 2;
            gm_handles_set(&devices, memory, device);
        }
    }
    gm_handles_set(&memories, memory, noted);
    return (int)noted - 2;
}

enum { IN_USE = 3 }; /* word of the memory statistics */

/* What the pool of a device holds: in use, and taken from the driver. Returns the bytes that it may still give out, as far as
 * it has a limit. */
static uint64_t ask_pool(const struct plugin *plugin, uint64_t device, int ordinal)
{
    enum { WORDS = 24, MOST_IN_USE = 4, LIMIT = 10, LARGEST_HOLE = 18, POOL = 20, IS_SET = 1 };
    gm_pjrt_words stats[WORDS] = {WORDS, 0, device};
    if (!call_slot(plugin, GM_PJRT_MEMORY_STATS, stats))
        return UINT64_MAX;
    atomic_store_explicit(&pools[ordinal].allocated, stats[IN_USE], memory_order_relaxed);
    if ((uint8_t)stats[MOST_IN_USE + IS_SET])
        atomic_store_explicit(&pools[ordinal].most_allocated, stats[MOST_IN_USE],
                              memory_order_relaxed);
    if ((uint8_t)stats[POOL + IS_SET])
        atomic_store_explicit(&pools[ordinal].reserved, stats[POOL], memory_order_relaxed);
    if (!(uint8_t)stats[LIMIT + IS_SET])
        return UINT64_MAX;
    if ((uint8_t)stats[LARGEST_HOLE + IS_SET]) {
        atomic_store_explicit(&pools[ordinal].limit, stats[LIMIT], memory_order_relaxed);
        atomic_store_explicit(&pools[ordinal].largest_hole, stats[LARGEST_HOLE],
                              memory_order_relaxed);
    }
    return stats[LIMIT] > stats[IN_USE] ? stats[LIMIT] - stats[IN_USE] : 0;
}

/* ---- recording ------------------------------------------------------------------------------- */

/* What made an array that is the last of its call's. With it is told what the pool held at most, so that a reader can tell the
 * arrays from the rest. */
struct made_by {
    const struct plugin *plugin;
    uint64_t loaded;      /* the computation's executable; 0: there is none */
    uint32_t temporaries; /* of the executable, as enum gm_block_most */
};

static void destroy_executable(const struct plugin *plugin, uint64_t executable)
{
    gm_pjrt_words arguments[] = {3, 0, executable};
    call_slot(plugin, GM_PJRT_EXECUTABLE_DESTROY, arguments);
}

/* The name of an executable. As a call reaches a new peak only now and then, it is not kept. */
static uint32_t name_of(const struct made_by *by)
{
    uint64_t executable = ask_of(by->plugin, GM_PJRT_LOADED_EXECUTABLE, by->loaded);
    gm_pjrt_words name[] = {5, 0, executable, 0, 0}; /* text, size */
    uint32_t string = 0;
    if (!executable)
        return 0;
    if (call_slot(by->plugin, GM_PJRT_EXECUTABLE_NAME, name) && name[3])
        string = gm_name_intern((struct gm_name){(const char *)(uintptr_t)name[3], name[4]});
    destroy_executable(by->plugin, executable);
    return string;
}

static void tell_most(struct gm_record *detail, struct pool *pool, const struct made_by *by)
{
    detail->aux = atomic_load_explicit(&pool->most_allocated, memory_order_relaxed);
    detail->extra = by->temporaries;
    if (detail->aux == atomic_load_explicit(&pool->most_compiling, memory_order_relaxed))
        detail->extra = GM_BLOCK_MOST_COMPILING;
    else if (by->temporaries && atomic_exchange_explicit(&pool->most_named, detail->aux,
                                                         memory_order_relaxed) != detail->aux)
        detail->size = name_of(by);
}

/* `by`: NULL unless the array is the last that its call makes. */
static void record_array(enum gm_event type, uint64_t buffer, uint64_t size, int device,
                         const struct made_by *by, void *frame)
{
    struct gm_call call;
    struct gm_record detail = {.device = (int8_t)device};
    gm_call_begin(&call, 0, frame);
    if (gm_call_active(&call)) {
        detail.address = atomic_load_explicit(&pools[device].reserved, memory_order_relaxed);
        if (type == GM_EVENT_BLOCK_OOM) {
            detail.size = atomic_load_explicit(&pools[device].largest_hole, memory_order_relaxed);
            detail.aux = atomic_load_explicit(&pools[device].limit, memory_order_relaxed);
        } else if (by) {
            tell_most(&detail, &pools[device], by);
        }
        gm_call_commit_block(
            call.thread, frame, gm_what(type, (enum gm_kind)GM_BLOCK_OF_XLA, (int8_t)device, 0, 0),
            buffer, size, atomic_load_explicit(&pools[device].allocated, memory_order_relaxed),
            &detail);
    }
    gm_call_end(&call);
}

#define SIZE_BITS 48
#define REFUSED                                                                                    \
    (UINT64_C(1) << SIZE_BITS) /* of a buffer that holds nothing: no array's size is 0 */
static uint64_t noted(uint64_t size, int device)
{
    return (uint64_t)(device + 1) << SIZE_BITS | size;
}

static bool is_recorded(void)
{
    return gm_config.xla && gm_process_epoch() != 0;
}

/* A buffer was made. */
static void begin_array(const struct plugin *plugin, uint64_t buffer, const struct made_by *by,
                        void *frame)
{
    int saved_errno = errno;
    if (!buffer || !is_recorded())
        return;
    uint64_t memory = ask_of(plugin, GM_PJRT_BUFFER_MEMORY, buffer);
    int device = memory ? device_of_memory(plugin, memory) : -1;
    uint64_t size = device >= 0 ? ask_of(plugin, GM_PJRT_BUFFER_SIZE, buffer) : 0;
    if (size && size >> SIZE_BITS == 0 && gm_handles_begin(&buffers, buffer, noted(size, device))) {
        ask_pool(plugin, gm_handles_get(&devices, memory), device);
        record_array(GM_EVENT_BLOCK_ALLOC, buffer, size, device, by, frame);
    }
    errno = saved_errno;
}

/* A buffer gives its memory back, now. */
static void end_array(uint64_t buffer, void *frame)
{
    int saved_errno = errno;
    uint64_t of = gm_process_epoch() ? gm_handles_end(&buffers, buffer) : 0;
    if (of && of != REFUSED)
        record_array(GM_EVENT_BLOCK_FREE, buffer, of & ((UINT64_C(1) << SIZE_BITS) - 1),
                     (int)(of >> SIZE_BITS) - 1, NULL, frame);
    errno = saved_errno;
}

/* The bytes that XLA says it could not get: "... trying to allocate 40000000 bytes", "19.07MiB"; 0: it does not say. */
static uint64_t bytes_asked(const char *text, size_t length)
{
    static const char before[] = "to allocate ";
    const char *at = memmem(text, length, before, sizeof(before) - 1);
    const char *end = text + length;
    uint64_t hundredths = 0;
    int digits = -1; /* behind the point */
    if (!at)
        return 0;
    for (at += sizeof(before) - 1; at < end && ((*at >= '0' && *at <= '9') || *at == '.'); at++) {
        if (*at == '.')
            digits = 0;
        else if (digits < 2 && hundredths < UINT64_C(1) << 56) {
            hundredths = hundredths * 10 + (uint64_t)(*at - '0');
            digits += digits >= 0;
        }
    }
    for (digits = digits < 0 ? 0 : digits; digits < 2 && hundredths < UINT64_C(1) << 56; digits++)
        hundredths *= 10;
    static const char units[] = "KMGT";
    const char *unit = at < end && *at ? strchr(units, *at) : NULL;
    unsigned shift = unit ? 10 * (unsigned)(unit - units + 1) : 0;
    return hundredths >> (64 - shift - (shift == 0)) ? 0 : (hundredths << shift) / 100;
}

/* Where a call wanted memory: what it says of that, in the order in which it counts. */
struct target {
    uint64_t memory;
    uint64_t device;
    uint64_t
        owner; /* of several devices, of which the call says no more: what `list` tells the devices of */
    enum gm_pjrt_slot list;
};

/* Of the owner's devices the one whose pool can give out least: XLA does not say whose refused. */
static int fullest_of(const struct plugin *plugin, const struct target *target)
{
    gm_pjrt_words arguments[] = {5, 0, target->owner, 0, 0}; /* list, count */
    int fullest = -1;
    uint64_t least = 0;
    if (!target->owner || !call_slot(plugin, target->list, arguments))
        return -1;
    const uint64_t *list = (const uint64_t *)(uintptr_t)arguments[3];
    for (uint64_t i = 0; i < arguments[4]; i++) {
        int ordinal = ordinal_of(plugin, list[i]);
        if (ordinal < 0)
            continue;
        uint64_t left = ask_pool(plugin, list[i], ordinal);
        if (fullest < 0 || left < least) {
            fullest = ordinal;
            least = left;
        }
    }
    return fullest;
}

/* The ordinal of the device whose pool refused; -1: it is memory of the host, or not known. */
static int device_of_refusal(const struct plugin *plugin, const struct target *target)
{
    uint64_t device = target->device;
    int ordinal = -1;
    if (target->memory) {
        ordinal = device_of_memory(plugin, target->memory);
        device = gm_handles_get(&devices, target->memory);
    } else if (device) {
        ordinal = ordinal_of(plugin, device);
    } else {
        return fullest_of(plugin, target);
    }
    if (ordinal >= 0)
        ask_pool(plugin, device, ordinal);
    return ordinal;
}

/* A call was refused; by the pool, if its error says so. */
static void note_pjrt_refusal(const struct plugin *plugin, void *error, const struct target *target,
                              void *frame)
{
    int saved_errno = errno;
    gm_pjrt_words code[] = {4, 0, (uintptr_t)error, 0};
    gm_pjrt_words message[] = {5, 0, (uintptr_t)error, 0, 0}; /* text, size */
    if (is_recorded() && call_slot(plugin, GM_PJRT_ERROR_CODE, code) &&
        (uint32_t)code[3] == GM_PJRT_RESOURCE_EXHAUSTED) {
        int device = device_of_refusal(plugin, target);
        message[0] *= sizeof(message[0]);
        function_of(plugin, GM_PJRT_ERROR_MESSAGE)(message); /* returns nothing */
        if (device >= 0)
            record_array(GM_EVENT_BLOCK_OOM, 0,
                         bytes_asked((const char *)(uintptr_t)message[3], message[4]), device, NULL,
                         frame);
    }
    errno = saved_errno;
}

/* ---- the functions before the plugin's ------------------------------------------------------- */

/* The words of a call's arguments that say what it makes and where. 0: it has none. */
struct maker {
    enum gm_pjrt_slot slot;
    uint8_t buffer;
    uint8_t memory;
    uint8_t device;
    uint8_t client; /* where neither memory nor device are told */
};

static const struct maker FROM_HOST = {GM_PJRT_FROM_HOST, 14, 11, 10, 2};
static const struct maker COPY_TO_DEVICE = {GM_PJRT_COPY_TO_DEVICE, 4, 0, 3, 0};
static const struct maker COPY_TO_MEMORY = {GM_PJRT_COPY_TO_MEMORY, 4, 3, 0, 0};
static const struct maker RETRIEVE_BUFFER = {GM_PJRT_RETRIEVE_BUFFER, 4, 0, 0, 0};
static const struct maker UNINITIALIZED = {GM_PJRT_UNINITIALIZED, 9, 8, 7, 2};
static const struct maker VIEW = {GM_PJRT_VIEW, 12, 0, 8, 2};
static const struct maker VIEW_OF_ARRAY = {GM_PJRT_VIEW, 0, 0, 8, 2};
static const struct maker ASYNC_BUFFERS = {GM_PJRT_ASYNC_BUFFERS, 0, 7, 0, 2}; /* got one by one */
static const struct maker COMPILE = {GM_PJRT_COMPILE, 0, 0, 0, 2};

static uint64_t word_at(const gm_pjrt_words *arguments, unsigned at)
{
    return at && (at + 1) * sizeof(*arguments) <= arguments[0] ? arguments[at] : 0;
}

/* Those that make one buffer, or may be refused memory. */
static void *make_buffer(const struct plugin *plugin, const struct maker *maker,
                         gm_pjrt_words *arguments, void *frame)
{
    void *error = ((gm_pjrt_function *)plugin->real[maker->slot])(arguments);
    if (!error)
        begin_array(plugin, word_at(arguments, maker->buffer), &(struct made_by){0}, frame);
    else
        note_pjrt_refusal(
            plugin, error,
            &(struct target){word_at(arguments, maker->memory), word_at(arguments, maker->device),
                             word_at(arguments, maker->client), GM_PJRT_CLIENT_DEVICES},
            frame);
    return error;
}

/* It tries kernels out, on memory of the pool: what that held at most is told apart. */
static void *compile_program(const struct plugin *plugin, gm_pjrt_words *arguments, void *frame)
{
    const struct target client = {.owner = word_at(arguments, COMPILE.client),
                                  .list = GM_PJRT_CLIENT_DEVICES};
    uint64_t before[DEVICES];
    if (!is_recorded())
        return make_buffer(plugin, &COMPILE, arguments, frame);
    fullest_of(plugin, &client);
    for (int i = 0; i < DEVICES; i++)
        before[i] = atomic_load_explicit(&pools[i].most_allocated, memory_order_relaxed);
    void *error = make_buffer(plugin, &COMPILE, arguments, frame);
    const int saved_errno = errno;
    fullest_of(plugin, &client);
    for (int i = 0; i < DEVICES; i++) {
        uint64_t most = atomic_load_explicit(&pools[i].most_allocated, memory_order_relaxed);
        if (most > before[i])
            atomic_store_explicit(&pools[i].most_compiling, most, memory_order_relaxed);
    }
    errno = saved_errno;
    return error;
}

/* Memory that another array holds is not a view's own. Who makes one of it has asked for its address. */
static void *view_buffer(const struct plugin *plugin, gm_pjrt_words *arguments, void *frame)
{
    enum { ADDRESS = 3 };
    uint64_t viewed = gm_handles_get(&told, word_at(arguments, ADDRESS));
    return make_buffer(plugin, viewed && gm_handles_get(&buffers, viewed) ? &VIEW_OF_ARRAY : &VIEW,
                       arguments, frame);
}

static void *tell_address(const struct plugin *plugin, enum gm_pjrt_slot slot,
                          gm_pjrt_words *arguments)
{
    enum { BUFFER = 2, ADDRESS = 3 };
    void *error = ((gm_pjrt_function *)plugin->real[slot])(arguments);
    if (!error && word_at(arguments, ADDRESS) && is_recorded() &&
        gm_handles_get(&buffers, arguments[BUFFER]))
        gm_handles_set(&told, arguments[ADDRESS], arguments[BUFFER]);
    return error;
}

/* What is known of a loaded executable. */
#define TAKES_NOTHING (UINT64_C(1) << 32) /* it ran, free to take its arguments, and took none */
#define OUTPUTS(known) ((uint32_t)(known)-1)
#define TEMPORARIES_SHIFT 33 /* as enum gm_block_most */
#define TEMPORARIES(known) ((uint32_t)((known) >> TEMPORARIES_SHIFT))

static uint64_t known_of(const struct plugin *plugin, uint64_t loaded)
{
    enum { WORDS = 15, TEMPORARIES = 7 };
    uint64_t executable = ask_of(plugin, GM_PJRT_LOADED_EXECUTABLE, loaded), units = 0;
    if (!executable)
        return 1;
    uint64_t outputs = ask_of(plugin, GM_PJRT_OUTPUTS, executable);
    gm_pjrt_words stats[WORDS] = {WORDS, 0, executable};
    if (call_slot(plugin, GM_PJRT_COMPILED_STATS, stats) && stats[TEMPORARIES])
        units =
            1 + (stats[TEMPORARIES] + GM_BLOCK_TEMPORARIES_UNIT - 1) / GM_BLOCK_TEMPORARIES_UNIT;
    destroy_executable(plugin, executable);
    return ((outputs & UINT32_MAX) + 1) |
           (units >> (64 - TEMPORARIES_SHIFT) ? 0 : units << TEMPORARIES_SHIFT);
}

/* Ends what the computation took. Returns whether it took any. */
static bool end_taken(const struct plugin *plugin, const gm_pjrt_words *arguments, void *frame)
{
    const uint64_t *const *lists = (const uint64_t *const *)(uintptr_t)arguments[4];
    bool any = false;
    for (uint64_t device = 0; lists && device < arguments[5]; device++)
        for (uint64_t i = 0; i < arguments[6]; i++)
            if ((uint8_t)ask_of(plugin, GM_PJRT_BUFFER_IS_DELETED, lists[device][i])) {
                any = true;
                end_array(lists[device][i], frame);
            }
    return any;
}

/* Whether the caller keeps no argument from being taken. */
static bool may_take_all(const gm_pjrt_words *arguments)
{
    enum { KEPT = 8 }; /* words of the options: the count of arguments that must not be taken */
    const gm_pjrt_words *options = (const gm_pjrt_words *)(uintptr_t)arguments[3];
    return !options || options[0] <= KEPT * sizeof(*options) || options[KEPT] == 0;
}

/* XLA may be refused memory and let the call succeed: then the call's event is ready, and has the
 * error. NULL: it has none, or is not ready, or the caller asked for no events. */
static void *error_of_event(const struct plugin *plugin, uint64_t event)
{
    gm_pjrt_words ready[] = {4, 0, event, 0};
    gm_pjrt_words failed[] = {3 * sizeof(*failed), 0, event};
    return event && function_of(plugin, GM_PJRT_EVENT_ERROR) &&
                   call_slot(plugin, GM_PJRT_EVENT_IS_READY, ready) && (uint8_t)ready[3]
               ? function_of(plugin, GM_PJRT_EVENT_ERROR)(failed)
               : NULL;
}

/* Whether an argument is what a refused computation left: then this one fails with the other's error. */
static bool takes_refused(const gm_pjrt_words *arguments, uint64_t device)
{
    const uint64_t *const *lists = (const uint64_t *const *)(uintptr_t)arguments[4];
    for (uint64_t i = 0; lists && i < arguments[6]; i++)
        if (gm_handles_get(&buffers, lists[device][i]) == REFUSED)
            return true;
    return false;
}

/* Begins what the computation made. Of a device on which it failed it made nothing, though there are buffers. */
static void begin_outputs(const struct plugin *plugin, const gm_pjrt_words *arguments,
                          uint64_t known, const struct target *target, void *frame)
{
    enum { EVENTS = 8 };
    const int saved_errno = errno;
    uint64_t *const *lists = (uint64_t *const *)(uintptr_t)arguments[7];
    const uint64_t *events = (const uint64_t *)(uintptr_t)word_at(arguments, EVENTS);
    const struct made_by by = {plugin, arguments[2], TEMPORARIES(known)};
    bool is_noted = false;
    for (uint64_t device = 0; lists && device < arguments[5]; device++) {
        void *error = events ? error_of_event(plugin, events[device]) : NULL;
        if (error) {
            if (!is_noted && !takes_refused(arguments, device)) /* each device may tell the same */
                note_pjrt_refusal(plugin, error, target, frame);
            is_noted = true;
            destroy_error(plugin, error);
            for (uint32_t i = 0; i < OUTPUTS(known); i++)
                gm_handles_begin(&buffers, lists[device][i], REFUSED);
            continue;
        }
        for (uint32_t i = 0; i < OUTPUTS(known); i++)
            begin_array(plugin, lists[device][i], i + 1 == OUTPUTS(known) ? &by : NULL, frame);
    }
    errno = saved_errno;
}

static void *execute_loaded(const struct plugin *plugin, gm_pjrt_words *arguments, void *frame)
{
    enum { ON_DEVICE = 9 }; /* none: on those that it was compiled for */
    const uint64_t loaded = arguments[2];
    void *error = ((gm_pjrt_function *)plugin->real[GM_PJRT_EXECUTE])(arguments);
    const struct target target = {0, word_at(arguments, ON_DEVICE), loaded, GM_PJRT_LOADED_DEVICES};
    if (error)
        note_pjrt_refusal(plugin, error, &target, frame);
    if (error || !is_recorded())
        return error;
    const uint64_t known_before = gm_handles_get(&executables, loaded);
    uint64_t known = known_before ? known_before : known_of(plugin, loaded);
    if (!(known & TAKES_NOTHING) && !end_taken(plugin, arguments, frame) &&
        may_take_all(arguments) && arguments[6])
        known |= TAKES_NOTHING;
    if (known != known_before)
        gm_handles_set(&executables, loaded, known);
    begin_outputs(plugin, arguments, known, &target, frame);
    return NULL;
}

/* The program asks what a device's pool holds: on record is what it was told, beside the arrays that lived then. */
static void *tell_stats(const struct plugin *plugin, gm_pjrt_words *arguments, void *frame)
{
    enum { DEVICE = 2 };
    void *error = ((gm_pjrt_function *)plugin->real[GM_PJRT_MEMORY_STATS])(arguments);
    if (!error && is_recorded()) {
        const int saved_errno = errno;
        int ordinal = ordinal_of(plugin, arguments[DEVICE]);
        if (ordinal >= 0) {
            atomic_store_explicit(&pools[ordinal].allocated, arguments[IN_USE],
                                  memory_order_relaxed);
            record_array(GM_EVENT_BLOCK_FREE, 0, 0, ordinal, NULL, frame);
        }
        errno = saved_errno;
    }
    return error;
}

static void *end_and_call(const struct plugin *plugin, enum gm_pjrt_slot slot,
                          gm_pjrt_words *arguments, void *frame)
{
    end_array(arguments[2], frame);
    return ((gm_pjrt_function *)plugin->real[slot])(arguments);
}

static void *forget_executable(const struct plugin *plugin, gm_pjrt_words *arguments)
{
    gm_handles_take(&executables, arguments[2]);
    return ((gm_pjrt_function *)plugin->real[GM_PJRT_LOADED_DESTROY])(arguments);
}

/* ---- the table ------------------------------------------------------------------------------- */

/* A function finds its plugin by being one of the plugin's own. */
#define FRAME __builtin_frame_address(0)
#define FUNCTION(n, name, call)                                                                    \
    static void *name##_##n(gm_pjrt_words *arguments)                                              \
    {                                                                                              \
        const struct plugin *plugin = &plugins[n];                                                 \
        return call;                                                                               \
    }
#define MAKER(n, name, maker) FUNCTION(n, name, make_buffer(plugin, &(maker), arguments, FRAME))

#define FUNCTIONS(n)                                                                               \
    MAKER(n, from_host, FROM_HOST)                                                                 \
    MAKER(n, copy_to_device, COPY_TO_DEVICE)                                                       \
    MAKER(n, copy_to_memory, COPY_TO_MEMORY)                                                       \
    MAKER(n, retrieve_buffer, RETRIEVE_BUFFER)                                                     \
    MAKER(n, uninitialized, UNINITIALIZED)                                                         \
    MAKER(n, async_buffers, ASYNC_BUFFERS)                                                         \
    FUNCTION(n, compile, compile_program(plugin, arguments, FRAME))                                \
    FUNCTION(n, view, view_buffer(plugin, arguments, FRAME))                                       \
    FUNCTION(n, unsafe_pointer, tell_address(plugin, GM_PJRT_UNSAFE_POINTER, arguments))           \
    FUNCTION(n, opaque_pointer, tell_address(plugin, GM_PJRT_OPAQUE_POINTER, arguments))           \
    FUNCTION(n, execute, execute_loaded(plugin, arguments, FRAME))                                 \
    FUNCTION(n, memory_stats, tell_stats(plugin, arguments, FRAME))                                \
    FUNCTION(n, loaded_destroy, forget_executable(plugin, arguments))                              \
    FUNCTION(n, buffer_destroy, end_and_call(plugin, GM_PJRT_BUFFER_DESTROY, arguments, FRAME))    \
    FUNCTION(n, buffer_delete, end_and_call(plugin, GM_PJRT_BUFFER_DELETE, arguments, FRAME))      \
    static const gm_pjrt_words *get_##n(void);

#define ROW(n)                                                                                     \
    {                                                                                              \
        get_##n,                                                                                   \
        {                                                                                          \
            {GM_PJRT_FROM_HOST, from_host_##n}, {GM_PJRT_COPY_TO_DEVICE, copy_to_device_##n},      \
                {GM_PJRT_COPY_TO_MEMORY, copy_to_memory_##n},                                      \
                {GM_PJRT_RETRIEVE_BUFFER, retrieve_buffer_##n},                                    \
                {GM_PJRT_UNINITIALIZED, uninitialized_##n}, {GM_PJRT_VIEW, view_##n},              \
                {GM_PJRT_ASYNC_BUFFERS, async_buffers_##n}, {GM_PJRT_COMPILE, compile_##n},        \
                {GM_PJRT_EXECUTE, execute_##n}, {GM_PJRT_LOADED_DESTROY, loaded_destroy_##n},      \
                {GM_PJRT_BUFFER_DESTROY, buffer_destroy_##n},                                      \
                {GM_PJRT_BUFFER_DELETE, buffer_delete_##n},                                        \
                {GM_PJRT_UNSAFE_POINTER, unsafe_pointer_##n},                                      \
                {GM_PJRT_OPAQUE_POINTER, opaque_pointer_##n},                                      \
                {GM_PJRT_MEMORY_STATS, memory_stats_##n},                                          \
        }                                                                                          \
    }

FUNCTIONS(0)
FUNCTIONS(1)
FUNCTIONS(2)

enum { WRAPPED = 15 };

static const struct {
    gm_pjrt_get *get;
    struct {
        enum gm_pjrt_slot slot;
        gm_pjrt_function *function;
    } functions[WRAPPED];
} ours[PLUGINS] = {ROW(0), ROW(1), ROW(2)};

static bool is_understood(const gm_pjrt_words *table)
{
    return (uint32_t)table[GM_PJRT_VERSION] == 0 && table[GM_PJRT_SIZE] <= sizeof(plugins->table) &&
           table[GM_PJRT_SIZE] > GM_PJRT_COPY_TO_DEVICE * sizeof(*table);
}

static bool make_table(unsigned n, const gm_pjrt_words *real)
{
    struct plugin *plugin = &plugins[n];
    if (!is_understood(real)) {
        atomic_store(&left_alone, true);
        gm_pjrt_tell();
        return false;
    }
    plugin->real = real;
    memcpy(plugin->table, real, real[GM_PJRT_SIZE]);
    for (unsigned i = 0; i < WRAPPED; i++)
        if (function_of(plugin, ours[n].functions[i].slot))
            plugin->table[ours[n].functions[i].slot] = (uintptr_t)ours[n].functions[i].function;
    return true;
}

/* The copy of the plugin's table. The plugin's own while another thread makes the copy. */
static const gm_pjrt_words *table_of(unsigned n)
{
    struct plugin *plugin = &plugins[n];
    const gm_pjrt_words *real = atomic_load(&plugin->get)();
    int state = NOT_MADE;
    if (real && atomic_compare_exchange_strong(&plugin->state, &state, BEING_MADE)) {
        state = make_table(n, real) ? MADE : LEFT_ALONE;
        atomic_store_explicit(&plugin->state, state, memory_order_release);
    }
    return state == MADE && real == plugin->real ? plugin->table : real;
}

#define GETTER(n)                                                                                  \
    static const gm_pjrt_words *get_##n(void)                                                      \
    {                                                                                              \
        return table_of(n);                                                                        \
    }
GETTER(0)
GETTER(1)
GETTER(2)

/* Instead of a plugin's GetPjrtApi: a function whose table records. Itself if there are too many plugins. */
void *gm_pjrt_offer(void *found)
{
    gm_pjrt_get *get = (gm_pjrt_get *)found;
    for (unsigned n = 0; n < PLUGINS; n++) {
        gm_pjrt_get *there = NULL;
        if (atomic_compare_exchange_strong(&plugins[n].get, &there, get) || there == get)
            return (void *)ours[n].get;
    }
    return found;
}

void gm_pjrt_tell(void)
{
    struct gm_trace_header *header = gm_process_page->header;
    if (!header || !atomic_load(&left_alone))
        return;
    gm_change_begin();
    __atomic_fetch_or(&header->flags, GM_HEADER_XLA_UNKNOWN, __ATOMIC_RELAXED);
    gm_change_end();
}

void gm_pjrt_forget(void)
{
    gm_handles_clear(&buffers);
}
