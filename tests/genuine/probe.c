/*
 * Asks a library of NVIDIA's, or the simulator, what it has and what it answers, on a machine
 * without a GPU: probe answers|calls LIBRARY NAMES [init]
 *
 * NAMES is a file of names, one in a line. First comes whether each is exported, for dlsym; with
 * "init" cuInit has been called before. Then
 *
 *   answers  asks for each name by both ABIs of cuGetProcAddress, with every version of CUDA that is
 *            or may come and with all flags. A line of output has a name, an ABI, flags, and from which
 *            version on which answer holds:
 *                cuMemAlloc v2 flags 0: 0=0/2/- 2000=0/0/cuMemAlloc 3020=0/0/cuMemAlloc_v2
 *            An answer is RESULT/STATUS/FUNCTION: "kept" where nothing was written, "-" for NULL,
 *            else the first of NAMES that is exported at that address, or "?".
 *   calls    calls each function, found by dlsym and by each question that leads to one, with the
 *            address of zeros for every argument, and prints its result and a sum of what it wrote.
 *
 * Addresses are never printed: the same behaviour is the same text, also under a preload.
 */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <limits.h>
#include <setjmp.h>
#include <signal.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NAMES_MAX 8192
#define UNWRITTEN ((void *)0x5a5a5a5a)
#define NO_STATUS 77

typedef int (*lookup_v1)(const char *name, void **function, int version, uint64_t flags);
typedef int (*lookup_v2)(const char *name, void **function, int version, uint64_t flags,
                         int *status);
typedef int (*any_function)(void *, void *, void *, void *, void *, void *, void *, void *, void *,
                            void *, void *, void *);

struct answer {
    int result;
    int status;
    void *function;
};

static struct {
    char *name;
    void *address; /* NULL: not exported */
} names[NAMES_MAX];
static size_t count;
static lookup_v1 by_v1;
static lookup_v2 by_v2;
static sigjmp_buf crashed;

static void read_names(const char *path, void *library)
{
    char line[512];
    FILE *file = fopen(path, "r");

    if (!file)
        exit(2);
    for (; count < NAMES_MAX && fgets(line, sizeof(line), file); count++) {
        line[strcspn(line, "\n")] = 0;
        names[count].name = strdup(line);
        names[count].address = line[0] ? dlsym(library, line) : NULL;
    }
    fclose(file);
}

static const char *name_of(const void *function)
{
    if (!function)
        return "-";
    if (function == UNWRITTEN)
        return "kept";
    for (size_t i = 0; i < count; i++)
        if (names[i].address == function)
            return names[i].name;
    return "?";
}

/* ---- answers --------------------------------------------------------------------------------- */

static struct answer ask(int abi, const char *name, int version, uint64_t flags)
{
    struct answer answer = {0, NO_STATUS, UNWRITTEN};

    if (abi == 1)
        answer.result = by_v1(name, &answer.function, version, flags);
    else
        answer.result = by_v2(name, &answer.function, version, flags, &answer.status);
    return answer;
}

static void print_answer(const struct answer *answer)
{
    printf("%d/", answer->result);
    if (answer->status == NO_STATUS)
        printf("kept/");
    else
        printf("%d/", answer->status);
    fputs(name_of(answer->function), stdout);
}

/* 0.0 to 14.9, one that stands between, and some below and above. */
#define MINORS 150
#define VERSIONS (MINORS + 6)
static int version_at(int i)
{
    static const int rest[] = {11999, 15000, 99000, INT_MAX, INT_MIN, -1};

    return i < MINORS ? i / 10 * 1000 + i % 10 * 10 : rest[i - MINORS];
}

static void print_answers(int abi, const char *name, uint64_t flags)
{
    struct answer last = {0};

    printf("%s v%d flags %llu:", *name ? name : "(empty)", abi, (unsigned long long)flags);
    for (int i = 0; i < VERSIONS; i++) {
        struct answer answer = ask(abi, name, version_at(i), flags);

        if (i > 0 && answer.result == last.result && answer.status == last.status &&
            answer.function == last.function)
            continue;
        printf(" %d=", version_at(i));
        print_answer(&answer);
        last = answer;
    }
    printf("\n");
}

static void print_all_answers(void)
{
    static const uint64_t flags[] = {0, 1, 2, 3, 4, 77, 1ull << 32, UINT64_MAX};

    for (int abi = 1; abi <= 2; abi++)
        for (size_t i = 0; i < count && (abi == 1 ? by_v1 != NULL : by_v2 != NULL); i++)
            for (size_t j = 0; j < sizeof(flags) / sizeof(flags[0]); j++)
                print_answers(abi, names[i].name, flags[j]);
    if (by_v2) { /* the status may be NULL */
        struct answer answer = {0, NO_STATUS, UNWRITTEN};

        answer.result = by_v2("cuMemAlloc", &answer.function, 12000, 0, NULL);
        printf("no status: ");
        print_answer(&answer);
        printf("\n");
    }
}

