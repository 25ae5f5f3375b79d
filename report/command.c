/* See command.h. */
#include "command.h"
#include <dirent.h>
#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include "demangle.h"
#include "memory.h"
#include "version.h"

int gm_complain(const char *format, ...)
{
    char text[1024];
    va_list list;
    va_start(list, format);
    vsnprintf(text, sizeof(text), format, list);
    va_end(list);
    gm_clean_text(text);
    fprintf(stderr, "gpumem: %s\n", text);
    return GM_EXIT_USAGE;
}

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

static bool is_trace_name(const char *name)
{
    size_t length = strlen(name);
    return length > 6 && strcmp(name + length - 6, ".trace") == 0;
}

/* The later of two times; of equal ones the greater name, so that the answer is always the same. */
static bool is_newer(const struct stat *a, const char *name_a, const struct stat *b,
                     const char *name_b)
{
    if (a->st_mtim.tv_sec != b->st_mtim.tv_sec)
        return a->st_mtim.tv_sec > b->st_mtim.tv_sec;
    if (a->st_mtim.tv_nsec != b->st_mtim.tv_nsec)
        return a->st_mtim.tv_nsec > b->st_mtim.tv_nsec;
    return strcmp(name_a, name_b) > 0;
}

char *gm_newest_trace(void)
{
    DIR *folder = opendir(".");
    char *best = NULL;
    struct stat best_status = {0}, status;
    for (struct dirent *entry; folder && (entry = readdir(folder));) {
        if (!is_trace_name(entry->d_name) || stat(entry->d_name, &status) != 0 ||
            !S_ISREG(status.st_mode))
            continue;
        if (!best || is_newer(&status, entry->d_name, &best_status, best)) {
            free(best);
            best = gm_copy_text(entry->d_name);
            best_status = status;
        }
    }
    if (folder)
        closedir(folder);
    if (!best)
        gm_complain("no *.trace file in this folder; record one with: gpumem run -- COMMAND");
    return best;
}

bool gm_wants_colour(void)
{
    const char *off = getenv("NO_COLOR"), *terminal = getenv("TERM");
    return !(off && *off) && !(terminal && strcmp(terminal, "dumb") == 0) && isatty(STDOUT_FILENO);
}
