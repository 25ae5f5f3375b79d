/* See environment.h. */
#include "input/trace/environment.h"
#include <string.h>

bool gm_environment_get(const struct gm_trace *trace, const char *name, struct gm_text *value)
{
    struct gm_text rest = trace->environment;
    size_t size = strlen(name);
    while (rest.size) {
        struct gm_text one = gm_trace_field(rest.bytes, rest.size);
        if (one.size > size && memcmp(one.bytes, name, size) == 0 && one.bytes[size] == '=') {
            *value = (struct gm_text){one.bytes + size + 1, one.size - size - 1};
            return true;
        }
        size_t step = one.size < rest.size ? one.size + 1 : one.size;
        rest = (struct gm_text){rest.bytes + step, rest.size - step};
    }
    return false;
}

bool gm_environment_allocator(const struct gm_trace *trace, const char **name,
                              struct gm_text *value)
{
    static const char *const names[] = {"PYTORCH_ALLOC_CONF", "PYTORCH_CUDA_ALLOC_CONF",
                                        "PYTORCH_HIP_ALLOC_CONF"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (gm_environment_get(trace, names[i], value)) {
            *name = names[i];
            return true;
        }
    return false;
}
