/*
 * libnvidia-ml.so.1, simulated: the few functions that a tool needs to sample device memory, and
 * those by which serving programs ask what the devices are. Their answers are the simulated
 * driver's (driver/profile.h): name, compute capability, UUID, bus and memory.
 *
 * A process uses what the oracle says is live (GPUMEM_SIM_ORACLE, sim/oracle.h), and on each device
 * GPUMEM_SIM_NVML_CONTEXT more: a number of bytes with an optional K, M or G. Without an oracle,
 * and with GPUMEM_SIM_NVML_UNAVAILABLE set, the use by a process is "not available", as it is in
 * containers. Without an oracle no use of a device is known: all of its memory is free. Before its
 * caller it names GPUMEM_SIM_NVML_OTHERS processes that do not exist, and of each device
 * GPUMEM_SIM_NVML_ELSEWHERE bytes are used by others. With GPUMEM_SIM_NVML_MIG set
 * each device is a card in MIG mode, of which others have parts.
 *
 * The functions at the end are those that PyTorch asks before it shares expandable segments; it calls
 * through NULL where the library or one of them is missing.
 */
#include "driver/profile.h"
#include "oracle.h"
#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#define EXPORTED __attribute__((visibility("default")))

enum {
    NVML_SUCCESS = 0,
    NVML_ERROR_UNINITIALIZED = 1,
    NVML_ERROR_INVALID_ARGUMENT = 2,
    NVML_ERROR_NOT_SUPPORTED = 3,
    NVML_ERROR_NOT_FOUND = 6,
    NVML_ERROR_INSUFFICIENT_SIZE = 7,
    NVML_ERROR_UNKNOWN = 999,
};

typedef const struct simulated {
    unsigned int ordinal;
} * nvml_device;

struct nvml_memory {
    unsigned long long total;
    unsigned long long free;
    unsigned long long used;
};

struct nvml_process {
    unsigned int pid;
    unsigned long long used;
    unsigned int gpu_instance;
    unsigned int compute_instance;
};

static const struct simulated devices[GPUSIM_MAX_DEVICES] = {
    {0}, {1}, {2}, {3}, {4}, {5}, {6}, {7}, {8}, {9}, {10}, {11}, {12}, {13}, {14}, {15}};

/* How often it was initialized and not shut down: a program that ends its use leaves another's. A
 * forked child has to begin anew. */
static _Atomic int initialized;
static _Atomic pid_t process;

/*
 * What NVML keeps open from the first nvmlInit on, as NVIDIA's does its device files. A thread with
 * descriptors of its own, which lack it, is answered with an error.
 */
static struct {
    int descriptor;
    struct stat file;
} control;

__attribute__((constructor)) static void read_device(void)
{
    const char *text = getenv("GPUMEM_SIM_DEVICE");
    if (text)
        gpusim_profile_read(text); /* the driver complains of one that is not valid */
}

static bool is_open(void)
{
    struct stat file;
    return fstat(control.descriptor, &file) == 0 && file.st_ino == control.file.st_ino;
}

/* What NVIDIA's NVML answers before nvmlInit. */
#define NEED_INIT()                                                                                \
    if (!initialized || process != getpid())                                                       \
        return NVML_ERROR_UNINITIALIZED;                                                           \
    if (!is_open())                                                                                \
    return NVML_ERROR_UNKNOWN

/* Reads the oracle of this process as it is now. */
static int read_oracle(struct gpusim_oracle *oracle)
{
    const char *path = getenv("GPUMEM_SIM_ORACLE");
    int descriptor = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    if (descriptor < 0)
        return 0;
    ssize_t got = read(descriptor, oracle, sizeof(*oracle));
    close(descriptor);
    return got == sizeof(*oracle) &&
           memcmp(oracle->magic, GPUSIM_ORACLE_MAGIC, sizeof(oracle->magic)) == 0;
}

/* A number of bytes with an optional K, M or G. */
static unsigned long long bytes_setting(const char *variable, unsigned long long otherwise)
{
    const char *text = getenv(variable);
    char *end = NULL;
    unsigned long long bytes = text ? strtoull(text, &end, 10) : otherwise;
    const char *suffix = end && *end ? strchr("KMG", *end) : NULL;
    return suffix ? bytes << (*suffix == 'K' ? 10 : *suffix == 'M' ? 20 : 30) : bytes;
}

