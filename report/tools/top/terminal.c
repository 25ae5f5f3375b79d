/* See terminal.h. What signal handlers call is safe there (signal-safety(7)). */
#include "tools/top/terminal.h"
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <termios.h>
#include <unistd.h>

/* All that ends a program, as far as it can be handled. */
static const int ends[] = {SIGHUP,  SIGINT, SIGQUIT, SIGTERM, SIGPIPE, SIGALRM, SIGUSR1,
                           SIGUSR2, SIGBUS, SIGSEGV, SIGABRT, SIGFPE,  SIGILL};
#define ENDS (sizeof(ends) / sizeof(ends[0]))

static struct termios before;
static struct sigaction handlers_before[ENDS];
static volatile sig_atomic_t is_taken;

static bool terminal_is_ours(void)
{
    return tcgetpgrp(STDIN_FILENO) == getpgrp(); /* else a change would stop us */
}

static void take_terminal(void)
{
    struct termios raw = before;
    raw.c_lflag &= ~(tcflag_t)(ICANON | ECHO); /* Ctrl-C and Ctrl-Z stay signals */
    raw.c_cc[VMIN] = 1;
    raw.c_cc[VTIME] = 0;
    if (terminal_is_ours() && tcsetattr(STDIN_FILENO, TCSADRAIN, &raw) == 0)
        is_taken = 1;
}

static void give_back_terminal(void)
{
    if (is_taken && terminal_is_ours())
        tcsetattr(STDIN_FILENO, TCSANOW, &before);
    is_taken = 0;
}

/* What was there before decides: it gets the signal when we return. */
static void end_by(int signal_number)
{
    int error = errno;
    give_back_terminal();
    for (size_t i = 0; i < ENDS; i++)
        if (ends[i] == signal_number)
            sigaction(signal_number, &handlers_before[i], NULL);
    raise(signal_number);
    errno = error;
}

static void stop_on_signal(int signal_number)
{
    int error = errno;
    struct sigaction usual = {.sa_handler = SIG_DFL};
    give_back_terminal();
    sigaction(signal_number, &usual, NULL);
    raise(signal_number);
    errno = error;
}

static void handle(int signal_number, void (*handler)(int))
{
    struct sigaction action = {.sa_handler = handler};
    sigemptyset(&action.sa_mask);
    sigaction(signal_number, &action, NULL);
}

static void go_on(int signal_number)
{
    int error = errno;
    (void)signal_number;
    take_terminal();
    handle(SIGTSTP, stop_on_signal);
    errno = error;
}

bool gm_terminal_begin(void)
{
    static bool is_registered;
    if (!isatty(STDIN_FILENO) || !isatty(STDOUT_FILENO) || !terminal_is_ours() ||
        tcgetattr(STDIN_FILENO, &before) != 0)
        return false;
    if (!is_registered && atexit(gm_terminal_end) != 0)
        return false;
    is_registered = true;
    for (size_t i = 0; i < ENDS; i++) {
        sigaction(ends[i], NULL, &handlers_before[i]);
        if (handlers_before[i].sa_handler != SIG_IGN) /* as nohup asks for */
            handle(ends[i], end_by);
    }
    handle(SIGTSTP, stop_on_signal);
    handle(SIGCONT, go_on);
    take_terminal();
    return is_taken;
}

void gm_terminal_end(void)
{
    give_back_terminal();
}

int gm_terminal_key(int timeout_ms)
{
    struct pollfd input = {.fd = STDIN_FILENO, .events = POLLIN};
    unsigned char key;
    if (poll(&input, 1, timeout_ms) <= 0)
        return GM_TERMINAL_NO_KEY;
    ssize_t count = read(STDIN_FILENO, &key, 1);
    if (count == 1)
        return key;
    return count < 0 && errno == EINTR ? GM_TERMINAL_NO_KEY : GM_TERMINAL_CLOSED;
}
