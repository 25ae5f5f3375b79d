/* Fuzz target: everything that reads a trace or a memory snapshot, on arbitrary bytes.
 *
 * With libFuzzer: clang -fsanitize=fuzzer,address,undefined. Without it fuzz_main.c makes it a program.
 * It reads each input as it is, and with corrected checksums, which reaches deeper.
 */
#include "input/torch/import.h"
#include "input/torch/snapshot.h"
#include "input/trace/trace_open.h"
#include "judge/analysis/analysis.h"
#include "names/stacks/stacks.h"
#include "output/export/export.h"
#include "output/html/html.h"
#include "output/json/report_json.h"
#include "output/text/report_text.h"
#include "replay/replica/replay.h"
#include "tools/ranks/summary.h"
#include "trace_mend.h"
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

/* The bytes after the trace are a file that the trace may name, /fuzz.elf. */
static char folder[] = "/tmp/gpumem-fuzz-XXXXXX";

static void remove_folder(void)
{
    char path[64];
    snprintf(path, sizeof(path), "%s/fuzz.elf", folder);
    unlink(path);
    rmdir(folder);
}

static void put_module(const unsigned char *bytes, size_t size)
{
    static bool is_made;
    char path[64];
    if (!is_made && !mkdtemp(folder))
        abort();
    if (!is_made)
        atexit(remove_folder);
    is_made = true;
    snprintf(path, sizeof(path), "%s/fuzz.elf", folder);
    FILE *file = fopen(path, "w");
    if (!file || fwrite(bytes, 1, size, file) != size)
        abort();
    fclose(file);
}

static size_t trace_end(const unsigned char *bytes, size_t size)
{
    struct gm_trace_header header;
    if (size < sizeof(header))
        return size;
    memcpy(&header, bytes, sizeof(header));
    return header.file_end < size ? (size_t)header.file_end : size;
}

/* What a history would have been under other settings. */
static void ask(struct gm_history *history)
{
    static const char *const sets[] = {
        "", "expandable_segments:True", "max_split_size_mb:32",
        "garbage_collection_threshold:0.2,per_process_memory_fraction:0.1"};
    char error[256];
    gm_replay_as_recorded(history);
    gm_replay_bounds(history);
    for (size_t i = 0; i < sizeof(sets) / sizeof(sets[0]); i++) {
        struct gm_allocator_settings settings = history->settings;
        gm_allocator_settings_apply(&settings, (struct gm_text){sets[i], strlen(sets[i])}, error,
                                    sizeof(error));
        gm_replay_under(history, &settings, i % 2 ? (uint64_t)64 << 20 : 0, (uint64_t)8 << 30);
    }
    gm_history_free(history);
}

/* All formats, each at each kind of moment, and the page. */
static void write_exports(FILE *out, const struct gm_model *model)
{
    static const struct gm_output *const outputs[] = {
        &gm_export_collapsed,   &gm_export_csv,      &gm_export_memory_viz, &gm_export_ndjson,
        &gm_export_openmetrics, &gm_export_perfetto, &gm_export_pprof,      &gm_export_speedscope,
        &gm_export_sqlite,      &gm_output_html,
    };
    static const struct gm_when moments[] = {
        {.kind = GM_WHEN_DEFAULT},
        {.kind = GM_WHEN_PEAK},
        {.kind = GM_WHEN_OOM},
        {.kind = GM_WHEN_END},
        {.kind = GM_WHEN_TIME, .time_ns = 1000000},
    };
    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++)
        for (size_t j = 0; j < sizeof(moments) / sizeof(moments[0]); j++)
            outputs[i]->write(
                out, model,
                &(struct gm_output_options){.when = moments[j],
                                            .page_size = j ? UINT64_C(10000) : UINT64_C(1) << 20});
}

static void read_all(const unsigned char *bytes, size_t size)
{
    char error[256];
    struct gm_trace *trace = gm_trace_open_memory(bytes, size, error, sizeof(error));
    if (!trace)
        return;
    struct gm_stacks_options stack_options = {.names = true, .sysroot = folder};
    struct gm_analysis *analysis = gm_analyse(trace);
    struct gm_stacks *stacks = gm_stacks_new(trace, &stack_options);
    struct gm_model *model = gm_model_of(analysis, stacks, GM_NEEDS_ALL);
    FILE *nowhere = fopen("/dev/null", "w");
    if (nowhere) {
        gm_output_json.write(nowhere, model, &(struct gm_output_options){.top = 100});
        gm_output_text.write(nowhere, model,
                             &(struct gm_output_options){.top = 3, .verbose = true});
        gm_output_text.write(nowhere, model, &(struct gm_output_options){0});
        gm_output_text.write(nowhere, model, &(struct gm_output_options){.site = 1});
        gm_summary_write(nowhere, model, "");
        write_exports(nowhere, model);
        fclose(nowhere);
    }
    gm_model_free(model);
    gm_stacks_free(stacks);
    gm_analysis_free(analysis);
    struct gm_history history;
    if (gm_history_of_trace(&history, trace, GM_ANY_DEVICE, error, sizeof(error)))
        ask(&history);
    gm_trace_close(trace);
}

static void read_snapshot(const unsigned char *data, size_t size)
{
    char error[256];
    struct gm_torch_snapshot *snapshot =
        gm_torch_snapshot_read(&(struct gm_pickle_source){data, size, false}, error, sizeof(error));
    if (!snapshot)
        return;
    struct gm_history history;
    if (gm_history_of_snapshot(&history, snapshot, GM_ANY_DEVICE, error, sizeof(error)))
        ask(&history);
    size_t made_size;
    unsigned char *made = gm_torch_import(snapshot, &made_size);
    gm_torch_snapshot_free(snapshot);
    read_all(made, made_size);
    munmap(made, made_size);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    if (gm_pickle_is_likely(data, size)) {
        read_snapshot(data, size);
        return 0;
    }
    unsigned char *copy = aligned_alloc(64, (size + 127) / 64 * 64);
    if (!copy)
        return 0;
    memcpy(copy, data, size);
    size_t end = trace_end(data, size);
    put_module(data + end, size - end);
    read_all(copy, size);
    mend_trace(copy, size);
    read_all(copy, size);
    free(copy);
    return 0;
}
