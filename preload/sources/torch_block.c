/*
 * See torch_block.h.
 *
 * Right before the call PyTorch loads the arguments from its structure of the block, so that can be
 * read then, and the address is still where the compiler had it: in rax, or in the caller's frame.
 * Where that is does not change for one call instruction, so it is learned at its first calls.
 * Nothing is ever read in a page of which the kernel did not say once that it is there (PyTorch's
 * structures lie in few pages, which are remembered), and a structure counts only if it holds the
 * address, the size and the device that are reported:
 *
 *     device, stream, the streams that used it, size, size asked for, pool, address,
 *     two flags, neighbour, neighbour, events that it waits for
 *
 * as in PyTorch 2.1 to 2.15. `size` lies at 48 or 56: that is learned, too. After AGREED calls of
 * one instruction only that place is looked at, and compared all the same. One that contradicts
 * ends it: nothing more is read for this instruction.
 *
 * In a free the block was joined with its neighbours already, or waits: it holds what is reported.
 */
#include "sources/torch_block.h"
#include "base/platform.h"
#include "stack/native/stack_bounds.h"
#include <string.h>

#define SITES 4u        /* call instructions, of each kind: PyTorch has one, and one if inlined */
#define AGREED 8u       /* calls after which a site is known */
#define TRIES 200u      /* calls after which no more is tried */
#define FRAME_WORDS 32u /* of the caller, in which the address is looked for */
#define WORDS 22u       /* of a structure that are read */
#define FIRST_SIZE 3u   /* words before `size`, at least and at most */
#define LAST_SIZE 12u
#define GRAIN 512u            /* all sizes and places are multiples of it */
#define ALLOCATOR_SIZE 16384u /* bytes: in which the common pools lie; it has 2 to 3 KiB */
#define EVENTS_MAX 4096u      /* a block waits for fewer */
#define PAGES_KEPT 1024u      /* pages that could be read; a power of two */

/* Words of the structure, counted from `size`. */
enum { REQUESTED = 1, POOL = 2, ADDRESS = 3, FLAGS = 4, EVENTS = 7 };

/* What is known of a call instruction, in one word. */
struct knowledge {
    uint8_t place;  /* 0 nothing, 1 the register, 2 + n word n of the frame, REFUSED */
    uint8_t size;   /* the word of the structure that has the size */
    uint8_t agreed; /* calls that agreed so far */
    uint8_t tries;
};

enum { REFUSED = 255 };

struct site {
    _Atomic uint64_t code; /* return address; 0: not in use */
    _Atomic(struct knowledge) known;
};

/* How a structure is compared with a report. */
typedef bool compare(const uint64_t *words, unsigned size, const struct gm_torch_report *report);

static struct site given[SITES], returned[SITES];
static _Atomic uint64_t readable[PAGES_KEPT]; /* numbers of pages, by their low bits; 0: none */
static _Atomic unsigned size_word;            /* by the sites in `given`; 0: not known */

static struct site *site_of_code(struct site *sites, uint64_t code)
{
    for (unsigned i = 0; i < SITES; i++) {
        uint64_t there = atomic_load_explicit(&sites[i].code, memory_order_relaxed);
        if (there == 0)
            atomic_compare_exchange_strong(&sites[i].code, &there, code);
        if (there == code || there == 0)
            return &sites[i];
    }
    return NULL;
}

/* Reads another's frame, of which a sanitizer knows otherwise. */
static inline __attribute__((no_sanitize("address", "thread"))) uint64_t
value_at(const struct gm_torch_caller *caller, unsigned place)
{
    return place == 1 ? caller->held : caller->frame[place - 2];
}

static inline bool may_be_block(uint64_t value)
{
    return value % sizeof(uint64_t) == 0 && value >> 16 != 0 && value >> 47 == 0;
}

static inline bool is_page_readable(uint64_t address)
{
    const uint64_t page = address / GM_TRACE_PAGE;
    _Atomic uint64_t *asked = &readable[page % PAGES_KEPT];
    if (gm_likely(atomic_load_explicit(asked, memory_order_relaxed) == page))
        return true;
    if (!gm_page_is_readable(address))
        return false;
    atomic_store_explicit(asked, page, memory_order_relaxed);
    return true;
}

static inline bool is_readable(uint64_t value)
{
    return may_be_block(value) && is_page_readable(value) &&
           is_page_readable(value + (WORDS - 1) * sizeof(uint64_t));
}

static inline uint32_t events_of(const uint64_t *words, unsigned size)
{
    return (uint32_t)words[size + EVENTS];
}

/* What holds of a block that is given out, and of one that was given back. */
static inline bool agrees(const uint64_t *words, unsigned size,
                          const struct gm_torch_report *report)
{
    return (int8_t)words[0] == report->device && words[size + REQUESTED] - 1 < report->size &&
           words[size + POOL] != 0 && words[size] % GRAIN == 0 &&
           words[size + ADDRESS] % GRAIN == 0;
}

