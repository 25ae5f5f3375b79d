/* See recording.h. */
#include "tools/runs/recording.h"
#include "base/complain.h"
#include "base/exit_code.h"
#include "base/memory.h"
#include "tools/runs/runs.h"
#include "tools/runs/trace_home.h"
#include "version.h"
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <gpumem/settings.h>
#include <gpumem/trace.h>
#include <inttypes.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define DEFAULT_PATTERN "gpumem.%e.%p.trace"

/* ---- environment ----------------------------------------------------------------------------- */

/* One line on stderr for each variable whose value is not understood, before a command inherits it. */
static void complain_of_settings(void)
{
    static const char *const names[] = {
        "GPUMEM_OUTPUT",      "GPUMEM_RING",  "GPUMEM_DEPTH", "GPUMEM_STACKS",
        "GPUMEM_ON_FULL",     "GPUMEM_TORCH", "GPUMEM_NVML",  "GPUMEM_MODE",
        "GPUMEM_FLIGHT_SIZE", "GPUMEM_NVTX",  "GPUMEM_XLA",
    };
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        const char *value = getenv(names[i]);
        if (value && !gm_setting_is_understood(names[i], value))
            gm_complain("%s='%s' is not understood: the default is used", names[i], value);
    }
}

bool gm_recording_library(char path[GM_LIBRARY_PATH_MAX])
{
    static const char *const places[] = {GPUMEM_LIBRARY_INSTALLED, "../lib/gpumem/libgpumem.so",
                                         "../preload/libgpumem.so"};
    char folder[PATH_MAX], candidate[2 * PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", folder, sizeof(folder) - 1);
    if (length <= 0) {
        gm_complain("cannot find my own executable: %s", strerror(errno));
        return false;
    }
    folder[length] = 0;
    *strrchr(folder, '/') = 0;
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
        snprintf(candidate, sizeof(candidate), "%s/%s", folder, places[i]);
        if (realpath(candidate, path) && access(path, R_OK) == 0)
            return true;
    }
    gm_complain("libgpumem.so not found near %s", folder);
    return false;
}

/* With GPUMEM_NVTX=1 programs that name their doings by NVTX load our library as their tool; it
 * passes all on to the tool that was set before. */
static void set_nvtx(const char *library)
{
    const char *wanted = getenv("GPUMEM_NVTX"), *before = getenv("NVTX_INJECTION64_PATH");
    bool is_wanted = false;
    if (!wanted || !gm_setting_choice(wanted, "0", "1", &is_wanted) || !is_wanted)
        return;
    if (before && *before && strcmp(before, library) != 0)
        setenv("GPUMEM_NVTX_NEXT", before, 1);
    setenv("NVTX_INJECTION64_PATH", library, 1);
}

/* The list in LD_PRELOAD keeps what is there; ours comes first. */
static bool set_preload(void)
{
    char library[GM_LIBRARY_PATH_MAX];
    if (!gm_recording_library(library))
        return false;
    if (strpbrk(library, ": ")) {
        gm_complain("%s: LD_PRELOAD cannot name a path with a colon or a blank", library);
        return false;
    }
    const char *before = getenv("LD_PRELOAD");
    size_t size = strlen(library) + (before ? strlen(before) : 0) + 2;
    char *list = gm_allocate(size, 1);
    snprintf(list, size, "%s%s%s", library, before && *before ? ":" : "", before ? before : "");
    setenv("LD_PRELOAD", list, 1);
    free(list);
    set_nvtx(library);
    return true;
}

static void draw_run_id(char run_id[33])
{
    uint64_t number[2];
    if (getrandom(number, sizeof(number), 0) != sizeof(number)) {
        struct timespec now;
        clock_gettime(CLOCK_REALTIME, &now);
        number[0] = (uint64_t)now.tv_sec << 32 | (uint64_t)now.tv_nsec;
        number[1] = (uint64_t)getpid();
    }
    snprintf(run_id, 33, "%016" PRIx64 "%016" PRIx64, number[0], number[1]);
}

/* Absolute, so that it means the same after the command has changed its folder. */
static char *absolute_path(const char *pattern)
{
    char folder[PATH_MAX];
    if (pattern[0] == '/' || !getcwd(folder, sizeof(folder)))
        return gm_copy_text(pattern);
    /* The folder is no pattern: its percent signs are doubled. */
    size_t size = 2 * strlen(folder) + strlen(pattern) + 2;
    char *path = gm_allocate(size, 1), *to = path;
    for (const char *from = folder; *from; from++) {
        if (*from == '%')
            *to++ = '%';
        *to++ = *from;
    }
    snprintf(to, size - (size_t)(to - path), "/%s", pattern);
    return path;
}

