/* Finding, checking and opening a module's file; the contract is in symbolize_module.h.
 *
 * Every module has a libdwfl session of its own, so modules cannot disturb each other's layout. */
#include "names/symbols/symbolize_module.h"

#include <linux/limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <elfutils/libdwelf.h>
#include <elfutils/libdwfl.h>
#define XXH_INLINE_ALL
#include <xxhash.h>

#include "base/memory.h"
#include "base/text.h"
#include "names/cache/answers.h"
#include "names/symbols/symbolize_special.h"
#include "names/symbols/symbolize_table.h"
#include "names/symbols/symbolize_unpacked.h"

#define DEBUG_DIRECTORY "/usr/lib/debug"

struct gm_symbol_module {
    struct gm_symbol_outcome outcome;
    char *file;
    char *debug_path; /* where libdwfl looks for separate debug files */
    char *debug_info; /* the file that has it; NULL: none is read */
    Dwfl_Callbacks callbacks;
    Dwfl *session;
    Dwfl_Module *handle;
    Dwarf_Addr bias;               /* libdwfl's addresses minus the file's */
    Dwarf_Addr dwarf_bias;         /* libdwfl's addresses minus those of the debug info */
    struct gm_dwarf_index *index;  /* NULL if there is no debug info */
    struct gm_symbol_table *table; /* NULL until needed */
    struct gm_answers *answers;    /* kept on the disk; NULL: none are */
    bool is_read;                  /* its contents were opened */
};

/* ---- finding the file ------------------------------------------------------------------------ */

static bool is_loadable(Elf *elf)
{
    GElf_Ehdr header;

    return elf_kind(elf) == ELF_K_ELF && gelf_getehdr(elf, &header) != NULL &&
           (header.e_type == ET_EXEC || header.e_type == ET_DYN);
}

static bool has_build_id(Elf *elf, const struct gm_module_reference *reference)
{
    const void *build_id;
    ssize_t size = dwelf_elf_gnu_build_id(elf, &build_id);

    return size > 0 && (size_t)size == reference->build_id_size &&
           memcmp(build_id, reference->build_id, reference->build_id_size) == 0;
}

/* Returns GM_SYMBOLS_FULL if the file may be used, otherwise what is wrong with it. */
static enum gm_symbol_status check_file(int fd, const struct gm_module_reference *reference)
{
    enum gm_symbol_status status = GM_SYMBOLS_FULL;
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);

    if (elf == NULL || !is_loadable(elf))
        status = GM_SYMBOLS_UNREADABLE;
    else if (reference->build_id_size > 0 && !has_build_id(elf, reference))
        status = GM_SYMBOLS_MODULE_CHANGED;
    else if (gm_unpacks_to_too_much(elf))
        status = GM_SYMBOLS_TOO_MUCH;
    elf_end(elf);
    return status;
}

static bool start_session(struct gm_symbol_module *module, const char *path, int fd)
{
    module->session = dwfl_begin(&module->callbacks);
    if (module->session == NULL) {
        close(fd);
        return false;
    }
    module->handle = dwfl_report_offline(module->session, path, path, fd);
    void **data = NULL;
    if (module->handle == NULL)
        close(fd); /* on success libdwfl owns it */
    else if (dwfl_module_info(module->handle, &data, NULL, NULL, NULL, NULL, NULL, NULL) != NULL)
        *data = module; /* for find_debug_file */
    if (dwfl_report_end(module->session, NULL, NULL) == 0 && module->handle != NULL &&
        dwfl_module_getelf(module->handle, &module->bias) != NULL)
        return true;
    dwfl_end(module->session);
    module->session = NULL;
    module->handle = NULL;
    return false;
}

/* Opens `path` if it is the module's file. Otherwise notes why not; of several files the reason
 * that says most is kept. */
