/*
 * Modules and libraries. The simulator runs no code: any image loads and any kernel name is found.
 * Variables, and the kernels that are counted, are those of the image, if it is a cubin (cubin.c) or PTX (ptx.c);
 * those that the compiler registered the simulated runtime declares by gpumem_sim_register_variable.
 * The memory of variables appears per context at the first query and is in no total.
 */
#include "module.h"
#include "memory.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct gpusim_variable {
    char *name;
    size_t size;
    bool managed;
    struct gpusim_variable *next;
};

/* A variable's memory in one context; managed variables have one for all. */
struct gpusim_instance {
    const struct gpusim_variable *variable;
    uint64_t context_id; /* 0: managed */
    uint64_t address;
    struct gpusim_instance *next;
};

/* ---- libraries ------------------------------------------------------------------------------- */

static struct gpusim_library *new_library(void)
{
    return gpusim_object_new(sizeof(struct gpusim_library), GPUSIM_TYPE_LIBRARY, NULL);
}

static void delete_library(struct gpusim_library *library)
{
    while (library->instances) {
        struct gpusim_instance *instance = library->instances;
        struct gpusim_allocation *allocation = gpusim_allocation_from(instance->address);

        if (allocation && allocation->origin == GPUSIM_FROM_MODULE)
            gpusim_allocation_free(allocation, true);
        library->instances = instance->next;
        free(instance);
    }
    while (library->variables) {
        struct gpusim_variable *variable = library->variables;

        library->variables = variable->next;
        free(variable->name);
        free(variable);
    }
    while (library->kernels) {
        struct gpusim_kernel *kernel = library->kernels;

        library->kernels = kernel->next;
        free(kernel->name);
        gpusim_object_delete(kernel);
    }
    gpusim_object_delete(library);
}

void gpusim_module_delete(void *object)
{
    struct gpusim_module *module = object;
    struct gpusim_module **link = &module->library->modules;

    if (module->owns_library) {
        delete_library(module->library);
    } else {
        while (*link != module)
            link = &(*link)->next;
        *link = module->next;
    }
    gpusim_object_delete(module);
}

/* Code, or the file that has it. */
struct image {
    const void *code;
    const char *path;
};

static void declare(struct gpusim_library *library, struct image image)
{
    if (image.path)
        gpusim_code_declare_file(library, image.path);
    else
        gpusim_code_declare(library, image.code);
}

/* Its code comes to a device with the first context that uses it: cuLibraryGetModule. */
static CUresult load_library(CUlibrary *handle, struct image image)
{
    GPUSIM_ENTER();
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    GPUSIM_TRY(gpusim_object_take(NULL, NULL, GPUSIM_TAKES_CODE));
    struct gpusim_library *library = new_library();
    if (!library)
        return CUDA_ERROR_OUT_OF_MEMORY;
    declare(library, image);
    *handle = GPUSIM_HANDLE(CUlibrary, library);
    return CUDA_SUCCESS;
}

