/*
 * What device memory holds, where the simulator does not keep it all (GPUMEM_SIM_VIRTUAL).
 *
 * A dry run of a program whose device has 80 GiB must do with a few hundred MiB of the host's. So
 * copies to the device and sets of more than a threshold are accepted and dropped; smaller ones are
 * stored, because programs read back small things: losses, sizes, flags. The driver notes what was
 * stored and where it came from. From that follow two answers: which bytes to make zero when a
 * framework hands a block out anew (gpumem_sim_forget), and whether a copy to the host reads what
 * the host once wrote or what only a kernel, which does not run, could have written.
 *
 * All of it is off unless the variable is set. The driver lock protects every use.
 */
#ifndef GPUMEM_SIM_CONTENTS_H
#define GPUMEM_SIM_CONTENTS_H

#include <stdbool.h>
#include <stdint.h>

/* Whether contents are virtual at all. */
bool gpusim_contents_are_virtual(void);

/* A copy of bytes is about to be made. Notes what the target holds from then on; false: the caller
 * leaves the bytes out. Host memory has no notes. */
bool gpusim_contents_copy(uint64_t to, bool to_device, uint64_t from, bool from_device,
                          uint64_t bytes);

/* The same for a set. */
bool gpusim_contents_set(uint64_t to, uint64_t bytes);

/* A kernel was launched: it may have written where a set was the last to write, as into a counter. */
void gpusim_contents_kernel(void);

/* Memory was freed: its notes go, and what it holds need not become zero. */
void gpusim_contents_drop(uint64_t address, uint64_t bytes);

#endif
