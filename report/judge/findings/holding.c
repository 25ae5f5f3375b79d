/* See holding.h. */
#include "judge/findings/holding.h"
#include "base/memory.h"
#include "base/size.h"
#include "judge/findings/rules.h"
#include "judge/rounds/birthplace.h"
#include "judge/rounds/pass.h"
#include "names/stacks/category.h"
#include <stdio.h>

/* What was held when a request was refused. Bytes. */
struct holding {
    uint64_t total;
    uint64_t grown;                     /* from round to round, by piling up, or in a long pass */
    uint64_t unsure;                    /* of that, what a long pass would look like, too */
    const struct gm_round_growth *most; /* of that, if it made memory run out; NULL */
    bool is_told;                       /* some of it is no leak, but "retained" */
    uint64_t before; /* if something had grown: what the device had held when that began */
    uint64_t once[GM_CATEGORIES]; /* by what it is for, without what of it grew */
    uint64_t all[GM_CATEGORIES];  /* the same with it */
    uint64_t rest;                /* that neither grew nor comes once */
};

/* What a model needs once, however long it is trained. */
static const struct {
    enum gm_category category;
    const char *name;
} comes_once[] = {{GM_CATEGORY_PARAMETER, "parameters"},
                  {GM_CATEGORY_OPTIMIZER, "optimizer state"}};

#define TOLD_SHARE 64u /* what is less of all that was held is left out */
#define ONCE (sizeof(comes_once) / sizeof(comes_once[0]))

/* Takes what had grown when the device was first refused out of `holding`. */
static void take_out_growth(const struct gm_analysis *analysis, int device, enum gm_round_sort sort,
                            struct holding *holding)
{
    const struct gm_rounds *rounds = &analysis->activity.rounds;
    for (size_t i = 0; i < rounds->found_count; i++) {
        const struct gm_round_growth *growth = &rounds->found[i];
        bool is_pool = growth->sort == GM_ROUND_BLOCKS;
        if (growth->device != device || is_pool != (sort == GM_ROUND_BLOCKS) || !growth->at_refusal)
            continue;
        uint64_t *of = &holding->once[growth->category];
        *of -= growth->bytes < *of ? growth->bytes : *of;
        holding->before = holding->grown ? holding->before : growth->before;
        if (growth->evidence & GM_ROUND_REFUSED && growth->weight == GM_ROUND_CERTAIN &&
            !holding->most)
            holding->most = growth;
        holding->is_told |= !gm_retained_is_leak(analysis, growth);
        holding->grown += growth->bytes;
        holding->unsure += growth->weight == GM_ROUND_NOTE ? growth->bytes : 0;
    }
    if (holding->grown > holding->total)
        holding->grown = holding->total;
    if (holding->unsure > holding->grown)
        holding->unsure = holding->grown;
}

static uint64_t less_or_zero(uint64_t whole, uint64_t part)
{
    return whole > part ? whole - part : 0;
}

static struct holding holding_of(const struct gm_analysis *analysis, int device,
                                 enum gm_round_sort sort, uint64_t total,
                                 const struct gm_sites *owners)
{
    struct holding holding = {.total = total};
    for (size_t i = 0; i < owners->count; i++)
        holding.once[gm_categories_get(analysis->categories, owners->entries[i].stack)] +=
            owners->entries[i].bytes;
    memcpy(holding.all, holding.once, sizeof(holding.all));
    take_out_growth(analysis, device, sort, &holding);
    holding.rest = less_or_zero(total, holding.grown);
    for (size_t i = 0; i < ONCE; i++)
        holding.rest = less_or_zero(holding.rest, holding.once[comes_once[i].category]);
    return holding;
}

/* " 96.0 MiB of parameters and 192 MiB of optimizer state come once." */
static void write_once(FILE *out, const struct holding *holding)
{
    size_t written = 0;
    for (size_t i = 0; i < ONCE; i++)
        if (holding->once[comes_once[i].category] > holding->total / TOLD_SHARE)
            fprintf(out, "%s%s of %s", written++ ? " and " : " ",
                    SIZE(holding->once[comes_once[i].category]), comes_once[i].name);
    if (written)
        fputs(" come once.", out);
}

static void write_rest(FILE *out, const struct gm_analysis *analysis, int device,
                       enum gm_round_sort sort, const struct holding *holding)
{
    struct gm_round_pass pass =
        gm_rounds_pass(&analysis->activity.rounds, device, sort, holding->total, holding->rest);
    if (pass.came == GM_ROUND_UNTOLD)
        return;
    if (pass.came == GM_ROUND_EARLIER)
        fprintf(out, " %s had been there for longer", SIZE(holding->rest));
    else if (pass.repeats)
        fprintf(out,
                " %s came last, by lines that allocated again and again: one long pass, or several "
                "that kept it",
                SIZE(holding->rest));
    else
        fprintf(out, " %s came in the pass that was refused", SIZE(holding->rest));
    if (pass.before)
        fprintf(out, "; before it at most %s had been held", SIZE(pass.before));
    fputc('.', out);
}

