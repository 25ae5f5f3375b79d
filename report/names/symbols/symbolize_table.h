/* The symbol table of a module, searched by address. libdwfl can do that, too, but compares every
 * symbol for every address, which takes minutes for a library with a million of them. */
#ifndef GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_TABLE_H
#define GPUMEM_REPORT_SYMBOLS_SYMBOLIZE_TABLE_H

#include <stdint.h>

#include <elfutils/libdwfl.h>

struct gm_symbol_table;

/* Reads .symtab (of the separate debug file if there is one), else .dynsym with the compressed
 * .gnu_debugdata. A module without symbols has an empty table. */
struct gm_symbol_table *gm_symbol_table_new(Dwfl_Module *module);
void gm_symbol_table_free(struct gm_symbol_table *table);

size_t gm_symbol_table_count(const struct gm_symbol_table *table);

/* Name of the function that holds `address`, an address in the space of `module` (file address
 * plus bias), as the file has it: neither bounded nor demangled. NULL if there is none. */
const char *gm_symbol_table_find(const struct gm_symbol_table *table, uint64_t address);

#endif
