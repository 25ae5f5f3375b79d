/* See gate.h: classes of leaks and findings, as lists of options name them. */
#include "base/memory.h"
#include "tools/gate/gate.h"
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

static bool is_leak_class(const char *code)
{
    for (unsigned leak_class = GM_LEAK; leak_class < GM_LEAK_CLASSES; leak_class++)
        if (strcmp(code, gm_leak_class_name(leak_class)) == 0)
            return true;
    return false;
}

static bool is_finding(const char *code)
{
    for (unsigned number = 0; number < GM_FINDING_CODES; number++)
        if (strcmp(code, gm_finding_name(number)) == 0)
            return true;
    return false;
}

static bool has_code_name(const char *list, const char *name)
{
    for (const char *at = list; *at; at += strspn(at, ",")) {
        size_t length = strcspn(at, ",");
        if (strlen(name) == length && memcmp(at, name, length) == 0)
            return true;
        at += length;
    }
    return false;
}

bool gm_gate_has_code(const char *list, const char *code, bool of_finding)
{
    return has_code_name(list, code) || has_code_name(list, "all") ||
           (of_finding && has_code_name(list, "findings"));
}

bool gm_gate_is_code(const char *name)
{
    return is_leak_class(name) || is_finding(name);
}

static bool is_of_list(const char *name)
{
    return strcmp(name, "all") == 0 || strcmp(name, "findings") == 0 || strcmp(name, "none") == 0 ||
           strcmp(name, GM_CODE_UNBOUNDED) == 0 || gm_gate_is_code(name);
}

bool gm_gate_codes_are_known(const char *option, const char *list)
{
    char *copy = gm_copy_text(list), *rest = copy, *one;
    bool known = true;
    while (known && (one = strsep(&rest, ",")))
        if (!(known = is_of_list(one)))
            fprintf(stderr, "gpumem: %s: '%s' is no class of leaks and no code of a finding\n",
                    option, one);
    free(copy);
    return known;
}

static enum gm_issue_level level_of(const struct gm_gate *gate, const char *code, bool of_finding)
{
    if (gm_gate_has_code(gate->fail_on, code, of_finding))
        return GM_ISSUE_FAILURE;
    return gm_gate_has_code(gate->warn_on, code, of_finding) ? GM_ISSUE_WARNING : GM_ISSUE_NOTE;
}

enum gm_issue_level gm_gate_class_level(const struct gm_gate *gate, const char *code)
{
    return level_of(gate, code, false);
}

enum gm_issue_level gm_gate_finding_level(const struct gm_gate *gate, const char *code,
                                          enum gm_severity severity)
{
    if (severity != GM_SEVERITY_NOTE)
        return level_of(gate, code, true);
    return has_code_name(gate->fail_on, code) && !is_leak_class(code) ? GM_ISSUE_FAILURE
                                                                      : GM_ISSUE_NOTE;
}

unsigned gm_gate_class(const struct gm_gate *gate, const struct gm_model_run *run,
                       unsigned leak_class)
{
    bool takes_what_is_there = gate->judge_cut && run->ending != GM_ENDING_NORMAL && !run->complete;
    return leak_class == GM_LEAK_LIVE && takes_what_is_there ? GM_LEAK : leak_class;
}

void gm_gate_note_reason(struct gm_gate_outcome *outcome, const char *format, ...)
{
    va_list arguments;
    if (outcome->reason_count++)
        return;
    va_start(arguments, format);
    vsnprintf(outcome->reason, sizeof(outcome->reason), format, arguments);
    va_end(arguments);
}
