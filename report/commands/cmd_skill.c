/* gpumem skill: prints what an agent is to know of gpumem, share/gpumem/SKILL.md. */
#include "commands/command.h"
#include <stdio.h>

__asm__(".pushsection .rodata\n"
        ".globl gm_skill\n"
        "gm_skill: .incbin \"" GPUMEM_SKILL_FILE "\"\n"
        ".byte 0\n"
        ".popsection\n");
extern const char gm_skill[] __attribute__((visibility("hidden")));

static const struct gm_option own_options[] = {
    {GM_PROSE, "usage: gpumem skill\n"
               "\n"
               "Prints a skill for coding agents: how to record, ask, decide, and verify a fix\n"
               "(docs/ask.md). Save it as SKILL.md where your agent looks for skills.\n"
               "\n"},
    GM_COMMON_OPTIONS,
    {GM_PROSE, NULL},
};

int gm_cmd_skill(int count, char **arguments)
{
    if (gm_next_option(count, arguments, own_options) != -1)
        return GM_EXIT_USAGE;
    if (optind < count)
        return gm_complain("skill: takes no arguments");
    fputs(gm_skill, stdout);
    return GM_EXIT_FINE;
}
