/* Code that no unwind table describes, as a compiler at run time leaves it in memory. */
#ifndef GPUMEM_TESTS_GENERATED_CODE_H
#define GPUMEM_TESTS_GENERATED_CODE_H

#include <stdint.h>
#include <string.h>
#include <sys/mman.h>

/* Calls its argument, and returns. */
typedef void generated_code(void (*function)(void));

#if defined(__x86_64__)
static const unsigned char instructions[] = {0x55, 0x48, 0x89, 0xe5,  /* push %rbp; mov %rsp,%rbp */
                                             0xff, 0xd7, 0x5d, 0xc3}; /* call *%rdi; pop; ret */
#elif defined(__aarch64__)
static const uint32_t instructions[] = {0xa9bf7bfd, 0x910003fd,              /* a frame record */
                                        0xd63f0000, 0xa8c17bfd, 0xd65f03c0}; /* blr x0 */
#endif

static generated_code *generate_code(void)
{
    char *page =
        mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    memcpy(page, instructions, sizeof(instructions));
    __builtin___clear_cache(page, page + sizeof(instructions));
    return (generated_code *)page;
}

#endif
