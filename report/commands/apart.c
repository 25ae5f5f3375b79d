/* See apart.h. */
#include "commands/apart.h"
#include "commands/command.h"
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
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

static bool has_returned(pid_t child, const char *path)
{
    int status = 0;
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

bool gm_apart(gm_apart_reader reader, const char *path, const void *request, void *answer,
              size_t size)
{
    struct room room;
    memset(answer, 0, size);
    fflush(stdout); /* else the child has it, too */
    pid_t child = -1;
    if (!open_room(&room, size)) {
        gm_complain("%s: %s", path, strerror(errno));
        return false;
    }
    if ((child = fork()) == 0)
        read_here(reader, path, request, &room);
    bool is_read = false;
    if (child < 0)
        gm_complain("%s: %s", path, strerror(errno));
    else
        is_read = has_returned(child, path);
    if (is_read) {
        memcpy(answer, room.answer, size);
        print(room.output);
    }
    close_room(&room);
    return is_read;
}
