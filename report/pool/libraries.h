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

#include "analysis/analysis.h"
#include "render/json.h"
#include "render/page.h"

#define GM_APPLICATION "application"

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

/* The libraries with most bytes among owners, most first; at most `most` of them. */
struct gm_library_share {
    const char *name;
    uint64_t bytes;
};

size_t gm_library_shares(struct gm_libraries *libraries, const struct gm_sites *owners,
                         struct gm_library_share *shares, size_t most);

/* The libraries that held memory on a device, all kinds but external: at its peak, at the end, and
 * when it last ran out of memory. */
enum gm_library_moment { GM_AT_PEAK, GM_AT_END, GM_AT_FAILURE, GM_LIBRARY_MOMENTS };

struct gm_library_line {
    const char *name;
    const char *pool;
    struct {
        uint64_t bytes;
        uint64_t count;
    } at[GM_LIBRARY_MOMENTS];
};

struct gm_library_table {
    struct gm_library_line *lines; /* most at the peak first */
    size_t count;
    size_t capacity;
    uint64_t bytes[GM_LIBRARY_MOMENTS]; /* of all */
    uint64_t failure_time;              /* record clock; 0: never out of memory */
};

struct gm_library_table gm_library_table_of(struct gm_libraries *libraries,
                                            const struct gm_analysis *analysis, int device);
void gm_library_table_free(struct gm_library_table *table);

/* The table of a device as text, if it says more than that all is the application's. */
void gm_libraries_text(struct gm_page *page, const struct gm_analysis *analysis, int device,
                       size_t top);

/* The member "libraries" of a device. */
void gm_libraries_json(struct gm_json *json, const struct gm_analysis *analysis, int device);

#endif
