/*
 * The protocol of the flight recorder (preload/flight/flight.c, flight_log.c, recorder.c's `committing`
 * and the reader's report/input/trace/flight_area.c), checked in every order its steps can take, as ring_model.c
 * does for the ring below it.
 *
 * Two threads record into lanes of two records and pack their own lane when it is full, and the
 * drainer packs the first lane once: they fold what is known to be complete, write a block and a
 * checkpoint into an area of three extents, and overwrite the oldest. After every step of every
 * schedule the model kills the process: the checkpoint with which a reader begins, and the records
 * after it, must give the same result as all committed records in the order of their times. The
 * result here is a number that any other order, and any record missing or taken twice, changes.
 *
 * Steps are taken one after the other, as if memory were sequentially consistent. The real code
 * ensures that with membarrier between its look at the clock and its look at the threads, and
 * elsewhere with release stores and acquire loads. The model leaves out that a thread loses its
 * patience, because that thread counts the records which may then be wrong.
 *
 * The model then weakens the protocol in one point at a time, and each time the check must find it.
 */
#include "met.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 2, CAPACITY = 2, MASK = CAPACITY - 1, RECORDS_MAX = 4, AREA = 3, STARTS = 4 };
enum { DRAINER = LANES, ACTORS = LANES + 1, NOBODY = 0xff };

/* What is weakened. */
enum weakness {
    SOUND,
    THREADS_NOT_LOOKED_AT,   /* folds up to the clock, whoever is about to commit */
    TIME_BEFORE_FLAG,        /* a thread announces that it takes a time only after taking it */
    HEAD_BEFORE_FLAG,        /* looks first at what is committed, then at who is about to commit */
    CLOCK_AFTER_LOOK,        /* the clock is read last */
    PACKS_UNFOLDED,          /* a block takes everything committed */
    CHECKPOINT_OF_HEADS,     /* a checkpoint claims to replace everything committed */
    TAIL_BEFORE_BLOCK,       /* records leave the ring before their block exists */
    END_BEFORE_BLOCK,        /* end moves before the block is written */
    OVERWRITES_BEFORE_START, /* start moves after the old extent is overwritten */
    START_BEFORE_CHECKPOINT, /* the history may begin at a checkpoint that is not yet written */
    READER_TAKES_ALL,        /* the reader applies the records that a checkpoint replaces again */
    WEAKNESSES
};

static const char *const weakness_names[WEAKNESSES] = {
    "sound",
    "folding without a look at the threads",
    "taking the time before saying so",
    "looking at heads before flags",
    "reading the clock last",
    "packing what is not folded",
    "a checkpoint of what is not folded",
    "tail before the block is in the area",
    "end before the block is written",
    "overwriting before start moves",
    "start at a checkpoint that is not written",
    "reading what a checkpoint stands for",
};

struct record {
    uint8_t time; /* no two are the same */
};

enum type { NOTHING, BLOCK, CHECKPOINT };

struct extent {
    uint8_t type;
    uint8_t whole;       /* it is written in two steps */
    uint8_t lane, count; /* BLOCK */
    uint8_t first[LANES];
    struct record records[CAPACITY];
    uint32_t value; /* CHECKPOINT: of all records before first[] */
};

struct lane {
    uint8_t head, tail, committing;
    struct record ring[CAPACITY];
};

/* The state of an actor: the next step it takes. */
enum place {
    /* recording: recorder.c, lane.c */
    SAY_COMMITTING,
    TAKE_TIME,
    RESERVE,
    COMMIT,
    LEAVE,
    /* the drainer: drain.c */
    WATCH,
    /* folding: flight.c */
    TAKE_LOCK,
    READ_CLOCK,
    LOOK_FIRST,  /* at the flag of lane `looked`, */
    LOOK_SECOND, /* and then at its head */
    FOLD,
    /* writing: flight_log.c */
    MAKE_ROOM,
    WRITE_FIRST_HALF,
    WRITE_SECOND_HALF,
    PUBLISH_END,
    NOTE_START,
    MOVE_TAIL,
    RELEASE_LOCK,
    DONE,
};

struct actor {
    uint8_t place;
    uint8_t packs;     /* lane */
    uint8_t left;      /* records it still has to make */
    uint8_t time;      /* taken */
    uint8_t looked;    /* lane that it looks at, */
    uint8_t flag;      /* and whether that thread is committing */
    uint8_t cut;       /* folds before this time */
    uint8_t from, end; /* what is packed */
    uint8_t writing;   /* enum type */
    uint8_t start;     /* weakened: what start is to become */
};

