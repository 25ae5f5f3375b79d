/* See run_note.h. */
#include "tools/runs/run_note.h"
#include "base/memory.h"
#include "base/text.h"
#include "tools/runs/kept.h"
#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define FIRST_LINE "gpumem run note 1\n"
#define NOTE_MAX (1u << 20) /* bytes read of a note */
#define COMMAND_MAX 200u

/* ---- writing --------------------------------------------------------------------------------- */

static bool has_traces_here(void)
{
    bool has = false;
    DIR *entries = opendir(".");
    for (struct dirent *entry; entries && !has && (entry = readdir(entries));) {
        size_t length = strlen(entry->d_name);
        has = length > 6 && strcmp(entry->d_name + length - 6, ".trace") == 0;
    }
    if (entries)
        closedir(entries);
    return has;
}

static void note_one(void *context, const char *path)
{
    (void)path;
    *(bool *)context = true;
}

/* What would pass for a run's trace here if the run left none. */
static bool has_others(void)
{
    bool has = has_traces_here();
    if (!has)
        gm_kept_list(note_one, &has);
    return has;
}

static bool is_here(const char *path)
{
    const char *slash = strrchr(path, '/');
    size_t length = strlen(path);
    struct stat here, there;
    char folder[PATH_MAX];
    if (length <= 6 || strcmp(path + length - 6, ".trace") != 0)
        return false; /* it would not be found */
    if (!slash)
        return true;
    if (slash == path || (size_t)(slash - path) >= sizeof(folder))
        return false;
    memcpy(folder, path, (size_t)(slash - path));
    folder[slash - path] = 0;
    return stat(".", &here) == 0 && stat(folder, &there) == 0 && here.st_dev == there.st_dev &&
           here.st_ino == there.st_ino;
}

/* A line holds one value: what could end it early is taken out. */
static void write_value(FILE *file, const char *name, const char *value)
{
    if (!strchr(value, '\n'))
        fprintf(file, "%s=%s\n", name, value);
}

static void write_noted_command(FILE *file, char **command)
{
    char text[COMMAND_MAX] = "";
    size_t used = 0;
    for (; *command && used < sizeof(text) - 1; command++)
        used +=
            (size_t)snprintf(text + used, sizeof(text) - used, "%s%s", used ? " " : "", *command);
    gm_clean_text(text);
    write_value(file, "command", text);
}

void gm_run_note_leave(char **command, int code, char *const *traces, size_t count)
{
    bool found_here = false;
    for (size_t i = 0; i < count && !found_here; i++)
        found_here = is_here(traces[i]);
    if (found_here || !has_others()) {
        unlink(GM_RUN_NOTE);
        return;
    }
    int descriptor =
        open(GM_RUN_NOTE ".part", O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0644);
    FILE *file = descriptor >= 0 ? fdopen(descriptor, "w") : NULL;
    if (!file) {
        if (descriptor >= 0)
            close(descriptor);
        return;
    }
    fputs(FIRST_LINE, file);
    write_noted_command(file, command);
    fprintf(file, "code=%d\n", code);
    for (size_t i = 0; i < count; i++)
        write_value(file, "trace", traces[i]);
    bool good = fflush(file) == 0 && !ferror(file);
    fclose(file);
    if (!good || rename(GM_RUN_NOTE ".part", GM_RUN_NOTE) != 0)
        unlink(GM_RUN_NOTE ".part");
}

/* ---- reading --------------------------------------------------------------------------------- */

/* The whole note, terminated; NULL if there is none that can be read. */
static char *read_note(const char *path, struct timespec *written)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW);
    char *text = NULL;
    if (descriptor < 0)
        return NULL;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) &&
        status.st_size < (off_t)NOTE_MAX) {
        text = gm_allocate((size_t)status.st_size + 1, 1);
        ssize_t length = read(descriptor, text, (size_t)status.st_size);
        text[length > 0 ? length : 0] = 0;
        *written = status.st_mtim;
    }
    close(descriptor);
    return text;
}

static void take_line(struct gm_run_note *note, const char *line)
{
    if (strncmp(line, "command=", 8) == 0 && !note->command) {
        note->command = gm_copy_text(line + 8);
        gm_clean_text(note->command);
    } else if (strncmp(line, "code=", 5) == 0) {
        note->code = (int)(strtol(line + 5, NULL, 10) & 0xff);
    } else if (strncmp(line, "trace=/", 7) == 0) {
        GM_APPEND(note->traces, note->trace_capacity, note->trace_count, gm_copy_text(line + 6));
    }
}

bool gm_run_note_read(struct gm_run_note *note, const char *folder)
{
    char path[PATH_MAX];
    *note = (struct gm_run_note){0};
    if (snprintf(path, sizeof(path), "%s/" GM_RUN_NOTE, folder) >= (int)sizeof(path))
        return false;
    char *text = read_note(path, &note->written);
    bool is_note = text && strncmp(text, FIRST_LINE, strlen(FIRST_LINE)) == 0;
    char *rest = NULL;
    for (char *line = is_note ? strtok_r(text, "\n", &rest) : NULL; line;
         line = strtok_r(NULL, "\n", &rest))
        take_line(note, line);
    free(text);
    if (is_note && !note->command)
        note->command = gm_copy_text("");
    return is_note;
}

void gm_run_note_free(struct gm_run_note *note)
{
    for (size_t i = 0; i < note->trace_count; i++)
        free(note->traces[i]);
    free(note->traces);
    free(note->command);
}