/* The pattern up to its last slash, which a GPUMEM_OUTPUT that is absolute has. As it stands in the
 * pattern: with its escapes. */
static char *folder_pattern(const char *pattern)
{
    char *folder = gm_copy_text(pattern), *slash = strrchr(folder, '/');
    slash[slash == folder] = 0;
    return folder;
}

/* The one folder that a pattern without escapes names; NULL if it differs from process to process. */
static char *only_folder(const char *pattern)
{
    char *folder = folder_pattern(pattern), *to = folder;
    for (const char *from = folder; *from; from++) {
        if (*from == '%' && *++from != '%') {
            free(folder);
            return NULL;
        }
        *to++ = *from;
    }
    *to = 0;
    return folder;
}

/* Whether a file can be made in that folder. It has no name, where the file system knows such. */
static bool is_writable(const char *folder)
{
    char name[PATH_MAX];
    int probe = open(folder, O_TMPFILE | O_WRONLY | O_CLOEXEC, 0600);
    if (probe < 0 && (errno == EOPNOTSUPP || errno == EISDIR || errno == EINVAL)) {
        snprintf(name, sizeof(name), "%s/.gpumem-probe-%d", folder, (int)getpid());
        probe = open(name, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (probe >= 0)
            unlink(name);
    }
    if (probe < 0)
        return false;
    close(probe);
    return true;
}

/* The recorder never speaks: what would keep it from writing is found before the command starts. */
static bool can_write(const char *pattern)
{
    struct stat status;
    const char *name = strrchr(pattern, '/') + 1;
    char *folder = only_folder(pattern);
    bool good = false;
    if (strlen(pattern) >= GM_OUTPUT_MAX)
        gm_complain("%s: cannot be the output: longer than %u bytes", pattern, GM_OUTPUT_MAX - 1);
    else if (!*name || (stat(pattern, &status) == 0 && S_ISDIR(status.st_mode)))
        gm_complain("%s: cannot be the output: a folder", pattern);
    else if (folder && (stat(folder, &status) != 0 || !S_ISDIR(status.st_mode)))
        gm_complain("%s: cannot be written: there is no folder %s", pattern, folder);
    else if (folder && !is_writable(folder))
        gm_complain("%s: cannot be written: %s", pattern, strerror(errno));
    else
        good = true;
    free(folder);
    return good;
}

bool gm_recording_begin(struct gm_recording *recording, const char *output)
{
    *recording = (struct gm_recording){0};
    complain_of_settings();
    const char *inherited = getenv("GPUMEM_OUTPUT");
    if (!output)
        output = inherited && *inherited ? inherited : DEFAULT_PATTERN;
    recording->pattern = absolute_path(output);
    if (!can_write(recording->pattern))
        return false;
    draw_run_id(recording->run_id);
    setenv("GPUMEM_OUTPUT", recording->pattern, 1);
    setenv("GPUMEM_RUN", recording->run_id, 1);
    return set_preload();
}

/* ---- the command ----------------------------------------------------------------------------- */

static volatile pid_t child;
static volatile sig_atomic_t passed_on;

static void pass_on(int signal_number)
{
    passed_on = signal_number;
    if (child > 0)
        kill(child, signal_number);
}

static const int handled[] = {SIGINT, SIGQUIT, SIGTERM, SIGHUP, SIGUSR1, SIGUSR2};
enum { HANDLED = sizeof(handled) / sizeof(handled[0]), OF_TERMINAL = 2 };

/* Signals to us are meant for the command: those of the terminal reach it anyway, others are passed
 * on. */
static void set_signals(struct sigaction before[HANDLED])
{
    for (size_t i = 0; i < HANDLED; i++) {
        struct sigaction action = {.sa_handler = i < OF_TERMINAL ? SIG_IGN : pass_on};
        sigaction(handled[i], &action, &before[i]);
    }
}

static _Noreturn void execute_command(char **command, const sigset_t *mask)
{
    for (size_t i = 0; i < HANDLED; i++)
        signal(handled[i], SIG_DFL);
    sigprocmask(SIG_SETMASK, mask, NULL);
    signal(SIGBUS, SIG_DFL);
    execvp(command[0], command);
    int error = errno;
    unsetenv("LD_PRELOAD");
    gm_complain("%s: %s", command[0], strerror(error));
    _exit(error == ENOENT ? GM_EXIT_NOT_FOUND : GM_EXIT_NOT_EXECUTABLE);
}

int gm_recording_run(struct gm_recording *recording, char **command)
{
    int status;
    sigset_t all, mask;
    struct sigaction before[HANDLED];
    passed_on = 0;
    fflush(NULL);
    /* A signal that comes before we can pass it on waits until we can. */
    sigfillset(&all);
    sigprocmask(SIG_BLOCK, &all, &mask);
    child = fork();
    if (child == 0)
        execute_command(command, &mask);
    if (child > 0)
        set_signals(before);
    sigprocmask(SIG_SETMASK, &mask, NULL);
    if (child < 0) {
        gm_complain("cannot start %s: %s", command[0], strerror(errno));
        return GM_EXIT_NOT_STARTED;
    }
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) {
            gm_complain("cannot wait for %s: %s", command[0], strerror(errno));
            return GM_EXIT_NOT_STARTED;
        }
    recording->pid = child;
    recording->status = status;
    recording->passed_on = passed_on;
    child = 0;
    for (size_t i = 0; i < HANDLED; i++)
        sigaction(handled[i], &before[i], NULL);
    return WIFSIGNALED(status) ? GM_EXIT_SIGNAL + WTERMSIG(status) : WEXITSTATUS(status);
}

