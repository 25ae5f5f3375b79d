/* What a program asks the recorder of itself, held against what it knows. Each argument is a case;
 * inside.py runs it in several modes. The simulated runtime allocates without a context's help. */
#include <cuda_runtime_api.h>
#include <errno.h>
#include <gpumem/gpumem.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#define MIB (1024LL * 1024)

static int failures;

static void expect(const char *what, long long value, long long wanted)
{
    if (value == wanted)
        return;
    fprintf(stderr, "%s: %lld, not %lld\n", what, value, wanted);
    failures++;
}

static void *take(size_t size)
{
    void *memory = NULL;
    if (cudaMalloc(&memory, size) != cudaSuccess)
        abort();
    return memory;
}

/* ---- cases ----------------------------------------------------------------------------------- */

/* Every function answers that there is nobody to answer. */
static void absent(void)
{
    struct gpumem_left left = {1, 1};
    gpumem_mark("nobody");
    gpumem_ignore_begin();
    gpumem_peak_restart();
    void *memory = take(MIB);
    expect("active", gpumem_active(), 0);
    expect("live", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), GPUMEM_ABSENT);
    expect("peak", gpumem_peak_bytes(0), GPUMEM_ABSENT);
    expect("moment", (long long)gpumem_moment(), 0);
    expect("check", gpumem_check_now(0, &left), GPUMEM_ABSENT);
    expect("bytes", (long long)left.bytes, 0);
    expect("count", (long long)left.count, 0);
    expect("check without sums", gpumem_check_now(0, NULL), GPUMEM_ABSENT);
    gpumem_ignore_end();
    cudaFree(memory);
}

/* A program with more rights than who starts it: the loader passes the library over. It gets no memory, because it
 * would not find the simulated driver either. */
static void secure(void)
{
    struct gpumem_left left = {1, 1};
    expect("secure mode", (long long)getauxval(AT_SECURE), 1);
    gpumem_mark("nobody");
    gpumem_ignore_begin();
    expect("active", gpumem_active(), 0);
    expect("live", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), GPUMEM_ABSENT);
    expect("peak", gpumem_peak_bytes(0), GPUMEM_ABSENT);
    expect("check", gpumem_check_now(gpumem_moment(), &left), GPUMEM_ABSENT);
    expect("count", (long long)left.count, 0);
    gpumem_ignore_end();
    gpumem_peak_restart();
}

/* The library is there and records nothing. */
static void off(void)
{
    struct gpumem_left left = {1, 1};
    void *memory = take(MIB);
    gpumem_ignore_begin();
    expect("active", gpumem_active(), 1);
    expect("live", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), GPUMEM_OFF);
    expect("peak", gpumem_peak_bytes(0), GPUMEM_OFF);
    expect("check", gpumem_check_now(gpumem_moment(), &left), GPUMEM_OFF);
    expect("count", (long long)left.count, 0);
    gpumem_ignore_end();
    gpumem_peak_restart();
    cudaFree(memory);
}

