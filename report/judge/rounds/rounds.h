/* What grows from round to round, told from the run itself.
 *
 * A stream is all allocations of one sort on one device. Its clock counts them: programs work at any
 * pace, but a loop allocates the same in each round. Within it, what is told apart is the place: one
 * line of the program, on whatever way it was reached.
 *
 * A place grows if the *least* that it holds rises: what a round takes and gives back does not count,
 * and neither does a cache that is full. The growth is looked at in its window: from the last moment at
 * which the place held its least to the last one at which it held less than nine tenths of what it holds
 * in the end. In each of the window's four parts the least must be more than in the part before. So it
 * does not matter how many of a place's blocks stay, whether each is replaced by a larger one, or which
 * call path led there. How sure it is that nothing bounds the growth is a matter of evidence: a few pieces that do not
 * depend on each other (enum gm_round_evidence).
 *
 * Users of one helper (a buffer class in C++, a function that allocates) share its line. Where a line is reached
 * on several ways, each way is a place, too: one can grow beside much that does not. If the line itself grows,
 * its ways are not told again; they only say on which of them. Where many lines grow by little, the stream
 * as a whole is told.
 *
 * Looked at are two moments: the first request that a stream could not serve, and the last
 * allocation, before a program that ends gives everything back.
 *
 * Memory nodes of a graph whose launches are booked many at a time do not tick: they free all.
 *
 * A few additions for each birth and death. Memory: 88 bytes for each of the first GM_ROUND_SITES
 * distinct stacks, 2 KiB for each of the first GM_ROUND_PLACES places, of which ways are at most half.
 */
#ifndef GPUMEM_REPORT_ROUNDS_ROUNDS_H
#define GPUMEM_REPORT_ROUNDS_ROUNDS_H

#include "base/map.h"
#include "judge/rounds/trail.h"
#include "names/stacks/category.h"
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    GM_ROUND_PARTS = 4,
    GM_ROUND_SITES = 1 << 16,  /* further ones are not watched */
    GM_ROUND_PLACES = 1 << 13, /* likewise */
    GM_ROUND_SPLITS =
        1 << 8, /* lines whose ways are told apart: each costs a walk over all sites */
};

enum gm_round_sort {
    GM_ROUND_BLOCKS, /* blocks of a framework's pool */
    GM_ROUND_OWN,    /* memory that the program took itself */
    GM_ROUND_CACHED, /* that a framework's allocator took: segments, or each tensor's memory */
    GM_ROUND_SORTS,  /* from here on: not looked at */
};

/* What a stack does: one for each place of activity.h. */
struct gm_round_site {
    struct gm_round_stream *stream; /* NULL: of none */
    struct gm_round_place *place;   /* NULL: of none that is watched */
    struct gm_round_place *way;     /* to it, a place as well; NULL: its line has but one way */
    enum gm_category category;
    uint64_t live;   /* bytes */
    uint64_t before; /* bytes just after the allocation that began tick `tick` */
    uint64_t tick;   /* of the last free */
    uint64_t births;
    uint64_t large; /* births about as large as the largest: one call can make several arrays */
    uint64_t least, largest; /* bytes of one birth */
    uint64_t first, last;    /* ticks of its first and its last birth */
    uint64_t longest;        /* ticks between two births, at most */
};

/* A line of the program, or one way to it, in one stream. */
struct gm_round_place {
    uint16_t stream; /* number + 1 */
    uint8_t category;
    bool grows;            /* was found to */
    bool is_split;         /* of a line: its ways are places */
    uint32_t line;         /* of a way: the place that is its line; of a line: GM_NONE */
    uint64_t first_way;    /* of a line: the way on which it was reached first */
    uint64_t live, before; /* as of a site */
    uint64_t tick;         /* of the last change */
    uint64_t births;
    uint64_t deaths, deaths_before; /* as `live` and `before` */
    uint64_t oldest,
        oldest_before; /* ticks that something freed had lived for, at most, to the bucket */
    uint64_t first;    /* tick of the first birth */
    uint64_t largest,
        longer;       /* bytes of one birth, and the tick of the last that was the largest yet */
    uint64_t records; /* births that were the largest yet */
    struct gm_trail trail;
};

