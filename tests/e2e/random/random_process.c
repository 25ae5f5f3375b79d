/* Random program: children, with and without CUDA in them. They must not disturb their parent. */
#include "random.h"

#include <sys/wait.h>
#include <unistd.h>

/* After a fork the child has no driver: each call is refused. */
static inline int use_driver_in_child(void)
{
    CUdeviceptr address;
    void *pointer;
    const int first = (int)cuMemAlloc(&address, 4096);
    const int second = object_count > 0 ? (int)cuMemFree((CUdeviceptr)objects[0].pointer) : first;
    const int third = (int)cudaMalloc(&pointer, 4096);
    return first != 0 && second != 0 && third != 0;
}

void process_step(void)
{
    int status = 0;
#ifdef RACING /* another thread may have held a lock of the driver or of malloc at the fork */
    const int with_driver = 0;
#else
    const int with_driver = pick(2) != 0;
#endif
    if (pick(4))
        return;
    const pid_t child = fork();
    if (child == 0)
        _exit(with_driver ? 10 + use_driver_in_child() : 20);
    LOG_AS("fork", child > 0 ? waitpid(child, &status, 0) != child : 1);
    LOG_AS("child", status);
}
