/* See pickle.h. A pickle is a program for a machine with a stack and a memo; this is that machine without its
 * instructions that call. */
#include "input/torch/pickle.h"
#include "base/memory.h"
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#define CHUNK ((size_t)1 << 20)
#define MARK_NONE SIZE_MAX
#define READ_PART ((size_t)4 << 20) /* bytes of a file that stay in memory behind what is read */

struct chunk {
    struct chunk *next;
    size_t used, size;
    _Alignas(16) unsigned char bytes[];
};

struct gm_pickle {
    struct chunk *chunks;
    struct gm_value root;
};

struct machine {
    struct gm_pickle *pickle;
    const unsigned char *start, *at, *end;
    const unsigned char *kept; /* pages before it were given back; NULL: none are */
    gm_pickle_reduce *reduce;
    void *context;
    struct gm_value *stack;
    size_t depth, stack_capacity;
    size_t *marks; /* heights of the stack */
    size_t mark_count, mark_capacity;
    struct gm_value *memo;
    size_t memo_count, memo_capacity;
    char *error;
    size_t error_size;
    bool failed;
};

bool gm_pickle_is_likely(const unsigned char *bytes, size_t size)
{
    if (size < 2)
        return false;
    if (bytes[0] == 0x80) /* PROTO */
        return bytes[1] >= 2 && bytes[1] <= 5;
    /* protocols 0 and 1: an empty dict or list and its place in the memo */
    return ((bytes[0] == '(' && (bytes[1] == 'd' || bytes[1] == 'l')) ||
            ((bytes[0] == '}' || bytes[0] == ']') && (bytes[1] == 'q' || bytes[1] == 'r')));
}

/* ---- memory ---------------------------------------------------------------------------------- */

static void *take_memory(struct gm_pickle *pickle, size_t size)
{
    size = (size + 7) & ~(size_t)7;
    struct chunk *chunk = pickle->chunks;
    if (!chunk || chunk->size - chunk->used < size) {
        size_t room = size > CHUNK ? size : CHUNK;
        chunk = gm_allocate(1, sizeof(*chunk) + room);
        chunk->size = room;
        chunk->next = pickle->chunks;
        pickle->chunks = chunk;
    }
    void *at = chunk->bytes + chunk->used;
    chunk->used += size;
    return at;
}

/* Takes back what was taken last. */
static void return_memory(struct gm_pickle *pickle, const void *memory, size_t size)
{
    struct chunk *chunk = pickle->chunks;
    size = (size + 7) & ~(size_t)7;
    if (chunk && size && chunk->used >= size && chunk->bytes + chunk->used - size == memory) {
        chunk->used -= size;
        memset(chunk->bytes + chunk->used, 0, size); /* who takes it next expects zeros */
    }
}

void gm_pickle_free(struct gm_pickle *pickle)
{
    if (!pickle)
        return;
    for (struct chunk *chunk = pickle->chunks, *next; chunk; chunk = next) {
        next = chunk->next;
        free(chunk);
    }
    free(pickle);
}

/* ---- the machine ----------------------------------------------------------------------------- */

static void fail_pickle(struct machine *machine, const char *why)
{
    if (!machine->failed)
        snprintf(machine->error, machine->error_size, "%s (at byte %zu)", why,
                 (size_t)(machine->at - machine->start));
    machine->failed = true;
}

/* The next `size` bytes; NULL if the file ends before. */
static const unsigned char *next_bytes(struct machine *machine, uint64_t size)
{
    const unsigned char *at = machine->at;
    if (size > (uint64_t)(machine->end - at)) {
        fail_pickle(machine, "the pickle is cut");
        return NULL;
    }
    machine->at += size;
    return at;
}

static uint64_t next_number(struct machine *machine, unsigned size)
{
    const unsigned char *bytes = next_bytes(machine, size);
    uint64_t value = 0;
    for (unsigned i = 0; bytes && i < size; i++)
        value |= (uint64_t)bytes[i] << 8 * i;
    return value;
}

