/*
 * Reads a frame's rule from .eh_frame: binary search in .eh_frame_hdr, then the call frame
 * instructions up to the wanted address. Only what decides CFA, frame pointer and return address is
 * kept; whatever a struct gm_rule cannot say is declined, never guessed.
 *
 * Relies on the loaded image's tables being well formed, as every C++ exception does; lengths and
 * pointers are still checked against the image, so that nothing outside of it is read.
 */
#include "stack/native/unwind_rule.h"
#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#if GM_UNWIND_HAS_RULES

enum {
    DW_EH_PE_ABSPTR = 0x00,
    DW_EH_PE_UDATA2 = 0x02,
    DW_EH_PE_UDATA4 = 0x03,
    DW_EH_PE_UDATA8 = 0x04,
    DW_EH_PE_SDATA2 = 0x0a,
    DW_EH_PE_SDATA4 = 0x0b,
    DW_EH_PE_SDATA8 = 0x0c,
    DW_EH_PE_PCREL = 0x10,
    DW_EH_PE_DATAREL = 0x30,
};

enum {
    DW_CFA_ADVANCE_LOC = 0x40, /* the upper two bits; the operand is in the rest */
    DW_CFA_OFFSET = 0x80,
    DW_CFA_RESTORE = 0xc0,
    DW_CFA_NOP = 0x00,
    DW_CFA_SET_LOC = 0x01,
    DW_CFA_ADVANCE_LOC1 = 0x02,
    DW_CFA_ADVANCE_LOC2 = 0x03,
    DW_CFA_ADVANCE_LOC4 = 0x04,
    DW_CFA_OFFSET_EXTENDED = 0x05,
    DW_CFA_RESTORE_EXTENDED = 0x06,
    DW_CFA_UNDEFINED = 0x07,
    DW_CFA_SAME_VALUE = 0x08,
    DW_CFA_REGISTER = 0x09,
    DW_CFA_REMEMBER_STATE = 0x0a,
    DW_CFA_RESTORE_STATE = 0x0b,
    DW_CFA_DEF_CFA = 0x0c,
    DW_CFA_DEF_CFA_REGISTER = 0x0d,
    DW_CFA_DEF_CFA_OFFSET = 0x0e,
    DW_CFA_DEF_CFA_EXPRESSION = 0x0f,
    DW_CFA_EXPRESSION = 0x10,
    DW_CFA_OFFSET_EXTENDED_SF = 0x11,
    DW_CFA_DEF_CFA_SF = 0x12,
    DW_CFA_DEF_CFA_OFFSET_SF = 0x13,
    DW_CFA_VAL_OFFSET = 0x14,
    DW_CFA_VAL_OFFSET_SF = 0x15,
    DW_CFA_VAL_EXPRESSION = 0x16,
    DW_CFA_AARCH64_NEGATE_RA_STATE_WITH_PC = 0x2c,
    DW_CFA_AARCH64_NEGATE_RA_STATE = 0x2d,
    DW_CFA_GNU_ARGS_SIZE = 0x2e,
    DW_OP_DEREF = 0x06,
    DW_OP_BREG_FP = 0x70 + GM_REGISTER_FP, /* frame pointer + a signed constant */
};

/* ---- reading --------------------------------------------------------------------------------- */

/* A part of the image. Reads beyond its end give 0 and clear `good`. */
struct reader {
    const uint8_t *at;
    const uint8_t *end;
    bool good;
};

static void read_bytes(struct reader *reader, void *to, size_t size)
{
    if ((size_t)(reader->end - reader->at) < size) {
        memset(to, 0, size);
        reader->at = reader->end;
        reader->good = false;
        return;
    }
    memcpy(to, reader->at, size);
    reader->at += size;
}

static uint8_t read_u8(struct reader *reader)
{
    uint8_t value;
    read_bytes(reader, &value, sizeof value);
    return value;
}

static uint16_t read_u16(struct reader *reader)
{
    uint16_t value;
    read_bytes(reader, &value, sizeof value);
    return value;
}

static uint32_t read_u32(struct reader *reader)
{
    uint32_t value;
    read_bytes(reader, &value, sizeof value);
    return value;
}

static uint64_t read_u64(struct reader *reader)
{
    uint64_t value;
    read_bytes(reader, &value, sizeof value);
    return value;
}

