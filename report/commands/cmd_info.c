/* gpumem info: what is in a trace, which is replayed once, for its counts. */
#include "base/size.h"
#include "commands/apart.h"
#include "commands/command.h"
#include "commands/session.h"
#include "commands/why_text.h"
#include "judge/verdict/completeness.h"
#include "judge/verdict/ending.h"
#include "judge/verdict/file_system.h"
#include "judge/verdict/newer_abi.h"
#include "judge/verdict/settings.h"
#include "tools/runs/runs.h"
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

enum { WHY = GM_OPTION_FIRST };

static const struct gm_option own_options[] = {
    {GM_PROSE, "usage: gpumem info [--why] [TRACE|FOLDER...]\n"
               "\n"
               "Says what a trace is: of which process, how it ended, what is in it. Without\n"
               "TRACE: all traces of the newest run in this folder.\n"
               "\n"},
    {WHY, "      --why       also what the recorder declined and why, where it was built to\n"
          "                  tell (cmake -DGPUMEM_WHY=ON)\n"},
    GM_COMMON_OPTIONS,
    {GM_PROSE, NULL},
};

static void print_text(const char *name, struct gm_text text)
{
    char *clean = gm_clean_copy(text);
    if (clean[0])
        printf("%-12s %s\n", name, clean);
    free(clean);
}

static void print_arguments(const struct gm_trace_header *header)
{
    size_t size = header->command_line_size;
    if (size > sizeof(header->command_line))
        size = sizeof(header->command_line);
    printf("%-12s", "command");
    for (size_t at = 0; at < size;) {
        struct gm_text argument = gm_trace_field(header->command_line + at, size - at);
        char *clean = gm_clean_copy(argument);
        printf(" %s", clean);
        free(clean);
        at += argument.size + 1;
    }
    putchar('\n');
}

static void print_time(uint64_t nanoseconds)
{
    time_t seconds = (time_t)(nanoseconds / UINT64_C(1000000000));
    struct tm moment;
    char text[64];
    if (gmtime_r(&seconds, &moment) && strftime(text, sizeof(text), "%F %T UTC", &moment))
        printf("%-12s %s\n", "started", text);
}

static void print_environment(const struct gm_trace *trace)
{
    struct gm_text rest = trace->environment;
    while (rest.size) {
        struct gm_text one = gm_trace_field(rest.bytes, rest.size);
        size_t step = one.size < rest.size ? one.size + 1 : one.size;
        print_text("environment", one);
        rest = (struct gm_text){rest.bytes + step, rest.size - step};
    }
}

static void print_info_settings(const struct gm_trace *trace)
{
    struct gm_text rest = trace->environment, one;
    while (gm_settings_next(&rest, &one))
        print_text("not understood", one);
}

static void print_records(const struct gm_session *session)
{
    const struct gm_trace *trace = session->trace;
    size_t blocks = 0, rings = 0;
    for (size_t i = 0; i < trace->lane_count; i++)
        blocks += trace->lanes[i].block_count;
    for (size_t i = 0; i < trace->lane_count; i++) /* others were made ahead of their thread */
        rings += trace->lanes[i].block_count || trace->lanes[i].ring_end;
    char events[GM_SIZE_TEXT], size[GM_SIZE_TEXT], duration[GM_SIZE_TEXT];
    printf("%-12s %s in %zu block%s and %zu ring%s\n", "records",
           gm_count_format(session->analysis->replay.ledger.events, events), blocks,
           gm_plural(blocks), rings, gm_plural(rings));
    printf("%-12s %s\n", "size", gm_size_format(trace->size, size));
    printf("%-12s %s\n", "duration", gm_time_format(session->analysis->duration, duration));
    printf("%-12s %" PRIu32 " nodes, %" PRIu32 " modules, %" PRIu32 " script frames, %" PRIu32
           " bytes of strings\n",
           "tables", trace->header.node_count, trace->header.module_count,
           trace->header.frame_count, trace->header.string_bytes);
}

