/* See outputs.h. */
#include "commands/outputs.h"
#include "render/json/report_json.h"
#include "render/text/report_text.h"
#include <string.h>

static const struct gm_output *const outputs[] = {
    &gm_output_text,
    &gm_output_json,
};

const struct gm_output *gm_output_find(const char *name)
{
    for (size_t i = 0; i < sizeof(outputs) / sizeof(outputs[0]); i++)
        if (strcmp(outputs[i]->name, name) == 0)
            return outputs[i];
    return NULL;
}