/* A line of text without its end. */
static struct gm_text next_line(struct machine *machine)
{
    const unsigned char *at = machine->at;
    const unsigned char *stop = memchr(at, '\n', (size_t)(machine->end - at));
    if (!stop) {
        fail_pickle(machine, "the pickle is cut");
        return (struct gm_text){"", 0};
    }
    machine->at = stop + 1;
    return (struct gm_text){(const char *)at, (size_t)(stop - at)};
}

static void push_value(struct machine *machine, struct gm_value value)
{
    GM_APPEND(machine->stack, machine->stack_capacity, machine->depth, value);
}

/* How far the stack may be popped: what lies below a mark is not reached. */
static size_t floor_of(const struct machine *machine)
{
    return machine->mark_count ? machine->marks[machine->mark_count - 1] : 0;
}

static struct gm_value *top_value(struct machine *machine)
{
    if (machine->depth <= floor_of(machine)) {
        fail_pickle(machine, "the pickle takes from an empty stack");
        return NULL;
    }
    return &machine->stack[machine->depth - 1];
}

static void push_mark(struct machine *machine)
{
    GM_APPEND(machine->marks, machine->mark_capacity, machine->mark_count, machine->depth);
}

/* Takes the latest mark; what was pushed since stands at its height. MARK_NONE: there is none. */
static size_t pop_mark(struct machine *machine)
{
    if (!machine->mark_count) {
        fail_pickle(machine, "the pickle misses a mark");
        return MARK_NONE;
    }
    return machine->marks[--machine->mark_count];
}

static void add_items(struct machine *machine, struct gm_items *items,
                      const struct gm_value *values, size_t count)
{
    if (count > UINT32_MAX / 4 - items->count) {
        fail_pickle(machine, "the pickle has a list that is too long");
        return;
    }
    if (items->count + count > items->capacity) {
        /* What comes first is mostly all there is. */
        size_t capacity = items->capacity ? 2 * (size_t)items->capacity : count;
        capacity = capacity < items->count + count ? items->count + count : capacity;
        struct gm_value *room = take_memory(machine->pickle, capacity * sizeof(*room));
        if (items->count)
            memcpy(room, items->values, items->count * sizeof(*room));
        items->values = room;
        items->capacity = (uint32_t)capacity;
    }
    if (count)
        memcpy(items->values + items->count, values, count * sizeof(*values));
    items->count += (uint32_t)count;
}

/* Replaces what stands from `height` on by a container of it. */
static void collect_items(struct machine *machine, size_t height, enum gm_value_type type)
{
    if (machine->failed)
        return;
    size_t count = machine->depth - height;
    if (type == GM_VALUE_DICT && count % 2)
        fail_pickle(machine, "the pickle has a key without a value");
    struct gm_items *items = take_memory(machine->pickle, sizeof(*items));
    if (count) /* an empty stack may have no memory yet */
        add_items(machine, items, machine->stack + height, count);
    machine->depth = height;
    push_value(machine, (struct gm_value){.type = type, .items = items});
}

/* Puts a number in the place of the container on top, if its reader needs no more of it. The memory of what has been
 * read last, and is known in one place alone, is taken back. */
static void reduce_top(struct machine *machine)
{
    struct gm_value *container =
        machine->reduce && !machine->failed ? &machine->stack[machine->depth - 1] : NULL;
    if (!container || container->type == GM_VALUE_REDUCED)
        return;
    struct gm_items *items = container->items;
    uint32_t mark = machine->reduce(machine->context, container);
    if (!mark)
        return;
    return_memory(machine->pickle, items->values, items->capacity * sizeof(*items->values));
    *container = (struct gm_value){.type = GM_VALUE_REDUCED, .integer = mark};
    if (items->memo && items->memo != UINT32_MAX)
        machine->memo[items->memo - 1] = *container;
    if (items->memo != UINT32_MAX)
        return_memory(machine->pickle, items, sizeof(*items));
    else
        *items = (struct gm_items){.mark = mark, .memo = UINT32_MAX};
}

/* Notes that a value stands in one more place. */
static void share(const struct gm_value *value)
{
    if (value->type == GM_VALUE_LIST || value->type == GM_VALUE_DICT)
        value->items->memo = UINT32_MAX;
}

