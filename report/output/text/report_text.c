/* See report_text.h. */
#include "output/text/report_text.h"
#include "base/each.h"
#include "base/memory.h"
#include "output/headline.h"
#include "output/text/sections.h"
#include <inttypes.h>
#include <stdlib.h>

#define STACKS_SHOWN 5u /* on the page */

/* What `report -v` has beside the page. */
static void print_more(const struct gm_view *view)
{
    gm_growth_text(view);
    gm_refused_text(view);
    gm_phases_text(view);
    gm_lifetimes_text(view);
    gm_transfers_text(view);
    gm_contexts_text(view);
}

static void print_page(const struct gm_view *view)
{
    size_t count;
    gm_header_text(view);
    gm_findings_text(view);
    if (view->verbose)
        gm_pool_failures_text(view);
    gm_devices_text(view);
    gm_pinned_text(view);
    gm_left_text(view);
    if (view->verbose)
        print_more(view);
    gm_stacks_text(view, view->verbose ? SIZE_MAX : STACKS_SHOWN);
    gm_notes_section_text(view);
    if (view->verbose)
        return;
    count = view->sites->count;
    gm_page_print(view->page, GM_DIM, "\nMore: gpumem report -v");
    if (count == 1)
        gm_page_print(view->page, GM_DIM, "; of one place: --site 1");
    else if (count)
        gm_page_print(view->page, GM_DIM, "; of one place: --site 1 to %zu", count);
    fputc('\n', view->page->out);
}

/* The page is made and thrown away, for the numbers that it gives: `report -v` has the same, and more. */
static void number_sites(const struct gm_view *view)
{
    struct gm_page page = *view->page;
    struct gm_view unseen = *view;
    char *text = NULL;
    size_t size = 0;
    unseen.page = &page;
    page.out = open_memstream(&text, &size);
    if (!page.out)
        return;
    print_page(&unseen);
    fclose(page.out);
    free(text);
}

static void print_site(const struct gm_view *view, const struct gm_output_options *options)
{
    unsigned number = options->site;
    number_sites(view);
    if (options->site_id)
        number =
            gm_site_number(view->sites, view->model,
                           gm_model_stack_of_id(view->model, (uint32_t)(options->site_id - 1)));
    if (view->run->as_of_ns)
        gm_page_print(view->page, GM_WARNING,
                      "The process is still running; as of %s after the start\n",
                      TIME(view->run->as_of_ns));
    if (number <= view->sites->count)
        gm_site_text(view, number, view->sites->stacks[number - 1]);
}

static struct gm_view view_of(const struct gm_model *model, const struct gm_output_options *options,
                              struct gm_page *page, struct gm_page_sites *sites)
{
    *page = (struct gm_page){GM_SAME(options, colour, all_frames, columns, ascii)};
    *sites = (struct gm_page_sites){0};
    return (struct gm_view){.page = page,
                            .model = model,
                            .run = &model->runs[0],
                            .sites = sites,
                            GM_SAME(options, top)};
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
    struct gm_page_sites sites;
    struct gm_view view = view_of(model, options, &page, &sites);
    number_sites(&view);
    snprintf(text, sizeof(text), "there is no place [%u], the page has %zu", options->site,
             sites.count);
    free(sites.stacks);
    return options->site > sites.count ? gm_copy_text(text) : NULL;
}

char *gm_text_unanswered(const struct gm_model *model, const struct gm_output_options *options)
{
    const struct gm_model_run *run = &model->runs[0];
    int device = options->filter.device;
    if (options->filter.is_set && device != GM_FILTER_ANY && !gm_model_device(run, device))
        return say_devices(run, device);
    return options->site || options->site_id ? say_sites(model, options)
                                             : gm_no_moment_text(run, &options->when);
}

static void write_text(FILE *out, const struct gm_model *model,
                       const struct gm_output_options *options)
{
    struct gm_page page;
    struct gm_page_sites sites;
    struct gm_view view = view_of(model, options, &page, &sites);
    page.out = out;
    if (options->site || options->site_id) {
        print_site(&view, options);
    } else if (options->when.kind != GM_WHEN_DEFAULT || options->filter.is_set) {
        gm_header_text(&view);
        gm_held_text(&view, &options->when, &options->filter);
    } else {
        if (options->verbose)
            number_sites(&view);
        view.verbose = options->verbose; /* a part is shown as a whole in any case */
        print_page(&view);
    }
    free(sites.stacks);
    if (options->many)
        fputs("\n----------------------------------------------------------------\n\n", out);
}

const struct gm_output gm_output_text = {
    .name = "text", .needs = GM_NEEDS_ALL, .write = write_text};
