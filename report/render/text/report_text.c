/* See report_text.h. */
#include "render/text/report_text.h"
#include "base/memory.h"
#include "base/size.h"
#include "render/text/sections.h"
#include "stacks/cuda_error.h"
#include "verdict/completeness.h"
#include "verdict/verdict.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

struct writer {
    struct gm_page page;
    const struct gm_analysis *analysis;
    struct gm_stacks *stacks;
    size_t top;
};

static const char *moment(const struct gm_analysis *analysis, uint64_t time,
                          char text[GM_SIZE_TEXT])
{
    return gm_time_format(gm_clock_elapsed(&analysis->trace->clock, time), text);
}
#define MOMENT(analysis, time) moment((analysis), (time), (char[GM_SIZE_TEXT]){0})

/* "device 0", "the host", "an unknown device". */
static const char *place_name(unsigned kind, int device, char text[GM_SIZE_TEXT])
{
    if (gm_kind_is_host(kind))
        return "the host";
    if (device < 0)
        return "an unknown device";
    snprintf(text, GM_SIZE_TEXT, "device %d", device);
    return text;
}
#define PLACE(kind, device) place_name((kind), (device), (char[GM_SIZE_TEXT]){0})

static void print_stack(struct gm_page *page, struct gm_stacks *stacks, uint32_t stack,
                        uint16_t api, unsigned indent)
{
    gm_page_stack(page, indent, gm_stacks_get(stacks, stack, api));
}

/* ---- who and what ---------------------------------------------------------------------------- */

/* The command line in one line, each argument cleaned. */
static void print_command(struct writer *writer)
{
    const struct gm_trace_header *header = &writer->analysis->trace->header;
    size_t size = header->command_line_size;
    size_t left = GM_PAGE_COLUMNS - strlen("gpumem report of ") - 3;
    if (size > sizeof(header->command_line))
        size = sizeof(header->command_line);
    char line[sizeof(header->command_line) + 1];
    memcpy(line, header->command_line, size);
    while (size && line[size - 1] == 0)
        size--;
    for (size_t i = 0; i < size; i++)
        if (line[i] == 0)
            line[i] = ' ';
    char *clean = gm_clean_copy((struct gm_text){line, size});
    bool cut = strlen(clean) > left;
    if (cut)
        clean[left] = 0;
    char *whole = gm_clean_copy((struct gm_text){clean, strlen(clean)}); /* a cut character */
    gm_page_print(&writer->page, GM_BOLD, "gpumem report");
    gm_page_print(&writer->page, GM_PLAIN, " of %s%s\n", whole[0] ? whole : "an unnamed command",
                  cut ? "..." : "");
    free(whole);
    free(clean);
}

static void print_header(struct writer *writer)
{
    const struct gm_analysis *analysis = writer->analysis;
    const struct gm_trace_header *header = &analysis->trace->header;
    struct gm_page *page = &writer->page;
    char *host = gm_clean_copy(gm_trace_field(header->host, sizeof(header->host)));
    print_command(writer);
    gm_page_print(page, GM_DIM, "process %u on %s, %s, %s event%s\n", header->pid, host,
                  TIME(analysis->duration), COUNT(analysis->replay.ledger.events),
                  gm_plural(analysis->replay.ledger.events));
    if (header->flags & GM_HEADER_SIMULATED)
        gm_page_print(page, GM_WARNING, "SIMULATED: there was no GPU, all devices are simulated\n");
    gm_settings_text(page, analysis->trace);
    free(host);
    fputc('\n', page->out);
    gm_verdict_text(page, analysis);
}

/* ---- peaks ----------------------------------------------------------------------------------- */

static void print_device_name(struct writer *writer, int device)
{
    const struct gm_device_facts *facts = &writer->analysis->facts[device + 1];
    if (!facts->name.size)
        return;
    char *name = gm_clean_copy(facts->name);
    gm_page_print(&writer->page, GM_DIM, "  %.40s\n", name);
    free(name);
}

