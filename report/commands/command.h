/* The subcommands and what they share. Each has a file of its own, cmd_*.c. */
#ifndef GPUMEM_REPORT_COMMANDS_COMMAND_H
#define GPUMEM_REPORT_COMMANDS_COMMAND_H

#include "base/complain.h"
#include "base/exit_code.h"
#include "names/stacks/stacks.h"
#include "output/output.h"
#include <getopt.h>
#include <stdbool.h>
#include <stdint.h>

struct gm_command {
    const char *name;
    const char *summary;                     /* for `gpumem --help` */
    int (*run)(int count, char **arguments); /* arguments[0]: the name; returns the exit code */
};

int gm_cmd_run(int count, char **arguments);
int gm_cmd_report(int count, char **arguments);
int gm_cmd_info(int count, char **arguments);
int gm_cmd_export(int count, char **arguments);
int gm_cmd_top(int count, char **arguments);
int gm_cmd_check(int count, char **arguments);
int gm_cmd_summarize(int count, char **arguments);
int gm_cmd_whatif(int count, char **arguments);
int gm_cmd_path(int count, char **arguments);
int gm_cmd_dry_run(int count, char **arguments);
int gm_cmd_fit(int count, char **arguments);
int gm_cmd_ask(int count, char **arguments);
int gm_cmd_skill(int count, char **arguments);
int gm_cmd_diff(int count, char **arguments);

void gm_print_version(void);

/* What every subcommand's option table ends with, and the codes of options without a letter. */
enum {
    GM_OPTION_HELP = 'h',
    GM_OPTION_VERSION = 256,
    GM_OPTION_FIRST /* of a subcommand's own */
};
#define GM_COMMON_OPTIONS                                                                          \
    {"help", no_argument, NULL, GM_OPTION_HELP},                                                   \
        {"version", no_argument, NULL, GM_OPTION_VERSION},                                         \
    {                                                                                              \
        0                                                                                          \
    }

/* How stacks are named: the same options of every subcommand that prints some. */
enum {
    GM_OPTION_NO_SYMBOLS = 512,
    GM_OPTION_SYSROOT,
    GM_OPTION_NO_LOCAL_FILES,
    GM_OPTION_ALL_FRAMES,
    GM_OPTION_DEBUGINFOD,
    GM_OPTION_REDACT,
    GM_OPTION_NO_LIMITS
};
#define GM_NAME_OPTIONS                                                                            \
    {"no-symbols", no_argument, NULL, GM_OPTION_NO_SYMBOLS},                                       \
        {"sysroot", required_argument, NULL, GM_OPTION_SYSROOT},                                   \
    {                                                                                              \
        "no-local-files", no_argument, NULL, GM_OPTION_NO_LOCAL_FILES                              \
    }
#define GM_STACK_OPTIONS                                                                           \
    GM_NAME_OPTIONS, {"all-frames", no_argument, NULL, GM_OPTION_ALL_FRAMES},                      \
        {"debuginfod", no_argument, NULL, GM_OPTION_DEBUGINFOD},                                   \
        {"redact", no_argument, NULL, GM_OPTION_REDACT},                                           \
    {                                                                                              \
        "no-limits", no_argument, NULL, GM_OPTION_NO_LIMITS                                        \
    }

/* Takes one of these; false if it is none of them. */
bool gm_take_stack_option(int option, struct gm_stacks_options *stacks);

/* getopt_long that says in one line what is wrong with an option: returns -1 at the end, the code
 * of an option, or '?' after having complained. `letters` starts with ":" or "+:". */
int gm_next_option(int count, char **arguments, const char *letters, const struct option *options);

/* Parses a positive decimal number; complains and returns false if it is none. */
bool gm_parse_count(const char *option, const char *text, uint64_t *value);

/* Whether text on stdout may be coloured. */
bool gm_wants_colour(void);

/* "peak", "oom", "end", or a time since the start such as "1.5s". Complains and returns false if it is
 * none of them. */
bool gm_parse_moment(const char *text, struct gm_when *when);

/* The number of a device; likewise. */
bool gm_parse_device(const char *text, int *device);

/* The name of a kind of memory; likewise. */
bool gm_parse_kind(const char *text, int *kind);

/* How wide the text is: 80 columns, or as many as the terminal on stdout has from 60 to 160: what is narrower cuts names
 * to nothing, lines that are longer are not read. Tables of -v take 80 in any case. */
unsigned gm_terminal_columns(void);

/* Sets that, and whether the text is ASCII, which it is unless the locale is of UTF-8. */
void gm_fit_terminal(struct gm_output_options *options);

#endif
