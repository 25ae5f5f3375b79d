/* See ending.h. */
#include "judge/verdict/ending.h"
#include "base/size.h"
#include <signal.h>
#include <stdio.h>

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

/* In the words of cuda.h for these errors. */
static const char *device_failure_text(uint32_t status)
{
    static const struct {
        uint32_t status;
        const char *text;
    } failures[] = {
        {214, "an ECC error that could not be corrected"},
        {220, "an NVLink error that could not be corrected"},
        {226, "an exception that the device contained"},
        {700, "an illegal memory address"},
        {702, "a kernel that took too long"},
        {710, "an assert in a kernel"},
        {714, "a stack error"},
        {715, "an illegal instruction"},
        {716, "a misaligned address"},
        {717, "an address of the wrong address space"},
        {718, "an invalid program counter"},
        {719, "a kernel that failed"},
        {721, "tensor memory that a kernel kept"},
        {810, "the server of MPS ended this client"},
        {911, "an error of an external device"},
    };
    for (size_t i = 0; i < sizeof(failures) / sizeof(failures[0]); i++)
        if (failures[i].status == status)
            return failures[i].text;
    return "an error that is final";
}

void gm_failed_sentence(const struct gm_trace *trace, char *text, size_t size)
{
    const struct gm_device_failure *failed = &trace->failed;
    char frees[96] = "";
    if (failed->frees)
        snprintf(frees, sizeof(frees), " %s free%s refused after it.", COUNT(failed->frees),
                 failed->frees == 1 ? " was" : "s were");
    snprintf(text, size,
             "DEVICE FAILED: error %u, %s, first told %s after the start. From then on every call "
             "fails, so nothing tells what the process would have freed.%s This is its memory as "
             "of then.",
             failed->status, device_failure_text(failed->status),
             TIME(gm_clock_elapsed(&trace->clock, failed->time)), frees);
}
