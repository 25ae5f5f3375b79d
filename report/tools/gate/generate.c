/* See suppressions.h: rules for what fails, ready to be pasted. What they match is what the reader of
 * rules (suppressions.c) understands, whatever stands in a name. */
#include "base/memory.h"
#include "base/order.h"
#include "tools/gate/suppressions.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define NAME_MAX_BYTES 4000 /* of a pattern; longer names end with a star */
#define LINE_MAX_BYTES 8000 /* of a "match" line, after which another one goes on */

struct lines {
    char *bytes;
    size_t size, capacity;
    size_t line; /* where the last line begins */
};

static void append_line(struct lines *lines, const char *text, size_t size)
{
    GM_RESERVE(lines->bytes, lines->capacity, lines->size + size + 1);
    memcpy(lines->bytes + lines->size, text, size);
    lines->size += size;
    lines->bytes[lines->size] = 0;
}

/* A name as a pattern of itself: what the reader takes for its own signs stands for any text. */
static void append_pattern(struct lines *lines, const char *kind, const char *name)
{
    size_t size = strlen(name);
    bool is_cut = size > NAME_MAX_BYTES;
    append_line(lines, kind, strlen(kind));
    append_line(lines, "^", 1);
    for (size_t i = 0; i < (is_cut ? NAME_MAX_BYTES : size); i++) {
        bool is_at_end = i == 0 || i + 1 == size;
        bool is_sign = name[i] == ',' || name[i] == '*' || (is_at_end && strchr("^$ ", name[i]));
        append_line(lines, is_sign ? "*" : &name[i], 1);
    }
    append_line(lines, is_cut ? "*$" : "$", is_cut ? 2 : 1);
}

static void append_frame(struct lines *lines, const struct gm_frame *frame)
{
    bool is_named = strstr(frame->function, "+0x") == NULL;
    if (lines->size == 0 || lines->size - lines->line > LINE_MAX_BYTES) {
        if (lines->size)
            append_line(lines, "\n", 1);
        lines->line = lines->size;
        append_line(lines, "match = ", 8);
    } else {
        append_line(lines, ", ", 2);
    }
    if (is_named && *frame->function)
        append_pattern(lines, "fun:", frame->function);
    else if (frame->module && *frame->module) /* an address, which the next build moves */
        append_pattern(lines, "obj:", frame->module);
    else
        append_line(lines, "fun:*", 5);
}

char *gm_rule_frames_of(const struct gm_stack *stack)
{
    struct lines lines = {0};
    append_line(&lines, "", 0);
    for (size_t i = 0; i < stack->count; i++)
        append_frame(&lines, &stack->frames[i]);
    if (lines.size)
        append_line(&lines, ", $\n", 4);
    return lines.bytes;
}

/* Issues that one rule stands for read the same, whatever else tells them apart (two kinds of memory
 * from one place): in the order of code, frames and trace they follow each other. */
GM_ORDER_POINTERS(by_rule, struct gm_issue, GM_BY_TEXT(code) GM_BY_TEXT(frames) GM_BY_TEXT(trace))

/* What a rule has to accept: all issues that it stands for, of the trace that has most. */
struct accepted {
    const struct gm_issue *failing; /* one that fails; NULL: none does */
    int device;                     /* -1: of none, or of more than one */
    int64_t bytes, count;
};

static struct accepted accepted_of(const struct gm_issue *const *issues, size_t count)
{
    struct accepted all = {.device = issues[0]->device};
    int64_t bytes = 0, allocations = 0;
    for (size_t i = 0; i < count; i++) {
        const struct gm_issue *issue = issues[i];
        if (i == 0 || strcmp(issue->trace, issues[i - 1]->trace) != 0)
            bytes = allocations = 0;
        bytes += issue->bytes;
        allocations += issue->count;
        all.bytes = bytes > all.bytes ? bytes : all.bytes;
        all.count = allocations > all.count ? allocations : all.count;
        if (issue->device != all.device)
            all.device = -1;
        if (issue->level == GM_ISSUE_FAILURE && issue->known == GM_ISSUE_NEW)
            all.failing = issue;
    }
    return all;
}

static void write_rule(FILE *out, const struct accepted *all)
{
    const struct gm_issue *issue = all->failing;
    if (!*issue->frames) {
        fprintf(out, "# %s has no place that a rule could match\n\n", issue->code);
        return;
    }
    fprintf(out, "[%s in %.200s]\n%sclass = %s\n", issue->code,
            *issue->function ? issue->function : "an unnamed function", issue->frames, issue->code);
    if (all->device >= 0)
        fprintf(out, "device = %d\n", all->device);
    if (all->bytes > 0)
        fprintf(out, "max = %" PRId64 "\n", all->bytes);
    if (all->count > 0)
        fprintf(out, "count = %" PRId64 "\n", all->count);
    fputs("why = \n\n", out);
}

void gm_rules_write(FILE *out, const struct gm_issues *issues)
{
    const struct gm_issue **sorted = gm_allocate(issues->count + 1, sizeof(*sorted));
    size_t count = 0;
    for (size_t i = 0; i < issues->count; i++)
        if (issues->entries[i].known != GM_ISSUE_SUPPRESSED)
            sorted[count++] = &issues->entries[i];
    qsort(sorted, count, sizeof(*sorted), by_rule);
    for (size_t first = 0, next; first < count; first = next) {
        for (next = first + 1; next < count; next++)
            if (strcmp(sorted[first]->code, sorted[next]->code) != 0 ||
                strcmp(sorted[first]->frames, sorted[next]->frames) != 0)
                break;
        struct accepted all = accepted_of(sorted + first, next - first);
        if (all.failing)
            write_rule(out, &all);
    }
    free(sorted);
}
