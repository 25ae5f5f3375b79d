/* See unwind.h. */
#include "base/platform.h"
#include "loader/redirect.h"
#include "stack/native/stack_bounds.h"
#include "stack/native/unwind.h"
#include <dlfcn.h>
#include <link.h>
#include <stddef.h>
#include <string.h>
#include <ucontext.h>

/* libunwind's names carry the architecture: U is public, UL the variant for the own process. */
#if defined(__x86_64__)
#define NAME(name) "_Ux86_64_" name
#define LOCAL_NAME(name) "_ULx86_64_" name
enum { REGISTER_IP = 16, REGISTER_SP = 7 };
#elif defined(__aarch64__)
#define NAME(name) "_Uaarch64_" name
#define LOCAL_NAME(name) "_ULaarch64_" name
enum { REGISTER_IP = 30, REGISTER_SP = 31 }; /* IP is the link register, x30 */
#else
#error "which of libunwind's names and register numbers belong to this architecture?"
#endif

/* unw_cursor_t: 127 words on x86-64, 250 on aarch64 in version 1.8; room for more. */
struct cursor {
    uint64_t words[512];
};

typedef int init_function(struct cursor *cursor, ucontext_t *context);
typedef int step_function(struct cursor *cursor);
typedef int get_register_function(struct cursor *cursor, int number, uintptr_t *value);
typedef int is_signal_frame_function(struct cursor *cursor);
typedef void flush_function(void *address_space, uintptr_t low, uintptr_t high);

static struct {
    init_function *init;
    step_function *step;
    get_register_function *get_register;
    is_signal_frame_function *is_signal_frame;
    flush_function *flush;
    void **local_address_space;
    _Atomic uint32_t inside;     /* walks under way */
    _Atomic uint32_t generation; /* of dlclose, that its caches are known to be good for */
    _Atomic bool ready;
} libunwind;

/* ---- no pipe of libunwind's ---------------------------------------------------------------------
 *
 * libunwind finds out whether it may read an address by writing a byte from there into a pipe of
 * its own, whose two descriptors it keeps for good. A host that closes descriptors it did not open
 * gets these numbers again for files of its own: libunwind would read from one and write into the
 * other. So the pipe it is given has two numbers that no file ever has, and what it writes to them
 * is answered by looking whether the address can be read. All else goes where it went.
 */

enum { NO_PIPE_OUT = -1001, NO_PIPE_IN = -1002 };

static int give_no_pipe(int descriptors[2])
{
    descriptors[0] = NO_PIPE_OUT;
    descriptors[1] = NO_PIPE_IN;
    return 0;
}

static int give_no_pipe2(int descriptors[2], int flags)
{
    (void)flags;
    return give_no_pipe(descriptors);
}

static ssize_t drain_or_read(int descriptor, void *buffer, size_t size)
{
    if (descriptor != NO_PIPE_OUT)
        return read(descriptor, buffer, size);
    errno = EAGAIN; /* an open pipe with nothing in it */
    return -1;
}

static ssize_t try_or_write(int descriptor, const void *bytes, size_t size)
{
    if (descriptor != NO_PIPE_IN)
        return write(descriptor, bytes, size);
    if (gm_page_is_readable((uint64_t)(uintptr_t)bytes))
        return (ssize_t)size;
    errno = EFAULT;
    return -1;
}

static long try_or_call(long number, long a, long b, long c, long d, long e, long f)
{
    if (number == SYS_write && (int)a == NO_PIPE_IN)
        return try_or_write(NO_PIPE_IN, (const void *)b, (size_t)c);
    return syscall(number, a, b, c, d, e, f);
}

/* ---- no lock of the loader's --------------------------------------------------------------------
 *
 * libunwind looks for the object that holds an address by having the loader tell it all of them,
 * under a lock of the loader's. Another thread can hold that while it waits for this one. So
 * libunwind is told of one object only, the one that holds the address it is about to step from.
 * When it is the program that uses libunwind, the loader is asked as ever.
 */

static _Thread_local uint64_t step_from /* 0: no step of ours is under way */
    __attribute__((tls_model("initial-exec")));

typedef int object_taker(struct dl_phdr_info *info, size_t size, void *data);

static int tell_one_object(object_taker *take, void *data)
{
    if (!step_from)
        return dl_iterate_phdr(take, data);
    struct gm_image image;
    struct dl_phdr_info info = {.dlpi_name = "[not to be opened]", .dlpi_adds = 1};
    if (!gm_image_find(step_from, &image) ||
        !gm_image_segments(image.start, &info.dlpi_phdr, &info.dlpi_phnum, &info.dlpi_addr))
        return 0;
    return take(&info, sizeof(info), data);
}

static uintptr_t replacement(const char *name)
{
    const struct {
        const char *name;
        uintptr_t function;
    } replaced[] = {
        {"dl_iterate_phdr", (uintptr_t)tell_one_object},
        {"pipe", (uintptr_t)give_no_pipe},
        {"pipe2", (uintptr_t)give_no_pipe2},
        {"read", (uintptr_t)drain_or_read},
        {"write", (uintptr_t)try_or_write},
        {"syscall", (uintptr_t)try_or_call},
    };
    for (size_t i = 0; i < sizeof(replaced) / sizeof(replaced[0]); i++)
        if (strcmp(name, replaced[i].name) == 0)
            return replaced[i].function;
    return 0;
}

