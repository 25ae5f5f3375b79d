/* See whatif_page.h. */
#include "commands/whatif_page.h"
#include "base/size.h"
#include "output/json.h"

#define SET_COLUMNS 35

/* Calls that take memory from the device, and their time in ns; 0: that is not known. */
struct calls {
    uint64_t count, ns;
};

static struct calls calls_of(const struct gm_whatif *whatif, const struct gm_whatif_setting *one)
{
    uint64_t count = one->outcome.device_allocations, ns = 0;
    if (!one->settings.async)
        ns = gm_recorded_device_ns(&whatif->recorded, one->settings.expandable, count);
    return (struct calls){count, ns};
}

static void print_whatif_line(struct gm_page *page, const char *name, uint64_t peak,
                              struct calls calls, uint64_t refused)
{
    gm_page_print(page, GM_PLAIN, "  ");
    gm_page_cell(page, name, SET_COLUMNS);
    gm_page_print(page, refused ? GM_BAD : GM_PLAIN, "%11s %8s%8s%s\n", SIZE(peak),
                  COUNT(calls.count), calls.ns ? TIME(calls.ns) : "",
                  refused ? "  out of memory" : "");
}

static void print_refusal(struct gm_page *page, const struct gm_whatif *whatif,
                          const struct gm_whatif_setting *one)
{
    const struct gm_outcome *outcome = &one->outcome;
    if (!outcome->out_of_memory)
        return;
    const struct gm_step *step = &whatif->history.steps[outcome->refused_step];
    uint64_t begin = whatif->history.steps[0].time_ns;
    char path[GM_PATH_SIZE];
    gm_page_paragraph(
        page, GM_DIM, 4, "%s refused, the first of %s asked %s after the beginning%s%s",
        COUNT(outcome->out_of_memory), SIZE(outcome->refused_size), TIME(step->time_ns - begin),
        one->place ? ", at " : "", one->place ? gm_path_spelling(one->place, path) : "");
}

static void print_whatif_settings(struct gm_page *page, const struct gm_whatif *whatif)
{
    gm_page_heading(page, "Under other settings", NULL);
    const struct gm_recorded *recorded = &whatif->recorded;
    gm_page_print(page, GM_DIM, "  %-*s%11s %8s%8s\n", SET_COLUMNS, "", "reserved", "segments",
                  recorded->device_ns ? "in" : "");
    print_whatif_line(page, "recorded", recorded->reserved_peak,
                      (struct calls){recorded->device_allocations, recorded->device_ns},
                      recorded->out_of_memory);
    for (size_t i = 0; i < whatif->count; i++) {
        const struct gm_whatif_setting *one = &whatif->settings[i];
        char name[SET_COLUMNS];
        snprintf(name, sizeof(name), "%s (modelled)", one->set);
        print_whatif_line(page,
                          one->settings.async ? name
                          : one->set[0]       ? one->set
                                              : "as recorded",
                          one->outcome.reserved_peak, calls_of(whatif, one),
                          one->outcome.out_of_memory);
        print_refusal(page, whatif, one);
    }
}

static void print_advice(struct gm_page *page, const struct gm_whatif *whatif)
{
    const struct gm_whatif_setting *first = whatif->count ? &whatif->settings[0] : NULL;
    putc('\n', page->out);
    if (!first || !gm_whatif_helps(whatif, first))
        gm_page_paragraph(page, GM_PLAIN, 0, "No setting would have helped by a hundredth.");
    else
        gm_page_paragraph(
            page, GM_GOOD, 0, "Try PYTORCH_ALLOC_CONF=%s first: %s reserved instead of %s%s%s.",
            first->set, SIZE(first->outcome.reserved_peak), SIZE(whatif->recorded.reserved_peak),
            whatif->recorded.out_of_memory ? ", and nothing refused" : "",
            first->settings.async ? ", by a model of another allocator" : "");
}

static void print_bounds(struct gm_page *page, const struct gm_whatif *whatif)
{
    struct gm_whatif_loss loss = gm_whatif_loss(whatif);
    gm_page_paragraph(page, GM_PLAIN, 0,
                      "Of %s reserved, %s were fragmentation, %s of them avoidable by the settings "
                      "below. A packing that knows the future needs %s; at most %s were in use at "
                      "a time.",
                      SIZE(whatif->recorded.reserved_peak), SIZE(loss.fragmentation),
                      SIZE(loss.avoidable), SIZE(whatif->bounds.best_packing),
                      SIZE(whatif->bounds.live_peak));
}