/* Adds what stands from `height` on to the container below it. */
static void extend(struct machine *machine, size_t height, enum gm_value_type type)
{
    if (machine->failed)
        return;
    size_t count = machine->depth - height;
    if (height > floor_of(machine) && machine->stack[height - 1].type == GM_VALUE_REDUCED) {
        machine->depth =
            height; /* the rest of a list that is filled in parts: deeper than any stack is shown */
        return;
    }
    if (height <= floor_of(machine) || machine->stack[height - 1].type != type ||
        (type == GM_VALUE_DICT && count % 2)) {
        fail_pickle(machine, "the pickle adds to what is no list or dict");
        return;
    }
    add_items(machine, machine->stack[height - 1].items, machine->stack + height, count);
    machine->depth = height;
}

/* The height `count` below the top. */
static size_t below(struct machine *machine, size_t count)
{
    if (machine->depth - floor_of(machine) < count) {
        fail_pickle(machine, "the pickle takes from an empty stack");
        return 0;
    }
    return machine->depth - count;
}

static void remember_value(struct machine *machine, uint64_t number)
{
    const struct gm_value *value = top_value(machine);
    if (!value)
        return;
    if (number > (uint64_t)(machine->at - machine->start)) { /* it counts what it remembers */
        fail_pickle(machine, "the pickle's memo has impossible numbers");
        return;
    }
    struct gm_value copy = *value;
    bool is_container = copy.type == GM_VALUE_LIST || copy.type == GM_VALUE_DICT;
    if (is_container && !copy.items->memo && number < UINT32_MAX - 1)
        copy.items->memo = (uint32_t)number + 1;
    else
        share(&copy);
    GM_RESERVE(machine->memo, machine->memo_capacity, (size_t)number + 1);
    while (machine->memo_count <= number)
        machine->memo[machine->memo_count++] = (struct gm_value){.type = UINT32_MAX};
    machine->memo[number] = copy;
}

static void recall(struct machine *machine, uint64_t number)
{
    if (number >= machine->memo_count || machine->memo[number].type == UINT32_MAX) {
        fail_pickle(machine, "the pickle refers to what it has not");
    } else {
        share(&machine->memo[number]);
        push_value(machine, machine->memo[number]);
    }
}

static uint64_t number_of_line(struct machine *machine, struct gm_text line)
{
    uint64_t value = 0;
    for (size_t i = 0; i < line.size; i++) {
        if (line.bytes[i] < '0' || line.bytes[i] > '9' || value > UINT32_MAX) {
            fail_pickle(machine, "the pickle has a number that is none");
            return 0;
        }
        value = 10 * value + (uint64_t)(line.bytes[i] - '0');
    }
    return value;
}

static void push_integer(struct machine *machine, int64_t value)
{
    push_value(machine, (struct gm_value){.type = GM_VALUE_INTEGER, .integer = value});
}

/* A number of any length, little-endian two's complement. */
static void push_long(struct machine *machine, uint64_t size)
{
    const unsigned char *bytes = next_bytes(machine, size);
    if (!bytes)
        return;
    bool negative = size && bytes[size - 1] & 0x80;
    uint64_t value = negative ? UINT64_MAX : 0;
    for (uint64_t i = 0; i < size && i < 8; i++)
        value = (value & ~(UINT64_C(0xff) << 8 * i)) | (uint64_t)bytes[i] << 8 * i;
    for (uint64_t i = 8; i < size; i++)
        if (bytes[i] != (negative ? 0xff : 0))
            value = negative ? (uint64_t)INT64_MIN : UINT64_MAX;
    push_integer(machine, (int64_t)value); /* addresses may use all 64 bits */
}

