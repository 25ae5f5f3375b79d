/*
 * A program without CUDA locks all its memory under the usual limit of 8 MiB, as real-time programs
 * do. Run by run.py. Without the rights of root, which no limit holds.
 */
#include <errno.h>
#include <stdio.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

int main(void)
{
    const struct rlimit limit = {8 << 20, 8 << 20};
    if (setrlimit(RLIMIT_MEMLOCK, &limit) != 0 ||
        (geteuid() == 0 && (setgid(65534) != 0 || setuid(65534) != 0)))
        return 1;
    int result = mlockall(MCL_CURRENT | MCL_FUTURE);
    printf("locked %d, error %d\n", result, result ? errno : 0);
    return result ? 2 : 0;
}
