/* See unwind_maps.h. */
#include "stack/native/unwind_maps.h"
#include "base/platform.h"
#include <fcntl.h>
#include <stddef.h>

/* A line is "start-end perms offset device inode name". Names are cut: only "[stack]" is asked for.
 */
#define LINE_MAX_KEPT 128

struct line {
    uint64_t start;
    uint64_t end;
    uint64_t offset;
    uint64_t device; /* major and minor, 32 bits each */
    uint64_t inode;
    bool readable;
};

static uint64_t parse_maps_number(const char **at, unsigned base)
{
    uint64_t number = 0;
    for (;; (*at)++) {
        unsigned digit;
        if (**at >= '0' && **at <= '9')
            digit = (unsigned)(**at - '0');
        else if (base == 16 && **at >= 'a' && **at <= 'f')
            digit = (unsigned)(**at - 'a') + 10;
        else
            return number;
        number = number * base + digit;
    }
}

/* Skips one separator, if there is one: the text comes from the kernel, but never trust a parser.
 */
static void skip_field(const char **at)
{
    if (**at)
        (*at)++;
}

static struct line parse_line(const char *at)
{
    struct line line;
    line.start = parse_maps_number(&at, 16);
    skip_field(&at);
    line.end = parse_maps_number(&at, 16);
    skip_field(&at);
    line.readable = *at == 'r';
    while (*at && *at != ' ')
        at++;
    skip_field(&at);
    line.offset = parse_maps_number(&at, 16);
    skip_field(&at);
    line.device = parse_maps_number(&at, 16) << 32;
    skip_field(&at);
    line.device |= parse_maps_number(&at, 16);
    skip_field(&at);
    line.inode = parse_maps_number(&at, 10);
    return line;
}

/* What the lines so far tell; fed in order of addresses. */
struct search {
    uint64_t address;
    uint64_t previous_end;
    struct line file; /* last mapping of the start of a file */
};

/* True when the search is over; *found tells whether this line holds the address. */
static bool search_line(struct search *search, const char *text, struct gm_mapping *mapping,
                        bool *found)
{
    struct line line = parse_line(text);
    if (line.inode != 0 && line.offset == 0)
        search->file = line;
    if (search->address >= line.end) {
        search->previous_end = line.end;
        return false;
    }
    *found = search->address >= line.start;
    bool same_file = line.inode != 0 && line.inode == search->file.inode &&
                     line.device == search->file.device && search->file.readable;
    *mapping = (struct gm_mapping){
        .start = line.start,
        .end = line.end,
        .previous_end = search->previous_end,
        .file_start = same_file ? search->file.start : 0,
        .readable = line.readable,
    };
    return true;
}

bool gm_mapping_find(uint64_t address, struct gm_mapping *mapping)
{
    int saved_errno = errno;
    bool found = false;
    char path[GM_OWN_PROC_MAX];
    int file = (int)syscall(SYS_openat, AT_FDCWD, gm_own_proc(path, "maps"), O_RDONLY | O_CLOEXEC);
    if (file < 0) {
        errno = saved_errno;
        return false;
    }
    struct search search = {.address = address};
    char chunk[2048];
    char line[LINE_MAX_KEPT];
    size_t length = 0;
    bool over = false;
    while (!over) {
        long size = syscall(SYS_read, file, chunk, sizeof chunk);
        if (size <= 0)
            break;
        for (long i = 0; i < size && !over; i++) {
            if (chunk[i] != '\n') {
                if (length < sizeof line - 1)
                    line[length++] = chunk[i];
                continue;
            }
            line[length] = '\0';
            length = 0;
            over = search_line(&search, line, mapping, &found);
        }
    }
    syscall(SYS_close, file);
    errno = saved_errno;
    return found;
}
