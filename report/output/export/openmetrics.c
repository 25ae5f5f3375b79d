/* OpenMetrics 1.0 text, for Prometheus, node_exporter's textfile folder and GitLab's metrics report:
 * totals of the run, without places, so that the number of series stays small. */
#include "output/export/export.h"
#include <inttypes.h>

static void family(FILE *out, const char *name, const char *type, const char *unit,
                   const char *help)
{
    fprintf(out, "# TYPE %s %s\n", name, type);
    if (unit)
        fprintf(out, "# UNIT %s %s\n", name, unit);
    fprintf(out, "# HELP %s %s\n", name, help);
}

/* ---- allocations by device and kind ---------------------------------------------------------- */

enum column { LIVE, PEAK, ALLOCS, FREES, IMPLICIT_FREES };

static int64_t value_of(const struct gm_model_tally *tally, enum column column)
{
    const int64_t values[] = {[LIVE] = tally->live,
                              [PEAK] = tally->peak,
                              [ALLOCS] = tally->allocs,
                              [FREES] = tally->frees,
                              [IMPLICIT_FREES] = tally->implicit_frees};
    return values[column];
}

static bool is_used(const struct gm_model_tally *tally)
{
    return tally->allocs || tally->live || tally->peak;
}

static void by_kind(FILE *out, const struct gm_model_run *run, const char *sample,
                    enum column column)
{
    for (size_t i = 0; i < run->device_count; i++)
        for (unsigned kind = 0; kind <= GM_KIND_EXTERNAL; kind++) {
            const struct gm_model_tally *tally = &run->devices[i].kinds[kind];
            if (is_used(tally))
                fprintf(out, "%s{device=\"%d\",kind=\"%s\"} %" PRId64 "\n", sample,
                        run->devices[i].id, gm_kind_name(kind), value_of(tally, column));
        }
    for (unsigned kind = 0; kind < GM_KINDS; kind++)
        if (gm_kind_is_host(kind) && is_used(&run->host[kind]))
            fprintf(out, "%s{device=\"host\",kind=\"%s\"} %" PRId64 "\n", sample,
                    gm_kind_name(kind), value_of(&run->host[kind], column));
}

static void write_kinds(FILE *out, const struct gm_model_run *run)
{
    family(out, "gpumem_live_bytes", "gauge", "bytes", "Memory alive at the end of the trace.");
    by_kind(out, run, "gpumem_live_bytes", LIVE);
    family(out, "gpumem_peak_bytes", "gauge", "bytes", "Most memory of the kind at one time.");
    by_kind(out, run, "gpumem_peak_bytes", PEAK);
    family(out, "gpumem_allocations", "counter", NULL, "Successful allocation calls.");
    by_kind(out, run, "gpumem_allocations_total", ALLOCS);
    family(out, "gpumem_frees", "counter", NULL, "Allocations freed by a call.");
    by_kind(out, run, "gpumem_frees_total", FREES);
    family(out, "gpumem_implicit_frees", "counter", NULL, "Allocations that ended unasked.");
    by_kind(out, run, "gpumem_implicit_frees_total", IMPLICIT_FREES);
}

/* ---- devices --------------------------------------------------------------------------------- */

static void write_openmetrics_devices(FILE *out, const struct gm_model_run *run)
{
    family(out, "gpumem_device_live_bytes", "gauge", "bytes",
           "Memory alive on the device at the end, all kinds but external.");
    for (size_t i = 0; i < run->device_count; i++)
        if (run->devices[i].is_listed)
            fprintf(out, "gpumem_device_live_bytes{device=\"%d\"} %" PRId64 "\n",
                    run->devices[i].id, run->devices[i].all.live);
    family(out, "gpumem_device_peak_bytes", "gauge", "bytes",
           "Most memory on the device at one time, all kinds but external.");
    for (size_t i = 0; i < run->device_count; i++)
        if (run->devices[i].is_listed)
            fprintf(out, "gpumem_device_peak_bytes{device=\"%d\"} %" PRId64 "\n",
                    run->devices[i].id, run->devices[i].all.peak);
    family(out, "gpumem_device_size_bytes", "gauge", "bytes", "Memory that the device has.");
    for (size_t i = 0; i < run->device_count; i++)
        if (run->devices[i].total)
            fprintf(out, "gpumem_device_size_bytes{device=\"%d\"} %" PRIu64 "\n",
                    run->devices[i].id, run->devices[i].total);
}

static void write_pools(FILE *out, const struct gm_model_run *run)
{
    static const struct {
        const char *name;
        const char *help;
        size_t offset;
    } gauges[] = {
        {"gpumem_pool_live_bytes", "Memory in blocks of the framework's pool, at the end.",
         offsetof(struct gm_model_pool, live)},
        {"gpumem_pool_peak_bytes", "Most memory in blocks at one time.",
         offsetof(struct gm_model_pool, peak)},
        {"gpumem_pool_reserved_bytes", "Memory that the pool has from CUDA, at the end.",
         offsetof(struct gm_model_pool, reserved)},
        {"gpumem_pool_reserved_peak_bytes", "Most memory that the pool had from CUDA.",
         offsetof(struct gm_model_pool, reserved_peak)},
    };
    for (size_t gauge = 0; run->pool_count && gauge < sizeof(gauges) / sizeof(gauges[0]); gauge++) {
        family(out, gauges[gauge].name, "gauge", "bytes", gauges[gauge].help);
        for (size_t i = 0; i < run->pool_count; i++) {
            const char *pool = (const char *)&run->pools[i];
            fprintf(out, "%s{device=\"%d\"} %" PRId64 "\n", gauges[gauge].name,
                    run->pools[i].device, *(const int64_t *)(pool + gauges[gauge].offset));
        }
    }
}

/* ---- the run --------------------------------------------------------------------------------- */

static void write_openmetrics_run(FILE *out, const struct gm_model_run *run)
{
    family(out, "gpumem_leaked_bytes", "gauge", "bytes",
           "Memory left at the end, by why it was not freed.");
    for (unsigned class = GM_LEAK; class < GM_LEAK_CLASSES; class ++)
        fprintf(out, "gpumem_leaked_bytes{class=\"%s\"} %" PRId64 "\n", gm_leak_class_name(class),
                run->leaked[class]);
    family(out, "gpumem_failed_allocations", "counter", NULL,
           "Allocations refused for lack of memory.");
    fprintf(out, "gpumem_failed_allocations_total %" PRId64 "\n", run->failed);
    family(out, "gpumem_duration_seconds", "gauge", "seconds", "Length of the run.");
    fprintf(out, "gpumem_duration_seconds %" PRIu64 ".%09" PRIu64 "\n",
            run->duration_ns / 1000000000, run->duration_ns % 1000000000);
    family(out, "gpumem_complete", "gauge", NULL, "1 if the trace is whole, so figures are exact.");
    fprintf(out, "gpumem_complete %d\n", run->complete);
    family(out, "gpumem_simulated", "gauge", NULL, "1 if the devices were simulated.");
    fprintf(out, "gpumem_simulated %d\n", run->simulated);
}

static void write_openmetrics(FILE *out, const struct gm_model *model,
                              const struct gm_output_options *options)
{
    (void)options;
    const struct gm_model_run *run = &model->runs[0];
    write_kinds(out, run);
    write_openmetrics_devices(out, run);
    write_pools(out, run);
    write_openmetrics_run(out, run);
    fputs("# EOF\n", out);
}

const struct gm_output gm_export_openmetrics = {.name = "openmetrics",
                                                .is_of_run = true,
                                                .needs = GM_NEEDS_MOMENTS,
                                                .write = write_openmetrics};