/* What kinds the memory at a peak was of, if not all of one. */
static void print_kinds(struct writer *writer, const struct gm_sites *owners)
{
    uint64_t bytes[GM_KINDS] = {0};
    unsigned kinds = 0;
    for (size_t i = 0; i < owners->count; i++) {
        kinds += bytes[owners->entries[i].kind] == 0 && owners->entries[i].bytes > 0;
        bytes[owners->entries[i].kind] += owners->entries[i].bytes;
    }
    if (kinds < 2)
        return;
    const char *separator = "  ";
    for (unsigned kind = 0; kind < GM_KINDS; kind++)
        if (bytes[kind]) {
            gm_page_print(&writer->page, GM_PLAIN, "%s%s %s", separator, gm_kind_name(kind),
                          SIZE(bytes[kind]));
            separator = ", ";
        }
    fputc('\n', writer->page.out);
}

static void print_peaks(struct writer *writer)
{
    const struct gm_analysis *analysis = writer->analysis;
    for (size_t i = 0; i < analysis->device_peak_count; i++) {
        const struct gm_snapshot *peak = &analysis->device_peaks[i];
        const struct gm_device_facts *facts = &analysis->facts[peak->device + 1];
        char title[64], about[128];
        snprintf(title, sizeof(title), "Peak of %s", PLACE(GM_KIND_DEVICE, peak->device));
        int length = snprintf(about, sizeof(about), "%s", SIZE(peak->owners.bytes));
        if (facts->total) /* managed memory need not be on the device, and more than it has */
            length += snprintf(about + length, sizeof(about) - (size_t)length, "%s %s",
                               peak->owners.bytes <= facts->total ? " of" : ", the device has",
                               SIZE(facts->total));
        snprintf(about + length, sizeof(about) - (size_t)length, ", %s after the start",
                 MOMENT(analysis, peak->time));
        gm_page_heading(&writer->page, title, about);
        print_device_name(writer, peak->device);
        if (gm_analysis_pool_peak(analysis, peak->device))
            gm_page_paragraph(&writer->page, GM_DIM, 2,
                              "PyTorch's pool takes memory in segments. A line here made it take "
                              "one; the lines that held what is in them are above.");
        print_kinds(writer, &peak->owners);
        gm_owners_text(&writer->page, analysis, writer->stacks, &peak->owners, writer->top, 0);
        gm_libraries_text(&writer->page, analysis, peak->device, writer->top);
    }
}

/* ---- residual -------------------------------------------------------------------------------- */

static void print_residual_line(struct writer *writer, const char *when,
                                const struct gm_residual *residual)
{
    gm_page_print(&writer->page, GM_PLAIN, "  %-12s  ", when);
    gm_page_print(&writer->page, GM_BOLD, "%s%s", residual->estimated ? "about " : "",
                  SIZE(residual->bytes));
    gm_page_print(&writer->page, GM_PLAIN, " (%s used, %s tracked) at %s\n", SIZE(residual->used),
                  SIZE(residual->tracked), MOMENT(writer->analysis, residual->time));
}

static void print_residuals(struct writer *writer)
{
    for (int i = 0; i < GM_DEVICES; i++) {
        const struct gm_device_facts *facts = &writer->analysis->facts[i];
        char title[64];
        if (!facts->residuals)
            continue;
        snprintf(title, sizeof(title), "Residual of %s", PLACE(GM_KIND_DEVICE, i - 1));
        gm_page_heading(&writer->page, title, "what the driver holds beside what was tracked");
        if (facts->largest.bytes != facts->last.bytes)
            print_residual_line(writer, "at most", &facts->largest);
        print_residual_line(writer, "at last", &facts->last);
    }
}

/* ---- leaks ----------------------------------------------------------------------------------- */

