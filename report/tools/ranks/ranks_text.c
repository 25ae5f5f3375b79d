/* See ranks_text.h. */
#include "tools/ranks/ranks_text.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/size.h"
#include "base/text.h"
#include "output/amount.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define ROWS_MAX 16u   /* of the table; of more processes, the worst */
#define PIDS_SHOWN 6u  /* of helpers */
#define LINES_SHOWN 3u /* in which the odd one differs */

/* Less is no difference: a tenth of the median, and 16 MiB. */
#define ODD_SHARE 10
#define ODD_LEAST (INT64_C(16) << 20)

static bool is_active(const struct gm_summary *summary)
{
    return summary->device_count != 0 || summary->gravity == GM_GRAVITY_NO_MEMORY;
}

size_t gm_ranks_active(const struct gm_summaries *summaries)
{
    size_t count = 0;
    for (size_t i = 0; i < summaries->count; i++)
        count += is_active(&summaries->entries[i]);
    return count;
}

static int64_t peak_of(const struct gm_summary *summary)
{
    const struct gm_summary_device *device = gm_summary_main(summary);
    return device ? device->peak : 0;
}

static int64_t failed_at(const struct gm_summary *summary)
{
    const struct gm_summary_device *device = gm_summary_main(summary);
    return device && device->failed_ns ? device->failed_ns : INT64_MAX;
}

/* A process that was killed comes before one that leaks: it is why the job stands still. */
static unsigned weight_of(const struct gm_summary *summary)
{
    return summary->gravity == GM_GRAVITY_CUT ? 2 * GM_GRAVITY_LEAKS + 1 : 2 * summary->gravity;
}

static bool is_worse(const struct gm_summary *a, const struct gm_summary *b)
{
    if (a->gravity != b->gravity)
        return weight_of(a) > weight_of(b);
    if (a->gravity == GM_GRAVITY_NO_MEMORY && failed_at(a) != failed_at(b))
        return failed_at(a) < failed_at(b);
    return peak_of(a) > peak_of(b);
}

const struct gm_summary *gm_ranks_worst(const struct gm_summaries *summaries)
{
    const struct gm_summary *worst = NULL;
    for (size_t i = 0; i < summaries->count; i++)
        if (!worst || is_worse(&summaries->entries[i], worst))
            worst = &summaries->entries[i];
    return worst;
}

GM_ORDER_POINTERS(by_gravity, struct gm_summary,
                  GM_UP_OF(is_worse(b, a), is_worse(a, b)) GM_UP_OF(a, b))

const struct gm_summary **gm_ranks_by_gravity(const struct gm_summaries *summaries)
{
    const struct gm_summary **order =
        gm_allocate(summaries->count + 1, sizeof(const struct gm_summary *));
    for (size_t i = 0; i < summaries->count; i++)
        order[i] = &summaries->entries[i];
    qsort(order, summaries->count, sizeof(const struct gm_summary *), by_gravity);
    return order;
}

/* "rank 3", or without ranks "process 4242". */
static const char *rank_name(const struct gm_summary *summary, char text[GM_SIZE_TEXT])
{
    if (summary->rank >= 0)
        snprintf(text, GM_SIZE_TEXT, "rank %" PRId64, summary->rank);
    else
        snprintf(text, GM_SIZE_TEXT, "process %" PRId64, summary->pid);
    return text;
}
#define NAME(summary) rank_name((summary), (char[GM_SIZE_TEXT]){0})

/* ---- head ------------------------------------------------------------------------------------ */

