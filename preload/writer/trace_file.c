/* See trace_file.h. */
#include "writer/trace_file.h"
#include "base/api.h"
#include "base/change.h"
#include "base/config.h"
#include "base/count.h"
#include "base/environment.h"
#include "base/room.h"
#include "base/ticks.h"
#include "version.h"
#include "writer/trace_place.h"
#include <fcntl.h>
#include <gpumem/checksum.h>
#include <signal.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/utsname.h>

#define NO_FILE                                                                                    \
    {                                                                                              \
        .descriptor = -1, .lock = GM_LOCK(GM_RANK_FILE)                                            \
    }

struct gm_trace_file gm_file = NO_FILE;

/* The system call itself: open() is a cancellation point, and hosts interpose it. */
static int raw_open(const char *path, int flags, int mode)
{
    return (int)syscall(SYS_openat, AT_FDCWD, path, flags, mode);
}

/* Copies text into a zeroed field, cut to fit. */
static void copy_text(char *field, size_t size, const char *text)
{
    size_t length = strlen(text);
    memcpy(field, text, length < size ? length : size - 1);
}

/* Reads a small file whole, returns the bytes read (0 on any trouble); always terminated. */
static size_t read_small(const char *path, char *buffer, size_t size)
{
    int descriptor = raw_open(path, O_RDONLY | O_CLOEXEC, 0);
    if (descriptor < 0)
        return 0;
    ssize_t got = syscall(SYS_read, descriptor, buffer, size - 1);
    syscall(SYS_close, descriptor);
    size_t length = got > 0 ? (size_t)got : 0;
    buffer[length] = 0;
    return length;
}

static void read_line(const char *path, char *buffer, size_t size)
{
    read_small(path, buffer, size);
    buffer[strcspn(buffer, "\n")] = 0;
}

/* Decimal text of `number`, in a buffer of the caller's. */
static const char *decimal(uint32_t number, char text[11])
{
    size_t at = 10;
    text[at] = 0;
    do
        text[--at] = (char)('0' + number % 10);
    while (number /= 10);
    return text + at;
}

/* Field 22 of /proc/PID/stat; the name in field 2 may hold blanks and parentheses. */
static uint64_t process_start(uint32_t pid)
{
    char path[32] = "/proc/", digits[11], text[1024];
    strcat(strcat(path, decimal(pid, digits)), "/stat");
    if (!read_small(path, text, sizeof(text)))
        return 0;
    const char *field = strrchr(text, ')');
    for (int skip = 0; field && skip < 20; skip++)
        field = strchr(field + 1, ' ');
    uint64_t value = 0;
    if (field)
        for (field++; *field >= '0' && *field <= '9'; field++)
            value = value * 10 + (uint64_t)(*field - '0');
    return value;
}

/* Containers can share the host's name; a process id means something only within one of these. */
static uint32_t pid_namespace(void)
{
    char path[GM_OWN_PROC_MAX];
    struct stat status;
    return stat(gm_own_proc(path, "ns/pid"), &status) == 0 ? (uint32_t)status.st_ino : 0;
}

static struct gm_clock_pair clock_pair(uint64_t ticks)
{
    struct gm_clock_pair pair = {.ticks = ticks};
    pair.monotonic_ns = gm_clock_ns(CLOCK_MONOTONIC);
    pair.realtime_ns = gm_clock_ns(CLOCK_REALTIME);
    return pair;
}

/* The counter is used only where the kernel itself trusts it to agree between CPUs. */
static void choose_clock(void)
{
    char source[32];
    read_line("/sys/devices/system/clocksource/clocksource0/current_clocksource", source,
              sizeof(source));
    gm_clock_is_tsc = strcmp(source, "tsc") == 0;
}

