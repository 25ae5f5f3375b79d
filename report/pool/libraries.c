/* See libraries.h. */
#include "pool/libraries.h"
#include "base/memory.h"
#include "base/size.h"
#include "stacks/known_libraries.h"
#include "stacks/owner.h"
#include "trace/same_stacks.h"
#include <stdlib.h>
#include <string.h>

#define UNKNOWN "unknown"
#define LISTED_ALWAYS 10u /* lines of the text, whatever --top says */
#define NAME_COLUMNS 30

/* What is known of one module of the trace. */
struct module {
    bool looked_at;
    bool passed_over;
    unsigned traits;
    const char *name; /* of the owner */
};

struct gm_libraries {
    const struct gm_trace *trace;
    struct module *modules; /* [number] */
    struct gm_map by_stack; /* stack and whether it is host memory -> answer */
    struct gm_library *answers;
    size_t answer_count;
    size_t answer_capacity;
    char **texts; /* owned names */
    size_t text_count;
    size_t text_capacity;
};

struct gm_libraries *gm_libraries_new(const struct gm_trace *trace)
{
    struct gm_libraries *libraries = gm_allocate(1, sizeof(*libraries));
    libraries->trace = trace;
    libraries->modules = gm_allocate(UINT16_MAX + 1, sizeof(*libraries->modules));
    return libraries;
}

void gm_libraries_free(struct gm_libraries *libraries)
{
    for (size_t i = 0; i < libraries->text_count; i++)
        free(libraries->texts[i]);
    free(libraries->texts);
    free(libraries->answers);
    free(libraries->modules);
    gm_map_free(&libraries->by_stack);
    free(libraries);
}

/* ---- whose a stack is ------------------------------------------------------------------------ */

static const char *keep(struct gm_libraries *libraries, char *text)
{
    GM_RESERVE(libraries->texts, libraries->text_capacity, libraries->text_count + 1);
    return libraries->texts[libraries->text_count++] = text;
}

/* Shared libraries have ".so" in their names; what has not is a program. */
static bool is_program(struct gm_text base)
{
    return memmem(base.bytes, base.size, ".so", 3) == NULL;
}

static const struct module *module_of(struct gm_libraries *libraries, uint16_t number)
{
    struct module *module = &libraries->modules[number];
    if (module->looked_at)
        return module;
    const struct gm_module *entry = gm_trace_module(libraries->trace, number);
    struct gm_text path = gm_trace_string(libraries->trace, entry ? entry->path : 0);
    struct gm_text base = gm_base_name(path);
    const struct gm_known_library *known = gm_known_library(path);
    module->looked_at = true;
    module->traits = known ? known->traits : 0;
    module->passed_over =
        base.size == 0 || gm_is_interpreter(path) ||
        (module->traits & (GM_LIBRARY_ROAD | GM_LIBRARY_ALLOCATOR | GM_LIBRARY_SYSTEM)) != 0;
    if (known)
        module->name = known->name;
    else if (!module->passed_over)
        module->name = is_program(base) ? GM_APPLICATION : keep(libraries, gm_clean_copy(base));
    return module;
}

static const char *script_owner(const struct gm_trace *trace, uint64_t index)
{
    const struct gm_script_frame *frame = gm_trace_script_frame(trace, index);
    const struct gm_known_library *package =
        gm_known_package(gm_trace_string(trace, frame ? frame->file : 0));
    if (!package)
        return GM_APPLICATION;
    return package->traits & (GM_LIBRARY_SYSTEM | GM_LIBRARY_ALLOCATOR) ? NULL : package->name;
}

static struct gm_library find_owner(struct gm_libraries *libraries, bool host, uint32_t stack)
{
    unsigned cache = host ? GM_LIBRARY_HOST_CACHE : GM_LIBRARY_DEVICE_CACHE;
    struct gm_library found = {.name = NULL};
    const char *allocator = NULL;
    bool inside = true; /* nothing but roads so far: who is next made the call */
    for (uint32_t id = stack; id && !found.name;) {
        const struct gm_node *node = gm_trace_node(libraries->trace, id);
        if (!node || node->kind > GM_NODE_SCRIPT)
            break;
        if (node->kind == GM_NODE_SCRIPT) {
            found.name = script_owner(libraries->trace, node->address);
        } else {
            const struct module *module = module_of(libraries, node->module);
            if (inside && module->traits & cache)
                found.pool = module->name;
            if (!allocator && module->traits & GM_LIBRARY_ALLOCATOR)
                allocator = module->name;
            if (!module->passed_over)
                found.name = module->name;
            inside &= (module->traits & GM_LIBRARY_ROAD) != 0;
        }
        id = node->parent < id ? node->parent : 0;
    }
    if (!found.name)
        found.name = allocator ? allocator : UNKNOWN;
    return found;
}

