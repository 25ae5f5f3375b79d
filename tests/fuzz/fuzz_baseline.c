/* Fuzz target: a baseline of the gate. What is read must be read the same again from what it is written as. */
#include "fuzz.h"
#include "tools/gate/baseline.h"
#include <stdio.h>
#include <unistd.h>

static bool read_baseline(struct gm_baseline *baseline, FILE *file)
{
    bool good = gm_baseline_read(baseline, file, "baseline");
    fclose(file);
    return good;
}

static void demand_same(const struct gm_baseline *one, const struct gm_baseline *other)
{
    demand(one->count == other->count);
    for (size_t i = 0; i < one->count; i++) {
        const struct gm_baseline_entry *same = gm_baseline_find(other, one->entries[i].fingerprint);
        demand(same && same->bytes == one->entries[i].bytes &&
               same->count == one->entries[i].count);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static char path[64];
    struct gm_baseline one = {0}, other = {0};
    char *text = text_of(data, size);
    FILE *file = fmemopen(text, strlen(text) + 1, "r");
    demand(file != NULL);
    if (!*path)
        snprintf(path, sizeof(path), "/tmp/gpumem-fuzz-baseline-%d", getpid());
    if (read_baseline(&one, file) && one.count) {
        demand(gm_baseline_write(path, &one));
        file = fopen(path, "r");
        demand(file != NULL && read_baseline(&other, file));
        demand_same(&one, &other);
        unlink(path);
    }
    gm_baseline_free(&one);
    gm_baseline_free(&other);
    free(text);
    return 0;
}
