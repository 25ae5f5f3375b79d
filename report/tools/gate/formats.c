/* See formats.h. */
#include "tools/gate/formats.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "base/size.h"
#include "output/json.h"
#include "version.h"
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define ANNOTATIONS 10       /* of each level that GitHub shows of one step */
#define SUMMARY_MAX 1000000u /* bytes that GitHub takes of one step: 1 MiB */

/* ---- places ---------------------------------------------------------------------------------- */

/* A file below the working folder as systems that show a repository want it: relative to it, with
 * '/'. NULL: it is elsewhere. */
static const char *in_repository(const char *file)
{
    static char folder[4096];
    if (!*folder && !getcwd(folder, sizeof(folder)))
        return NULL;
    size_t size = strlen(folder);
    if (*file != '/')
        return *file ? file : NULL;
    return strncmp(file, folder, size) == 0 && file[size] == '/' ? file + size + 1 : NULL;
}

static bool is_told_issue(const struct gm_issue *issue)
{
    return issue->known == GM_ISSUE_NEW && issue->level != GM_ISSUE_NOTE;
}

/* ---- JUnit ----------------------------------------------------------------------------------- */

/* XML has no characters below the blank but three; texts are valid UTF-8 without control characters
 * already, but for the line feeds of stacks and the paths of traces. */
static void put_xml(FILE *out, const char *text)
{
    for (; *text; text++)
        switch (*text) {
        case '&':
            fputs("&amp;", out);
            break;
        case '<':
            fputs("&lt;", out);
            break;
        case '>':
            fputs("&gt;", out);
            break;
        case '"':
            fputs("&quot;", out);
            break;
        case '\n':
            fputs("&#10;", out);
            break;
        default:
            fputc((unsigned char)*text < 0x20 ? '?' : *text, out);
        }
}

static void put_case(FILE *out, const struct gm_issue *issue)
{
    fputs("    <testcase classname=\"gpumem\" name=\"", out);
    put_xml(out, issue->code);
    if (*issue->function) {
        fputs(" in ", out);
        put_xml(out, issue->function);
    }
    fputs("\"", out);
    if (*issue->file) {
        fputs(" file=\"", out);
        put_xml(out, in_repository(issue->file) ? in_repository(issue->file) : issue->file);
        fprintf(out, "\" line=\"%u\"", issue->line);
    }
    fputs(">\n      <failure type=\"", out);
    put_xml(out, issue->code);
    fputs("\" message=\"", out);
    put_xml(out, issue->message);
    fputs("\">", out);
    put_xml(out, issue->stack);
    fputs("</failure>\n    </testcase>\n", out);
}

/* "train, rank 1", "train, second": what stays the same from run to run, as a file's name with a pid in it does not.
 * The caller frees it. */
static char *name_suite(const struct gm_gate_result *result, size_t number)
{
    const struct gm_gate_outcome *outcome = &result->traces[number].outcome;
    size_t before = 0;
    char rank[32] = "", nth[32] = "", *name;
    for (size_t i = 0; i < number; i++)
        before += result->traces[i].outcome.rank == outcome->rank &&
                  strcmp(result->traces[i].outcome.program, outcome->program) == 0;
    if (outcome->rank >= 0)
        snprintf(rank, sizeof(rank), ", rank %" PRId64, outcome->rank);
    if (before)
        snprintf(nth, sizeof(nth), ", number %zu", before + 1);
    if (asprintf(&name, "%s%s%s", *outcome->program ? outcome->program : "a trace", rank, nth) < 0)
        name = gm_copy_text("a trace");
    return name;
}

static bool is_judged(const struct gm_gate_result *result)
{
    return result->code == GM_EXIT_FINE || result->code == GM_EXIT_FINDINGS;
}

/* Whether a trace was judged. A budget that no trace has anything for is nobody's own: then none was. */
static bool is_judged_trace(const struct gm_gate_result *result, const struct gm_gate_trace *trace)
{
    bool is_of_one = false;
    for (size_t i = 0; i < result->trace_count; i++)
        is_of_one |= result->traces[i].outcome.unreadable;
    if (is_judged(result))
        return true;
    return trace && is_of_one && !trace->outcome.unreadable;
}

