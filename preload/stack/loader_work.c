/* See loader_work.h. */
#include "stack/loader_work.h"
#include "base/config.h"
#include "base/own_thread.h"
#include "base/platform.h"
#include "loader/libc_dlsym.h"
#include "loader/objects.h"
#include "stack/native/unwind.h"
#include "stack/python/python.h"

static _Atomic bool asking;         /* by a thread of our own */
static _Atomic bool unwinder_tried; /* libunwind is opened, or is not there */
static _Atomic uint32_t threads_came;

static bool wants_unwinder(void)
{
    return gm_config.native_stacks && !atomic_load_explicit(&unwinder_tried, memory_order_relaxed);
}

static bool wants_python(void)
{
    return gm_config.python_stacks && gm_python_status() == GM_PYTHON_ABSENT;
}

static void open_unwinder(void)
{
    if (wants_unwinder())
        gm_unwind_open_fallback();
    atomic_store_explicit(&unwinder_tried, true, memory_order_relaxed);
}

static void look_for_python(void)
{
    if (wants_python() && gm_object_any_defines("PyGILState_GetThisThreadState"))
        gm_python_attach(gm_real_dlsym);
}

void gm_loader_ask_early(void)
{
    gm_image_open();
    const bool has_cuda = gm_object_any_defines("cuInit") || gm_object_any_defines("cudaMalloc");
    look_for_python();
    if (has_cuda || gm_python_status() != GM_PYTHON_ABSENT)
        open_unwinder();
    gm_objects_note_start();
}

static int stop_at_once(struct dl_phdr_info *info, size_t size, void *unused)
{
    (void)info;
    (void)size;
    (void)unused;
    return 1;
}

void gm_loader_wait_for_list(void)
{
    dl_iterate_phdr(stop_at_once, NULL);
}

static void ask_loader(void)
{
    gm_loader_wait_for_list();
    open_unwinder();
    look_for_python();
    atomic_store(&asking, false);
}

static struct gm_own_thread asker = {
    .name = "gpumem-loader", .stack_size = 1024 * 1024, .opens_files = true, .run = ask_loader};

void gm_loader_ask(void)
{
    if (!wants_unwinder() && !(wants_python() && gm_objects_came_since_start()))
        return;
    if (!atomic_exchange(&asking, true) && !gm_own_start(&asker))
        atomic_store(&asking, false);
}

/* With native stacks a module that is new on one tells; without, it is asked for the 1st, 2nd, 4th
 * ... thread. */
void gm_loader_thread_came(void)
{
    uint32_t number = atomic_fetch_add_explicit(&threads_came, 1, memory_order_relaxed) + 1;
    if (!gm_config.native_stacks && (number & (number - 1)) == 0)
        gm_loader_ask();
}

void gm_loader_forget(void)
{
    gm_fallback_forget();
    gm_python_attach_forget();
    atomic_store(&asking, false);
}
