/* See html.h. What stands in the page as plain HTML. */
#include "output/amount.h"
#include "output/headline.h"
#include "output/html/html.h"
#include "output/html/markup.h"
#include <inttypes.h>
#include <string.h>

/* ---- the head -------------------------------------------------------------------------------- */

/* Arguments, each with a NUL behind it, with spaces instead. */
static void write_summary_command(FILE *out, const struct gm_model_run *run)
{
    const char *at = run->command_line.bytes, *end = at + run->command_line.size;
    if (at == end)
        gm_html_bytes(out, run->executable);
    while (at < end) {
        const char *stop = memchr(at, 0, (size_t)(end - at));
        size_t size = (size_t)((stop ? stop : end) - at);
        gm_html_bytes(out, (struct gm_text){at, size});
        at += size + 1;
        if (at < end)
            putc(' ', out);
    }
}

static void write_sentence(FILE *out, const char *class, const char *sentence)
{
    if (!sentence[0])
        return;
    fprintf(out, "<p class=\"%s\">", class);
    gm_html_text(out, sentence);
    fputs("</p>\n", out);
}

static void write_summary_gaps(FILE *out, const struct gm_model_run *run)
{
    if (run->simulated)
        write_sentence(out, "note", "Simulated: there was no GPU, all devices are simulated.");
    for (size_t i = 0; i < run->gap_count; i++)
        write_sentence(out, run->gaps[i].loss ? "bad" : "note", run->gaps[i].text);
}

static void write_findings(FILE *out, const struct gm_model *model, const struct gm_model_run *run)
{
    if (!run->finding_count)
        return;
    fputs("<section class=\"findings\">\n<h2>Findings</h2>\n<ul>\n", out);
    for (size_t i = 0; i < run->finding_count; i++) {
        const struct gm_model_finding *finding = &run->findings[i];
        const char *severity = gm_severity_name(finding->severity);
        fprintf(out, "<li class=\"%s\"><b>%s</b> %s", severity, severity,
                gm_finding_name(finding->code));
        if (finding->bytes)
            fprintf(out, ", %s", SIZE(finding->bytes));
        if (finding->device >= 0)
            fprintf(out, " on device %d", finding->device);
        fprintf(out, " <small>%s</small>", ID(gm_model_finding_id(model, run, finding)));
        if (finding->stack != GM_NONE) {
            fputs("<br><span class=\"frame\">", out);
            gm_html_frame(out, gm_model_finding_frame(model, finding));
            fputs("</span>", out);
        }
        fputs("<br>", out);
        gm_html_text(out, finding->cause);
        if (finding->remedy) {
            fputs("<br><i>", out);
            gm_html_text(out, finding->remedy);
            fputs("</i>", out);
        }
        fputs("</li>\n", out);
    }
    fputs("</ul>\n</section>\n", out);
}

void gm_html_summary(FILE *out, const struct gm_model *model, const struct gm_model_run *run)
{
    struct gm_headline headline = gm_headline_of(run);
    fputs("<header>\n<h1>", out);
    write_summary_command(out, run);
    fputs("</h1>\n<p class=\"facts\">", out);
    if (run->pid)
        fprintf(out, "process %" PRIu32, run->pid);
    if (run->host_name.size) {
        fputs(" on ", out);
        gm_html_bytes(out, run->host_name);
    }
    fprintf(out, "%s%s, %s events", run->pid || run->host_name.size ? ", " : "",
            TIME(run->duration_ns), COUNT(run->events));
    if (run->as_of_ns)
        fprintf(out, "; still running, as of %s after the start", TIME(run->as_of_ns));
    fputs("</p>\n", out);
    if (gm_refusal_of(run).is_there) /* a gap tells the rest */
        write_sentence(out, "bad", headline.failure);
    write_sentence(out, "verdict", headline.state);
    write_sentence(out, "verdict", headline.peaks);
    write_summary_gaps(out, run);
    fputs("</header>\n", out);
    write_findings(out, model, run);
}

/* ---- tables ---------------------------------------------------------------------------------- */

static void open_table(FILE *out, const char *title, const char *head)
{
    fprintf(out,
            "<section>\n<h2>%s</h2>\n<div class=\"scroll\"><table>\n<thead><tr>%s</tr></thead>\n",
            title, head);
    fputs("<tbody>\n", out);
}

static void close_table(FILE *out)
{
    fputs("</tbody></table></div>\n</section>\n", out);
}

static void write_summary_place(FILE *out, const struct gm_model *model,
                                const struct gm_model_place *place)
{
    const struct gm_stack *stack = gm_model_stack(model, place->stack);
    const struct gm_frame *frame = gm_model_place_frame(model, place);
    fputs("<td><details><summary>", out);
    if (frame)
        gm_html_frame(out, frame);
    else
        gm_html_text(out, place->api[0] ? place->api : "(no stack)");
    fputs("</summary><ol>", out);
    for (size_t i = 0; i < stack->count && i < 64; i++) {
        fputs("<li>", out);
        gm_html_frame(out, &stack->frames[i]);
        fputs("</li>", out);
    }
    fputs("</ol></details></td><td>", out);
    gm_html_text(out, place->api);
    fputs("</td>", out);
}

