/*
 * sim-oracle FILE: prints the totals the simulated driver kept (sim/oracle.h) as one JSON object.
 *
 * Exit codes: 0 printed, 2 wrong usage, 3 the file is missing, short or no oracle.
 */
#include "oracle.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const device_kind_names[GPUSIM_DEVICE_KINDS] = {
    [GPUSIM_DEVICE] = "device", [GPUSIM_MANAGED] = "managed", [GPUSIM_ARRAY] = "array",
    [GPUSIM_VMM] = "vmm",       [GPUSIM_GRAPH] = "graph",     [GPUSIM_EXTERNAL] = "external",
};

static const char *const host_kind_names[GPUSIM_HOST_KINDS] = {
    [GPUSIM_PINNED] = "pinned",
    [GPUSIM_REGISTERED] = "registered",
    [GPUSIM_HOST_VMM] = "vmm",
};

static void print_counters(const struct gpusim_counter *counters, const char *const *names,
                           size_t count)
{
    putchar('{');
    for (size_t i = 0; i < count; i++) {
        printf("%s\"%s\":{\"live\":%" PRIu64 ",\"peak\":%" PRIu64 ",\"allocs\":%" PRIu64
               ",\"frees\":%" PRIu64 ",\"implicit_frees\":%" PRIu64 "}",
               i ? "," : "", names[i], counters[i].live, counters[i].peak, counters[i].allocs,
               counters[i].frees, counters[i].implicit_frees);
    }
    putchar('}');
}

static void print_oracle(const struct gpusim_oracle *oracle)
{
    printf("{\"devices\":[");
    for (uint32_t i = 0; i < oracle->device_count; i++) {
        const struct gpusim_device_totals *device = &oracle->device[i];

        printf("%s{\"id\":%" PRIu32 ",\"kinds\":", i ? "," : "", i);
        print_counters(device->kind, device_kind_names, GPUSIM_DEVICE_KINDS);
        printf(",\"live\":%" PRIu64 ",\"peak\":%" PRIu64 "}", device->live, device->peak);
    }
    printf("],\"host\":");
    print_counters(oracle->host, host_kind_names, GPUSIM_HOST_KINDS);
    printf(",\"failed\":%" PRIu64 ",\"rejected\":%" PRIu64 "}\n", oracle->failed, oracle->rejected);
}

static int read_oracle(const char *path, struct gpusim_oracle *oracle)
{
    FILE *file = fopen(path, "rb");
    if (!file) {
        perror(path);
        return -1;
    }
    size_t read = fread(oracle, sizeof(*oracle), 1, file);
    fclose(file);
    if (read != 1 || memcmp(oracle->magic, GPUSIM_ORACLE_MAGIC, sizeof(oracle->magic)) != 0 ||
        oracle->version != GPUSIM_ORACLE_VERSION || oracle->device_count > GPUSIM_MAX_DEVICES) {
        fprintf(stderr, "%s: not an oracle of this version\n", path);
        return -1;
    }
    return 0;
}

int main(int argc, char **argv)
{
    struct gpusim_oracle oracle;

    if (argc != 2) {
        fprintf(stderr, "usage: sim-oracle FILE\n");
        return 2;
    }
    if (read_oracle(argv[1], &oracle) != 0)
        return 3;
    print_oracle(&oracle);
    return 0;
}
