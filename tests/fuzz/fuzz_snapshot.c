/* Fuzz target: PyTorch's memory snapshots: the pickle, the history that it tells, and the trace that is made of it, which
 * must be one that the reader takes. fuzz_reader.c prints all outputs of such a trace; this target is faster. */
#include "fuzz.h"
#include "input/torch/import.h"
#include "input/torch/snapshot.h"
#include "input/trace/trace_open.h"
#include "judge/analysis/analysis.h"
#include "names/stacks/stacks.h"
#include "output/json/report_json.h"
#include "replay/replica/replay.h"
#include <stdio.h>
#include <sys/mman.h>

static void read_made_trace(const unsigned char *made, size_t size)
{
    char error[256];
    struct gm_trace *trace = gm_trace_open_memory(made, size, error, sizeof(error));
    demand(trace != NULL);
    struct gm_stacks_options options = {.names = true};
    struct gm_analysis *analysis = gm_analyse(trace);
    struct gm_stacks *stacks = gm_stacks_new(trace, &options);
    struct gm_model *model = gm_model_of(analysis, stacks, GM_NEEDS_ALL);
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere) {
        gm_output_json.write(nowhere, model, &(struct gm_output_options){.top = 100});
        fclose(nowhere);
    }
    gm_model_free(model);
    gm_stacks_free(stacks);
    gm_analysis_free(analysis);
    gm_trace_close(trace);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char error[256];
    struct gm_torch_snapshot *snapshot =
        gm_torch_snapshot_read(&(struct gm_pickle_source){data, size, false}, error, sizeof(error));
    if (!snapshot) {
        demand(*error && strlen(error) < sizeof(error)); /* it says why */
        return 0;
    }
    struct gm_history history;
    if (gm_history_of_snapshot(&history, snapshot, GM_ANY_DEVICE, error, sizeof(error))) {
        gm_replay_as_recorded(&history);
        gm_history_free(&history);
    }
    size_t made_size;
    unsigned char *made = gm_torch_import(snapshot, &made_size);
    gm_torch_snapshot_free(snapshot);
    read_made_trace(made, made_size);
    munmap(made, made_size);
    return 0;
}
