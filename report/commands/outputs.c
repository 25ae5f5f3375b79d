/* See outputs.h. */
#include "commands/outputs.h"
#include "output/export/export.h"
#include "output/html/html.h"
#include "output/json/report_json.h"
#include "output/text/report_text.h"
#include <string.h>

static const struct gm_output *const outputs[] = {
    &gm_output_text,
    &gm_output_json,
    &gm_output_html,
};

static const struct gm_output *const exports[] = {
    &gm_export_collapsed, &gm_export_csv,         &gm_export_memory_viz,
    &gm_export_ndjson,    &gm_export_openmetrics, &gm_export_perfetto,
    &gm_export_pprof,     &gm_export_speedscope,  &gm_export_sqlite,
};

static const struct gm_output *find_output(const struct gm_output *const *table, size_t count,
                                           const char *name)
{
    for (size_t i = 0; i < count; i++)
        if (strcmp(table[i]->name, name) == 0)
            return table[i];
    return NULL;
}

const struct gm_output *gm_output_find(const char *name)
{
    return find_output(outputs, sizeof(outputs) / sizeof(outputs[0]), name);
}

const struct gm_output *gm_export_find(const char *name)
{
    return find_output(exports, sizeof(exports) / sizeof(exports[0]), name);
}
