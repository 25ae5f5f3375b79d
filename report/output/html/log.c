/* See log.h. An event is a row of LEB128 numbers: twice the nanoseconds since the event before, and one for an end;
 * place; size; of a begin the distance from the latest one's address, of an end how many lives began since. */
#include "output/html/log.h"
#include "base/memory.h"
#include <stdlib.h>
#include <string.h>

#define EVENT_MAX 40u /* bytes: four numbers */

static unsigned char *put_packed(unsigned char *at, uint64_t value)
{
    for (; value >= 0x80; value >>= 7)
        *at++ = (unsigned char)(value | 0x80);
    *at++ = (unsigned char)value;
    return at;
}

static uint64_t get_packed(const unsigned char **at)
{
    uint64_t value = 0;
    for (unsigned shift = 0;; shift += 7) {
        unsigned char byte = *(*at)++;
        value |= (uint64_t)(byte & 0x7f) << shift;
        if (byte < 0x80)
            return value;
    }
}

/* ---- writing --------------------------------------------------------------------------------- */

struct birth {
    uint64_t time_ns, size;
};

struct writing {
    struct gm_html_log *log;
    size_t capacity, life_capacity, birth_capacity;
    struct birth *births; /* by life */
    uint64_t time_ns, address;
    uint64_t duration_ns;
    bool overflowed;
};

static uint16_t life_of(const struct writing *writing, const struct birth *birth, uint64_t end_ns,
                        unsigned left)
{
    uint64_t time = end_ns > birth->time_ns ? end_ns - birth->time_ns : 0;
    double product = ((double)birth->size + 1) * ((double)time + 1);
    unsigned temporary = !left && time < writing->duration_ns / 100 ? GM_HTML_TEMPORARY : 0;
    uint64_t bits;
    memcpy(&bits, &product, sizeof(bits));
    return (uint16_t)((bits >> 48) - 0x3ff0 + temporary + left); /* from 1 to 2^128: 0 to 0x80f */
}

static void write_event(struct writing *writing, const struct gm_model_event *event, uint64_t size,
                        uint64_t last)
{
    struct gm_html_log *log = writing->log;
    uint64_t passed = event->time_ns > writing->time_ns ? event->time_ns - writing->time_ns : 0;
    GM_RESERVE(log->bytes, writing->capacity, log->size + EVENT_MAX);
    unsigned char *at = log->bytes + log->size;
    at = put_packed(at, passed << 1 | (event->what == GM_MODEL_ENDS));
    at = put_packed(at, event->place);
    at = put_packed(at, size);
    at = put_packed(at, last);
    log->size = (size_t)(at - log->bytes);
    log->steps++;
    writing->time_ns += passed;
}

static void begin_life(struct writing *writing, const struct gm_model_event *event)
{
    struct gm_html_log *log = writing->log;
    uint64_t distance = event->address - writing->address;
    GM_RESERVE(writing->births, writing->birth_capacity, log->count + 1);
    GM_RESERVE(log->lives, writing->life_capacity, log->count + 1);
    writing->births[log->count] = (struct birth){event->time_ns, event->size};
    log->lives[log->count++] = GM_HTML_LEFT;
    write_event(writing, event, event->size, distance << 1 ^ (0 - (distance >> 63)));
    writing->address = event->address;
}

static void log_event(void *argument, const struct gm_model_event *event)
{
    struct writing *writing = argument;
    struct gm_html_log *log = writing->log;
    if (gm_model_note_mark(&log->marks, event))
        return;
    bool begins = event->what == GM_MODEL_BEGINS;
    if (log->steps >= GM_NONE - 1 || (event->life < log->count) == begins) {
        writing->overflowed = true;
        return;
    }
    if (begins) {
        begin_life(writing, event);
        return;
    }
    const struct birth *birth = &writing->births[event->life];
    if (event->what == GM_MODEL_ENDS) {
        log->lives[event->life] = life_of(writing, birth, event->time_ns, 0);
        write_event(writing, event, birth->size, log->count - 1 - event->life);
    } else {
        uint32_t before = gm_map_get(&log->undone, event->life);
        gm_map_set(&log->undone, event->life, before == GM_NONE ? 1 : before + 1);
        log->lives[event->life] = GM_HTML_LEFT;
    }
}

bool gm_html_log_make(struct gm_html_log *log, const struct gm_model *model, uint64_t duration_ns)
{
    *log = (struct gm_html_log){0};
    struct writing writing = {.log = log, .duration_ns = duration_ns ? duration_ns : 1};
    bool whole = gm_model_events(model, NULL, log_event, &writing) && !writing.overflowed;
    for (size_t i = 0; i < log->count; i++)
        if (log->lives[i] == GM_HTML_LEFT)
            log->lives[i] =
                life_of(&writing, &writing.births[i], writing.duration_ns, GM_HTML_LEFT);
    free(writing.births);
    if (!whole)
        gm_html_log_free(log);
    return whole;
}

void gm_html_log_free(struct gm_html_log *log)
{
    free(log->bytes);
    free(log->lives);
    gm_map_free(&log->undone);
    gm_model_marks_free(&log->marks);
    *log = (struct gm_html_log){0};
}

/* ---- reading --------------------------------------------------------------------------------- */

static bool is_undone(const struct gm_html_log *log, struct gm_html_walk *walk)
{
    uint32_t undone = gm_map_get(&log->undone, walk->event.life);
    if (!walk->event.ends || undone == GM_NONE)
        return false;
    uint32_t met = gm_map_get(&walk->undone, walk->event.life);
    met = met == GM_NONE ? 1 : met + 1;
    gm_map_set(&walk->undone, walk->event.life, met);
    return met <= undone;
}

bool gm_html_next(const struct gm_html_log *log, struct gm_html_walk *walk)
{
    struct gm_html_event *event = &walk->event;
    do {
        if (walk->at == log->size) {
            gm_map_free(&walk->undone);
            return false;
        }
        const unsigned char *at = log->bytes + walk->at;
        uint64_t first = get_packed(&at);
        event->step += walk->at != 0;
        event->ends = first & 1;
        event->time_ns += first >> 1;
        event->place = (uint32_t)get_packed(&at);
        event->size = get_packed(&at);
        uint64_t last = get_packed(&at);
        if (event->ends) {
            event->life = walk->begun - 1 - (uint32_t)last;
        } else {
            event->life = walk->begun++;
            event->address += last >> 1 ^ (0 - (last & 1));
        }
        walk->at = (size_t)(at - log->bytes);
    } while (is_undone(log, walk));
    return true;
}
