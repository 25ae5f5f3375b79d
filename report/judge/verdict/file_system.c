/* See file_system.h. */
#include "judge/verdict/file_system.h"
#include <inttypes.h>
#include <stdio.h>

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

static const char *file_system_name(uint32_t type, char other[24])
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
             file_system_name(trace->header.asked_file_system, other));
}

void gm_not_recorded_sentence(const struct gm_trace *trace, char *text, size_t size)
{
    char other[24];
    snprintf(text, size,
             "NOT RECORDED: on the file system of the trace's folder (%s) a full disk could have "
             "killed the process, and neither /var/tmp nor /tmp nor /dev/shm was any better. How "
             "the process ended is not known. Ask for the trace on ext4, XFS or tmpfs: "
             "gpumem run -o PATH, or GPUMEM_OUTPUT.",
             file_system_name(trace->header.asked_file_system, other));
}
