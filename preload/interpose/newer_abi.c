/* See newer_abi.h. */
#define _GNU_SOURCE
#include "interpose/newer_abi.h"
#include "base/api.h"
#include "base/change.h"
#include "base/count.h"
#include "loader/objects.h"
#include "writer/why.h"
#include <stdatomic.h>
#include <string.h>

/* As in the header: each is a struct gm_newer_abi, 0 if free. */
static _Atomic uint64_t noted[GM_NEWER_ABI_MAX];
static _Atomic uint64_t lookups, vital_lookups;

_Static_assert(sizeof(struct gm_newer_abi) == sizeof(uint64_t), "written in one piece");

/* The n of "_vn"; 0 if there is none. */
static uint16_t form_of(const char *suffix)
{
    unsigned form = 0;
    if (suffix[0] != '_' || suffix[1] != 'v')
        return 0;
    for (const char *digit = suffix + 2; *digit >= '0' && *digit <= '9' && form < 1000; digit++)
        form = form * 10 + (unsigned)(*digit - '0');
    return (uint16_t)form;
}

/* One place for each function, for the first form of it that was asked for. */
static void keep_abi(uint64_t word, uint16_t api)
{
    for (uint32_t i = 0; i < GM_NEWER_ABI_MAX; i++) {
        uint64_t there = 0;
        struct gm_newer_abi entry;
        if (atomic_compare_exchange_strong(&noted[i], &there, word))
            return;
        memcpy(&entry, &there, sizeof(entry));
        if (entry.api == api)
            return;
    }
}

void gm_newer_abi_write(void)
{
    struct gm_trace_header *header = gm_process_page->header;
    gm_change_begin();
    for (uint32_t i = 0; i < GM_NEWER_ABI_MAX; i++) {
        uint64_t word = atomic_load(&noted[i]);
        struct gm_newer_abi entry;
        memcpy(&entry, &word, sizeof(entry));
        if (word != 0) /* never taken back: a thread that saw less must not empty it */
            __atomic_store(&header->newer_abi[i], &entry, __ATOMIC_RELAXED);
    }
    gm_change_end();
    gm_count_up_to(GM_COUNT_NEWER_ABI, atomic_load(&lookups));
    gm_count_up_to(GM_COUNT_NEWER_ABI_VITAL, atomic_load(&vital_lookups));
}

/* Sequential, here and where the epoch is set: what is noted meanwhile one of the two sees. A fresh
 * child has no epoch: its parent's header is not mapped there. */
void gm_newer_abi_tell(void)
{
    if (__atomic_load_n(&gm_process_page->epoch, __ATOMIC_SEQ_CST))
        gm_newer_abi_write();
}

void gm_newer_abi_note(uint16_t api, int version, const char *suffix)
{
    struct gm_newer_abi entry = {
        .version = version > 0 ? (uint32_t)version : 0, .api = api, .form = form_of(suffix)};
    uint64_t word;
    memcpy(&word, &entry, sizeof(word));
    keep_abi(word, api);
    atomic_fetch_add(&lookups, 1);
    if (gm_api[api].is_vital)
        atomic_fetch_add(&vital_lookups, 1);
    gm_why(GM_WHY_ROAD_NEWER_ABI, 0, gm_api[api].symbol);
    gm_newer_abi_tell();
}

GM_BEFORE_SANITIZERS uint16_t gm_newer_abi_form(const char *symbol)
{
    const char *suffix = symbol;
    if (symbol[0] != 'c' || symbol[1] != 'u')
        return 0;
    while (*suffix != '\0' && *suffix != '_')
        suffix++;
    if (*suffix == '\0')
        return 0;
    const struct gm_api_rows rows = gm_api_rows(symbol, (size_t)(suffix - symbol));
    return rows.count > 0 ? rows.row[0] : 0;
}

/* A name that nobody defines is a reference that may stay open. */
static void note_if_newer(const char *name, void *data)
{
    (void)data;
    uint16_t api = gm_newer_abi_form(name);
    if (api != 0 && gm_api_find(name) == 0 && gm_object_any_defines(name))
        gm_newer_abi_note(api, 0, strchr(name, '_'));
}

static int look_at_object(struct dl_phdr_info *info, size_t size, void *data)
{
    (void)size;
    struct link_map map;
    struct gm_object object;
    if (gm_object_told(info, &map, &object))
        gm_object_each_needed(&object, note_if_newer, data);
    return 0;
}

void gm_newer_abi_note_linked(void)
{
    dl_iterate_phdr(look_at_object, NULL);
}

bool gm_newer_abi_is_vital(void)
{
    return atomic_load(&vital_lookups) > 0;
}
