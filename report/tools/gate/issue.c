/* See issue.h. */
#define XXH_INLINE_ALL
#include "tools/gate/issue.h"
#include "base/memory.h"
#include "base/text.h"
#include "output/amount.h"
#include <stdlib.h>
#include <string.h>
#include <xxhash.h>

#define TEXT_MAX (1u << 20) /* of a stack: 256 frames of less than 4 KiB each */

static char **issue_text(struct gm_issue *issue, size_t number)
{
    char **texts[] = {&issue->trace, &issue->code,  &issue->message, &issue->function,
                      &issue->file,  &issue->stack, &issue->frames};
    return number < sizeof(texts) / sizeof(texts[0]) ? texts[number] : NULL;
}

void gm_issues_add(struct gm_issues *issues, const struct gm_issue *issue)
{
    GM_RESERVE(issues->entries, issues->capacity, issues->count + 1);
    struct gm_issue *own = &issues->entries[issues->count++];
    *own = *issue;
    char **text;
    for (size_t i = 0; (text = issue_text(own, i)); i++) {
        size_t size = *text ? strlen(*text) + 1 : 1;
        *text = memcpy(gm_allocate(size, 1), *text ? *text : "", size);
    }
}

void gm_issue_free(struct gm_issue *issue)
{
    char **text;
    for (size_t i = 0; (text = issue_text(issue, i)); i++) {
        free(*text);
        *text = NULL;
    }
}

void gm_issues_free(struct gm_issues *issues)
{
    for (size_t i = 0; i < issues->count; i++)
        gm_issue_free(&issues->entries[i]);
    free(issues->entries);
    *issues = (struct gm_issues){0};
}

bool gm_issue_is_same(const struct gm_issue *one, const struct gm_issue *other)
{
    return one->fingerprint == other->fingerprint && one->device == other->device &&
           one->rule == other->rule && one->is_finding == other->is_finding &&
           strcmp(one->code, other->code) == 0;
}

void gm_issue_tell_leak(struct gm_issue *issue)
{
    char text[128];
    snprintf(text, sizeof(text), "%s in %s allocation%s, never given back (%s).",
             BYTES(issue->bytes), NUMBER(issue->count), gm_plural((uint64_t)issue->count),
             issue->code);
    free(issue->message);
    issue->message = gm_copy_text(text);
}

static void add_issue_text(XXH64_state_t *state, const char *text, size_t size)
{
    XXH64_update(state, text, size);
    XXH64_update(state, "", 1);
}

uint64_t gm_issue_fingerprint(const char *code, const char *what)
{
    XXH64_state_t state;
    XXH64_reset(&state, 0);
    add_issue_text(&state, code, strlen(code));
    add_issue_text(&state, what, strlen(what));
    return XXH64_digest(&state);
}

struct growing_text {
    char *bytes;
    size_t size, capacity;
};

static struct growing_text *append_text(struct growing_text *text, const char *more)
{
    size_t size = strlen(more);
    GM_RESERVE(text->bytes, text->capacity, text->size + size + 1);
    memcpy(text->bytes + text->size, more, size + 1);
    text->size += size;
    return text;
}

void gm_issue_name(struct gm_issue *issue, const struct gm_frame *frame)
{
    issue->function = (char *)frame->function;
    issue->file = (char *)(frame->file ? frame->file : "");
    issue->line = frame->line;
}

void gm_issue_place(struct gm_issue *issue, const struct gm_model *model, uint32_t number,
                    const char *kind)
{
    const struct gm_stack *stack = number == GM_NONE ? NULL : gm_model_stack(model, number);
    const struct gm_frame *telling = stack ? gm_stack_telling_frame(stack) : NULL;
    struct growing_text text = {0};
    for (size_t i = 0; stack && i < stack->count; i++) {
        const struct gm_frame *frame = &stack->frames[i];
        char line[16];
        append_text(&text, frame->function);
        if (frame->file && frame->line) {
            snprintf(line, sizeof(line), ":%u", frame->line);
            append_text(append_text(append_text(&text, "  "), frame->file), line);
        } else if (frame->module && *frame->module) {
            append_text(append_text(&text, "  "), frame->module);
        }
        append_text(&text, "\n");
    }
    issue->fingerprint = gm_model_fingerprint(model, number, issue->code, kind);
    issue->stack = append_text(&text, "")->bytes;
    issue->function = issue->file = (char *)"";
    issue->line = 0;
    if (telling)
        gm_issue_name(issue, telling);
}

void gm_issue_write(FILE *file, const struct gm_issue *issue)
{
    struct gm_issue copy = *issue;
    char **text;
    fwrite(issue, sizeof(*issue), 1, file);
    for (size_t i = 0; (text = issue_text(&copy, i)); i++) {
        uint32_t size = *text ? (uint32_t)strlen(*text) : 0;
        fwrite(&size, sizeof(size), 1, file);
        fwrite(*text ? *text : "", 1, size, file);
    }
}

bool gm_issue_read(FILE *file, struct gm_issue *issue)
{
    char **text;
    if (fread(issue, sizeof(*issue), 1, file) != 1)
        return false;
    for (size_t i = 0; (text = issue_text(issue, i)); i++)
        *text = NULL; /* of the other process */
    for (size_t i = 0; (text = issue_text(issue, i)); i++) {
        uint32_t size;
        if (fread(&size, sizeof(size), 1, file) != 1 || size > TEXT_MAX)
            break;
        *text = gm_allocate(size + 1, 1);
        if (fread(*text, 1, size, file) != size)
            break;
        (*text)[size] = 0;
    }
    if (issue->frames)
        return true;
    gm_issue_free(issue);
    return false;
}

const char *gm_issue_level_name(enum gm_issue_level level)
{
    return level == GM_ISSUE_FAILURE ? "error" : level == GM_ISSUE_WARNING ? "warning" : "note";
}
