/* See command.h. */
#include "commands/command.h"
#include "version.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
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

static bool is_utf8(void)
{
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"}; /* the first that is set */
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if (value && *value)
            return strcasestr(value, "UTF-8") || strcasestr(value, "utf8");
    }
    return false;
}

void gm_fit_terminal(struct gm_output_options *options)
{
    struct winsize size;
    options->ascii = !is_utf8();
    options->columns = 80;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 && size.ws_col)
        options->columns = size.ws_col < 60 ? 60 : size.ws_col > 160 ? 160 : size.ws_col;
}
