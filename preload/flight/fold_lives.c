/* See fold_lives.h. */
#include "flight/fold_lives.h"
#include "base/room.h"
#include "flight/alive.h"
#include <string.h>

#define NOTES 64u        /* as many as the report keeps */
#define SHUTTING_DOWN 4u /* CUDA_ERROR_DEINITIALIZED, cudaErrorCudartUnloading */

struct gm_flight_totals gm_fold_totals;
uint64_t gm_fold_lost_frees;
uint64_t gm_fold_unknown_frees;
uint64_t gm_fold_late;
uint64_t gm_fold_missed;
struct gm_fold_lane *gm_fold_lanes;

/* Births at live addresses and frees of unknown ones, of which the other half may have been stamped
 * late on another processor. The rule is that of report/replay/ledger/unpaired.h. */
static struct {
    uint64_t address;
    uint64_t time;
    uint32_t lane;
    uint8_t type;    /* ALLOC, FREE; NONE: not in use */
    bool is_carried; /* what is carried over took it for what it seemed */
} notes[NOTES];

static uint32_t next_note;
static uint32_t note_count;

uint32_t gm_fold_add(enum gm_carry_role role, uint64_t key, const struct gm_record *record,
                     const struct gm_record *detail, uint32_t lane)
{
    uint32_t number = gm_carry_add(role, key, record, detail, lane);
    gm_fold_missed += number == 0;
    if (number)
        gm_carry_at(number)->ignored = gm_fold_lanes[lane].ignoring;
    return number;
}

/* ---- stamped in the wrong order -------------------------------------------------------------- */

void gm_fold_note(enum gm_event type, uint64_t address, uint64_t time, uint32_t lane)
{
    uint32_t at = next_note++ % NOTES;
    note_count += notes[at].type == GM_EVENT_NONE;
    notes[at].address = address;
    notes[at].time = time;
    notes[at].lane = lane;
    notes[at].type = (uint8_t)type;
    notes[at].is_carried = false;
}

/* Takes out a note that another lane made, and tells which. */
static bool take_note(enum gm_event type, uint64_t address, uint64_t since, uint32_t *lane)
{
    for (uint32_t at = 0; note_count && at < NOTES; at++) {
        if (notes[at].type != type || notes[at].address != address || notes[at].lane == *lane ||
            notes[at].time < since)
            continue;
        gm_fold_late += notes[at].is_carried;
        *lane = notes[at].lane;
        notes[at].type = GM_EVENT_NONE;
        note_count--;
        return true;
    }
    return false;
}

void gm_fold_drop_note(uint64_t address, uint32_t lane)
{
    for (uint32_t at = 0; note_count && at < NOTES; at++) {
        if (notes[at].type != GM_EVENT_FREE || notes[at].address != address ||
            notes[at].lane != lane)
            continue;
        notes[at].type = GM_EVENT_NONE;
        note_count--;
    }
}

static uint64_t before(uint64_t time, uint64_t early)
{
    uint64_t most = GM_CLOCK_SKEW + early;
    return time > most ? time - most : 0;
}

bool gm_fold_pays(uint64_t address, uint64_t time, uint64_t early, uint32_t lane)
{
    bool pays = take_note(GM_EVENT_ALLOC, address, before(time, early), &lane);
    gm_fold_lost_frees -= pays;
    return pays;
}

/* ---- ends and births --------------------------------------------------------------------------- */

void gm_fold_end(uint32_t number, uint32_t ending, bool implicit)
{
    struct gm_carried *entry = gm_carry_at(number);
    if (!entry->ended)
        gm_alive_leave(entry);
    entry->implicit = implicit;
    *gm_fold_frees_of(entry) += gm_fold_is_birth(entry);
    if (!ending) {
        gm_carry_remove(number);
        return;
    }
    gm_carry_hide(number);
    entry->ended = true;
    entry->same = gm_carry_at(ending)->same;
    gm_carry_at(ending)->same = number;
}

void gm_fold_mark_late(uint32_t number, uint32_t status)
{
    if (status == SHUTTING_DOWN || gm_status_is_fatal(status))
        gm_carry_at(number)->record.extra = status;
}

void gm_fold_unknown_free(uint32_t lane, uint32_t ending)
{
    gm_fold_unknown_frees++;
    gm_fold_lanes[lane].unknown = ending != 0;
}

void gm_fold_end_at(uint64_t address)
{
    for (uint32_t number; (number = gm_carry_find(GM_CARRY_LIFE, address));)
        gm_fold_end(number, 0, false);
}

/* A free of the address was stamped before its birth, on a lane which may still undo it: then it is
 * carried behind the birth. */
static void end_early(uint32_t number, uint32_t lane)
{
    uint32_t ending = gm_fold_lanes[lane].ending;
    gm_fold_unknown_frees--;
    if (!gm_fold_lanes[lane].unknown || gm_carry_at(ending)->record.type != GM_EVENT_FREE ||
        gm_carry_at(ending)->record.address != gm_carry_at(number)->key) {
        gm_fold_end(number, 0, false);
        return;
    }
    struct gm_record record = gm_carry_at(ending)->record;
    gm_carry_remove(ending);
    gm_fold_lanes[lane].unknown = false;
    gm_fold_lanes[lane].ending = gm_fold_add(GM_CARRY_ENDING, 0, &record, NULL, lane);
    gm_fold_end(number, gm_fold_lanes[lane].ending, false);
}

void gm_fold_begin_life(const struct gm_record *record, uint64_t early, uint32_t lane)
{
    if (gm_carry_find(GM_CARRY_LIFE, record->address)) {
        gm_fold_lost_frees++;
        gm_fold_note(GM_EVENT_ALLOC, record->address, record->time, lane);
    }
    gm_fold_end_at(record->address);
    uint32_t number = gm_fold_add(GM_CARRY_LIFE, record->address, record, NULL, lane);
    if (number)
        gm_alive_enter(gm_carry_at(number));
    gm_fold_totals.allocs++;
    if (take_note(GM_EVENT_FREE, record->address, before(record->time, early), &lane) && number)
        end_early(number, lane);
}

void gm_fold_notes_are_carried(void)
{
    for (uint32_t at = 0; at < NOTES; at++)
        notes[at].is_carried = true;
}

bool gm_fold_lives_prepare(void)
{
    return GM_ROOM(&gm_fold_lanes, GM_LANES_MAX);
}

void gm_fold_lives_forget(void)
{
    memset(&gm_fold_totals, 0, sizeof(gm_fold_totals));
    gm_fold_missed = gm_fold_late = gm_fold_lost_frees = gm_fold_unknown_frees = 0;
    memset(notes, 0, sizeof(notes));
    next_note = note_count = 0;
    if (gm_fold_lanes)
        memset(gm_fold_lanes, 0, GM_LANES_MAX * sizeof(*gm_fold_lanes));
}
