/* See apart.h. */
#include "commands/apart.h"
#include "base/memory.h"
#include "base/text.h"
#include "commands/command.h"
#include <errno.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

static bool open_room(struct gm_apart *apart)
{
    apart->answer =
        mmap(NULL, apart->size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (apart->answer == MAP_FAILED)
        return false;
    apart->output = memfd_create("gpumem", MFD_CLOEXEC);
    if (apart->output >= 0)
        return true;
    munmap(apart->answer, apart->size);
    return false;
}

static void close_room(const struct gm_apart *apart)
{
    close(apart->output);
    munmap(apart->answer, apart->size);
}

/* What libraries and sanitizers do at the end of a process, they do here, too. */
static _Noreturn void read_here(gm_apart_reader reader, const char *path, const void *request,
                                const struct gm_apart *apart)
{
    if (dup2(apart->output, STDOUT_FILENO) < 0) {
        gm_complain("%s: %s", path, strerror(errno));
        exit(GM_EXIT_UNREADABLE);
    }
    reader(path, request, apart->answer);
    exit(fflush(stdout) == 0 && !ferror(stdout) ? GM_EXIT_FINE : GM_EXIT_UNREADABLE);
}

/* A reader at a terminal is told what takes so long, and the line goes away again. */
static void tell_progress(pid_t child, const char *path)
{
    int descriptor = isatty(STDERR_FILENO) ? (int)syscall(SYS_pidfd_open, child, 0) : -1;
    struct pollfd ended = {.fd = descriptor, .events = POLLIN};
    char *clean = gm_clean_copy(gm_base_name((struct gm_text){path, strlen(path)}));
    bool is_told = false;
    for (int seconds = 2; descriptor >= 0 && poll(&ended, 1, is_told ? 1000 : 2000) == 0;
         seconds++) {
        fprintf(stderr, "\rgpumem: reading %.50s ... %d s", clean, seconds);
        is_told = true;
    }
    if (is_told)
        fprintf(stderr, "\r%79s\r", "");
    if (descriptor >= 0)
        close(descriptor);
    free(clean);
}

static bool has_returned(pid_t child, const char *path)
{
    int status = 0;
    tell_progress(child, path);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR) {
            gm_complain("%s: %s", path, strerror(errno));
            return false;
        }
    if (WIFSIGNALED(status))
        gm_complain("%s: reading it was ended by signal %d", path, WTERMSIG(status));
    else if (WEXITSTATUS(status))
        gm_complain("%s: reading it was given up", path);
    return WIFEXITED(status) && WEXITSTATUS(status) == 0;
}

static void print(int output)
{
    char piece[65536];
    off_t at = 0;
    for (ssize_t size; (size = pread(output, piece, sizeof(piece), at)) > 0; at += size)
        if (fwrite(piece, 1, (size_t)size, stdout) != (size_t)size)
            return; /* main() says so */
}

void gm_apart_start(struct gm_apart *apart, gm_apart_reader reader, const char *path,
                    const void *request, size_t size)
{
    *apart = (struct gm_apart){.child = -1, .path = path, .size = size};
    fflush(stdout); /* else the child has it, too */
    if (!open_room(apart)) {
        gm_complain("%s: %s", path, strerror(errno));
        return;
    }
    if ((apart->child = fork()) == 0)
        read_here(reader, path, request, apart);
    if (apart->child > 0)
        return;
    gm_complain("%s: %s", path, strerror(errno));
    close_room(apart);
}

/* What the reader printed, "" if it cannot be had. */
static char *read_output(int output, size_t *length)
{
    struct stat status;
    off_t size = fstat(output, &status) == 0 && status.st_size < INT32_MAX ? status.st_size : 0;
    char *text = gm_allocate((size_t)size + 1, 1);
    ssize_t got = pread(output, text, (size_t)size, 0);
    *length = got > 0 ? (size_t)got : 0;
    return text;
}

bool gm_apart_end(const struct gm_apart *apart, void *answer, char **text, size_t *length)
{
    memset(answer, 0, apart->size);
    if (text)
        *text = NULL;
    if (apart->child < 0)
        return false;
    bool is_read = has_returned(apart->child, apart->path);
    if (is_read)
        memcpy(answer, apart->answer, apart->size);
    if (is_read && text && length)
        *text = read_output(apart->output, length);
    else if (is_read)
        print(apart->output);
    close_room(apart);
    return is_read;
}

bool gm_apart(gm_apart_reader reader, const char *path, const void *request, void *answer,
              size_t size)
{
    struct gm_apart apart;
    gm_apart_start(&apart, reader, path, request, size);
    return gm_apart_end(&apart, answer, NULL, NULL);
}
