/*
 * Where the trace lies. A store into a shared mapping needs room on the disk for the page that it
 * changes. Some file systems have given that room with fallocate; one that copies on write wants
 * more with each rewriting, and where there is none kills the process with SIGBUS.
 *
 * Guarantees: no trace is mapped on a file system that is known to copy on write. Where the asked
 * folder's is one, the trace is made on another, and at the asked path stands a symbolic link to
 * it; where there is none, nothing is to be mapped. Files are made anew, under names nobody can
 * guess, readable for their owner alone. Not covered: file systems in the network, whose server
 * decides; a job on a cluster wants its traces there all the same.
 */
#ifndef GPUMEM_PRELOAD_WRITER_TRACE_PLACE_H
#define GPUMEM_PRELOAD_WRITER_TRACE_PLACE_H

#include <stdbool.h>
#include <stdint.h>
#include <sys/vfs.h>

#define GM_PLACE_TARGET_MAX 64u

struct gm_place {
    uint32_t flag;        /* 0: as asked; or GM_HEADER_ELSEWHERE, GM_HEADER_NOT_RECORDED */
    uint32_t file_system; /* of the asked folder, as statfs tells it; 0: as asked */
    int descriptor;       /* ELSEWHERE: of the trace */
    char target[GM_PLACE_TARGET_MAX]; /* ELSEWHERE: its path */
};

/* Whether it is none of those on which a store into a page that fallocate has reserved can fail for
 * lack of room. */
bool gm_place_is_safe(const struct statfs *status);

/* Chooses for a trace that is asked for at `path`; with ELSEWHERE the file is made. */
void gm_place_choose(struct gm_place *place, const char *path);

/* Makes the file, or the link, at `path`, where nothing may be. The descriptor of the trace; -1 and
 * errno. */
int gm_place_take(struct gm_place *place, const char *path);

/* Removes a file that was made elsewhere and is not wanted. */
void gm_place_drop(struct gm_place *place);

/* Whether at `path` is a link to a trace that was made elsewhere, and to which. */
bool gm_place_follow(const char *path, char target[GM_PLACE_TARGET_MAX]);

#endif
