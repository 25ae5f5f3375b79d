/* Random program: modules and libraries, and the variables in them. */
#include "random.h"

/* The simulator's own function, for what the compiler would put into the image. */
CUresult gpumem_sim_register_variable(CUlibrary library, const char *name, size_t bytes,
                                      int managed);

static const char image[] = "an image: the simulator does not read it";

static void load_module(void)
{
    CUmodule module = NULL;
    int result;
    switch (pick(5)) {
    case 0:
        result = LOG(cuModuleLoad(&module, "/proc/self/exe"));
        break;
    case 1:
        result = LOG(cuModuleLoadData(&module, image));
        break;
    case 2:
        result = LOG(cuModuleLoadDataEx(&module, image, 0, NULL, NULL));
        break;
    case 3:
        result = LOG(cuModuleLoadFatBinary(&module, image));
        break;
    default:
        result = LOG(cuModuleLoad(&module, "/nowhere"));
    }
    if (result == 0)
        keep((struct object){.family = MODULE, .pointer = module, .in_context = 1});
}

static void load_library(void)
{
    CUlibrary library = NULL;
    cudaLibrary_t runtime_library = NULL;
    int result;
    switch (pick(4)) {
    case 0:
        result = LOG(cuLibraryLoadData(&library, image, NULL, NULL, 0, NULL, NULL, 0));
        break;
    case 1:
        result =
            LOG(cuLibraryLoadFromFile(&library, "/proc/self/exe", NULL, NULL, 0, NULL, NULL, 0));
        break;
    case 2:
        result = LOG(cudaLibraryLoadData(&runtime_library, image, NULL, NULL, 0, NULL, NULL, 0));
        break;
    default:
        result = LOG(cudaLibraryLoadFromFile(&runtime_library, "/proc/self/exe", NULL, NULL, 0,
                                             NULL, NULL, 0));
    }
    if (result != 0)
        return;
    if (runtime_library)
        library = (CUlibrary)(void *)runtime_library;
    LOG(gpumem_sim_register_variable(library, "table", 1000, 0));
    LOG(gpumem_sim_register_variable(library, "shared", 3000, 1));
    keep((struct object){.family = LIBRARY, .pointer = library});
}

/* Variables: they have no kind, whatever the query. A free of one is refused. */
static void use_variables(CUlibrary library)
{
    CUdeviceptr address = 0;
    void *runtime_address = NULL;
    CUmodule module;
    size_t size = 0;
    switch (pick(5)) {
    case 0:
        LOG(cuLibraryGetGlobal(&address, &size, library, "table"));
        break;
    case 1:
        LOG(cuLibraryGetManaged(&address, &size, library, "shared"));
        break;
    case 2:
        if (LOG(cuLibraryGetModule(&module, library)) == 0)
            LOG(cuModuleGetGlobal(&address, &size, module, "table"));
        break;
    case 3:
        LOG(cudaLibraryGetGlobal(&runtime_address, &size, (cudaLibrary_t)(void *)library, "table"));
        break;
    default:
        LOG(cudaLibraryGetManaged(&runtime_address, &size, (cudaLibrary_t)(void *)library,
                                  "shared"));
    }
    if (address && pick(3) == 0)
        LOG(cuMemFree(address));
}

void module_step(void)
{
    const int library = find(LIBRARY);
    if (library >= 0 && pick(3))
        use_variables(objects[library].pointer);
    else if (pick(2))
        load_library();
    else
        load_module();
}

int unload(struct object object)
{
    if (object.family == MODULE)
        return LOG(cuModuleUnload(object.pointer));
    return pick(2) ? LOG(cuLibraryUnload(object.pointer))
                   : LOG(cudaLibraryUnload((cudaLibrary_t)object.pointer));
}
