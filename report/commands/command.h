/* The subcommands and what they share. Each has a file of its own, cmd_*.c. */
#ifndef GPUMEM_REPORT_COMMANDS_COMMAND_H
#define GPUMEM_REPORT_COMMANDS_COMMAND_H

#include "base/complain.h"
#include "base/exit_code.h"
#include "names/stacks/stacks.h"
#include "output/output.h"
#include <getopt.h> /* optarg, optind */
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

/* The exit code of a command that ends with `code`: what was written to a full disk or a closed pipe is not "fine". */
int gm_finish(int code);

/* The options of a command, each of which stands here alone: the texts one behind the other are its --help, from which the
 * man pages and the completion of shells are made, too. A text begins with the option's name as it is shown, "  -n, --top N",
 * "      --flight[=SIZE]" or, after one of the same line, ", --kind KIND": a value behind one space must be given. */
struct gm_option {
    int code; /* its letter, GM_OPTION_FIRST or more, or GM_PROSE */
    const char *text;
};

enum {
    GM_ENDS_AT_COMMAND = -1, /* prose, first: options end at the first word that is none */
    GM_PROSE = 0,            /* no option; without a text, the end of the table */
    GM_OPTION_HELP = 'h',
    GM_OPTION_VERSION = 256,
    /* How stacks are named: the same options of every subcommand that prints some. */
    GM_OPTION_NO_SYMBOLS,
    GM_OPTION_SYSROOT,
    GM_OPTION_NO_LOCAL_FILES,
    GM_OPTION_ALL_FRAMES,
    GM_OPTION_DEBUGINFOD,
    GM_OPTION_REDACT,
    GM_OPTION_NO_LIMITS,
    GM_OPTION_FIRST /* of a subcommand's own */
};

/* clang-format off */
#define GM_COMMON_OPTIONS {GM_OPTION_HELP, "  -h, --help\n"}, {GM_OPTION_VERSION, "      --version\n"}
#define GM_NAME_OPTIONS \
    {GM_OPTION_NO_SYMBOLS, "      --no-symbols"}, {GM_OPTION_SYSROOT, ", --sysroot DIR"}, \
    {GM_OPTION_NO_LOCAL_FILES, ", --no-local-files  as for report\n"}
#define GM_STACK_OPTIONS \
    {GM_OPTION_ALL_FRAMES, "      --all-frames"}, {GM_OPTION_NO_SYMBOLS, ", --no-symbols"}, \
    {GM_OPTION_DEBUGINFOD, ", --debuginfod"}, {GM_OPTION_SYSROOT, ", --sysroot DIR,\n"}, \
    {GM_OPTION_NO_LOCAL_FILES, "      --no-local-files"}, {GM_OPTION_REDACT, ", --redact"}, \
    {GM_OPTION_NO_LIMITS, ", --no-limits  as for report\n"}
/* clang-format on */

/* Takes an option about stacks; false if it is none of them. */
bool gm_take_stack_option(int option, struct gm_stacks_options *stacks);

/* The next option of the command line: its code, -1 at the end, '?' after having complained in one line. --help and
 * --version are answered here and end the process. */
int gm_next_option(int count, char **arguments, const struct gm_option *options);

/* The name of the option that was returned last, without its dashes. */
const char *gm_option_name(void);

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
