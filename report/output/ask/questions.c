/* See questions.h: what all share. */
#include "output/ask/questions.h"

const char *gm_ask_by_name(enum gm_ask_by by)
{
    static const char *const names[] = {[GM_ASK_BY_SITE] = "site",
                                        [GM_ASK_BY_LINE] = "line",
                                        [GM_ASK_BY_LIBRARY] = "library",
                                        [GM_ASK_BY_KIND] = "kind"};
    return names[by];
}

void gm_ask_where(struct gm_ask *ask, struct gm_json *json, uint32_t stack,
                  const struct gm_frame *frame)
{
    if (stack == GM_NONE)
        return;
    if (!frame)
        frame = gm_stack_telling_frame(gm_model_stack(ask->model, stack));
    gm_json_string(json, "site", ID(gm_model_site_id(ask->model, stack)));
    if (!frame)
        return;
    char operation[GM_OPERATION_TEXT];
    gm_answer_frame(&ask->answer, json, frame);
    if (gm_stack_operation(gm_model_stack(ask->model, stack), operation)[0])
        gm_json_string(json, "operation", operation);
    if (!frame->file && frame->module && *frame->module)
        gm_answer_path(&ask->answer, json, "module", frame->module, GM_ANSWER_PLACE_BYTES);
}

void gm_ask_device(struct gm_json *json, int device)
{
    GM_JSON_IF(json, "device", device >= 0, device);
}

void gm_ask_step_findings(struct gm_ask *ask, uint32_t codes, size_t most)
{
    for (size_t i = 0; i < ask->run->finding_count && most; i++) {
        const struct gm_model_finding *finding = &ask->run->findings[i];
        if (!(codes >> finding->code & 1))
            continue;
        gm_answer_step(&ask->answer, gm_finding_name(finding->code), "finding %s",
                       ID(gm_model_finding_id(ask->model, ask->run, finding)));
        most--;
    }
}
