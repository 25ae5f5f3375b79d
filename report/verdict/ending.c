/* See ending.h. */
#include "verdict/ending.h"
#include "base/size.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>

bool gm_was_asked_to_end(const struct gm_trace_header *header)
{
    return (header->status & GM_STATUS_WAITED) && gm_ended_of(header).signal == SIGTERM;
}

void gm_as_of_sentence(const struct gm_trace *trace, char *text, size_t size)
{
    snprintf(text, size, "still running; as of %s after its start", TIME(trace->as_of_ns));
}

void gm_running_sentence(const struct gm_trace *trace, char *text, size_t size)
{
    snprintf(text, size,
             "RUNNING: the process has not ended. This is its memory as of %s after its start.",
             TIME(trace->as_of_ns));
}

void gm_cut_sentence(const struct gm_trace *trace, char *text, size_t size)
{
    static const int crashes[] = {SIGSEGV, SIGABRT, SIGBUS, SIGFPE, SIGILL, SIGSYS, SIGTRAP};
    int signal_number = gm_ended_of(&trace->header).signal;
    char name[GM_SIGNAL_TEXT];
    const char *how = "killed or crashed";
    if (signal_number)
        how = "killed";
    for (size_t i = 0; i < sizeof(crashes) / sizeof(crashes[0]); i++)
        if (signal_number == crashes[i])
            how = "crashed";
    snprintf(
        text, size,
        "CUT: the process did not end normally (%s%s%s). This is its memory up to that moment.",
        how, signal_number ? " by " : "", signal_number ? gm_signal_name(signal_number, name) : "");
}