/* Memory of another owner is nobody's leak here, and no library's either. */
static bool is_told(const struct gm_site *site, enum gm_leak_class class, enum gm_leak_part part)
{
    bool is_foreign = site->kind == GM_KIND_EXTERNAL;
    return site->class == class &&
           (part == GM_LEAKS_ALL || is_foreign == (part == GM_LEAKS_FOREIGN));
}

void gm_leaks_text(struct gm_page *page, const struct gm_analysis *analysis,
                   struct gm_stacks *stacks, enum gm_leak_class class, enum gm_leak_part part,
                   size_t top)
{
    size_t shown = 0, more = 0;
    for (size_t i = 0; i < analysis->leaks.count; i++) {
        const struct gm_site *site = &analysis->leaks.entries[i];
        if (!is_told(site, class, part))
            continue;
        if (shown == top) {
            more++;
            continue;
        }
        shown++;
        const char *api = gm_trace_api(analysis->trace, site->api);
        gm_page_print(page, GM_BOLD, "  %s", SIZE(site->bytes));
        gm_page_print(page, GM_PLAIN, " of %s memory on %s, %s x %s\n", gm_kind_name(site->kind),
                      PLACE(site->kind, site->device), COUNT(site->count), api[0] ? api : "?");
        print_stack(page, stacks, site->stack, site->api, 6);
    }
    if (more)
        gm_page_print(page, GM_DIM, "  ... and %zu more place%s\n", more, gm_plural(more));
}

/* One section of what was left. */
static void print_leaks_of(struct writer *writer, enum gm_leak_class class, enum gm_leak_part part,
                           const char *title, const char *explanation)
{
    const struct gm_analysis *analysis = writer->analysis;
    struct gm_living living = {0};
    for (size_t i = 0; i < analysis->leaks.count; i++) {
        const struct gm_site *site = &analysis->leaks.entries[i];
        if (is_told(site, class, part)) {
            living.bytes += site->bytes;
            living.count += site->count;
        }
    }
    if (!living.count)
        return;
    gm_page_heading(&writer->page, title, NULL);
    gm_page_paragraph(&writer->page, GM_PLAIN, 2, "%s in %s allocation%s: %s", SIZE(living.bytes),
                      COUNT(living.count), gm_plural(living.count), explanation);
    if (class != GM_LEAK_CACHED || !analysis->pool_count) /* the pool was told, above */
        gm_leaks_text(&writer->page, analysis, writer->stacks, class, part, writer->top);
}

static void print_leaks(struct writer *writer)
{
    switch (writer->analysis->trace->ending) {
    case GM_ENDING_NORMAL:
        print_leaks_of(writer, GM_LEAK, GM_LEAKS_ALL, "Leaked", "never freed");
        break;
    case GM_ENDING_CUT:
        print_leaks_of(writer, GM_LEAK, GM_LEAKS_ALL, "Live", "live when the process was cut off");
        break;
    case GM_ENDING_RUNNING:
        print_leaks_of(writer, GM_LEAK, GM_LEAKS_ALL, "Live",
                       "live now: the process is still running");
        break;
    }
    print_leaks_of(writer, GM_LEAK_LATE, GM_LEAKS_ALL, "Freed too late",
                   "the driver was shut down when the free came");
    print_leaks_of(writer, GM_LEAK_IMPLICIT, GM_LEAKS_ALL, "Freed with its context",
                   "not freed before the reset or the end of its context");
    print_leaks_of(writer, GM_LEAK_EXTERNAL, GM_LEAKS_OWN, "Held by libraries",
                   "allocated by a vendor's library");
    print_leaks_of(writer, GM_LEAK_EXTERNAL, GM_LEAKS_FOREIGN, "Another owner's memory",
                   "imported or opened here, and not closed");
    print_leaks_of(writer, GM_LEAK_CACHED, GM_LEAKS_ALL, "Cached by frameworks",
                   "kept by a framework to the end, in use or for its next use");
    print_leaks_of(writer, GM_LEAK_UNTOLD, GM_LEAKS_ALL, "Freed or not",
                   "whether their context ended is not on record: there were too many");
}