static void print_helpers(struct gm_page *page, const struct gm_summaries *summaries)
{
    char pids[PIDS_SHOWN * 12 + 8] = "";
    size_t count = 0, used = 0;
    for (size_t i = 0; i < summaries->count; i++) {
        if (is_active(&summaries->entries[i]))
            continue;
        if (count < PIDS_SHOWN)
            used += (size_t)snprintf(pids + used, sizeof(pids) - used, "%s%" PRIu32,
                                     count ? ", " : "", (uint32_t)summaries->entries[i].pid);
        else if (count == PIDS_SHOWN)
            snprintf(pids + used, sizeof(pids) - used, ", ...");
        count++;
    }
    if (count && count < summaries->count)
        gm_page_paragraph(page, GM_DIM, 0, "%s helper process%s used no GPU memory: %s",
                          COUNT(count), count == 1 ? "" : "es", pids);
}

/* What all have, or nothing. */
static const char *common(const struct gm_summaries *summaries,
                          const char *(*get)(const struct gm_summary *))
{
    for (size_t i = 1; i < summaries->count; i++)
        if (strcmp(get(&summaries->entries[0]), get(&summaries->entries[i])) != 0)
            return "";
    return get(&summaries->entries[0]);
}

static const char *job_of(const struct gm_summary *summary)
{
    return summary->job;
}

static const char *host_of(const struct gm_summary *summary)
{
    return summary->host;
}

static const char *command_of(const struct gm_summary *summary)
{
    return summary->command;
}

static void print_head(struct gm_page *page, const struct gm_summaries *summaries, size_t active)
{
    const char *job = common(summaries, job_of), *host = common(summaries, host_of);
    const char *command = common(summaries, command_of);
    bool is_simulated = false;
    gm_page_print(page, GM_BOLD, "gpumem report");
    gm_page_print(page, GM_PLAIN, " of %s processes%s", COUNT(active), command[0] ? " of " : "");
    gm_page_cut(page, command, gm_page_columns(page) - 40);
    fputc('\n', page->out);
    if (job[0] || host[0])
        gm_page_paragraph(page, GM_DIM, 0, "%s%.60s%s%s%.60s", job[0] ? "job " : "", job,
                          job[0] && host[0] ? ", " : "", host[0] ? "all on " : "", host);
    for (size_t i = 0; i < summaries->count; i++)
        is_simulated |= summaries->entries[i].simulated;
    if (is_simulated)
        gm_page_print(page, GM_WARNING, "SIMULATED: there was no GPU, all devices are simulated\n");
}

/* ---- table ----------------------------------------------------------------------------------- */

static const char *or_dash(int64_t bytes, char text[GM_SIZE_TEXT + 1])
{
    return bytes > 0 ? gm_amount_format(bytes, text, gm_size_format) : "-";
}
#define OR_DASH(bytes) or_dash((bytes), (char[GM_SIZE_TEXT + 1]){0})

/* "first", or how long after the first. */
static const char *when_failed(int64_t failed, int64_t first, char text[GM_SIZE_TEXT + 1])
{
    if (failed == INT64_MAX)
        return "-";
    if (failed == first)
        return "first";
    text[0] = '+';
    gm_time_format((uint64_t)(failed - first), text + 1);
    return text;
}

static void print_rank_row(struct gm_page *page, const struct gm_summary *summary, int64_t first)
{
    const struct gm_summary_device *device = gm_summary_main(summary);
    struct gm_summary_device none = {.id = -1, .residual = -1};
    char later[GM_SIZE_TEXT + 1], id[16] = "-";
    device = device ? device : &none;
    if (device->id >= 0)
        snprintf(id, sizeof(id), "%d", device->id);
    gm_page_print(page, summary->gravity >= GM_GRAVITY_LEAKS ? GM_BAD : GM_PLAIN, "  %-14s",
                  NAME(summary));
    gm_page_print(page, GM_PLAIN, "%4s %8s %8s %8s %8s  %-8s ", id, OR_DASH(device->peak),
                  OR_DASH(device->reserved), OR_DASH(device->outside), OR_DASH(device->residual),
                  when_failed(failed_at(summary), first, later));
    bool by_signal = strncmp(summary->ending, "ended by ", 9) == 0; /* the signal must fit */
    gm_page_cut(page, summary->ending + (by_signal ? 9 : 0), 13);
    fputc('\n', page->out);
}

