/* See suppressions.h: rules for what fails, ready to be pasted. What they match is what the reader of
 * rules (suppressions.c) understands, whatever stands in a name. */
#include "base/memory.h"
#include "gate/suppressions.h"
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

static void append(struct lines *lines, const char *text, size_t size)
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
    append(lines, kind, strlen(kind));
    append(lines, "^", 1);
    for (size_t i = 0; i < (is_cut ? NAME_MAX_BYTES : size); i++) {
        bool is_at_end = i == 0 || i + 1 == size;
        bool is_sign = name[i] == ',' || name[i] == '*' || (is_at_end && strchr("^$ ", name[i]));
        append(lines, is_sign ? "*" : &name[i], 1);
    }
    append(lines, is_cut ? "*$" : "$", is_cut ? 2 : 1);
}

static void append_frame(struct lines *lines, const struct gm_frame *frame)
{
    bool is_named = strstr(frame->function, "+0x") == NULL;
    if (lines->size == 0 || lines->size - lines->line > LINE_MAX_BYTES) {
        if (lines->size)
            append(lines, "\n", 1);
        lines->line = lines->size;
        append(lines, "match = ", 8);
    } else {
        append(lines, ", ", 2);
    }
    if (is_named && *frame->function)
        append_pattern(lines, "fun:", frame->function);
    else if (frame->module && *frame->module) /* an address, which the next build moves */
        append_pattern(lines, "obj:", frame->module);
    else
        append(lines, "fun:*", 5);
}

char *gm_rule_frames_of(const struct gm_stack *stack)
{
    struct lines lines = {0};
    append(&lines, "", 0);
    for (size_t i = 0; i < stack->count; i++)
        append_frame(&lines, &stack->frames[i]);
    if (lines.size)
        append(&lines, "\n", 1);
    return lines.bytes;
}

static void write_rule(FILE *out, const struct gm_issue *issue)
{
    fprintf(out, "[%s in %.200s]\n%sclass = %s\n", issue->code,
            *issue->function ? issue->function : "an unnamed function", issue->frames, issue->code);
    if (issue->device >= 0)
        fprintf(out, "device = %d\n", issue->device);
    if (issue->bytes > 0)
        fprintf(out, "max = %" PRId64 "\n", issue->bytes);
    if (issue->count > 0)
        fprintf(out, "count = %" PRId64 "\n", issue->count);
    fputs("why = \n\n", out);
}

/* The same place in a trace before: its rule holds for the larger of both. */
static const struct gm_issue *largest_of(const struct gm_issues *issues, size_t number,
                                         bool *is_first)
{
    const struct gm_issue *own = &issues->entries[number], *largest = own;
    *is_first = true;
    for (size_t i = 0; i < issues->count; i++) {
        const struct gm_issue *other = &issues->entries[i];
        bool is_other = i != number && gm_issue_is_same(own, other) && *other->frames;
        *is_first &= !is_other || i > number;
        if (is_other && other->bytes > largest->bytes)
            largest = other;
    }
    return largest;
}

void gm_rules_write(FILE *out, const struct gm_issues *issues)
{
    for (size_t i = 0; i < issues->count; i++) {
        const struct gm_issue *issue = &issues->entries[i];
        bool is_first;
        if (issue->level != GM_ISSUE_FAILURE || issue->known != GM_ISSUE_NEW)
            continue;
        if (!*issue->frames) {
            fprintf(out, "# %s has no place that a rule could match\n\n", issue->code);
            continue;
        }
        const struct gm_issue *largest = largest_of(issues, i, &is_first);
        if (is_first)
            write_rule(out, largest);
    }
}
