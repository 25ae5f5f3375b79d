/* See image.h. */
#include "input/torch/image.h"
#include "base/memory.h"
#include <gpumem/checksum.h>
#include <stdlib.h>
#include <string.h>

#define PART ((size_t)1 << 20)

static void *grow_bytes(struct gm_bytes *bytes, size_t size)
{
    GM_RESERVE(bytes->bytes, bytes->capacity, bytes->size + size);
    void *at = bytes->bytes + bytes->size;
    bytes->size += size;
    return at;
}

static void append_bytes(struct gm_bytes *bytes, const void *from, size_t size)
{
    void *to = grow_bytes(bytes, size);
    if (size)
        memcpy(to, from, size);
}

void gm_image_begin(struct gm_image *image)
{
    static const char zero[sizeof(struct gm_module)];
    struct gm_trace_header *header = &image->header;
    *image = (struct gm_image){0};
    memcpy(header->magic, GM_TRACE_MAGIC, sizeof(header->magic));
    header->endian = GM_TRACE_ENDIAN;
    header->major = GM_TRACE_MAJOR;
    header->minor = GM_TRACE_MINOR;
    header->header_size = GM_TRACE_PAGE;
    header->record_size = sizeof(struct gm_record);
    header->node_size = sizeof(struct gm_node);
    header->module_size = sizeof(struct gm_module);
    header->frame_size = sizeof(struct gm_script_frame);
    header->clock = GM_CLOCK_MONOTONIC;
    /* Number 0 of each table is none. */
    append_bytes(&image->strings, zero, sizeof(uint16_t));
    append_bytes(&image->modules, zero, sizeof(struct gm_module));
    append_bytes(&image->nodes, zero, sizeof(struct gm_node));
    append_bytes(&image->frames, zero, sizeof(struct gm_script_frame));
    append_bytes(&image->names, zero, 1);
    image->name_count = 1;
}

/* ---- tables ---------------------------------------------------------------------------------- */

static bool is_string(const struct gm_image *image, uint32_t reference, struct gm_text text)
{
    uint16_t size;
    memcpy(&size, image->strings.bytes + reference, sizeof(size));
    return size == text.size &&
           memcmp(image->strings.bytes + reference + sizeof(size), text.bytes, size) == 0;
}

uint32_t gm_image_string(struct gm_image *image, struct gm_text text)
{
    struct gm_bytes *strings = &image->strings;
    uint64_t *counters = image->header.counters;
    if (text.size == 0)
        return 0;
    if (text.size > GM_STRING_LENGTH_MAX) {
        counters[GM_COUNT_STRING_CUT]++;
        text.size = GM_STRING_LENGTH_MAX;
    }
    uint64_t hash = XXH3_64bits(text.bytes, text.size);
    uint32_t known = gm_map_get(&image->by_text, hash);
    if (known != GM_NONE && is_string(image, known, text))
        return known;
    uint16_t size = (uint16_t)text.size;
    size_t room = sizeof(size) + size,
           left = GM_STRINGS_PER_EXTENT - strings->size % GM_STRINGS_PER_EXTENT;
    size_t gap = left < room ? left : 0; /* none crosses an extent */
    if (strings->size + gap + room > GM_STRINGS_MAX) {
        counters[GM_COUNT_STRING_LIMIT]++;
        return 0;
    }
    memset(grow_bytes(strings, gap), 0, gap);
    uint32_t reference = (uint32_t)strings->size;
    append_bytes(strings, &size, sizeof(size));
    append_bytes(strings, text.bytes, size);
    gm_map_set(&image->by_text, hash, reference);
    return reference;
}

uint32_t gm_image_frame(struct gm_image *image, struct gm_text file, struct gm_text function,
                        uint32_t line, uint32_t language)
{
    struct gm_script_frame frame = {gm_image_string(image, file), gm_image_string(image, function),
                                    line, language};
    uint64_t hash = XXH3_64bits(&frame, sizeof(frame));
    uint32_t known = gm_map_get(&image->by_frame, hash);
    if (known != GM_NONE &&
        memcmp(image->frames.bytes + known * sizeof(frame), &frame, sizeof(frame)) == 0)
        return known;
    uint32_t number = (uint32_t)(image->frames.size / sizeof(frame));
    if (number >= GM_FRAMES_MAX) {
        image->header.counters[GM_COUNT_FRAME_LIMIT]++;
        return 0;
    }
    append_bytes(&image->frames, &frame, sizeof(frame));
    gm_map_set(&image->by_frame, hash, number);
    return number;
}