static inline bool agrees_given(const uint64_t *words, unsigned size,
                                const struct gm_torch_report *report)
{
    return words[size] == report->size && words[size + ADDRESS] == report->address &&
           events_of(words, size) == 0 && agrees(words, size, report);
}

/* It may hold free neighbours by now. */
static inline bool agrees_returned(const uint64_t *words, unsigned size,
                                   const struct gm_torch_report *report)
{
    uint64_t before = report->address - words[size + ADDRESS];
    bool is_allocated = (uint8_t)words[size + FLAGS];
    return before < words[size] && report->size <= words[size] - before &&
           words[size + ADDRESS] != 0 && !is_allocated && events_of(words, size) < EVENTS_MAX &&
           agrees(words, size, report);
}

/* Looks at one place. Returns the words of the structure, NULL if there is none. */
static const uint64_t *look_at_site(const struct gm_torch_caller *caller, unsigned place,
                                    const struct gm_torch_report *report, compare *agree,
                                    struct knowledge *known)
{
    uint64_t value = value_at(caller, place);
    if (!is_readable(value))
        return NULL;
    const uint64_t *words = (const uint64_t *)(uintptr_t)value;
    unsigned least = known->size ? known->size : FIRST_SIZE;
    unsigned most = known->size ? known->size : LAST_SIZE;
    for (unsigned size = least; size <= most; size++) {
        if (!agree(words, size, report))
            continue;
        known->size = (uint8_t)size;
        known->place = (uint8_t)place;
        return words;
    }
    return NULL;
}

/* A call of a site that is not known yet. `size`: the word that has the size, if it is known from elsewhere, else 0. */
static __attribute__((noinline, cold)) const uint64_t *
learn(struct site *site, const struct gm_torch_caller *caller, const struct gm_torch_report *report,
      compare *agree, unsigned size, unsigned *size_at)
{
    struct knowledge before = atomic_load_explicit(&site->known, memory_order_relaxed);
    struct knowledge known = before;
    const uint64_t *words = NULL;
    known.size = size ? (uint8_t)size : known.size;
    if (known.place)
        words = look_at_site(caller, known.place, report, agree, &known);
    known.agreed = words ? known.agreed + 1 : 0;
    known.size = words || size ? known.size : 0;
    for (unsigned place = 1; !words && place < FRAME_WORDS + 2; place++)
        words = look_at_site(caller, place, report, agree, &known);
    *size_at = known.size;
    known.tries++;
    if (known.tries >= TRIES)
        known.place = REFUSED;
    else if (!words)
        known.place = 0;
    if (words && agree == agrees_given)
        atomic_store_explicit(&size_word, known.size, memory_order_relaxed);
    atomic_compare_exchange_strong(&site->known, &before, known);
    return words;
}

/* The words of the block's structure; NULL: not found. */
static inline const uint64_t *find_torch_site(struct site *sites,
                                              const struct gm_torch_caller *caller,
                                              const struct gm_torch_report *report, compare *agree,
                                              unsigned size, unsigned *size_at)
{
    struct site *site = site_of_code(sites, caller->code);
    if (gm_unlikely(site == NULL))
        return NULL;
    struct knowledge known = atomic_load_explicit(&site->known, memory_order_relaxed);
    if (gm_unlikely(known.place == REFUSED))
        return NULL;
    if (gm_unlikely(known.agreed < AGREED))
        return learn(site, caller, report, agree, size, size_at);
    *size_at = known.size;
    uint64_t value = value_at(caller, known.place);
    const uint64_t *words = (const uint64_t *)(uintptr_t)value;
    if (gm_likely(is_readable(value) && agree(words, known.size, report)))
        return words;
    known.place = REFUSED;
    atomic_store_explicit(&site->known, known, memory_order_relaxed);
    return NULL;
}

bool gm_torch_block_given(const struct gm_torch_caller *caller,
                          const struct gm_torch_report *report, struct gm_torch_told *told)
{
    unsigned size = 0;
    const uint64_t *words = find_torch_site(given, caller, report, agrees_given, 0, &size);
    if (words == NULL)
        return false;
    uint32_t pool = (uint32_t)(words[size + POOL] / sizeof(uint64_t));
    *told = (struct gm_torch_told){
        .requested = words[size + REQUESTED],
        .stream = words[1],
        .pool = pool ? pool : 1,
        .is_common = words[size + POOL] - caller->allocator < ALLOCATOR_SIZE,
    };
    return true;
}

enum gm_block_end gm_torch_block_returned(const struct gm_torch_caller *caller,
                                          const struct gm_torch_report *report)
{
    unsigned known = atomic_load_explicit(&size_word, memory_order_relaxed), size = 0;
    if (known == 0)
        return GM_BLOCK_END_UNTOLD;
    const uint64_t *words =
        find_torch_site(returned, caller, report, agrees_returned, known, &size);
    if (words == NULL)
        return GM_BLOCK_END_UNTOLD;
    return events_of(words, size) ? GM_BLOCK_END_WAITS : GM_BLOCK_END_AT_ONCE;
}
