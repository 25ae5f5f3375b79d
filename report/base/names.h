/* The words that facts are told in, from the records to the last output, and the name of each. Codes and names are
 * stable: scripts and gates rely on them. */
#ifndef GPUMEM_REPORT_BASE_NAMES_H
#define GPUMEM_REPORT_BASE_NAMES_H

#include <gpumem/trace.h>
#include <stdbool.h>
#include <stdint.h>

#define GM_DEVICES 129 /* ordinals -1 (unknown) to 127 */

/* Where a device stands in an array of GM_DEVICES: [ordinal + 1]. */
static inline uint8_t gm_device_slot(int device)
{
    return (uint8_t)(device < 0 ? 0 : device + 1);
}

static inline bool gm_kind_is_host(unsigned kind)
{
    return kind == GM_KIND_PINNED || kind == GM_KIND_REGISTERED || kind == GM_KIND_HOST_VMM;
}

static inline bool gm_kind_is_valid(unsigned kind)
{
    return kind > GM_KIND_NONE && kind < GM_KINDS;
}

/* "device", "managed" ...; the host's VMM is "vmm" too, as in the accounting rules. */
const char *gm_kind_name(unsigned kind);

/* "loading code", "making a context" ...: what a call that is no allocation was refused for; "a call of CUDA" if that
 * is not known. */
const char *gm_purpose_text(unsigned purpose);

/* "code", "context" ...; NULL: none is known. */
const char *gm_purpose_name(unsigned purpose);

enum {
    GM_DIRECTION_SET = GM_COPY_PEER + 1, /* after those of enum gm_copy */
    GM_DIRECTIONS
};

/* "host to device", "fill" */
const char *gm_direction_name(unsigned direction);

/* Why memory that was not freed was not. */
enum gm_leak_class {
    GM_LEAK = 1, /* never freed, though the process came to its end */
    GM_LEAK_LIVE, /* the process runs, or was ended from outside: nothing tells what it would have kept */
    GM_LEAK_LATE,     /* freed when the driver was shut down already */
    GM_LEAK_IMPLICIT, /* it ended with its context */
    GM_LEAK_EXTERNAL, /* another owner's memory, or allocated by a library of the vendor */
    GM_LEAK_CACHED,   /* a framework's cache kept it, as it does by design */
    GM_LEAK_UNTOLD,   /* it may have ended with its context, whose end is not on record */
    GM_LEAK_IGNORED,  /* the program says that it is none (gpumem_ignore_begin) */
    GM_LEAK_CLASSES
};

const char *gm_leak_class_name(unsigned leak_class);

/* What memory is for: stacks/category.h tells. */
enum gm_category {
    GM_CATEGORY_OTHER,         /* what nothing below is known of */
    GM_CATEGORY_PARAMETER,     /* a model's weights and buffers: made, loaded or moved */
    GM_CATEGORY_GRADIENT,      /* made by a backward pass */
    GM_CATEGORY_OPTIMIZER,     /* an optimizer's state */
    GM_CATEGORY_ACTIVATION,    /* made in a module's forward pass */
    GM_CATEGORY_INPUT,         /* filled from the host, or by a data loader */
    GM_CATEGORY_WORKSPACE,     /* of the vendor's libraries, and of an optimizer's step */
    GM_CATEGORY_CACHE,         /* reserved by the pool, and in no block */
    GM_CATEGORY_KV_CACHE,      /* keys and values of attention, kept from token to token */
    GM_CATEGORY_CUDA_GRAPH,    /* taken while CUDA graphs are captured: it lives in their pools */
    GM_CATEGORY_COMPILE,       /* of compilers and autotuners, and of warming up for them */
    GM_CATEGORY_COMMUNICATION, /* buffers of collectives */
    GM_CATEGORY_SAMPLER,       /* of a serving program: choosing the next token */
    GM_CATEGORY_LORA,          /* adapters, and room for them */
    GM_CATEGORIES
};

/* "optimizer-state" */
const char *gm_category_name(enum gm_category category);

/* What findings/ looks for: docs/findings.md. */
enum gm_finding_code {
    GM_FINDING_OUT_OF_MEMORY,
    GM_FINDING_POOL_FRAGMENTATION,
    GM_FINDING_RETAINED,
    GM_FINDING_DEVICE_IMBALANCE,
    GM_FINDING_PAGEABLE_COPIES,
    GM_FINDING_PINNED_GROWTH,
    GM_FINDING_PINNED_WASTE,
    GM_FINDING_CACHED,
    GM_FINDING_BATCH_SIZE_SEARCH,
    GM_FINDING_GROWING,
    GM_FINDING_CHURN,
    GM_FINDING_SECOND_COPY,
    GM_FINDING_DENSE_GRADIENT,
    GM_FINDING_WORKER_CONTEXT,
    GM_FINDING_IPC_HANDLES,
    GM_FINDING_GROWING_CODE,
    GM_FINDING_CODES
};

/* "pageable-copies" */
const char *gm_finding_name(enum gm_finding_code code);

enum gm_severity {
    GM_SEVERITY_NOTE,    /* good to know */
    GM_SEVERITY_WARNING, /* memory or time is wasted, or will run out */
    GM_SEVERITY_ERROR,   /* it did run out */
};

/* "warning" */
const char *gm_severity_name(enum gm_severity severity);

/* How far the process had come when the trace was read. */
enum gm_ending {
    GM_ENDING_NORMAL,  /* the end is marked, or who waited for the process saw it exit */
    GM_ENDING_RUNNING, /* no mark; the process lives */
    GM_ENDING_CUT,     /* no mark; the process is gone: killed or crashed */
    GM_ENDING_FAILED, /* marked, but the device had failed before and took no call since: known when
                          the records were read */
};

/* "SIGKILL", "signal 50". Returns `text`. */
#define GM_SIGNAL_TEXT 24
const char *gm_signal_name(int signal_number, char text[GM_SIGNAL_TEXT]);

enum gm_verdict_state {
    GM_VERDICT_NOTHING,       /* no call that concerns memory was recorded */
    GM_VERDICT_LIVE,          /* the process did not end, or was cut: what lived at that moment */
    GM_VERDICT_LEAKS,         /* it ended, and something was never freed */
    GM_VERDICT_NO_LEAKS,      /* it ended, and all was freed */
    GM_VERDICT_NO_LEAKS_SEEN, /* the same, as far as the trace tells */
};

/* Whether a refusal was one of addresses: the device had the bytes, the holes had them together,
 * and none alone. Gaps between addresses are not memory, so the first must be known. */
enum gm_fragmentation {
    GM_FRAGMENTATION_NONE,
    GM_FRAGMENTATION_CERTAIN,
    GM_FRAGMENTATION_UNTOLD, /* the holes look like it; the size of the device is not on record */
};

/* A kind of memory that phases tell apart. */
enum gm_phase_where { GM_PHASE_DEVICE, GM_PHASE_POOL, GM_PHASE_PINNED };

/* What divides the program's time. */
enum gm_moment_kind { GM_MOMENT_NONE, GM_MOMENT_MARK, GM_MOMENT_RANGE };

#endif