static void write_summary_samples(FILE *out, const struct gm_model *model,
                                  const struct gm_model_moment *moment, size_t top,
                                  const char *title)
{
    if (!moment || !moment->sample_count)
        return;
    open_table(out, title,
               "<th class=\"n\">bytes</th><th class=\"n\">share</th><th "
               "class=\"n\">count</th><th>kind</th><th>place</th>"
               "<th>function of CUDA</th>");
    for (size_t i = 0; i < moment->sample_count && i < top; i++) {
        const struct gm_model_sample *sample = &moment->samples[i];
        const struct gm_model_place *place = &model->places[sample->place];
        double share =
            moment->bytes > 0 ? 100.0 * (double)sample->bytes / (double)moment->bytes : 0;
        fprintf(out,
                "<tr><td class=\"n\">%s</td><td class=\"n\">%.1f %%</td><td class=\"n\">%s</td>",
                BYTES(sample->bytes), share, NUMBER(sample->count));
        fprintf(out, "<td class=\"k\">%s</td>",
                place->leak_class ? gm_leak_class_name(place->leak_class)
                                  : gm_kind_name(place->kind));
        write_summary_place(out, model, place);
        fputs("</tr>\n", out);
    }
    if (moment->sample_count > top)
        fprintf(
            out,
            "<tr><td></td><td></td><td></td><td></td><td>and %zu more places</td><td></td></tr>\n",
            moment->sample_count - top);
    close_table(out);
}

static void write_moments(FILE *out, const struct gm_model *model, const struct gm_model_run *run,
                          size_t top)
{
    char title[96];
    for (size_t i = 0; i < run->device_count; i++) {
        snprintf(title, sizeof(title), "Device %d at its peak, %s", run->devices[i].id,
                 BYTES(run->devices[i].all.peak));
        write_summary_samples(out, model, gm_model_moment(run, run->devices[i].peak), top, title);
    }
    for (size_t i = 0; i < run->pool_count; i++) {
        snprintf(title, sizeof(title), "Blocks of the pool on device %d at its peak, %s",
                 run->pools[i].device, BYTES(run->pools[i].peak));
        write_summary_samples(out, model, gm_model_moment(run, run->pools[i].at_peak), top, title);
    }
    write_summary_samples(out, model, gm_model_moment(run, run->pinned_peak), top,
                          "Pinned memory at its peak");
    write_summary_samples(out, model, gm_model_moment(run, run->end), top,
                          run->as_of_ns ? "Alive now" : "Left at the end");
}

static void write_failures(FILE *out, const struct gm_model *model, const struct gm_model_run *run)
{
    if (!run->failure_count)
        return;
    open_table(out, "Refused allocations",
               "<th class=\"n\">asked</th><th class=\"n\">times</th><th class=\"n\">after</th><th "
               "class=\"n\">device</th><th>place</th>"
               "<th>function of CUDA</th>");
    for (size_t i = 0; i < run->failure_count; i++) {
        const struct gm_model_failure *failure = &run->failures[i];
        fprintf(out, "<tr><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td>",
                ASKED(failure->size, failure->purpose), COUNT(failure->count),
                TIME(failure->time_ns));
        fprintf(out, "<td class=\"n\">%d</td>", failure->device);
        write_summary_place(out, model, &model->places[failure->place]);
        fputs("</tr>\n", out);
    }
    close_table(out);
}

static void write_phases(FILE *out, const struct gm_model_run *run, size_t top)
{
    if (!run->phase_count)
        return;
    open_table(out, "Phases",
               "<th class=\"n\">peak</th><th class=\"n\">times</th><th "
               "class=\"n\">time</th><th>phase</th>");
    for (size_t i = 0; i < run->phase_count && i < top; i++) {
        const struct gm_model_phase *phase = &run->phases[run->phase_order[i]];
        uint64_t peak = 0;
        for (size_t j = 0; j < phase->memory_count; j++)
            if (phase->memory[j].sums.peak > peak && phase->memory[j].where != GM_PHASE_PINNED)
                peak = phase->memory[j].sums.peak;
        fprintf(out,
                "<tr><td class=\"n\">%s</td><td class=\"n\">%s</td><td class=\"n\">%s</td><td>",
                SIZE(peak), COUNT(phase->count), TIME(phase->time_ns));
        if (phase->is_interval) {
            gm_html_bytes(out, phase->has_from ? phase->from : (struct gm_text){"start", 5});
            fputs(" .. ", out);
        }
        gm_html_bytes(out, phase->has_name ? phase->name : (struct gm_text){"end", 3});
        fputs("</td></tr>\n", out);
    }
    close_table(out);
}

static void write_amount(FILE *out, uint64_t bytes, uint64_t recorded, const char *what)
{
    uint64_t share = recorded ? bytes * 100 / recorded : 0;
    fprintf(out, "<tr><td class=\"n\">%s</td><td class=\"n\">%" PRIu64 "%%</td><td>%s</td></tr>\n",
            SIZE(bytes), share, what);
}

/* What PyTorch's allocator reserved, against what a setting and the best packing would have. */
static void write_reserved(FILE *out, const struct gm_model *model)
{
    struct gm_model_reserved reserved;
    char title[64], name[64];
    if (!gm_model_reserved(model, &reserved))
        return;
    snprintf(title, sizeof(title), "Reserved by PyTorch on device %d, at most", reserved.device);
    snprintf(name, sizeof(name), "with %s%s", reserved.setting,
             reserved.is_refused ? ", refusing requests" : "");
    open_table(out, title, "<th class=\"n\">bytes</th><th class=\"n\">share</th><th></th>");
    write_amount(out, reserved.recorded, reserved.recorded, "recorded");
    write_amount(out, reserved.under_setting, reserved.recorded, name);
    write_amount(out, reserved.best_packing, reserved.recorded,
                 "best packing, with knowledge of the future");
    write_amount(out, reserved.live, reserved.recorded, "in use at a time");
    close_table(out);
}

void gm_html_tables(FILE *out, const struct gm_model *model, const struct gm_model_run *run,
                    size_t top)
{
    write_failures(out, model, run);
    write_moments(out, model, run, top);
    write_phases(out, run, top);
    write_reserved(out, model);
}
