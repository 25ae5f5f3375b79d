/* A trace of a process that runs: this one. Needs cmocka.h before it. */
#ifndef GPUMEM_TESTS_RUNNING_TRACE_H
#define GPUMEM_TESTS_RUNNING_TRACE_H

#include "trace_writer.h"
#include <gpumem/trace.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* This process, according to /proc. */
static inline void name_ourselves(struct gm_trace_header *header)
{
    char text[1024];
    FILE *file = fopen("/proc/self/stat", "r");
    size_t length = fread(text, 1, sizeof(text) - 1, file);
    fclose(file);
    text[length] = 0;
    char *at = strrchr(text, ')');
    for (int field = 2; field < 22; field++)
        at = strchr(at + 1, ' ');
    header->process_start = strtoull(at, NULL, 10);
    header->pid = (uint32_t)getpid();
    file = fopen("/proc/sys/kernel/random/boot_id", "r");
    assert_non_null(fgets(header->boot_id, 37, file));
    fclose(file);
}

/* The trace as a file. */
static inline void write_trace_file(const struct writer *writer, const char *path)
{
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    assert_int_equal(fwrite(writer->bytes, 1, writer->size, file), writer->size);
    fclose(file);
}

#endif