static void fill_header(struct gm_trace_header *header)
{
    struct utsname names;
    char path[GM_OWN_PROC_MAX];
    memcpy(header->magic, GM_TRACE_MAGIC, sizeof(header->magic));
    header->endian = GM_TRACE_ENDIAN;
    header->major = GM_TRACE_MAJOR;
    header->minor = GM_TRACE_MINOR;
    header->header_size = GM_TRACE_PAGE;
    header->record_size = sizeof(struct gm_record);
    header->node_size = sizeof(struct gm_node);
    header->module_size = sizeof(struct gm_module);
    header->frame_size = sizeof(struct gm_script_frame);
    header->node_count = header->module_count = header->frame_count = 1;
    header->string_bytes = 2; /* offset 0 is "none": an empty string stands there */
    choose_clock();
    header->clock = gm_clock_is_tsc ? GM_CLOCK_TICKS : GM_CLOCK_MONOTONIC;
    header->clock_start = clock_pair(gm_ticks_before());
    header->clock_latest[0] = header->clock_start;
    header->pid = (uint32_t)syscall(SYS_getpid);
    header->parent_pid = (uint32_t)syscall(SYS_getppid);
    header->process_start = process_start(header->pid);
    header->pid_namespace = pid_namespace();
    read_line("/proc/sys/kernel/random/boot_id", header->boot_id, sizeof(header->boot_id));
    if (uname(&names) == 0)
        copy_text(header->host, sizeof(header->host), names.nodename);
    copy_text(header->tool_version, sizeof(header->tool_version), GPUMEM_VERSION);
    copy_text(header->run_id, sizeof(header->run_id), gm_config.run_id);
    ssize_t length =
        readlink(gm_own_proc(path, "exe"), header->executable, sizeof(header->executable) - 1);
    header->executable[length > 0 ? length : 0] = 0;
    memcpy(header->command_line, gm_config.command_line, sizeof(header->command_line));
    header->command_line_size = gm_config.command_line_size;
    header->flags = (gm_config.native_stacks ? GM_HEADER_NATIVE_STACKS : 0u) |
                    (gm_config.python_stacks ? GM_HEADER_PYTHON_STACKS : 0u) |
                    (gm_config.drop_on_full ? GM_HEADER_DROP_ON_FULL : 0u) |
                    (gm_config.flight ? GM_HEADER_FLIGHT : 0u);
}

/*
 * Whether a process of this PID namespace is gone for certain. /proc may not show those of other
 * users (hidepid): what cannot be seen there is gone only if the kernel knows no such process.
 */
static bool is_gone(uint32_t pid, uint64_t start)
{
    if (syscall(SYS_kill, pid, 0) != 0 && errno == ESRCH)
        return true;
    uint64_t now = process_start(pid);
    return now != 0 && now != start;
}

/*
 * Whether the file is a finished trace that may be replaced: one of a process that is gone and that
 * belongs to no run, or to another. A trace of this same process (before an exec), of a living
 * process, of this run or of another machine or container (whose processes cannot be seen from
 * here) stays, and so does a file that is no trace at all.
 */
static bool may_replace(int descriptor, const struct gm_trace_header *mine)
{
    struct gm_trace_header other;
    ssize_t got = syscall(SYS_pread64, descriptor, &other, sizeof(other), 0);
    if (got != sizeof(other) || memcmp(other.magic, mine->magic, sizeof(other.magic)) != 0 ||
        other.major != mine->major ||
        memcmp(other.boot_id, mine->boot_id, sizeof(other.boot_id)) != 0 ||
        memcmp(other.host, mine->host, sizeof(other.host)) != 0 ||
        other.pid_namespace != mine->pid_namespace)
        return false;
    if (mine->run_id[0] && memcmp(other.run_id, mine->run_id, sizeof(other.run_id)) == 0)
        return false;
    return is_gone(other.pid, other.process_start);
}

/*
 * Removes the file at `path`, or the link and what it leads to, if that may be replaced. Of several
 * processes that start at once with one name, each must be sure not to remove what another has just
 * put there: only the holder of the old file's lock removes it, and only while the name still is
 * that file's. A link that leads nowhere stays: it can be another machine's.
 */
