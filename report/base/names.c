/* See names.h. */
#include "base/names.h"
#include <signal.h>
#include <stddef.h>
#include <stdio.h>

const char *gm_kind_name(unsigned kind)
{
    static const char *const names[GM_KINDS] = {
        [GM_KIND_NONE] = "unknown",
        [GM_KIND_DEVICE] = "device",
        [GM_KIND_MANAGED] = "managed",
        [GM_KIND_ARRAY] = "array",
        [GM_KIND_VMM] = "vmm",
        [GM_KIND_GRAPH] = "graph",
        [GM_KIND_EXTERNAL] = "external",
        [GM_KIND_PINNED] = "pinned",
        [GM_KIND_REGISTERED] = "registered",
        [GM_KIND_HOST_VMM] = "vmm",
    };
    return kind < GM_KINDS ? names[kind] : names[GM_KIND_NONE];
}

static const struct {
    const char *name, *text;
} purposes[GM_PURPOSES] = {
    [GM_PURPOSE_CONTEXT] = {"context", "making a context"},
    [GM_PURPOSE_CODE] = {"code", "loading code"},
    [GM_PURPOSE_LAUNCH] = {"launch", "launching a kernel"},
    [GM_PURPOSE_LIMIT] = {"limit", "setting a limit of a context"},
    [GM_PURPOSE_STREAM] = {"stream", "making a stream"},
    [GM_PURPOSE_EVENT] = {"event", "making an event"},
    [GM_PURPOSE_GRAPH] = {"graph", "a graph"},
    [GM_PURPOSE_POOL] = {"pool", "making a pool"},
    [GM_PURPOSE_MAPPING] = {"mapping", "mapping memory"},
    [GM_PURPOSE_SHARE] = {"share", "sharing memory with another owner"},
    [GM_PURPOSE_TEXTURE] = {"texture", "making a texture or surface"},
    [GM_PURPOSE_COPY] = {"copy", "a copy or a set"},
    [GM_PURPOSE_WAIT] = {"wait", "work that a call waited for"},
};

const char *gm_purpose_name(unsigned purpose)
{
    return purpose < GM_PURPOSES ? purposes[purpose].name : NULL;
}

const char *gm_purpose_text(unsigned purpose)
{
    const char *text = purpose < GM_PURPOSES ? purposes[purpose].text : NULL;
    return text ? text : "a call of CUDA";
}

const char *gm_direction_name(unsigned direction)
{
    static const char *const names[GM_DIRECTIONS] = {
        [GM_COPY_UNKNOWN] = "unknown",
        [GM_COPY_HOST_TO_DEVICE] = "host to device",
        [GM_COPY_DEVICE_TO_HOST] = "device to host",
        [GM_COPY_DEVICE_TO_DEVICE] = "device to device",
        [GM_COPY_HOST_TO_HOST] = "host to host",
        [GM_COPY_PEER] = "peer to peer",
        [GM_DIRECTION_SET] = "fill",
    };
    return names[direction < GM_DIRECTIONS ? direction : GM_COPY_UNKNOWN];
}

const char *gm_leak_class_name(unsigned leak_class)
{
    static const char *const names[GM_LEAK_CLASSES] = {
        [GM_LEAK] = "leak",
        [GM_LEAK_LIVE] = "live",
        [GM_LEAK_LATE] = "late",
        [GM_LEAK_IMPLICIT] = "implicit",
        [GM_LEAK_EXTERNAL] = "external",
        [GM_LEAK_CACHED] = "cached",
        [GM_LEAK_UNTOLD] = "untold",
        [GM_LEAK_IGNORED] = "ignored",
    };
    return leak_class > 0 && leak_class < GM_LEAK_CLASSES ? names[leak_class] : "unknown";
}

