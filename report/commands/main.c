/* gpumem: the offline half. Finds the subcommand and leaves everything else to it. */
#include "commands/command.h"
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

static const struct gm_command commands[] = {
    {"run", "record a command", gm_cmd_run},
    {"report", "say what the memory was used for", gm_cmd_report},
    {"check", "judge a trace or a command: the gate for CI", gm_cmd_check},
    {"ask", "answer one question as JSON, for agents and scripts", gm_cmd_ask},
    {"diff", "say what changed between two runs", gm_cmd_diff},
    {"top", "follow a running process", gm_cmd_top},
    {"export", "write a trace in the format of another program", gm_cmd_export},
    {"dry-run", "say whether a command would fit a GPU that is not there", gm_cmd_dry_run},
    {"fit", "search for the largest value and the GPU that fit", gm_cmd_fit},
    {"info", "say what is in a trace", gm_cmd_info},
    {"summarize", "say in a line of JSON what a trace comes to", gm_cmd_summarize},
    {"whatif", "say what other settings of PyTorch's allocator would have reserved", gm_cmd_whatif},
    {"skill", "print what a coding agent is to know of gpumem", gm_cmd_skill},
    {"path", "print the library for LD_PRELOAD", gm_cmd_path},
};

static void print_help(void)
{
    puts("gpumem: who holds the GPU memory, and who never gave it back\n"
         "\n"
         "usage: gpumem COMMAND [OPTION...]\n");
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        printf("  %-9s %s\n", commands[i].name, commands[i].summary);
    puts("\n"
         "  --help, --version\n"
         "\n"
         "gpumem COMMAND --help says more about each. Exit codes: 0 fine, 1 findings,\n"
         "2 wrong usage, 3 trace unreadable, damaged or cut, 4 nothing recorded.");
}

/* Mapped files (the trace, programs with debug info) can shrink while they are read. That is no
 * reason to look like a crash. */
static void file_shrank(int signal_number)
{
    static const char text[] = "gpumem: a file became shorter while it was being read\n";
    (void)signal_number;
    ssize_t ignored = write(STDERR_FILENO, text, sizeof(text) - 1);
    (void)ignored;
    _exit(GM_EXIT_UNREADABLE);
}

static const struct gm_command *find_command(const char *name)
{
    for (size_t i = 0; i < sizeof(commands) / sizeof(commands[0]); i++)
        if (strcmp(name, commands[i].name) == 0)
            return &commands[i];
    gm_complain("'%s' is not a command; see gpumem --help", name);
    return NULL;
}

/* `gpumem help`, or `gpumem help COMMAND`. */
static int print_help_of(int count, char **arguments)
{
    if (count < 3) {
        print_help();
        return GM_EXIT_FINE;
    }
    const struct gm_command *command = find_command(arguments[2]);
    char wanted[] = "--help", *asked[] = {arguments[2], wanted, NULL};
    return command ? command->run(2, asked) : GM_EXIT_USAGE;
}

int main(int count, char **arguments)
{
    signal(SIGBUS, file_shrank);
    if (count < 2) {
        gm_complain("no command given; see gpumem --help");
        return GM_EXIT_USAGE;
    }
    const char *name = arguments[1];
    if (strcmp(name, "help") == 0)
        return gm_finish(print_help_of(count, arguments));
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        return gm_finish(print_help_of(0, NULL));
    if (strcmp(name, "--version") == 0) {
        gm_print_version();
        return gm_finish(GM_EXIT_FINE);
    }
    const struct gm_command *command = find_command(name);
    return command ? gm_finish(command->run(count - 1, arguments + 1)) : GM_EXIT_USAGE;
}