static void make_way(const char *path, const struct gm_trace_header *mine)
{
    struct stat held, named;
    char target[GM_PLACE_TARGET_MAX];
    const char *file = gm_place_follow(path, target) ? target : path;
    int descriptor = raw_open(file, O_RDWR | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    if (descriptor < 0)
        return;
    if (flock(descriptor, LOCK_EX | LOCK_NB) == 0 && fstat(descriptor, &held) == 0 &&
        S_ISREG(held.st_mode) && lstat(file, &named) == 0 && held.st_dev == named.st_dev &&
        held.st_ino == named.st_ino && (file == path || held.st_uid == geteuid()) &&
        may_replace(descriptor, mine)) {
        unlink(file);
        if (file != path)
            unlink(path);
    }
    syscall(SYS_close, descriptor);
}

/* "name.trace" -> "name.3.trace", "name" -> "name.3". */
static bool numbered_path(char *to, size_t size, const char *path, uint32_t number)
{
    char digits[11];
    size_t length = strlen(path);
    const char *dot = strrchr(path, '.'), *slash = strrchr(path, '/');
    size_t stem = dot && (!slash || dot > slash + 1) ? (size_t)(dot - path) : length;
    if (length + sizeof(digits) + 1 >= size)
        return false;
    memcpy(to, path, stem);
    strcpy(to + stem, ".");
    strcat(strcat(to, decimal(number, digits)), path + stem);
    return true;
}

/*
 * High, so that the host's own descriptors get the numbers they would get without us; as high as
 * its limit allows. Never 0, 1 or 2, which hosts read and write without looking: -1 then.
 */
static int move_high(int descriptor)
{
    static const int lowest[] = {1000, 700, 400, 200, 100, 50, 25, 10, STDERR_FILENO + 1};
    int high = -1;
    if (descriptor < 0)
        return -1;
    for (size_t i = 0; high < 0 && i < sizeof(lowest) / sizeof(lowest[0]); i++)
        high = fcntl(descriptor, F_DUPFD_CLOEXEC, lowest[i]);
    if (high < 0 && descriptor > STDERR_FILENO)
        return descriptor;
    syscall(SYS_close, descriptor);
    return high;
}

static bool names_our_file(int descriptor)
{
    struct stat status;
    return descriptor >= 0 && fstat(descriptor, &status) == 0 && status.st_dev == gm_file.device &&
           status.st_ino == gm_file.inode;
}

/*
 * Hosts close descriptors they did not open (daemons, test harnesses), and the number may by now be
 * a file of theirs. Never write to a descriptor without looking.
 */
static bool descriptor_ready(void)
{
    if (gm_likely(names_our_file(gm_file.descriptor)))
        return true;
    int again = raw_open(gm_file.path, O_RDWR | O_CLOEXEC | O_NOFOLLOW, 0);
    if (!names_our_file(again)) {
        if (again >= 0)
            syscall(SYS_close, again);
        return false;
    }
    gm_file.descriptor = move_high(again);
    return gm_file.descriptor >= 0;
}

/*
 * For what has failed, whether to do it again: the host closed the descriptor between our look and
 * our use. A host that does so time and again is let be.
 */
#define DESCRIPTOR_TRIES 4u

static bool may_do_again(unsigned *tries)
{
    return ++*tries < DESCRIPTOR_TRIES && !names_our_file(gm_file.descriptor) && descriptor_ready();
}

/* A device, a FIFO, a socket: whoever names one wants no file beside it. */
static bool is_special(const char *path)
{
    struct stat status;
    return lstat(path, &status) == 0 && !S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode) &&
           !S_ISLNK(status.st_mode);
}