/* Bytes used on a device; all ones when that is not available. */
static unsigned long long used_on(unsigned int ordinal)
{
    struct gpusim_oracle oracle;
    if (getenv("GPUMEM_SIM_NVML_UNAVAILABLE") || !read_oracle(&oracle))
        return ~0ull;
    return oracle.device[ordinal].live + bytes_setting("GPUMEM_SIM_NVML_CONTEXT", 0);
}

EXPORTED int nvmlInit_v2(void);
EXPORTED int nvmlDeviceGetCount_v2(unsigned int *count);
EXPORTED int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvml_device *device);
EXPORTED int nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *device);
EXPORTED int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory);
EXPORTED int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned int *count,
                                                     struct nvml_process *processes);

int nvmlInit_v2(void)
{
    static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
    pthread_mutex_lock(&mutex);
    if (process != getpid()) {
        process = getpid();
        initialized = 0;
        control.descriptor = memfd_create("nvidiactl", MFD_CLOEXEC);
        if (fstat(control.descriptor, &control.file) != 0)
            abort();
    }
    initialized++;
    pthread_mutex_unlock(&mutex);
    return is_open() ? NVML_SUCCESS : NVML_ERROR_UNKNOWN;
}

EXPORTED int nvmlInit(void);
EXPORTED int nvmlInitWithFlags(unsigned int flags);
EXPORTED int nvmlShutdown(void);

int nvmlInit(void)
{
    return nvmlInit_v2();
}

int nvmlInitWithFlags(unsigned int flags)
{
    (void)flags;
    return nvmlInit_v2();
}

/* NVIDIA's is content, too, where nothing was initialized. */
int nvmlShutdown(void)
{
    int count = initialized;
    while (count > 0 && !atomic_compare_exchange_weak(&initialized, &count, count - 1))
        ;
    return NVML_SUCCESS;
}

int nvmlDeviceGetCount_v2(unsigned int *count)
{
    struct gpusim_oracle oracle;
    NEED_INIT();
    const char *devices_set = getenv("GPUMEM_SIM_DEVICES");
    int wanted = devices_set ? atoi(devices_set) : 1;
    *count = read_oracle(&oracle)                          ? oracle.device_count
             : wanted >= 1 && wanted <= GPUSIM_MAX_DEVICES ? (unsigned int)wanted
                                                           : 1;
    return NVML_SUCCESS;
}

int nvmlDeviceGetHandleByIndex_v2(unsigned int index, nvml_device *device)
{
    unsigned int count;
    int result = nvmlDeviceGetCount_v2(&count);
    if (result == NVML_SUCCESS && index >= count)
        result = NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS)
        *device = &devices[index];
    return result;
}

EXPORTED int nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned int length);

/* The bytes that cuDeviceGetUuid answers, "gpumem simulat", 0 and the ordinal. */
int nvmlDeviceGetUUID(nvml_device device, char *uuid, unsigned int length)
{
    NEED_INIT();
    if (!device || !uuid)
        return NVML_ERROR_INVALID_ARGUMENT;
    int wanted =
        snprintf(uuid, length, "GPU-6770756d-656d-2073-696d-756c617400%02x", device->ordinal);
    return wanted < (int)length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

/* As nvmlDeviceGetUUID names a device, or "GPU-sim-N". */
int nvmlDeviceGetHandleByUUID(const char *uuid, nvml_device *device)
{
    NEED_INIT();
    for (unsigned int i = 0; i < GPUSIM_MAX_DEVICES; i++) {
        char name[64];
        nvmlDeviceGetUUID(&devices[i], name, sizeof(name));
        if (strcmp(uuid, name) == 0)
            return nvmlDeviceGetHandleByIndex_v2(i, device);
    }
    static const char prefix[] = "GPU-sim-";
    if (strncmp(uuid, prefix, strlen(prefix)) != 0)
        return NVML_ERROR_NOT_FOUND;
    return nvmlDeviceGetHandleByIndex_v2((unsigned int)atoi(uuid + strlen(prefix)), device);
}

int nvmlDeviceGetMemoryInfo(nvml_device device, struct nvml_memory *memory)
{
    NEED_INIT();
    const unsigned long long step = 2ull << 20; /* to which the driver rounds */
    unsigned long long total = bytes_setting("GPUMEM_SIM_MEMORY", 8ull << 30);
    unsigned long long used = used_on(device->ordinal);
    if (getenv("GPUMEM_SIM_NVML_UNAVAILABLE"))
        return NVML_ERROR_UNKNOWN;
    if (used == ~0ull)
        used = 0;
    used += bytes_setting("GPUMEM_SIM_NVML_ELSEWHERE", 0);
    memory->total = (total + step - 1) / step * step;
    memory->used = used;
    memory->free = memory->total > used ? memory->total - used : 0;
    return NVML_SUCCESS;
}

int nvmlDeviceGetComputeRunningProcesses_v3(nvml_device device, unsigned int *count,
                                            struct nvml_process *processes)
{
    NEED_INIT();
    const char *others_set = getenv("GPUMEM_SIM_NVML_OTHERS");
    const unsigned int others = others_set ? (unsigned int)strtoul(others_set, NULL, 10) : 0;
    unsigned int room = *count;
    *count = others + 1;
    if (room < *count)
        return NVML_ERROR_INSUFFICIENT_SIZE;
    for (unsigned int i = 0; i < others; i++) /* beyond the numbers that Linux gives */
        processes[i] = (struct nvml_process){.pid = (1u << 22) + 1 + i, .used = 1};
    processes[others] =
        (struct nvml_process){.pid = (unsigned int)getpid(), .used = used_on(device->ordinal)};
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetMigMode(nvml_device device, unsigned int *current, unsigned int *pending);

int nvmlDeviceGetMigMode(nvml_device device, unsigned int *current, unsigned int *pending)
{
    NEED_INIT();
    if (!device || !current || !pending)
        return NVML_ERROR_INVALID_ARGUMENT;
    *current = *pending = getenv("GPUMEM_SIM_NVML_MIG") != NULL;
    return NVML_SUCCESS;
}

EXPORTED int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvml_device *device);
EXPORTED int nvmlDeviceGetComputeRunningProcesses(nvml_device device, unsigned int *count,
                                                  void *processes);
EXPORTED int nvmlSystemGetCudaDriverVersion_v2(int *version);
EXPORTED int nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device device, unsigned int link, int *type);
EXPORTED int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned int link, void *info);