static void push_decimal(struct machine *machine, bool is_real)
{
    struct gm_text line = next_line(machine);
    char text[64], *end;
    if (line.size == 0 || line.size >= sizeof(text)) {
        fail_pickle(machine, "the pickle has a number that is none");
        return;
    }
    memcpy(text, line.bytes, line.size);
    text[line.size] = 0;
    if (text[line.size - 1] == 'L')
        text[line.size - 1] = 0;
    if (!is_real && (strcmp(text, "00") == 0 || strcmp(text, "01") == 0)) {
        push_value(machine, (struct gm_value){.type = GM_VALUE_BOOL, .integer = text[1] - '0'});
        return;
    }
    struct gm_value value = {.type = is_real ? GM_VALUE_REAL : GM_VALUE_INTEGER};
    if (is_real)
        value.real = strtod(text, &end);
    else
        value.integer =
            text[0] == '-' ? strtoll(text, &end, 10) : (int64_t)strtoull(text, &end, 10);
    if (*end || end == text)
        fail_pickle(machine, "the pickle has a number that is none");
    push_value(machine, value);
}

static void push_real(struct machine *machine)
{
    const unsigned char *bytes = next_bytes(machine, 8);
    uint64_t bits = 0;
    struct gm_value value = {.type = GM_VALUE_REAL};
    for (int i = 0; bytes && i < 8; i++)
        bits = bits << 8 | bytes[i];
    memcpy(&value.real, &bits, sizeof(bits));
    push_value(machine, value);
}

static void push_text(struct machine *machine, uint64_t size)
{
    const unsigned char *bytes = next_bytes(machine, size);
    if (bytes && size > UINT32_MAX)
        fail_pickle(machine, "the pickle has a text that is too long");
    else if (bytes)
        push_value(machine, (struct gm_value){.type = GM_VALUE_TEXT,
                                              .size = (uint32_t)size,
                                              .bytes = (const char *)bytes});
}

/* A text of protocol 0 is written with escapes, which are left as they are; the quotes go. */
static void push_line(struct machine *machine, bool is_quoted)
{
    struct gm_text line = next_line(machine);
    if (is_quoted && line.size >= 2) {
        line.bytes++;
        line.size -= 2;
    }
    if (line.size > UINT32_MAX)
        fail_pickle(machine, "the pickle has a text that is too long");
    else
        push_value(machine, (struct gm_value){.type = GM_VALUE_TEXT,
                                              .size = (uint32_t)line.size,
                                              .bytes = line.bytes});
}

static void push_bool(struct machine *machine, bool value)
{
    push_value(machine, (struct gm_value){.type = GM_VALUE_BOOL, .integer = value});
}

static void duplicate(struct machine *machine)
{
    const struct gm_value *value = top_value(machine);
    if (!value)
        return;
    share(value);
    push_value(machine, *value);
}

/* POP takes a mark if nothing stands above it. */
static void pop_value(struct machine *machine)
{
    if (machine->depth > floor_of(machine))
        machine->depth--;
    else
        pop_mark(machine);
}

/* What is more than plain data. */
static const char *code_name(unsigned char opcode)
{
    static const struct {
        unsigned char opcode;
        const char *name;
    } names[] = {{'c', "GLOBAL"},    {0x93, "STACK_GLOBAL"}, {'R', "REDUCE"},
                 {'b', "BUILD"},     {'i', "INST"},          {'o', "OBJ"},
                 {0x81, "NEWOBJ"},   {0x92, "NEWOBJ_EX"},    {'P', "PERSID"},
                 {'Q', "BINPERSID"}, {0x82, "EXT1"},         {0x83, "EXT2"},
                 {0x84, "EXT4"},     {0x97, "NEXT_BUFFER"},  {0x98, "READONLY_BUFFER"}};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
        if (names[i].opcode == opcode)
            return names[i].name;
    return NULL;
}

static void refuse_opcode(struct machine *machine, unsigned char opcode)
{
    char why[128];
    const char *name = code_name(opcode);
    if (name)
        snprintf(why, sizeof(why),
                 "the pickle is more than plain data: it has %s, which gpumem never executes",
                 name);
    else
        snprintf(why, sizeof(why), "the pickle is damaged: 0x%02x is no opcode", opcode);
    fail_pickle(machine, why);
}