static int redirect_libunwind(struct dl_phdr_info *info, size_t size, void *library)
{
    const struct link_map *map = library;
    (void)size;
    if (info->dlpi_addr != map->l_addr)
        return 0;
    gm_redirect_imports(info, replacement);
    return 1;
}

static bool take_pipe_away(void *library)
{
    struct link_map *map;
    return dlinfo(library, RTLD_DI_LINKMAP, &map) == 0 &&
           dl_iterate_phdr(redirect_libunwind, map) != 0;
}

/* ---- opening --------------------------------------------------------------------------------- */

bool gm_fallback_open(void)
{
    void *library = dlopen("libunwind.so.8", RTLD_NOW | RTLD_LOCAL);
    if (!library || !take_pipe_away(library)) {
        dlerror(); /* not the program's error */
        return false;
    }
    libunwind.init = (init_function *)dlsym(library, LOCAL_NAME("init_local"));
    libunwind.step = (step_function *)dlsym(library, LOCAL_NAME("step"));
    libunwind.get_register = (get_register_function *)dlsym(library, LOCAL_NAME("get_reg"));
    libunwind.is_signal_frame =
        (is_signal_frame_function *)dlsym(library, LOCAL_NAME("is_signal_frame"));
    libunwind.flush = (flush_function *)dlsym(library, NAME("flush_cache"));
    libunwind.local_address_space = (void **)dlsym(library, LOCAL_NAME("local_addr_space"));
    bool ready = libunwind.init && libunwind.step && libunwind.get_register &&
                 libunwind.is_signal_frame && libunwind.flush && libunwind.local_address_space;
    atomic_store_explicit(&libunwind.ready, ready, memory_order_release);
    return ready;
}

/* libunwind remembers code for good unless told otherwise, whoever unloads it. */
static void flush_if_older(uint32_t generation)
{
    if (atomic_load_explicit(&libunwind.generation, memory_order_acquire) == generation)
        return;
    libunwind.flush(*libunwind.local_address_space, 0, 0);
    atomic_store_explicit(&libunwind.generation, generation, memory_order_release);
}

/* ---- walking --------------------------------------------------------------------------------- */

static uint64_t get_register(struct cursor *cursor, int number)
{
    uintptr_t value = 0;
    return libunwind.get_register(cursor, number, &value) < 0 ? 0 : value;
}

static uint32_t collect_frames(struct cursor *cursor, uint64_t sp, struct gm_frame *frames,
                               uint32_t depth, uint32_t *flags)
{
    uint32_t count = 0;
    uint64_t last_pc = 0, last_sp = 0;
    bool exact = false; /* the frame inside of this one is a signal's, so its pc is exact */
    for (;;) {
        uint64_t pc = get_register(cursor, REGISTER_IP), at = get_register(cursor, REGISTER_SP);
        if (pc == 0 ||
            (pc == last_pc && at == last_sp)) /* aarch64: a coroutine's last frame, twice */
            return count;
        last_pc = pc;
        last_sp = at;
        if (at >= sp) {
            if (count == depth) {
                *flags |= GM_WALK_TRUNCATED;
                return count;
            }
            count++;
            frames[-(ptrdiff_t)count] =
                (struct gm_frame){.pc = pc, .flags = exact ? GM_FRAME_EXACT : 0};
        }
        uint64_t inside = exact ? pc : pc - 1;
        exact = libunwind.is_signal_frame(cursor) > 0;
        step_from =
            inside; /* nothing but the step runs until it is 0 again, unless a handler jumps */
        int status = libunwind.step(cursor);
        step_from = 0;
        if (status == 0)
            return count;
        if (status < 0) {
            *flags |= GM_WALK_CUT;
            return count;
        }
    }
}

/*
 * Apart and never inlined: its cursor and context are several KiB that ordinary walks need not
 * touch.
 */
__attribute__((noinline)) uint32_t gm_fallback_walk(uint64_t sp, uint32_t generation,
                                                    struct gm_frame *frames, uint32_t depth,
                                                    uint32_t *flags)
{
    if (!atomic_load_explicit(&libunwind.ready, memory_order_acquire))
        return 0;
    int saved_errno = errno;
    uint32_t count = 0;
    flush_if_older(generation);
    /*
     * The C library's getcontext: unw_context_t is laid out like ucontext_t, and libunwind's own
     * is a function on some architectures and inline assembly on others.
     */
    ucontext_t context;
    struct cursor cursor;
    atomic_fetch_add(&libunwind.inside, 1);
    if (getcontext(&context) == 0 && libunwind.init(&cursor, &context) >= 0)
        count = collect_frames(&cursor, sp, frames, depth, flags);
    atomic_fetch_sub(&libunwind.inside, 1);
    errno = saved_errno;
    return count;
}

/* libunwind has locks and memory of its own; what another thread was doing with them, nobody ends.
 */
void gm_fallback_forget(void)
{
    if (atomic_exchange(&libunwind.inside, 0) != 0)
        atomic_store(&libunwind.ready, false);
}
