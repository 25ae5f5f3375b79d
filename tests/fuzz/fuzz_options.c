/* Fuzz target: options. The input has a line for each argument of gpumem check; each line is a value of the options of
 * other commands, too: a size, a moment, a kind of memory, settings of PyTorch's allocator. */
#include "base/size.h"
#include "commands/check/check.h"
#include "commands/command.h"
#include "fuzz.h"
#include "replay/replica/settings.h"
#include <stdio.h>

#define ARGUMENTS_MAX 64

static void try_values(char *text)
{
    char *lines[ARGUMENTS_MAX], error[128];
    size_t count = split(text, lines, ARGUMENTS_MAX);
    for (size_t i = 0; i < count; i++) {
        struct gm_allocator_settings settings;
        struct gm_when when;
        uint64_t number;
        int kind;
        gm_size_parse(lines[i], &number);
        gm_parse_moment(lines[i], &when);
        gm_parse_kind(lines[i], &kind);
        gm_allocator_settings_default(&settings);
        gm_allocator_settings_apply(&settings, (struct gm_text){lines[i], strlen(lines[i])}, error,
                                    sizeof(error));
    }
}

static void try_options(char *text)
{
    char *arguments[ARGUMENTS_MAX + 2] = {(char *)"check"};
    int count = 1 + (int)split(text, arguments + 1, ARGUMENTS_MAX);
    struct gm_check check = gm_check_default();
    bool is_over;
    /* Files that an option names are another target's; --s is short for --suppressions. */
    for (int i = 1; i < count; i++)
        if (strncmp(arguments[i], "--s", 3) == 0)
            arguments[i] = (char *)"--max-leak";
    optind = 0;
    gm_check_take_options(&check, count, arguments, &is_over);
    gm_check_free(&check);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char *text = text_of(data, size), *copy = text_of(data, size);
    try_options(text);
    try_values(copy);
    free(copy);
    free(text);
    return 0;
}
