/* What PyTorch's allocator reserved, against what it could have. See model.h. */
#include "base/limit.h"
#include "model/builder.h"
#include "model/model.h"
#include "replica/whatif.h"

/* A replay takes a tenth of a second or two for each million of steps, and here are five: more would be noticed. */
#define STEPS_MAX 2000000u
#define TRUSTED_SHARE 100u /* a replica that does a hundredth otherwise says nothing */

static const char best_setting[] = "expandable_segments:True";

static bool is_trusted(const struct gm_as_recorded *as)
{
    return as->equal_events >= as->events - as->events / TRUSTED_SHARE && !gm_limits_reached();
}

bool gm_model_reserved(const struct gm_model *model, struct gm_model_reserved *reserved)
{
    const struct gm_analysis *analysis = model->tables->analysis;
    struct gm_whatif whatif = {0};
    char error[128];
    if (!analysis ||
        !gm_history_of_trace(&whatif.history, analysis->trace, GM_ANY_DEVICE, error, sizeof(error)))
        return false;
    bool is_told = whatif.history.step_count <= STEPS_MAX;
    if (is_told) {
        gm_history_guess(&whatif.history);
        whatif.as_recorded = gm_replay_as_recorded(&whatif.history);
        is_told = is_trusted(&whatif.as_recorded);
    }
    if (is_told) {
        whatif.recorded = gm_replay_recorded(&whatif.history);
        whatif.bounds = gm_replay_bounds(&whatif.history);
        whatif.memory = whatif.history.capacity;
        whatif.total = whatif.history.total;
        gm_whatif_add(&whatif, best_setting, error, sizeof(error));
        gm_whatif_run(&whatif);
        *reserved = (struct gm_model_reserved){
            .device = whatif.history.device,
            .recorded = whatif.recorded.reserved_peak,
            .setting = best_setting,
            .under_setting = whatif.settings[0].outcome.reserved_peak,
            .is_refused = whatif.settings[0].outcome.out_of_memory != 0,
            .best_packing = whatif.bounds.best_packing,
            .live = whatif.bounds.live_peak,
        };
    }
    gm_whatif_free_settings(&whatif);
    gm_history_free(&whatif.history);
    return is_told;
}
