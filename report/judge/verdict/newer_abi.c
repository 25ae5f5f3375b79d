/* See newer_abi.h. */
#include "judge/verdict/newer_abi.h"
#include "base/size.h"
#include <stdio.h>
#include <string.h>

/* Whether one of them makes or ends memory: then the trace lacks what it did. */
static bool is_vital(const struct gm_trace *trace)
{
    return trace->header.counters[GM_COUNT_NEWER_ABI_VITAL] != 0;
}

struct gm_text gm_newer_abi_name(const struct gm_trace *trace, const struct gm_newer_abi *entry)
{
    const char *name = gm_trace_api(trace, entry->api);
    return name[0] ? (struct gm_text){name, strcspn(name, "_")} : (struct gm_text){"?", 1};
}

static size_t print_entry(const struct gm_trace *trace, const struct gm_newer_abi *entry,
                          char *text, size_t size)
{
    struct gm_text name = gm_newer_abi_name(trace, entry);
    int length = snprintf(text, size, "%.*s", name.size > 64 ? 64 : (int)name.size, name.bytes);
    if (length >= 0 && (size_t)length < size && entry->form)
        length += snprintf(text + length, size - (size_t)length, "_v%u", entry->form);
    if (length >= 0 && (size_t)length < size && entry->version)
        length += snprintf(text + length, size - (size_t)length, " of CUDA %u.%u",
                           entry->version / 1000, entry->version % 1000 / 10);
    return length < 0 ? 0 : (size_t)length;
}

void gm_newer_abi_list(const struct gm_trace *trace, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < GM_NEWER_ABI_MAX; i++) {
        const struct gm_newer_abi *entry = &trace->header.newer_abi[i];
        char one[128];
        if (!entry->api)
            continue;
        size_t length = print_entry(trace, entry, one, sizeof(one));
        bool fits = length < sizeof(one) && used + length + sizeof(", ...") < size;
        used += (size_t)snprintf(text + used, size - used, "%s%s", used ? ", " : "",
                                 fits ? one : "...");
        if (!fits)
            return;
    }
}

void gm_newer_abi_sentence(const struct gm_trace *trace, char *text, size_t size)
{
    char list[1024];
    bool vital = is_vital(trace);
    uint64_t count = trace->header.counters[GM_COUNT_NEWER_ABI];
    gm_newer_abi_list(trace, list, sizeof(list));
    snprintf(text, size,
             "%sa newer ABI than this gpumem knows was asked for (%s lookup%s): not seen: %s.%s",
             vital ? "INCOMPLETE: " : "", COUNT(count), gm_plural(count), list,
             vital ? " What such a function allocates or frees is missing here."
                   : " Copies and sets by it are missing here; what is allocated is not.");
}
