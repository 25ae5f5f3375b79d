/* See output_file.h. */
#include "render/output_file.h"
#include "base/complain.h"
#include "base/memory.h"
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

static bool complain(const char *path)
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

bool gm_output_file_open(struct gm_output_file *file, const char *path)
{
    *file = (struct gm_output_file){.path = path};
    if (strcmp(path, "-") == 0)
        return true;
    int descriptor = open_there(file);
    if (descriptor < 0) {
        free(file->temporary);
        file->temporary = NULL;
        return complain(path);
    }
    fflush(stdout);
    dup2(descriptor, STDOUT_FILENO);
    close(descriptor);
    return true;
}

bool gm_output_file_close(struct gm_output_file *file, bool is_good)
{
    bool is_written = fflush(stdout) == 0 && !ferror(stdout);
    if (!is_written)
        complain(file->path);
    if (file->temporary) {
        if (!is_good || !is_written)
            unlink(file->temporary);
        else if (rename(file->temporary, file->path) != 0)
            is_written = complain(file->path);
        free(file->temporary);
        file->temporary = NULL;
    }
    return is_written;
}