/* Takes the name that is asked for, or one with a number; `made`: which. */
static int take_name(struct gm_place *place, const char *path, char made[1040],
                     struct gm_trace_header *header)
{
    strcpy(made, path);
    int descriptor = gm_place_take(place, path);
    if (descriptor < 0 && errno == EEXIST) {
        if (is_special(path))
            return -1;
        make_way(path, header);
        descriptor = gm_place_take(place, path);
    }
    for (uint32_t number = 1; descriptor < 0 && errno == EEXIST && number < 1000; number++) {
        if (!numbered_path(made, 1040, path, number))
            return -1;
        header->generation = number;
        descriptor = gm_place_take(place, made);
    }
    return descriptor;
}

static int create_file(struct gm_trace_header *header, char made[1040])
{
    char path[1024];
    struct gm_place place;
    const char *program = strrchr(header->executable, '/');
    if (!gm_config_path(path, sizeof(path), program ? program + 1 : "unknown", header->host,
                        header->pid))
        return -1;
    gm_place_choose(&place, path);
    int descriptor = take_name(&place, path, made, header);
    if (descriptor < 0) {
        gm_place_drop(&place);
        return -1;
    }
    header->flags |= place.flag;
    header->asked_file_system = place.file_system;
    int kept = move_high(descriptor);
    if (kept < 0) {
        unlink(made);
        if (place.flag == GM_HEADER_ELSEWHERE)
            unlink(place.target);
    }
    return kept;
}

static bool remember_identity(void)
{
    struct stat status;
    char link[GM_OWN_PROC_MAX], name[16] = "fd/", digits[11];
    if (fstat(gm_file.descriptor, &status) != 0)
        return false;
    gm_file.device = status.st_dev;
    gm_file.inode = status.st_ino;
    strcat(name, decimal((uint32_t)gm_file.descriptor, digits));
    /* A path that is cut off is another's. */
    ssize_t length = readlink(gm_own_proc(link, name), gm_file.path, sizeof(gm_file.path));
    gm_file.path[length > 0 && length < (ssize_t)sizeof(gm_file.path) ? length : 0] = 0;
    return true;
}

/*
 * Signals while the file grows. A file size limit (RLIMIT_FSIZE) is told by SIGXFSZ, whose default
 * action would kill the host for a file that is not its own; and a profiler's timer can keep
 * fallocate from ever finishing. So they wait.
 */
struct held_signals {
    uint64_t mask;
    bool over_limit_before;
};

static const uint64_t over_limit = 1ull << (SIGXFSZ - 1);

static struct held_signals hold_signals(void)
{
    struct held_signals held = {.mask = gm_signals_block()};
    uint64_t pending = 0;
    syscall(SYS_rt_sigpending, &pending, sizeof(pending));
    held.over_limit_before = (pending & over_limit) != 0;
    return held;
}

/* Takes the SIGXFSZ back that our growth raised; one of the host's own stays. */
static void release_signals(const struct held_signals *held)
{
    const struct timespec now = {0};
    uint64_t pending = 0;
    syscall(SYS_rt_sigpending, &pending, sizeof(pending));
    if ((pending & over_limit) && !held->over_limit_before)
        syscall(SYS_rt_sigtimedwait, &over_limit, NULL, &now, sizeof(over_limit));
    gm_signals_restore(held->mask);
}

/* Real space for [offset, offset + length): fallocate where it is to be had, else zeros. File systems
 * lack it, and sandboxes refuse it in any way; only that there is no room is an answer. Nor is a
 * descriptor that the host has closed written to. */
static int allocate_space(uint64_t offset, uint64_t length)
{
    static const char zeros[GM_TRACE_PAGE];
    long result;
    do
        result = syscall(SYS_fallocate, gm_file.descriptor, 0, offset, length);
    while (result != 0 && errno == EINTR);
    if (result == 0)
        return 0;
    if (errno == ENOSPC || errno == EDQUOT || errno == EFBIG || errno == EIO || errno == EBADF)
        return -errno;
    for (uint64_t done = 0; done < length; done += sizeof(zeros)) {
        size_t part = length - done < sizeof(zeros) ? (size_t)(length - done) : sizeof(zeros);
        if (syscall(SYS_pwrite64, gm_file.descriptor, zeros, part, offset + done) != (ssize_t)part)
            return -ENOSPC;
    }
    return 0;
}