struct gm_library gm_libraries_of(struct gm_libraries *libraries, unsigned kind, uint32_t stack)
{
    bool host = gm_kind_is_host(kind);
    uint64_t key = stack | (uint64_t)host << 32;
    uint32_t known = gm_map_get(&libraries->by_stack, key);
    if (known == GM_NONE) {
        known = (uint32_t)libraries->answer_count;
        GM_RESERVE(libraries->answers, libraries->answer_capacity, libraries->answer_count + 1);
        libraries->answers[libraries->answer_count++] = find_owner(libraries, host, stack);
        gm_map_set(&libraries->by_stack, key, known);
    }
    return libraries->answers[known];
}

/* ---- the table of a device ------------------------------------------------------------------- */

/* One line for one site; lines of one name are joined when all are there. */
static void add(struct gm_library_table *table, struct gm_libraries *libraries,
                const struct gm_site *site, enum gm_library_moment moment)
{
    struct gm_library owner = gm_libraries_of(libraries, site->kind, site->stack);
    struct gm_library_line line = {.name = owner.name, .pool = owner.pool};
    if (gm_trace_api_is_pooled(libraries->trace, site->api))
        line.pool = NULL; /* of the driver's: what the framework takes of it, it uses */
    line.at[moment].bytes = site->bytes;
    line.at[moment].count = site->count;
    GM_RESERVE(table->lines, table->capacity, table->count + 1);
    table->lines[table->count++] = line;
    table->bytes[moment] += site->bytes;
}

static int by_name(const void *left, const void *right)
{
    const struct gm_library_line *a = left, *b = right;
    int names = strcmp(a->name, b->name);
    return names ? names : strcmp(a->pool ? a->pool : "", b->pool ? b->pool : "");
}

static int most_first(const void *left, const void *right)
{
    const struct gm_library_line *a = left, *b = right;
    for (unsigned moment = 0; moment < GM_LIBRARY_MOMENTS; moment++)
        if (a->at[moment].bytes != b->at[moment].bytes)
            return a->at[moment].bytes > b->at[moment].bytes ? -1 : 1;
    return by_name(left, right);
}

static void join(struct gm_library_table *table)
{
    size_t kept = 0;
    if (table->count == 0)
        return;
    qsort(table->lines, table->count, sizeof(*table->lines), by_name);
    for (size_t i = 1; i < table->count; i++) {
        struct gm_library_line *line = &table->lines[kept], *next = &table->lines[i];
        if (by_name(line, next) != 0) {
            table->lines[++kept] = *next;
            continue;
        }
        for (unsigned moment = 0; moment < GM_LIBRARY_MOMENTS; moment++) {
            line->at[moment].bytes += next->at[moment].bytes;
            line->at[moment].count += next->at[moment].count;
        }
    }
    table->count = kept + 1;
    qsort(table->lines, table->count, sizeof(*table->lines), most_first);
}

/* The latest failure of a device for lack of memory, NULL if there is none. */
static const struct gm_failure *last_failure(const struct gm_analysis *analysis, int device)
{
    for (size_t i = analysis->failure_count; i-- > 0;)
        if (analysis->failures[i].snapshot.step && analysis->failures[i].device == device)
            return &analysis->failures[i];
    return NULL;
}

struct gm_library_table gm_library_table_of(struct gm_libraries *libraries,
                                            const struct gm_analysis *analysis, int device)
{
    struct gm_library_table table = {0};
    const struct gm_snapshot *peak = gm_analysis_peak(analysis, device);
    const struct gm_failure *failure = last_failure(analysis, device);
    for (size_t i = 0; peak && i < peak->owners.count; i++)
        add(&table, libraries, &peak->owners.entries[i], GM_AT_PEAK);
    for (size_t i = 0; i < analysis->leaks.count; i++) {
        const struct gm_site *site = &analysis->leaks.entries[i];
        if (site->device == device && site->class != GM_LEAK_IMPLICIT &&
            site->kind != GM_KIND_EXTERNAL && !gm_kind_is_host(site->kind))
            add(&table, libraries, site, GM_AT_END);
    }
    for (size_t i = 0; failure && i < failure->snapshot.owners.count; i++)
        add(&table, libraries, &failure->snapshot.owners.entries[i], GM_AT_FAILURE);
    if (failure)
        table.failure_time = failure->time;
    join(&table);
    return table;
}

void gm_library_table_free(struct gm_library_table *table)
{
    free(table->lines);
}