static bool try_file(struct gm_symbol_module *module, const struct gm_module_reference *reference,
                     const char *path)
{
    int fd = gm_open_regular_file(path);

    if (fd < 0)
        return false;
    enum gm_symbol_status status = check_file(fd, reference);
    if (status != GM_SYMBOLS_FULL)
        close(fd);
    else if (!start_session(module, path, fd))
        status = GM_SYMBOLS_UNREADABLE;
    if (status < module->outcome.status)
        module->outcome.status = status;
    if (status != GM_SYMBOLS_FULL)
        return false;
    module->outcome.verified = reference->build_id_size > 0;
    module->file = gm_copy_text(path);
    module->outcome.file = module->file;
    return true;
}

static bool try_module_path(struct gm_symbol_module *module,
                            const struct gm_module_reference *reference, const char *sysroot)
{
    char path[PATH_MAX];
    int length = snprintf(path, sizeof(path), "%s%s", sysroot, reference->path);

    return length > 0 && (size_t)length < sizeof(path) && try_file(module, reference, path);
}

/* Where the debug file of a build-id belongs. False: the path would be too long. */
static bool build_id_path(const struct gm_module_reference *reference, const char *sysroot,
                          char path[PATH_MAX])
{
    int length = snprintf(path, PATH_MAX, "%s" DEBUG_DIRECTORY "/.build-id/", sysroot);
    size_t used = (size_t)length;

    if (length < 0 || used + 2 * reference->build_id_size + sizeof("/.debug") > PATH_MAX)
        return false;
    used += gm_write_hex(path + used, reference->build_id, 1);
    path[used++] = '/';
    used += gm_write_hex(path + used, reference->build_id + 1, reference->build_id_size - 1);
    memcpy(path + used, ".debug", sizeof(".debug"));
    return true;
}

/* The debug file of a module that is gone, or was replaced, is as good as the module. */
static bool try_build_id_path(struct gm_symbol_module *module,
                              const struct gm_module_reference *reference, const char *sysroot)
{
    char path[PATH_MAX];

    return build_id_path(reference, sysroot, path) && try_file(module, reference, path);
}

/* Whether the path leads upwards, and so out of a sysroot. */
static bool leads_out(const char *path)
{
    for (const char *at = path; (at = strstr(at, "/..")) != NULL; at += 3)
        if (at[3] == '/' || at[3] == '\0')
            return true;
    return false;
}

/* With a sysroot, a file outside of it is only believed if its build-id proves it; without local
 * files, none is opened by its path. */
static bool find_file(struct gm_symbol_module *module, const struct gm_module_reference *reference,
                      const char *sysroot, bool no_local_files)
{
    bool provable = reference->build_id_size > 0;
    bool has_path = reference->path != NULL && reference->path[0] == '/' &&
                    !(sysroot != NULL && leads_out(reference->path));

    if (sysroot != NULL && has_path && try_module_path(module, reference, sysroot))
        return true;
    if (!no_local_files && (sysroot == NULL || provable) && has_path &&
        try_module_path(module, reference, ""))
        return true;
    if (sysroot != NULL && provable && try_build_id_path(module, reference, sysroot))
        return true;
    return provable && try_build_id_path(module, reference, "");
}

/* ---- opening --------------------------------------------------------------------------------- */

static bool is_unreadable_debug_section(Elf *elf, Elf_Scn *section, size_t names)
{
    GElf_Shdr header;
    GElf_Chdr compression;

    if (gelf_getshdr(section, &header) == NULL || (header.sh_flags & SHF_COMPRESSED) == 0)
        return false;
    const char *name = elf_strptr(elf, names, header.sh_name);
    return name != NULL && strncmp(name, ".debug_", strlen(".debug_")) == 0 &&
           gelf_getchdr(section, &compression) != NULL && compression.ch_type != ELFCOMPRESS_ZLIB;
}

static bool has_unreadable_debug_section(Elf *elf)
{
    Elf_Scn *section = NULL;
    size_t names;

    if (elf == NULL || elf_getshdrstrndx(elf, &names) != 0)
        return false;
    while ((section = elf_nextscn(elf, section)) != NULL) {
        if (is_unreadable_debug_section(elf, section, names))
            return true;
    }
    return false;
}