static uint32_t add_node(struct gm_image *image, uint64_t key, const struct gm_node *node)
{
    uint32_t known = gm_map_get(&image->by_node, key);
    if (known != GM_NONE)
        return known;
    uint32_t number = (uint32_t)(image->nodes.size / sizeof(*node));
    if (number >= GM_NODES_MAX) {
        image->header.counters[GM_COUNT_STACK_LIMIT]++;
        return 0;
    }
    append_bytes(&image->nodes, node, sizeof(*node));
    gm_map_set(&image->by_node, key, number);
    return number;
}

uint32_t gm_image_node(struct gm_image *image, uint32_t parent, uint32_t frame)
{
    struct gm_node node = {.address = frame, .parent = parent, .kind = GM_NODE_SCRIPT};
    return add_node(image, (uint64_t)parent << 32 | frame, &node);
}

uint32_t gm_image_leaf(struct gm_image *image, uint32_t parent, uint16_t module)
{
    struct gm_node node = {.parent = parent, .module = module, .kind = GM_NODE_LEAF};
    return add_node(image, (uint64_t)parent << 32 | UINT64_C(1) << 31 | module, &node);
}

uint16_t gm_image_module(struct gm_image *image, const char *path)
{
    struct gm_module module = {.path =
                                   gm_image_string(image, (struct gm_text){path, strlen(path)})};
    append_bytes(&image->modules, &module, sizeof(module));
    return (uint16_t)(image->modules.size / sizeof(module) - 1);
}

uint16_t gm_image_api(struct gm_image *image, const char *name)
{
    append_bytes(&image->names, name, strlen(name) + 1);
    return image->name_count++;
}

void gm_image_environment(struct gm_image *image, const char *name, struct gm_text value)
{
    append_bytes(&image->environment, name, strlen(name));
    append_bytes(&image->environment, "=", 1);
    append_bytes(&image->environment, value.bytes, strnlen(value.bytes, value.size));
    append_bytes(&image->environment, "", 1);
}

/* ---- records --------------------------------------------------------------------------------- */

uint32_t gm_image_lane(struct gm_image *image)
{
    GM_RESERVE(image->lanes, image->lane_capacity, image->lane_count + 1);
    image->lanes[image->lane_count] = (struct gm_bytes){0};
    return (uint32_t)image->lane_count++;
}

void gm_image_add(struct gm_image *image, uint32_t lane, const struct gm_record *record)
{
    append_bytes(&image->lanes[lane], record, sizeof(*record));
}

/* ---- the file -------------------------------------------------------------------------------- */

struct file {
    unsigned char *bytes; /* NULL: only measured */
    size_t size;
};

static struct gm_extent *extent(struct file *file, unsigned type, uint32_t index, size_t size)
{
    size_t length =
        (sizeof(struct gm_extent) + size + GM_EXTENT_ALIGN - 1) / GM_EXTENT_ALIGN * GM_EXTENT_ALIGN;
    struct gm_extent *at = file->bytes ? (struct gm_extent *)(file->bytes + file->size) : NULL;
    file->size += length;
    if (at)
        *at = (struct gm_extent){
            .magic = GM_EXTENT_MAGIC, .type = (uint16_t)type, .index = index, .length = length};
    return at;
}

static void finish_extent(struct gm_extent *at, size_t used)
{
    at->used = (uint32_t)used;
    at->checksum = gm_extent_checksum(at);
}

static void put_once(struct file *file, unsigned type, const struct gm_bytes *from)
{
    if (!from->size || from->size > UINT32_MAX)
        return;
    struct gm_extent *at = extent(file, type, 0, from->size);
    if (!at)
        return;
    memcpy(at + 1, from->bytes, from->size);
    finish_extent(at, from->size);
}

