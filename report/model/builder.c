/* See builder.h. */
#include "model/builder.h"
#include "base/memory.h"

uint64_t gm_builder_time(const struct gm_builder *builder, uint64_t time)
{
    return gm_clock_elapsed(&builder->trace->clock, time);
}

uint32_t gm_builder_place(struct gm_builder *builder, const struct gm_site *site, bool is_block)
{
    int device = gm_kind_is_host(site->kind) ? -1 : site->device;
    uint64_t key = gm_place_key(site->stack, site->api, site->kind, device,
                                (unsigned)site->class | (unsigned)is_block << 3);
    uint32_t number = gm_map_get(&builder->by_key, key);
    if (number != GM_NONE)
        return number;
    struct gm_library owner = gm_libraries_of_site(builder->libraries, site);
    number = gm_model_add_place(builder->model, &(struct gm_model_place){
                                                    .stack = gm_model_add_trace_stack(
                                                        builder->model, site->stack, site->api),
                                                    .api = gm_trace_api(builder->trace, site->api),
                                                    .library = owner.name,
                                                    .pool = owner.pool,
                                                    .kind = site->kind,
                                                    .device = (int8_t)device,
                                                    .leak_class = site->class,
                                                    .unlike = GM_NONE,
                                                    .is_block = is_block,
                                                });
    gm_map_set(&builder->by_key, key, number);
    return number;
}

uint32_t gm_builder_moment(struct gm_builder *builder, const struct gm_model_moment *moment,
                           const struct gm_sites *owners, bool is_block)
{
    struct gm_model_run *run = builder->run;
    GM_RESERVE(builder->moments, builder->moment_capacity, run->moment_count + 1);
    struct gm_model_moment *added = &builder->moments[run->moment_count];
    *added = *moment;
    added->samples = GM_BUILDER_ARRAY(builder, struct gm_model_sample, owners->count);
    added->sample_count = owners->count;
    added->bytes = gm_amount(owners->bytes);
    for (size_t i = 0; i < owners->count; i++) {
        const struct gm_site *site = &owners->entries[i];
        added->samples[i] =
            (struct gm_model_sample){.place = gm_builder_place(builder, site, is_block),
                                     .bytes = gm_amount(site->bytes),
                                     .count = gm_amount(site->count)};
    }
    return (uint32_t)run->moment_count++;
}
