/*
 * The protocol of the seal (preload/ring/seal.c, base/change.c), checked in every order its steps can take, as
 * ring_model.c does for the ring.
 *
 * One thread ends the process: it marks the end and seals the trace. Meanwhile two threads change
 * what the seal covers (a table, an area), in two steps each, and two commit a record to a lane of
 * their own, which is behind the end if they see it marked. After every step of every schedule the
 * model kills the process: a seal in the trace must match the contents exactly.
 *
 * Steps are taken one after the other, as if memory were sequentially consistent. The real code
 * ensures that with membarrier between the mark of the end and the look at the lanes, and with
 * sequentially consistent atomics around changes. The model leaves out the wait for threads to come
 * to rest: if it is too short there is no seal.
 *
 * The model then weakens the protocol in one point at a time, and each time the check must find it.
 */
#include "met.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ENDER, CHANGERS = 1, RECORDERS = 3, ACTORS = 5, NOBODY = 0xff };

/* What is weakened. */
enum weakness {
    SOUND,
    CHANGE_NOT_TOLD,        /* a change breaks an existing seal, and does nothing else */
    UNSEALED_BEHIND_CHANGE, /* a change breaks the seal only after it is made */
    LOOKED_BEFORE_TOLD,     /* looks for a seal before it announces the change */
    END_TOLD_EARLY,         /* announces the end of a change before the end */
    CHANGES_NOT_LOOKED_AT,  /* seals during a change */
    CHANGES_BEFORE_MARK,    /* looks for changes before it marks the end */
    RECORDS_NOT_LOOKED_AT,  /* seals while a thread is about to commit */
    RECORD_BEFORE_OPEN,     /* a record after the end breaks the seal only after it is made */
    RENEWED_UNLOOKED,       /* renews a seal during a change */
    WEAKNESSES
};

static const char *const weakness_names[WEAKNESSES] = {
    "sound",
    "changes that are not told",
    "unsealing behind the change",
    "looking for a seal before telling of the change",
    "telling the end of a change early",
    "sealing without a look at the changes",
    "looking at the changes before the end is marked",
    "sealing without a look at the records",
    "unsealing behind a record",
    "renewing the seal without a look at the changes",
};

/* The contents under the seal: the halves that change, and the records. */
struct content {
    uint8_t changed[2];
    uint8_t records[ACTORS - RECORDERS];
};

/* The state of an actor: the next step it takes. */
enum place {
    /* ending: gm_seal */
    MARK_END,
    /* changing: gm_change_begin, gm_change_end */
    TELL_CHANGE,
    LOOK_FOR_END,
    CHANGE_FIRST_HALF,
    CHANGE_SECOND_HALF,
    TELL_CHANGE_OVER,
    /* recording: recorder.c, gm_seal_open, gm_seal_close */
    SAY_COMMITTING,
    LOOK_FOR_END_OF_RECORD,
    WRITE_RECORD,
    LEAVE,
    /* gm_unseal, gm_seal_open */
    TAKE_LOCK_TO_UNSEAL,
    UNSEAL,
    /* seal_all */
    TAKE_LOCK_TO_SEAL,
    CLEAR_SEAL,
    LOOK_AT_CHANGES,
    LOOK_AT_RECORDS,
    READ_FIRST_HALF,
    READ_REST,
    STORE_SEAL,
    RELEASE_LOCK,
    DONE,
};

struct actor {
    uint8_t place;
    uint8_t then;        /* under the lock */
    uint8_t late;        /* the end is marked */
    uint8_t is_changing; /* weakened: something changed, at the early look */
    struct content read; /* what is sealed */
};

struct state {
    /* Survives the kill. */
    struct content content, sealed;
    uint8_t has_seal;
    /* Does not. */
    uint8_t marked, changes, lock;
    uint8_t committing[ACTORS - RECORDERS];
    struct actor actors[ACTORS];
};

_Static_assert(_Alignof(struct state) == 1, "no padding: all bytes are compared");

static enum weakness weakness;
static unsigned long long kill_points, sealed_ends;
static bool wrong;

static void kill_here(const struct state *state)
{
    kill_points++;
    wrong |= state->has_seal && memcmp(&state->content, &state->sealed, sizeof(state->content));
}