static uint64_t read_uleb(struct reader *reader)
{
    uint64_t value = 0;
    uint8_t byte;
    unsigned shift = 0;
    do {
        byte = read_u8(reader);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    return value;
}

static int64_t read_sleb(struct reader *reader)
{
    uint64_t value = 0;
    uint8_t byte;
    unsigned shift = 0;
    do {
        byte = read_u8(reader);
        if (shift < 64)
            value |= (uint64_t)(byte & 0x7f) << shift;
        shift += 7;
    } while (byte & 0x80);
    if (shift < 64 && (byte & 0x40))
        value |= ~(uint64_t)0 << shift;
    return (int64_t)value;
}

/* A block of instructions or bytes inside of `reader`, which is left behind it. */
static struct reader read_cfi_block(struct reader *reader, uint64_t size)
{
    struct reader block = *reader;
    if (size > (uint64_t)(reader->end - reader->at)) {
        reader->good = block.good = false;
        size = 0;
    }
    block.end = reader->at += size;
    return block;
}

/* A pointer in the encoding of .eh_frame. Indirect and other bases are for general unwinders. */
static uint64_t read_encoded(struct reader *reader, uint8_t encoding)
{
    uint64_t place = (uint64_t)(uintptr_t)reader->at;
    uint64_t value;
    switch (encoding & 0x0f) {
    case DW_EH_PE_ABSPTR:
    case DW_EH_PE_UDATA8:
    case DW_EH_PE_SDATA8:
        value = read_u64(reader);
        break;
    case DW_EH_PE_UDATA4:
        value = read_u32(reader);
        break;
    case DW_EH_PE_SDATA4:
        value = (uint64_t)(int64_t)(int32_t)read_u32(reader);
        break;
    case DW_EH_PE_UDATA2:
        value = read_u16(reader);
        break;
    case DW_EH_PE_SDATA2:
        value = (uint64_t)(int64_t)(int16_t)read_u16(reader);
        break;
    default:
        reader->good = false;
        return 0;
    }
    switch (encoding & 0xf0) {
    case 0:
        return value;
    case DW_EH_PE_PCREL:
        return value + place;
    default:
        reader->good = false;
        return 0;
    }
}

/* ---- finding the FDE ------------------------------------------------------------------------- */

struct fde {
    struct reader initial_instructions; /* of the CIE */
    struct reader instructions;
    uint64_t pc_begin;
    uint64_t code_factor;
    int64_t data_factor;
};

static bool inside(const struct gm_image *image, uint64_t address)
{
    return address >= image->start && address < image->end;
}

/* An entry (CIE or FDE) at `address`, from behind its length field on. */
static struct reader read_entry(const struct gm_image *image, uint64_t address)
{
    struct reader reader = {.good = inside(image, address)};
    if (!reader.good)
        return reader;
    reader.at = (const uint8_t *)(uintptr_t)address;
    reader.end = (const uint8_t *)(uintptr_t)image->end;
    uint32_t length = read_u32(&reader);
    if (length == 0 || length == UINT32_MAX) /* terminator; the 64-bit form is not used by anyone */
        reader.good = false;
    return read_cfi_block(&reader, length);
}

/* Without data of their own. aarch64: return addresses are signed with key B, or tagged memory. */
static bool is_known_augmentation(char letter)
{
#if defined(__aarch64__)
    return letter == 'B' || letter == 'G';
#else
    (void)letter;
    return false;
#endif
}

/* Fills the CIE's part of `fde`. False for signal frames and for what is not known. */
static bool read_cie(const struct gm_image *image, uint64_t address, struct fde *fde,
                     uint8_t *pointer_encoding, bool *augmented)
{
    struct reader reader = read_entry(image, address);
    if (!reader.good || read_u32(&reader) != 0)
        return false;
    uint8_t version = read_u8(&reader);
    const char *augmentation = (const char *)reader.at;
    while (read_u8(&reader) != 0)
        ;
    if (!reader.good || (version != 1 && version != 3))
        return false;
    fde->code_factor = read_uleb(&reader);
    fde->data_factor = read_sleb(&reader);
    uint64_t return_register = version == 1 ? read_u8(&reader) : read_uleb(&reader);
    *pointer_encoding = DW_EH_PE_ABSPTR;
    *augmented = *augmentation == 'z';
    if (*augmented) {
        struct reader data = read_cfi_block(&reader, read_uleb(&reader));
        while (*++augmentation != '\0') {
            if (*augmentation == 'R') {
                *pointer_encoding = read_u8(&data);
            } else if (*augmentation == 'L') {
                read_u8(&data);
            } else if (*augmentation == 'P') {
                uint8_t encoding = read_u8(&data);
                /* Only to be skipped, so neither base nor indirection matters. */
                read_encoded(&data, encoding & 0x0f);
            } else if (!is_known_augmentation(*augmentation)) {
                return false; /* 'S', a signal frame, or unknown */
            }
        }
        reader.good = reader.good && data.good;
    } else if (*augmentation != '\0') {
        return false;
    }
    fde->initial_instructions = reader;
    return reader.good && return_register == GM_REGISTER_RETURN;
}

enum lookup {
    LOOKUP_FOUND,
    LOOKUP_NONE,    /* no entry for this code */
    LOOKUP_UNKNOWN, /* one that is not understood here, a signal frame's for example */
};

static enum lookup read_fde(const struct gm_image *image, uint64_t address, uint64_t pc,
                            struct fde *fde)
{
    struct reader reader = read_entry(image, address);
    if (!reader.good)
        return LOOKUP_UNKNOWN;
    uint64_t place = (uint64_t)(uintptr_t)reader.at;
    uint32_t distance = read_u32(&reader);
    uint8_t pointer_encoding;
    bool augmented;
    if (distance == 0 || !read_cie(image, place - distance, fde, &pointer_encoding, &augmented))
        return LOOKUP_UNKNOWN;
    fde->pc_begin = read_encoded(&reader, pointer_encoding);
    uint64_t pc_range = read_encoded(&reader, pointer_encoding & 0x0f);
    if (augmented)
        read_cfi_block(&reader, read_uleb(&reader));
    fde->instructions = reader;
    if (!reader.good)
        return LOOKUP_UNKNOWN;
    return pc - fde->pc_begin < pc_range ? LOOKUP_FOUND : LOOKUP_NONE;
}

/* An entry of the sorted table, both relative to the start of .eh_frame_hdr. */
struct table_entry {
    int32_t pc_begin;
    int32_t fde;
};

static enum lookup find_fde(const struct gm_image *image, uint64_t pc, struct fde *fde)
{
    uint64_t header = (uint64_t)(uintptr_t)image->eh_frame_header;
    if (!inside(image, header))
        return LOOKUP_NONE;
    struct reader reader = {
        .at = image->eh_frame_header, .end = (const uint8_t *)(uintptr_t)image->end, .good = true};
    uint8_t version = read_u8(&reader);
    uint8_t frame_encoding = read_u8(&reader);
    uint8_t count_encoding = read_u8(&reader);
    uint8_t table_encoding = read_u8(&reader);
    read_encoded(&reader, frame_encoding & 0x0f);
    if (version != 1 || count_encoding != DW_EH_PE_UDATA4 ||
        table_encoding != (DW_EH_PE_DATAREL | DW_EH_PE_SDATA4)) /* what every linker writes */
        return LOOKUP_UNKNOWN;
    uint32_t count = read_u32(&reader);
    const uint8_t *table = reader.at;
    if (!reader.good || count > (size_t)(reader.end - table) / sizeof(struct table_entry))
        return LOOKUP_UNKNOWN;
    uint32_t low = 0, high = count; /* the wanted entry, the last not above pc, is before `low` */
    struct table_entry entry;
    while (low < high) {
        uint32_t middle = low + (high - low) / 2;
        memcpy(&entry, table + middle * sizeof entry, sizeof entry);
        if (header + (uint64_t)(int64_t)entry.pc_begin <= pc)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == 0)
        return LOOKUP_NONE;
    memcpy(&entry, table + (low - 1) * sizeof entry, sizeof entry);
    return read_fde(image, header + (uint64_t)(int64_t)entry.fde, pc, fde);
}

/* ---- running the instructions ---------------------------------------------------------------- */

enum saved_how {
    SAVED_SAME = 0,  /* not saved: unchanged */
    SAVED_AT_OFFSET, /* at CFA + offset */
    SAVED_AT_FP,     /* at the address the frame pointer holds */
    SAVED_UNDEFINED,
    SAVED_OTHERWISE,
};

struct saved {
    enum saved_how how;
    int64_t offset;
};

struct row {
    uint64_t cfa_register;
    int64_t
        cfa_offset; /* from the register; for an indirect one from the frame pointer to the word */
    bool cfa_indirect; /* CFA is the word at frame pointer + cfa_offset */
    bool cfa_unknown;
    struct saved fp;
    struct saved sp;
    struct saved return_address;
};

#define REMEMBERED_MAX 8

struct machine {
    struct row row;
    struct row initial; /* after the CIE's instructions, for DW_CFA_restore */
    struct row remembered[REMEMBERED_MAX];
    unsigned remembered_count;
    bool failed;
};

static void set_saved(struct row *row, uint64_t number, enum saved_how how, int64_t offset)
{
    struct saved saved = {.how = how, .offset = offset};
    if (number == GM_REGISTER_FP)
        row->fp = saved;
    else if (number == GM_REGISTER_SP)
        row->sp = saved;
    else if (number == GM_REGISTER_RETURN)
        row->return_address = saved;
}

static void restore_saved(struct machine *machine, uint64_t number)
{
    if (number == GM_REGISTER_FP)
        machine->row.fp = machine->initial.fp;
    else if (number == GM_REGISTER_SP)
        machine->row.sp = machine->initial.sp;
    else if (number == GM_REGISTER_RETURN)
        machine->row.return_address = machine->initial.return_address;
}

static void set_cfa(struct row *row, uint64_t number, int64_t offset)
{
    row->cfa_register = number;
    row->cfa_offset = offset;
    row->cfa_indirect = false;
    row->cfa_unknown = false;
}

/*
 * The one expression that compilers write in bodies of functions: gcc's dynamically realigned
 * frames on x86-64 keep the CFA in a word below rbp, "breg6 n; deref".
 */
static void set_cfa_expression(struct row *row, struct reader block)
{
    uint8_t operation = read_u8(&block);
    int64_t offset = read_sleb(&block);
    row->cfa_indirect = operation == DW_OP_BREG_FP && read_u8(&block) == DW_OP_DEREF &&
                        block.good && block.at == block.end;
    row->cfa_unknown = !row->cfa_indirect;
    row->cfa_offset = offset;
}

/* And in these frames rbp is saved at "breg6 0". */
static enum saved_how expression_how(struct reader block)
{
    bool at_fp = read_u8(&block) == DW_OP_BREG_FP && read_sleb(&block) == 0 && block.good &&
                 block.at == block.end;
    return at_fp ? SAVED_AT_FP : SAVED_OTHERWISE;
}

/* Instructions that set where a register was saved. False if `operation` is none of them. */
static bool run_saved(struct machine *machine, struct reader *reader, uint8_t operation,
                      const struct fde *fde)
{
    uint64_t number;
    switch (operation) {
    case DW_CFA_OFFSET_EXTENDED:
        number = read_uleb(reader);
        set_saved(&machine->row, number, SAVED_AT_OFFSET,
                  (int64_t)read_uleb(reader) * fde->data_factor);
        return true;
    case DW_CFA_OFFSET_EXTENDED_SF:
        number = read_uleb(reader);
        set_saved(&machine->row, number, SAVED_AT_OFFSET, read_sleb(reader) * fde->data_factor);
        return true;
    case DW_CFA_RESTORE_EXTENDED:
        restore_saved(machine, read_uleb(reader));
        return true;
    case DW_CFA_UNDEFINED:
        set_saved(&machine->row, read_uleb(reader), SAVED_UNDEFINED, 0);
        return true;
    case DW_CFA_SAME_VALUE:
        set_saved(&machine->row, read_uleb(reader), SAVED_SAME, 0);
        return true;
    case DW_CFA_REGISTER:
    case DW_CFA_VAL_OFFSET:
    case DW_CFA_VAL_OFFSET_SF: /* an unsigned read skips a signed number as well */
        number = read_uleb(reader);
        read_uleb(reader);
        set_saved(&machine->row, number, SAVED_OTHERWISE, 0);
        return true;
    case DW_CFA_EXPRESSION:
        number = read_uleb(reader);
        set_saved(&machine->row, number, expression_how(read_cfi_block(reader, read_uleb(reader))),
                  0);
        return true;
    case DW_CFA_VAL_EXPRESSION:
        number = read_uleb(reader);
        read_cfi_block(reader, read_uleb(reader));
        set_saved(&machine->row, number, SAVED_OTHERWISE, 0);
        return true;
    default:
        return false;
    }
}

/* Instructions that set the CFA. False if `operation` is none of them. */
static bool run_cfa(struct machine *machine, struct reader *reader, uint8_t operation,
                    const struct fde *fde)
{
    struct row *row = &machine->row;
    uint64_t number;
    switch (operation) {
    case DW_CFA_DEF_CFA:
        number = read_uleb(reader);
        set_cfa(row, number, (int64_t)read_uleb(reader));
        return true;
    case DW_CFA_DEF_CFA_SF:
        number = read_uleb(reader);
        set_cfa(row, number, read_sleb(reader) * fde->data_factor);
        return true;
    case DW_CFA_DEF_CFA_REGISTER: /* this and the next two are defined for a register CFA only */
        row->cfa_unknown = row->cfa_unknown || row->cfa_indirect;
        row->cfa_register = read_uleb(reader);
        return true;
    case DW_CFA_DEF_CFA_OFFSET:
        row->cfa_unknown = row->cfa_unknown || row->cfa_indirect;
        row->cfa_offset = (int64_t)read_uleb(reader);
        return true;
    case DW_CFA_DEF_CFA_OFFSET_SF:
        row->cfa_unknown = row->cfa_unknown || row->cfa_indirect;
        row->cfa_offset = read_sleb(reader) * fde->data_factor;
        return true;
    case DW_CFA_DEF_CFA_EXPRESSION:
        set_cfa_expression(row, read_cfi_block(reader, read_uleb(reader)));
        return true;
    default:
        return false;
    }
}

static void run_other(struct machine *machine, struct reader *reader, uint8_t operation)
{
    switch (operation) {
    case DW_CFA_NOP:
#if defined(__aarch64__)
    case DW_CFA_AARCH64_NEGATE_RA_STATE_WITH_PC: /* a signature is taken off from whatever is read */
    case DW_CFA_AARCH64_NEGATE_RA_STATE:
#endif
        break;
    case DW_CFA_GNU_ARGS_SIZE:
        read_uleb(reader);
        break;
    case DW_CFA_REMEMBER_STATE:
        if (machine->remembered_count == REMEMBERED_MAX)
            machine->failed = true;
        else
            machine->remembered[machine->remembered_count++] = machine->row;
        break;
    case DW_CFA_RESTORE_STATE:
        if (machine->remembered_count == 0)
            machine->failed = true;
        else
            machine->row = machine->remembered[--machine->remembered_count];
        break;
    default: /* with operands of unknown length; DW_CFA_set_loc, which nobody writes, is here too */
        machine->failed = true;
    }
}

/* Distance in code units if `operation` moves on, else 0; reads its operand. */
static uint64_t advance_of(struct reader *reader, uint8_t operation)
{
    if ((operation & 0xc0) == DW_CFA_ADVANCE_LOC)
        return operation & 0x3f;
    switch (operation) {
    case DW_CFA_ADVANCE_LOC1:
        return read_u8(reader);
    case DW_CFA_ADVANCE_LOC2:
        return read_u16(reader);
    case DW_CFA_ADVANCE_LOC4:
        return read_u32(reader);
    default:
        return 0;
    }
}

static bool is_advance(uint8_t operation)
{
    return (operation & 0xc0) == DW_CFA_ADVANCE_LOC ||
           (operation >= DW_CFA_ADVANCE_LOC1 && operation <= DW_CFA_ADVANCE_LOC4);
}

/* Runs instructions until the row for the code at `distance` bytes from the start is reached. */
static void run_cfi(struct machine *machine, struct reader reader, const struct fde *fde,
                    uint64_t distance)
{
    uint64_t location = 0;
    while (reader.at < reader.end && !machine->failed) {
        uint8_t operation = read_u8(&reader);
        uint8_t operand = operation & 0x3f;
        if (is_advance(operation)) {
            location += advance_of(&reader, operation) * fde->code_factor;
            if (location > distance)
                return;
        } else if ((operation & 0xc0) == DW_CFA_OFFSET) {
            set_saved(&machine->row, operand, SAVED_AT_OFFSET,
                      (int64_t)read_uleb(&reader) * fde->data_factor);
        } else if ((operation & 0xc0) == DW_CFA_RESTORE) {
            restore_saved(machine, operand);
        } else if (!run_saved(machine, &reader, operation, fde) &&
                   !run_cfa(machine, &reader, operation, fde)) {
            run_other(machine, &reader, operation);
        }
        machine->failed = machine->failed || !reader.good;
    }
}

/* ---- the rule -------------------------------------------------------------------------------- */

#if defined(__x86_64__)

static void rule_of_realigned(struct gm_rule *rule, const struct row *row)
{
    int64_t word = row->cfa_offset / 8;
    if (row->fp.how != SAVED_AT_FP || row->cfa_offset % 8 != 0 || word >= 0 || word < INT8_MIN)
        return;
    rule->saved.cfa = (int8_t)word;
    rule->kind = GM_RULE_REALIGNED;
}

/* Whether a rule can say where the registers were saved. */
static bool set_saved_words(struct gm_saved_words *saved, const struct row *row)
{
    int64_t word = row->fp.offset / 8;
    if (row->fp.how == SAVED_SAME)
        return true;
    saved->fp = (int16_t)word;
    return row->fp.how == SAVED_AT_OFFSET && row->fp.offset % 8 == 0 && word <= -2 &&
           word >= INT16_MIN;
}

/* Where a call left the return address; a body that moved it is for a general unwinder. */
static bool is_return_address_found(const struct saved *saved)
{
    return saved->how == SAVED_AT_OFFSET && saved->offset == -8;
}

#else

static void rule_of_realigned(struct gm_rule *rule, const struct row *row)
{
    (void)rule;
    (void)row;
}

static bool set_saved_words(struct gm_saved_words *saved, const struct row *row)
{
    int64_t step = (row->fp.offset - row->return_address.offset) / 8;
    saved->return_address = (int16_t)(row->return_address.offset / 8);
    if (row->fp.how == SAVED_SAME)
        return true;
    saved->fp_step = (int8_t)step;
    return row->fp.how == SAVED_AT_OFFSET && row->fp.offset % 8 == 0 && row->fp.offset < 0 &&
           step != 0 && step >= INT8_MIN && step <= INT8_MAX;
}

/* It is in x30 until a function saves it, which every one does that calls another. */
static bool is_return_address_found(const struct saved *saved)
{
    return saved->how == SAVED_AT_OFFSET && saved->offset % 8 == 0 && saved->offset < 0 &&
           saved->offset / 8 >= INT16_MIN;
}

#endif

static void rule_of_register(struct gm_rule *rule, const struct row *row)
{
    if (row->cfa_register != GM_REGISTER_SP && row->cfa_register != GM_REGISTER_FP)
        return;
    if (row->cfa_offset < INT32_MIN || row->cfa_offset > INT32_MAX ||
        !set_saved_words(&rule->saved, row))
        return;
    rule->cfa_offset = (int32_t)row->cfa_offset;
    rule->kind = row->cfa_register == GM_REGISTER_SP ? GM_RULE_SP : GM_RULE_FP;
}

/*
 * What is not covered by the entry for pc - 1. A return address that is a function's very start,
 * with no described code before it, was planted there and not pushed by a call, as makecontext()
 * plants __start_context: there is no caller.
 */
static enum gm_rule_kind kind_without_entry(const struct gm_image *image, uint64_t pc)
{
    struct fde fde;
    bool planted = find_fde(image, pc, &fde) == LOOKUP_FOUND && fde.pc_begin == pc;
    return planted ? GM_RULE_END : GM_RULE_NO_CFI;
}

struct gm_rule gm_rule_read(const struct gm_image *image, uint64_t pc)
{
    struct gm_rule rule = {.pc = pc, .kind = GM_RULE_DECLINED};
    struct fde fde;
    /* A call can be a function's last instruction: the return address is then outside of it. */
    enum lookup lookup = find_fde(image, pc - 1, &fde);
    if (lookup == LOOKUP_NONE)
        rule.kind = (uint8_t)kind_without_entry(image, pc);
    if (lookup != LOOKUP_FOUND)
        return rule;
    struct machine machine = {.row = {.cfa_unknown = true}};
    run_cfi(&machine, fde.initial_instructions, &fde, UINT64_MAX);
    machine.initial = machine.row;
    run_cfi(&machine, fde.instructions, &fde, pc - 1 - fde.pc_begin);
    const struct row *row = &machine.row;
    if (machine.failed)
        return rule;
    if (row->return_address.how == SAVED_UNDEFINED) {
        rule.kind = GM_RULE_END;
        return rule;
    }
    if (row->cfa_unknown || row->sp.how != SAVED_SAME ||
        !is_return_address_found(&row->return_address))
        return rule;
    if (row->cfa_indirect)
        rule_of_realigned(&rule, row);
    else
        rule_of_register(&rule, row);
    return rule;
}

#endif
