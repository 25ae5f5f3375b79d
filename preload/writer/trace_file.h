/*
 * The trace file as its writer sees it: a header page and extents that are only ever appended.
 *
 * Guarantees: header.file_end covers complete extents only, at every instant; space of mapped
 * extents is allocated on the disk before it is touched, and they are mapped only where that is
 * enough for every later store (trace_place.h), so a full disk is an error here and never a SIGBUS
 * in the host; a file size limit is an error too and never a SIGXFSZ; nothing is written to a file
 * that is not the trace, unless the host swaps our descriptor for its own between the look and the
 * write right after it; mappings are not inherited by children. All growth happens under one lock.
 * Relies on nobody else truncating the file or making it share its blocks with another (a copy by
 * reflink on XFS), and on a disk that gives back what it was given.
 */
#ifndef GPUMEM_PRELOAD_WRITER_TRACE_FILE_H
#define GPUMEM_PRELOAD_WRITER_TRACE_FILE_H

#include "base/lock.h"

struct gm_trace_file {
    int descriptor;  /* checked before each use: hosts close descriptors that are not theirs */
    uint64_t device; /* what the descriptor must name */
    uint64_t inode;
    char path[1040];                /* absolute, to open it again */
    struct gm_trace_header *header; /* mapped */
    struct gm_lock lock; /* guards growth, and with it everything that may grow the file */
    uint64_t end;        /* header->file_end, or past it while an extent is being written */
};

extern struct gm_trace_file gm_file;

/*
 * Creates the trace of this process; false when it cannot be had (the process is then not recorded,
 * and where no store would be safe a trace says so). `add_more` adds the extents that stand before
 * all records; where it returns false, there is no trace either.
 */
bool gm_trace_create(bool (*add_more)(void));

/* Whether it is worth trying: growth that fails may take a tenth of a second in a row, and from
 * then on a sixteenth of the time. Takes no lock. */
bool gm_trace_may_grow(void);

/*
 * Makes an extent of `length` bytes (a multiple of GM_EXTENT_ALIGN) behind the end, page-aligned in
 * file and memory, and returns its mapping, zeroed behind a filled-in extent header; NULL when
 * there is no space. It is not part of the trace before gm_trace_publish_extents: what a reader
 * could not do without is filled in between. Caller holds the lock from here to there. Of several,
 * one behind the other, lengths are whole pages and indexes go up from `index`. `used`: payload
 * bytes that do not change from then on.
 */
struct gm_extent *gm_trace_map_extents(enum gm_extent_type type, uint32_t index, uint64_t length,
                                       uint32_t count);
void gm_trace_publish_extents(struct gm_extent *first, uint32_t count, uint32_t used);

/* The n-th behind it. */
static inline struct gm_extent *gm_extent_behind(const struct gm_extent *extent, uint32_t n)
{
    return (struct gm_extent *)((uintptr_t)extent + n * extent->length);
}

/*
 * Appends an extent that is only written, never mapped: header, then `size` bytes at `head` and
 * `tail_size` bytes at `tail`. Caller holds the lock. 0, or a negative errno.
 */
int gm_trace_write_extent(enum gm_extent_type type, uint32_t index, const void *head, size_t size,
                          const void *tail, size_t tail_size);

/* Reads back what is below the end. Caller holds the lock. 0, or a negative errno; -ENODATA: the file
 * is shorter. */
int gm_trace_read(uint64_t offset, void *to, size_t size);

/* Refreshes the header's latest clock pair. Caller holds the lock. */
void gm_trace_update_clock(void);

/* Marks how the process ended, in a trace that is unsealed. Async-signal-safe, lock-free. */
void gm_trace_mark_end(enum gm_end end, uint32_t status);

/* Forgets the file of the parent process after a fork: its mappings are already gone. */
void gm_trace_forget(void);

/*
 * In a child whose thread forked inside the recorder, by a signal handler that will return there:
 * puts empty private memory where the trace was mapped, and gives the file up.
 */
void gm_trace_lend(void);

#endif
