/* See brief_output.h. */
#include "output/brief/brief_output.h"
#include "base/each.h"
#include "base/memory.h"
#include "output/brief/brief.h"
#include "output/headline.h"
#include "output/text/report_text.h"
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#define FINDINGS_SHOWN 3u
#define STACKS_SHOWN 5u

/* ---- findings -------------------------------------------------------------------------------- */

/* What to do is said once. */
static bool is_said_before(const struct gm_view *view, const struct gm_model_finding *finding)
{
    for (const struct gm_model_finding *one = view->run->findings; one < finding; one++)
        if (one->remedy && strcmp(one->remedy, finding->remedy) == 0)
            return true;
    return false;
}

static void print_finding(const struct gm_view *view, struct gm_brief_sites *sites,
                          const struct gm_model_finding *finding)
{
    static const enum gm_style styles[] = {
        [GM_SEVERITY_NOTE] = GM_BOLD,
        [GM_SEVERITY_WARNING] = GM_WARNING,
        [GM_SEVERITY_ERROR] = GM_BAD,
    };
    struct gm_page *page = view->page;
    const struct gm_frame *frame = gm_model_finding_frame(view->model, finding);
    gm_page_print(page, styles[finding->severity], "%-8s", gm_severity_name(finding->severity));
    gm_page_print(page, GM_BOLD, " %s", gm_finding_name(finding->code));
    if (finding->bytes)
        gm_page_print(page, GM_PLAIN, ", %s", SIZE(finding->bytes));
    if (finding->device >= 0)
        gm_page_print(page, GM_PLAIN, " on device %d", finding->device);
    gm_page_print(page, GM_DIM, "  %s\n", ID(gm_model_finding_id(view->model, view->run, finding)));
    if (frame) {
        char number[16];
        int used = snprintf(number, sizeof(number), "[%u] ",
                            gm_brief_number(sites, view->model, finding->stack));
        gm_page_print(page, GM_BOLD, "         %s", number);
        gm_page_frame(page, frame, gm_page_columns(page) - 9 - (unsigned)used);
        fputc('\n', page->out);
    }
    gm_finding_by_text(view, finding, 9);
    gm_page_paragraph(page, GM_PLAIN, 9, "%s", finding->cause);
    if (finding->remedy && !is_said_before(view, finding))
        gm_page_paragraph(page, GM_DIM, 9, "Try: %s", finding->remedy);
}

static void print_findings(const struct gm_view *view, struct gm_brief_sites *sites)
{
    const struct gm_model_run *run = view->run;
    size_t shown = run->finding_count < FINDINGS_SHOWN ? run->finding_count : FINDINGS_SHOWN;
    if (run->finding_count)
        fputc('\n', view->page->out);
    for (size_t i = 0; i < shown; i++)
        print_finding(view, sites, &run->findings[i]);
    if (run->finding_count > shown)
        gm_page_print(view->page, GM_DIM, "         and %zu more (-v)\n",
                      run->finding_count - shown);
}

/* ---- all ------------------------------------------------------------------------------------- */

static void print_page(const struct gm_view *view, struct gm_brief_sites *sites)
{
    gm_header_text(view);
    print_findings(view, sites);
    gm_brief_devices(view, sites);
    gm_brief_pinned(view);
    gm_brief_left(view, sites);
    gm_brief_stacks(view, sites, STACKS_SHOWN);
    gm_notes_section_text(view);
    gm_page_print(view->page, GM_DIM, "\nMore: gpumem report -v");
    if (sites->count == 1)
        gm_page_print(view->page, GM_DIM, "; of one place: --site 1");
    else if (sites->count)
        gm_page_print(view->page, GM_DIM, "; of one place: --site 1 to %zu", sites->count);
    fputc('\n', view->page->out);
}