/* ---- refused allocations --------------------------------------------------------------------- */

/* The error that is none of memory, on a line of its own if it has a name. */
static void print_status(struct writer *writer, const struct gm_failure *failure, const char *api)
{
    const char *name = gm_cuda_error_name(failure->status, strncmp(api, "cuda", 4) == 0);
    gm_page_print(&writer->page, GM_WARNING, "error %u", failure->status);
    if (name)
        gm_page_print(&writer->page, GM_WARNING, "\n    %s", name);
}

static void print_holes_of(struct gm_page *page, const struct gm_analysis *analysis,
                           const struct gm_failure *failure)
{
    const struct gm_holes *holes = &failure->snapshot.holes;
    switch (gm_analysis_fragmentation(analysis, failure)) {
    case GM_FRAGMENTATION_CERTAIN:
        gm_page_paragraph(page, GM_WARNING, 4,
                          "Between live allocations %s were free, but in holes of at most %s: "
                          "fragmentation alone is reason enough for this failure.",
                          SIZE(holes->free), SIZE(holes->largest));
        break;
    case GM_FRAGMENTATION_UNTOLD:
        gm_page_paragraph(page, GM_WARNING, 4,
                          "Between live allocations were gaps of %s, of at most %s each. Whether "
                          "fragmentation refused it cannot be told: the size of the device is not "
                          "on record.",
                          SIZE(holes->free), SIZE(holes->largest));
        break;
    case GM_FRAGMENTATION_NONE:
        break;
    }
}

static void print_failure(struct writer *writer, const struct gm_failure *failure)
{
    const struct gm_analysis *analysis = writer->analysis;
    struct gm_page *page = &writer->page;
    const char *api = gm_trace_api(analysis->trace, failure->api);
    gm_page_print(page, GM_BOLD, "  %s", SIZE(failure->size));
    gm_page_print(page, GM_PLAIN, " asked on %s by %s: ", PLACE(failure->kind, failure->device),
                  api[0] ? api : "?");
    if (failure->out_of_memory)
        gm_page_print(page, GM_BAD, "out of memory");
    else
        print_status(writer, failure, api);
    if (failure->count > 1)
        gm_page_print(page, GM_PLAIN, "\n    %s times, at first %s", COUNT(failure->count),
                      SIZE(failure->first));
    fputc('\n', page->out);
    print_stack(page, writer->stacks, failure->stack, failure->api, 6);
    if (!failure->snapshot.step)
        return;
    const struct gm_sites *owners = &failure->snapshot.owners;
    gm_page_print(page, GM_PLAIN, "    %s after the start, when %s lived on the device%s\n",
                  MOMENT(analysis, failure->time), owners->count ? SIZE(owners->bytes) : "nothing",
                  owners->count ? ":" : "");
    gm_owners_text(page, analysis, writer->stacks, owners, writer->top < 3 ? writer->top : 3, 4);
    print_holes_of(page, analysis, failure);
}

static void print_failures(struct writer *writer)
{
    const struct gm_counters *counters = &writer->analysis->replay.ledger.counters;
    size_t told_before = 0;
    if (!writer->analysis->failure_count)
        return;
    char about[128];
    snprintf(about, sizeof(about), "%s for lack of memory, %s for another reason",
             COUNT(counters->failed), COUNT(counters->rejected + counters->refused_by_runtime));
    gm_page_heading(&writer->page, "Refused allocations", about);
    for (size_t i = writer->analysis->failure_count, shown = 0; i-- > 0 && shown < writer->top;) {
        const struct gm_failure *failure = &writer->analysis->failures[i];
        if (gm_analysis_pool_failure(writer->analysis, failure)) {
            told_before++;
        } else {
            print_failure(writer, failure);
            shown++;
        }
    }
    if (told_before)
        gm_page_print(&writer->page, GM_DIM, "  %zu place%s: see PyTorch's pool, above\n",
                      told_before, gm_plural(told_before));
}