static void kinds(void)
{
    void *device = take(3 * MIB), *managed = NULL, *pinned = NULL;
    static char page[8192];
    errno = 77;
    expect("nothing else", gpumem_live_bytes(0, GPUMEM_KIND_ON_DEVICE), 3 * MIB);
    expect("errno", errno, 77);
    cudaMallocManaged(&managed, 5 * MIB, cudaMemAttachGlobal);
    cudaMallocHost(&pinned, 7 * MIB);
    cudaHostRegister(page, sizeof(page), 0);
    expect("device", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), 3 * MIB);
    expect("managed", gpumem_live_bytes(0, GPUMEM_KIND_MANAGED), 5 * MIB);
    expect("all of the device", gpumem_live_bytes(0, GPUMEM_KIND_ON_DEVICE), 8 * MIB);
    expect("in use", gpumem_live_bytes(GPUMEM_ALL_DEVICES, GPUMEM_KIND_IN_USE), 8 * MIB);
    expect("pinned", gpumem_live_bytes(GPUMEM_ALL_DEVICES, GPUMEM_KIND_PINNED), 7 * MIB);
    expect("registered", gpumem_live_bytes(GPUMEM_ALL_DEVICES, GPUMEM_KIND_REGISTERED),
           sizeof(page));
    expect("other device", gpumem_live_bytes(1, GPUMEM_KIND_ON_DEVICE), 0);
    expect("no such kind", gpumem_live_bytes(0, 99), GPUMEM_NO_SUCH);
    expect("no such kind", gpumem_live_bytes(0, -1), GPUMEM_NO_SUCH);
    expect("no such device", gpumem_live_bytes(-2, GPUMEM_KIND_DEVICE), GPUMEM_NO_SUCH);
    expect("no such device", gpumem_live_bytes(1 << 20, GPUMEM_KIND_DEVICE), GPUMEM_NO_SUCH);
    expect("no such device", gpumem_peak_bytes(-1), GPUMEM_NO_SUCH);
    cudaFree(device);
    cudaFree(managed);
    expect("none of the device", gpumem_live_bytes(0, GPUMEM_KIND_ON_DEVICE), 0);
    cudaFreeHost(pinned);
    cudaHostUnregister(page);
    expect("none of the host", gpumem_live_bytes(GPUMEM_ALL_DEVICES, GPUMEM_KIND_PINNED), 0);
    expect("no leak", gpumem_check_now(0, NULL), 0);
}

static void peaks(void)
{
    void *first = take(2 * MIB), *second = take(4 * MIB);
    cudaFree(second);
    expect("peak", gpumem_peak_bytes(0), 6 * MIB);
    gpumem_peak_restart();
    expect("from now on", gpumem_peak_bytes(0), 2 * MIB);
    cudaFree(take(MIB));
    expect("again", gpumem_peak_bytes(0), 3 * MIB);
    cudaFree(first);
    expect("still", gpumem_peak_bytes(0), 3 * MIB);
    gpumem_peak_restart();
    expect("nothing", gpumem_peak_bytes(0), 0);
}

static void leaks(void)
{
    struct gpumem_left left;
    void *before = take(MIB);
    unsigned long long since = gpumem_moment();
    expect("none yet", gpumem_check_now(since, &left), 0);
    expect("of the process", gpumem_check_now(0, &left), 1);
    void *a = take(2 * MIB), *b = take(3 * MIB);
    expect("two", gpumem_check_now(since, &left), 2);
    expect("bytes", (long long)left.bytes, 5 * MIB);
    cudaFree(before); /* of before: changes nothing here */
    cudaFree(a);
    expect("one", gpumem_check_now(since, &left), 1);
    expect("bytes", (long long)left.bytes, 3 * MIB);
    expect("since now", gpumem_check_now(gpumem_moment(), &left), 0);
    cudaFree(b);
    expect("none", gpumem_check_now(0, &left), 0);
    cudaFree((void *)0x12345); /* refused: takes nothing away */
    expect("none", gpumem_check_now(0, &left), 0);
}

static void *take_in_thread(void *size)
{
    return take(*(const size_t *)size);
}

/* Leaves: 1 MiB ignored in each of two threads' ways, and 64 KiB that is a leak. */
static void ignored(void)
{
    pthread_t thread;
    size_t small = 65536;
    gpumem_ignore_end(); /* one too many */
    gpumem_ignore_begin();
    gpumem_ignore_begin();
    take(MIB / 2);
    gpumem_ignore_end();
    take(MIB / 2);
    pthread_create(&thread, NULL, take_in_thread, &small); /* another thread's is not ignored */
    pthread_join(thread, NULL);
    gpumem_ignore_end();
    struct gpumem_left left;
    expect("the other thread's", gpumem_check_now(0, &left), 1);
    expect("bytes", (long long)left.bytes, 65536);
    expect("all is alive", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), MIB + 65536);
}