/* What the stream had done until the end of a bucket of its trail. */
struct gm_round_past {
    uint64_t time; /* record clock */
    uint64_t frees;
    uint64_t copies;
    uint64_t graphs;
    uint64_t gradients; /* allocations of backward passes */
};

struct gm_round_stream {
    int device;
    enum gm_round_sort sort;
    uint64_t clock;               /* allocations until now */
    uint64_t frees, frees_before; /* as `live` and `before` */
    uint64_t gradients;           /* allocations of backward passes */
    uint64_t live, before;
    uint64_t peak;
    uint64_t time; /* of the last allocation, record clock */
    struct gm_trail trail;
    struct gm_round_past past[GM_TRAIL_BUCKETS]; /* [bucket of `trail`] */
    unsigned past_shift;
    bool refused;           /* a request was not served: */
    uint64_t refused_clock; /* the first, when the clock said so */
    struct {                /* the last: */
        uint64_t clock;
        uint64_t live; /* bytes */
        struct gm_trail trail;
    } refusal;
};

/* What speaks for growth that nothing bounds, and against it; judge.c has the rule of each. */
enum gm_round_evidence {
    /* rounds ended while it grew: */
    GM_ROUND_FREED = 1u << 0,    /* most of what was allocated meanwhile was freed meanwhile */
    GM_ROUND_FELL = 1u << 1,     /* all memory fell by much, as at the end of a round */
    GM_ROUND_COPIED = 1u << 2,   /* copies were made as loops make them */
    GM_ROUND_BACKWARD = 1u << 3, /* backward passes ended */
    /* more: */
    GM_ROUND_REFUSED = 1u << 4,   /* memory ran out while it grew */
    GM_ROUND_FORGOTTEN = 1u << 5, /* what is made here is freed soon, or never */
    /* something may bound it: */
    GM_ROUND_REPLACED =
        1u << 6,             /* a few blocks, each replaced by a larger one: one request does so */
    GM_ROUND_READ = 1u << 7, /* all of it, or samples, were joined: it is collected to be used */
    GM_ROUND_RETURNED = 1u << 8,  /* the program gave all of it back before its end */
    GM_ROUND_SLOWS = 1u << 9,     /* less and less was added, as to a cache that fills */
    GM_ROUND_OF_MODEL = 1u << 10, /* weights, gradients, or an optimizer's state for them */
    GM_ROUND_STOPPED = 1u << 11,  /* it did not go on to the end */
    GM_ROUND_GRAPHS = 1u << 13,   /* graphs were made meanwhile: their inputs and outputs stay */
    GM_ROUND_VARIES = 1u << 12,   /* the sizes of what else is made differ: inputs may get longer */
    GM_ROUND_FEW = 1u << 14,      /* no stack of it allocated often enough to tell rounds by */

    GM_ROUND_ROUNDS = GM_ROUND_FREED | GM_ROUND_FELL | GM_ROUND_COPIED | GM_ROUND_BACKWARD,
    GM_ROUND_MEANT = GM_ROUND_OF_MODEL | GM_ROUND_STOPPED | GM_ROUND_GRAPHS,
};

/* How sure it is that nothing bounds what grows. */
enum gm_round_weight {
    GM_ROUND_NOTE,    /* a long pass, or a buffer that is not full yet, looks the same */
    GM_ROUND_WARNING, /* rounds did end in between, and nothing speaks for a bound */
    GM_ROUND_CERTAIN, /* memory ran out by it, or activations outlived many backward passes */
};

