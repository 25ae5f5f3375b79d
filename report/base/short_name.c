/* See short_name.h. */
#include "base/short_name.h"
#include "base/text.h"
#include <ctype.h>
#include <stdbool.h>
#include <string.h>

struct output {
    char *text;
    size_t used;
};

static void put_text(struct output *output, const char *bytes, size_t size)
{
    size_t room = GM_SHORT_NAME_SIZE - 1 - output->used;
    if (size > room)
        size = room;
    memcpy(output->text + output->used, bytes, size);
    output->used += size;
    output->text[output->used] = 0;
}

static bool ends_with(const struct output *output, const char *end)
{
    size_t size = strlen(end);
    return output->used >= size && strcmp(output->text + output->used - size, end) == 0;
}

/* Behind the bracket that closes the one at `at`; the end of the text if none does. */
static const char *behind_brackets(const char *at, char open, char close)
{
    size_t depth = 0;
    for (; *at; at++) {
        if (*at == open)
            depth++;
        else if (*at == close && at[-1] != '-' && --depth == 0) /* the arrow closes nothing */
            return at + 1;
    }
    return at;
}

/* "operator<<", "operator()", "operator new", "operator bool": up to the template arguments or the
 * parameters. Returns where they are. */
static const char *put_operator(struct output *output, const char *at)
{
    const char *end = at + strlen("operator");
    if (gm_name_starts_with(end, "()"))
        end += 2;
    else if (*end == ' ')
        end += strcspn(end, "(<");
    else
        while (*end && strchr("<>=+-*/%^&|~!,[]", *end))
            end++;
    put_text(output, at, (size_t)(end - at));
    return gm_name_starts_with(end, " <") ? end + 1 : end;
}

static bool is_operator(const struct output *output, const char *at)
{
    char next = at[0] ? at[strnlen(at, strlen("operator"))] : 0;
    return gm_name_starts_with(at, "operator") && (output->used == 0 || ends_with(output, "::")) &&
           !isalnum((unsigned char)next) && next != '_';
}

/* What stands in round brackets: a namespace without a name, parameters, or a part of the return
 * type. Returns what goes on behind it, NULL if the name is complete. */
static const char *skip_round(struct output *output, const char *at)
{
    static const char nameless[] = "(anonymous namespace)::";
    if (gm_name_starts_with(at, nameless))
        return at + strlen(nameless);
    const char *next = behind_brackets(at, '(', ')');
    if (output->used == 0 || ends_with(output, "decltype"))
        return next; /* still in the return type */
    if (gm_name_starts_with(next, " const"))
        next += strlen(" const");
    return gm_name_starts_with(next, "::") ? next : NULL; /* of something local to the function */
}

static const char *skip_template(struct output *output, const char *at)
{
    if (ends_with(output, "::")) /* Rust writes name::<T> */
        output->text[output->used -= 2] = 0;
    return behind_brackets(at, '<', '>');
}

/* "{lambda(int)#1}", "{closure#0}": the kind is enough. */
static const char *put_unnamed(struct output *output, const char *at)
{
    put_text(output, at, strcspn(at, "(#}"));
    put_text(output, "}", 1);
    return behind_brackets(at, '{', '}');
}

static void shorten(struct output *output, const char *name)
{
    for (const char *at = name; at && *at;) {
        if (is_operator(output, at)) {
            at = put_operator(output, at);
        } else if (*at == '<') {
            at = skip_template(output, at);
        } else if (*at == '(') {
            at = skip_round(output, at);
        } else if (*at == '{') {
            at = put_unnamed(output, at);
        } else if (*at == ' ') {
            if (at[1] == '[') /* [clone .cold] */
                return;
            output->text[output->used = 0] = 0; /* that was a return type */
            at++;
        } else {
            put_text(output, at++, 1);
        }
    }
}

void gm_short_name(const char *name, char text[GM_SHORT_NAME_SIZE])
{
    struct output output = {text, 0};
    text[0] = 0;
    if (name[0] != '<') /* Rust's <Type as Trait>::method */
        shorten(&output, name);
    if (output.used == 0)
        put_text(&output, name, strlen(name));
    if (output.used == GM_SHORT_NAME_SIZE - 1)
        while (output.used && (text[output.used - 1] & 0x80)) /* no part of a character */
            text[--output.used] = 0;
}