/* Containers. False: it is none of these opcodes. */
static bool step_container(struct machine *machine, unsigned char opcode)
{
    switch (opcode) {
    case '(':
        push_mark(machine);
        return true;
    case ']':
    case ')':
    case 0x8f: /* EMPTY_SET */
        collect_items(machine, machine->depth, GM_VALUE_LIST);
        return true;
    case '}':
        collect_items(machine, machine->depth, GM_VALUE_DICT);
        return true;
    case 'l':
    case 't':
    case 0x91: /* FROZENSET */
        collect_items(machine, pop_mark(machine), GM_VALUE_LIST);
        return true;
    case 'd':
        collect_items(machine, pop_mark(machine), GM_VALUE_DICT);
        return true;
    case 0x85:
    case 0x86:
    case 0x87: /* TUPLE1 to 3 */
        collect_items(machine, below(machine, opcode - 0x84u), GM_VALUE_LIST);
        return true;
    case 'a':
        extend(machine, below(machine, 1), GM_VALUE_LIST);
        return true;
    case 'e':
    case 0x90: /* ADDITEMS */
        extend(machine, pop_mark(machine), GM_VALUE_LIST);
        reduce_top(machine);
        return true;
    case 's':
        extend(machine, below(machine, 2), GM_VALUE_DICT);
        return true;
    case 'u':
        extend(machine, pop_mark(machine), GM_VALUE_DICT);
        reduce_top(machine);
        return true;
    case '1': { /* POP_MARK */
        size_t height = pop_mark(machine);
        if (!machine->failed)
            machine->depth = height;
        return true;
    }
    case '0':
        pop_value(machine);
        return true;
    case '2':
        duplicate(machine);
        return true;
    default:
        return false;
    }
}

/* The memo, and the frame. False: it is none of these opcodes. */
static bool step_memo(struct machine *machine, unsigned char opcode)
{
    switch (opcode) {
    case 0x80: /* PROTO */
        if (next_number(machine, 1) > 5)
            fail_pickle(machine, "the pickle is of a newer protocol than 5");
        return true;
    case 0x95: /* FRAME: only says how much may be read ahead */
        next_number(machine, 8);
        return true;
    case 0x94: /* MEMOIZE */
        remember_value(machine, machine->memo_count);
        return true;
    case 'q':
        remember_value(machine, next_number(machine, 1));
        return true;
    case 'r':
        remember_value(machine, next_number(machine, 4));
        return true;
    case 'p':
        remember_value(machine, number_of_line(machine, next_line(machine)));
        return true;
    case 'h':
        recall(machine, next_number(machine, 1));
        return true;
    case 'j':
        recall(machine, next_number(machine, 4));
        return true;
    case 'g':
        recall(machine, number_of_line(machine, next_line(machine)));
        return true;
    default:
        return false;
    }
}

/* What stands for itself. False: it is none of these opcodes. */
static bool step_scalar(struct machine *machine, unsigned char opcode)
{
    switch (opcode) {
    case 'N':
        push_value(machine, (struct gm_value){.type = GM_VALUE_NONE});
        return true;
    case 0x88:
    case 0x89:
        push_bool(machine, opcode == 0x88);
        return true;
    case 'K':
        push_integer(machine, (int64_t)next_number(machine, 1));
        return true;
    case 'M':
        push_integer(machine, (int64_t)next_number(machine, 2));
        return true;
    case 'J':
        push_integer(machine, (int32_t)(uint32_t)next_number(machine, 4));
        return true;
    case 0x8a: /* LONG1 */
        push_long(machine, next_number(machine, 1));
        return true;
    case 0x8b: /* LONG4 */
        push_long(machine, next_number(machine, 4));
        return true;
    case 'I':
    case 'L':
        push_decimal(machine, false);
        return true;
    case 'F':
        push_decimal(machine, true);
        return true;
    case 'G':
        push_real(machine);
        return true;
    case 'U':
    case 'C':
    case 0x8c: /* SHORT_BINUNICODE */
        push_text(machine, next_number(machine, 1));
        return true;
    case 'T':
    case 'B':
    case 'X':
        push_text(machine, next_number(machine, 4));
        return true;
    case 0x8d:
    case 0x8e:
    case 0x96: /* BINUNICODE8, BINBYTES8, BYTEARRAY8 */
        push_text(machine, next_number(machine, 8));
        return true;
    case 'S':
        push_line(machine, true);
        return true;
    case 'V':
        push_line(machine, false);
        return true;
    default:
        return false;
    }
}

