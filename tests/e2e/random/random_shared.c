/*
 * Random program: memory of other owners: IPC handles and external memory.
 *
 * A process cannot open its own IPC handles, so some programs start a second one that allocates and
 * exports. It runs without the preload and without an oracle: it is somebody else's program.
 */
#include "random.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

CUresult cuIpcOpenMemHandle_v1(CUdeviceptr *, CUipcMemHandle,
                               unsigned) __asm__("cuIpcOpenMemHandle");

extern char **environ;

#define HANDLES_MAX 32
#define EXTERNAL_SIZE ((size_t)1 << 20)

static CUipcMemHandle handles[HANDLES_MAX];
static int handle_count;
static pid_t exporter;
static int exporter_input = -1; /* closed: it may end */

/* ---- the exporter ---------------------------------------------------------------------------- */

int export_memory(void)
{
    CUcontext context;
    char byte;
    if (cuInit(0) != 0 || cuDevicePrimaryCtxRetain(&context, 0) != 0 ||
        cuCtxSetCurrent(context) != 0)
        return 1;
    for (int i = 0; i < HANDLES_MAX; i++) {
        CUdeviceptr address;
        CUipcMemHandle handle;
        if (cuMemAlloc(&address, 4096u << (i % 4)) != 0 || cuIpcGetMemHandle(&handle, address) != 0)
            return 1;
        if (fwrite(&handle, sizeof(handle), 1, stdout) != 1)
            return 1;
    }
    fflush(stdout);
    while (read(STDIN_FILENO, &byte, 1) > 0)
        ;
    return 0;
}

static int is_ours(const char *variable)
{
    return strncmp(variable, "LD_PRELOAD=", 11) == 0 || strncmp(variable, "GPUMEM_", 7) == 0;
}

static int spawn(int input, int output, char *const *environment)
{
    char *arguments[] = {"random_program", "--export", NULL};
    posix_spawn_file_actions_t actions;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, input, STDIN_FILENO);
    posix_spawn_file_actions_adddup2(&actions, output, STDOUT_FILENO);
    const int error =
        posix_spawn(&exporter, "/proc/self/exe", &actions, NULL, arguments, environment);
    posix_spawn_file_actions_destroy(&actions);
    return error;
}

void start_exporter(void)
{
    int input[2], output[2];
    char *environment[256];
    int count = 0;
    for (char **variable = environ; *variable && count < 255; variable++)
        if (!is_ours(*variable))
            environment[count++] = *variable;
    environment[count] = NULL;
    if (pipe2(input, O_CLOEXEC) != 0 || pipe2(output, O_CLOEXEC) != 0 ||
        spawn(input[0], output[1], environment) != 0)
        abort();
    close(input[0]);
    close(output[1]);
    exporter_input = input[1];
    FILE *answer = fdopen(output[0], "r");
    handle_count = answer ? (int)fread(handles, sizeof(handles[0]), HANDLES_MAX, answer) : 0;
    if (handle_count != HANDLES_MAX)
        abort();
    fclose(answer);
}

void stop_exporter(void)
{
    if (exporter_input < 0)
        return;
    close(exporter_input);
    waitpid(exporter, NULL, 0);
}

/* ---- IPC ------------------------------------------------------------------------------------- */

/* Memory that is opened again stays one life, which the last close ends. */
static void note_opened(void *address)
{
    for (int i = 0; i < object_count; i++)
        if (objects[i].family == OPENED && objects[i].pointer == address) {
            objects[i].references++;
            return;
        }
    keep((struct object){.family = OPENED, .pointer = address, .references = 1, .in_context = 1});
}

/* Each thread of the racing program has its own exported handles, because otherwise it would be
 * random whether two openings meet. */
static void open_handle(void)
{
#ifdef RACING
    const CUipcMemHandle handle = handles[4 * thread_number + (int)pick(4)];
#else
    const CUipcMemHandle handle = handles[pick(8)];
#endif
    CUdeviceptr address;
    void *runtime_address;
    cudaIpcMemHandle_t runtime_handle;
    memcpy(&runtime_handle, &handle, sizeof(handle));
    switch (pick(3)) {
    case 0:
        if (LOG(cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)) == 0)
            note_opened((void *)address);
        break;
    case 1:
        if (LOG_AS("cuIpcOpenMemHandle",
                   cuIpcOpenMemHandle_v1(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS)) ==
            0)
            note_opened((void *)address);
        break;
    default:
        if (LOG(cudaIpcOpenMemHandle(&runtime_address, runtime_handle,
                                     cudaIpcMemLazyEnablePeerAccess)) == 0)
            note_opened(runtime_address);
    }
}

