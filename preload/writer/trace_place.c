/* See trace_place.h. */
#include "writer/trace_place.h"
#include "base/ticks.h"
#include <fcntl.h>
#include <gpumem/trace.h>
#include <string.h>
#include <sys/stat.h>

/* f_type of statfs(2), of those that copy on write. Ours: older kernel headers lack some. */
#define BTRFS 0x9123683eu
#define BCACHEFS 0xca451a4eu
#define F2FS 0xf2f52010u
#define NILFS 0x3434u
#define ZFS 0x2fc12fc1u
#define OVERLAY 0x794c7630u

/*
 * Disks first, and of these the one that outlives a boot; /dev/shm is memory. Named here and not by
 * the environment: traces of another process are found by these (gm_place_follow).
 */
static const char *const folders[] = {"/var/tmp/", "/tmp/", "/dev/shm/"};

#define STEM "gpumem-"
#define DIGITS 16u
#define ENDING ".trace"

/*
 * An overlay gives the numbers of the file system beneath with a type of its own. Of those that
 * copy on write, btrfs has no number of files, and ZFS tells blocks of two sizes.
 */
bool gm_place_is_safe(const struct statfs *status)
{
    switch ((uint32_t)status->f_type) {
    case BTRFS:
    case BCACHEFS:
    case F2FS:
    case NILFS:
    case ZFS:
        return false;
    case OVERLAY:
        return status->f_files != 0 && status->f_frsize == status->f_bsize;
    default:
        return true;
    }
}

/* Of the folder in which `path` is; false if it cannot be told. */
static bool file_system_of(const char *path, struct statfs *status)
{
    char folder[1024];
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) + 1 : 0;
    if (length >= sizeof(folder))
        return false;
    memcpy(folder, path, length);
    folder[length] = 0;
    return statfs(length ? folder : ".", status) == 0;
}

static uint64_t random_number(void)
{
    uint64_t number;
    if (syscall(SYS_getrandom, &number, sizeof(number), 1 /* does not wait */) != sizeof(number))
        number = gm_clock_ns(CLOCK_MONOTONIC) << 20 ^ (uint64_t)syscall(SYS_getpid);
    return number;
}

static void name_target(char target[GM_PLACE_TARGET_MAX], const char *folder)
{
    uint64_t number = random_number();
    strcat(strcpy(target, folder), STEM);
    char *at = target + strlen(target);
    for (unsigned digit = 0; digit < DIGITS; digit++, number >>= 4)
        *at++ = "0123456789abcdef"[number & 15];
    strcpy(at, ENDING);
}

/* A trace has the command line and names of files: its owner alone reads it. */
static int make_file(const char *path)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path,
                        O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
}

void gm_place_choose(struct gm_place *place, const char *path)
{
    struct statfs status;
    *place = (struct gm_place){.descriptor = -1};
    if (!file_system_of(path, &status) || gm_place_is_safe(&status))
        return;
    place->file_system = (uint32_t)status.f_type;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        if (statfs(folders[i], &status) != 0 || !gm_place_is_safe(&status))
            continue;
        name_target(place->target, folders[i]);
        place->descriptor = make_file(place->target);
        if (place->descriptor >= 0) {
            place->flag = GM_HEADER_ELSEWHERE;
            return;
        }
    }
    place->flag = GM_HEADER_NOT_RECORDED;
}

int gm_place_take(struct gm_place *place, const char *path)
{
    if (place->flag == GM_HEADER_ELSEWHERE) {
        if (symlink(place->target, path) == 0)
            return place->descriptor;
        if (errno == EEXIST)
            return -1;
        gm_place_drop(place); /* there are no links here */
        place->flag = GM_HEADER_NOT_RECORDED;
    }
    return make_file(path);
}

void gm_place_drop(struct gm_place *place)
{
    if (place->descriptor < 0)
        return;
    unlink(place->target);
    syscall(SYS_close, place->descriptor);
    place->descriptor = -1;
}

bool gm_place_follow(const char *path, char target[GM_PLACE_TARGET_MAX])
{
    ssize_t size = readlink(path, target, GM_PLACE_TARGET_MAX - 1);
    if (size <= 0)
        return false;
    target[size] = 0;
    for (size_t i = 0; i < sizeof(folders) / sizeof(folders[0]); i++) {
        size_t length = strlen(folders[i]);
        const char *digits = target + length + strlen(STEM);
        if (strncmp(target, folders[i], length) == 0 &&
            strncmp(target + length, STEM, strlen(STEM)) == 0 &&
            strspn(digits, "0123456789abcdef") == DIGITS && strcmp(digits + DIGITS, ENDING) == 0)
            return true;
    }
    return false;
}
