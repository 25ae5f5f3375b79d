/*
 * The protocol of the ring (preload/ring/lane.h, pack.c, drain.c and the reader's report/input/trace/lane.c),
 * checked in every order its steps can take.
 *
 * Two threads record into lanes of two records, each packs its own lane when that is full, and the
 * drainer packs whichever is half full. Where rings grow, a thread goes on in a ring of four
 * records instead of packing its first full one. A step is one access to memory that others can
 * see; after every step of every schedule the model kills the process and compares what a reader
 * would find with what was committed. Steps are taken one after the other, as if memory were
 * sequentially consistent. The real code ensures that with release stores of head, tail and
 * file_end and acquire loads by all others than their writer: each of the three is one word, and
 * everything that matters to its reader was written before it.
 *
 * The model does not walk known states again, but adds up the schedules through them. Then it
 * weakens the protocol in one point at a time, and each time the check must find the error:
 * otherwise it would prove nothing.
 */
#include "met.h"
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { LANES = 2, RINGS = 2, CAPACITY_MAX = 4, RECORDS_MAX = 6, BLOCKS_MAX = 8 };
enum { DRAINER = LANES, ACTORS = LANES + 1, NOBODY = 0xff };

/* What is weakened. */
enum weakness {
    SOUND,
    TAIL_BEFORE_BLOCK,     /* tail moves before file_end covers the block */
    HEAD_BEFORE_FILL,      /* the record is committed, then filled */
    END_BEFORE_BLOCK,      /* file_end moves before the block is written */
    NO_PACK_LOCK,          /* two may pack at once */
    LIMIT_NOT_LOOKED_AT,   /* a thread writes to a full ring as if it were not full */
    SUCCESSOR_TRUSTS_SLOT, /* a lane's next owner commits a record that the former one only began */
    READER_TAKES_ALL,      /* the reader ignores sequence numbers */
    RING_BEFORE_COPY,      /* a larger ring is in the file before the waiting records are in it */
    USED_BUT_NOT_IN_FILE,  /* a thread goes on in a larger ring that the file does not have */
    READER_TAKES_FIRST,    /* the reader uses the first ring of a lane */
    WEAKNESSES
};

static const char *const weakness_names[WEAKNESSES] = {
    "sound",
    "tail before the block is in the file",
    "head before the record is filled",
    "file_end before the block is written",
    "packing without the lock",
    "writing to a full ring",
    "taking over what was not committed",
    "reading without telling records apart",
    "a larger ring before what waits is in it",
    "a larger ring in use that is not in the file",
    "reading the ring that was left",
};

/* A record is two words, so that a torn one can be recognised; 0 is never a record. */
struct record {
    uint8_t a, b;
};

struct block {
    uint8_t lane, first, count;
    struct record records[CAPACITY_MAX];
};

struct lane {
    uint8_t head, tail;
    struct record ring[CAPACITY_MAX]; /* the first uses half of it */
};

/* The state of an actor: the next step it takes. */
enum place {
    /* recording: recorder.c, lane.c */
    RESERVE,
    FILL_A,
    FILL_B,
    COMMIT,
    WAKE,
    LOOK,
    LOOK_UNDER_LOCK,
    /* growing: lane.c */
    COPY_WAITING,
    PUBLISH_RING,
    USE_RING,
    /* the drainer: drain.c */
    SLEEP,
    LOOK_AT_LANE,
    /* packing, by either: pack.c */
    TAKE_LOCK,
    READ_TAIL,
    READ_HEAD,
    READ_RECORD,
    WRITE_FIRST_HALF,
    WRITE_SECOND_HALF,
    PUBLISH_END,
    MOVE_TAIL,
    RELEASE_LOCK,
    DONE,
};

struct actor {
    uint8_t place;
    uint8_t head, limit; /* of a recording thread; its own words */
    uint8_t left;        /* records it still has to make */
    uint8_t owner;       /* how many threads had the lane before */
    uint8_t lane;        /* being looked at or packed */
    uint8_t tail, end;   /* being packed: [tail, end) */
    struct block block;  /* being made */
    uint8_t copied;      /* records copied to it */
    uint8_t at;          /* its place in the file */
    uint8_t refused;     /* the disk did not take it */
};