struct state {
    uint32_t value; /* of the folded records; private, like everything after the area */
    /* Survives the kill. */
    struct extent area[AREA];
    struct lane lanes[LANES];
    uint8_t start, end; /* positions: extents */
    /* Does not. */
    uint8_t next[LANES]; /* not folded */
    uint8_t seen[LANES]; /* heads at the look */
    uint8_t latest[LANES];
    uint8_t starts[STARTS], start_count;
    uint8_t clock, lock;
    struct actor actors[ACTORS];
    /* The truth: times of all committed records. */
    uint8_t truth[LANES][RECORDS_MAX];
    uint8_t unused[2];
};

_Static_assert(sizeof(struct extent) == 12 && sizeof(struct state) % 4 == 0,
               "no padding: all bytes "
               "are compared");

static enum weakness weakness;
static unsigned long long kill_points;
static bool wrong;

/* Applies the record of a lane that has this time. */
static uint32_t apply(uint32_t value, uint8_t time)
{
    return (value + time) * 0x9e3779b1u;
}

/* ---- the reader ------------------------------------------------------------------------------ */

static uint32_t true_value(const struct state *state)
{
    uint32_t value = 0;
    for (unsigned time = 1; time <= state->clock; time++)
        for (unsigned lane = 0; lane < LANES; lane++)
            for (unsigned n = 0; n < state->lanes[lane].head; n++)
                if (state->truth[lane][n] == time)
                    value = apply(value, (uint8_t)time);
    return value;
}

/* The results of a reader. */
struct found {
    uint32_t value;                    /* of the checkpoint */
    uint8_t next[LANES];               /* records before this one are known */
    uint8_t times[LANES][RECORDS_MAX]; /* 0: not to be applied */
};

static bool trusts_checkpoint(void)
{
    return weakness != READER_TAKES_ALL;
}

static void read_run(struct found *found, unsigned lane, unsigned first, unsigned count,
                     const struct record *records)
{
    wrong |= count > 0 && first > found->next[lane] && trusts_checkpoint();
    for (unsigned n = first; n < first + count && n < RECORDS_MAX; n++) {
        if (n < found->next[lane])
            continue; /* seen already */
        found->times[lane][n] = records[n & MASK].time;
        found->next[lane] = (uint8_t)(n + 1);
    }
}

static void read_extent(struct found *found, const struct extent *extent, bool first)
{
    wrong |= !extent->whole || (first && extent->type != CHECKPOINT);
    if (first) {
        found->value = extent->value;
        if (trusts_checkpoint())
            memcpy(found->next, extent->first, sizeof(found->next));
    }
    if (extent->type == BLOCK)
        read_run(found, extent->lane, extent->first[0], extent->count, extent->records);
}

static void kill_here(const struct state *state)
{
    struct found found = {0};
    kill_points++;
    wrong |= state->start > 0 && state->start >= state->end;
    for (unsigned at = state->start; at < state->end; at++)
        read_extent(&found, &state->area[at % AREA], at == state->start && at > 0);
    for (unsigned lane = 0; lane < LANES; lane++) {
        const struct lane *its = &state->lanes[lane];
        read_run(&found, lane, its->tail, (unsigned)(its->head - its->tail), its->ring);
        wrong |= found.next[lane] != its->head;
    }
    uint32_t value = found.value;
    for (unsigned time = 1; time <= state->clock; time++)
        for (unsigned lane = 0; lane < LANES; lane++)
            for (unsigned n = 0; n < found.next[lane]; n++)
                if (found.times[lane][n] == time)
                    value = apply(value, (uint8_t)time);
    wrong |= value != true_value(state);
}

/* ---- recording ------------------------------------------------------------------------------- */

static void say_committing(struct state *state, unsigned number)
{
    struct actor *actor = &state->actors[number];
    state->lanes[number].committing = 1;
    actor->place = weakness == TIME_BEFORE_FLAG ? RESERVE : TAKE_TIME;
}

static void take_time(struct state *state, unsigned number)
{
    struct actor *actor = &state->actors[number];
    actor->time = ++state->clock;
    actor->place = weakness == TIME_BEFORE_FLAG ? SAY_COMMITTING : RESERVE;
}

static void commit(struct state *state, unsigned number)
{
    struct lane *lane = &state->lanes[number];
    struct actor *actor = &state->actors[number];
    lane->ring[lane->head & MASK].time = actor->time;
    state->truth[number][lane->head] = actor->time;
    lane->head++;
    actor->place = LEAVE;
}

