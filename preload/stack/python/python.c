/*
 * See python.h. The way of a walk: innermost frame first, written from the end of the thread's
 * array down, then compared from the root with what the last walk left.
 */
#include "stack/python/python.h"
#include "base/platform.h"
#include "stack/native/stack_bounds.h"
#include "stack/python/python_lines.h"
#include "stack/python/python_memory.h"
#include "stack/python/python_text.h"
#include "writer/why.h"
#include <pthread.h>
#include <string.h>

/* ---- walking --------------------------------------------------------------------------------- */

/* Where the next frame outwards is written: below `first`, `count` of `depth` frames so far. */
struct cursor {
    struct gm_python_frame *first;
    uint32_t count;
    uint32_t depth;
};

/*
 * What a code object holds, in one word. Code objects that live one after the other at one address
 * must differ in it. From 3.12 on they have numbers of their own. Before, they often have the same
 * first line and the same addresses for their names, tables and bytecode, so that what stands there
 * is looked at too; not where 3.11 has let go of the code already (see resolve).
 */
static inline __attribute__((always_inline)) uint64_t
fingerprint_of(const struct gm_python_layout *layout, uint64_t code, bool numbered)
{
    uint64_t file = gm_word(code, layout->code_filename);
    uint64_t name = gm_word(code, layout->code_name);
    uint64_t lines = gm_word(code, layout->code_lines);
    uint64_t a = file ^ (name * UINT64_C(0x9e3779b97f4a7c15));
    uint64_t b = lines ^ (gm_word(code, layout->code_more) * UINT64_C(0xbf58476d1ce4e5b9));
    if (!numbered && gm_word(code, GM_PYTHON_TYPE) == gm_python_interpreter.code_type) {
        a ^= gm_python_str_mark(layout, name) * UINT64_C(0x94d049bb133111eb);
        b ^= (gm_python_str_mark(layout, file) ^ gm_python_bytes_mark(lines)) *
             UINT64_C(0xd6e8feb86659fd93);
    }
    return a ^ (b << 32 | b >> 32) ^ ((uint64_t)gm_int(code, layout->code_first_line) << 48);
}

static inline __attribute__((always_inline)) void put(struct cursor *cursor,
                                                      const struct gm_python_layout *layout,
                                                      uint64_t code, uint32_t lasti,
                                                      uint64_t anchor, bool numbered)
{
    *--cursor->first = (struct gm_python_frame){
        .code = code,
        .fingerprint = fingerprint_of(layout, code, numbered),
        .anchor = anchor,
        .lasti = lasti,
    };
    cursor->count++;
}

/* To 3.10. As the other two, returns whether there are more frames than asked for. */
static bool walk_objects(struct cursor *cursor, const struct gm_python_layout *layout,
                         uint64_t thread_state)
{
    uint64_t cframe = layout->thread_cframe ? gm_word(thread_state, layout->thread_cframe) : 0;
    uint64_t frame = gm_word(thread_state, layout->thread_frame);
    while (frame && cursor->count < cursor->depth) {
        int32_t lasti = gm_int(frame, layout->frame_position) * layout->lasti_unit;
        put(cursor, layout, gm_word(frame, layout->frame_code), (uint32_t)lasti, cframe, false);
        if (cframe)
            cframe = gm_word(cframe, layout->cframe_previous);
        frame = gm_word(frame, layout->frame_previous);
    }
    return frame != 0;
}

/*
 * Where the bytecode begins that an interpreter frame runs. A thread's copy is where the table of
 * copies says; threads that start make the table anew, and the old one is freed when all the others
 * came by, which ours, if it is detached, does not hold up: so what comes of it is judged by the
 * caller.
 */