CUresult cuLibraryLoadData(CUlibrary *library, const void *code, CUjit_option *jit_options,
                           void **jit_values, unsigned int jit_count, CUlibraryOption *options,
                           void **values, unsigned int count)
{
    (void)jit_options;
    (void)jit_values;
    (void)jit_count;
    (void)options;
    (void)values;
    (void)count;
    return code ? load_library(library, (struct image){.code = code}) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuLibraryLoadFromFile(CUlibrary *library, const char *path, CUjit_option *jit_options,
                               void **jit_values, unsigned int jit_count, CUlibraryOption *options,
                               void **values, unsigned int count)
{
    (void)jit_options;
    (void)jit_values;
    (void)jit_count;
    (void)options;
    (void)values;
    (void)count;
    GPUSIM_TRY(gpusim_ready());
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    if (access(path, R_OK) != 0)
        return CUDA_ERROR_FILE_NOT_FOUND;
    return load_library(library, (struct image){.path = path});
}

CUresult cuLibraryUnload(CUlibrary handle)
{
    GPUSIM_ENTER();
    struct gpusim_library *library = GPUSIM_FIND(handle, GPUSIM_TYPE_LIBRARY);

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    while (library->modules)
        gpusim_module_delete(library->modules);
    delete_library(library);
    return CUDA_SUCCESS;
}

/* ---- variables ------------------------------------------------------------------------------- */

CUresult gpusim_library_declare(struct gpusim_library *library, const char *name, size_t bytes,
                                bool managed)
{
    struct gpusim_variable *variable = calloc(1, sizeof(*variable));
    char *copy = strdup(name);
    if (!variable || !copy) {
        free(variable);
        free(copy);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    *variable = (struct gpusim_variable){copy, bytes, managed, library->variables};
    library->variables = variable;
    return CUDA_SUCCESS;
}

/* Declares a variable of a library, for the simulated runtime (found by dlsym). */
GPUSIM_EXPORTED CUresult gpumem_sim_register_variable(CUlibrary handle, const char *name,
                                                      size_t bytes, int managed);

CUresult gpumem_sim_register_variable(CUlibrary handle, const char *name, size_t bytes, int managed)
{
    GPUSIM_ENTER();
    struct gpusim_library *library = GPUSIM_FIND(handle, GPUSIM_TYPE_LIBRARY);

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!name || bytes == 0)
        return CUDA_ERROR_INVALID_VALUE;
    return gpusim_library_declare(library, name, bytes, managed != 0);
}

static CUresult new_instance(struct gpusim_library *library, const struct gpusim_variable *variable,
                             struct gpusim_context *context, struct gpusim_instance **made)
{
    struct gpusim_instance *instance = calloc(1, sizeof(*instance));
    uint64_t address = variable->managed ? gpusim_managed_take(variable->size)
                                         : gpusim_linear_take(context->device, variable->size);
    struct gpusim_allocation *allocation =
        address ? gpusim_allocation_add(GPUSIM_FROM_MODULE, address, variable->size,
                                        context->device, variable->managed ? NULL : context)
                : NULL;

    if (!instance || !allocation) {
        free(instance);
        if (allocation)
            gpusim_allocation_drop(allocation);
        if (address && variable->managed)
            gpusim_managed_give(address, variable->size);
        else if (address)
            gpusim_linear_give(context->device, address, variable->size);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    allocation->flags = variable->managed;
    memset((void *)(uintptr_t)address, 0, variable->size);
    *instance = (struct gpusim_instance){variable, variable->managed ? 0 : context->id, address,
                                         library->instances};
    library->instances = instance;
    *made = instance;
    return CUDA_SUCCESS;
}

/* The variable's memory in the current context. Contexts have numbers that are never reused, so
 * remains of a destroyed one are never found. */
static CUresult find_variable(struct gpusim_library *library, const char *name, bool only_managed,
                              CUdeviceptr *pointer, size_t *bytes)
{
    struct gpusim_context *context;
    const struct gpusim_variable *variable = library->variables;
    struct gpusim_instance *instance = library->instances;

    GPUSIM_TRY(gpusim_current(&context));
    if (!name)
        return CUDA_ERROR_INVALID_VALUE;
    while (variable && (strcmp(variable->name, name) != 0 || (only_managed && !variable->managed)))
        variable = variable->next;
    if (!variable)
        return CUDA_ERROR_NOT_FOUND;
    while (instance && (instance->variable != variable ||
                        instance->context_id != (variable->managed ? 0 : context->id)))
        instance = instance->next;
    if (!instance)
        GPUSIM_TRY(gpusim_allocation_end(new_instance(library, variable, context, &instance)));
    if (pointer)
        *pointer = instance->address;
    if (bytes)
        *bytes = variable->size;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetGlobal(CUdeviceptr *pointer, size_t *bytes, CUlibrary handle, const char *name)
{
    GPUSIM_ENTER();
    struct gpusim_library *library = GPUSIM_FIND(handle, GPUSIM_TYPE_LIBRARY);

    return library ? find_variable(library, name, false, pointer, bytes)
                   : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuLibraryGetManaged(CUdeviceptr *pointer, size_t *bytes, CUlibrary handle,
                             const char *name)
{
    GPUSIM_ENTER();
    struct gpusim_library *library = GPUSIM_FIND(handle, GPUSIM_TYPE_LIBRARY);

    return library ? find_variable(library, name, true, pointer, bytes) : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr *pointer, size_t *bytes, CUmodule handle,
                              const char *name)
{
    GPUSIM_ENTER();
    struct gpusim_module *module = GPUSIM_FIND(handle, GPUSIM_TYPE_MODULE);

    return module ? find_variable(module->library, name, false, pointer, bytes)
                  : CUDA_ERROR_INVALID_HANDLE;
}

/* ---- modules --------------------------------------------------------------------------------- */

static CUresult load_module(CUmodule *handle, struct image image)
{
    GPUSIM_ENTER_CONTEXT(context);
    if (!handle)
        return CUDA_ERROR_INVALID_VALUE;
    struct gpusim_library *library = new_library();
    struct gpusim_module *module =
        library ? gpusim_object_new(sizeof(*module), GPUSIM_TYPE_MODULE, context) : NULL;
    if (!module) {
        if (library)
            delete_library(library);
        return CUDA_ERROR_OUT_OF_MEMORY;
    }
    module->library = library;
    module->owns_library = true;
    CUresult taken = gpusim_object_take(&module->base, context->device, GPUSIM_TAKES_CODE);
    if (taken != CUDA_SUCCESS) {
        gpusim_module_delete(module);
        return taken;
    }
    declare(library, image);
    *handle = GPUSIM_HANDLE(CUmodule, module);
    return CUDA_SUCCESS;
}

CUresult cuModuleLoadData(CUmodule *module, const void *image)
{
    return image ? load_module(module, (struct image){.code = image}) : CUDA_ERROR_INVALID_VALUE;
}

CUresult cuModuleLoadDataEx(CUmodule *module, const void *image, unsigned int count,
                            CUjit_option *options, void **values)
{
    (void)count;
    (void)options;
    (void)values;
    return cuModuleLoadData(module, image);
}

CUresult cuModuleLoadFatBinary(CUmodule *module, const void *image)
{
    return cuModuleLoadData(module, image);
}

CUresult cuModuleLoad(CUmodule *module, const char *path)
{
    GPUSIM_TRY(gpusim_ready());
    if (!path)
        return CUDA_ERROR_INVALID_VALUE;
    return access(path, R_OK) == 0 ? load_module(module, (struct image){.path = path})
                                   : CUDA_ERROR_FILE_NOT_FOUND;
}

CUresult cuModuleUnload(CUmodule handle)
{
    GPUSIM_ENTER();
    struct gpusim_module *module = GPUSIM_FIND(handle, GPUSIM_TYPE_MODULE);

    if (!module)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!module->owns_library)
        return CUDA_ERROR_NOT_PERMITTED;
    gpusim_module_delete(module);
    return CUDA_SUCCESS;
}

CUresult cuModuleGetLoadingMode(CUmoduleLoadingMode *mode)
{
    GPUSIM_ENTER();
    if (!mode)
        return CUDA_ERROR_INVALID_VALUE;
    *mode = CU_MODULE_LAZY_LOADING;
    return CUDA_SUCCESS;
}

CUresult cuLibraryGetModule(CUmodule *module_handle, CUlibrary handle)
{
    GPUSIM_ENTER_CONTEXT(context);
    struct gpusim_library *library = GPUSIM_FIND(handle, GPUSIM_TYPE_LIBRARY);

    if (!library)
        return CUDA_ERROR_INVALID_HANDLE;
    if (!module_handle)
        return CUDA_ERROR_INVALID_VALUE;
    struct gpusim_module *module = library->modules;
    while (module && module->base.context != context)
        module = module->next;
    if (!module) {
        module = gpusim_object_new(sizeof(*module), GPUSIM_TYPE_MODULE, context);
        if (!module)
            return CUDA_ERROR_OUT_OF_MEMORY;
        CUresult taken = gpusim_object_take(&module->base, context->device, GPUSIM_TAKES_CODE);
        if (taken != CUDA_SUCCESS) {
            gpusim_object_delete(module);
            return taken;
        }
        module->library = library;
        module->next = library->modules;
        library->modules = module;
    }
    *module_handle = GPUSIM_HANDLE(CUmodule, module);
    return CUDA_SUCCESS;
}