struct state {
    /* Survives the kill. */
    struct lane rings[LANES][RINGS];
    uint8_t in_file[LANES]; /* rings */
    struct block file[BLOCKS_MAX];
    uint8_t file_end; /* blocks */
    uint8_t lost;     /* counter: records the disk did not take */
    uint8_t dropped;  /* counter */
    /* Does not. */
    uint8_t used[LANES]; /* the ring that the lane's owner is in */
    uint8_t lock;        /* actor, or NOBODY */
    uint8_t work;        /* the drainer's futex */
    uint8_t refusals;
    struct actor actors[ACTORS];
    /* The truth, for the comparison: the contents of each lane's committed records. */
    uint8_t truth[LANES][RECORDS_MAX + 1];
    uint8_t committed[LANES];
};

/* The explored configuration. */
struct setting {
    enum weakness weakness;
    uint8_t records;  /* per lane */
    bool drop;        /* GPUMEM_ON_FULL=drop */
    bool disk_fills;  /* one block may be refused */
    bool grows;       /* rings do */
    bool thread_ends; /* the first lane's owner may end between any two steps of a record */
};

static struct setting setting;
static unsigned long long kill_points;
static unsigned long long lost_found, twice_found, torn_found, order_found, stuck_found;

static unsigned mask_of(unsigned ring)
{
    return ring ? CAPACITY_MAX - 1 : CAPACITY_MAX / 2 - 1;
}

static struct lane *lane_of(struct state *state, unsigned number)
{
    return &state->rings[number][state->used[number]];
}

/* ---- the reader ------------------------------------------------------------------------------ */

/* Compares one record found with the truth; `next` is the sequence number the reader is at. */
static void found(const struct state *state, unsigned lane, unsigned sequence, struct record record,
                  unsigned *next, bool seen[RECORDS_MAX + 1])
{
    if (sequence >= state->committed[lane] || record.a != record.b ||
        record.a != state->truth[lane][sequence]) {
        torn_found++;
        return;
    }
    twice_found += seen[sequence];
    order_found += sequence < *next && !seen[sequence];
    seen[sequence] = true;
    *next = sequence + 1;
}

/* The blocks of a lane are in the order of their sequence numbers, which here is their order in the
 * file. */
static unsigned read_lane(const struct state *state, unsigned number)
{
    unsigned ring = setting.weakness == READER_TAKES_FIRST ? 0 : state->in_file[number] - 1u;
    const struct lane *lane = &state->rings[number][ring];
    bool seen[RECORDS_MAX + 1] = {false}, careful = setting.weakness != READER_TAKES_ALL;
    unsigned next = 0, missing = 0;
    for (unsigned at = 0; at < state->file_end; at++) {
        const struct block *block = &state->file[at];
        if (block->count == 0 || block->count > CAPACITY_MAX) {
            torn_found++;
            continue;
        }
        for (unsigned n = 0; block->lane == number && n < block->count; n++)
            if (!careful || block->first + n >= next)
                found(state, number, block->first + n, block->records[n], &next, seen);
    }
    for (unsigned n = careful && next > lane->tail ? next : lane->tail; n < lane->head; n++)
        found(state, number, n, lane->ring[n & mask_of(ring)], &next, seen);
    for (unsigned n = 0; n < state->committed[number]; n++)
        missing += !seen[n];
    return missing;
}

static void kill_here(const struct state *state)
{
    unsigned missing = 0;
    kill_points++;
    for (unsigned lane = 0; lane < LANES; lane++)
        missing += read_lane(state, lane);
    if (missing > state->lost)
        lost_found += missing - state->lost;
}

/* ---- steps of a recording thread --------------------------------------------------------------
 * Each returns false when the actor has to wait and changes nothing then. */

/* Makes the records of an owner different from those of the one before, and all different from
 * 0. */
static uint8_t content(const struct actor *actor)
{
    return (uint8_t)(1 + actor->head + 16 * actor->owner);
}

static struct record *slot_at_head(struct state *state, unsigned lane)
{
    return &lane_of(state, lane)->ring[state->actors[lane].head & mask_of(state->used[lane])];
}

static void store_head(struct state *state, unsigned lane)
{
    struct actor *actor = &state->actors[lane];
    state->truth[lane][actor->head] = content(actor);
    state->committed[lane]++;
    lane_of(state, lane)->head = (uint8_t)(actor->head + 1);
}

static void reserve(struct state *state, unsigned lane)
{
    struct actor *actor = &state->actors[lane];
    bool looks = actor->head == actor->limit && setting.weakness != LIMIT_NOT_LOOKED_AT;
    actor->place = looks ? LOOK : FILL_A;
}