/* The page is made and thrown away, for the numbers that it gives. */
static struct gm_brief_sites number_sites(const struct gm_view *view)
{
    struct gm_brief_sites sites = {0};
    struct gm_page page = *view->page;
    struct gm_view unseen = *view;
    char *text = NULL;
    size_t size = 0;
    unseen.page = &page;
    page.out = open_memstream(&text, &size);
    if (!page.out)
        return sites;
    print_page(&unseen, &sites);
    fclose(page.out);
    free(text);
    return sites;
}

static void print_site(const struct gm_view *view, const struct gm_output_options *options)
{
    struct gm_brief_sites sites = number_sites(view);
    unsigned number = options->site;
    if (options->site_id)
        number =
            gm_brief_number(&sites, view->model,
                            gm_model_stack_of_id(view->model, (uint32_t)(options->site_id - 1)));
    if (view->run->as_of_ns)
        gm_page_print(view->page, GM_WARNING,
                      "The process is still running; as of %s after the start\n",
                      TIME(view->run->as_of_ns));
    if (number <= sites.count)
        gm_brief_site(view, number, sites.stacks[number - 1]);
    free(sites.stacks);
}

static struct gm_view view_of(const struct gm_model *model, const struct gm_output_options *options,
                              struct gm_page *page)
{
    *page = (struct gm_page){GM_SAME(options, colour, all_frames, columns, ascii)};
    return (struct gm_view){page, model, &model->runs[0], options->top};
}

/* "there is no device 7, but 0, 1": of those that memory was allocated on. */
static char *say_devices(const struct gm_model_run *run, int device)
{
    char text[256], *end = text + sizeof(text);
    char *at = text + snprintf(text, sizeof(text), "there is no device %d", device);
    const char *before = ", but ";
    for (size_t i = 0; i < run->device_count && at < end; i++)
        if (run->devices[i].is_listed && run->devices[i].id >= 0) {
            at += snprintf(at, (size_t)(end - at), "%s%d", before, run->devices[i].id);
            before = ", ";
        }
    return gm_copy_text(text);
}

static char *say_sites(const struct gm_model *model, const struct gm_output_options *options)
{
    char text[96];
    if (options->site_id) {
        uint32_t id = (uint32_t)(options->site_id - 1);
        snprintf(text, sizeof(text), "there is no place with the id %08" PRIx32, id);
        return gm_model_stack_of_id(model, id) == GM_NONE ? gm_copy_text(text) : NULL;
    }
    struct gm_page page;
    struct gm_view view = view_of(model, options, &page);
    struct gm_brief_sites sites = number_sites(&view);
    snprintf(text, sizeof(text), "there is no place [%u], the page has %zu", options->site,
             sites.count);
    free(sites.stacks);
    return options->site > sites.count ? gm_copy_text(text) : NULL;
}

char *gm_brief_unanswered(const struct gm_model *model, const struct gm_output_options *options)
{
    const struct gm_model_run *run = &model->runs[0];
    int device = options->filter.device;
    if (options->filter.is_set && device != GM_FILTER_ANY && !gm_model_device(run, device))
        return say_devices(run, device);
    return options->site || options->site_id ? say_sites(model, options)
                                             : gm_no_moment_text(run, &options->when);
}

static void write_brief(FILE *out, const struct gm_model *model,
                        const struct gm_output_options *options)
{
    struct gm_page page;
    struct gm_view view = view_of(model, options, &page);
    bool is_one = model->run_count == 1 && !model->runs[0].base_path;
    if (!is_one) {
        gm_output_text.write(out, model, options);
        return;
    }
    page.out = out;
    if (options->site || options->site_id) {
        print_site(&view, options);
        return;
    }
    struct gm_brief_sites sites = {0};
    if (options->when.kind != GM_WHEN_DEFAULT || options->filter.is_set) {
        gm_header_text(&view);
        gm_brief_held(&view, &sites, &options->when, &options->filter);
    } else {
        print_page(&view, &sites);
    }
    free(sites.stacks);
    if (options->many)
        fputs("\n----------------------------------------------------------------\n\n", out);
}

const struct gm_output gm_output_brief = {
    .name = "brief", .needs = GM_NEEDS_ALL, .write = write_brief};
