/* See baseline.h. */
#define XXH_INLINE_ALL
#include "tools/gate/baseline.h"
#include "base/each.h"
#include "base/memory.h"
#include "base/order.h"
#include "base/text.h"
#include <ctype.h>
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <xxhash.h>

#define LINE_SIZE_MAX 65536
#define HEAD                                                                                       \
    "# gpumem baseline 1: known issues, written by gpumem check --update-baseline. Lines may be\n" \
    "# taken out; a line is: class, fingerprint, bytes, allocations, place.\n"

GM_ORDER(by_fingerprint, struct gm_baseline_entry, GM_UP(fingerprint))

/* The number at *text, and the blank behind it. */
static bool take_number(const char **text, int base, uint64_t max, uint64_t *number)
{
    char *end;
    errno = 0;
    *number = strtoull(*text, &end, base);
    bool is_number =
        isxdigit((unsigned char)**text) && !errno && *number <= max && (*end == ' ' || *end == 0);
    *text = *end ? end + 1 : end;
    return is_number;
}

static bool read_entry(struct gm_baseline *baseline, const char *line)
{
    size_t size = strcspn(line, " ");
    const char *rest = line + size + (line[size] == ' ');
    uint64_t fingerprint, bytes, count;
    if (!size || !take_number(&rest, 16, UINT64_MAX, &fingerprint) ||
        !take_number(&rest, 10, INT64_MAX, &bytes) || !take_number(&rest, 10, INT64_MAX, &count))
        return false;
    GM_APPEND(baseline->entries, baseline->capacity, baseline->count,
              (struct gm_baseline_entry){.fingerprint = fingerprint,
                                         .bytes = (int64_t)bytes,
                                         .count = (int64_t)count,
                                         .code = gm_clean_copy((struct gm_text){line, size}),
                                         .text = gm_copy_text(rest)});
    return true;
}

/* Both sides of a merge may have an entry: the larger one counts. */
static void unite_entries(struct gm_baseline *baseline)
{
    size_t kept = 0;
    qsort(baseline->entries, baseline->count, sizeof(*baseline->entries), by_fingerprint);
    for (size_t i = 0; i < baseline->count; i++) {
        struct gm_baseline_entry *entry = &baseline->entries[i];
        struct gm_baseline_entry *last = kept ? &baseline->entries[kept - 1] : NULL;
        if (!last || last->fingerprint != entry->fingerprint) {
            baseline->entries[kept++] = *entry;
            continue;
        }
        last->bytes = entry->bytes > last->bytes ? entry->bytes : last->bytes;
        last->count = entry->count > last->count ? entry->count : last->count;
        free(entry->code);
        free(entry->text);
    }
    baseline->count = kept;
}

bool gm_baseline_read(struct gm_baseline *baseline, FILE *file, const char *name)
{
    char *line = gm_allocate(LINE_SIZE_MAX, 1);
    bool good = true;
    for (unsigned number = 1; good && fgets(line, LINE_SIZE_MAX, file); number++) {
        char *text = number == 1 ? gm_behind_mark(line) : line;
        line[strcspn(line, "\r\n")] = 0;
        good = !*text || *text == '#' || read_entry(baseline, text);
        if (!good)
            fprintf(stderr, "gpumem: %s:%u: not a line of a baseline\n", name, number);
    }
    free(line);
    if (good && ferror(file)) {
        fprintf(stderr, "gpumem: %s: %s\n", name, strerror(errno));
        good = false;
    }
    if (baseline->count)
        unite_entries(baseline);
    return good;
}

bool gm_baseline_load(struct gm_baseline *baseline, const char *path, bool may_lack)
{
    FILE *file = fopen(path, "re");
    if (!file) {
        if (may_lack && errno == ENOENT)
            return true;
        fprintf(stderr, "gpumem: %s: %s\n", path, strerror(errno));
        return false;
    }
    bool good = gm_baseline_read(baseline, file, path);
    fclose(file);
    return good;
}

