/* Bytes by the library that asked for them: PyTorch, NCCL, cuBLAS, the application ...
 *
 * The rule, by the modules of a stack alone. From the innermost frame outwards, passed over are the
 * roads to CUDA, allocators that hand memory on (libc10_cuda, RMM), the interpreter, the system's
 * libraries and code of no module. The first other frame is the owner's: a known library by its
 * name, a Python file of a known package by that, another shared library by its file name; any
 * other Python file, and the program itself, are the application. If nothing is left, an allocator
 * that was passed is the owner.
 *
 * Apart from that, memory can lie in a pool: a library that caches made the call. What PyTorch took
 * for a tensor of its own is PyTorch's, in PyTorch's pool; what a library or the program asked of
 * that pool is that library's or the application's, in PyTorch's pool. The sum over a pool is what
 * it has reserved.
 */
#ifndef GPUMEM_REPORT_POOL_LIBRARIES_H
#define GPUMEM_REPORT_POOL_LIBRARIES_H

#include "base/facts.h"
#include "input/trace/trace_file.h"
#include "names/stacks/stacks.h"
#include "replay/ledger/sites.h"

struct gm_library {
    const char *name; /* clean */
    const char *pool; /* NULL: in none */
    uint64_t bytes;
    uint64_t count; /* allocations */
};

/* Answers by stack, kept. The names it gives live as long as it does. */
struct gm_libraries;
struct gm_libraries *gm_libraries_new(const struct gm_trace *trace);
void gm_libraries_free(struct gm_libraries *libraries);

/* Whose memory of that kind is, allocated by that stack; `bytes` and `count` are 0. */
struct gm_library gm_libraries_of(struct gm_libraries *libraries, unsigned kind, uint32_t stack);

/* The same for the memory of a site, with its bytes and count. What a framework takes from a pool of
 * the driver's (cudaMallocAsync and its kind) it uses: it lies in no pool of its own. */
struct gm_library gm_libraries_of_site(struct gm_libraries *libraries, const struct gm_site *site);

#endif