/* A suite for each trace, in it a case for each failure, and one for the judgement itself. */
static void write_junit(FILE *out, const struct gm_gate_result *result)
{
    fputs("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<testsuites name=\"gpumem\">\n", out);
    for (size_t i = 0; i < result->trace_count || (i == 0 && !result->trace_count); i++) {
        const struct gm_gate_trace *trace = result->trace_count ? &result->traces[i] : NULL;
        char *name = trace ? name_suite(result, i) : gm_copy_text("no trace");
        size_t failures = 0;
        for (size_t at = 0; trace && at < result->issues->count; at++) {
            const struct gm_issue *issue = &result->issues->entries[at];
            failures += strcmp(issue->trace, trace->path) == 0 && is_told_issue(issue) &&
                        issue->level == GM_ISSUE_FAILURE;
        }
        bool is_error = !is_judged_trace(result, trace);
        fputs("  <testsuite name=\"", out);
        put_xml(out, name);
        fprintf(out, "\" tests=\"%zu\" failures=\"%zu\" errors=\"%d\">\n", failures + 1, failures,
                is_error);
        fputs("    <testcase classname=\"gpumem\" name=\"judged\">\n", out);
        if (is_error) {
            fputs("      <error message=\"", out);
            put_xml(out, result->conclusion);
            fputs("\"/>\n", out);
        }
        fputs("    </testcase>\n", out);
        for (size_t at = 0; trace && at < result->issues->count; at++) {
            const struct gm_issue *issue = &result->issues->entries[at];
            if (strcmp(issue->trace, trace->path) == 0 && is_told_issue(issue) &&
                issue->level == GM_ISSUE_FAILURE)
                put_case(out, issue);
        }
        fputs("  </testsuite>\n", out);
        free(name);
    }
    fputs("</testsuites>\n", out);
}

/* ---- SARIF 2.1.0 ----------------------------------------------------------------------------- */

/* What a URI may not have, is written as %XX. */
static char *uri_of(const char *file)
{
    const char *relative = in_repository(file);
    const char *from = relative ? relative : file;
    char *uri = gm_allocate(3 * strlen(from) + 8, 1), *at = uri;
    if (!relative)
        at = stpcpy(at, "file://");
    for (; *from; from++) {
        if (strchr("/-._~", *from) || (*from >= '0' && *from <= '9') ||
            ((*from | 32) >= 'a' && (*from | 32) <= 'z'))
            *at++ = *from;
        else
            at += sprintf(at, "%%%02X", (unsigned char)*from);
    }
    return uri;
}

static void put_location(struct gm_json *json, const struct gm_issue *issue)
{
    gm_json_open_array(json, "locations");
    gm_json_open_object(json, NULL);
    if (*issue->file) {
        char *uri = uri_of(issue->file);
        gm_json_open_object(json, "physicalLocation");
        gm_json_open_object(json, "artifactLocation");
        gm_json_string(json, "uri", uri);
        if (in_repository(issue->file))
            gm_json_string(json, "uriBaseId", "%SRCROOT%");
        gm_json_close_object(json);
        if (issue->line) {
            gm_json_open_object(json, "region");
            gm_json_number(json, "startLine", issue->line);
            gm_json_close_object(json);
        }
        gm_json_close_object(json);
        free(uri);
    }
    if (*issue->function) {
        gm_json_open_array(json, "logicalLocations");
        gm_json_open_object(json, NULL);
        gm_json_string(json, "fullyQualifiedName", issue->function);
        gm_json_string(json, "kind", "function");
        gm_json_close_object(json);
        gm_json_close_array(json);
    }
    gm_json_close_object(json);
    gm_json_close_array(json);
}

