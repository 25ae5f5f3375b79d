/* See output_file.h. */
#include "output/output_file.h"
#include "base/complain.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool complain_of_file(const char *path)
{
    gm_complain("%s: %s", path, strerror(errno));
    return false;
}

/* The mode that open() would give a new file. */
static mode_t new_mode(void)
{
    mode_t mask = umask(0);
    umask(mask);
    return 0666 & ~mask;
}

/* A device or a pipe cannot be replaced by another file, and must not. */
static int open_there(struct gm_output_file *file)
{
    struct stat status;
    bool exists = stat(file->path, &status) == 0;
    if (exists && !S_ISREG(status.st_mode))
        return open(file->path, O_WRONLY | O_CLOEXEC);
    size_t size = strlen(file->path) + sizeof(".XXXXXX");
    file->temporary = gm_allocate(size, 1);
    snprintf(file->temporary, size, "%s.XXXXXX", file->path);
    int descriptor = mkostemp(file->temporary, O_CLOEXEC);
    if (descriptor >= 0)
        fchmod(descriptor, exists ? status.st_mode & 07777 : new_mode());
    return descriptor;
}

/* What is removed if the user or the system stops us: half a page is none. One file is written at a time. */
static char *volatile unfinished;

static void on_stop(int signal_number)
{
    if (unfinished)
        unlink(unfinished); /* errno may change: nobody goes on behind this */
    signal(signal_number, SIG_DFL);
    raise(signal_number);
}

static void watch_stops(char *temporary)
{
    static const int stops[] = {SIGINT, SIGTERM, SIGHUP};
    unfinished = temporary;
    for (size_t i = 0; i < sizeof(stops) / sizeof(stops[0]); i++) {
        struct sigaction before;
        if (sigaction(stops[i], NULL, &before) == 0 && before.sa_handler == SIG_DFL)
            signal(stops[i], on_stop);
    }
}

bool gm_output_file_open(struct gm_output_file *file, const char *path)
{
    *file = (struct gm_output_file){.path = path};
    if (strcmp(path, "-") == 0)
        return true;
    int descriptor = open_there(file);
    if (descriptor < 0) {
        free(file->temporary);
        file->temporary = NULL;
        return complain_of_file(path);
    }
    if (file->temporary)
        watch_stops(file->temporary);
    fflush(stdout);
    dup2(descriptor, STDOUT_FILENO);
    close(descriptor);
    return true;
}

bool gm_output_file_close(struct gm_output_file *file, bool is_good)
{
    bool is_written = fflush(stdout) == 0 && !ferror(stdout);
    if (!is_written)
        complain_of_file(file->path);
    if (file->temporary) {
        if (!is_good || !is_written)
            unlink(file->temporary);
        else if (rename(file->temporary, file->path) != 0)
            is_written = complain_of_file(file->path);
        unfinished = NULL;
        free(file->temporary);
        file->temporary = NULL;
    }
    return is_written;
}
