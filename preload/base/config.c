/* See config.h. No malloc, no stdio: this runs in every process that inherits LD_PRELOAD. */
#include "base/config.h"
#include "base/environment.h"
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

/* The value of a variable; NULL if it is empty, which is as good as none. */
static const char *setting(char *const *environment, const char *name)
{
    size_t length = strlen(name);
    for (; environment && *environment; environment++)
        if (strncmp(*environment, name, length) == 0 && (*environment)[length] == '=')
            return (*environment)[length + 1] ? *environment + length + 1 : NULL;
    return NULL;
}

static void read_config_settings(char *const *environment)
{
    const char *value;
    if ((value = setting(environment, "GPUMEM_OUTPUT")) && strlen(value) < sizeof(gm_config.output))
        strcpy(gm_config.output, value);
    if ((value = setting(environment, "GPUMEM_RUN")) && strlen(value) < sizeof(gm_config.run_id))
        strcpy(gm_config.run_id, value);
    if ((value = setting(environment, "GPUMEM_RING")))
        gm_setting_ring(value, &gm_config.ring_records);
    if ((value = setting(environment, "GPUMEM_DEPTH")))
        gm_setting_depth(value, &gm_config.depth);
    if ((value = setting(environment, "GPUMEM_STACKS")))
        gm_setting_stacks(value, &gm_config.native_stacks, &gm_config.python_stacks);
    if ((value = setting(environment, "GPUMEM_ON_FULL")))
        gm_setting_choice(value, "block", "drop", &gm_config.drop_on_full);
    if ((value = setting(environment, "GPUMEM_MODE")))
        gm_setting_choice(value, "full", "flight", &gm_config.flight);
    if ((value = setting(environment, "GPUMEM_FLIGHT_SIZE")))
        gm_setting_flight_size(value, &gm_config.flight_size);
    if ((value = setting(environment, "GPUMEM_TORCH")))
        gm_setting_choice(value, "0", "1", &gm_config.torch);
    if ((value = setting(environment, "GPUMEM_XLA")))
        gm_setting_choice(value, "0", "1", &gm_config.xla);
    if ((value = setting(environment, "GPUMEM_NVML")))
        gm_setting_choice(value, "0", "1", &gm_config.nvml);
    if ((value = setting(environment, "GPUMEM_NVTX")))
        gm_setting_choice(value, "0", "1", &gm_config.nvtx);
    if ((value = setting(environment, "GPUMEM_NVTX_NEXT")) &&
        strlen(value) < sizeof(gm_config.nvtx_next))
        strcpy(gm_config.nvtx_next, value);
}

static void note_command(char *const *arguments)
{
    size_t used = 0;
    for (; arguments && *arguments && used < sizeof(gm_config.command_line) - 1; arguments++) {
        size_t length = strlen(*arguments) + 1, room = sizeof(gm_config.command_line) - 1 - used;
        memcpy(gm_config.command_line + used, *arguments, length < room ? length : room);
        used += length < room ? length : room;
    }
    gm_config.command_line_size = (uint32_t)used;
}

void gm_config_read(char *const *arguments, char *const *environment)
{
    read_config_settings(environment);
    note_command(arguments);
    gm_environment_note(environment, gm_config.output);
}

struct text {
    char *at;
    char *end; /* the last byte stays free for the terminator */
    bool overflow;
};

static void append_text(struct text *text, const char *bytes, size_t length)
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
    append_text(text, digits + at, sizeof(digits) - at);
}

/* "none" outside of a job. */
static void append_rank(struct text *text)
{
    for (size_t i = 0; i < GM_RANK_LAUNCHERS; i++) {
        const char *value = gm_environment_value(gm_rank_variables[i][0]);
        if (value && *value && strspn(value, "0123456789") == strlen(value)) {
            append_text(text, value, strlen(value));
            return;
        }
    }
    append_text(text, "none", 4);
}

bool gm_config_path(char *path, size_t size, const char *program, const char *host, uint32_t pid)
{
    struct text text = {path, path + size - 1, false};
    for (const char *at = gm_config.output; *at; at++) {
        const char *close;
        char name[64];
        if (at[0] != '%' || !strchr("ephrq%", at[1])) {
            append_text(&text, at, 1);
            continue;
        }
        switch (*++at) {
        case 'e':
            append_text(&text, program, strlen(program));
            break;
        case 'p':
            append_number(&text, pid);
            break;
        case 'h':
            append_text(&text, host, strlen(host));
            break;
        case 'r':
            append_rank(&text);
            break;
        case 'q':
            close = at[1] == '{' ? strchr(at, '}') : NULL;
            if (!close || (size_t)(close - at) - 2 >= sizeof(name)) {
                append_text(&text, "%q", 2);
                break;
            }
            memcpy(name, at + 2, (size_t)(close - at) - 2);
            name[close - at - 2] = 0;
            const char *value = gm_environment_value(name);
            if (value)
                append_text(&text, value, strlen(value));
            at = close;
            break;
        case '%':
            append_text(&text, "%", 1);
            break;
        default: /* a '%' at the very end: strchr matched the terminator */
            append_text(&text, "%", 1);
            at--;
        }
    }
    *text.at = 0;
    return !text.overflow;
}
