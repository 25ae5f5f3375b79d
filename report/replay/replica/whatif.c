/* See whatif.h. */
#include "replay/replica/whatif.h"
#include "base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* In the order of risk: expandable segments take nothing that other settings leave, but other processes cannot open
 * them everywhere; what rounds more wastes; what is not split can be kept for nothing; the other backend is another
 * allocator. */
static const struct {
    const char *set;
    unsigned risk;
} advices[] = {
    {"expandable_segments:True", 1},   {"roundup_power2_divisions:4", 2},
    {"roundup_power2_divisions:8", 2}, {"roundup_power2_divisions:16", 2},
    {"max_split_size_mb:1024", 3},     {"max_split_size_mb:512", 3},
    {"max_split_size_mb:256", 3},      {"max_split_size_mb:128", 3},
    {"max_split_size_mb:64", 3},       {"backend:cudaMallocAsync", 4},
};

static struct gm_whatif_setting *add_setting(struct gm_whatif *whatif, const char *set,
                                             unsigned risk)
{
    GM_RESERVE(whatif->settings, whatif->capacity, whatif->count + 1);
    struct gm_whatif_setting *setting = &whatif->settings[whatif->count++];
    *setting =
        (struct gm_whatif_setting){.set = set, .settings = whatif->history.settings, .risk = risk};
    return setting;
}

bool gm_whatif_add(struct gm_whatif *whatif, const char *set, char *error, size_t error_size)
{
    struct gm_whatif_setting *setting = add_setting(whatif, set, 0);
    if (!gm_allocator_settings_apply(&setting->settings, (struct gm_text){set, strlen(set)}, error,
                                     error_size))
        return false;
    if (setting->settings.memory_fraction > 0 && !whatif->total) {
        snprintf(error, error_size,
                 "per_process_memory_fraction needs the size of the device: --memory SIZE");
        return false;
    }
    return true;
}

void gm_whatif_add_all(struct gm_whatif *whatif)
{
    char error[128];
    for (size_t i = 0; i < sizeof(advices) / sizeof(advices[0]); i++) {
        struct gm_whatif_setting *setting = add_setting(whatif, advices[i].set, advices[i].risk);
        struct gm_text text = {advices[i].set, strlen(advices[i].set)};
        gm_allocator_settings_apply(&setting->settings, text, error, sizeof(error));
        if (gm_allocator_settings_are_equal(&setting->settings, &whatif->history.settings))
            whatif->count--; /* it was set */
    }
}

void gm_whatif_run(struct gm_whatif *whatif)
{
    for (size_t i = 0; i < whatif->count; i++)
        whatif->settings[i].outcome = gm_replay_under(
            &whatif->history, &whatif->settings[i].settings, whatif->memory, whatif->total);
}

void gm_whatif_name_places(struct gm_whatif *whatif, gm_whatif_place *place_of, void *argument)
{
    for (size_t i = 0; i < whatif->count; i++) {
        struct gm_whatif_setting *one = &whatif->settings[i];
        if (one->outcome.out_of_memory)
            one->place = place_of(argument, &whatif->history.steps[one->outcome.refused_step]);
    }
}

struct gm_whatif_loss gm_whatif_loss(const struct gm_whatif *whatif)
{
    uint64_t peak = whatif->recorded.reserved_peak, packed = whatif->bounds.best_packing;
    uint64_t best = peak;
    for (size_t i = 0; i < whatif->count; i++) {
        const struct gm_whatif_setting *one = &whatif->settings[i];
        if (!one->outcome.out_of_memory && !one->settings.async &&
            one->outcome.reserved_peak < best)
            best = one->outcome.reserved_peak;
    }
    struct gm_whatif_loss loss = {.fragmentation = peak > packed ? peak - packed : 0};
    loss.avoidable = peak - best < loss.fragmentation ? peak - best : loss.fragmentation;
    return loss;
}

void gm_whatif_free_settings(struct gm_whatif *whatif)
{
    for (size_t i = 0; i < whatif->count; i++)
        free(whatif->settings[i].place);
    free(whatif->settings);
    whatif->settings = NULL;
    whatif->count = whatif->capacity = 0;
}

bool gm_whatif_helps(const struct gm_whatif *whatif, const struct gm_whatif_setting *setting)
{
    uint64_t recorded = whatif->recorded.reserved_peak;
    return setting->outcome.out_of_memory == 0 &&
           (setting->outcome.reserved_peak <= recorded - recorded / 100 ||
            whatif->recorded.out_of_memory);
}

static const struct gm_whatif *ranked; /* qsort passes no argument */

static int by_merit(const void *left, const void *right)
{
    const struct gm_whatif_setting *a = left, *b = right;
    bool a_helps = gm_whatif_helps(ranked, a), b_helps = gm_whatif_helps(ranked, b);
    if (a_helps != b_helps)
        return a_helps ? -1 : 1;
    if ((a->outcome.out_of_memory == 0) != (b->outcome.out_of_memory == 0))
        return a->outcome.out_of_memory == 0 ? -1 : 1;
    if (a_helps && a->risk != b->risk)
        return a->risk < b->risk ? -1 : 1;
    if (a->outcome.reserved_peak != b->outcome.reserved_peak)
        return a->outcome.reserved_peak < b->outcome.reserved_peak ? -1 : 1;
    return strcmp(a->set, b->set);
}

void gm_whatif_rank(struct gm_whatif *whatif)
{
    ranked = whatif;
    if (whatif->count)
        qsort(whatif->settings, whatif->count, sizeof(*whatif->settings), by_merit);
}
