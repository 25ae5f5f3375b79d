/*
 * Modules and libraries: the driver runs no code and accepts any name of a kernel; variables are
 * declared.
 */
#ifndef GPUMEM_SIM_MODULE_H
#define GPUMEM_SIM_MODULE_H

#include "driver.h"

struct gpusim_variable;
struct gpusim_instance;

/* Kernels and functions are one object, since launches take either. */
struct gpusim_kernel {
    struct gpusim_object base;
    struct gpusim_library *library;
    char *name;
    int attributes[CU_FUNC_ATTRIBUTE_MAX];
    uint64_t loaded_on; /* a bit for each device that has its code */
    struct gpusim_kernel *next;
};

struct gpusim_library {
    struct gpusim_object base;
    struct gpusim_variable *variables;
    struct gpusim_instance *instances;
    struct gpusim_kernel *kernels;
    unsigned int kernel_count;
    struct gpusim_module *modules; /* one per context that asked */
};

struct gpusim_module {
    struct gpusim_object base;
    struct gpusim_library *library; /* owner of variables and kernels */
    bool owns_library;              /* loaded as a module, not through a library */
    struct gpusim_module *next;
};

void gpusim_module_delete(void *module);

/* Declares a variable of the library. */
CUresult gpusim_library_declare(struct gpusim_library *library, const char *name, size_t bytes,
                                bool managed);

/* Declares a kernel of the library; others are found, too. */
void gpusim_kernel_declare(struct gpusim_library *library, const char *name);

/* Declares the variables and kernels of `image`, if that is a cubin, which holds what its own headers say, or PTX. */
void gpusim_code_declare(struct gpusim_library *library, const void *image);

/* The same of a file, if that is whole. */
void gpusim_code_declare_file(struct gpusim_library *library, const char *path);

/* Declares those of a text, if that is PTX (ptx.c). */
void gpusim_ptx_declare(struct gpusim_library *library, const char *text);

#endif
