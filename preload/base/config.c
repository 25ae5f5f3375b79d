/* See config.h. No malloc, no stdio: this runs in every process that inherits LD_PRELOAD. */
#include "base/config.h"
#include <gpumem/ranks.h>
#include <gpumem/settings.h>
#include <string.h>

#define DEFAULT_OUTPUT "gpumem.%e.%p.trace"
#define DEFAULT_RING_RECORDS 16384u /* with half of it the drainer is woken twice as often */
#define DEFAULT_DEPTH 128u
#define DEFAULT_FLIGHT_SIZE (64u << 20)

struct gm_config gm_config = {
    .output = DEFAULT_OUTPUT,
    .ring_records = DEFAULT_RING_RECORDS,
    .depth = DEFAULT_DEPTH,
    .flight_size = DEFAULT_FLIGHT_SIZE,
    .native_stacks = true,
    .python_stacks = true,
    .torch = true,
    .xla = true,
    .nvml = true,
};

static const char *variable(char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return *environment + length + 1;
    return NULL;
}

/* The value of a variable; NULL if it is empty, which is as good as none. */
static const char *setting(const char *name)
{
    const char *value = variable(gm_config.environment, name);
    return value && *value ? value : NULL;
}

void gm_config_read(char *const *environment)
{
    const char *value;
    gm_config.environment = environment;
    if ((value = setting("GPUMEM_OUTPUT")) && strlen(value) < sizeof(gm_config.output))
        strcpy(gm_config.output, value);
    if ((value = setting("GPUMEM_RUN")) && strlen(value) < sizeof(gm_config.run_id))
        strcpy(gm_config.run_id, value);
    if ((value = setting("GPUMEM_RING")))
        gm_setting_ring(value, &gm_config.ring_records);
    if ((value = setting("GPUMEM_DEPTH")))
        gm_setting_depth(value, &gm_config.depth);
    if ((value = setting("GPUMEM_STACKS")))
        gm_setting_stacks(value, &gm_config.native_stacks, &gm_config.python_stacks);
    if ((value = setting("GPUMEM_ON_FULL")))
        gm_setting_choice(value, "block", "drop", &gm_config.drop_on_full);
    if ((value = setting("GPUMEM_MODE")))
        gm_setting_choice(value, "full", "flight", &gm_config.flight);
    if ((value = setting("GPUMEM_FLIGHT_SIZE")))
        gm_setting_flight_size(value, &gm_config.flight_size);
    if ((value = setting("GPUMEM_TORCH")))
        gm_setting_choice(value, "0", "1", &gm_config.torch);
    if ((value = setting("GPUMEM_XLA")))
        gm_setting_choice(value, "0", "1", &gm_config.xla);
    if ((value = setting("GPUMEM_NVML")))
        gm_setting_choice(value, "0", "1", &gm_config.nvml);
    if ((value = setting("GPUMEM_NVTX")))
        gm_setting_choice(value, "0", "1", &gm_config.nvtx);
    if ((value = setting("GPUMEM_NVTX_NEXT")) && strlen(value) < sizeof(gm_config.nvtx_next))
        strcpy(gm_config.nvtx_next, value);
}

struct text {
    char *at;
    char *end; /* the last byte stays free for the terminator */
    bool overflow;
};

static void append(struct text *text, const char *bytes, size_t length)
{
    if (length > (size_t)(text->end - text->at)) {
        text->overflow = true;
        return;
    }
    memcpy(text->at, bytes, length);
    text->at += length;
}

static void append_number(struct text *text, uint32_t number)
{
    char digits[10];
    size_t at = sizeof(digits);
    do
        digits[--at] = (char)('0' + number % 10);
    while (number /= 10);
    append(text, digits + at, sizeof(digits) - at);
}

/* "none" outside of a job. */
static void append_rank(struct text *text)
{
    for (size_t i = 0; i < GM_RANK_LAUNCHERS; i++) {
        const char *value = setting(gm_rank_variables[i][0]);
        if (value && strspn(value, "0123456789") == strlen(value)) {
            append(text, value, strlen(value));
            return;
        }
    }
    append(text, "none", 4);
}

bool gm_config_path(char *path, size_t size, const char *program, const char *host, uint32_t pid)
{
    struct text text = {path, path + size - 1, false};
    for (const char *at = gm_config.output; *at; at++) {
        const char *close;
        char name[64];
        if (at[0] != '%' || !strchr("ephrq%", at[1])) {
            append(&text, at, 1);
            continue;
        }
        switch (*++at) {
        case 'e':
            append(&text, program, strlen(program));
            break;
        case 'p':
            append_number(&text, pid);
            break;
        case 'h':
            append(&text, host, strlen(host));
            break;
        case 'r':
            append_rank(&text);
            break;
        case 'q':
            close = at[1] == '{' ? strchr(at, '}') : NULL;
            if (!close || (size_t)(close - at) - 2 >= sizeof(name)) {
                append(&text, "%q", 2);
                break;
            }
            memcpy(name, at + 2, (size_t)(close - at) - 2);
            name[close - at - 2] = 0;
            const char *value = variable(gm_config.environment, name);
            if (value)
                append(&text, value, strlen(value));
            at = close;
            break;
        case '%':
            append(&text, "%", 1);
            break;
        default: /* a '%' at the very end: strchr matched the terminator */
            append(&text, "%", 1);
            at--;
        }
    }
    *text.at = 0;
    return !text.overflow;
}

static bool has_name(const char *name_and_value, const char *name)
{
    size_t length = name ? strlen(name) : 0;
    return name && strncmp(name_and_value, name, length) == 0 && name_and_value[length] == '=';
}

/* A variable that tells the place of the process in its job. */
static bool is_of_job(const char *name_and_value)
{
    for (size_t i = 0; i < GM_RANK_LAUNCHERS; i++)
        for (size_t column = 0; column < 3; column++)
            if (has_name(name_and_value, gm_rank_variables[i][column]))
                return true;
    for (size_t i = 0; i < GM_JOB_VARIABLES; i++)
        if (has_name(name_and_value, gm_job_variables[i]))
            return true;
    return false;
}

bool gm_config_is_recorded(const char *name_and_value)
{
    static const char *const prefixes[] = {
        "GPUMEM_",
        "PYTORCH_CUDA_ALLOC_CONF=",
        "PYTORCH_ALLOC_CONF=",
        "PYTORCH_HIP_ALLOC_CONF=",
        "PYTORCH_NO_CUDA_MEMORY_CACHING=",
        "CUDA_VISIBLE_DEVICES=",
        "CUDA_MODULE_LOADING=",
        "CUDA_LAUNCH_BLOCKING=",
        "XLA_",
        "TF_FORCE_GPU_ALLOW_GROWTH=",
        "TF_GPU_",
        "TF_XLA_FLAGS=",
        "NCCL_CUMEM_ENABLE=",
        "CUBLAS_WORKSPACE_CONFIG=",
        "CUBLASLT_WORKSPACE_SIZE=",
    };
    for (size_t i = 0; i < sizeof(prefixes) / sizeof(prefixes[0]); i++)
        if (strncmp(name_and_value, prefixes[i], strlen(prefixes[i])) == 0)
            return true;
    return is_of_job(name_and_value);
}