static void put_image_table(struct file *file, unsigned type, const struct gm_bytes *from,
                            size_t per_extent)
{
    for (size_t begin = 0; begin < from->size; begin += per_extent) {
        size_t size = from->size - begin < per_extent ? from->size - begin : per_extent;
        struct gm_extent *at = extent(file, type, (uint32_t)(begin / per_extent), size);
        if (!at)
            continue;
        memcpy(at + 1, from->bytes + begin, size);
        finish_extent(at, 0);
    }
}

/* Records are most of an image: memory does not hold them twice. */
static void move_records(unsigned char *to, const struct gm_bytes *from)
{
    for (size_t at = 0; at < from->size; at += PART) {
        size_t size = from->size - at < PART ? from->size - at : PART;
        memcpy(to + at, from->bytes + at, size);
        gm_give_back_pages(from->bytes + at, size);
    }
}

static void put_lane(struct file *file, uint32_t number, const struct gm_bytes *from)
{
    uint64_t count = from->size / sizeof(struct gm_record), capacity = 1;
    while (capacity < count)
        capacity *= 2;
    struct gm_extent *at = extent(file, GM_EXTENT_LANE, number,
                                  sizeof(struct gm_lane) + capacity * sizeof(struct gm_record));
    if (!at)
        return;
    struct gm_lane *lane = (struct gm_lane *)(at + 1);
    lane->capacity = capacity;
    lane->head = count;
    move_records((unsigned char *)(lane + 1), from);
    finish_extent(at, GM_LANE_CONSTANT);
}

static void put_all(struct file *file, const struct gm_image *image)
{
    file->size = GM_TRACE_PAGE;
    put_once(file, GM_EXTENT_NAMES, &image->names);
    put_once(file, GM_EXTENT_ENVIRONMENT, &image->environment);
    for (size_t i = 0; i < image->lane_count; i++)
        put_lane(file, (uint32_t)i, &image->lanes[i]);
    put_image_table(file, GM_EXTENT_STRINGS, &image->strings, GM_STRINGS_PER_EXTENT);
    put_image_table(file, GM_EXTENT_MODULES, &image->modules,
                    GM_MODULES_PER_EXTENT * sizeof(struct gm_module));
    put_image_table(file, GM_EXTENT_NODES, &image->nodes,
                    GM_NODES_PER_EXTENT * sizeof(struct gm_node));
    put_image_table(file, GM_EXTENT_FRAMES, &image->frames,
                    GM_FRAMES_PER_EXTENT * sizeof(struct gm_script_frame));
}

void gm_image_free(struct gm_image *image)
{
    struct gm_bytes *all[] = {&image->strings, &image->modules, &image->nodes,
                              &image->frames,  &image->names,   &image->environment};
    for (size_t i = 0; i < sizeof(all) / sizeof(all[0]); i++)
        free(all[i]->bytes);
    for (size_t i = 0; i < image->lane_count; i++)
        free(image->lanes[i].bytes);
    free(image->lanes);
    gm_map_free(&image->by_text);
    gm_map_free(&image->by_frame);
    gm_map_free(&image->by_node);
    *image = (struct gm_image){0};
}

unsigned char *gm_image_finish(struct gm_image *image, size_t *size)
{
    struct gm_trace_header *header = &image->header;
    struct file file = {0};
    put_all(&file, image);
    file.bytes = gm_allocate_pages(file.size);
    put_all(&file, image);
    header->node_count = (uint32_t)(image->nodes.size / sizeof(struct gm_node));
    header->module_count = (uint32_t)(image->modules.size / sizeof(struct gm_module));
    header->frame_count = (uint32_t)(image->frames.size / sizeof(struct gm_script_frame));
    header->string_bytes = (uint32_t)image->strings.size;
    header->lane_count = (uint32_t)image->lane_count;
    header->file_end = file.size;
    header->checksum = gm_header_checksum(header);
    memcpy(file.bytes, header, sizeof(*header));
    *size = file.size;
    gm_image_free(image);
    return file.bytes;
}