/* "0000:01:00.0" is the first device: sim/driver/device.c numbers the buses from 1. */
int nvmlDeviceGetHandleByPciBusId_v2(const char *bus_id, nvml_device *device)
{
    NEED_INIT();
    unsigned int domain, bus;
    if (!bus_id || !device || sscanf(bus_id, "%x:%x", &domain, &bus) != 2 || bus < 1)
        return NVML_ERROR_INVALID_ARGUMENT;
    return nvmlDeviceGetHandleByIndex_v2(bus - 1, device);
}

/* An older form, of another layout: no processes. */
int nvmlDeviceGetComputeRunningProcesses(nvml_device device, unsigned int *count, void *processes)
{
    (void)processes;
    NEED_INIT();
    if (!device || !count)
        return NVML_ERROR_INVALID_ARGUMENT;
    *count = 0;
    return NVML_SUCCESS;
}

int nvmlSystemGetCudaDriverVersion_v2(int *version)
{
    (void)version;
    NEED_INIT();
    return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemoteDeviceType(nvml_device device, unsigned int link, int *type)
{
    (void)device;
    (void)link;
    (void)type;
    NEED_INIT();
    return NVML_ERROR_NOT_SUPPORTED;
}

int nvmlDeviceGetNvLinkRemotePciInfo_v2(nvml_device device, unsigned int link, void *info)
{
    (void)device;
    (void)link;
    (void)info;
    NEED_INIT();
    return NVML_ERROR_NOT_SUPPORTED;
}

/* ---- what a device is: asked by serving programs before they touch CUDA ------------------------ */

struct nvml_pci {
    char legacy[16];
    unsigned int domain;
    unsigned int bus;
    unsigned int device;
    unsigned int device_id;
    unsigned int subsystem_id;
    char name[32];
};

EXPORTED int nvmlDeviceGetCount(unsigned int *count);
EXPORTED int nvmlDeviceGetHandleByIndex(unsigned int index, nvml_device *device);
EXPORTED int nvmlDeviceGetName(nvml_device device, char *name, unsigned int length);
EXPORTED int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor);
EXPORTED int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *pci);
EXPORTED int nvmlDeviceGetP2PStatus(nvml_device device, nvml_device peer, int index, int *status);

int nvmlDeviceGetCount(unsigned int *count)
{
    return nvmlDeviceGetCount_v2(count);
}

int nvmlDeviceGetHandleByIndex(unsigned int index, nvml_device *device)
{
    return nvmlDeviceGetHandleByIndex_v2(index, device);
}