/* ---- calls ----------------------------------------------------------------------------------- */

/*
 * Not called: what NVIDIA's runtime checks the driver by, what addresses other processes, the
 * debugger's interface, what keeps the address of a function to call later, the linker's, which
 * crashes with a lock held on what is no linker, and what returns an address or a structure.
 */
static bool is_called(const char *name)
{
    static const char *const parts[] = {"ExportTable",
                                        "cuInit",
                                        "cuGetProcAddress",
                                        "cuLink",
                                        "cuCheckpoint",
                                        "cudbg",
                                        "cuLogs",
                                        "cudaLogs",
                                        "cuCoredump",
                                        "Callback",
                                        "AsyncNotification",
                                        "cudaGetErrorName",
                                        "cudaGetErrorString",
                                        "cudaCreateChannelDesc"};

    for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
        if (strstr(name, parts[i]))
            return false;
    return true;
}

static void on_crash(int number)
{
    siglongjmp(crashed, number);
}

/* What looks like an address counts as one, wherever it is. */
static unsigned long long sum_of(const uint64_t *words, size_t word_count)
{
    unsigned long long sum = 0;

    for (size_t i = 0; i < word_count; i++)
        sum = sum * 31 + (words[i] >> 32 && words[i] >> 48 == 0 ? 1 : words[i]);
    return sum;
}

static void print_call(const char *road, const char *name, void *function)
{
    static uint64_t memory[8192];
    uint64_t *argument = memory + sizeof(memory) / sizeof(*memory) / 2;

    printf("%s %s: ", road, name);
    memset(memory, 0, sizeof(memory));
    int number = sigsetjmp(crashed, 1);
    if (number) {
        printf("signal %d\n", number);
        return;
    }
    int result =
        ((any_function)function)(argument, argument, argument, argument, argument, argument,
                                 argument, argument, argument, argument, argument, argument);
    printf("%d sum %llx\n", result, sum_of(memory, sizeof(memory) / sizeof(*memory)));
}

/* Calls what the questions for a name lead to. */
static void call_by_lookup(const char *name)
{
    void *last = NULL;
    char road[64];

    for (uint64_t flags = 0; flags <= 2; flags += 2)
        for (int i = 0; i < MINORS; i++) {
            struct answer answer = ask(by_v2 ? 2 : 1, name, version_at(i), flags);

            if (answer.result || answer.function == last || answer.function == UNWRITTEN ||
                !answer.function)
                continue;
            last = answer.function;
            snprintf(road, sizeof(road), "cuGetProcAddress %d %d", version_at(i), (int)flags);
            print_call(road, name, last);
        }
}

static void print_all_calls(void)
{
    const struct sigaction action = {.sa_handler = on_crash, .sa_flags = SA_NODEFER};
    static const int signals[] = {SIGSEGV, SIGBUS, SIGFPE, SIGILL, SIGABRT};

    for (size_t i = 0; i < sizeof(signals) / sizeof(signals[0]); i++)
        sigaction(signals[i], &action, NULL);
    for (size_t i = 0; i < count; i++) {
        if (!is_called(names[i].name))
            continue;
        if (names[i].address)
            print_call("dlsym", names[i].name, names[i].address);
        if (by_v1)
            call_by_lookup(names[i].name);
    }
}

/* ---- main ------------------------------------------------------------------------------------ */

int main(int argc, char **argv)
{
    void *library = argc > 3 ? dlopen(argv[2], RTLD_NOW | RTLD_LOCAL) : NULL;

    setvbuf(stdout, NULL, _IOLBF, 0); /* cuInit may start a process */
    if (!library) {
        fprintf(stderr, "probe: %s\n",
                argc > 3 ? dlerror() : "usage: probe answers|calls LIBRARY NAMES [init]");
        return 2;
    }
    read_names(argv[3], library);
    int (*get_version)(int *) = (int (*)(int *))dlsym(library, "cuDriverGetVersion");
    int (*init)(unsigned int) = (int (*)(unsigned int))dlsym(library, "cuInit");
    int version = 0;
    int result = get_version ? get_version(&version) : 0;

    if (get_version)
        printf("cuDriverGetVersion %d %d\n", result, version);
    if (argc > 4 && init)
        printf("cuInit %d\n", init(0));
    by_v1 = (lookup_v1)dlsym(library, "cuGetProcAddress");
    by_v2 = (lookup_v2)dlsym(library, "cuGetProcAddress_v2");
    for (size_t i = 0; i < count; i++)
        if (names[i].address)
            printf("exported %s\n", names[i].name);
    if (strcmp(argv[1], "answers") == 0)
        print_all_answers();
    else
        print_all_calls();
    return 0;
}
