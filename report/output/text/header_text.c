/* See sections.h. */
#include "base/text.h"
#include "output/headline.h"
#include "output/text/sections.h"
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* The command line in one line, each argument cleaned. */
static void print_command(const struct gm_view *view)
{
    char *command = gm_command_text(view->run);
    gm_page_print(view->page, GM_BOLD, "gpumem report");
    gm_page_print(view->page, GM_PLAIN, " of ");
    gm_page_cut(view->page, command, gm_page_columns(view->page) - strlen("gpumem report of "));
    fputc('\n', view->page->out);
    free(command);
}

/* The time of day as of which a process that runs is shown. */
static const char *clock_of(const struct gm_model_run *run, char text[32])
{
    time_t seconds = (time_t)((run->start_realtime_ns + run->as_of_ns) / UINT64_C(1000000000));
    struct tm moment;
    if (!run->start_realtime_ns || !gmtime_r(&seconds, &moment) ||
        !strftime(text, 32, " (%T UTC)", &moment))
        text[0] = 0;
    return text;
}

static const char *rank_of(const struct gm_model_run *run, char text[64])
{
    text[0] = 0;
    if (run->rank.rank >= 0 && run->rank.world_size > 0)
        snprintf(text, 64, ", rank %s of %s", NUMBER(run->rank.rank), NUMBER(run->rank.world_size));
    else if (run->rank.rank >= 0)
        snprintf(text, 64, ", rank %s", NUMBER(run->rank.rank));
    return text;
}

void gm_header_text(const struct gm_view *view)
{
    const struct gm_model_run *run = view->run;
    char start[GM_START_TEXT], rank[64], ending[GM_ENDING_TEXT], clock[32];
    char name[GM_PROCESS_TEXT], process[256];
    print_command(view);
    snprintf(process, sizeof(process), "%s%s%s, ", gm_process_text(run, name), rank_of(run, rank),
             gm_start_text(run, start));
    if (run->as_of_ns)
        gm_page_paragraph(view->page, GM_DIM, 0, "%s%s event%s, %s; as of %s after the start%s",
                          process, COUNT(run->events), gm_plural(run->events),
                          gm_ending_text(run, ending), TIME(run->as_of_ns), clock_of(run, clock));
    else
        gm_page_paragraph(view->page, GM_DIM, 0, "%s%s, %s event%s, %s",
                          run->pid ? process : "", /* a snapshot does not tell */
                          TIME(run->duration_ns), COUNT(run->events), gm_plural(run->events),
                          gm_ending_text(run, ending));
    if (run->simulated)
        gm_page_print(view->page, GM_WARNING,
                      "SIMULATED: there was no GPU, all devices are simulated\n");
    gm_settings_text(view);
    fputc('\n', view->page->out);
    gm_verdict_text(view);
}
