/* See trace_file.h. */
#include "input/trace/trace_file.h"
#include "base/memory.h"
#include <gpumem/checksum.h>
#include <string.h>
#include <sys/mman.h>

#define READ_AT_ONCE ((size_t)16 << 20) /* bytes of a file that stay in this process's memory */

/* ---- what the file is made of ---------------------------------------------------------------- */

static bool is_written_once(const struct gm_extent *extent)
{
    return extent->type < 32 && (GM_EXTENTS_WRITTEN_ONCE >> extent->type & 1);
}

bool gm_trace_extent_is_intact(const struct gm_extent *extent)
{
    return extent->used <= extent->length - sizeof(*extent) &&
           gm_extent_checksum(extent) == extent->checksum;
}

void gm_trace_let_go(struct gm_trace *trace, size_t bytes)
{
    trace->read += bytes;
    if (!trace->mapped || trace->read < READ_AT_ONCE)
        return;
    trace->read = 0;
    madvise((void *)(uintptr_t)trace->bytes, trace->size, MADV_DONTNEED);
}

bool gm_trace_is_zero(const unsigned char *bytes, size_t size)
{
    return size == 0 || (bytes[0] == 0 && memcmp(bytes, bytes + 1, size - 1) == 0);
}

bool gm_trace_rest_is_zero(const struct gm_extent *extent)
{
    size_t size = (size_t)extent->length - sizeof(*extent);
    return !is_written_once(extent) ||
           (extent->seal == 0 &&
            gm_trace_is_zero((const unsigned char *)(extent + 1) + extent->used,
                             size - extent->used));
}

bool gm_trace_block_is_sound(const struct gm_block *block, size_t size)
{
    if (size < sizeof(*block) || block->lane >= GM_LANES_MAX || block->count == 0 ||
        block->count > GM_BLOCK_RECORDS_MAX || block->raw_size > GM_BLOCK_RAW_MAX ||
        block->stored_size != size - sizeof(*block) || block->codec > GM_CODEC_ZSTD ||
        block->first_sequence > UINT64_MAX - block->count || block->distance == 0 ||
        block->distance > GM_DISTANCE_MAX || block->near == 0 || block->near > block->distance)
        return false;
    uint64_t columns = gm_block_sets_size(block->count) + (uint64_t)block->lane_column_size;
    for (int column = 0; column < GM_COLUMNS; column++)
        columns += block->column_size[column];
    return columns == block->raw_size;
}

struct gm_lane_source *gm_trace_lane(struct gm_trace *trace, uint32_t number)
{
    if (number >= trace->lane_count) {
        trace->lanes = gm_resize(trace->lanes, (size_t)number + 1, sizeof(*trace->lanes));
        memset(trace->lanes + trace->lane_count, 0,
               (number + 1 - trace->lane_count) * sizeof(*trace->lanes));
        trace->lane_count = (size_t)number + 1;
    }
    return &trace->lanes[number];
}

bool gm_trace_add_block(struct gm_trace *trace, const unsigned char *bytes, size_t size)
{
    const struct gm_block *block = (const struct gm_block *)bytes;
    if (!gm_trace_block_is_sound(block, size))
        return false;
    struct gm_lane_source *source = gm_trace_lane(trace, block->lane);
    GM_APPEND(source->blocks, source->block_capacity, source->block_count,
              (struct gm_block_place){block, block->first_sequence, false});
    return true;
}

/* ---- tables ---------------------------------------------------------------------------------- */

/* Entry `index` of a table of `size`-byte entries, NULL if it is not in the file. */
static const void *table_entry(const struct gm_table *table, uint64_t index, uint64_t used,
                               size_t size, size_t per_extent)
{
    size_t part = (size_t)(index / per_extent), offset = (size_t)(index % per_extent) * size;
    if (index == 0 || index >= used || part >= table->count || !table->parts[part].bytes ||
        offset + size > table->parts[part].size)
        return NULL;
    return table->parts[part].bytes + offset;
}

const struct gm_node *gm_trace_node(const struct gm_trace *trace, uint32_t id)
{
    return table_entry(&trace->nodes, id, trace->header.node_count, sizeof(struct gm_node),
                       GM_NODES_PER_EXTENT);
}

const struct gm_module *gm_trace_module(const struct gm_trace *trace, uint32_t number)
{
    return table_entry(&trace->modules, number, trace->header.module_count,
                       sizeof(struct gm_module), GM_MODULES_PER_EXTENT);
}

const struct gm_script_frame *gm_trace_script_frame(const struct gm_trace *trace, uint64_t index)
{
    return table_entry(&trace->frames, index, trace->header.frame_count,
                       sizeof(struct gm_script_frame), GM_FRAMES_PER_EXTENT);
}

struct gm_text gm_trace_string(const struct gm_trace *trace, uint64_t reference)
{
    const struct gm_text none = {"", 0};
    const struct gm_table *table = &trace->strings;
    size_t part = (size_t)(reference / GM_STRINGS_PER_EXTENT);
    size_t offset = (size_t)(reference % GM_STRINGS_PER_EXTENT);
    uint16_t length;
    if (reference == 0 || reference >= trace->header.string_bytes || part >= table->count ||
        !table->parts[part].bytes)
        return none;
    size_t size = table->parts[part].size;
    if (offset + sizeof(length) > size)
        return none;
    memcpy(&length, table->parts[part].bytes + offset, sizeof(length));
    if (length > GM_STRING_LENGTH_MAX || length > size - offset - sizeof(length))
        return none;
    return (struct gm_text){(const char *)table->parts[part].bytes + offset + sizeof(length),
                            length};
}

const char *gm_trace_api(const struct gm_trace *trace, uint16_t api)
{
    return api < trace->api_count ? trace->api_names[api] : "";
}

bool gm_trace_api_is_pooled(const struct gm_trace *trace, uint16_t api)
{
    const char *name = gm_trace_api(trace, api);
    return strstr(name, "Async") || strstr(name, "FromPool");
}

struct gm_text gm_trace_field(const char *field, size_t size)
{
    return (struct gm_text){field, strnlen(field, size)};
}

struct gm_ended gm_ended_of(const struct gm_trace_header *header)
{
    struct gm_ended ended = {.exit_code = -1};
    uint32_t status = header->status;
    if (!(status & GM_STATUS_TOLD))
        return ended;
    ended.signal = (int)(status & 0x7f);
    ended.is_bare = header->end == GM_END_NONE && gm_status_is_bare_exit(status);
    if (!ended.signal && (header->end != GM_END_NONE || ended.is_bare))
        ended.exit_code = (int)(status >> 8 & 0xff);
    return ended;
}