/* All that was mapped of the trace: what a child that still reaches for it is lent instead. */
#define MAPPINGS_MAX 16384u
static struct mapping {
    void *at;
    uint64_t length;
} * mappings;
static _Atomic uint32_t mapping_count;

static void *map_shared(uint64_t offset, uint64_t length)
{
    void *at =
        mmap(NULL, length, PROT_READ | PROT_WRITE, MAP_SHARED, gm_file.descriptor, (off_t)offset);
    if (at == MAP_FAILED)
        return NULL;
    madvise(at, length, MADV_DONTFORK);
    uint32_t number = atomic_fetch_add_explicit(&mapping_count, 1, memory_order_relaxed);
    if (number < MAPPINGS_MAX && GM_ROOM(&mappings, MAPPINGS_MAX))
        mappings[number] = (struct mapping){at, length};
    else
        gm_count(GM_COUNT_LEND_LIMIT, 1);
    return at;
}

static int write_all(uint64_t offset, const void *bytes, size_t size)
{
    const char *at = bytes;
    while (size) {
        ssize_t done = syscall(SYS_pwrite64, gm_file.descriptor, at, size, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -ENOSPC;
        at += done;
        offset += (uint64_t)done;
        size -= (size_t)done;
    }
    return 0;
}

static uint64_t align_up(uint64_t value, uint64_t alignment)
{
    return (value + alignment - 1) & ~(alignment - 1);
}

static void publish_end(uint64_t end)
{
    gm_file.end = end;
    gm_change_begin();
    __atomic_store_n(&gm_file.header->file_end, end, __ATOMIC_RELEASE);
    gm_change_end();
}

/*
 * What a failed growth left behind the end goes: a later extent relies on finding zeros there, and
 * the host wants its disk back.
 */
static void cut_to_end(void)
{
    if (names_our_file(gm_file.descriptor)) /* the growth may have taken long */
        syscall(SYS_ftruncate, gm_file.descriptor, gm_file.end);
}

/* Fills [gm_file.end, aligned) with a PAD extent. */
static int write_pad(uint64_t aligned)
{
    struct gm_extent pad = {
        .magic = GM_EXTENT_MAGIC, .type = GM_EXTENT_PAD, .length = aligned - gm_file.end};
    pad.checksum = gm_extent_checksum(&pad);
    return pad.length ? write_all(gm_file.end, &pad, sizeof(pad)) : 0;
}

/*
 * A disk that is full now may have room again in a moment, so growth is tried again and again; but
 * a file system that looks everywhere before it says no can take its time.
 */
#define FAILURES_IN_A_ROW_NS UINT64_C(100000000)
#define FAILURES_SHARE 16u /* of the time behind that */

static struct {
    uint64_t since; /* when the first of these failed; 0: none did */
    uint64_t taken; /* ns in all */
} failures;

static _Atomic uint64_t next_try; /* CLOCK_MONOTONIC */

bool gm_trace_may_grow(void)
{
    uint64_t then = atomic_load_explicit(&next_try, memory_order_relaxed);
    return gm_likely(then == 0) || gm_clock_ns(CLOCK_MONOTONIC) >= then;
}

static void note_growth(bool failed, uint64_t began)
{
    uint64_t then = 0;
    if (!failed) {
        failures.since = failures.taken = 0;
    } else {
        if (!failures.since)
            failures.since = began;
        failures.taken += gm_clock_ns(CLOCK_MONOTONIC) - began;
        if (failures.taken > FAILURES_IN_A_ROW_NS)
            then = failures.since + (failures.taken - FAILURES_IN_A_ROW_NS) * FAILURES_SHARE;
    }
    atomic_store_explicit(&next_try, then, memory_order_relaxed);
}

/* Maps fresh space behind the end, which is all zeros. */
static void *map_behind_end(uint64_t length)
{
    if (!gm_trace_may_grow() || !descriptor_ready())
        return NULL;
    uint64_t began = gm_clock_ns(CLOCK_MONOTONIC), start = align_up(gm_file.end, GM_TRACE_PAGE);
    struct held_signals held = hold_signals();
    void *at = NULL;
    unsigned tries = 0;
    do
        if (write_pad(start) == 0 && allocate_space(start, length) == 0)
            at = map_shared(start, length);
    while (!at && may_do_again(&tries));
    if (!at)
        cut_to_end();
    release_signals(&held);
    note_growth(!at, began);
    return at;
}

struct gm_extent *gm_trace_map_extents(enum gm_extent_type type, uint32_t index, uint64_t length,
                                       uint32_t count)
{
    char *at = map_behind_end(length * count);
    for (uint32_t n = 0; at && n < count; n++) {
        struct gm_extent *extent = (struct gm_extent *)(at + n * length);
        extent->magic = GM_EXTENT_MAGIC;
        extent->type = (uint16_t)type;
        extent->index = index + n;
        extent->length = length;
    }
    return (struct gm_extent *)at;
}

void gm_trace_publish_extents(struct gm_extent *first, uint32_t count, uint32_t used)
{
    for (uint32_t n = 0; n < count; n++) {
        struct gm_extent *extent = gm_extent_behind(first, n);
        extent->used = used;
        extent->checksum = gm_extent_checksum(extent);
    }
    publish_end(align_up(gm_file.end, GM_TRACE_PAGE) + first->length * count);
}

static const char padding[GM_EXTENT_ALIGN];

/* As gm_extent_checksum, where the payload lies in two places. */
static uint64_t checksum_of_parts(const struct gm_extent *extent, const void *head, size_t size,
                                  const void *tail, size_t tail_size)
{
    XXH3_state_t state;
    XXH3_INITSTATE(&state);
    XXH3_64bits_reset_withSeed(&state, gm_extent_seed(extent));
    XXH3_64bits_update(&state, head, size);
    if (tail_size)
        XXH3_64bits_update(&state, tail, tail_size);
    return XXH3_64bits_digest(&state);
}

/* Behind the end, and to the end of the extent: a reader takes a shorter one for truncated. */
static int write_parts(const struct gm_extent *extent, const void *head, size_t size,
                       const void *tail, size_t tail_size)
{
    uint64_t at = gm_file.end, written = sizeof(*extent) + size + tail_size;
    int error = write_all(at, extent, sizeof(*extent));
    if (!error)
        error = write_all(at + sizeof(*extent), head, size);
    if (!error && tail_size)
        error = write_all(at + sizeof(*extent) + size, tail, tail_size);
    if (!error && written < extent->length)
        error = write_all(at + written, padding, (size_t)(extent->length - written));
    return error;
}

int gm_trace_write_extent(enum gm_extent_type type, uint32_t index, const void *head, size_t size,
                          const void *tail, size_t tail_size)
{
    if (!descriptor_ready())
        return -EBADF;
    uint64_t start = gm_file.end;
    struct gm_extent extent = {
        .magic = GM_EXTENT_MAGIC,
        .type = (uint16_t)type,
        .index = index,
        .used = (uint32_t)(size + tail_size),
        .length = align_up(sizeof(extent) + size + tail_size, GM_EXTENT_ALIGN),
    };
    extent.checksum = checksum_of_parts(&extent, head, size, tail, tail_size);
    struct held_signals held = hold_signals();
    unsigned tries = 0;
    int error;
    do
        error = write_parts(&extent, head, size, tail, tail_size);
    while (error && may_do_again(&tries));
    if (!error)
        publish_end(start + extent.length);
    else
        cut_to_end();
    release_signals(&held);
    return error;
}

static int read_all(uint64_t offset, void *to, size_t size)
{
    for (char *at = to; size;) {
        ssize_t done = syscall(SYS_pread64, gm_file.descriptor, at, size, offset);
        if (done < 0 && errno == EINTR)
            continue;
        if (done <= 0)
            return done < 0 ? -errno : -ENODATA;
        at += done;
        offset += (uint64_t)done;
        size -= (size_t)done;
    }
    return 0;
}

int gm_trace_read(uint64_t offset, void *to, size_t size)
{
    if (!descriptor_ready())
        return -EBADF;
    unsigned tries = 0;
    int error;
    do
        error = read_all(offset, to, size);
    while (error && may_do_again(&tries));
    return error;
}

/*
 * Takes the time. Counters of some machines begin anew when they wake from sleep: what is on record already is looked
 * at first, because whoever ends the process compares while the drainer may write the next pair.
 */
static uint64_t compared_ticks(void)
{
    const struct gm_trace_header *header = gm_file.header;
    uint32_t latest = __atomic_load_n(&header->clock_latest_index, __ATOMIC_ACQUIRE) & 1;
    uint64_t before = __atomic_load_n(&header->clock_latest[latest].ticks, __ATOMIC_ACQUIRE);
    uint64_t now = gm_ticks_after(); /* not before that was read */
    if (gm_clock_is_tsc && before > GM_CLOCK_SKEW && now < before - GM_CLOCK_SKEW)
        gm_count(GM_COUNT_CLOCK_BACK, 1);
    return now;
}

void gm_trace_update_clock(void)
{
    struct gm_trace_header *header = gm_file.header;
    uint32_t next = 1 - (header->clock_latest_index & 1);
    struct gm_clock_pair now = clock_pair(compared_ticks());
    gm_change_begin();
    __atomic_store_n(&header->clock_latest[next].ticks, now.ticks, __ATOMIC_RELAXED);
    header->clock_latest[next].monotonic_ns = now.monotonic_ns;
    header->clock_latest[next].realtime_ns = now.realtime_ns;
    __atomic_store_n(&header->clock_latest_index, next, __ATOMIC_RELEASE);
    gm_change_end();
    gm_clock_set_rate(now.ticks - header->clock_start.ticks,
                      now.monotonic_ns - header->clock_start.monotonic_ns);
}

void gm_trace_mark_end(enum gm_end end, uint32_t status)
{
    if (!gm_file.header)
        return;
    uint64_t now = compared_ticks();
    gm_change_begin();
    gm_file.header->status = status;
    gm_file.header->end_time = now;
    __atomic_store_n(&gm_file.header->end, (uint32_t)end, __ATOMIC_RELEASE);
    gm_change_end();
}

#define ENVIRONMENT_MAX 65536u /* bytes; the names of ~600 functions take a quarter */

/* Name table and environment: what a reader needs to know before the first record. */
static int write_preamble(void)
{
    static char names[ENVIRONMENT_MAX]; /* static: a hook's stack may be small */
    size_t used = 1;                    /* name 0 is empty */
    for (uint16_t api = 1; api < gm_api_count; api++) {
        size_t length = strlen(gm_api[api].symbol) + 1;
        if (used + length > sizeof(names))
            return -E2BIG;
        memcpy(names + used, gm_api[api].symbol, length);
        used += length;
    }
    int error = gm_trace_write_extent(GM_EXTENT_NAMES, 0, names, used, NULL, 0);
    used = 0;
    gm_count(GM_COUNT_ENVIRONMENT_LIMIT, gm_environment_left_out());
    for (const char *at = NULL; (at = gm_environment_next(at)) && !error;) {
        size_t length = strlen(at) + 1;
        if (!gm_environment_is_recorded(at))
            continue;
        if (length > GM_VARIABLE_MAX || used + length > sizeof(names)) {
            gm_count(GM_COUNT_ENVIRONMENT_LIMIT, 1);
            continue;
        }
        memcpy(names + used, at, length);
        used += length;
    }
    return error ? error : gm_trace_write_extent(GM_EXTENT_ENVIRONMENT, 0, names, used, NULL, 0);
}

/* The header page, in the file and mapped. */
static bool create_header(const struct gm_trace_header *header)
{
    struct held_signals held = hold_signals();
    if (remember_identity() && allocate_space(0, GM_TRACE_PAGE) == 0)
        gm_file.header = map_shared(0, GM_TRACE_PAGE);
    release_signals(&held);
    if (!gm_file.header)
        return false;
    memcpy(gm_file.header, header, sizeof(*header));
    gm_file.header->checksum = gm_header_checksum(header);
    gm_process_page->header = gm_file.header;
    publish_end(GM_TRACE_PAGE);
    return true;
}

/* Undoes what gm_trace_create did: a file that says nothing is worse than none. */
static void give_up(const char *made)
{
    char target[GM_PLACE_TARGET_MAX];
    gm_process_page->header = NULL;
    if (gm_file.header)
        munmap(gm_file.header, GM_TRACE_PAGE);
    if (gm_place_follow(made, target) && strcmp(target, gm_file.path) == 0)
        unlink(made);
    if (gm_file.path[0])
        unlink(gm_file.path);
    syscall(SYS_close, gm_file.descriptor);
    gm_file = (struct gm_trace_file)NO_FILE;
}

/*
 * Where nothing can be mapped safely: a trace of a header and what precedes the first record, that
 * is only written. It says that this process was not recorded, and why.
 */
static void tell_not_recorded(struct gm_trace_header *header)
{
    bool told = remember_identity();
    gm_file.header = header;
    publish_end(GM_TRACE_PAGE);
    told = told && write_preamble() == 0;
    header->checksum = gm_header_checksum(header);
    struct held_signals held = hold_signals();
    told = told && write_all(0, header, sizeof(*header)) == 0;
    release_signals(&held);
    gm_file.header = NULL;
    if (told)
        gm_trace_forget();
    else
        give_up(gm_file.path);
}

bool gm_trace_create(bool (*add_more)(void))
{
    static struct gm_trace_header header; /* static: 2 KiB, and a hook's stack may be small */
    static char made[1040];
    memset(&header, 0, sizeof(header));
    gm_environment_look(gm_config.output);
    fill_header(&header);
    gm_file = (struct gm_trace_file)NO_FILE;
    gm_file.descriptor = create_file(&header, made);
    if (gm_file.descriptor < 0)
        return false;
    if (header.flags & GM_HEADER_NOT_RECORDED) {
        tell_not_recorded(&header);
        return false;
    }
    if (!create_header(&header) || write_preamble() != 0 || !add_more()) {
        give_up(made);
        return false;
    }
    gm_trace_update_clock();
    return true;
}

static void forget_file(void)
{
    note_growth(false, 0);
    if (names_our_file(gm_file.descriptor))
        syscall(SYS_close, gm_file.descriptor);
    gm_file = (struct gm_trace_file)NO_FILE;
}

void gm_trace_forget(void)
{
    forget_file();
    atomic_store_explicit(&mapping_count, 0, memory_order_relaxed);
}

void gm_trace_lend(void)
{
    struct gm_trace_header *header = gm_file.header;
    uint32_t count = atomic_load_explicit(&mapping_count, memory_order_relaxed);
    forget_file(); /* nothing grows it any more */
    gm_file.header = header;
    for (uint32_t number = 0; mappings && number < count && number < MAPPINGS_MAX; number++)
        (void)mmap(mappings[number].at, mappings[number].length, PROT_READ | PROT_WRITE,
                   MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
}