/* Texts point to the file, whose pages come back when they are looked at. */
static void give_back_pages(struct machine *machine)
{
    if (!machine->kept || (size_t)(machine->at - machine->kept) < 2 * READ_PART)
        return;
    madvise((void *)(uintptr_t)machine->kept, READ_PART, MADV_DONTNEED);
    machine->kept += READ_PART;
}

static void execute_opcodes(struct machine *machine)
{
    while (!machine->failed) {
        const unsigned char *opcode = next_bytes(machine, 1);
        if (!opcode)
            return;
        if (*opcode == '.') {
            const struct gm_value *value = machine->mark_count ? NULL : top_value(machine);
            if (value)
                machine->pickle->root = *value;
            else
                fail_pickle(machine, "the pickle ends without a value");
            return;
        }
        if (!step_scalar(machine, *opcode) && !step_memo(machine, *opcode) &&
            !step_container(machine, *opcode))
            refuse_opcode(machine, *opcode);
        give_back_pages(machine);
    }
}

struct gm_pickle *gm_pickle_read(const struct gm_pickle_source *source, gm_pickle_reduce *reduce,
                                 void *context, char *error, size_t error_size)
{
    struct gm_pickle *pickle = gm_allocate(1, sizeof(*pickle));
    struct machine machine = {.pickle = pickle,
                              .start = source->bytes,
                              .at = source->bytes,
                              .end = source->bytes + source->size,
                              .kept = source->is_mapped ? source->bytes : NULL,
                              .reduce = reduce,
                              .context = context,
                              .error = error,
                              .error_size = error_size};
    execute_opcodes(&machine);
    free(machine.stack);
    free(machine.marks);
    free(machine.memo);
    if (!machine.failed)
        return pickle;
    gm_pickle_free(pickle);
    return NULL;
}

/* ---- values ---------------------------------------------------------------------------------- */

const struct gm_value *gm_pickle_root(const struct gm_pickle *pickle)
{
    return &pickle->root;
}

bool gm_text_is(struct gm_text text, const char *wanted)
{
    return text.size == strlen(wanted) && memcmp(text.bytes, wanted, text.size) == 0;
}

/* A dict of more keys than this is none of a snapshot's: so the search ends soon. */
#define KEYS_MAX 64u

const struct gm_value *gm_value_get(const struct gm_value *dict, const char *key)
{
    if (!dict || dict->type != GM_VALUE_DICT)
        return NULL;
    const struct gm_items *items = dict->items;
    uint32_t first = items->count > 2 * KEYS_MAX ? items->count - 2 * KEYS_MAX : 0;
    for (uint32_t i = items->count; i >= first + 2; i -= 2) {
        const struct gm_value *name = &items->values[i - 2];
        if (name->type == GM_VALUE_TEXT && gm_text_is(gm_value_text(name), key))
            return &items->values[i - 1];
    }
    return NULL;
}

struct gm_items *gm_value_items(const struct gm_value *value)
{
    return value && value->type == GM_VALUE_LIST ? value->items : NULL;
}

uint32_t gm_value_mark(const struct gm_value *value)
{
    if (!value || value->type == GM_VALUE_REDUCED)
        return value ? (uint32_t)value->integer : 0;
    return value->type == GM_VALUE_LIST || value->type == GM_VALUE_DICT ? value->items->mark : 0;
}

uint64_t gm_value_number(const struct gm_value *value, uint64_t otherwise)
{
    if (!value)
        return otherwise;
    if (value->type == GM_VALUE_INTEGER || value->type == GM_VALUE_BOOL)
        return (uint64_t)value->integer;
    if (value->type == GM_VALUE_REAL && value->real >= 0 && value->real < 0x1p63)
        return (uint64_t)value->real;
    return otherwise;
}

struct gm_text gm_value_text(const struct gm_value *value)
{
    if (!value || value->type != GM_VALUE_TEXT)
        return (struct gm_text){"", 0};
    return (struct gm_text){value->bytes, value->size};
}