const char *gm_category_name(enum gm_category category)
{
    static const char *const names[GM_CATEGORIES] = {
        [GM_CATEGORY_OTHER] = "other",           [GM_CATEGORY_PARAMETER] = "parameter",
        [GM_CATEGORY_GRADIENT] = "gradient",     [GM_CATEGORY_OPTIMIZER] = "optimizer-state",
        [GM_CATEGORY_ACTIVATION] = "activation", [GM_CATEGORY_INPUT] = "input",
        [GM_CATEGORY_WORKSPACE] = "workspace",   [GM_CATEGORY_CACHE] = "cache",
        [GM_CATEGORY_KV_CACHE] = "kv-cache",     [GM_CATEGORY_CUDA_GRAPH] = "cuda-graph",
        [GM_CATEGORY_COMPILE] = "compile",       [GM_CATEGORY_COMMUNICATION] = "communication",
        [GM_CATEGORY_SAMPLER] = "sampler",       [GM_CATEGORY_LORA] = "lora",
    };
    return names[category];
}

const char *gm_finding_name(enum gm_finding_code code)
{
    static const char *const names[GM_FINDING_CODES] = {
        [GM_FINDING_OUT_OF_MEMORY] = "out-of-memory",
        [GM_FINDING_POOL_FRAGMENTATION] = "pool-fragmentation",
        [GM_FINDING_RETAINED] = "retained",
        [GM_FINDING_DEVICE_IMBALANCE] = "device-imbalance",
        [GM_FINDING_PINNED_GROWTH] = "pinned-growth",
        [GM_FINDING_PINNED_WASTE] = "pinned-waste",
        [GM_FINDING_CACHED] = "cached",
        [GM_FINDING_BATCH_SIZE_SEARCH] = "batch-size-search",
        [GM_FINDING_PAGEABLE_COPIES] = "pageable-copies",
        [GM_FINDING_GROWING] = "growing",
        [GM_FINDING_CHURN] = "churn",
        [GM_FINDING_SECOND_COPY] = "second-copy",
        [GM_FINDING_DENSE_GRADIENT] = "dense-gradient",
        [GM_FINDING_WORKER_CONTEXT] = "worker-context",
        [GM_FINDING_IPC_HANDLES] = "ipc-handles",
        [GM_FINDING_GROWING_CODE] = "growing-code",
    };
    return names[code];
}

const char *gm_severity_name(enum gm_severity severity)
{
    static const char *const names[] = {
        [GM_SEVERITY_NOTE] = "note",
        [GM_SEVERITY_WARNING] = "warning",
        [GM_SEVERITY_ERROR] = "error",
    };
    return names[severity];
}

/* glibc has sigabbrev_np since 2.32 alone. */
const char *gm_signal_name(int signal_number, char text[GM_SIGNAL_TEXT])
{
    static const char *const names[] = {
        [SIGHUP] = "HUP",   [SIGINT] = "INT",       [SIGQUIT] = "QUIT", [SIGILL] = "ILL",
        [SIGTRAP] = "TRAP", [SIGABRT] = "ABRT",     [SIGBUS] = "BUS",   [SIGFPE] = "FPE",
        [SIGKILL] = "KILL", [SIGUSR1] = "USR1",     [SIGSEGV] = "SEGV", [SIGUSR2] = "USR2",
        [SIGPIPE] = "PIPE", [SIGALRM] = "ALRM",     [SIGTERM] = "TERM", [SIGSTKFLT] = "STKFLT",
        [SIGCHLD] = "CHLD", [SIGCONT] = "CONT",     [SIGSTOP] = "STOP", [SIGTSTP] = "TSTP",
        [SIGTTIN] = "TTIN", [SIGTTOU] = "TTOU",     [SIGURG] = "URG",   [SIGXCPU] = "XCPU",
        [SIGXFSZ] = "XFSZ", [SIGVTALRM] = "VTALRM", [SIGPROF] = "PROF", [SIGWINCH] = "WINCH",
        [SIGIO] = "IO",     [SIGPWR] = "PWR",       [SIGSYS] = "SYS",
    };
    bool is_known = signal_number > 0 && (size_t)signal_number < sizeof(names) / sizeof(names[0]);
    const char *name = is_known ? names[signal_number] : NULL;
    if (name)
        snprintf(text, GM_SIGNAL_TEXT, "SIG%s", name);
    else
        snprintf(text, GM_SIGNAL_TEXT, "signal %d", signal_number);
    return text;
}