/* ---- its traces ------------------------------------------------------------------------------ */

static bool is_of_run(int folder, const char *name, const char *run_id)
{
    struct gm_trace_header header;
    return gm_run_read_header(folder, name, &header) &&
           strncmp(header.run_id, run_id, sizeof(header.run_id)) == 0;
}

static int by_trace_name(const void *left, const void *right)
{
    return strcmp(*(char *const *)left, *(char *const *)right);
}

/* A pattern of glob(3) for all folders that a pattern names: an escape becomes "*", and what has a
 * meaning there is quoted. */
static char *glob_of(const char *pattern)
{
    char *folder = folder_pattern(pattern), *glob_text = gm_allocate(2 * strlen(folder) + 2, 1);
    char *to = glob_text;
    for (const char *from = folder; *from; from++) {
        if (*from == '%' && from[1] && from[1] != '%') {
            *to++ = '*';
            if (*++from == 'q' && from[1] == '{' && strchr(from, '}'))
                from = strchr(from, '}');
            continue;
        }
        from += *from == '%' && from[1] == '%';
        if (strchr("*?[\\", *from))
            *to++ = '\\';
        *to++ = *from;
    }
    free(folder);
    return glob_text;
}

static void find_in_folder(struct gm_recording *recording, const char *folder)
{
    DIR *entries = opendir(folder);
    const char *slash = strcmp(folder, "/") == 0 ? "" : "/";
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        if (!is_of_run(dirfd(entries), entry->d_name, recording->run_id))
            continue;
        size_t size = strlen(folder) + strlen(entry->d_name) + 2;
        char *path = gm_allocate(size, 1);
        snprintf(path, size, "%s%s%s", folder, slash, entry->d_name);
        GM_APPEND(recording->traces, recording->trace_capacity, recording->trace_count, path);
    }
    if (entries)
        closedir(entries);
}

/* What the command could not mark itself, in its trace. */
static void tell_end(const struct gm_recording *recording, const char *path)
{
    struct gm_trace_header header;
    uint32_t status = gm_status_of_wait(recording->status);
    if (!gm_run_read_header(AT_FDCWD, path, &header) || header.pid != (uint32_t)recording->pid ||
        header.end != GM_END_NONE || header.seal || header.status)
        return;
    int descriptor = open(path, O_WRONLY | O_CLOEXEC | O_NONBLOCK);
    if (descriptor < 0)
        return;
    ssize_t ignored =
        pwrite(descriptor, &status, sizeof(status), offsetof(struct gm_trace_header, status));
    (void)ignored; /* then the page does not say how it ended */
    close(descriptor);
}

void gm_recording_find(struct gm_recording *recording)
{
    char *pattern = glob_of(recording->pattern);
    glob_t folders = {0};
    if (glob(pattern, 0, NULL, &folders) == 0)
        for (size_t i = 0; i < folders.gl_pathc; i++)
            find_in_folder(recording, folders.gl_pathv[i]);
    globfree(&folders);
    free(pattern);
    if (recording->trace_count)
        qsort(recording->traces, recording->trace_count, sizeof(char *), by_trace_name);
    for (size_t i = 0; i < recording->trace_count; i++) {
        gm_bring_home(recording->traces[i]);
        tell_end(recording, recording->traces[i]);
    }
}

void gm_recording_end(struct gm_recording *recording)
{
    for (size_t i = 0; i < recording->trace_count; i++)
        free(recording->traces[i]);
    free(recording->traces);
    free(recording->pattern);
}
