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

/* What the two processes share. */
struct room {
    int output; /* stands for the child's stdout */
    void *answer;
    size_t size;
};

static bool open_room(struct room *room, size_t size)
{
    room->size = size;
    room->answer = mmap(NULL, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (room->answer == MAP_FAILED)
        return false;
    room->output = memfd_create("gpumem", MFD_CLOEXEC);
    if (room->output >= 0)
        return true;
    munmap(room->answer, size);
    return false;
}

static void close_room(const struct room *room)
{
    close(room->output);
    munmap(room->answer, room->size);
}

/* What libraries and sanitizers do at the end of a process, they do here, too. */
static _Noreturn void read_here(gm_apart_reader reader, const char *path, const void *request,
                                const struct room *room)
{
    if (dup2(room->output, STDOUT_FILENO) < 0) {
        gm_complain("%s: %s", path, strerror(errno));
        exit(GM_EXIT_UNREADABLE);
    }
    reader(path, request, room->answer);
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

/* Runs the reader; the room is open afterwards if it returned. */
static bool run_apart(struct room *room, gm_apart_reader reader, const char *path,
                      const void *request, size_t size)
{
    fflush(stdout); /* else the child has it, too */
    pid_t child = -1;
    if (!open_room(room, size)) {
        gm_complain("%s: %s", path, strerror(errno));
        return false;
    }
    if ((child = fork()) == 0)
        read_here(reader, path, request, room);
    if (child < 0)
        gm_complain("%s: %s", path, strerror(errno));
    if (child >= 0 && has_returned(child, path))
        return true;
    close_room(room);
    return false;
}

bool gm_apart(gm_apart_reader reader, const char *path, const void *request, void *answer,
              size_t size)
{
    struct room room;
    memset(answer, 0, size);
    if (!run_apart(&room, reader, path, request, size))
        return false;
    memcpy(answer, room.answer, size);
    print(room.output);
    close_room(&room);
    return true;
}

bool gm_apart_capture(gm_apart_reader reader, const char *path, const void *request, void *answer,
                      size_t size, char **text, size_t *length)
{
    struct room room;
    struct stat status;
    *text = NULL;
    *length = 0;
    memset(answer, 0, size);
    if (!run_apart(&room, reader, path, request, size))
        return false;
    memcpy(answer, room.answer, size);
    if (fstat(room.output, &status) == 0 && status.st_size < (off_t)INT32_MAX) {
        *text = gm_allocate((size_t)status.st_size + 1, 1);
        ssize_t got = pread(room.output, *text, (size_t)status.st_size, 0);
        *length = got > 0 ? (size_t)got : 0;
    }
    close_room(&room);
    return *text != NULL;
}
