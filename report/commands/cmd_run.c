/* gpumem run: records a command. */
#include "commands/command.h"
#include "commands/recording.h"
#include "commands/trace_home.h"
#include <gpumem/settings.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static void print_help(void)
{
    puts("usage: gpumem run [OPTION...] [--] COMMAND [ARGUMENT...]\n"
         "\n"
         "Runs COMMAND and records its GPU memory, and that of every process it starts.\n"
         "Nothing is written by processes that make no CUDA call.\n"
         "\n"
         "  -o, --output PATTERN   name of the traces (gpumem.%e.%p.trace); %e program,\n"
         "                         %p process, %h host, %q{VARIABLE}, %% a percent sign\n"
         "      --depth N          frames kept of a stack\n"
         "      --stacks LIST      native, python or both (native,python), or none\n"
         "      --on-full HOW      a full ring waits (block) or drops records (drop)\n"
         "      --flight[=SIZE]    a trace that does not grow: what is live, and of the\n"
         "                         history the latest that fits in SIZE (64M)\n"
         "      --nvtx             record NVTX marks and ranges, as phases\n"
         "  -q, --quiet            do not say where the traces are\n"
         "  -h, --help\n"
         "      --version\n"
         "\n"
         "The exit code is that of COMMAND: 128+n if signal n ended it, 126 if it cannot\n"
         "be executed, 127 if it was not found, 125 if it could not be started.");
}

static void say_where(const struct gm_recording *recording)
{
    if (recording->trace_count == 0)
        fputs("gpumem: there is no trace: no CUDA call was seen, or no file could be made (disk "
              "full?)\n",
              stderr);
    for (size_t i = 0; i < recording->trace_count && i < 8; i++)
        fprintf(stderr, "gpumem: trace written to %s%s\n", recording->traces[i],
                gm_is_link(recording->traces[i]) ? " (a link: the trace is where it leads)" : "");
    if (recording->trace_count > 8)
        fprintf(stderr, "gpumem: and %zu more\n", recording->trace_count - 8);
}

int gm_cmd_run(int count, char **arguments)
{
    enum { DEPTH = GM_OPTION_FIRST, STACKS, ON_FULL, NVTX, FLIGHT };
    static const struct option options[] = {
        {"output", required_argument, NULL, 'o'},    {"depth", required_argument, NULL, DEPTH},
        {"stacks", required_argument, NULL, STACKS}, {"on-full", required_argument, NULL, ON_FULL},
        {"nvtx", no_argument, NULL, NVTX},           {"flight", optional_argument, NULL, FLIGHT},
        {"quiet", no_argument, NULL, 'q'},           GM_COMMON_OPTIONS};
    const char *output = NULL;
    bool quiet = false;
    uint64_t depth, size;
    for (int option; (option = gm_next_option(count, arguments, "+:o:qh", options)) != -1;) {
        switch (option) {
        case 'o':
            output = optarg;
            break;
        case 'q':
            quiet = true;
            break;
        case DEPTH:
            if (!gm_parse_count("--depth", optarg, &depth))
                return GM_EXIT_USAGE;
            setenv("GPUMEM_DEPTH", optarg, 1);
            break;
        case STACKS:
            setenv("GPUMEM_STACKS", optarg, 1);
            break;
        case ON_FULL:
            if (strcmp(optarg, "block") != 0 && strcmp(optarg, "drop") != 0)
                return gm_complain("--on-full: '%s' is neither block nor drop", optarg);
            setenv("GPUMEM_ON_FULL", optarg, 1);
            break;
        case NVTX:
            setenv("GPUMEM_NVTX", "1", 1);
            break;
        case FLIGHT:
            if (optarg && !gm_setting_flight_size(optarg, &size))
                return gm_complain("--flight: '%s' is no size from 16K to 64G", optarg);
            setenv("GPUMEM_MODE", "flight", 1);
            if (optarg)
                setenv("GPUMEM_FLIGHT_SIZE", optarg, 1);
            break;
        case GM_OPTION_HELP:
            print_help();
            return GM_EXIT_FINE;
        case GM_OPTION_VERSION:
            gm_print_version();
            return GM_EXIT_FINE;
        default:
            return GM_EXIT_USAGE;
        }
    }
    if (optind == count)
        return gm_complain("run: no command given; see gpumem run --help");
    struct gm_recording recording;
    if (!gm_recording_begin(&recording, output)) {
        gm_recording_end(&recording);
        return GM_EXIT_NOT_STARTED;
    }
    int code = gm_recording_run(arguments + optind);
    if (code != GM_EXIT_NOT_FOUND && code != GM_EXIT_NOT_EXECUTABLE) {
        gm_recording_find(&recording);
        if (!quiet)
            say_where(&recording);
    }
    gm_recording_end(&recording);
    return code;
}