/* libdw skips sections that it cannot decompress without a word, so an absence is explained by
 * looking at the file, or at its separate debug file. */
static bool is_compression_to_blame(struct gm_symbol_module *module)
{
    const char *debug_file = NULL;
    Dwarf_Addr bias;

    if (has_unreadable_debug_section(dwfl_module_getelf(module->handle, &bias)))
        return true;
    dwfl_module_info(module->handle, NULL, NULL, NULL, NULL, NULL, NULL, &debug_file);
    int fd = debug_file == NULL ? -1 : gm_open_regular_file(debug_file);
    if (fd < 0)
        return false;
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    bool found = has_unreadable_debug_section(elf);
    elf_end(elf);
    close(fd);
    return found;
}

static struct gm_symbol_table *table_of(struct gm_symbol_module *module)
{
    if (module->table == NULL)
        module->table = gm_symbol_table_new(module->handle);
    return module->table;
}

/* The file that has the debug info, by the path that libdw takes it for. The caller frees it. */
static char *path_of_debug_info(struct gm_symbol_module *module)
{
    const char *main_file = NULL, *debug_file = NULL;

    dwfl_module_info(module->handle, NULL, NULL, NULL, NULL, NULL, &main_file, &debug_file);
    if (debug_file == NULL)
        debug_file = main_file;
    return debug_file == NULL ? NULL : realpath(debug_file, NULL);
}

/* libdw opens what the debug info shares with others when it reads the first name that is there. */
static bool shares_special_file(Dwarf *dwarf, const char *path)
{
    const char *shared;
    const void *build_id;

    return dwelf_dwarf_gnu_debugaltlink(dwarf, &shared, &build_id) > 0 &&
           gm_is_special_file(path, NULL, shared);
}

static void open_debug_info(struct gm_symbol_module *module)
{
    Dwarf *dwarf = dwfl_module_getdwarf(module->handle, &module->dwarf_bias);

    if (dwarf == NULL)
        return;
    module->debug_info = path_of_debug_info(module);
    if (module->debug_info == NULL || shares_special_file(dwarf, module->debug_info))
        return;
    module->index = gm_dwarf_index_new(dwarf, module->debug_info);
    if (gm_dwarf_index_empty(module->index)) {
        gm_dwarf_index_free(module->index);
        module->index = NULL;
    }
}

static void open_contents(struct gm_symbol_module *module)
{
    open_debug_info(module);
    if (module->index != NULL)
        module->outcome.status = GM_SYMBOLS_FULL;
    else if (is_compression_to_blame(module))
        module->outcome.status = GM_SYMBOLS_COMPRESSION;
    else if (gm_symbol_table_count(table_of(module)) > 0)
        module->outcome.status = GM_SYMBOLS_FUNCTIONS_ONLY;
    else
        module->outcome.status = GM_SYMBOLS_NONE;
}

static bool may_be_read(int fd)
{
    Elf *elf = elf_begin(fd, ELF_C_READ_MMAP, NULL);
    bool good = elf_kind(elf) == ELF_K_ELF && !gm_unpacks_to_too_much(elf);

    elf_end(elf);
    return good;
}

/* A module can name the file with its debug info, which may then be one of its maker's, or none.
 * libdwfl also unpacks files that are compressed as a whole: of those none is taken. */
static int find_debug_file(Dwfl_Module *handle, void **data, const char *name, Dwarf_Addr base,
                           const char *file, const char *link, GElf_Word checksum, char **found)
{
    const struct gm_symbol_module *module = *data;

    if (gm_is_special_debug_file(module->debug_path, file, link))
        return -1;
    int fd = dwfl_standard_find_debuginfo(handle, data, name, base, file, link, checksum, found);
    if (fd < 0 || may_be_read(fd))
        return fd;
    close(fd);
    free(*found);
    *found = NULL;
    return -1;
}

