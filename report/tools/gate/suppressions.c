/* See suppressions.h. */
#include "tools/gate/suppressions.h"
#include "base/memory.h"
#include "base/size.h"
#include "base/text.h"
#include "tools/gate/pattern.h"
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define LINE_SIZE_MAX 65536
#define RULES_MAX 100000

struct reader {
    struct gm_suppressions *suppressions;
    const char *path;
    unsigned line;
    struct gm_rule *block; /* that is being read; NULL */
    uint32_t today;
};

static bool complain_of_line(const struct reader *reader, const char *what, const char *text)
{
    char *clean = gm_clean_copy((struct gm_text){text, strnlen(text, 200)});
    fprintf(stderr, "gpumem: %s:%u: %s: '%s'\n", reader->path, reader->line, what, clean);
    free(clean);
    return false;
}

static char *trimmed(char *text)
{
    while (isspace((unsigned char)*text))
        text++;
    for (size_t size = strlen(text); size && isspace((unsigned char)text[size - 1]);)
        text[--size] = 0;
    return text;
}

static struct gm_rule *add_rule(struct reader *reader, const char *name)
{
    struct gm_suppressions *all = reader->suppressions;
    if (all->count == RULES_MAX)
        return NULL;
    GM_RESERVE(all->rules, all->capacity, all->count + 1);
    struct gm_rule *rule = &all->rules[all->count++];
    *rule = (struct gm_rule){.name = gm_clean_copy((struct gm_text){name, strlen(name)}),
                             .device = -1,
                             .bytes = INT64_MAX,
                             .count = INT64_MAX};
    return rule;
}

static bool add_suppression_frame(const struct reader *reader, struct gm_rule *rule, char *text)
{
    static const char *const kinds[] = {"", "fun:", "obj:", "src:"};
    struct gm_rule_frame frame = {.what = GM_RULE_ANY};
    text = trimmed(text);
    if (!*text)
        return complain_of_line(reader, "an empty frame matches everything", text);
    if (rule->frame_count && rule->frames[rule->frame_count - 1].what == GM_RULE_END)
        return complain_of_line(reader, "no frame stands behind $", text);
    if (strcmp(text, "...") == 0)
        frame.what = GM_RULE_GAP;
    else if (strcmp(text, "$") == 0)
        frame.what = GM_RULE_END;
    for (unsigned kind = GM_RULE_FUNCTION; kind <= GM_RULE_FILE; kind++)
        if (strncmp(text, kinds[kind], 4) == 0) {
            frame.what = kind;
            text += 4;
        }
    frame.pattern = gm_copy_text(text);
    GM_APPEND(rule->frames, rule->frame_capacity, rule->frame_count, frame);
    return true;
}

/* LeakSanitizer's form: a frame anywhere in the stack. */
static bool read_line_rule(struct reader *reader, char *pattern)
{
    char gap[] = "...";
    pattern = trimmed(pattern);
    struct gm_rule *rule = add_rule(reader, pattern);
    reader->block = NULL;
    return rule ? add_suppression_frame(reader, rule, gap) &&
                      add_suppression_frame(reader, rule, pattern)
                : complain_of_line(reader, "too many rules", pattern);
}

/* "2027-06-30" as 20270630; 0: no day. */
static uint32_t parse_day(const char *text)
{
    static const char form[] = "dddd-dd-dd";
    uint32_t day = 0;
    for (size_t i = 0; i < sizeof(form) - 1; i++) {
        bool is_digit = text[i] >= '0' && text[i] <= '9';
        if (form[i] == 'd' ? !is_digit : text[i] != '-')
            return 0;
        if (is_digit)
            day = day * 10 + (uint32_t)(text[i] - '0');
    }
    uint32_t month = day / 100 % 100;
    bool is_day =
        !text[sizeof(form) - 1] && month >= 1 && month <= 12 && day % 100 >= 1 && day % 100 <= 31;
    return is_day ? day : 0;
}

static bool parse_suppression_number(const char *text, int64_t max, int64_t *value)
{
    char *end;
    errno = 0;
    long long number = strtoll(text, &end, 10);
    *value = number;
    return isdigit((unsigned char)text[0]) && !*end && !errno && number <= max;
}