static void fill_record(struct state *state, unsigned lane)
{
    struct actor *actor = &state->actors[lane];
    bool early = setting.weakness == HEAD_BEFORE_FILL;
    if (actor->place == FILL_A) {
        if (early)
            store_head(state, lane);
        slot_at_head(state, lane)->a = content(actor);
        actor->place = FILL_B;
    } else {
        slot_at_head(state, lane)->b = content(actor);
        actor->place = COMMIT;
    }
}

static void next_record(struct actor *actor)
{
    actor->place = actor->left ? RESERVE : DONE;
}

static void commit(struct state *state, unsigned lane)
{
    struct actor *actor = &state->actors[lane];
    if (setting.weakness != HEAD_BEFORE_FILL)
        store_head(state, lane);
    actor->head++;
    actor->left--;
    next_record(actor);
}

/* One record is half of a ring of two: the drainer is woken before the second. */
static void look_at_tail(struct state *state, unsigned lane)
{
    struct actor *actor = &state->actors[lane];
    unsigned capacity = mask_of(state->used[lane]) + 1;
    uint8_t tail = lane_of(state, lane)->tail;
    bool little = (unsigned)(actor->head - tail) < capacity / 2;
    actor->limit = (uint8_t)(tail + (little ? capacity / 2 : capacity));
    if (actor->head < actor->limit) {
        actor->place = little ? FILL_A : WAKE;
    } else if (setting.drop) {
        state->dropped++;
        state->work = 1;
        actor->left--;
        next_record(actor);
    } else {
        actor->lane = (uint8_t)lane;
        actor->place = TAKE_LOCK;
    }
}

/* The owner ends before it commits; the next thread takes over the lane as it is. */
static void hand_over(struct state *state, unsigned lane)
{
    struct actor *actor = &state->actors[lane];
    if (setting.weakness == SUCCESSOR_TRUSTS_SLOT && actor->place == FILL_B) {
        actor->place = COMMIT;
        return;
    }
    actor->head = lane_of(state, lane)->head;
    actor->limit = actor->head;
    actor->owner++;
    next_record(actor);
}

/* ---- steps of growing, by the owner and under the lock --------------------------------------- */

static bool grows_now(const struct state *state, unsigned lane)
{
    return setting.grows && lane == 0 && state->used[lane] == 0;
}

static void copy_waiting(struct state *state, unsigned lane)
{
    struct actor *actor = &state->actors[lane];
    const struct lane *old = &state->rings[lane][0];
    struct lane *larger = &state->rings[lane][1];
    larger->head = actor->head;
    larger->tail = old->tail;
    for (unsigned n = old->tail; n < actor->head; n++)
        larger->ring[n & mask_of(1)] = old->ring[n & mask_of(0)];
    bool in_file = state->in_file[lane] > 1;
    actor->place = in_file || setting.weakness == USED_BUT_NOT_IN_FILE ? USE_RING : PUBLISH_RING;
}

static void publish_ring(struct state *state, unsigned lane)
{
    struct actor *actor = &state->actors[lane];
    state->in_file[lane] = 2;
    actor->place = setting.weakness == RING_BEFORE_COPY ? COPY_WAITING : USE_RING;
}

static void use_ring(struct state *state, unsigned lane)
{
    struct actor *actor = &state->actors[lane];
    state->used[lane] = 1;
    actor->place = RELEASE_LOCK;
}

/* ---- steps of the drainer -------------------------------------------------------------------- */

static void next_lane(struct actor *actor)
{
    actor->place = ++actor->lane < LANES ? LOOK_AT_LANE : SLEEP;
}

static void look_at_lane(struct state *state, struct actor *actor)
{
    const struct lane *lane = lane_of(state, actor->lane);
    if ((lane->head - lane->tail) * 2u <= mask_of(state->used[actor->lane]))
        next_lane(actor);
    else
        actor->place = TAKE_LOCK;
}

/* ---- steps of packing ------------------------------------------------------------------------ */

static bool take_lock(struct state *state, unsigned number)
{
    struct actor *actor = &state->actors[number];
    if (setting.weakness != NO_PACK_LOCK) {
        if (state->lock != NOBODY)
            return false;
        state->lock = (uint8_t)number;
    }
    actor->place = number == DRAINER ? READ_TAIL : LOOK_UNDER_LOCK;
    return true;
}

static void read_head(struct state *state, struct actor *actor)
{
    actor->end = lane_of(state, actor->lane)->head;
    actor->copied = actor->refused = 0;
    actor->block =
        (struct block){actor->lane, actor->tail, (uint8_t)(actor->end - actor->tail), {{0, 0}}};
    actor->place = actor->block.count ? READ_RECORD : RELEASE_LOCK;
}

