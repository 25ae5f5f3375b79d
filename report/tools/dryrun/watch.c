/* See watch.h. */
#include "tools/dryrun/watch.h"
#include "base/process_alive.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    ROUNDS = 100, /* in which it looks for what still runs */
    GENTLE = 20,  /* of which the first ask */
    ROUND_MS = 100
};

/* Whether a process has the variable in the environment that it was started with. */
static bool has_variable(const char *process, const char *variable)
{
    char path[64], *text = NULL;
    size_t room = 0;
    bool has = false;
    snprintf(path, sizeof(path), "/proc/%.20s/environ", process);
    FILE *file = fopen(path, "re");
    while (file && !has && getdelim(&text, &room, 0, file) > 0)
        has = strcmp(text, variable) == 0;
    free(text);
    if (file)
        fclose(file);
    return has;
}

/* Those that told of themselves when they began (sim/dry/fresh.c): a title that a process gives itself can lie where
 * its environment was, as of the engines and workers of vLLM. */
static size_t signal_started(const char *scratch, int number)
{
    char path[PATH_MAX + 32], *line = NULL;
    size_t count = 0, room = 0;
    snprintf(path, sizeof(path), "%s/status.started", scratch);
    FILE *file = fopen(path, "re");
    while (file && getline(&line, &room, file) > 0) {
        char *rest = line;
        const char *pid = strsep(&rest, " ");
        pid_t process = (pid_t)strtol(pid, NULL, 10);
        uint64_t start = rest ? strtoull(rest, NULL, 10) : 0;
        if (process > 1 && start && gm_process_start(pid) == start && kill(process, number) == 0)
            count++;
    }
    free(line);
    if (file)
        fclose(file);
    return count;
}

/* Returns how many there were. */
static size_t signal_all(const char *scratch, int number)
{
    char variable[PATH_MAX + 32];
    size_t count = signal_started(scratch, number);
    DIR *processes = opendir("/proc");
    snprintf(variable, sizeof(variable), "GPUMEM_DRY_STATUS=%s/status", scratch);
    for (struct dirent *entry; processes && (entry = readdir(processes));) {
        pid_t process = (pid_t)strtol(entry->d_name, NULL, 10);
        if (process > 1 && process != getpid() && has_variable(entry->d_name, variable) &&
            kill(process, number) == 0)
            count++;
    }
    if (processes)
        closedir(processes);
    return count;
}

static void remove_folder(const char *path)
{
    DIR *folder = opendir(path);
    int descriptor = folder ? dirfd(folder) : -1;
    for (struct dirent *entry; descriptor >= 0 && (entry = readdir(folder));)
        unlinkat(descriptor, entry->d_name, 0);
    if (folder)
        closedir(folder);
    rmdir(path);
}

static void end_all(const char *scratch)
{
    const struct timespec round = {.tv_nsec = ROUND_MS * 1000000L};
    for (int i = 0; i < ROUNDS && signal_all(scratch, i < GENTLE ? SIGTERM : SIGKILL); i++)
        nanosleep(&round, NULL);
}

static _Noreturn void keep_watch(int descriptor, const char *scratch)
{
    static const int ignored[] = {SIGINT, SIGTERM, SIGHUP, SIGQUIT};
    char word;
    int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    setsid();
    for (size_t i = 0; i < sizeof(ignored) / sizeof(ignored[0]); i++)
        signal(ignored[i], SIG_IGN);
    for (int standard = 0; nowhere >= 0 && standard < 3; standard++)
        dup2(nowhere, standard);
    if (read(descriptor, &word, 1) == 0) {
        end_all(scratch);
        remove_folder(scratch);
    }
    _exit(0);
}

void gm_dry_watch_begin(struct gm_dry_watch *watch, const char *scratch)
{
    int ends[2];
    *watch = (struct gm_dry_watch){.process = -1, .descriptor = -1};
    if (pipe2(ends, O_CLOEXEC) != 0)
        return;
    fflush(NULL);
    watch->process = fork();
    if (watch->process == 0) {
        close(ends[1]);
        keep_watch(ends[0], scratch);
    }
    close(ends[0]);
    watch->descriptor = ends[1];
}

void gm_dry_watch_end(struct gm_dry_watch *watch, const char *scratch, bool all_is_well)
{
    if (watch->process > 0 && all_is_well) {
        ssize_t ignored = write(watch->descriptor, "", 1);
        (void)ignored; /* then it looks for processes in vain */
    }
    if (watch->descriptor >= 0)
        close(watch->descriptor);
    if (watch->process > 0)
        waitpid(watch->process, NULL, 0);
    remove_folder(scratch);
}