static bool read_list(const struct reader *reader, struct gm_rule *rule, char *value, bool frames)
{
    for (char *rest = value, *one; (one = strsep(&rest, ","));) {
        if (frames) {
            if (!add_suppression_frame(reader, rule, one))
                return false;
            continue;
        }
        one = trimmed(one);
        if (strcmp(one, "*") != 0 && !gm_gate_is_code(one))
            return complain_of_line(reader, "no class of leaks and no code of a finding", one);
        GM_APPEND(rule->codes, rule->code_capacity, rule->code_count, gm_copy_text(one));
    }
    return true;
}

static bool read_member(struct reader *reader, const char *name, char *value)
{
    struct gm_rule *rule = reader->block;
    uint64_t size;
    int64_t number;
    if (strcmp(name, "match") == 0)
        return read_list(reader, rule, value, true);
    if (strcmp(name, "class") == 0)
        return read_list(reader, rule, value, false);
    if (strcmp(name, "why") == 0) {
        free(rule->why);
        rule->why = gm_clean_copy((struct gm_text){value, strlen(value)});
        return true;
    }
    if (strcmp(name, "max") == 0) {
        if (!gm_size_parse(value, &size))
            return complain_of_line(reader, "not a size such as 64M or 1.5GiB", value);
        rule->bytes = gm_amount(size);
        return true;
    }
    if (strcmp(name, "count") == 0)
        return parse_suppression_number(value, INT64_MAX, &rule->count) ||
               complain_of_line(reader, "not a number", value);
    if (strcmp(name, "device") == 0) {
        if (strcmp(value, "*") == 0)
            return true;
        if (!parse_suppression_number(value, INT8_MAX, &number))
            return complain_of_line(reader, "not a device number", value);
        rule->device = (int)number;
        return true;
    }
    if (strcmp(name, "until") == 0) {
        rule->until = parse_day(value);
        rule->expired = rule->until < reader->today;
        return rule->until || complain_of_line(reader, "not a day such as 2027-06-30", value);
    }
    return complain_of_line(reader, "not known in a rule", name);
}

static bool finish_block(const struct reader *reader)
{
    return !reader->block || reader->block->frame_count ||
           complain_of_line(reader, "the rule above this line has no match", reader->block->name);
}

static bool read_rule_line(struct reader *reader, char *line)
{
    char *text = trimmed(line), *equals = strchr(text, '=');
    size_t size = strlen(text);
    if (!*text || *text == '#')
        return true;
    if (strncmp(text, "leak:", 5) == 0)
        return finish_block(reader) && read_line_rule(reader, text + 5);
    if (*text == '[' && text[size - 1] == ']') {
        if (!finish_block(reader))
            return false;
        text[size - 1] = 0;
        reader->block = add_rule(reader, trimmed(text + 1));
        return reader->block || complain_of_line(reader, "too many rules", text);
    }
    if (!reader->block || !equals)
        return complain_of_line(reader, "not understood", text);
    *equals = 0;
    return read_member(reader, trimmed(text), trimmed(equals + 1));
}

bool gm_suppressions_read(struct gm_suppressions *suppressions, FILE *file, const char *name,
                          uint32_t today)
{
    struct reader reader = {.suppressions = suppressions, .path = name, .today = today};
    char *line = gm_allocate(LINE_SIZE_MAX, 1);
    bool good = true;
    while (good && fgets(line, LINE_SIZE_MAX, file)) {
        reader.line++;
        char *text = reader.line == 1 ? gm_behind_mark(line) : line;
        good = strchr(text, '\n') || feof(file)
                   ? read_rule_line(&reader, text)
                   : complain_of_line(&reader, "too long, or not text", text);
    }
    if (good && ferror(file)) {
        fprintf(stderr, "gpumem: %s: %s\n", name, strerror(errno));
        good = false;
    }
    good = good && finish_block(&reader);
    free(line);
    return good;
}

bool gm_suppressions_load(struct gm_suppressions *suppressions, const char *path, uint32_t today)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        fprintf(stderr, "gpumem: %s: %s\n", path, strerror(errno));
        return false;
    }
    bool good = gm_suppressions_read(suppressions, file, path, today);
    fclose(file);
    return good;
}

void gm_suppressions_finish(struct gm_suppressions *suppressions)
{
    suppressions->index = gm_rule_index_make(suppressions);
}

