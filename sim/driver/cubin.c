/* What the simulator reads in device code: which variables and kernels a cubin has. A cubin is an ELF file of machine
 * EM_CUDA (elf.h) with an ordinary table of symbols; of its functions, those are kernels that readelf shows as "other: 10". */
#include "module.h"

#include <elf.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { MACHINE_CUDA = 190, OTHER_KERNEL = 0x10 };

static void declare_symbols(struct gpusim_library *library, const char *image,
                            const Elf64_Shdr *sections, const Elf64_Shdr *table)
{
    const Elf64_Sym *symbols = (const void *)(image + table->sh_offset);
    const char *names = image + sections[table->sh_link].sh_offset;

    for (const Elf64_Sym *symbol = symbols; symbol < symbols + table->sh_size / sizeof(*symbols);
         symbol++) {
        unsigned char type = ELF64_ST_TYPE(symbol->st_info);
        if (!symbol->st_size || symbol->st_shndx == SHN_UNDEF)
            continue;
        if (type == STT_OBJECT)
            gpusim_library_declare(library, names + symbol->st_name, symbol->st_size, false);
        else if (type == STT_FUNC && symbol->st_other & OTHER_KERNEL)
            gpusim_kernel_declare(library, names + symbol->st_name);
    }
}

static bool is_cubin(const Elf64_Ehdr *head)
{
    return strncmp((const char *)head, ELFMAG, SELFMAG) == 0 && /* a text may be shorter */
           head->e_ident[EI_CLASS] == ELFCLASS64 && head->e_machine == MACHINE_CUDA;
}

void gpusim_code_declare(struct gpusim_library *library, const void *image)
{
    const Elf64_Ehdr *head = image;

    if (!is_cubin(head)) {
        gpusim_ptx_declare(library, image);
        return;
    }
    const Elf64_Shdr *sections = (const void *)((const char *)image + head->e_shoff);
    for (unsigned int i = 0; i < head->e_shnum; i++)
        if (sections[i].sh_type == SHT_SYMTAB)
            declare_symbols(library, image, sections, &sections[i]);
}

/* Whether what the headers of a cubin name lies in it. */
static bool is_whole(const char *image, size_t size)
{
    const Elf64_Ehdr *head = (const void *)image;
    const Elf64_Shdr *sections = (const void *)(image + head->e_shoff);

    if (head->e_shoff > size || head->e_shnum > (size - head->e_shoff) / sizeof(*sections))
        return false;
    for (const Elf64_Shdr *section = sections; section < sections + head->e_shnum; section++) {
        bool has_bytes = section->sh_type != SHT_NOBITS;
        if (section->sh_link >= head->e_shnum ||
            (has_bytes &&
             (section->sh_offset > size || section->sh_size > size - section->sh_offset)))
            return false;
    }
    return true;
}

void gpusim_code_declare_file(struct gpusim_library *library, const char *path)
{
    struct stat status;
    int file = open(path, O_RDONLY | O_CLOEXEC);
    bool is_file = file >= 0 && fstat(file, &status) == 0 && status.st_size > 0;
    size_t size = is_file ? (size_t)status.st_size : 0;
    char *image = size >= sizeof(Elf64_Ehdr) ? calloc(size + 1, 1) : NULL;

    if (image && read(file, image, size) == (ssize_t)size &&
        (!is_cubin((const void *)image) || is_whole(image, size)))
        gpusim_code_declare(library, image);
    free(image);
    if (file >= 0)
        close(file);
}