/* ---- changing -------------------------------------------------------------------------------- */

static void tell_change(struct state *state, struct actor *actor)
{
    if (weakness != CHANGE_NOT_TOLD)
        state->changes++;
    actor->place = weakness == UNSEALED_BEHIND_CHANGE || weakness == LOOKED_BEFORE_TOLD
                       ? CHANGE_FIRST_HALF
                       : LOOK_FOR_END;
}

static void look_for_end(const struct state *state, struct actor *actor)
{
    actor->then = weakness == UNSEALED_BEHIND_CHANGE ? TELL_CHANGE_OVER
                  : weakness == LOOKED_BEFORE_TOLD   ? TELL_CHANGE
                                                     : CHANGE_FIRST_HALF;
    actor->place = state->marked ? TAKE_LOCK_TO_UNSEAL : actor->then;
}

static void change_second_half(struct state *state, struct actor *actor)
{
    state->content.changed[1]++;
    actor->place = weakness == UNSEALED_BEHIND_CHANGE ? LOOK_FOR_END
                   : weakness == END_TOLD_EARLY       ? DONE
                                                      : TELL_CHANGE_OVER;
}

static void tell_change_over(struct state *state, struct actor *actor)
{
    if (weakness != CHANGE_NOT_TOLD)
        state->changes--;
    actor->place = weakness == END_TOLD_EARLY ? CHANGE_SECOND_HALF : DONE;
}

/* ---- recording ------------------------------------------------------------------------------- */

static void look_for_end_of_record(const struct state *state, struct actor *actor)
{
    actor->late = state->marked;
    actor->then = WRITE_RECORD;
    actor->place =
        actor->late && weakness != RECORD_BEFORE_OPEN ? TAKE_LOCK_TO_UNSEAL : WRITE_RECORD;
}

static void write_record(struct state *state, struct actor *actor, unsigned number)
{
    state->content.records[number - RECORDERS]++;
    actor->then = TAKE_LOCK_TO_SEAL;
    actor->place = !actor->late                     ? LEAVE
                   : weakness == RECORD_BEFORE_OPEN ? TAKE_LOCK_TO_UNSEAL
                                                    : TAKE_LOCK_TO_SEAL;
}

/* ---- sealing --------------------------------------------------------------------------------- */

static void look_at_changes(const struct state *state, struct actor *actor, unsigned number)
{
    bool changing = weakness == CHANGES_BEFORE_MARK ? actor->is_changing : state->changes != 0;
    if (weakness == CHANGES_NOT_LOOKED_AT || (weakness == RENEWED_UNLOOKED && number != ENDER))
        changing = false;
    actor->place = changing ? RELEASE_LOCK : LOOK_AT_RECORDS;
}

static void look_at_records(const struct state *state, struct actor *actor, unsigned number)
{
    bool at_rest = true;
    for (unsigned other = RECORDERS; other < ACTORS; other++)
        at_rest &= other == number || !state->committing[other - RECORDERS];
    actor->place = at_rest || weakness == RECORDS_NOT_LOOKED_AT ? READ_FIRST_HALF : RELEASE_LOCK;
}

/* ---- all schedules --------------------------------------------------------------------------- */

static bool take_lock(struct state *state, unsigned number, enum place place)
{
    if (state->lock != NOBODY)
        return false;
    state->lock = (uint8_t)number;
    state->actors[number].place = (uint8_t)place;
    return true;
}