/* The same beside growth, which hides where a pass begins. */
static void write_rest_beside(FILE *out, const struct holding *holding)
{
    uint64_t before = holding->before < holding->rest ? holding->before : holding->rest;
    if (before >= holding->total / TOLD_SHARE)
        fprintf(out, " %s had been there before.", SIZE(before));
    if (holding->rest - before >= holding->total / TOLD_SHARE)
        fprintf(out, " %s came meanwhile without growing.", SIZE(holding->rest - before));
}

uint64_t gm_held_managed(const struct gm_sites *owners)
{
    uint64_t managed = 0;
    for (size_t i = 0; i < owners->count; i++)
        if (owners->entries[i].kind == GM_KIND_MANAGED)
            managed += owners->entries[i].bytes;
    return managed;
}

/* ---- what to do -------------------------------------------------------------------------------- */

/* What most of it was for. */
static enum gm_category largest_of(const struct holding *holding)
{
    enum gm_category largest = GM_CATEGORY_OTHER;
    for (unsigned i = 0; i < GM_CATEGORIES; i++)
        if (holding->all[i] > holding->all[largest])
            largest = i;
    return largest;
}

static bool is_of_pytorch(const struct gm_analysis *analysis, int device, enum gm_round_sort sort)
{
    return sort == GM_ROUND_BLOCKS &&
           gm_blocks_are_of(&analysis->blocks.device[gm_device_slot(device)], GM_BLOCK_OF_PYTORCH);
}

static const char *remedy_of(const struct gm_analysis *analysis, int device,
                             enum gm_round_sort sort, const struct holding *holding, bool is_alone)
{
    if (holding->most)
        return gm_retained_remedy(analysis, holding->most);
    if (is_alone)
        return "Check the size that is asked for here; if it is meant, make it in parts, or in a "
               "smaller type.";
    if (!is_of_pytorch(analysis, device, sort))
        return "Free before what is not needed here, or take less at a time.";
    switch (largest_of(holding)) {
    case GM_CATEGORY_PARAMETER:
    case GM_CATEGORY_OPTIMIZER:
    case GM_CATEGORY_GRADIENT:
        return "A smaller batch will not do: use a smaller type for weights, 8-bit optimizer "
               "state, or shard them (fully_shard). gpumem fit --remedies measures each.";
    case GM_CATEGORY_ACTIVATION:
        return holding->all[GM_CATEGORY_GRADIENT] || holding->all[GM_CATEGORY_OPTIMIZER]
                   ? "Use a smaller batch, torch.utils.checkpoint, or torch.autocast with "
                     "bfloat16. gpumem fit --remedies measures each."
                   : "If nothing is trained here, wrap it in torch.inference_mode(); else use a "
                     "smaller batch, torch.utils.checkpoint, or torch.autocast with bfloat16.";
    default:
        return "Use a smaller batch, or free before what is not needed here.";
    }
}

struct gm_held gm_held_describe(const struct gm_analysis *analysis, struct gm_finding *finding,
                                enum gm_round_sort sort, uint64_t total,
                                const struct gm_sites *owners)
{
    int device = finding->device;
    struct holding holding = holding_of(analysis, device, sort, total, owners);
    char *text = NULL;
    size_t size = 0;
    bool is_alone =
        finding->bytes && finding->bytes >= less_or_zero(total, gm_held_managed(owners));
    const char *remedy = remedy_of(analysis, device, sort, &holding, is_alone),
               *see = holding.is_told ? " (see \"retained\")" : "";
    FILE *out = open_memstream(&text, &size);
    if (!out)
        return (struct gm_held){gm_copy_text(""), remedy};
    if (holding.most) {
        const struct gm_active_site *site = &analysis->activity.sites[holding.most->site];
        finding->other = site->stack;
        finding->other_api = site->api;
        finding->other_did = "filled the device: what is made there was kept from round to round.";
    } else if (is_alone) {
        fprintf(out, " This request alone is larger than all that was held.");
    }
    if (holding.grown > holding.unsure)
        fprintf(out, " %s of that had grown from round to round%s.",
                SIZE(holding.grown - holding.unsure), see);
    if (holding.unsure)
        fprintf(out, " %s of that had been growing, from round to round or in one long pass%s.",
                SIZE(holding.unsure), see);
    write_once(out, &holding);
    if (holding.grown)
        write_rest_beside(out, &holding);
    else
        write_rest(out, analysis, device, sort, &holding);
    fclose(out);
    return (struct gm_held){text, remedy};
}
