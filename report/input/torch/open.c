/* See open.h. */
#include "input/torch/open.h"
#include "input/torch/import.h"
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

bool gm_torch_map(const char *path, struct gm_pickle_source *file)
{
    struct stat status;
    int descriptor = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK); /* a FIFO must not block us */
    if (descriptor < 0)
        return false;
    void *bytes = MAP_FAILED;
    if (fstat(descriptor, &status) == 0 && S_ISREG(status.st_mode) && status.st_size > 0)
        bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_PRIVATE, descriptor, 0);
    close(descriptor);
    if (bytes == MAP_FAILED)
        return false;
    *file = (struct gm_pickle_source){bytes, (size_t)status.st_size, true};
    if (gm_pickle_is_likely(file->bytes, file->size))
        return true;
    gm_torch_unmap(file);
    return false;
}

void gm_torch_unmap(const struct gm_pickle_source *file)
{
    munmap((void *)(uintptr_t)file->bytes, file->size);
}

struct gm_trace *gm_torch_open(const char *path, char *error, size_t error_size)
{
    struct gm_pickle_source file;
    if (!gm_torch_map(path, &file))
        return gm_trace_open(path, error, error_size);
    size_t size = 0;
    struct gm_torch_snapshot *snapshot = gm_torch_snapshot_read(&file, error, error_size);
    unsigned char *bytes = snapshot ? gm_torch_import(snapshot, &size) : NULL;
    gm_torch_snapshot_free(snapshot); /* before the trace is read, which takes memory, too */
    gm_torch_unmap(&file);
    return bytes ? gm_trace_open_made(path, bytes, size, error, error_size) : NULL;
}
