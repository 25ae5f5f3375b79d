/*
 * A GPU to simulate, as a file describes it: lines "KEY = VALUE", "#" begins a comment. Keys: name,
 * also (other names to ask for it by, separated by blanks), cc (compute capability), sms, kernels
 * (architecture of the code that a wheel has for it: sim/driver/profile.h), memory, context (bytes
 * that a process's context takes), source (of the context's bytes). Sizes as in base/size.h.
 */
#ifndef GPUMEM_REPORT_DRYRUN_DEVICE_H
#define GPUMEM_REPORT_DRYRUN_DEVICE_H

#include <stdbool.h>
#include <stdint.h>

struct gm_dry_device {
    char name[128];
    char also[128];
    char cc[8];
    unsigned sms;
    unsigned kernels; /* 0: those of the compute capability */
    uint64_t memory;
    uint64_t context;
    uint64_t nccl; /* bytes that a communicator of NCCL with several ranks is assumed to take, */
    uint64_t nccl_rank; /* and for each of its ranks */
    char source[256];
};

/* The device of a file. False after a complaint. */
bool gm_dry_device_read(struct gm_dry_device *device, const char *path);

/* The device that is asked for: the file of that path, or by its name that of the folder; the case of
 * letters, blanks, "-" and "_" make no difference. False after a complaint that lists the names. */
bool gm_dry_device_find(struct gm_dry_device *device, const char *name, const char *folder);

#endif