/* One step; false if the actor waits or has finished. */
static bool take_step(struct state *state, unsigned number)
{
    struct actor *actor = &state->actors[number];
    switch ((enum place)actor->place) {
    case MARK_END:
        actor->is_changing = state->changes != 0;
        state->marked = 1;
        actor->place = TAKE_LOCK_TO_SEAL;
        return true;
    case TELL_CHANGE:
        tell_change(state, actor);
        return true;
    case LOOK_FOR_END:
        look_for_end(state, actor);
        return true;
    case CHANGE_FIRST_HALF:
        state->content.changed[0]++;
        actor->place = weakness == END_TOLD_EARLY ? TELL_CHANGE_OVER : CHANGE_SECOND_HALF;
        return true;
    case CHANGE_SECOND_HALF:
        change_second_half(state, actor);
        return true;
    case TELL_CHANGE_OVER:
        tell_change_over(state, actor);
        return true;
    case SAY_COMMITTING:
        state->committing[number - RECORDERS] = 1;
        actor->place = LOOK_FOR_END_OF_RECORD;
        return true;
    case LOOK_FOR_END_OF_RECORD:
        look_for_end_of_record(state, actor);
        return true;
    case WRITE_RECORD:
        write_record(state, actor, number);
        return true;
    case LEAVE:
        state->committing[number - RECORDERS] = 0;
        actor->place = DONE;
        return true;
    case TAKE_LOCK_TO_UNSEAL:
        return take_lock(state, number, UNSEAL);
    case UNSEAL:
        state->has_seal = 0;
        actor->place = RELEASE_LOCK;
        return true;
    case TAKE_LOCK_TO_SEAL:
        actor->then = number == ENDER ? DONE : LEAVE;
        return take_lock(state, number, CLEAR_SEAL);
    case CLEAR_SEAL:
        state->has_seal = 0;
        actor->place = LOOK_AT_CHANGES;
        return true;
    case LOOK_AT_CHANGES:
        look_at_changes(state, actor, number);
        return true;
    case LOOK_AT_RECORDS:
        look_at_records(state, actor, number);
        return true;
    case READ_FIRST_HALF:
        actor->read.changed[0] = state->content.changed[0];
        actor->place = READ_REST;
        return true;
    case READ_REST:
        actor->read.changed[1] = state->content.changed[1];
        memcpy(actor->read.records, state->content.records, sizeof(actor->read.records));
        actor->place = STORE_SEAL;
        return true;
    case STORE_SEAL:
        state->sealed = actor->read;
        state->has_seal = 1;
        actor->place = RELEASE_LOCK;
        return true;
    case RELEASE_LOCK:
        state->lock = NOBODY;
        actor->place = actor->then;
        return true;
    case DONE:
        return false;
    }
    return false;
}

/* Number of schedules from here on. The search in a weakened protocol ends at its first failure. */
static double explore(const struct state *state)
{
    uint64_t key = met_key(state, sizeof(*state));
    const struct met *met = met_place(key);
    if (met->key)
        return met->schedules;
    met_add(key);
    kill_here(state);
    double schedules = 0;
    bool moved = false;
    for (unsigned number = 0; number < ACTORS && !wrong; number++) {
        struct state next = *state;
        if (!take_step(&next, number))
            continue;
        moved = true;
        schedules += explore(&next);
    }
    if (!moved) {
        for (unsigned number = 0; number < ACTORS; number++)
            wrong |= state->actors[number].place != DONE;
        sealed_ends += state->has_seal;
        schedules = 1;
    }
    met_place(key)->schedules = schedules;
    return schedules;
}

static double explore_weakness(enum weakness explored)
{
    struct state start;
    memset(&start, 0, sizeof(start));
    weakness = explored;
    wrong = false;
    start.lock = NOBODY;
    start.actors[ENDER].place = MARK_END;
    for (unsigned number = CHANGERS; number < RECORDERS; number++)
        start.actors[number].place = explored == LOOKED_BEFORE_TOLD ? LOOK_FOR_END : TELL_CHANGE;
    for (unsigned number = RECORDERS; number < ACTORS; number++)
        start.actors[number].place = SAY_COMMITTING;
    double schedules = explore(&start);
    met_forget();
    return schedules;
}

int main(void)
{
    double schedules = explore_weakness(SOUND);
    bool good = !wrong && sealed_ends > 0;
    printf("%.3g schedules, %llu kill points, %llu ends with a seal, %s\n", schedules, kill_points,
           sealed_ends, good ? "each seal is true" : "WRONG");
    for (enum weakness explored = SOUND + 1; explored < WEAKNESSES; explored++) {
        explore_weakness(explored);
        if (wrong)
            continue;
        printf("not noticed: %s\n", weakness_names[explored]);
        good = false;
    }
    return good ? 0 : 1;
}
