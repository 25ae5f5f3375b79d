/* The one thing that the simulator reads in device code: which variables a cubin has. A cubin is an ELF file of machine
 * EM_CUDA (elf.h) with an ordinary table of symbols. */
#include "module.h"

#include <elf.h>
#include <string.h>

enum { MACHINE_CUDA = 190 };

static void declare_symbols(struct gpusim_library *library, const char *image,
                            const Elf64_Shdr *sections, const Elf64_Shdr *table)
{
    const Elf64_Sym *symbols = (const void *)(image + table->sh_offset);
    const char *names = image + sections[table->sh_link].sh_offset;

    for (size_t i = 0; i < table->sh_size / sizeof(*symbols); i++)
        if (ELF64_ST_TYPE(symbols[i].st_info) == STT_OBJECT && symbols[i].st_size &&
            symbols[i].st_shndx != SHN_UNDEF)
            gpusim_library_declare(library, names + symbols[i].st_name, symbols[i].st_size, false);
}

void gpusim_cubin_declare(struct gpusim_library *library, const void *image)
{
    const Elf64_Ehdr *head = image;

    if (strncmp(image, ELFMAG, SELFMAG) != 0 || head->e_ident[EI_CLASS] != ELFCLASS64 ||
        head->e_machine != MACHINE_CUDA)
        return;
    const Elf64_Shdr *sections = (const void *)((const char *)image + head->e_shoff);
    for (unsigned int i = 0; i < head->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB)
            declare_symbols(library, image, sections, &sections[i]);
}
