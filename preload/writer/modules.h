/*
 * Which module (executable, shared library) an address belongs to, recorded in the trace at first
 * sight so that a later dlclose hides nothing.
 *
 * Reads /proc/self/maps with plain system calls: no loader lock, no malloc. Called for new stack
 * nodes only.
 */
#ifndef GPUMEM_PRELOAD_WRITER_MODULES_H
#define GPUMEM_PRELOAD_WRITER_MODULES_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Module number of `address` and, in *offset, the address in the module's own terms (address - load
 * bias). 0 and the address itself when no file is mapped there (generated code), or when the module
 * cannot be recorded, which is counted. The address must be mapped: a return address of the calling
 * thread's own stack is.
 */
uint16_t gm_module_of(uint64_t address, uint64_t *offset);

/* The same of the addresses of one stack, of which several may be unknown: they are looked up in one reading of the maps.
 * What it leaves out is looked up by gm_module_of. */
void gm_modules_check(const uint64_t *addresses, uint32_t count);

/* Some library may have been unloaded: what is known of an address is checked again before it is
 * used. */
void gm_modules_changed(void);

/* Whether some mapped file's name (without its folder) begins with `prefix`, in whatever namespace
 * of the loader it was opened. */
bool gm_module_is_mapped(const char *prefix);

void gm_modules_forget(void);

#endif
