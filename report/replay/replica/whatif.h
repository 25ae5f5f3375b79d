/* The answers of `gpumem whatif`: a history under the settings that were asked for, or under all that make sense. */
#ifndef GPUMEM_REPORT_REPLICA_WHATIF_H
#define GPUMEM_REPORT_REPLICA_WHATIF_H

#include "replay/replica/replay.h"

struct gm_whatif_setting {
    const char *set; /* as it was asked for, clean */
    struct gm_allocator_settings settings;
    struct gm_outcome outcome;
    unsigned risk; /* of an advice: 0 changes least */
    char *
        place; /* "file:line" of the first request refused, clean; NULL: none, or not known. Freed with it */
};

/* What was reserved beyond need at the recorded peak. */
struct gm_whatif_loss {
    uint64_t fragmentation; /* bytes: recorded less the best packing */
    uint64_t avoidable;     /* of these, by the best setting of the list that refuses nothing */
};

struct gm_whatif {
    struct gm_history history;
    struct gm_recorded recorded;
    struct gm_as_recorded as_recorded;
    struct gm_bounds bounds;
    struct gm_whatif_setting *settings;
    size_t count, capacity;
    uint64_t memory; /* bytes that the allocator can have; 0: without limit */
    uint64_t total;  /* of the device; 0 unknown */
};

/* Adds settings on top of those recorded. False with a line in `error`. */
bool gm_whatif_add(struct gm_whatif *whatif, const char *set, char *error, size_t error_size);

/* Adds all that make sense. */
void gm_whatif_add_all(struct gm_whatif *whatif);

/* Replays the history under each of them. */
void gm_whatif_run(struct gm_whatif *whatif);

/* Asks `place_of` for the place of each first refusal; it returns a text to be freed, or NULL. */
typedef char *gm_whatif_place(void *argument, const struct gm_step *step);
void gm_whatif_name_places(struct gm_whatif *whatif, gm_whatif_place *place_of, void *argument);

/* What was lost, by `recorded`, `bounds` and the settings, which were run. Another backend is modelled, and no answer
 * to this. */
struct gm_whatif_loss gm_whatif_loss(const struct gm_whatif *whatif);

/* Frees the settings; the history is the caller's. */
void gm_whatif_free_settings(struct gm_whatif *whatif);

/* Orders them: those first under which nothing is refused and at least a hundredth less is reserved than recorded,
 * the least risky before the others; then the rest, by what they reserve. */
void gm_whatif_rank(struct gm_whatif *whatif);

/* Whether a setting would have helped. */
bool gm_whatif_helps(const struct gm_whatif *whatif, const struct gm_whatif_setting *setting);

#endif