/* Exports our own memory, which begins no life. We cannot open it. */
static void export_handle(void)
{
    const int index = find(LINEAR);
    CUipcMemHandle handle;
    cudaIpcMemHandle_t runtime_handle;
    CUdeviceptr address;
    if (index < 0)
        return;
    if (pick(2))
        LOG(cudaIpcGetMemHandle(&runtime_handle, objects[index].pointer));
    else if (LOG(cuIpcGetMemHandle(&handle, (CUdeviceptr)objects[index].pointer)) == 0)
        LOG(cuIpcOpenMemHandle(&address, handle, CU_IPC_MEM_LAZY_ENABLE_PEER_ACCESS));
}

/* ---- external memory ------------------------------------------------------------------------- */

static void import_memory(void)
{
    CUexternalMemory memory;
    cudaExternalMemory_t runtime_memory;
    const int fd = memfd_create("external", MFD_CLOEXEC);
    const CUDA_EXTERNAL_MEMORY_HANDLE_DESC description = {
        .type = CU_EXTERNAL_MEMORY_HANDLE_TYPE_OPAQUE_FD, .handle.fd = fd, .size = EXTERNAL_SIZE};
    const struct cudaExternalMemoryHandleDesc runtime_description = {
        .type = cudaExternalMemoryHandleTypeOpaqueFd, .handle.fd = fd, .size = EXTERNAL_SIZE};
    if (fd < 0 || ftruncate(fd, EXTERNAL_SIZE) != 0)
        abort();
    if (pick(2)) {
        if (LOG(cuImportExternalMemory(&memory, &description)) == 0)
            keep((struct object){.family = IMPORT, .pointer = memory});
    } else if (LOG(cudaImportExternalMemory(&runtime_memory, &runtime_description)) == 0) {
        keep((struct object){.family = IMPORT, .pointer = runtime_memory});
    }
}

static void map_buffer(void *memory)
{
    CUdeviceptr address;
    void *runtime_address;
    const size_t offset = pick(4) * 4096,
                 size = 1 + pick(EXTERNAL_SIZE / 2) + (pick(8) == 0) * EXTERNAL_SIZE;
    const CUDA_EXTERNAL_MEMORY_BUFFER_DESC description = {.offset = offset, .size = size};
    const struct cudaExternalMemoryBufferDesc runtime_description = {.offset = offset,
                                                                     .size = size};
    if (pick(2)) {
        if (LOG(cuExternalMemoryGetMappedBuffer(&address, memory, &description)) == 0)
            keep((struct object){
                .family = LINEAR, .pointer = (void *)address, .size = size, .in_context = 1});
    } else if (LOG(cudaExternalMemoryGetMappedBuffer(&runtime_address, memory,
                                                     &runtime_description)) == 0) {
        keep((struct object){
            .family = LINEAR, .pointer = runtime_address, .size = size, .in_context = 1});
    }
}

static void map_mipmapped(void *memory)
{
    CUmipmappedArray array;
    cudaMipmappedArray_t runtime_array;
    const CUDA_EXTERNAL_MEMORY_MIPMAPPED_ARRAY_DESC description = {
        .arrayDesc = {.Width = 64, .Height = 64, .Format = CU_AD_FORMAT_FLOAT, .NumChannels = 1},
        .numLevels = 1 + pick(4)};
    const struct cudaExternalMemoryMipmappedArrayDesc runtime_description = {
        .formatDesc = {16, 16, 0, 0, cudaChannelFormatKindUnsigned},
        .extent = {32, 16, 0},
        .numLevels = 1 + pick(4)};
    if (pick(2)) {
        if (LOG(cuExternalMemoryGetMappedMipmappedArray(&array, memory, &description)) == 0)
            keep((struct object){.family = MIPMAPPED, .pointer = array, .in_context = 1});
    } else if (LOG(cudaExternalMemoryGetMappedMipmappedArray(&runtime_array, memory,
                                                             &runtime_description)) == 0) {
        keep((struct object){.family = MIPMAPPED, .pointer = runtime_array, .in_context = 1});
    }
}

void shared_step(void)
{
    const int import = find(IMPORT);
    switch (import < 0 ? 0 : pick(8)) {
    case 0:
        import_memory();
        break;
    case 1:
    case 2:
        map_buffer(objects[import].pointer);
        break;
    case 3:
        map_mipmapped(objects[import].pointer);
        break;
    case 4:
        export_handle();
        break;
    default:
        if (handle_count)
            open_handle();
        else
            map_mipmapped(objects[import].pointer);
    }
}

/* An IMPORT can end before its mappings. 0: the object is gone. */
int free_shared(struct object *object)
{
    if (object->family == IMPORT)
        return pick(2) ? LOG(cuDestroyExternalMemory(object->pointer))
                       : LOG(cudaDestroyExternalMemory(object->pointer));
    const int result = pick(2) ? LOG(cuIpcCloseMemHandle((CUdeviceptr)object->pointer))
                               : LOG(cudaIpcCloseMemHandle(object->pointer));
    return result == 0 ? --object->references : result;
}