static void *ignore_and_end(void *unused)
{
    (void)unused;
    gpumem_ignore_begin();
    take(4096);
    return NULL;
}

static void *leak_in_thread(void *unused)
{
    (void)unused;
    take(8192);
    return NULL;
}

/* A thread ends while it ignores; those after it have its ring. */
static void ignored_ring(void)
{
    pthread_t thread;
    pthread_create(&thread, NULL, ignore_and_end, NULL);
    pthread_join(thread, NULL);
    for (int i = 0; i < 20; i++) {
        pthread_create(&thread, NULL, leak_in_thread, NULL);
        pthread_join(thread, NULL);
    }
    struct gpumem_left left;
    expect("later threads' count", gpumem_check_now(0, &left), 20);
    expect("bytes", (long long)left.bytes, 20 * 8192);
}

/* A child begins anew; the thread that forked ignores as before. */
static void child(void)
{
    expect("parent", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), 0);
    gpumem_ignore_begin();
    pid_t pid = fork();
    if (pid == 0) {
        struct gpumem_left left;
        expect("nothing in the child", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), 0);
        take(2 * MIB);
        expect("its own", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), 2 * MIB);
        expect("ignored", gpumem_check_now(0, &left), 0);
        gpumem_ignore_end();
        take(3 * MIB);
        expect("not ignored", gpumem_check_now(0, &left), 1);
        fflush(stderr);
        _exit(failures ? 1 : 0);
    }
    int status;
    waitpid(pid, &status, 0);
    expect("child", status, 0);
    gpumem_ignore_end();
    void *memory = take(MIB);
    pid = fork(); /* of a process that uses CUDA: the child has nothing of it */
    if (pid == 0) {
        expect("nothing in the second child", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), 0);
        expect("no leak", gpumem_check_now(0, NULL), 0);
        _exit(failures ? 1 : 0);
    }
    waitpid(pid, &status, 0);
    expect("second child", status, 0);
    expect("parent", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), MIB);
    cudaFree(memory);
    expect("parent", gpumem_check_now(0, NULL), 0);
}

/* Many events: most of them are in blocks of the file when the first question comes. */
static void stored(void)
{
    void *kept[100];
    for (int i = 0; i < 100000; i++) {
        if (i % 1000 == 0)
            kept[i / 1000] = take(1024);
        cudaFree(take((size_t)(i % 7 + 1) * 512));
    }
    expect("kept", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), 100 * 1024);
    expect("count", gpumem_check_now(0, NULL), 100);
    expect("peak", gpumem_peak_bytes(0), 100 * 1024 + 7 * 512);
    for (int round = 0; round < 50; round++) {
        for (int i = 0; i < 1000; i++)
            cudaFree(take(512));
        expect("still", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), 100 * 1024);
    }
    for (int i = 0; i < 100; i++)
        cudaFree(kept[i]);
    expect("none", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), 0);
}

#define WORKERS 4

static atomic_bool stop;

/* Holds one allocation after the other, each while the next is made; one in the end. */
static void *work(void *result)
{
    void *held = NULL;
    for (unsigned i = 0; !atomic_load(&stop) || i < 1000; i++) {
        void *next = take(4096);
        cudaFree(held);
        held = next;
    }
    *(void **)result = held;
    return NULL;
}

/* Questions while others allocate: never less than nothing, never more than there can be; exact when
 * they are done. */