static void read_record(struct state *state, struct actor *actor)
{
    unsigned sequence = actor->tail + actor->copied;
    actor->block.records[actor->copied % CAPACITY_MAX] =
        lane_of(state, actor->lane)->ring[sequence & mask_of(state->used[actor->lane])];
    if (++actor->copied < actor->block.count)
        return;
    actor->place = setting.weakness == TAIL_BEFORE_BLOCK  ? MOVE_TAIL
                   : setting.weakness == END_BEFORE_BLOCK ? PUBLISH_END
                                                          : WRITE_FIRST_HALF;
}

/* Anything may follow file_end: of a block, the part written so far. */
static void write_first_half(struct state *state, struct actor *actor)
{
    if (setting.weakness != END_BEFORE_BLOCK)
        actor->at = state->file_end;
    if (actor->at >= BLOCKS_MAX)
        abort(); /* a bound of this model was chosen too small */
    state->file[actor->at] = actor->block;
    memset(state->file[actor->at].records, 0, sizeof(actor->block.records));
    actor->place = WRITE_SECOND_HALF;
}

static void write_second_half(struct state *state, struct actor *actor)
{
    state->file[actor->at] = actor->block;
    actor->place = setting.weakness == END_BEFORE_BLOCK ? MOVE_TAIL : PUBLISH_END;
}

static void publish_end(struct state *state, struct actor *actor)
{
    if (setting.weakness == END_BEFORE_BLOCK) {
        actor->at = state->file_end++;
        actor->place = WRITE_FIRST_HALF;
        return;
    }
    state->file_end = (uint8_t)(actor->at + 1);
    actor->place = setting.weakness == TAIL_BEFORE_BLOCK ? RELEASE_LOCK : MOVE_TAIL;
}

static void move_tail(struct state *state, struct actor *actor)
{
    lane_of(state, actor->lane)->tail = actor->end;
    actor->place =
        setting.weakness == TAIL_BEFORE_BLOCK && !actor->refused ? WRITE_FIRST_HALF : RELEASE_LOCK;
}

static void release_lock(struct state *state, unsigned number)
{
    struct actor *actor = &state->actors[number];
    state->lock = NOBODY;
    actor->tail = actor->end = actor->copied = actor->at = actor->refused = 0;
    actor->block = (struct block){0};
    if (number == DRAINER)
        next_lane(actor);
    else
        actor->place = LOOK;
}

/* The disk is full: counts the records, and then gives them up. */
static void refuse_block(struct state *state, struct actor *actor)
{
    state->refusals++;
    state->lost = (uint8_t)(state->lost + actor->block.count);
    actor->refused = 1;
    actor->place = MOVE_TAIL;
}

/* ---- all schedules --------------------------------------------------------------------------- */

/* One step of an actor; false if it waits or has finished. */
static bool take_step(struct state *state, unsigned number)
{
    struct actor *actor = &state->actors[number];
    switch ((enum place)actor->place) {
    case RESERVE:
        reserve(state, number);
        return true;
    case FILL_A:
    case FILL_B:
        fill_record(state, number);
        return true;
    case COMMIT:
        commit(state, number);
        return true;
    case WAKE:
        state->work = 1;
        actor->place = FILL_A;
        return true;
    case LOOK:
        look_at_tail(state, number);
        return true;
    case LOOK_UNDER_LOCK:
        if (actor->head - lane_of(state, number)->tail <= (int)mask_of(state->used[number]))
            actor->place = RELEASE_LOCK;
        else if (grows_now(state, number))
            actor->place = setting.weakness == RING_BEFORE_COPY ? PUBLISH_RING : COPY_WAITING;
        else
            actor->place = READ_TAIL;
        return true;
    case COPY_WAITING:
        copy_waiting(state, number);
        return true;
    case PUBLISH_RING:
        publish_ring(state, number);
        return true;
    case USE_RING:
        use_ring(state, number);
        return true;
    case SLEEP:
        if (!state->work)
            return false;
        state->work = 0;
        actor->lane = 0;
        actor->place = LOOK_AT_LANE;
        return true;
    case LOOK_AT_LANE:
        look_at_lane(state, actor);
        return true;
    case TAKE_LOCK:
        return take_lock(state, number);
    case READ_TAIL:
        actor->tail = lane_of(state, actor->lane)->tail;
        actor->place = READ_HEAD;
        return true;
    case READ_HEAD:
        read_head(state, actor);
        return true;
    case READ_RECORD:
        read_record(state, actor);
        return true;
    case WRITE_FIRST_HALF:
        write_first_half(state, actor);
        return true;
    case WRITE_SECOND_HALF:
        write_second_half(state, actor);
        return true;
    case PUBLISH_END:
        publish_end(state, actor);
        return true;
    case MOVE_TAIL:
        move_tail(state, actor);
        return true;
    case RELEASE_LOCK:
        release_lock(state, number);
        return true;
    case DONE:
        return false;
    }
    return false;
}

