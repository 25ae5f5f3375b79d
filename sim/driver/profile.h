/*
 * Which GPU is simulated: GPUMEM_SIM_DEVICE, a list "KEY=VALUE,..." whose keys may be left out.
 *
 *   cc       compute capability, such as 8.9 (9.0)
 *   sms      multiprocessors (108)
 *   kernels  architecture of the kernels' code, as their attributes report it: the highest that the
 *            program has and the device runs, such as 86 on 8.9 (that of the device)
 *   l2       bytes of the second-level cache (41943040)
 *   name     the device's name, to which "simulated" is added; the last key, because it may have
 *            commas
 *
 * What follows from the compute capability (threads, blocks and shared memory of a multiprocessor)
 * is NVIDIA's table in the CUDA C++ Programming Guide, "Technical Specifications per Compute
 * Capability".
 */
#ifndef GPUMEM_SIM_PROFILE_H
#define GPUMEM_SIM_PROFILE_H

#include <cuda.h>
#include <stdbool.h>

struct gpusim_profile {
    int major, minor;
    int sms;
    int kernels;
    int l2_bytes;
    int threads_per_sm;
    int blocks_per_sm;
    int shared_per_sm; /* bytes; a block may have 1 KiB less */
    char name[128];
};

extern struct gpusim_profile gpusim_profile;

/* Reads the variable; false: it is not valid, and the defaults hold. */
bool gpusim_profile_read(const char *text);

/* Whether the profile decides an attribute of the device; if so *value is it. */
bool gpusim_profile_attribute(CUdevice_attribute attribute, int *value);

#endif
