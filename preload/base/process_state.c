/* See process_state.h. */
#include "base/process_state.h"
#include <pthread.h>
#include <string.h>
#include <sys/mman.h>

static struct gm_process_page no_page;
struct gm_process_page *gm_process_page = &no_page;
uint8_t gm_process_ending;
_Thread_local struct gm_tls gm_tls __attribute__((tls_model("initial-exec")));

static bool is_wiped_by_hand; /* the kernel does not */

void gm_process_wipe_page(void)
{
    if (is_wiped_by_hand)
        memset(gm_process_page, 0, sizeof(*gm_process_page));
}

bool gm_process_has_page(void)
{
    return gm_process_page != &no_page;
}

/* Kernels before 4.14 cannot wipe, nor can gVisor and qemu: there the fork handler of libc serves. */
bool gm_process_make_page(void)
{
    if (gm_process_has_page())
        return true;
    void *page =
        mmap(NULL, GM_TRACE_PAGE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (page == MAP_FAILED)
        return false;
    is_wiped_by_hand = madvise(page, GM_TRACE_PAGE, MADV_WIPEONFORK) != 0;
    if (is_wiped_by_hand && pthread_atfork(NULL, NULL, gm_process_wipe_page) != 0)
        return false;
    gm_process_page = page;
    return true;
}

void gm_process_refuse(void)
{
    uint32_t idle = GM_PROCESS_IDLE;
    atomic_compare_exchange_strong(&gm_process_page->state, &idle, GM_PROCESS_REFUSED);
}