static void put_result(struct gm_json *json, const struct gm_issue *issue)
{
    char text[20];
    gm_json_open_object(json, NULL);
    gm_json_string(json, "ruleId", issue->code);
    gm_json_string(json, "level", gm_issue_level_name(issue->level));
    gm_json_open_object(json, "message");
    gm_json_string(json, "text", issue->message);
    gm_json_close_object(json);
    put_location(json, issue);
    snprintf(text, sizeof(text), "%016" PRIx64, issue->fingerprint);
    gm_json_open_object(json, "partialFingerprints");
    gm_json_string(json, "gpumem/v1", text);
    gm_json_close_object(json);
    if (issue->known == GM_ISSUE_SUPPRESSED) {
        gm_json_open_array(json, "suppressions");
        gm_json_open_object(json, NULL);
        gm_json_string(json, "kind", "external");
        gm_json_close_object(json);
        gm_json_close_array(json);
    } else {
        gm_json_string(json, "baselineState",
                       issue->known == GM_ISSUE_IN_BASELINE ? "unchanged" : "new");
    }
    gm_json_close_object(json);
}

static void write_sarif(FILE *out, const struct gm_gate_result *result)
{
    struct gm_json json = {.out = out};
    const struct gm_issues *issues = result->issues;
    gm_json_open_object(&json, NULL);
    gm_json_string(&json, "$schema", "https://json.schemastore.org/sarif-2.1.0.json");
    gm_json_string(&json, "version", "2.1.0");
    gm_json_open_array(&json, "runs");
    gm_json_open_object(&json, NULL);
    gm_json_open_object(&json, "tool");
    gm_json_open_object(&json, "driver");
    gm_json_string(&json, "name", "gpumem");
    gm_json_string(&json, "version", GPUMEM_VERSION);
    gm_json_open_array(&json, "rules");
    for (size_t i = 0; i < issues->count; i++) {
        bool is_first = true;
        for (size_t before = 0; is_first && before < i; before++)
            is_first = strcmp(issues->entries[before].code, issues->entries[i].code) != 0;
        if (!is_first)
            continue;
        gm_json_open_object(&json, NULL);
        gm_json_string(&json, "id", issues->entries[i].code);
        gm_json_close_object(&json);
    }
    gm_json_close_array(&json);
    gm_json_close_object(&json);
    gm_json_close_object(&json);
    gm_json_open_array(&json, "invocations");
    gm_json_open_object(&json, NULL);
    gm_json_bool(&json, "executionSuccessful", is_judged(result));
    gm_json_number(&json, "exitCode", (uint64_t)result->exit_code);
    gm_json_string(&json, "exitCodeDescription", result->conclusion);
    gm_json_close_object(&json);
    gm_json_close_array(&json);
    gm_json_string(&json, "columnKind", "unicodeCodePoints");
    gm_json_open_array(&json, "results");
    for (size_t i = 0; i < issues->count; i++)
        put_result(&json, &issues->entries[i]);
    gm_json_close_array(&json);
    gm_json_close_object(&json);
    gm_json_close_array(&json);
    gm_json_close_object(&json);
    gm_json_end(&json);
}

/* ---- GitHub ---------------------------------------------------------------------------------- */

static void put_escaped(FILE *out, const char *text, bool is_property)
{
    for (; *text; text++)
        if (*text == '%' || *text == '\r' || *text == '\n' ||
            (is_property && (*text == ':' || *text == ',')))
            fprintf(out, "%%%02X", (unsigned char)*text);
        else
            fputc(*text, out);
}

/* In a table of Markdown. */
static void put_markdown(FILE *out, const char *text)
{
    for (; *text; text++) {
        if (strchr("\\`*_[]<>|~&", *text))
            fputc('\\', out);
        fputc(*text == '\n' ? ' ' : *text, out);
    }
}