/* The first two entries are libdwfl's own defaults: beside the module, and .debug below that. */
static char *make_debug_path(const char *sysroot)
{
    static const char plain[] = ":.debug:" DEBUG_DIRECTORY;
    if (sysroot == NULL)
        return gm_copy_text(plain);
    size_t size = 2 * sizeof(plain) + strlen(sysroot);
    char *path = gm_allocate(size, 1);
    snprintf(path, size, ":.debug:%s" DEBUG_DIRECTORY ":" DEBUG_DIRECTORY, sysroot);
    return path;
}

/* ---- answers of earlier reports -------------------------------------------------------------- */

/* A hash of all that decides an answer. */
static void add_identity(uint64_t *identity, const void *bytes, size_t size)
{
    *identity = XXH3_64bits_withSeed(bytes, size, *identity);
}

/* A file that is not there counts, too: it may be tomorrow. The device's number does not: it may be
 * another one after a restart. */
static bool add_file(void *identity, const char *path)
{
    struct stat status;
    uint64_t numbers[4] = {0};

    if (stat(path, &status) == 0) {
        numbers[0] = status.st_ino;
        numbers[1] = (uint64_t)status.st_size;
        numbers[2] = (uint64_t)status.st_mtim.tv_sec;
        numbers[3] = (uint64_t)status.st_mtim.tv_nsec;
    }
    add_identity(identity, numbers, sizeof(numbers));
    return false; /* go on */
}

/* The module, all places where its debug info may lie, this program, and libdw. */
static uint64_t get_identity(struct gm_symbol_module *module,
                             const struct gm_module_reference *reference, const char *sysroot)
{
    uint64_t identity = 0;
    char path[PATH_MAX];
    GElf_Addr bias;
    GElf_Word checksum;
    const char *link =
        dwelf_elf_gnu_debuglink(dwfl_module_getelf(module->handle, &bias), &checksum);
    const char *libdw = dwfl_version(NULL);

    add_file(&identity, "/proc/self/exe");
    add_identity(&identity, libdw, strlen(libdw));
    add_file(&identity, module->file);
    if (sysroot != NULL && build_id_path(reference, sysroot, path))
        add_file(&identity, path);
    if (build_id_path(reference, "", path))
        add_file(&identity, path);
    gm_visit_debug_places(module->debug_path, module->file, link, add_file, &identity);
    return identity;
}

/* What a server of debug info has is not known beforehand: with one nothing is kept. */
static void open_answers(struct gm_symbol_module *module,
                         const struct gm_module_reference *reference,
                         const struct gm_symbolizer_options *options)
{
    if (options->cache_folder == NULL || options->debuginfod || !module->outcome.verified)
        return;
    module->answers =
        gm_answers_open(options->cache_folder, reference->build_id, reference->build_id_size,
                        get_identity(module, reference, options->sysroot));
}

/* Further files decide what is found in debug info that is split, or has a part that is missing: of
 * those nothing is known beforehand. */
static bool may_be_kept(struct gm_symbol_module *module)
{
    const char *shared;
    const void *build_id;
    Dwarf_Addr bias;
    Dwarf *dwarf = dwfl_module_getdwarf(module->handle, &bias);
    bool is_shared = dwarf != NULL && dwelf_dwarf_gnu_debugaltlink(dwarf, &shared, &build_id) > 0;

    if (module->index == NULL)
        return !is_shared;
    return !gm_dwarf_index_is_split(module->index) && !(is_shared && dwarf_getalt(dwarf) == NULL);
}

/* Opens the contents, unless that was done. */
static void read_contents(struct gm_symbol_module *module)
{
    if (module->is_read)
        return;
    module->is_read = true;
    open_contents(module);
    if (module->answers == NULL)
        return;
    if (may_be_kept(module)) {
        gm_answers_set_note(module->answers, module->outcome.status);
    } else {
        gm_answers_close(module->answers, false);
        module->answers = NULL;
    }
}

