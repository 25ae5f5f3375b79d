/* See command.h. */
#include "commands/command.h"
#include "version.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

void gm_print_version(void)
{
    puts("gpumem " GPUMEM_VERSION);
}

int gm_next_option(int count, char **arguments, const char *letters, const struct option *options)
{
    int before = optind ? optind : 1;
    int code = getopt_long(count, arguments, letters, options, NULL);
    const char *given = before < count ? arguments[before] : "";
    if (code == ':')
        gm_complain("%s: option '%s' needs a value", arguments[0], given);
    else if (code == '?')
        gm_complain("%s: unknown option '%s'; see gpumem %s --help", arguments[0], given,
                    arguments[0]);
    return code == ':' ? '?' : code;
}

bool gm_parse_count(const char *option, const char *text, uint64_t *value)
{
    char *end;
    errno = 0;
    unsigned long long number = strtoull(text, &end, 10);
    if (text[0] < '0' || text[0] > '9' || *end || errno || number == 0) {
        gm_complain("%s: '%s' is not a positive number", option, text);
        return false;
    }
    *value = number;
    return true;
}

bool gm_wants_colour(void)
{
    const char *off = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return !(off && *off) && !(terminal && strcmp(terminal, "dumb") == 0) && isatty(STDOUT_FILENO);
}
