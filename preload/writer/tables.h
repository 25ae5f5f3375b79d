/*
 * The interned tables of a trace: strings, script frames and stack nodes.
 *
 * Guarantees: an id is returned only after its entry stands complete in the trace; the same content
 * gives the same id (as long as the table is not full); lookups of known entries take no lock, new
 * entries take the table's. Each table is bounded (trace.h); beyond the bound the id is 0 and a
 * counter of the table's own tells. Where the file cannot grow the id is 0, too, GROW_FAILED tells,
 * and a later call may have more luck. What a program calls its doings fills a share of the strings
 * at most: names of code always find room.
 */
#ifndef GPUMEM_PRELOAD_WRITER_TABLES_H
#define GPUMEM_PRELOAD_WRITER_TABLES_H

#include <gpumem/trace.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* String reference for `size` bytes (cut at GM_STRING_LENGTH_MAX); 0 for none or when full. */
uint32_t gm_string_intern(const char *bytes, size_t size);

/* The same for a name that the program gave to a mark or a range. */
uint32_t gm_string_intern_mark(const char *bytes, size_t size);

/* Index of a script frame, 0 when full. */
uint32_t gm_frame_intern(uint32_t file, uint32_t function, uint32_t line);

/* Id of the node (parent, module, address, kind), 0 when full. */
uint32_t gm_node_intern(uint32_t parent, uint16_t module, uint64_t address, enum gm_node_kind kind);

/* Number of the next free module entry, or NULL when full; published by gm_module_publish.
 * modules.c only. */
struct gm_module *gm_module_append(uint16_t *number);
void gm_module_publish(void);
struct gm_module *gm_module_entry(uint16_t number);
uint32_t gm_module_count(void); /* one past the last number */
bool gm_modules_full(void);     /* for good */
bool gm_strings_full(void);

/* Seals the extents that have changed since the last time. */
void gm_tables_seal(void);

/* In a child: who held the locks is not there. */
void gm_tables_unlock(void);

/* Forgets everything after a fork: the mappings are gone. */
void gm_tables_forget(void);

#endif
