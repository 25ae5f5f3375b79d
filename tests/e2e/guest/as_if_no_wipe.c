/* Preloaded before the recorder: a kernel that cannot wipe a page in children (gVisor, qemu, Linux
 * before 4.14). It asks the loader nothing, whose lock a child may find held. */
#include <errno.h>
#include <stddef.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

int madvise(void *address, size_t length, int advice)
{
    if (advice == MADV_WIPEONFORK) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_madvise, address, length, advice);
}