static bool wrong(void)
{
    return lost_found || twice_found || torn_found || order_found || stuck_found;
}

static double explore(const struct state *state);

/* Everything that can happen next except plain steps. */
static double explore_accidents(const struct state *state)
{
    double schedules = 0;
    for (unsigned number = 0; number < ACTORS; number++) {
        const struct actor *actor = &state->actors[number];
        struct state next = *state;
        if (setting.disk_fills && !state->refusals && actor->place == WRITE_FIRST_HALF) {
            refuse_block(&next, &next.actors[number]);
            schedules += explore(&next);
        }
        if (setting.thread_ends && number == 0 && !actor->owner &&
            (actor->place == RESERVE || actor->place == FILL_B || actor->place == COMMIT)) {
            hand_over(&next, number);
            schedules += explore(&next);
        }
    }
    return schedules;
}

/* Number of schedules from here on. The search in a weakened protocol ends at its first failure. */
static double explore(const struct state *state)
{
    uint64_t key = met_key(state, sizeof(*state));
    struct met *met = met_place(key);
    if (met->key)
        return met->schedules;
    met_add(key);
    kill_here(state);
    double schedules = 0;
    bool moved = false;
    for (unsigned number = 0; number < ACTORS && !wrong(); number++) {
        struct state next = *state;
        if (!take_step(&next, number))
            continue;
        moved = true;
        schedules += explore(&next);
    }
    if (!moved && !wrong()) {
        stuck_found += state->actors[0].place != DONE || state->actors[1].place != DONE;
        /* Every attempted record is in the lanes or in the counters. */
        lost_found += (unsigned)state->committed[0] + state->committed[1] + state->dropped !=
                      2u * setting.records;
        schedules = 1;
    }
    if (!wrong())
        schedules += explore_accidents(state);
    met_place(key)->schedules = schedules;
    return schedules;
}

static double explore_setting(struct setting explored)
{
    struct state start;
    memset(&start, 0, sizeof(start));
    start.lock = NOBODY;
    for (unsigned lane = 0; lane < LANES; lane++) {
        start.actors[lane] = (struct actor){.left = explored.records};
        start.in_file[lane] = 1;
    }
    start.actors[DRAINER].place = SLEEP;
    setting = explored;
    lost_found = twice_found = torn_found = order_found = stuck_found = 0;
    double schedules = explore(&start);
    met_forget();
    return schedules;
}

/* ---- the statements -------------------------------------------------------------------------- */

static bool prove(void)
{
    const struct setting settings[] = {
        {.records = 4},
        {.records = 4, .drop = true},
        {.records = 3, .disk_fills = true},
        {.records = 3, .thread_ends = true},
        {.records = 4, .grows = true},
        {.records = 3, .grows = true, .disk_fills = true, .thread_ends = true},
        {.records = 3, .drop = true, .disk_fills = true, .thread_ends = true},
    };
    double schedules = 0;
    kill_points = 0;
    for (size_t i = 0; i < sizeof(settings) / sizeof(settings[0]); i++) {
        schedules += explore_setting(settings[i]);
        if (wrong())
            break;
    }
    printf("%.3g schedules, %llu kill points, %llu lost, %llu twice", schedules, kill_points,
           lost_found, twice_found);
    if (torn_found || order_found || stuck_found)
        printf(", %llu torn, %llu out of order, %llu stuck", torn_found, order_found, stuck_found);
    printf("\n");
    return !wrong();
}

static bool weakening_is_noticed(enum weakness weakness)
{
    explore_setting((struct setting){.weakness = weakness,
                                     .records = 3,
                                     .grows = weakness >= RING_BEFORE_COPY,
                                     .thread_ends = weakness == SUCCESSOR_TRUSTS_SLOT});
    if (wrong())
        return true;
    printf("not noticed: %s\n", weakness_names[weakness]);
    return false;
}

int main(void)
{
    bool good = prove();
    for (enum weakness weakness = SOUND + 1; weakness < WEAKNESSES; weakness++)
        good = weakening_is_noticed(weakness) && good;
    return good ? 0 : 1;
}