static void write_summary(FILE *out, const struct gm_gate_result *result)
{
    fputs("### gpumem: ", out);
    put_markdown(out, result->conclusion);
    fputs("\n\n", out);
    bool any = false;
    size_t left = 0;
    for (size_t i = 0; i < result->issues->count; i++) {
        const struct gm_issue *issue = &result->issues->entries[i];
        if (!is_told_issue(issue))
            continue;
        if (ftell(out) > (long)SUMMARY_MAX - 16384) {
            left++;
            continue;
        }
        if (!any)
            fputs("| | what | where | bytes |\n|---|---|---|---:|\n", out);
        any = true;
        fprintf(out, "| %s | ", gm_issue_level_name(issue->level));
        put_markdown(out, issue->code);
        fputs(" | ", out);
        put_markdown(out, *issue->file ? issue->file : issue->function);
        if (issue->line)
            fprintf(out, ":%u", issue->line);
        fprintf(out, " | %s |\n", BYTES(issue->bytes));
    }
    if (left)
        fprintf(out, "\n%zu more: see the output.\n", left);
}

/* Annotations on stdout, as many as GitHub shows, and the table of all in the step's summary. */
static void write_github(FILE *out, const struct gm_gate_result *result)
{
    static const char *const commands[] = {"notice", "warning", "error"};
    unsigned shown[3] = {0}, left = 0;
    const char *summary = getenv("GITHUB_STEP_SUMMARY");
    if (!is_judged(result)) {
        fputs("::error title=gpumem::", out);
        put_escaped(out, result->conclusion, false);
        fputc('\n', out);
        shown[GM_ISSUE_FAILURE]++;
    }
    for (size_t i = 0; i < result->issues->count; i++) {
        const struct gm_issue *issue = &result->issues->entries[i];
        if (!is_told_issue(issue))
            continue;
        if (shown[issue->level]++ >= ANNOTATIONS - 1) {
            left++;
            continue;
        }
        fprintf(out, "::%s ", commands[issue->level]);
        if (*issue->file && in_repository(issue->file)) {
            fputs("file=", out);
            put_escaped(out, in_repository(issue->file), true);
            fprintf(out, ",line=%u,", issue->line ? issue->line : 1);
        }
        fputs("title=gpumem ", out);
        put_escaped(out, issue->code, true);
        fputs("::", out);
        put_escaped(out, issue->message, false);
        fputc('\n', out);
    }
    if (left)
        fprintf(out, "::notice title=gpumem::%u more: see the output above\n", left);
    FILE *file = summary && *summary ? fopen(summary, "ae") : NULL;
    if (file) {
        write_summary(file, result);
        fclose(file);
    }
}

/* ---- GitLab ---------------------------------------------------------------------------------- */

