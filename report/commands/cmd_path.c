/* gpumem path: where the library is that LD_PRELOAD names. */
#include "commands/command.h"
#include "tools/runs/recording.h"
#include <stdio.h>

static const struct gm_option own_options[] = {
    {GM_PROSE, "usage: gpumem path\n"
               "\n"
               "Prints the path of libgpumem.so, for programs that gpumem run cannot start:\n"
               "LD_PRELOAD=$(gpumem path) COMMAND.\n"
               "\n"},
    GM_COMMON_OPTIONS,
    {GM_PROSE, NULL},
};

int gm_cmd_path(int count, char **arguments)
{
    char library[GM_LIBRARY_PATH_MAX];
    if (gm_next_option(count, arguments, own_options) != -1)
        return GM_EXIT_USAGE;
    if (optind < count)
        return gm_complain("path: '%s' is too much: it takes no argument", arguments[optind]);
    if (!gm_recording_library(library))
        return GM_EXIT_UNREADABLE;
    puts(library);
    return GM_EXIT_FINE;
}