static void print_state(const struct gm_session *session)
{
    static const char *const endings[] = {"normal end", "still running", "cut: killed or crashed"};
    static const char *const ends[] = {"", " (exit)", " (_exit)", " (exec)"};
    const struct gm_trace *trace = session->trace;
    unsigned end = trace->header.end;
    struct gm_ended ended = gm_ended_of(&trace->header);
    bool recorded = !(trace->header.flags & GM_HEADER_NOT_RECORDED);
    bool is_snapshot = (trace->header.flags & GM_HEADER_SNAPSHOT) != 0;
    printf("%-12s %s%s\n", "ending",
           recorded ? (is_snapshot ? "snapshot of a running process" : endings[trace->ending])
                    : "not known",
           ended.is_bare                          ? " (without its destructors)"
           : end < sizeof(ends) / sizeof(ends[0]) ? ends[end]
                                                  : "");
    if (trace->as_of_ns)
        printf("%-12s %s after the start\n", "as of", TIME(trace->as_of_ns));
    char name[GM_SIGNAL_TEXT];
    if (ended.signal)
        printf("%-12s %s\n", "signal", gm_signal_name(ended.signal, name));
    else if (ended.exit_code >= 0)
        printf("%-12s %d\n", "exit code", ended.exit_code);
    printf("%-12s %s\n", "complete", gm_analysis_is_complete(session->analysis) ? "yes" : "no");
    if (trace->truncated)
        printf("%-12s %s\n", "truncated", "yes");
    if (trace->damaged)
        printf("%-12s %" PRIu64 " extents or blocks\n", "damaged", trace->damaged);
    if (session->analysis->lost)
        printf("%-12s %" PRIu64 " records\n", "lost", session->analysis->lost);
    if (trace->header.flags & GM_HEADER_FLIGHT)
        printf("%-12s flight%s\n", "mode", trace->checkpoint ? ", older history overwritten" : "");
    if (trace->header.flags & (GM_HEADER_ELSEWHERE | GM_HEADER_NOT_RECORDED)) {
        char reason[512];
        (recorded ? gm_elsewhere_sentence : gm_not_recorded_sentence)(trace, reason,
                                                                      sizeof(reason));
        printf("%-12s %s\n", "place", reason);
    }
    if (trace->header.flags & GM_HEADER_SIMULATED)
        printf("%-12s %s\n", "device", "SIMULATED");
    if (trace->header.flags & GM_HEADER_BYPASSED)
        printf("%-12s %s\n", "driver", "loaded, no call seen");
    if (trace->header.counters[GM_COUNT_NEWER_ABI]) {
        char list[1024];
        gm_newer_abi_list(trace, list, sizeof(list));
        printf("%-12s %s: asked for, newer than this gpumem, not seen\n", "newer ABI", list);
    }
}

static void print_info(const char *path, const void *wants_why, void *is_printed)
{
    struct gm_session session;
    if (!gm_session_open_briefly(&session, path))
        return;
    const struct gm_trace_header *header = &session.trace->header;
    char *clean = gm_clean_copy((struct gm_text){path, __builtin_strlen(path)});
    printf("%-12s %s\n", "trace", clean);
    free(clean);
    printf("%-12s %u.%u\n", "format", header->major, header->minor);
    print_text("recorder", gm_trace_field(header->tool_version, sizeof(header->tool_version)));
    print_arguments(header);
    print_text("executable", gm_trace_field(header->executable, sizeof(header->executable)));
    if (header->pid) /* a snapshot does not tell */
        printf("%-12s %" PRIu32 "\n", "process", header->pid);
    print_text("host", gm_trace_field(header->host, sizeof(header->host)));
    print_time(header->clock_start.realtime_ns);
    print_state(&session);
    print_records(&session);
    print_text("python", gm_trace_string(session.trace, header->python_state));
    print_environment(session.trace);
    print_info_settings(session.trace);
    if (*(const bool *)wants_why)
        gm_why_text(session.trace);
    gm_session_close(&session);
    *(bool *)is_printed = true;
}

int gm_cmd_info(int count, char **arguments)
{
    bool wants_why = false;
    for (int option; (option = gm_next_option(count, arguments, own_options)) != -1;) {
        if (option != WHY)
            return GM_EXIT_USAGE;
        wants_why = true;
    }
    int code = GM_EXIT_FINE;
    struct gm_run_traces run;
    int found = gm_run_find_any(&run, arguments + optind, (size_t)(count - optind));
    for (size_t i = 0; i < run.count; i++) {
        if (i)
            putchar('\n');
        bool is_printed;
        if (!gm_apart(print_info, run.paths[i], &wants_why, &is_printed, sizeof(is_printed)) ||
            !is_printed)
            code = GM_EXIT_UNREADABLE;
    }
    gm_run_free(&run);
    return code ? code : found;
}