size_t gm_library_shares(struct gm_libraries *libraries, const struct gm_sites *owners,
                         struct gm_library_share *shares, size_t most)
{
    struct gm_library_table table = {0};
    size_t count = 0;
    for (size_t i = 0; i < owners->count; i++)
        add(&table, libraries, &owners->entries[i], GM_AT_PEAK);
    join(&table);
    for (; count < table.count && count < most; count++)
        shares[count] = (struct gm_library_share){table.lines[count].name,
                                                  table.lines[count].at[GM_AT_PEAK].bytes};
    gm_library_table_free(&table);
    return count;
}

/* ---- text ------------------------------------------------------------------------------------ */

/* "cuDNN, in PyTorch's pool", "PyTorch, in its pool". Pools are known, so their names are short. */
static void print_name(struct gm_page *page, const struct gm_library_line *line)
{
    char suffix[NAME_COLUMNS] = "";
    if (line->pool && strcmp(line->name, line->pool) == 0)
        snprintf(suffix, sizeof(suffix), ", in its pool");
    else if (line->pool)
        snprintf(suffix, sizeof(suffix), ", in %.10s's pool", line->pool);
    size_t used = gm_page_cut(page, line->name, NAME_COLUMNS - strlen(suffix));
    gm_page_cell(page, suffix, NAME_COLUMNS - used);
}

static void print_line(struct gm_page *page, const struct gm_library_table *table,
                       const struct gm_library_line *line)
{
    uint64_t bytes = line->at[GM_AT_PEAK].bytes, whole = table->bytes[GM_AT_PEAK];
    fputs("  ", page->out);
    print_name(page, line);
    gm_page_print(page, GM_BOLD, "%11s", bytes ? SIZE(bytes) : "-");
    gm_page_print(page, GM_PLAIN, " %5.1f%% %7s", whole ? 100.0 * (double)bytes / (double)whole : 0,
                  COUNT(line->at[GM_AT_PEAK].count));
    bytes = line->at[GM_AT_END].bytes;
    gm_page_print(page, GM_PLAIN, "%11s", bytes ? SIZE(bytes) : "-");
    bytes = line->at[GM_AT_FAILURE].bytes;
    if (table->failure_time)
        gm_page_print(page, GM_PLAIN, "%11s", bytes ? SIZE(bytes) : "-");
    fputc('\n', page->out);
}

void gm_libraries_text(struct gm_page *page, const struct gm_analysis *analysis, int device,
                       size_t top)
{
    struct gm_libraries *libraries = gm_libraries_new(analysis->trace);
    struct gm_library_table table = gm_library_table_of(libraries, analysis, device);
    size_t shown = top > LISTED_ALWAYS ? top : LISTED_ALWAYS;
    char title[64];
    if (table.count > 1 || (table.count == 1 && strcmp(table.lines[0].name, GM_APPLICATION) != 0)) {
        snprintf(title, sizeof(title), "Device %d by library", device);
        gm_page_heading(page, title, NULL);
        gm_page_print(page, GM_DIM, "  %-*s%11s %6s %7s%11s%s\n", NAME_COLUMNS, "", "at the peak",
                      "", "count", "at the end", table.failure_time ? "     at OOM" : "");
        for (size_t i = 0; i < table.count && i < shown; i++)
            print_line(page, &table, &table.lines[i]);
        if (table.count > shown)
            gm_page_print(page, GM_DIM, "  ... and %zu more\n", table.count - shown);
    }
    gm_library_table_free(&table);
    gm_libraries_free(libraries);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

void gm_libraries_json(struct gm_json *json, const struct gm_analysis *analysis, int device)
{
    static const char *const moments[GM_LIBRARY_MOMENTS] = {
        [GM_AT_PEAK] = "at_peak",
        [GM_AT_END] = "at_end",
        [GM_AT_FAILURE] = "at_out_of_memory",
    };
    struct gm_libraries *libraries = gm_libraries_new(analysis->trace);
    struct gm_library_table table = gm_library_table_of(libraries, analysis, device);
    gm_json_open_array(json, "libraries");
    for (size_t i = 0; i < table.count; i++) {
        const struct gm_library_line *line = &table.lines[i];
        gm_json_open_object(json, NULL);
        gm_json_string(json, "library", line->name);
        gm_json_string(json, "pool", line->pool);
        for (unsigned moment = 0; moment < GM_LIBRARY_MOMENTS; moment++) {
            if (moment == GM_AT_FAILURE && !table.failure_time)
                continue;
            gm_json_open_object(json, moments[moment]);
            gm_json_number(json, "bytes", line->at[moment].bytes);
            gm_json_number(json, "count", line->at[moment].count);
            gm_json_close_object(json);
        }
        gm_json_close_object(json);
    }
    gm_json_close_array(json);
    gm_library_table_free(&table);
    gm_libraries_free(libraries);
}