GM_ORDER_POINTERS(by_place, struct gm_summary, GM_UP_OF(a, b))

GM_ORDER(by_value, int64_t, GM_UP_OF(*a, *b))

static int64_t median(int64_t *values, size_t count)
{
    qsort(values, count, sizeof(*values), by_value);
    return count ? values[(count - 1) / 2] : 0;
}

/* The active ones; the caller frees. */
static const struct gm_summary **list_active(const struct gm_summaries *summaries, size_t *count)
{
    const struct gm_summary **list = gm_allocate(summaries->count + 1, sizeof(*list));
    *count = 0;
    for (size_t i = 0; i < summaries->count; i++)
        if (is_active(&summaries->entries[i]))
            list[(*count)++] = &summaries->entries[i];
    return list;
}

static int64_t median_peak(const struct gm_summary *const *list, size_t count)
{
    int64_t *values = gm_allocate(count + 1, sizeof(*values));
    for (size_t i = 0; i < count; i++)
        values[i] = peak_of(list[i]);
    int64_t value = median(values, count);
    free(values);
    return value;
}

/* A row of a process that runs is of no whole run. */
static void print_running(struct gm_page *page, const struct gm_summary *const *list, size_t count)
{
    int64_t running = 0, first = INT64_MAX, last = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t as_of = list[i]->as_of_ns;
        running += as_of > 0;
        first = as_of > 0 && as_of < first ? as_of : first;
        last = as_of > last ? as_of : last;
    }
    if (running == 1)
        gm_page_paragraph(page, GM_WARNING, 2, "1 process still runs: as of %s after its start",
                          TIME((uint64_t)last));
    else if (running)
        gm_page_paragraph(page, GM_WARNING, 2,
                          "%s processes still run: as of %s to %s after their starts",
                          NUMBER(running), TIME((uint64_t)first), TIME((uint64_t)last));
}

static void print_table(struct gm_page *page, const struct gm_summaries *summaries)
{
    size_t count, shown;
    const struct gm_summary **list = list_active(summaries, &count);
    int64_t first = INT64_MAX, sum = 0, least = INT64_MAX, most = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t peak = peak_of(list[i]);
        first = failed_at(list[i]) < first ? failed_at(list[i]) : first;
        least = peak < least ? peak : least;
        most = peak > most ? peak : most;
        sum = __builtin_add_overflow(sum, peak, &sum) ? INT64_MAX : sum;
    }
    int64_t middle = median_peak(list, count);
    qsort(list, count, sizeof(*list), by_gravity);
    shown = count < ROWS_MAX ? count : ROWS_MAX;
    qsort(list, shown, sizeof(*list), by_place);
    gm_page_print(page, GM_DIM, "\n  %-14s%4s %8s %8s %8s %8s  %-8s %s\n", "", "dev", "peak",
                  "reserved", "outside", "residual", "ran out", "end");
    for (size_t i = 0; i < shown; i++)
        print_rank_row(page, list[i], first);
    if (count > shown)
        gm_page_print(page, GM_DIM, "  ... and %zu less remarkable\n", count - shown);
    gm_page_paragraph(page, GM_PLAIN, 2, "peaks from %s to %s, median %s, sum %s", BYTES(least),
                      BYTES(most), BYTES(middle), BYTES(sum));
    print_running(page, list, count);
    gm_page_paragraph(page, GM_DIM, 2,
                      "reserved: by the framework's pool; outside: of the peak, in no pool; "
                      "residual: the driver's, beside what was recorded.");
    free(list);
}

/* ---- the odd one out ------------------------------------------------------------------------- */

static int64_t bytes_at(const struct gm_summary *summary, const char *place)
{
    for (size_t i = 0; i < summary->line_count; i++)
        if (strcmp(summary->lines[i].place, place) == 0)
            return summary->lines[i].bytes;
    return 0;
}