/* ---- fragmentation, pinned memory ------------------------------------------------------------ */

static void print_holes_line(struct gm_page *page, const char *when, const struct gm_holes *holes)
{
    unsigned fragmentation = gm_holes_fragmentation(holes);
    if (holes->allocations == 0)
        return;
    if (holes->count == 0) {
        gm_page_print(page, GM_PLAIN, "  %-12s  %s without a gap\n", when, SIZE(holes->live));
        return;
    }
    gm_page_print(page, GM_PLAIN, "  %-12s  %s in %s gap%s, the largest %s: %u.%u%%\n", when,
                  SIZE(holes->free), COUNT(holes->count), gm_plural(holes->count),
                  SIZE(holes->largest), fragmentation / 10, fragmentation % 10);
}

/* One hole is no fragmentation, and neither are a few bytes that alignment costs. */
static bool is_worth_telling(const struct gm_holes *holes)
{
    return holes->count > 1 && holes->free >= holes->span / 100;
}

static void print_fragmentation(struct writer *writer)
{
    const struct gm_analysis *analysis = writer->analysis;
    for (size_t i = 0; i < analysis->device_peak_count; i++) {
        const struct gm_snapshot *peak = &analysis->device_peaks[i];
        struct gm_holes at_end = gm_holes_find(&analysis->replay.ledger.lives, peak->device);
        char title[64];
        if (!is_worth_telling(&peak->holes) && !is_worth_telling(&at_end))
            continue;
        snprintf(title, sizeof(title), "Fragmentation of %s", PLACE(GM_KIND_DEVICE, peak->device));
        gm_page_heading(&writer->page, title, "of addresses: 1 - largest gap / all gaps");
        print_holes_line(&writer->page, "at the peak", &peak->holes);
        print_holes_line(&writer->page, "at the end", &at_end);
    }
}

static void print_pinned(struct writer *writer)
{
    const struct gm_analysis *analysis = writer->analysis;
    const struct gm_tally *host = analysis->replay.ledger.counters.host;
    char about[160];
    if (analysis->pinned_peak.step) {
        snprintf(about, sizeof(about), "peak %s, %s after the start; %s at the end",
                 SIZE(host[GM_KIND_PINNED].peak.bytes),
                 MOMENT(analysis, analysis->pinned_peak.time), SIZE(host[GM_KIND_PINNED].live));
        gm_page_heading(&writer->page, "Pinned host memory", about);
        gm_owners_text(&writer->page, analysis, writer->stacks, &analysis->pinned_peak.owners,
                       writer->top, 0);
    }
    if (host[GM_KIND_REGISTERED].allocs) {
        snprintf(about, sizeof(about), "peak %s; %s at the end",
                 SIZE(host[GM_KIND_REGISTERED].peak.bytes), SIZE(host[GM_KIND_REGISTERED].live));
        gm_page_heading(&writer->page, "Registered host memory", about);
    }
}

/* ---- transfers ------------------------------------------------------------------------------- */

static void print_transfer_sites(struct writer *writer)
{
    const struct gm_transfers *transfers = &writer->analysis->transfers;
    struct gm_page *page = &writer->page;
    for (size_t i = 0; i < transfers->site_count && i < writer->top; i++) {
        const struct gm_transfer_site *site = &transfers->sites[i];
        const char *api = gm_trace_api(writer->analysis->trace, site->api);
        gm_page_print(page, GM_BOLD, "  %s", SIZE(site->sum.bytes));
        gm_page_print(page, GM_PLAIN, " %s, %s x %s", gm_direction_name(site->direction),
                      COUNT(site->sum.count), api[0] ? api : "?");
        if (site->sum.pageable_count)
            gm_page_print(page, GM_WARNING, ", pageable");
        if (site->sum.tiny == site->sum.count)
            gm_page_print(page, GM_WARNING, ", tiny");
        fputc('\n', page->out);
        print_stack(page, writer->stacks, site->stack, site->api, 6);
    }
    if (transfers->site_count > writer->top)
        gm_page_print(page, GM_DIM, "  ... and %zu more place%s\n",
                      transfers->site_count - writer->top,
                      gm_plural(transfers->site_count - writer->top));
}

