/* Whether the parts of a model agree with one another (model.h). For checked builds: base/assert.h. */
#include "model/tables.h"

static bool is_stack(const struct gm_model *model, uint32_t stack)
{
    return stack < model->tables->stack_count;
}

static bool is_stack_or_none(const struct gm_model *model, uint32_t stack)
{
    return stack == GM_NONE || is_stack(model, stack);
}

static bool is_moment_or_none(const struct gm_model_run *run, uint32_t moment)
{
    return moment == GM_NONE || moment < run->moment_count;
}

/* Samples are of places, and add up to the moment's bytes; most bytes come first, but in a difference. */
static bool is_moment_valid(const struct gm_model *model, const struct gm_model_moment *moment)
{
    int64_t bytes = 0;
    for (size_t i = 0; i < moment->sample_count; i++) {
        const struct gm_model_sample *sample = &moment->samples[i];
        if (sample->place >= model->place_count ||
            (!model->is_difference && i && sample->bytes > sample[-1].bytes))
            return false;
        bytes += sample->bytes;
    }
    return bytes == moment->bytes;
}

static bool are_devices_valid(const struct gm_model_run *run)
{
    for (size_t i = 0; i < run->device_count; i++) {
        const struct gm_model_device *device = &run->devices[i];
        if (!is_moment_or_none(run, device->peak) || (i && device->id <= device[-1].id))
            return false;
    }
    return true;
}

static bool are_failures_valid(const struct gm_model *model, const struct gm_model_run *run)
{
    for (size_t i = 0; i < run->failure_count; i++)
        if (run->failures[i].place >= model->place_count ||
            !is_moment_or_none(run, run->failures[i].moment))
            return false;
    for (size_t i = 0; i < run->pool_failure_count; i++)
        if (run->pool_failures[i].place >= model->place_count ||
            !is_moment_or_none(run, run->pool_failures[i].moment))
            return false;
    for (size_t i = 0; i < run->pool_count; i++)
        if (!is_moment_or_none(run, run->pools[i].at_peak) ||
            !is_moment_or_none(run, run->pools[i].last) ||
            (run->pools[i].in_use_peak.bytes &&
             run->pools[i].in_use_peak.place >= model->place_count) ||
            !is_moment_or_none(run, run->pools[i].at_end))
            return false;
    return is_moment_or_none(run, run->pinned_peak) && is_moment_or_none(run, run->end);
}

static bool is_history_valid(const struct gm_model *model, const struct gm_model_run *run)
{
    for (size_t i = 0; i < run->phase_count; i++)
        if (run->phase_order[i] >= run->phase_count ||
            (run->phases[i].parent != GM_NONE && run->phases[i].parent >= i))
            return false;
    for (size_t i = 0; i < run->growing_count; i++)
        if (run->growing[i].place >= model->place_count)
            return false;
    for (size_t i = 0; i < run->lifetime_count; i++)
        if (run->lifetimes[i].place >= model->place_count)
            return false;
    for (size_t i = 0; i < run->transfer_count; i++)
        if (!is_stack(model, run->transfers[i].stack))
            return false;
    return true;
}

static bool are_findings_valid(const struct gm_model *model, const struct gm_model_run *run)
{
    for (size_t i = 0; i < run->finding_count; i++) {
        const struct gm_model_finding *finding = &run->findings[i];
        if (finding->code >= GM_FINDING_CODES || !finding->cause ||
            !is_stack_or_none(model, finding->stack) || !is_stack_or_none(model, finding->unlike) ||
            (i && finding->severity > finding[-1].severity))
            return false;
    }
    return true;
}

static bool is_run_valid(const struct gm_model *model, const struct gm_model_run *run)
{
    for (size_t i = 0; i < run->moment_count; i++)
        if (!is_moment_valid(model, &run->moments[i]))
            return false;
    return are_devices_valid(run) && are_failures_valid(model, run) &&
           is_history_valid(model, run) && are_findings_valid(model, run);
}

bool gm_model_is_valid(const struct gm_model *model)
{
    for (size_t i = 0; i < model->place_count; i++)
        if (!is_stack(model, model->places[i].stack) || model->places[i].kind >= GM_KINDS ||
            model->places[i].leak_class >= GM_LEAK_CLASSES ||
            !is_stack_or_none(model, model->places[i].unlike))
            return false;
    for (size_t i = 0; i < model->run_count; i++)
        if (!is_run_valid(model, &model->runs[i]))
            return false;
    return true;
}