static void clear_committing(struct state *state, unsigned number)
{
    struct actor *actor = &state->actors[number];
    state->lanes[number].committing = 0;
    actor->time = 0;
    actor->place = --actor->left == 0             ? DONE
                   : weakness == TIME_BEFORE_FLAG ? TAKE_TIME
                                                  : SAY_COMMITTING;
}

/* ---- folding --------------------------------------------------------------------------------- */

static void look_at_head(struct state *state, struct actor *actor)
{
    const struct lane *lane = &state->lanes[actor->looked];
    if (lane->head != state->seen[actor->looked])
        state->latest[actor->looked] = lane->ring[(lane->head - 1) & MASK].time;
    state->seen[actor->looked] = lane->head;
}

static void heed_flag(struct state *state, struct actor *actor)
{
    if (actor->flag && weakness != THREADS_NOT_LOOKED_AT &&
        state->latest[actor->looked] < actor->cut)
        actor->cut = state->latest[actor->looked];
}

static void look_at_thread(struct state *state, struct actor *actor)
{
    bool first = actor->place == LOOK_FIRST;
    if (first != (weakness == HEAD_BEFORE_FLAG))
        actor->flag = state->lanes[actor->looked].committing;
    else
        look_at_head(state, actor);
    if (first) {
        actor->place = LOOK_SECOND;
        return;
    }
    heed_flag(state, actor);
    actor->flag = 0;
    actor->place = LOOK_FIRST;
    if (++actor->looked == LANES)
        actor->place = weakness == CLOCK_AFTER_LOOK ? READ_CLOCK : FOLD;
}

static void read_clock(struct state *state, struct actor *actor)
{
    uint8_t later = (uint8_t)(state->clock + 1); /* than any time that was taken */
    if (later < actor->cut)
        actor->cut = later;
    actor->place = weakness == CLOCK_AFTER_LOOK ? FOLD : LOOK_FIRST;
}

static void fold(struct state *state, struct actor *actor)
{
    for (unsigned time = 1; time < actor->cut; time++)
        for (unsigned lane = 0; lane < LANES; lane++)
            if (state->next[lane] < state->seen[lane] &&
                state->lanes[lane].ring[state->next[lane] & MASK].time <= time) {
                state->value =
                    apply(state->value, state->lanes[lane].ring[state->next[lane] & MASK].time);
                state->next[lane]++;
            }
    actor->from = state->lanes[actor->packs].tail;
    actor->end = weakness == PACKS_UNFOLDED ? state->seen[actor->packs] : state->next[actor->packs];
    actor->writing = BLOCK;
    actor->place = actor->end > actor->from ? MAKE_ROOM : RELEASE_LOCK;
    if (actor->place == MAKE_ROOM && weakness == TAIL_BEFORE_BLOCK)
        state->lanes[actor->packs].tail = actor->end;
}

/* ---- writing --------------------------------------------------------------------------------- */

/* A block leaves room for a checkpoint. */
static void make_room(struct state *state, struct actor *actor)
{
    uint8_t *start = weakness == OVERWRITES_BEFORE_START ? &actor->start : &state->start;
    if (actor->start == 0)
        actor->start = state->start;
    unsigned wanted = actor->writing == BLOCK ? 2 : 1;
    if (state->end + wanted - *start <= AREA) {
        actor->place = weakness == END_BEFORE_BLOCK ? PUBLISH_END : WRITE_FIRST_HALF;
        return;
    }
    if (state->start_count == 0)
        abort(); /* there is always a later checkpoint, or this model's area is too small */
    *start = state->starts[0];
    memmove(state->starts, state->starts + 1, --state->start_count);
    state->starts[state->start_count] = 0;
}

static void write_half(struct state *state, struct actor *actor)
{
    uint8_t at = (uint8_t)(state->end - (weakness == END_BEFORE_BLOCK));
    struct extent *extent = &state->area[at % AREA];
    bool second = actor->place == WRITE_SECOND_HALF;
    *extent = (struct extent){.type = actor->writing, .whole = second};
    actor->place = second ? PUBLISH_END : WRITE_SECOND_HALF;
    if (second && weakness == END_BEFORE_BLOCK)
        actor->place = NOTE_START;
    if (!second)
        return;
    if (actor->writing == CHECKPOINT) {
        extent->value = state->value;
        memcpy(extent->first, weakness == CHECKPOINT_OF_HEADS ? state->seen : state->next,
               sizeof(extent->first));
        return;
    }
    extent->lane = actor->packs;
    extent->first[0] = actor->from;
    extent->count = (uint8_t)(actor->end - actor->from);
    memcpy(extent->records, state->lanes[actor->packs].ring, sizeof(extent->records));
}

