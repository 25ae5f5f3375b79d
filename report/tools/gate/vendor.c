/* See suppressions.h: the rules that are built in.
 *
 * What they match was allocated by a vendor's library (class "external") in a function that makes a
 * handle, a generator or a communicator. NVIDIA's documents say of each that it lives until the
 * matching destroy function, and the frameworks that use these libraries keep theirs to the end of the
 * process. Nothing that a call to compute allocates is in it, and nothing of the program's own.
 */
#include "tools/gate/suppressions.h"

const char gm_vendor_rules[] =
    "# Rules built into gpumem check: what NVIDIA's libraries keep until the process ends.\n"
    "# --no-vendor-suppressions leaves them out.\n"
    "\n"
    "[cuBLAS handle]\n"
    "match = ..., fun:^cublasCreate*\n"
    "class = external\n"
    "why = lives until cublasDestroy; frameworks keep one for each thread or stream\n"
    "\n"
    "[cuBLASLt handle]\n"
    "match = ..., fun:^cublasLtCreate*\n"
    "class = external\n"
    "why = lives until cublasLtDestroy\n"
    "\n"
    "[cuDNN handle]\n"
    "match = ..., fun:^cudnnCreate$\n"
    "class = external\n"
    "why = lives until cudnnDestroy; frameworks keep one for each thread\n"
    "\n"
    "[cuSOLVER handle]\n"
    "match = ..., fun:^cusolver*Create$\n"
    "class = external\n"
    "why = lives until cusolverDnDestroy, cusolverSpDestroy, cusolverMgDestroy\n"
    "\n"
    "[cuSPARSE handle]\n"
    "match = ..., fun:^cusparseCreate$\n"
    "class = external\n"
    "why = lives until cusparseDestroy\n"
    "\n"
    "[cuRAND generator]\n"
    "match = ..., fun:^curandCreateGenerator*\n"
    "class = external\n"
    "why = lives until curandDestroyGenerator\n"
    "\n"
    "[cuTENSOR handle]\n"
    "match = ..., fun:^cutensorCreate$\n"
    "class = external\n"
    "why = lives until cutensorDestroy\n"
    "\n"
    "[NCCL communicator]\n"
    "match = ..., fun:^ncclCommInit*\n"
    "class = external\n"
    "why = lives until ncclCommDestroy, which frameworks leave to the end of the process\n"
    "\n"
    "[NVSHMEM heap]\n"
    "match = ..., fun:^nvshmem*init*\n"
    "class = external\n"
    "why = lives until nvshmem_finalize\n";

void gm_suppressions_add_vendor(struct gm_suppressions *suppressions)
{
    size_t before = suppressions->count;
    FILE *file = fmemopen((char *)gm_vendor_rules, sizeof(gm_vendor_rules) - 1, "r");
    if (!file)
        return;
    gm_suppressions_read(suppressions, file, "built-in rules", 0);
    fclose(file);
    for (size_t i = before; i < suppressions->count; i++)
        suppressions->rules[i].is_built_in = true;
}