int nvmlDeviceGetName(nvml_device device, char *name, unsigned int length)
{
    NEED_INIT();
    if (!device || !name)
        return NVML_ERROR_INVALID_ARGUMENT;
    int wanted = snprintf(name, length, "%s", gpusim_profile.name);
    return wanted < (int)length ? NVML_SUCCESS : NVML_ERROR_INSUFFICIENT_SIZE;
}

int nvmlDeviceGetCudaComputeCapability(nvml_device device, int *major, int *minor)
{
    NEED_INIT();
    if (!device || !major || !minor)
        return NVML_ERROR_INVALID_ARGUMENT;
    *major = gpusim_profile.major;
    *minor = gpusim_profile.minor;
    return NVML_SUCCESS;
}

/* The identity of a card that was sold is none of the simulator's: the two ids are 0. */
int nvmlDeviceGetPciInfo_v3(nvml_device device, struct nvml_pci *pci)
{
    NEED_INIT();
    if (!device || !pci)
        return NVML_ERROR_INVALID_ARGUMENT;
    *pci = (struct nvml_pci){.bus = device->ordinal + 1};
    snprintf(pci->legacy, sizeof(pci->legacy), "0000:%02X:00.0", pci->bus);
    snprintf(pci->name, sizeof(pci->name), "00000000:%02X:00.0", pci->bus);
    return NVML_SUCCESS;
}

/* NVML_P2P_STATUS_OK: the simulated driver lets every device reach every other. */
int nvmlDeviceGetP2PStatus(nvml_device device, nvml_device peer, int index, int *status)
{
    (void)index;
    NEED_INIT();
    if (!device || !peer || !status)
        return NVML_ERROR_INVALID_ARGUMENT;
    *status = 0;
    return NVML_SUCCESS;
}

/* ---- what monitors ask: Ray, SGLang, pynvml ----------------------------------------------------- */

struct nvml_memory_v2 {
    unsigned int version; /* in: its size, and 2 in the upper byte */
    unsigned long long total;
    unsigned long long reserved;
    unsigned long long free;
    unsigned long long used;
};

struct nvml_utilization {
    unsigned int gpu;
    unsigned int memory;
};

struct nvml_confidential {
    unsigned int environment;
    unsigned int feature;
    unsigned int dev_tools;
};

EXPORTED const char *nvmlErrorString(int result);
EXPORTED int nvmlSystemGetDriverVersion(char *version, unsigned int length);
EXPORTED int nvmlSystemGetNVMLVersion(char *version, unsigned int length);
EXPORTED int nvmlSystemGetConfComputeState(struct nvml_confidential *state);
EXPORTED int nvmlDeviceGetIndex(nvml_device device, unsigned int *index);
EXPORTED int nvmlDeviceGetMinorNumber(nvml_device device, unsigned int *minor);
EXPORTED int nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct nvml_memory_v2 *memory);
EXPORTED int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_utilization *rates);
EXPORTED int nvmlDeviceGetArchitecture(nvml_device device, unsigned int *architecture);
EXPORTED int nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned int *count);
EXPORTED int nvmlDeviceGetCurrPcieLinkGeneration(nvml_device device, unsigned int *generation);
EXPORTED int nvmlDeviceGetCurrPcieLinkWidth(nvml_device device, unsigned int *lanes);
EXPORTED int nvmlDeviceGetPcieSpeed(nvml_device device, unsigned int *speed);
EXPORTED int nvmlDeviceGetTopologyCommonAncestor(nvml_device device, nvml_device other,
                                                 unsigned int *level);
EXPORTED int nvmlDeviceGetNumaNodeId(nvml_device device, unsigned int *node);
EXPORTED int nvmlDeviceGetCpuAffinity(nvml_device device, unsigned int words, unsigned long *set);
EXPORTED int nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device device, unsigned int *count,
                                                      struct nvml_process *processes);

const char *nvmlErrorString(int result)
{
    static const struct {
        int result;
        const char *text;
    } texts[] = {
        {NVML_SUCCESS, "The operation was successful"},
        {NVML_ERROR_UNINITIALIZED, "NVML was not first initialized with nvmlInit()"},
        {NVML_ERROR_INVALID_ARGUMENT, "A supplied argument is invalid"},
        {NVML_ERROR_NOT_SUPPORTED, "The requested operation is not available on target device"},
        {NVML_ERROR_NOT_FOUND, "A query to find an object was unsuccessful"},
        {NVML_ERROR_INSUFFICIENT_SIZE, "An input argument is not large enough"},
    };
    for (size_t i = 0; i < sizeof(texts) / sizeof(texts[0]); i++)
        if (texts[i].result == result)
            return texts[i].text;
    return "An internal driver error occurred";
}