static inline __attribute__((always_inline)) uint64_t
bytecode_of(const struct gm_python_layout *layout, uint64_t frame, uint64_t code, bool copied)
{
    uint32_t copy = copied ? (uint32_t)gm_int(frame, layout->frame_copy) : 0;
    if (!copy)
        return code + layout->code_bytecode;
    uint64_t copies = gm_word(code, layout->code_copies);
    return copy < gm_word(copies, GM_COPIES_COUNT) ? gm_word(copies + 8 * copy, GM_COPIES_FIRST)
                                                   : 0;
}

/*
 * Puts a frame of 3.11 and later, unless it has not begun or is one of the interpreter's own (what
 * sys._getframe does not show either).
 */
static inline __attribute__((always_inline)) void
put_interpreter_frame(struct cursor *cursor, const struct gm_python_layout *layout, uint64_t frame,
                      uint8_t owner, uint64_t anchor, bool numbered, bool copied)
{
    const int64_t lineless = INT32_MAX;
    uint64_t code = gm_word(frame, layout->frame_code) & ~GM_REFERENCE_TAGS;
    int64_t lasti = (int64_t)(gm_word(frame, layout->frame_position) -
                              bytecode_of(layout, frame, code, copied));
    if (copied && (uint64_t)lasti >= 2 * gm_word(code + layout->header, GM_PYTHON_SIZE) &&
        lasti != -2)
        lasti = lineless;
    if (owner == GM_OWNER_GENERATOR || lasti >= gm_int(code, layout->code_first_trace) * 2)
        put(cursor, layout, code, (uint32_t)lasti, anchor, numbered);
}

/* 3.11. */
static bool walk_entries(struct cursor *cursor, const struct gm_python_layout *layout,
                         uint64_t thread_state)
{
    uint64_t cframe = gm_word(thread_state, layout->thread_cframe);
    uint64_t frame = gm_word(cframe, layout->cframe_frame);
    while (frame && cursor->count < cursor->depth) {
        put_interpreter_frame(cursor, layout, frame, gm_byte(frame, layout->frame_owner), cframe,
                              false, false);
        if (gm_byte(frame, layout->frame_entry) && cframe)
            cframe = gm_word(cframe, layout->cframe_previous);
        frame = gm_word(frame, layout->frame_previous);
    }
    return frame != 0;
}

/*
 * From 3.12. The loop's own frame comes after those it runs, so it is filled in behind them. The
 * frame that 3.15 keeps below all others lies in the thread state and is no loop's.
 */
static inline __attribute__((always_inline)) bool walk_shims(struct cursor *cursor,
                                                             const struct gm_python_layout *layout,
                                                             uint64_t thread_state, bool copied)
{
    uint64_t frame = layout->thread_cframe ? gm_word(gm_word(thread_state, layout->thread_cframe),
                                                     layout->cframe_frame)
                                           : gm_word(thread_state, layout->thread_frame);
    const uint64_t base = layout->thread_base ? gm_word(thread_state, layout->thread_base) : 0;
    struct gm_python_frame *anchored = cursor->first;
    bool full = false, more = false;
    for (; frame && frame != base; frame = gm_word(frame, layout->frame_previous)) {
        uint8_t owner = gm_byte(frame, layout->frame_owner);
        if (owner >= GM_OWNER_C_STACK) {
            while (anchored > cursor->first)
                (--anchored)->anchor = frame;
            if (more)
                return true;
            full = cursor->count == cursor->depth;
        } else if (full) {
            return true;
        } else if (cursor->count < cursor->depth) {
            put_interpreter_frame(cursor, layout, frame, owner, 0, true, copied);
        } else {
            more = true; /* goes on to the loop's own frame, for the anchor */
        }
    }
    return more;
}

static inline bool same_frame(const struct gm_python_frame *a, const struct gm_python_frame *b)
{
    return ((a->code ^ b->code) | (a->fingerprint ^ b->fingerprint) | (a->anchor ^ b->anchor) |
            (a->lasti ^ b->lasti)) == 0;
}