/* A place that grows, at one of the two moments. */
struct gm_round_growth {
    uint32_t site;  /* of activity: its stack with most bytes */
    uint32_t place; /* number; GM_NONE: the stream as a whole */
    uint32_t line;  /* number of its line's place: itself, if it is no way */
    bool differs;   /* other ways to that line do not grow */
    enum gm_category category;
    int device;
    enum gm_round_sort sort;
    enum gm_round_weight weight;
    unsigned evidence; /* enum gm_round_evidence */
    bool at_refusal;   /* else: at the last allocation */
    bool goes_on;      /* it grew until then, or nearly */
    uint64_t bytes;    /* held in the end */
    uint64_t gain;     /* of them, more than when the window began */
    uint64_t rise;     /* of the least held, from the first part of the window to the last; bytes */
    uint64_t blocks;   /* allocated there until then */
    uint64_t alive;    /* of them, at that moment */
    uint64_t oldest;   /* ticks that a block freed there had lived for, at most */
    unsigned parts,
        rose;       /* parts into which the window can be cut, and those in which the least rose */
    uint64_t since; /* time of the window's begin, record clock */
    uint64_t until; /* of its end */
    uint64_t last;  /* of the stream's last allocation */
    uint64_t begin, end; /* the window, in ticks */
    uint64_t ticks;      /* the stream's clock at that moment */
    uint64_t frees;      /* of the stream, in the window */
    uint64_t fall;       /* how far the stream's total fell below a peak in it */
    uint64_t copies;     /* that loops make, in the window */
    uint64_t rounds;     /* in the window; 0: not to be told */
    uint64_t before;     /* bytes that the stream held when the window began */
    uint64_t total;      /* bytes that the stream holds at that moment */
    uint64_t peak;       /* of the stream until then */
};

/* All zero: nothing yet. */
struct gm_rounds {
    struct gm_round_site *sites; /* [number] */
    size_t site_capacity;
    size_t site_count;
    struct gm_round_place **places;
    size_t place_capacity;
    size_t place_count;
    struct gm_map by_line; /* line and stream -> place */
    struct gm_map by_way;  /* line's place and way -> place */
    size_t split_count;
    struct gm_round_stream **streams;
    size_t stream_capacity;
    size_t stream_count;
    struct gm_map by_device;       /* device and sort -> stream */
    uint64_t copies;               /* that loops make */
    uint64_t graphs;               /* made to be launched */
    struct gm_round_growth *found; /* most severe first, then most bytes; each place once */
    size_t found_capacity;
    size_t found_count;
};

/* What must be known of a new site. */
struct gm_round_birthplace {
    int device;
    enum gm_round_sort sort;
    enum gm_category category;
    uint64_t line; /* tells lines apart */
    uint64_t way;  /* and this the ways to one */
};

/* Site number `site`, which follows the one added last, allocates for the first time. */
void gm_rounds_add_site(struct gm_rounds *rounds, uint32_t site,
                        const struct gm_round_birthplace *birthplace);

/* Memory comes and goes at a site; `time`, and that of its `birth`, are on the record clock. */
void gm_rounds_alloc(struct gm_rounds *rounds, uint32_t site, uint64_t size, uint64_t time);
void gm_rounds_free(struct gm_rounds *rounds, uint32_t site, uint64_t size, uint64_t birth);

/* The last free of this site was none. */
void gm_rounds_unfree(struct gm_rounds *rounds, uint32_t site, uint64_t size);

/* A copy that tells of a round: from the device, or into memory that had been filled from there. */
static inline void gm_rounds_copy(struct gm_rounds *rounds)
{
    rounds->copies++;
}

/* A graph was made to be launched. */
static inline void gm_rounds_graph(struct gm_rounds *rounds)
{
    rounds->graphs++;
}

/* A request was refused. */
void gm_rounds_refuse(struct gm_rounds *rounds, int device, enum gm_round_sort sort);

/* Nothing comes any more. */
void gm_rounds_finish(struct gm_rounds *rounds);

/* Whether growth, at the moment of a refusal, is large enough to be named beside it. */
bool gm_rounds_is_of_refusal(const struct gm_round_growth *growth);

/* Whether what a place holds does not grow, as far as it can be told. */
bool gm_rounds_is_steady(const struct gm_round_place *place);

void gm_rounds_free_all(struct gm_rounds *rounds);

/* Adds what grows in stream number `stream` - 1 to `found`. Places found before are replaced if more
 * is certain now. */
void gm_rounds_judge(struct gm_rounds *rounds, uint16_t stream, bool at_refusal);

#endif