/* As the contents would say, which are then not opened before an address is new. */
static bool take_status(struct gm_symbol_module *module)
{
    uint32_t status;

    if (module->answers == NULL || !gm_answers_note(module->answers, &status) ||
        status > GM_SYMBOLS_NONE)
        return false;
    module->outcome.status = (enum gm_symbol_status)status;
    return true;
}

/* ---- opening and closing --------------------------------------------------------------------- */

struct gm_symbol_module *gm_symbol_module_open(const struct gm_module_reference *reference,
                                               const struct gm_symbolizer_options *options)
{
    struct gm_symbol_module *module = gm_allocate(1, sizeof(*module));

    module->outcome.status = GM_SYMBOLS_MODULE_MISSING;
    module->debug_path = make_debug_path(options->sysroot);
    module->callbacks = (Dwfl_Callbacks){.find_elf = dwfl_build_id_find_elf,
                                         .find_debuginfo = find_debug_file,
                                         .section_address = dwfl_offline_section_address,
                                         .debuginfo_path = &module->debug_path};
    elf_version(EV_CURRENT);
    if (!find_file(module, reference, options->sysroot, options->no_local_files))
        return module;
    open_answers(module, reference, options);
    if (!take_status(module))
        read_contents(module);
    return module;
}

void gm_symbol_module_free(struct gm_symbol_module *module)
{
    if (module == NULL)
        return;
    if (module->answers != NULL)
        gm_answers_close(module->answers, !gm_symbol_module_outcome(module).limited);
    gm_symbol_table_free(module->table);
    gm_dwarf_index_free(module->index);
    if (module->session != NULL)
        dwfl_end(module->session);
    free(module->debug_path);
    free(module->debug_info);
    free(module->file);
    free(module);
}

struct gm_symbol_outcome gm_symbol_module_outcome(const struct gm_symbol_module *module)
{
    struct gm_symbol_outcome outcome = module->outcome;

    outcome.limited = module->index != NULL && gm_dwarf_index_exhausted(module->index);
    return outcome;
}

/* ---- finding names --------------------------------------------------------------------------- */

static void take_symbol(struct gm_raw_frame *frame, const char *symbol)
{
    frame->name = symbol;
    frame->name_source = GM_NAME_FROM_SYMBOL;
}

static bool is_mangled(const char *name)
{
    return strncmp(name, "_Z", 2) == 0 || strncmp(name, "_R", 2) == 0;
}

/* The containing function is the one that has a symbol. Compilers leave its linkage name out of
 * reduced debug info and of lambdas, where the plain name would lack class and namespace. */
static void improve_name(struct gm_symbol_module *module, uint64_t address,
                         struct gm_raw_frame *frame)
{
    if (frame->name != NULL && frame->name_source == GM_NAME_FROM_LINKAGE)
        return;
    const char *symbol = gm_symbol_table_find(table_of(module), address);
    if (symbol != NULL && (frame->name == NULL || is_mangled(symbol)))
        take_symbol(frame, symbol);
}

static size_t find_in_contents(struct gm_symbol_module *module, uint64_t address,
                               struct gm_raw_frame *frames)
{
    size_t count = 0;
    uint64_t shifted = address + module->bias;

    if (module->index != NULL)
        count = gm_dwarf_index_find(module->index, shifted - module->dwarf_bias, frames);
    if (count == 0) {
        const char *symbol = gm_symbol_table_find(table_of(module), shifted);
        if (symbol == NULL)
            return 0;
        frames[0] = (struct gm_raw_frame){0};
        take_symbol(&frames[0], symbol);
        return 1;
    }
    improve_name(module, shifted, &frames[count - 1]);
    return count;
}

size_t gm_symbol_module_find(struct gm_symbol_module *module, uint64_t address,
                             struct gm_raw_frame *frames)
{
    size_t count;

    if (module->handle == NULL)
        return 0;
    if (module->answers != NULL && gm_answers_find(module->answers, address, frames, &count))
        return count;
    read_contents(module);
    count = find_in_contents(module, address, frames);
    if (module->answers != NULL)
        gm_answers_add(module->answers, address, frames, count);
    return count;
}