static int write_version(char *version, unsigned int length, const char *text)
{
    if (!version)
        return NVML_ERROR_INVALID_ARGUMENT;
    return snprintf(version, length, "%s", text) < (int)length ? NVML_SUCCESS
                                                               : NVML_ERROR_INSUFFICIENT_SIZE;
}

/* No driver of NVIDIA's has these numbers: programs read them as such, and compare. */
int nvmlSystemGetDriverVersion(char *version, unsigned int length)
{
    NEED_INIT();
    return write_version(version, length, "999.0");
}

/* Of the library: told before nvmlInit, too. */
int nvmlSystemGetNVMLVersion(char *version, unsigned int length)
{
    return write_version(version, length, "13.999.0");
}

int nvmlSystemGetConfComputeState(struct nvml_confidential *state)
{
    NEED_INIT();
    if (!state)
        return NVML_ERROR_INVALID_ARGUMENT;
    *state = (struct nvml_confidential){0};
    return NVML_SUCCESS;
}

/* Writes a number about a device. */
static int answer_number(nvml_device device, unsigned int *number, unsigned int value)
{
    NEED_INIT();
    if (!device || !number)
        return NVML_ERROR_INVALID_ARGUMENT;
    *number = value;
    return NVML_SUCCESS;
}

int nvmlDeviceGetIndex(nvml_device device, unsigned int *index)
{
    return answer_number(device, index, device ? device->ordinal : 0);
}

int nvmlDeviceGetMinorNumber(nvml_device device, unsigned int *minor)
{
    return answer_number(device, minor, device ? device->ordinal : 0);
}

int nvmlDeviceGetMemoryInfo_v2(nvml_device device, struct nvml_memory_v2 *memory)
{
    struct nvml_memory plain;
    int result =
        device && memory ? nvmlDeviceGetMemoryInfo(device, &plain) : NVML_ERROR_INVALID_ARGUMENT;
    if (result == NVML_SUCCESS) {
        memory->total = plain.total;
        memory->reserved = 0;
        memory->free = plain.free;
        memory->used = plain.used;
    }
    return result;
}

/* Nothing runs on it. */
int nvmlDeviceGetUtilizationRates(nvml_device device, struct nvml_utilization *rates)
{
    NEED_INIT();
    if (!device || !rates)
        return NVML_ERROR_INVALID_ARGUMENT;
    *rates = (struct nvml_utilization){0};
    return NVML_SUCCESS;
}

/* NVML_DEVICE_ARCH_...: by the compute capability. */
int nvmlDeviceGetArchitecture(nvml_device device, unsigned int *architecture)
{
    static const struct {
        int capability;
        unsigned int architecture;
    } known[] = {{100, 10}, {90, 9}, {89, 8}, {80, 7}, {75, 6}, {70, 5}, {60, 4}, {50, 3}, {0, 2}};
    const int capability = gpusim_profile.major * 10 + gpusim_profile.minor;
    size_t i = 0;
    while (known[i].capability > capability)
        i++;
    return answer_number(device, architecture, known[i].architecture);
}

int nvmlDeviceGetMaxMigDeviceCount(nvml_device device, unsigned int *count)
{
    return answer_number(device, count, 0);
}

/* PCIe as the architecture's cards for servers have it: 16 lanes of generation 3, 4 or 5. */
static unsigned int pcie_generation(void)
{
    return gpusim_profile.major < 8 ? 3 : gpusim_profile.major < 9 ? 4 : 5;
}

int nvmlDeviceGetCurrPcieLinkGeneration(nvml_device device, unsigned int *generation)
{
    return answer_number(device, generation, pcie_generation());
}

int nvmlDeviceGetCurrPcieLinkWidth(nvml_device device, unsigned int *lanes)
{
    return answer_number(device, lanes, 16);
}

/* Megabits a second of each lane. */
int nvmlDeviceGetPcieSpeed(nvml_device device, unsigned int *speed)
{
    return answer_number(device, speed, 1000u << pcie_generation());
}

/* NVML_TOPOLOGY_NODE: one host, each device on a bus of its own. */
int nvmlDeviceGetTopologyCommonAncestor(nvml_device device, nvml_device other, unsigned int *level)
{
    return other ? answer_number(device, level, 40) : NVML_ERROR_INVALID_ARGUMENT;
}

int nvmlDeviceGetNumaNodeId(nvml_device device, unsigned int *node)
{
    return answer_number(device, node, 0);
}

