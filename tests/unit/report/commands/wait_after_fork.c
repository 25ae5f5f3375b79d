/* Preloaded by report_progress.py: a child that the program forks waits until descriptor WAIT_FD is closed by all
 * who write to it, so that its work takes as long as the test wants. */
#include <pthread.h>
#include <stdlib.h>
#include <unistd.h>

static void wait_for_end(void)
{
    const char *number = getenv("WAIT_FD");
    char byte;
    while (number && read(atoi(number), &byte, 1) > 0)
        ;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_atfork(NULL, NULL, wait_for_end);
}
