/* The symbolizer's samples use this to report where their code is: each notes addresses and lines
 * under a name and prints "name address line" at the end, where the address is one of the ELF file,
 * as in a trace. Works in C and C++, with any optimization. */
#ifndef GM_SYMBOLIZE_SAMPLES_MARKS_H
#define GM_SYMBOLIZE_SAMPLES_MARKS_H

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* dl_iterate_phdr */
#endif
#include <inttypes.h>
#include <link.h>
#include <stdint.h>
#include <stdio.h>

#define NOINLINE __attribute__((noinline))
#define ALWAYS_INLINE inline __attribute__((always_inline))

struct mark {
    const char *name;
    uintptr_t address;
    int line;
};

static struct mark marks[32];
static volatile int mark_count;

static NOINLINE void add_mark(const char *name, uintptr_t address, int line)
{
    marks[mark_count].name = name;
    marks[mark_count].address = address;
    marks[mark_count].line = line;
    mark_count = mark_count + 1;
}

/* The address of the instruction that takes it: no other way is exact if the code is inlined or
 * split. */
#if defined(__x86_64__)
#define READ_PC(pc) __asm__ volatile("1: lea 1b(%%rip), %0" : "=r"(pc))
#elif defined(__aarch64__)
#define READ_PC(pc) __asm__ volatile("adr %0, ." : "=r"(pc))
#else
#error "how does this machine read its program counter?"
#endif

#define MARK_HERE(name)                                                                            \
    do {                                                                                           \
        uintptr_t mark_pc;                                                                         \
        READ_PC(mark_pc);                                                                          \
        add_mark(name, mark_pc, __LINE__);                                                         \
    } while (0)

/* Notes the line of a call; must stand on one line. */
#define CALL(name, call) (add_mark(name, 0, __LINE__), (call))

static inline int read_bias(struct dl_phdr_info *info, size_t size, void *bias)
{
    (void)size;
    *(uintptr_t *)bias = info->dlpi_addr;
    return 1; /* the first one is the program */
}

static inline int print_marks(void)
{
    uintptr_t bias = 0;

    dl_iterate_phdr(read_bias, &bias);
    for (int i = 0; i < mark_count; i++) {
        uintptr_t address = marks[i].address == 0 ? 0 : marks[i].address - bias;
        printf("%s 0x%" PRIxPTR " %d\n", marks[i].name, address, marks[i].line);
    }
    return 0;
}

#endif
