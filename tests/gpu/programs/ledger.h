/*
 * A program of the GPU check kit keeps its own totals here, by the rules of docs/accounting.md; the
 * report must have the same. It shares nothing with the preload, the report or the simulator.
 *
 * A program calls CALL(result) around each CUDA call, ledger_add and ledger_drop beside each call
 * that allocates or frees, and ledger_print once at its end. Lines that begin with NOTE may differ
 * from run to run; all others must be the same with and without the preload.
 */
#ifndef GPUMEM_TESTS_GPU_LEDGER_H
#define GPUMEM_TESTS_GPU_LEDGER_H

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum kind { DEVICE, MANAGED, ARRAY, VMM, GRAPH, EXTERNAL, PINNED, REGISTERED, KINDS };

static const char *const kind_names[KINDS] = {"device", "managed",  "array",  "vmm",
                                              "graph",  "external", "pinned", "registered"};

static struct {
    struct {
        size_t live, peak, allocs, frees;
    } kinds[KINDS];
    size_t live, peak; /* of the device: all its kinds but external */
    size_t failed;
} ledger;

static inline void ledger_add(enum kind kind, size_t bytes)
{
    ledger.kinds[kind].allocs++;
    ledger.kinds[kind].live += bytes;
    if (ledger.kinds[kind].live > ledger.kinds[kind].peak)
        ledger.kinds[kind].peak = ledger.kinds[kind].live;
    if (kind >= EXTERNAL)
        return;
    ledger.live += bytes;
    if (ledger.live > ledger.peak)
        ledger.peak = ledger.live;
}

static inline void ledger_drop(enum kind kind, size_t bytes)
{
    ledger.kinds[kind].frees++;
    ledger.kinds[kind].live -= bytes;
    if (kind < EXTERNAL)
        ledger.live -= bytes;
}

/* One line of JSON, by process. */
static inline void ledger_print(void)
{
    printf("NOTE totals {\"pid\": %d, \"failed\": %zu, \"live\": %zu, \"peak\": %zu, \"kinds\": {",
           (int)getpid(), ledger.failed, ledger.live, ledger.peak);
    for (int kind = 0; kind < KINDS; kind++)
        printf("%s\"%s\": {\"live\": %zu, \"peak\": %zu, \"allocs\": %zu, \"frees\": %zu}",
               kind ? ", " : "", kind_names[kind], ledger.kinds[kind].live, ledger.kinds[kind].peak,
               ledger.kinds[kind].allocs, ledger.kinds[kind].frees);
    printf("}}\n");
    fflush(stdout);
}

static void stop(const char *call, int line, int result)
{
    printf("STOPPED line %d: %s answered %d\n", line, call, result);
    exit(1);
}

/* Prints the result, so that a different one with the preload shows; an error ends the program. */
#define CALL(call)                                                                                 \
    do {                                                                                           \
        int ledger_result = (int)(call);                                                           \
        printf("%d %s\n", ledger_result, #call);                                                   \
        if (ledger_result != 0)                                                                    \
            stop(#call, __LINE__, ledger_result);                                                  \
    } while (0)

/* Prints the data that the program read back from the device. */
static inline void expect_bytes(const char *what, const unsigned char *bytes, size_t count,
                                unsigned char value)
{
    for (size_t i = 0; i < count; i++) {
        if (bytes[i] != value) {
            printf("STOPPED %s: byte %zu is %u, not %u\n", what, i, bytes[i], value);
            exit(1);
        }
    }
    printf("%s: %zu bytes read back are right\n", what, count);
}

#endif