static void print_transfers(struct writer *writer)
{
    const struct gm_transfers *transfers = &writer->analysis->transfers;
    struct gm_page *page = &writer->page;
    if (!transfers->site_count)
        return;
    gm_page_heading(page, "Transfers", NULL);
    gm_page_print(page, GM_DIM, "  %-17s %10s %12s %10s %12s %10s\n", "", "bytes", "calls",
                  "host time", "tiny calls", "pageable");
    for (unsigned direction = 0; direction < GM_DIRECTIONS; direction++) {
        const struct gm_transfer *sum = &transfers->total[direction];
        if (sum->count)
            gm_page_print(page, GM_PLAIN, "  %-17s %10s %12s %10s %12s %10s\n",
                          gm_direction_name(direction), SIZE(sum->bytes), COUNT(sum->count),
                          TIME(sum->nanoseconds), COUNT(sum->tiny),
                          sum->pageable_bytes ? SIZE(sum->pageable_bytes) : "-");
    }
    print_transfer_sites(writer);
}

/* ---- contexts, framework, recorder ----------------------------------------------------------- */

static void print_contexts(struct writer *writer)
{
    const struct gm_contexts *contexts = &writer->analysis->replay.contexts;
    struct gm_page *page = &writer->page;
    bool titled = false;
    for (size_t i = 1; i < contexts->count; i++) {
        const struct gm_context *context = &contexts->entries[i];
        if (!context->known)
            continue;
        if (!titled)
            gm_page_heading(page, "Contexts", "who made the driver keep memory of its own");
        titled = true;
        const char *api = gm_trace_api(writer->analysis->trace, context->api);
        gm_page_paragraph(page, GM_PLAIN, 2, "%scontext on %s, %s after the start, by %s",
                          context->primary ? "primary " : "",
                          PLACE(GM_KIND_DEVICE, context->device),
                          MOMENT(writer->analysis, context->time), api[0] ? api : "?");
        print_stack(page, writer->stacks, context->stack, context->api, 6);
    }
}

static void print_notes(struct writer *writer)
{
    if (!gm_has_notes(writer->analysis))
        return;
    gm_page_heading(&writer->page, "Notes", NULL);
    gm_notes_text(&writer->page, writer->analysis, "");
}

void gm_report_text(FILE *out, const struct gm_analysis *analysis, struct gm_stacks *stacks,
                    const struct gm_text_options *options)
{
    struct writer writer = {
        {out, options->colour, options->all_frames}, analysis, stacks, options->top};
    print_header(&writer);
    gm_findings_text(&writer.page, analysis, stacks);
    gm_pool_failures_text(&writer.page, analysis, stacks, writer.top);
    gm_pools_text(&writer.page, analysis, stacks, writer.top);
    print_peaks(&writer);
    print_residuals(&writer);
    print_leaks(&writer);
    gm_growth_text(&writer.page, analysis, stacks, writer.top);
    print_failures(&writer);
    gm_phases_text(&writer.page, analysis, 2 * writer.top);
    print_fragmentation(&writer);
    print_pinned(&writer);
    gm_lifetimes_text(&writer.page, analysis, stacks, writer.top);
    print_transfers(&writer);
    print_contexts(&writer);
    print_notes(&writer);
    if (options->many)
        fputs("\n----------------------------------------------------------------\n\n", out);
}