/* A line, and by how much the odd one differs there from the median of the others. */
struct difference {
    const char *place;
    int64_t own;
    int64_t others;
};

GM_ORDER(by_size, struct difference,
         GM_UP_OF(llabs(b->own - b->others), llabs(a->own - a->others)) GM_BY_TEXT(place))

static int64_t median_at(const struct gm_summary *const *list, size_t count, const char *place,
                         const struct gm_summary *odd)
{
    int64_t *values = gm_allocate(count + 1, sizeof(*values));
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        if (list[i] != odd)
            values[used++] = bytes_at(list[i], place);
    int64_t value = median(values, used);
    free(values);
    return value;
}

/* Lines of the odd one, and of one whose peak is the median: what only others have stands there. */
static size_t collect_differences(struct difference *differences, size_t most,
                                  const struct gm_summary *const *list, size_t count,
                                  const struct gm_summary *odd, const struct gm_summary *usual)
{
    size_t used = 0;
    for (size_t i = 0; i < odd->line_count && used < most; i++)
        differences[used++] = (struct difference){odd->lines[i].place, odd->lines[i].bytes,
                                                  median_at(list, count, odd->lines[i].place, odd)};
    for (size_t i = 0; usual && i < usual->line_count && used < most; i++) {
        const char *place = usual->lines[i].place;
        if (!bytes_at(odd, place))
            differences[used++] = (struct difference){place, 0, median_at(list, count, place, odd)};
    }
    qsort(differences, used, sizeof(*differences), by_size);
    return used;
}

static void print_odd(struct gm_page *page, const struct gm_summaries *summaries)
{
    size_t count;
    const struct gm_summary **list = list_active(summaries, &count), *odd = NULL, *usual = NULL;
    struct difference differences[128];
    int64_t middle = median_peak(list, count);
    for (size_t i = 0; i < count; i++) {
        if (!odd || llabs(peak_of(list[i]) - middle) > llabs(peak_of(odd) - middle))
            odd = list[i];
        if (!usual && peak_of(list[i]) == middle)
            usual = list[i];
    }
    int64_t distance = odd ? peak_of(odd) - middle : 0;
    if (count > 1 && llabs(distance) > middle / ODD_SHARE && llabs(distance) >= ODD_LEAST) {
        size_t used = collect_differences(differences, sizeof(differences) / sizeof(differences[0]),
                                          list, count, odd, usual == odd ? NULL : usual);
        gm_page_paragraph(page, GM_WARNING, 0, "The odd one out: %s, peak %s %s than the median",
                          NAME(odd), BYTES(llabs(distance)), distance > 0 ? "more" : "less");
        for (size_t i = 0; i < used && i < LINES_SHOWN; i++)
            if (differences[i].own != differences[i].others) {
                fputs("  ", page->out);
                gm_page_cut(page, differences[i].place, gm_page_columns(page) - 2);
                gm_page_print(page, GM_PLAIN, "\n      %s there, %s in the median of the others\n",
                              BYTES(differences[i].own), BYTES(differences[i].others));
            }
    }
    free(list);
}

void gm_ranks_text(struct gm_page *page, const struct gm_summaries *summaries)
{
    size_t active = gm_ranks_active(summaries);
    const struct gm_summary *worst = gm_ranks_worst(summaries);
    if (active > 1)
        print_head(page, summaries, active);
    if (active)
        print_helpers(page, summaries);
    else if (summaries->count > 1)
        gm_page_print(page, GM_WARNING, "None of the %zu processes used GPU memory.\n",
                      summaries->count);
    if (active > 1) {
        print_table(page, summaries);
        print_odd(page, summaries);
        gm_page_print(page, GM_BOLD, "\n%s: %s\n",
                      worst->gravity > GM_GRAVITY_FINE ? "The worst" : "The largest", NAME(worst));
    }
    if (summaries->count > 1)
        fputc('\n', page->out);
}
