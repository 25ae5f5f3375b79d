/* Sorted copy of a module's symbols; the contract is in symbolize_table.h. */
#include "names/symbols/symbolize_table.h"

#include <stdlib.h>

#include "base/memory.h"
#include "names/symbols/symbolize_intervals.h"

/* Which of several names for the same code is shown; a higher one wins. */
enum preference {
    PREFER_UNSIZED, /* assembler label: its end is a guess */
    PREFER_LOCAL,
    PREFER_WEAK,
    PREFER_GLOBAL
};

struct gm_symbol_table {
    struct gm_intervals ranges; /* values are indices of `names` */
    const char **names;
    size_t count;
};

struct symbol {
    GElf_Sym entry;
    GElf_Addr address;
    const char *name;
    bool in_code;          /* lies in a section of code */
    GElf_Addr section_end; /* in the address space of the module; 0 if not known */
};

static bool read_symbol(Dwfl_Module *module, int number, struct symbol *symbol)
{
    GElf_Word section_number;
    Elf *elf;
    Dwarf_Addr bias;
    GElf_Shdr header;

    symbol->name = dwfl_module_getsym_info(module, number, &symbol->entry, &symbol->address,
                                           &section_number, &elf, &bias);
    if (symbol->name == NULL || symbol->name[0] == '\0' || section_number == SHN_UNDEF)
        return false;
    symbol->in_code = false;
    symbol->section_end = 0;
    Elf_Scn *section = elf_getscn(elf, section_number);
    if (section != NULL && gelf_getshdr(section, &header) != NULL) {
        symbol->in_code = (header.sh_flags & SHF_EXECINSTR) != 0;
        symbol->section_end = header.sh_addr + header.sh_size + bias;
    }
    return true;
}

/* Labels count as functions, except the marks "$x" and "$d" of the ARM architectures. */
static bool names_function(const struct symbol *symbol)
{
    int type = GELF_ST_TYPE(symbol->entry.st_info);

    if (type == STT_NOTYPE)
        return symbol->in_code && symbol->name[0] != '$';
    return type == STT_FUNC || type == STT_GNU_IFUNC;
}

static enum preference preference_of(const GElf_Sym *entry)
{
    if (entry->st_size == 0)
        return PREFER_UNSIZED;
    switch (GELF_ST_BIND(entry->st_info)) {
    case STB_LOCAL:
        return PREFER_LOCAL;
    case STB_WEAK:
        return PREFER_WEAK;
    default:
        return PREFER_GLOBAL;
    }
}

static bool add_symbol(struct gm_symbol_table *table, const struct symbol *symbol)
{
    struct gm_interval item = {.start = symbol->address,
                               .end = symbol->address + symbol->entry.st_size,
                               .value = (uint32_t)table->count,
                               .preference = preference_of(&symbol->entry)};

    if (item.preference == PREFER_UNSIZED)
        item.end = symbol->in_code ? symbol->section_end : 0;
    table->names[table->count++] = symbol->name;
    return gm_intervals_add(&table->ranges, item);
}

/* A label reaches to the next symbol: behind that, nothing says whose code it is. */
static void end_labels_at_next_symbol(struct gm_intervals *ranges)
{
    uint64_t next_start = UINT64_MAX;
    uint64_t start = UINT64_MAX;

    for (size_t i = ranges->count; i-- > 0;) {
        struct gm_interval *item = &ranges->items[i];
        if (item->start != start) {
            next_start = start;
            start = item->start;
        }
        if (item->preference == PREFER_UNSIZED && item->end > next_start)
            item->end = next_start;
    }
}

struct gm_symbol_table *gm_symbol_table_new(Dwfl_Module *module)
{
    struct gm_symbol_table *table = gm_allocate(1, sizeof(*table));
    int count = dwfl_module_getsymtab(module);

    if (count <= 0)
        return table;
    table->names = gm_allocate((size_t)count, sizeof(table->names[0]));
    for (int i = 1; i < count; i++) { /* the first entry of a symbol table is empty */
        struct symbol symbol;
        if (read_symbol(module, i, &symbol) && names_function(&symbol) &&
            !add_symbol(table, &symbol))
            break;
    }
    gm_intervals_sort(&table->ranges);
    end_labels_at_next_symbol(&table->ranges);
    return table;
}

void gm_symbol_table_free(struct gm_symbol_table *table)
{
    if (table == NULL)
        return;
    gm_intervals_clear(&table->ranges);
    free(table->names);
    free(table);
}

size_t gm_symbol_table_count(const struct gm_symbol_table *table)
{
    return table->ranges.count;
}

const char *gm_symbol_table_find(const struct gm_symbol_table *table, uint64_t address)
{
    struct gm_interval_search search = gm_intervals_search(&table->ranges, address);
    const struct gm_interval *found = gm_intervals_next(&search);

    return found == NULL ? NULL : table->names[found->value];
}
