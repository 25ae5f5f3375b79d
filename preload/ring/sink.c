/* See sink.h. */
#include "ring/sink.h"

const struct gm_sink *gm_sink = &gm_file_sink;

void gm_sink_choose(const struct gm_sink *sink)
{
    gm_sink = sink;
}
