/* The terminal of a page that answers to keys: each key is there at once, and is not shown.
 *
 * Guarantees: whatever ends the program, but SIGKILL, the terminal is as it was before: a return, exit(), a signal, also
 * one of a crash. While the program is stopped (Ctrl-Z), it is as it was, too.
 */
#ifndef GPUMEM_REPORT_TOP_TERMINAL_H
#define GPUMEM_REPORT_TOP_TERMINAL_H

#include <stdbool.h>

/* Takes the terminal. False if stdin or stdout is none, or others have it: then nothing is changed. */
bool gm_terminal_begin(void);
void gm_terminal_end(void);

enum {
    GM_TERMINAL_NO_KEY = 0,
    GM_TERMINAL_CLOSED = -1, /* there will be no key any more */
};

/* The next key; waits for at most so many milliseconds. NO_KEY also after the program was stopped and goes on. */
int gm_terminal_key(int timeout_ms);

#endif