/* All processors. */
int nvmlDeviceGetCpuAffinity(nvml_device device, unsigned int words, unsigned long *set)
{
    NEED_INIT();
    if (!device || !words || !set)
        return NVML_ERROR_INVALID_ARGUMENT;
    const long processors = sysconf(_SC_NPROCESSORS_CONF);
    const unsigned int bits = 8 * sizeof(*set);
    memset(set, 0, words * sizeof(*set));
    for (long i = 0; i < processors && i < (long)words * (long)bits; i++)
        set[(unsigned long)i / bits] |= 1ul << ((unsigned long)i % bits);
    return NVML_SUCCESS;
}

int nvmlDeviceGetGraphicsRunningProcesses_v3(nvml_device device, unsigned int *count,
                                             struct nvml_process *processes)
{
    (void)processes;
    return answer_number(device, count, 0);
}

/* What links a device to those of other machines, in version 3; the older ones end earlier. */
struct nvml_fabric {
    unsigned int version; /* in: its size, and the number of the version in the upper byte */
    unsigned char cluster[16];
    int status;
    unsigned int clique;
    unsigned char state; /* 0: not supported */
    unsigned int health_mask;
    unsigned char health_summary;
};

/* XLA aborts where this fails: a driver answers that there is no such link. */
EXPORTED int nvmlDeviceGetGpuFabricInfoV(nvml_device device, struct nvml_fabric *fabric);
int nvmlDeviceGetGpuFabricInfoV(nvml_device device, struct nvml_fabric *fabric)
{
    (void)device;
    NEED_INIT();
    if (!fabric || (fabric->version & 0xffffff) > sizeof(*fabric) ||
        (fabric->version & 0xffffff) < offsetof(struct nvml_fabric, health_mask))
        return NVML_ERROR_INVALID_ARGUMENT;
    memset(fabric->cluster, 0,
           (fabric->version & 0xffffff) - offsetof(struct nvml_fabric, cluster));
    return NVML_SUCCESS;
}

/* One figure that is asked for by number. */
struct nvml_field {
    unsigned int field, scope;
    long long time, latency;
    int type;
    int result; /* of this figure */
    unsigned long long value;
};

/* Figures are of sensors and links, as those below. */
EXPORTED int nvmlDeviceGetFieldValues(nvml_device device, int count, struct nvml_field *fields);
int nvmlDeviceGetFieldValues(nvml_device device, int count, struct nvml_field *fields)
{
    NEED_INIT();
    if (!device || count <= 0 || !fields)
        return NVML_ERROR_INVALID_ARGUMENT;
    for (int i = 0; i < count; i++) {
        fields[i].result = NVML_ERROR_NOT_SUPPORTED;
        fields[i].value = 0;
    }
    return NVML_SUCCESS;
}

/* What no simulated device has: sensors, links, a serial number, parts. A program that finds no such function may
 * end; one that is told so goes on. */
#define NOT_SUPPORTED(name)                                                                        \
    EXPORTED int name(void);                                                                       \
    int name(void)                                                                                 \
    {                                                                                              \
        NEED_INIT();                                                                               \
        return NVML_ERROR_NOT_SUPPORTED;                                                           \
    }
NOT_SUPPORTED(nvmlDeviceGetAttributes_v2)
NOT_SUPPORTED(nvmlDeviceGetBrand)
NOT_SUPPORTED(nvmlDeviceGetClockInfo)
NOT_SUPPORTED(nvmlDeviceGetComputeInstanceId)
NOT_SUPPORTED(nvmlDeviceGetEnforcedPowerLimit)
NOT_SUPPORTED(nvmlDeviceGetGpuFabricInfo)
NOT_SUPPORTED(nvmlDeviceGetGpuInstanceId)
NOT_SUPPORTED(nvmlDeviceGetMaxClockInfo)
NOT_SUPPORTED(nvmlDeviceGetMemoryBusWidth)
NOT_SUPPORTED(nvmlDeviceGetMigDeviceHandleByIndex)
NOT_SUPPORTED(nvmlDeviceGetNvLinkCapability)
NOT_SUPPORTED(nvmlDeviceGetNvLinkState)
NOT_SUPPORTED(nvmlDeviceGetNvLinkVersion)
NOT_SUPPORTED(nvmlDeviceGetPowerUsage)
NOT_SUPPORTED(nvmlDeviceGetSerial)
NOT_SUPPORTED(nvmlDeviceGetTemperature)