void gm_baseline_free(struct gm_baseline *baseline)
{
    for (size_t i = 0; i < baseline->count; i++) {
        free(baseline->entries[i].code);
        free(baseline->entries[i].text);
    }
    free(baseline->entries);
    *baseline = (struct gm_baseline){0};
}

const struct gm_baseline_entry *gm_baseline_find(const struct gm_baseline *baseline,
                                                 uint64_t fingerprint)
{
    struct gm_baseline_entry key = {.fingerprint = fingerprint};
    return baseline->count
               ? bsearch(&key, baseline->entries, baseline->count, sizeof(key), by_fingerprint)
               : NULL;
}

uint64_t gm_peak_fingerprint(int64_t rank, int device)
{
    const int64_t of[] = {rank, device};
    return XXH64(of, sizeof(of), 0x7065616b); /* "peak" */
}

/* As the lines sort: a change of one issue changes one line. */
static int as_written(const void *left, const void *right)
{
    const struct gm_baseline_entry *a = left, *b = right;
    int by_code = strcmp(a->code, b->code);
    return by_code ? by_code : by_fingerprint(left, right);
}

static void add_entry(struct gm_baseline *baseline, struct gm_baseline_entry entry,
                      const char *code)
{
    GM_RESERVE(baseline->entries, baseline->capacity, baseline->count + 1);
    entry.code = gm_copy_text(code);
    baseline->entries[baseline->count++] = entry;
}

void gm_baseline_add_issues(struct gm_baseline *baseline, const struct gm_issues *issues)
{
    for (size_t i = 0; i < issues->count; i++) {
        const struct gm_issue *issue = &issues->entries[i];
        struct gm_baseline_entry entry = {GM_SAME(issue, fingerprint, bytes, count)};
        if (issue->known == GM_ISSUE_SUPPRESSED || issue->level == GM_ISSUE_NOTE || !*issue->stack)
            continue;
        if (asprintf(&entry.text, "%s %s", issue->function, gm_name_behind_slash(issue->file)) < 0)
            entry.text = gm_copy_text("");
        add_entry(baseline, entry, issue->code);
    }
}

void gm_baseline_add_peak(struct gm_baseline *baseline, int64_t rank, int device, int64_t bytes)
{
    char text[64];
    int used = rank >= 0 ? snprintf(text, sizeof(text), "rank %" PRId64 " ", rank) : 0;
    if (device >= 0)
        snprintf(text + used, sizeof(text) - (size_t)used, "device %d", device);
    else
        snprintf(text + used, sizeof(text) - (size_t)used, "pinned");
    struct gm_baseline_entry entry = {.fingerprint = gm_peak_fingerprint(rank, device),
                                      .bytes = bytes,
                                      .text = gm_copy_text(text)};
    add_entry(baseline, entry, "peak");
}

bool gm_baseline_write(const char *path, struct gm_baseline *baseline)
{
    char *made = NULL;
    FILE *file = asprintf(&made, "%s.new", path) < 0 ? NULL : fopen(made, "we");
    if (file) {
        fputs(HEAD, file);
        if (baseline->count) {
            unite_entries(baseline);
            qsort(baseline->entries, baseline->count, sizeof(*baseline->entries), as_written);
        }
        for (size_t i = 0; i < baseline->count; i++) {
            const struct gm_baseline_entry *entry = &baseline->entries[i];
            fprintf(file, "%s %016" PRIx64 " %" PRId64 " %" PRId64 " %s\n", entry->code,
                    entry->fingerprint, entry->bytes, entry->count, entry->text);
        }
    }
    bool good = file && !ferror(file);
    if (file)
        good = fclose(file) == 0 && good;
    good = good && rename(made, path) == 0;
    if (!good) {
        fprintf(stderr, "gpumem: %s: %s\n", path, strerror(errno));
        if (made)
            unlink(made);
    }
    free(made);
    return good;
}
