/* Whether LD_PRELOAD reaches a program, by its file alone. */
#ifndef GPUMEM_REPORT_RUNS_REACH_H
#define GPUMEM_REPORT_RUNS_REACH_H

enum gm_reach {
    GM_REACHED,      /* as far as can be told: it may also be no program at all */
    GM_REACH_MUSL,   /* its loader is musl's, which cannot load a library of glibc */
    GM_REACH_STATIC, /* it has no loader; what it starts may have one */
};

/* Judges the command that execvp would run; of a script, its interpreter. */
enum gm_reach gm_reach_of(const char *command);

#endif