static void write_gitlab(FILE *out, const struct gm_gate_result *result)
{
    static const char *const severities[] = {"info", "minor", "major"};
    struct gm_json json = {.out = out};
    gm_json_open_array(&json, NULL);
    for (size_t i = 0; i < result->issues->count; i++) {
        const struct gm_issue *issue = &result->issues->entries[i];
        const char *file = in_repository(issue->file);
        char text[20];
        if (!is_told_issue(issue))
            continue;
        snprintf(text, sizeof(text), "%016" PRIx64, issue->fingerprint);
        gm_json_open_object(&json, NULL);
        gm_json_string(&json, "description", issue->message);
        gm_json_string(&json, "check_name", issue->code);
        gm_json_string(&json, "fingerprint", text);
        gm_json_string(&json, "severity", severities[issue->level]);
        gm_json_open_object(&json, "location");
        gm_json_string(&json, "path", file ? file : *issue->file ? issue->file : "unknown");
        gm_json_open_object(&json, "lines");
        gm_json_number(&json, "begin", issue->line ? issue->line : 1);
        gm_json_close_object(&json);
        gm_json_close_object(&json);
        gm_json_close_object(&json);
    }
    gm_json_close_array(&json);
    gm_json_end(&json);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void put_issue(struct gm_json *json, const struct gm_issue *issue)
{
    static const char *const known[] = {"new", "baseline", "suppressed"};
    char text[20];
    snprintf(text, sizeof(text), "%016" PRIx64, issue->fingerprint);
    gm_json_open_object(json, NULL);
    GM_JSON_MEMBERS(json, issue, code, is_finding);
    gm_json_string(json, "level", gm_issue_level_name(issue->level));
    gm_json_string(json, "state", known[issue->known]);
    gm_json_string(json, "fingerprint", text);
    GM_JSON_MEMBERS(json, issue, device, bytes, count, message);
    gm_json_string(json, "function", *issue->function ? issue->function : NULL);
    gm_json_string(json, "file", *issue->file ? issue->file : NULL);
    gm_json_number(json, "line", issue->line);
    gm_json_text(json, "trace", (struct gm_text){issue->trace, strlen(issue->trace)});
    gm_json_close_object(json);
}

static void write_json(FILE *out, const struct gm_gate_result *result)
{
    struct gm_json json = {.out = out};
    gm_json_open_object(&json, NULL);
    gm_json_string(&json, "format", "gpumem check");
    gm_json_number(&json, "version", 1);
    gm_json_string(&json, "conclusion", result->conclusion);
    gm_json_number(&json, "exit_code", (uint64_t)result->exit_code);
    gm_json_open_array(&json, "issues");
    for (size_t i = 0; i < result->issues->count; i++)
        put_issue(&json, &result->issues->entries[i]);
    gm_json_close_array(&json);
    gm_json_close_object(&json);
    gm_json_end(&json);
}

/* ---- metrics --------------------------------------------------------------------------------- */

static void family(FILE *out, const char *name, const char *unit, const char *help)
{
    fprintf(out, "# TYPE %s gauge\n", name);
    if (unit)
        fprintf(out, "# UNIT %s %s\n", name, unit);
    fprintf(out, "# HELP %s %s\n", name, help);
}

/* The most of all traces: a series stands in the text once. */
static int64_t highest(const struct gm_gate_result *result, const struct gm_gate_figure *of,
                       size_t from, size_t at, bool *is_first)
{
    int64_t bytes = 0;
    *is_first = true;
    for (size_t i = 0; i < result->trace_count; i++)
        for (size_t j = 0; j < result->traces[i].outcome.figure_count; j++) {
            const struct gm_gate_figure *figure = &result->traces[i].outcome.figures[j];
            if (figure->budget != of->budget || figure->device != of->device ||
                figure->rank != of->rank)
                continue;
            bytes = figure->bytes > bytes ? figure->bytes : bytes;
            *is_first &= i > from || (i == from && j >= at);
        }
    return bytes;
}

static void put_peaks(FILE *out, const struct gm_gate_result *result, enum gm_gate_budget budget,
                      const char *name)
{
    for (size_t i = 0; i < result->trace_count; i++)
        for (size_t at = 0; at < result->traces[i].outcome.figure_count; at++) {
            const struct gm_gate_figure *figure = &result->traces[i].outcome.figures[at];
            char rank[24] = "none";
            bool is_first;
            if (figure->budget != budget)
                continue;
            int64_t bytes = highest(result, figure, i, at, &is_first);
            if (figure->rank >= 0)
                snprintf(rank, sizeof(rank), "%" PRId64, figure->rank);
            if (is_first && figure->device >= 0)
                fprintf(out, "%s{device=\"%d\",rank=\"%s\"} %" PRId64 "\n", name, figure->device,
                        rank, bytes);
            else if (is_first)
                fprintf(out, "%s{rank=\"%s\"} %" PRId64 "\n", name, rank, bytes);
        }
}

static void put_issue_counts(FILE *out, const struct gm_gate_result *result)
{
    static const char *const known[] = {"new", "baseline", "suppressed"};
    for (unsigned level = GM_ISSUE_NOTE; level <= GM_ISSUE_FAILURE; level++)
        for (unsigned state = GM_ISSUE_NEW; state <= GM_ISSUE_SUPPRESSED; state++) {
            size_t count = 0;
            for (size_t i = 0; i < result->issues->count; i++)
                count += result->issues->entries[i].level == level &&
                         result->issues->entries[i].known == state;
            fprintf(out, "gpumem_check_issues{level=\"%s\",state=\"%s\"} %zu\n",
                    gm_issue_level_name(level), known[state], count);
        }
}

/* OpenMetrics 1.0, for GitLab's metrics report: few series, of names that stay. */
static void write_metrics(FILE *out, const struct gm_gate_result *result)
{
    int64_t leaked[GM_LEAK_CLASSES] = {0};
    for (size_t i = 0; i < result->trace_count; i++)
        for (unsigned leak_class = 0; leak_class < GM_LEAK_CLASSES; leak_class++)
            leaked[leak_class] += result->traces[i].outcome.leaked[leak_class];
    family(out, "gpumem_check_exit_code", NULL, "0 if the check passed.");
    fprintf(out, "gpumem_check_exit_code %d\n", result->exit_code);
    family(out, "gpumem_check_traces", NULL, "Traces that were judged, or could not be.");
    fprintf(out, "gpumem_check_traces %zu\n", result->trace_count);
    family(out, "gpumem_check_issues", NULL, "Issues by level and by what is known of them.");
    put_issue_counts(out, result);
    family(out, "gpumem_leaked_bytes", "bytes", "Memory left at the end, by class, of all traces.");
    for (unsigned leak_class = GM_LEAK; leak_class < GM_LEAK_CLASSES; leak_class++)
        fprintf(out, "gpumem_leaked_bytes{class=\"%s\"} %" PRId64 "\n",
                gm_leak_class_name(leak_class), leaked[leak_class]);
    family(out, "gpumem_peak_bytes", "bytes", "Highest peak of a device in any trace.");
    put_peaks(out, result, GM_BUDGET_PEAK, "gpumem_peak_bytes");
    family(out, "gpumem_pinned_peak_bytes", "bytes", "Highest peak of pinned memory in any trace.");
    put_peaks(out, result, GM_BUDGET_PINNED, "gpumem_pinned_peak_bytes");
    fputs("# EOF\n", out);
}

/* ---- rules ----------------------------------------------------------------------------------- */

static void write_suppressions(FILE *out, const struct gm_gate_result *result)
{
    gm_rules_write(out, result->issues);
}

/* ---- the formats ----------------------------------------------------------------------------- */

static const struct format {
    const char *name;
    void (*write)(FILE *out, const struct gm_gate_result *result);
} formats[] = {
    {"junit", write_junit},
    {"sarif", write_sarif},
    {"github", write_github},
    {"gitlab", write_gitlab},
    {"json", write_json},
    {"metrics", write_metrics},
    {"suppressions", write_suppressions},
};

static const struct format *find_format(const char *text)
{
    size_t size = strcspn(text, "=");
    for (size_t i = 0; i < sizeof(formats) / sizeof(formats[0]); i++)
        if (strlen(formats[i].name) == size && memcmp(formats[i].name, text, size) == 0 &&
            (text[size] ? text[size + 1] != 0 : strcmp(formats[i].name, "github") == 0))
            return &formats[i];
    return NULL;
}

bool gm_format_is_known(const char *text)
{
    if (find_format(text))
        return true;
    fprintf(stderr,
            "gpumem: --format: '%s' is none of junit=FILE, sarif=FILE, gitlab=FILE, json=FILE, "
            "metrics=FILE, suppressions=FILE and github\n",
            text);
    return false;
}

bool gm_format_asks_rules(const char *text)
{
    const struct format *format = find_format(text);
    return format && format->write == write_suppressions;
}

bool gm_format_asks_peaks(const char *text)
{
    const struct format *format = find_format(text);
    return format && format->write == write_metrics;
}

bool gm_format_write(const char *text, const struct gm_gate_result *result)
{
    const char *equals = strchr(text, '=');
    FILE *out = equals ? fopen(equals + 1, "we") : stdout;
    if (out)
        find_format(text)->write(out, result);
    bool good = out && !ferror(out);
    if (out && equals)
        good = fclose(out) == 0 && good;
    if (!good)
        fprintf(stderr, "gpumem: %s: %s\n", equals ? equals + 1 : "stdout", strerror(errno));
    return good;
}
