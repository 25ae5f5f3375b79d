/*
 * Modules and libraries: the driver does not read code and accepts any name; variables are
 * registered.
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

#endif
