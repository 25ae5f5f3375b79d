/* gpumem path: where the library is that LD_PRELOAD names. */
#include "commands/command.h"
#include "tools/runs/recording.h"
#include <stdio.h>

static void print_help(void)
{
    puts("usage: gpumem path\n"
         "\n"
         "Prints the path of libgpumem.so, for programs that gpumem run cannot start:\n"
         "LD_PRELOAD=$(gpumem path) COMMAND.\n"
         "\n"
         "  -h, --help\n"
         "      --version");
}

int gm_cmd_path(int count, char **arguments)
{
    static const struct option options[] = {GM_COMMON_OPTIONS};
    char library[GM_LIBRARY_PATH_MAX];
    for (int option; (option = gm_next_option(count, arguments, ":h", options)) != -1;) {
        if (option == GM_OPTION_HELP)
            print_help();
        else if (option == GM_OPTION_VERSION)
            gm_print_version();
        return option == '?' ? GM_EXIT_USAGE : GM_EXIT_FINE;
    }
    if (optind < count)
        return gm_complain("path: '%s' is too much: it takes no argument", arguments[optind]);
    if (!gm_recording_library(library))
        return GM_EXIT_UNREADABLE;
    puts(library);
    return GM_EXIT_FINE;
}
