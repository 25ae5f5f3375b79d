/* gpumem fit: reads the command line, and leaves the search over dry runs to sim/dry/fit. */
#include "base/memory.h"
#include "commands/command.h"
#include "tools/dryrun/launch.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PASS_ON = GM_OPTION_FIRST };

static const struct gm_option own_options[] = {
    {GM_ENDS_AT_COMMAND,
     "usage: gpumem fit [OPTION...] [--] COMMAND [ARGUMENT...]\n"
     "\n"
     "Searches by dry runs (gpumem dry-run) for the largest value that fits a GPU, and\n"
     "for the GPU that fits. {NAME} in COMMAND stands for a value of --over, {N} for the\n"
     "number of GPUs. No GPU is needed.\n"
     "\n"},
    {PASS_ON,
     "      --over NAME=VALUES      values of {NAME}: 1..512, 8..512:8 (steps), 1..512:x2\n"
     "                              (powers), 16,24,32 or any of them with commas; may be\n"
     "                              repeated\n"},
    {PASS_ON, "      --over-env NAME=VALUES  the same for a variable of the environment\n"},
    {PASS_ON, "      --device NAME|FILE      the GPU, as for gpumem dry-run (h100)\n"},
    {PASS_ON, "      --devices all|LIST      several, in one table; mig: slices of them; h100x8:\n"
              "                              eight of them\n"},
    {PASS_ON, "      --cards LIST            how many of each kind (1; with {N} 1,2,4,8)\n"},
    {PASS_ON, "      --prices FILE           lines NAME PRICE: which of them is the cheapest\n"},
    {PASS_ON,
     "      --remedies[=LIST]       try what makes the need smaller: checkpoints, autocast,\n"
     "                              other optimizers, ...; LIST: only those that begin so\n"},
    {PASS_ON,
     "      --serve                 how large the KV cache of a serving program is, and at\n"
     "                              which length and share of the memory (vLLM)\n"},
    {PASS_ON, "      --leave SIZE            with --serve: what is to remain free (1G)\n"},
    {PASS_ON, "      --memory SIZE           of each GPU, instead of what it has\n"},
    {PASS_ON,
     "      --max-steps N           end a program of PyTorch after N steps of an optimizer;\n"
     "                              0: never (auto: when the peak has stopped rising)\n"},
    {PASS_ON, "      --once"},
    {PASS_ON, ", --values        as for gpumem dry-run\n"},
    {PASS_ON, "      --jobs N                runs at a time (as cores and memory allow)\n"},
    {PASS_ON, "      --fresh                 run also what was answered before\n"},
    {PASS_ON, "      --budget FILE           write the need as an option of gpumem check\n"},
    {PASS_ON, "      --html FILE             the answer as a page to look at, too\n"},
    {PASS_ON, "      --json\n"},
    GM_COMMON_OPTIONS,
    {GM_PROSE,
     "\n"
     "Exit codes: 0 something fits, 1 nothing does, 5 cannot be told, 125 it could not be\n"
     "started, 130 interrupted.\n"},
    {GM_PROSE, NULL},
};

/* NAME or NAME=VALUE, for a program that has no table of options. */
static char *as_word(const char *name)
{
    size_t size = strlen(name) + (optarg ? strlen(optarg) : 0) + 2;
    char *word = gm_allocate(size, 1);
    snprintf(word, size, "%s%s%s", name, optarg ? "=" : "", optarg ? optarg : "");
    return word;
}

/* Replaces this process by the search. Returns the exit code if it cannot be started. */
static int start_fit(char **words, size_t count, char **command)
{
    static char self[PATH_MAX], script[PATH_MAX + 16];
    struct gm_dry_launch launch;
    ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);
    if (length <= 0 || !gm_dry_launch_find(&launch))
        return GM_EXIT_NOT_STARTED;
    snprintf(script, sizeof(script), "%s/fit/main.py", launch.libraries);
    const char *const first[] = {"python3", "-I", "-B", script, self, launch.libraries};
    const size_t first_count = sizeof(first) / sizeof(first[0]);
    size_t command_count = 0, at = 0;
    while (command[command_count])
        command_count++;
    char **arguments = gm_allocate(first_count + count + command_count + 2, sizeof(*arguments));
    for (size_t i = 0; i < first_count; i++)
        arguments[at++] = (char *)(uintptr_t)first[i];
    for (size_t i = 0; i < count; i++)
        arguments[at++] = words[i];
    arguments[at++] = (char *)(uintptr_t) "--";
    memcpy(arguments + at, command, (command_count + 1) * sizeof(*arguments));
    execvp(arguments[0], arguments);
    gm_complain("fit: cannot start python3, which searches: %s", strerror(errno));
    free(arguments);
    return GM_EXIT_NOT_STARTED;
}

int gm_cmd_fit(int count, char **arguments)
{
    char **words = gm_allocate((size_t)count, sizeof(*words));
    size_t word_count = 0;
    int code = GM_EXIT_USAGE;
    for (int option; (option = gm_next_option(count, arguments, own_options)) != -1;) {
        if (option != PASS_ON)
            goto done;
        words[word_count++] = as_word(gm_option_name());
    }
    if (optind == count)
        gm_complain("fit: no command given; see gpumem fit --help");
    else
        code = start_fit(words, word_count, arguments + optind);
done:
    while (word_count)
        free(words[--word_count]);
    free(words);
    return code;
}
