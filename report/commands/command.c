/* See command.h. */
#include "commands/command.h"
#include "base/assert.h"
#include "base/limit.h"
#include "replay/ledger/counters.h"
#include "version.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#define COLUMNS_LEAST 60u
#define COLUMNS_MOST 160u

#define OPTIONS_MAX 64
#define NAME_MAX_SIZE 32
#define FIRST_PLACE 1024 /* above all codes */

void gm_print_version(void)
{
    puts("gpumem " GPUMEM_VERSION);
}

int gm_finish(int code)
{
    if (fflush(stdout) != 0 || ferror(stdout)) {
        gm_complain("cannot write the output");
        return code ? code : GM_EXIT_UNREADABLE;
    }
    return code;
}

/* The options as getopt_long wants them. The value of each is its place in the table, so that no two are alike. */
struct parser {
    const struct gm_option *table; /* that they are of */
    struct option options[OPTIONS_MAX + 1];
    char names[OPTIONS_MAX][NAME_MAX_SIZE];
    char letters[2 * OPTIONS_MAX + 3];
    unsigned count;
    int last; /* the place in `options` of the one that was returned last */
};

static struct parser parser;

static void add_option(const struct gm_option *option, int place)
{
    const char *name = strstr(option->text, "--") + 2;
    size_t size = strcspn(name, " ,[=\n");
    const char *behind = name + size;
    bool has_value = behind[0] == ' ' && behind[1] != ' ';
    struct option *added = &parser.options[parser.count];
    GM_ASSERT(parser.count < OPTIONS_MAX && size < NAME_MAX_SIZE);
    memcpy(parser.names[parser.count], name, size);
    added->name = parser.names[parser.count++];
    added->has_arg = behind[0] == '[' ? optional_argument
                     : has_value      ? required_argument
                                      : no_argument;
    added->val = FIRST_PLACE + place;
    if (option->code < GM_OPTION_VERSION) {
        const char letter[] = {(char)option->code, has_value ? ':' : 0, 0};
        strcat(parser.letters, letter);
    }
}

static void read_options(const struct gm_option *options)
{
    parser = (struct parser){.table = options};
    strcpy(parser.letters, options->code == GM_ENDS_AT_COMMAND ? "+:" : ":");
    for (int place = 0; options[place].text; place++)
        if (options[place].code > GM_PROSE)
            add_option(&options[place], place);
}

static void print_help(const struct gm_option *options)
{
    for (; options->text; options++)
        fputs(options->text, stdout);
}

int gm_next_option(int count, char **arguments, const struct gm_option *options)
{
    if (parser.table != options)
        read_options(options);
    int before = optind ? optind : 1;
    int code = getopt_long(count, arguments, parser.letters, parser.options, &parser.last);
    const char *given = before < count ? arguments[before] : "";
    if (code == ':')
        gm_complain("%s: option '%s' needs a value", arguments[0], given);
    else if (code == '?')
        gm_complain("%s: unknown option '%s'; see gpumem %s --help", arguments[0], given,
                    arguments[0]);
    code = code >= FIRST_PLACE ? options[code - FIRST_PLACE].code : code == ':' ? '?' : code;
    if (code == GM_OPTION_HELP)
        print_help(options);
    else if (code == GM_OPTION_VERSION)
        gm_print_version();
    if (code == GM_OPTION_HELP || code == GM_OPTION_VERSION)
        exit(gm_finish(GM_EXIT_FINE));
    return code;
}

const char *gm_option_name(void)
{
    return parser.options[parser.last].name;
}

bool gm_take_stack_option(int option, struct gm_stacks_options *stacks)
{
    switch (option) {
    case GM_OPTION_NO_SYMBOLS:
        stacks->names = false;
        return true;
    case GM_OPTION_SYSROOT:
        stacks->sysroot = optarg;
        return true;
    case GM_OPTION_NO_LOCAL_FILES:
        stacks->no_local_files = true;
        return true;
    case GM_OPTION_ALL_FRAMES:
        stacks->all_frames = true;
        return true;
    case GM_OPTION_DEBUGINFOD:
        stacks->debuginfod = true;
        return true;
    case GM_OPTION_REDACT:
        stacks->redact = true;
        return true;
    case GM_OPTION_NO_LIMITS:
        gm_limits_lift();
        return true;
    default:
        return false;
    }
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

unsigned gm_terminal_columns(void)
{
    struct winsize size;
    if (ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) != 0 || !size.ws_col)
        return 80;
    return size.ws_col < COLUMNS_LEAST  ? COLUMNS_LEAST
           : size.ws_col > COLUMNS_MOST ? COLUMNS_MOST
                                        : size.ws_col;
}

void gm_fit_terminal(struct gm_output_options *options)
{
    options->ascii = !is_utf8();
    options->columns = gm_terminal_columns();
}

/* "1.5s": a number, then its unit; without one, nanoseconds. */
static bool parse_time(const char *text, uint64_t *time_ns)
{
    static const struct {
        const char *name;
        double nanoseconds;
    } units[] = {{"", 1}, {"ns", 1}, {"us", 1e3}, {"ms", 1e6}, {"s", 1e9}, {"min", 60e9}};
    char *end;
    bool is_number = text[0] >= '0' && text[0] <= '9' && text[strspn(text, "0123456789")] != 'x';
    double value = is_number ? strtod(text, &end) : -1;
    for (size_t i = 0; is_number && i < sizeof(units) / sizeof(units[0]); i++)
        if (strcmp(end, units[i].name) == 0 && value * units[i].nanoseconds < 1.8e19) {
            *time_ns = (uint64_t)(value * units[i].nanoseconds);
            return true;
        }
    return false;
}

bool gm_parse_moment(const char *text, struct gm_when *when)
{
    static const struct {
        const char *name;
        enum gm_when_kind kind;
    } kinds[] = {{"peak", GM_WHEN_PEAK}, {"oom", GM_WHEN_OOM}, {"end", GM_WHEN_END}};
    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (strcmp(text, kinds[i].name) == 0) {
            when->kind = kinds[i].kind;
            return true;
        }
    when->kind = GM_WHEN_TIME;
    if (parse_time(text, &when->time_ns))
        return true;
    gm_complain("--at: '%s' is not peak, oom, end or a time such as 1.5s", text);
    return false;
}

bool gm_parse_device(const char *text, int *device)
{
    char *end;
    long number = strtol(text, &end, 10);
    *device = (int)number;
    if (text[0] >= '0' && text[0] <= '9' && !*end && number <= INT8_MAX)
        return true;
    gm_complain("--device: '%s' is not the number of a device", text);
    return false;
}

bool gm_parse_kind(const char *text, int *kind)
{
    for (unsigned one = 0; one < GM_KINDS; one++)
        if (strcmp(gm_kind_name(one), text) == 0) {
            *kind = (int)one;
            return true;
        }
    gm_complain("--kind: '%s' is none of device, managed, array, vmm, graph, external, pinned, "
                "registered",
                text);
    return false;
}
