/* See sections.h. */
#include "render/json/sections.h"
#include "verdict/verdict.h"

void gm_verdict_json(struct gm_json *json, const struct gm_analysis *analysis)
{
    static const char *const states[] = {[GM_VERDICT_NOTHING] = "nothing",
                                         [GM_VERDICT_LIVE] = "live",
                                         [GM_VERDICT_LEAKS] = "leaks",
                                         [GM_VERDICT_NO_LEAKS] = "no leaks",
                                         [GM_VERDICT_NO_LEAKS_SEEN] = "no leaks seen"};
    struct gm_verdict verdict = gm_verdict_of(analysis);
    const struct {
        const char *name;
        const struct gm_living *living;
    } members[] = {{"on_devices", &verdict.on_devices},
                   {"on_host", &verdict.on_host},
                   {"leaked", &verdict.leaked}};
    gm_json_open_object(json, "verdict");
    gm_json_string(json, "state", states[verdict.state]);
    for (size_t i = 0; i < sizeof(members) / sizeof(members[0]); i++) {
        gm_json_open_object(json, members[i].name);
        gm_json_number(json, "bytes", members[i].living->bytes);
        gm_json_number(json, "count", members[i].living->count);
        gm_json_close_object(json);
    }
    gm_json_close_object(json);
}