static void racing(void)
{
    pthread_t threads[WORKERS];
    void *held[WORKERS];
    void *own = take(MIB);
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, work, &held[i]);
    for (int i = 0; i < 100; i++) {
        long long now = gpumem_live_bytes(0, GPUMEM_KIND_DEVICE);
        if (now == GPUMEM_UNCERTAIN) /* a thread was kept from running for long; not for good */
            continue;
        if (now < MIB || now > MIB + 2 * WORKERS * 4096)
            expect("within bounds", now, MIB);
        unsigned long long since = gpumem_moment();
        void *mine = i % 10 == 0 ? take(200) : NULL; /* the simulator's lock is not a fair one */
        long long left = gpumem_check_now(since, NULL);
        if (left != GPUMEM_UNCERTAIN && (left < (mine != NULL) || left > 2 * WORKERS + 1))
            expect("left", left, mine != NULL);
        if (mine)
            cudaFree(mine);
    }
    atomic_store(&stop, true);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    expect("in the end", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), MIB + WORKERS * 4096);
    for (int i = 0; i < WORKERS; i++)
        cudaFree(held[i]);
    cudaFree(own);
    expect("nothing", gpumem_check_now(0, NULL), 0);
}

/* Several ask at once. */
static void *ask(void *unused)
{
    (void)unused;
    for (int i = 0; i < 300; i++) {
        void *mine = take(512);
        long long now = gpumem_live_bytes(0, GPUMEM_KIND_DEVICE);
        if (now != GPUMEM_UNCERTAIN && (now < 512 || now > 512 * WORKERS))
            expect("between", now, 512);
        cudaFree(mine);
    }
    return NULL;
}

static void asking(void)
{
    pthread_t threads[WORKERS];
    for (int i = 0; i < WORKERS; i++)
        pthread_create(&threads[i], NULL, ask, NULL);
    for (int i = 0; i < WORKERS; i++)
        pthread_join(threads[i], NULL);
    expect("nothing", gpumem_check_now(0, NULL), 0);
}

static volatile sig_atomic_t asked;

static void on_alarm(int number)
{
    (void)number;
    long long now = gpumem_live_bytes(0, GPUMEM_KIND_DEVICE);
    if (now != GPUMEM_UNCERTAIN && (now < 0 || now > 4096))
        abort();
    asked++;
}

/* A signal handler asks, also in the midst of the recorder: no answer then, and nothing is lost. */
static void handler(void)
{
    signal(SIGUSR1, on_alarm);
    pid_t parent = getpid(), pid = fork();
    if (pid == 0) {
        for (int i = 0; i < 300; i++) {
            kill(parent, SIGUSR1);
            usleep(100);
        }
        _exit(0);
    }
    while (waitpid(pid, NULL, WNOHANG) == 0)
        cudaFree(take(4096));
    expect("asked", asked > 0, true);
    expect("nothing", gpumem_check_now(0, NULL), 0);
}

/* A ring that is full drops records: what is alive is not known any more, for good. */
static void lost(void)
{
    for (int i = 0; i < 200000; i++)
        cudaFree(take(512));
    expect("live", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), GPUMEM_UNCERTAIN);
    expect("check", gpumem_check_now(0, NULL), GPUMEM_UNCERTAIN);
}

/* The host closes what it did not open: the trace is opened again by its name. */
static void closed(void)
{
    for (int i = 0; i < 30000; i++)
        cudaFree(take(512));
    for (int descriptor = 3; descriptor < 1100; descriptor++)
        close(descriptor);
    take(1024);
    expect("live", gpumem_live_bytes(0, GPUMEM_KIND_DEVICE), 1024);
}

static const struct {
    const char *name;
    void (*run)(void);
} cases[] = {
    {"absent", absent}, {"off", off},         {"kinds", kinds},   {"peaks", peaks},
    {"leaks", leaks},   {"ignored", ignored}, {"child", child},   {"ignored_ring", ignored_ring},
    {"stored", stored}, {"racing", racing},   {"asking", asking}, {"handler", handler},
    {"closed", closed}, {"lost", lost},       {"secure", secure},
};

int main(int count, char **arguments)
{
    for (size_t i = 0; count > 1 && i < sizeof(cases) / sizeof(cases[0]); i++)
        if (strcmp(arguments[1], cases[i].name) == 0) {
            cases[i].run();
            return failures ? 1 : 0;
        }
    return 2;
}
