/* See trace_home.h. */
#include "commands/trace_home.h"
#include "base/memory.h"
#include "base/process_alive.h"
#include "commands/runs.h"
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/sendfile.h>
#include <sys/stat.h>
#include <unistd.h>

/* ---- what is told of it ---------------------------------------------------------------------- */

/* By their f_type of statfs(2): those that are met where programs run. */
static const struct {
    uint32_t type;
    const char *name;
} file_systems[] = {
    {0x9123683e, "btrfs"},  {0x2fc12fc1, "ZFS"},  {0xca451a4e, "bcachefs"},
    {0xf2f52010, "F2FS"},   {0x3434, "NILFS"},    {0x6969, "NFS"},
    {0x65735546, "FUSE"},   {0x01021997, "9P"},   {0x00c36400, "Ceph"},
    {0x0bd00bd0, "Lustre"}, {0x47504653, "GPFS"}, {0x19830326, "BeeGFS"},
    {0xff534d42, "SMB"},    {0xfe534d42, "SMB"},  {0x4d44, "FAT"},
    {0x2011bab0, "exFAT"},  {0x7366746e, "NTFS"}, {0x794c7630, "an overlay over another"},
};

static const char *name_of(uint32_t type, char other[24])
{
    for (size_t i = 0; i < sizeof(file_systems) / sizeof(file_systems[0]); i++)
        if (file_systems[i].type == type)
            return file_systems[i].name;
    snprintf(other, 24, "type 0x%" PRIx32, type);
    return other;
}

void gm_elsewhere_sentence(const struct gm_trace *trace, char *text, size_t size)
{
    char other[24];
    snprintf(text, size,
             "The trace was recorded on another file system than its folder's (%s), where a full "
             "disk could have killed the process.",
             name_of(trace->header.asked_file_system, other));
}

void gm_not_recorded_sentence(const struct gm_trace *trace, char *text, size_t size)
{
    char other[24];
    snprintf(text, size,
             "NOT RECORDED: on the file system of the trace's folder (%s) a full disk could have "
             "killed the process, and neither /var/tmp nor /tmp nor /dev/shm was any better. How "
             "the process ended is not known. Ask for the trace on ext4, XFS or tmpfs: "
             "gpumem run -o PATH, or GPUMEM_OUTPUT.",
             name_of(trace->header.asked_file_system, other));
}

/* ---- the files ------------------------------------------------------------------------------- */

bool gm_is_link(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISLNK(status.st_mode);
}

static bool is_finished(const char *path)
{
    struct gm_trace_header header;
    return gm_run_read_header(AT_FDCWD, path, &header) && (header.flags & GM_HEADER_ELSEWHERE) &&
           (header.end == GM_END_EXEC || !gm_process_alive(&header));
}

static bool copy_bytes(int from, int to)
{
    ssize_t sent;
    do
        sent = sendfile(to, from, NULL, 1 << 20);
    while (sent > 0);
    return sent == 0 && fsync(to) == 0;
}

static bool copy_file(const char *from_path, const char *to_path)
{
    int from = open(from_path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    int to = open(to_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0644);
    bool good = from >= 0 && to >= 0 && copy_bytes(from, to);
    if (from >= 0)
        close(from);
    if (to >= 0 && close(to) != 0)
        good = false;
    if (to >= 0 && !good)
        unlink(to_path);
    return good;
}

void gm_bring_home(const char *path)
{
    char target[PATH_MAX];
    if (!gm_is_link(path) || !realpath(path, target) || !is_finished(target))
        return;
    size_t size = strlen(path) + sizeof(".part");
    char *copy = gm_allocate(size, 1);
    snprintf(copy, size, "%s.part", path);
    if (copy_file(target, copy)) {
        if (rename(copy, path) == 0)
            unlink(target);
        else
            unlink(copy);
    }
    free(copy);
}

void gm_remove_trace(const char *path)
{
    char target[PATH_MAX];
    if (gm_is_link(path) && realpath(path, target))
        unlink(target);
    unlink(path);
}
