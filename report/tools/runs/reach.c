/* See reach.h. */
#include "tools/runs/reach.h"
#include <elf.h>
#include <fcntl.h>
#include <limits.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define SCRIPTS_MAX 4 /* interpreters of interpreters that the kernel follows */

/* Opens what execvp finds. -1: nothing. */
static int open_command(const char *command)
{
    const char *folders = getenv("PATH");
    char path[PATH_MAX];
    if (strchr(command, '/'))
        return open(command, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    for (const char *at = folders ? folders : "/bin:/usr/bin"; *at;) {
        size_t size = strcspn(at, ":");
        int length =
            snprintf(path, sizeof(path), "%.*s%s%s", (int)size, at, size ? "/" : "", command);
        if (length > 0 && length < PATH_MAX && access(path, X_OK) == 0)
            return open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
        at += size + (at[size] == ':');
    }
    return -1;
}

/* The interpreter in a script's first line; false if it is no script. */
static bool script_interpreter(char *line, char interpreter[PATH_MAX])
{
    if (strncmp(line, "#!", 2) != 0)
        return false;
    line += 2 + strspn(line + 2, " \t");
    snprintf(interpreter, PATH_MAX, "%.*s", (int)strcspn(line, " \t\n"), line);
    return interpreter[0] == '/';
}

/* The loader that an ELF file asks for: "" if it asks for none. False: it cannot be told. */
static bool loader_of(int file, const char *start, char loader[PATH_MAX])
{
    Elf64_Ehdr header;
    memcpy(&header, start, sizeof(header));
    if (memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64)
        return false;
    loader[0] = 0;
    for (unsigned i = 0; i < header.e_phnum; i++) {
        Elf64_Phdr segment;
        off_t at = (off_t)(header.e_phoff + (uint64_t)i * sizeof(segment));
        if (pread(file, &segment, sizeof(segment), at) != (ssize_t)sizeof(segment))
            return false;
        if (segment.p_type != PT_INTERP)
            continue;
        size_t size = segment.p_filesz < PATH_MAX ? segment.p_filesz : PATH_MAX - 1;
        ssize_t got = pread(file, loader, size, (off_t)segment.p_offset);
        loader[got > 0 ? got : 0] = 0;
        return got > 0;
    }
    return header.e_phnum != 0;
}

static enum gm_reach judge_loader(const char *loader)
{
    const char *slash = strrchr(loader, '/'), *base = slash ? slash + 1 : loader;
    if (!loader[0])
        return GM_REACH_STATIC;
    return strncmp(base, "ld-musl-", 8) == 0 ? GM_REACH_MUSL : GM_REACHED;
}

enum gm_reach gm_reach_of(const char *command)
{
    char path[PATH_MAX], text[PATH_MAX];
    snprintf(path, sizeof(path), "%s", command);
    for (int i = 0; i <= SCRIPTS_MAX; i++) {
        int file = open_command(path);
        if (file < 0)
            return GM_REACHED;
        memset(text, 0, sizeof(text));
        bool is_read = read(file, text, sizeof(text) - 1) > 0;
        bool is_script = is_read && script_interpreter(text, path);
        bool is_program = is_read && !is_script && loader_of(file, text, path);
        close(file);
        if (!is_script)
            return is_program ? judge_loader(path) : GM_REACHED;
    }
    return GM_REACHED;
}