/* Moves new frames to where the next walk compares with them. */
void gm_python_keep(struct gm_python_thread *thread, struct gm_python_walk *walk)
{
    uint32_t kept = 0;
    uint32_t common = walk->count < thread->count ? walk->count : thread->count;
    if (walk->truncated == thread->truncated)
        while (kept < common && same_frame(&thread->frames[kept], &walk->frames[kept]))
            kept++;
    memcpy(&thread->frames[kept], &walk->frames[kept],
           (walk->count - kept) * sizeof(thread->frames[0]));
    thread->count = walk->count;
    thread->truncated = walk->truncated;
    walk->frames = thread->frames;
    walk->kept = kept;
}

void gm_python_take_over(struct gm_python_thread *thread)
{
    thread->count = 0;
    thread->truncated = false;
}

/*
 * To 3.11, with subinterpreters: `state` is the main interpreter's thread state of this thread, and
 * another one may run. Known is only which one runs that holds the GIL, and it is ours if it is of
 * this thread. It may be freed meanwhile if it is not.
 */
static __attribute__((noinline)) uint64_t state_among_several(uint64_t state)
{
    const unsigned thread_id = gm_python_interpreter.layout.thread_id;
    uint64_t running = (uint64_t)(uintptr_t)gm_python_interpreter.running();
    if (running == state)
        return state;
    if (!running || !gm_page_is_readable(running + thread_id) ||
        gm_word(running, thread_id) != (uint64_t)pthread_self())
        return 0;
    return running;
}

/* The calling thread's PyThreadState, 0 if there are no frames to be read. */
static inline uint64_t readable_state(struct gm_python_walk *walk)
{
    enum gm_python_status status = gm_python_status();
    if (status == GM_PYTHON_ABSENT || status == GM_PYTHON_OFF)
        return 0;
    if (gm_python_interpreter.finalizing()) {
        gm_why(GM_WHY_PYTHON_ENDING, 0, NULL);
        return 0;
    }
    uint64_t state = (uint64_t)(uintptr_t)gm_python_interpreter.thread_state();
    if (!state)
        gm_why(GM_WHY_PYTHON_NO_STATE, 0, NULL);
    if (state && gm_unlikely(status == GM_PYTHON_UNPROVEN))
        gm_python_find_main();
    if (state && gm_python_interpreter.newest &&
        gm_unlikely(gm_python_interpreter.newest() !=
                    __atomic_load_n(&gm_python_interpreter.main, __ATOMIC_RELAXED))) {
        state = state_among_several(state);
        walk->unknown = !state;
        if (!state)
            gm_why(GM_WHY_PYTHON_UNKNOWN, 0, NULL);
    }
    if (state && status == GM_PYTHON_UNPROVEN && !gm_python_prove(state)) {
        gm_why(GM_WHY_PYTHON_UNPROVEN, 0, NULL);
        return 0;
    }
    return state;
}

void gm_python_look(struct gm_python_thread *thread, uint32_t depth, struct gm_python_walk *walk)
{
    *walk = (struct gm_python_walk){.frames = thread->frames};
    uint64_t state = readable_state(walk);
    if (!state)
        return;
    const struct gm_python_layout *layout = &gm_python_interpreter.layout;
    struct cursor cursor = {
        .first = thread->frames + 2 * GM_PYTHON_DEPTH_MAX,
        .depth = depth < GM_PYTHON_DEPTH_MAX ? depth : GM_PYTHON_DEPTH_MAX,
    };
    switch ((enum gm_python_chain)layout->chain) {
    case GM_CHAIN_OBJECTS:
        walk->truncated = walk_objects(&cursor, layout, state);
        break;
    case GM_CHAIN_ENTRY:
        walk->truncated = walk_entries(&cursor, layout, state);
        break;
    case GM_CHAIN_SHIM:
        walk->truncated = walk_shims(&cursor, layout, state, false);
        break;
    case GM_CHAIN_COPIES:
        walk->truncated = walk_shims(&cursor, layout, state, true);
        break;
    }
    walk->frames = cursor.first;
    walk->count = cursor.count;
}

