/* See why.h. Part of the debug build alone. */
#include "writer/why.h"
#include "base/process_state.h"
#include "writer/trace_file.h"
#include <string.h>

static struct gm_lock lock = GM_LOCK(GM_RANK_WHY);
static struct gm_why_ring noted; /* by this process and its parents */
static struct gm_why_ring *told; /* the same in the trace */

static bool is_same_reason(const struct gm_why_entry *entry, enum gm_why reason, uint64_t address,
                           const char *name)
{
    return entry->reason == reason && entry->address == address &&
           strncmp(entry->name, name, sizeof(entry->name) - 1) == 0;
}

static struct gm_why_entry *find_or_make(enum gm_why reason, uint64_t address, const char *name)
{
    for (uint32_t i = 0; i < GM_WHY_ENTRIES; i++)
        if (is_same_reason(&noted.entry[i], reason, address, name))
            return &noted.entry[i];
    struct gm_why_entry *entry = &noted.entry[noted.begun++ % GM_WHY_ENTRIES];
    *entry = (struct gm_why_entry){.address = address, .reason = (uint16_t)reason};
    strncpy(entry->name, name, sizeof(entry->name) - 1);
    return entry;
}

void gm_why_note(enum gm_why reason, uint64_t address, const char *name)
{
    gm_lock_take(&lock);
    struct gm_why_entry *entry = find_or_make(reason, address, name ? name : "");
    entry->count += entry->count != UINT32_MAX;
    if (told && gm_process_page->header) { /* else a child, where it is not mapped */
        told->entry[entry - noted.entry] = *entry;
        told->begun = noted.begun;
    }
    gm_lock_release(&lock);
}

void gm_why_begin(void)
{
    gm_lock_take(&gm_file.lock);
    uint64_t length = sizeof(struct gm_extent) + sizeof(noted);
    length = (length + GM_TRACE_PAGE - 1) & ~(uint64_t)(GM_TRACE_PAGE - 1);
    struct gm_extent *extent = gm_trace_map_extents(GM_EXTENT_WHY, 0, length, 1);
    if (extent)
        gm_trace_publish_extents(extent, 1, 0);
    gm_lock_release(&gm_file.lock);
    if (!extent)
        return;
    gm_lock_take(&lock);
    told = (struct gm_why_ring *)(extent + 1);
    memcpy(told, &noted, sizeof(noted));
    gm_lock_release(&lock);
}

void gm_why_forget(void)
{
    gm_lock_forget(&lock);
    told = NULL;
}