void gm_whatif_text(struct gm_page *page, const struct gm_whatif *whatif, bool is_advice)
{
    const struct gm_as_recorded *as = &whatif->as_recorded;
    gm_page_print(page, GM_BOLD, "gpumem whatif");
    gm_page_print(page, GM_PLAIN, "  device %d", whatif->history.device);
    if (whatif->memory)
        gm_page_print(page, GM_PLAIN, ", with %s", SIZE(whatif->memory));
    gm_page_print(page, GM_PLAIN, "\n\n");
    print_bounds(page, whatif);
    gm_page_paragraph(
        page, as->equal_events == as->events ? GM_DIM : GM_WARNING, 0,
        "The replica of PyTorch's allocator did %s of %s recorded events alike%s.",
        COUNT(as->equal_events), COUNT(as->events),
        as->equal_events >= as->events - as->events / 1000
            ? ""
            : ": what follows is an estimate (several streams or pools, or another allocator)");
    if (!whatif->history.has_sizes_asked)
        gm_page_paragraph(page, GM_DIM, 0,
                          "This trace has the sizes of blocks, not those asked for: under other "
                          "settings at least "
                          "one figure can be off by what was rounded up.");
    print_whatif_settings(page, whatif);
    if (is_advice)
        print_advice(page, whatif);
}

/* ---- JSON ------------------------------------------------------------------------------------ */

static void write_setting(struct gm_json *json, const struct gm_whatif *whatif,
                          const struct gm_whatif_setting *one)
{
    const struct gm_outcome *outcome = &one->outcome;
    struct calls calls = calls_of(whatif, one);
    gm_json_open_object(json, NULL);
    gm_json_string(json, "set", one->set);
    GM_JSON_MEMBERS(json, outcome, reserved_peak, out_of_memory, device_allocations);
    GM_JSON_IF(json, "device_ns", calls.ns, calls.ns);
    gm_json_number(json, "retries", outcome->retries);
    gm_json_bool(json, "modelled", one->settings.async);
    if (outcome->out_of_memory) {
        const struct gm_step *step = &whatif->history.steps[outcome->refused_step];
        gm_json_open_object(json, "first_refused");
        gm_json_number(json, "request", outcome->refused_size);
        gm_json_number(json, "time_ns", step->time_ns - whatif->history.steps[0].time_ns);
        gm_json_string(json, "place", one->place);
        gm_json_close_object(json);
    } else {
        gm_json_null(json, "first_refused");
    }
    gm_json_close_object(json);
}

void gm_whatif_json(FILE *out, const struct gm_whatif *whatif)
{
    struct gm_json writer = {.out = out}, *json = &writer;
    gm_json_open_object(json, NULL);
    gm_json_number(json, "format", 1);
    gm_json_signed(json, "device", whatif->history.device);
    GM_JSON_IF(json, "memory", whatif->memory, whatif->memory);
    gm_json_bool(json, "sizes_asked", whatif->history.has_sizes_asked);
    gm_json_open_object(json, "recorded");
    GM_JSON_MEMBERS(json, &whatif->recorded, reserved_peak, device_allocations, out_of_memory);
    GM_JSON_IF(json, "device_ns", whatif->recorded.device_ns, whatif->recorded.device_ns);
    gm_json_close_object(json);
    GM_JSON_OBJECT(json, "as_recorded", &whatif->as_recorded, events, equal_events, equal_reserved,
                   reserved_peak);
    gm_json_open_array(json, "settings");
    for (size_t i = 0; i < whatif->count; i++)
        write_setting(json, whatif, &whatif->settings[i]);
    gm_json_close_array(json);
    GM_JSON_OBJECT(json, "bounds", &whatif->bounds, live_peak, best_packing);
    struct gm_whatif_loss loss = gm_whatif_loss(whatif);
    GM_JSON_OBJECT(json, "loss", &loss, fragmentation, avoidable);
    gm_json_close_object(json);
    gm_json_end(json);
}
