/* What `gpumem whatif` found, as text and as JSON (docs/what-if.md). */
#ifndef GPUMEM_REPORT_COMMANDS_WHATIF_PAGE_H
#define GPUMEM_REPORT_COMMANDS_WHATIF_PAGE_H

#include "output/page.h"
#include "replay/replica/whatif.h"

void gm_whatif_text(struct gm_page *page, const struct gm_whatif *whatif, bool is_advice);
void gm_whatif_json(FILE *out, const struct gm_whatif *whatif);

/* Replays a trace or snapshot under all settings that make sense, and hands over what came of it, the best setting
 * first. An exit code; after a complaint not GM_EXIT_FINE. */
typedef void gm_whatif_taker(const struct gm_whatif *whatif, void *argument);
int gm_whatif_advise(const char *path, gm_whatif_taker *take, void *argument);

#endif