static void publish_end(struct state *state, struct actor *actor)
{
    state->end++;
    actor->place = weakness == END_BEFORE_BLOCK ? WRITE_FIRST_HALF : NOTE_START;
}

/* After a block: the checkpoint comes next. */
static void note_start(struct state *state, struct actor *actor)
{
    bool is_block = actor->writing == BLOCK;
    if (weakness == OVERWRITES_BEFORE_START)
        state->start = actor->start;
    actor->start = 0;
    if (is_block && weakness == START_BEFORE_CHECKPOINT)
        state->start = state->end;
    if (!is_block)
        state->starts[state->start_count++] = (uint8_t)(state->end - 1);
    actor->writing = is_block ? CHECKPOINT : NOTHING;
    actor->place = is_block ? MAKE_ROOM : MOVE_TAIL;
}

/* ---- all schedules --------------------------------------------------------------------------- */

/* One step; false if the actor waits or has finished. */
static bool take_step(struct state *state, unsigned number)
{
    struct actor *actor = &state->actors[number];
    struct lane *lane = &state->lanes[actor->packs];
    switch ((enum place)actor->place) {
    case SAY_COMMITTING:
        say_committing(state, number);
        return true;
    case TAKE_TIME:
        take_time(state, number);
        return true;
    case RESERVE:
        actor->place = lane->head - lane->tail == CAPACITY ? TAKE_LOCK : COMMIT;
        return true;
    case COMMIT:
        commit(state, number);
        return true;
    case LEAVE:
        clear_committing(state, number);
        return true;
    case WATCH:
        if (lane->head == lane->tail)
            return false;
        actor->place = TAKE_LOCK;
        return true;
    case TAKE_LOCK:
        if (state->lock != NOBODY)
            return false;
        state->lock = (uint8_t)number;
        actor->looked = 0;
        actor->cut = UINT8_MAX;
        actor->place = weakness == CLOCK_AFTER_LOOK ? LOOK_FIRST : READ_CLOCK;
        return true;
    case READ_CLOCK:
        read_clock(state, actor);
        return true;
    case LOOK_FIRST:
    case LOOK_SECOND:
        look_at_thread(state, actor);
        return true;
    case FOLD:
        fold(state, actor);
        return true;
    case MAKE_ROOM:
        make_room(state, actor);
        return true;
    case WRITE_FIRST_HALF:
    case WRITE_SECOND_HALF:
        write_half(state, actor);
        return true;
    case PUBLISH_END:
        publish_end(state, actor);
        return true;
    case NOTE_START:
        note_start(state, actor);
        return true;
    case MOVE_TAIL:
        lane->tail = actor->end;
        actor->place = RELEASE_LOCK;
        return true;
    case RELEASE_LOCK:
        state->lock = NOBODY;
        actor->from = actor->end = actor->cut = actor->looked = actor->writing = 0;
        actor->place = number == DRAINER ? DONE : RESERVE; /* still full: it tries again */
        return true;
    case DONE:
        return false;
    }
    return false;
}

/* Number of schedules from here on. The search in a weakened protocol ends at its first failure; a
 * schedule in which a thread retries the same step counts once. */
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
        wrong |= state->actors[0].place != DONE || state->actors[1].place != DONE;
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
    for (unsigned number = 0; number < LANES; number++)
        start.actors[number] =
            (struct actor){.place = explored == TIME_BEFORE_FLAG ? TAKE_TIME : SAY_COMMITTING,
                           .packs = (uint8_t)number,
                           .left = RECORDS_MAX};
    start.actors[DRAINER] = (struct actor){.place = WATCH};
    double schedules = explore(&start);
    met_forget();
    return schedules;
}

int main(void)
{
    double schedules = explore_weakness(SOUND);
    bool good = !wrong;
    printf("%.3g schedules, %llu kill points, %s\n", schedules, kill_points,
           good ? "what is alive is exact at each" : "WRONG");
    for (enum weakness explored = SOUND + 1; explored < WEAKNESSES; explored++) {
        explore_weakness(explored);
        if (wrong)
            continue;
        printf("not noticed: %s\n", weakness_names[explored]);
        good = false;
    }
    return good ? 0 : 1;
}