/* ---- interning ------------------------------------------------------------------------------- */

static uint32_t add_python_text(uint64_t object, const struct gm_python_sink *sink)
{
    struct gm_python_text text;
    gm_python_text(&gm_python_interpreter.layout, object, &text);
    return sink->add_string(text.bytes, text.size);
}

/* The frame's entry in the trace; *whole is false if its names found no room, for now or for good.
 */
static uint32_t resolve(const struct gm_python_frame *frame, const struct gm_python_sink *sink,
                        bool *whole)
{
    const struct gm_python_layout *layout = &gm_python_interpreter.layout;
    uint64_t code = frame->code;
    /* 3.11 lets go of a returning function's code while its frame is still linked: if that was the
     * last reference, its names may be gone. */
    if ((layout->chain == GM_CHAIN_ENTRY && !gm_word(code, GM_PYTHON_REFERENCES)) ||
        gm_word(code + layout->header, GM_PYTHON_TYPE) != gm_python_interpreter.code_type) {
        gm_why(GM_WHY_PYTHON_CODE_GONE, code, NULL);
        return 0;
    }
    uint64_t lines = gm_word(code, layout->code_lines) + layout->header;
    uint32_t line =
        gm_python_line(layout->lines, (const uint8_t *)(uintptr_t)lines + GM_PYTHON_BYTES_DATA,
                       gm_word(lines, GM_PYTHON_SIZE), gm_int(code, layout->code_first_line),
                       (int32_t)frame->lasti);
    uint32_t file = add_python_text(gm_word(code, layout->code_filename), sink);
    uint32_t name = add_python_text(gm_word(code, layout->code_name), sink);
    *whole = file && name;
    return sink->add_frame(file, name, line);
}

static inline struct gm_python_entry *set_of(struct gm_python_thread *thread,
                                             const struct gm_python_frame *frame)
{
    uint64_t hash = (frame->code ^ ((uint64_t)frame->lasti << 40)) * 0x9e3779b97f4a7c15u;
    return thread->known[hash >> 40 & (GM_PYTHON_SETS - 1)];
}

uint32_t gm_python_intern(struct gm_python_thread *thread, struct gm_python_frame *frame,
                          const struct gm_python_sink *sink)
{
    struct gm_python_entry *set = set_of(thread, frame);
    for (unsigned way = 0; way < GM_PYTHON_WAYS; way++)
        if (set[way].code == frame->code && set[way].fingerprint == frame->fingerprint &&
            set[way].lasti == frame->lasti)
            return frame->script = set[way].script;
    bool whole = false;
    frame->script = resolve(frame, sink, &whole);
    if (!frame->script || !whole)
        return frame->script; /* the next time there may be room */
    memmove(&set[1], &set[0], (GM_PYTHON_WAYS - 1) * sizeof(set[0])); /* the oldest goes */
    set[0] = (struct gm_python_entry){frame->code, frame->fingerprint, frame->lasti, frame->script};
    return frame->script;
}

/* ---- merging with native frames -------------------------------------------------------------- */

bool gm_python_is_eval(uint64_t pc)
{
    /* A return address: of a call that ends the function it lies one past the end. */
    return pc > gm_python_interpreter.eval_start && pc <= gm_python_interpreter.eval_end;
}

uint32_t gm_python_frames_in(const struct gm_python_frame *frames, uint32_t count, uint64_t pc,
                             uint64_t caller_sp)
{
    if (!count)
        return 0;
    if (!frames[count - 1].anchor)
        return gm_python_is_eval(pc);
    uint32_t taken = 0;
    while (taken < count && frames[count - 1 - taken].anchor &&
           frames[count - 1 - taken].anchor < caller_sp)
        taken++;
    return taken;
}