void gm_suppressions_free(struct gm_suppressions *suppressions)
{
    for (size_t i = 0; i < suppressions->count; i++) {
        struct gm_rule *rule = &suppressions->rules[i];
        for (size_t at = 0; at < rule->frame_count; at++)
            free(rule->frames[at].pattern);
        for (size_t at = 0; at < rule->code_count; at++)
            free(rule->codes[at]);
        free(rule->frames);
        free(rule->codes);
        free(rule->name);
        free(rule->why);
    }
    free(suppressions->rules);
    gm_rule_index_free(suppressions->index);
    *suppressions = (struct gm_suppressions){0};
}

static bool is_of_code(const struct gm_rule *rule, const char *code)
{
    for (size_t i = 0; i < rule->code_count; i++)
        if (strcmp(rule->codes[i], code) == 0 || strcmp(rule->codes[i], "*") == 0)
            return true;
    return !rule->code_count && strcmp(code, "leak") == 0;
}

static bool is_frame(const struct gm_rule_frame *wanted, const struct gm_frame *frame)
{
    const char *pattern = wanted->pattern;
    const char *file = frame->file ? frame->file : "";
    const char *module = frame->module ? frame->module : "";
    switch (wanted->what) {
    case GM_RULE_FUNCTION:
        return gm_pattern_matches(pattern, frame->function);
    case GM_RULE_MODULE:
        return gm_pattern_matches(pattern, module);
    case GM_RULE_FILE:
        return gm_pattern_matches(pattern, file);
    case GM_RULE_ANY:
        return gm_pattern_matches(pattern, frame->function) ||
               (*file && gm_pattern_matches(pattern, file)) ||
               (*module && gm_pattern_matches(pattern, module));
    case GM_RULE_GAP:
    case GM_RULE_END:
        break;
    }
    return false;
}

/* Whether `length` frames of a rule stand at that place of a stack. */
static bool stand_there(const struct gm_rule_frame *wanted, size_t length,
                        const struct gm_stack *stack, size_t at)
{
    if (at > stack->count || length > stack->count - at)
        return false;
    for (size_t i = 0; i < length; i++)
        if (!is_frame(&wanted[i], &stack->frames[at + i]))
            return false;
    return true;
}

/* The frames of a rule are the innermost ones of the stack; what is left outside does not matter but
 * where the rule says so. A gap takes as few frames as it can, and a run of frames between two gaps is
 * tried at each place once: the product of both lengths at most. */
static bool is_stack(const struct gm_rule *rule, const struct gm_stack *stack)
{
    bool is_whole = rule->frame_count && rule->frames[rule->frame_count - 1].what == GM_RULE_END;
    size_t count = rule->frame_count - is_whole, at = 0, from = 0;
    bool may_skip = false;
    while (from < count) {
        if (rule->frames[from].what == GM_RULE_GAP) {
            may_skip = true;
            from++;
            continue;
        }
        size_t length = 0;
        while (from + length < count && rule->frames[from + length].what != GM_RULE_GAP)
            length++;
        if (is_whole && may_skip && from + length == count && stack->count >= at + length)
            at = stack->count - length; /* the last run stands at the end */
        while (!stand_there(&rule->frames[from], length, stack, at)) {
            if (!may_skip || at >= stack->count)
                return false;
            at++;
        }
        at += length;
        from += length;
        may_skip = false;
    }
    return !is_whole || may_skip || at == stack->count;
}

uint32_t gm_suppressions_find(const struct gm_suppressions *suppressions,
                              const struct gm_issue *issue, const struct gm_model *model,
                              uint32_t number)
{
    const struct gm_stack *stack =
        suppressions->count && number != GM_NONE ? gm_model_stack(model, number) : NULL;
    if (!stack)
        return GM_NONE;
    size_t count = suppressions->count;
    const uint32_t *numbers =
        suppressions->index ? gm_rule_index_ask(suppressions->index, stack, &count) : NULL;
    for (size_t i = 0; i < count; i++) {
        size_t at = numbers ? numbers[i] : i;
        const struct gm_rule *rule = &suppressions->rules[at];
        if (!rule->expired && (rule->device < 0 || rule->device == issue->device) &&
            is_of_code(rule, issue->code) && is_stack(rule, stack))
            return (uint32_t)at;
    }
    return GM_NONE;
}

bool gm_rule_holds(const struct gm_rule *rule)
{
    return rule->used_bytes <= rule->bytes && rule->used_count <= rule->count;
}
