/* What PyTorch's allocator reserved, against what it could have. See model.h. */
#include "base/limit.h"
#include "model/builder.h"
#include "model/model.h"
#include "replay/replica/whatif.h"

/* A replay takes a tenth of a second for each half million of blocks, and here are five: more would be noticed,
 * as would the list of all steps. */
#define BLOCKS_MAX 1000000u
#define TRUSTED_SHARE 100u /* a replica that does a hundredth otherwise says nothing */

static const char best_setting[] = "expandable_segments:True";

/* The device of all blocks; GM_ANY_DEVICE: there are several. */
static int device_of_blocks(const struct gm_blocks *blocks)
{
    int found = GM_ANY_DEVICE;
    for (int device = 0; device < GM_DEVICES - 1; device++) {
        if (!blocks->device[device + 1].allocs)
            continue;
        if (found != GM_ANY_DEVICE)
            return GM_ANY_DEVICE;
        found = device;
    }
    return found;
}

bool gm_model_reserved(const struct gm_model *model, struct gm_model_reserved *reserved)
{
    const struct gm_analysis *analysis = model->tables->analysis;
    struct gm_whatif whatif = {0};
    char error[128];
    if (!analysis || !analysis->blocks.allocs || analysis->blocks.allocs > BLOCKS_MAX ||
        !gm_history_of_trace(&whatif.history, analysis->trace, device_of_blocks(&analysis->blocks),
                             error, sizeof(error)))
        return false;
    bool is_told = gm_replay_is_trusted(&whatif.history, TRUSTED_SHARE) && !gm_limits_reached();
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
