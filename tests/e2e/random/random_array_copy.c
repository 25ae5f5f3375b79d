/* Random program: copies to and from arrays and variables, the deprecated forms too. */
#pragma GCC diagnostic ignored "-Wdeprecated-declarations"
#include "random.h"

#define WIDTH 64 /* bytes of a row, and elements: they are bytes */
#define ROWS 8
#define BYTES ((size_t)WIDTH * ROWS)

/* Never read: several threads may write it at once. */
static _Thread_local char host[BYTES];

static void copy_by_driver(CUarray a, CUarray b, CUdeviceptr memory, cudaStream_t stream)
{
    switch (pick(9)) {
    case 0:
        LOG(cuMemcpyAtoA(a, 0, b, 8, 16));
        break;
    case 1:
        LOG(cuMemcpyAtoD(memory, a, 0, WIDTH));
        break;
    case 2:
        LOG(cuMemcpyAtoH(host, a, 0, WIDTH));
        break;
    case 3:
        LOG(cuMemcpyAtoHAsync(host, a, 0, WIDTH, stream));
        break;
    case 4:
        LOG(cuMemcpyDtoA(a, 0, memory, WIDTH));
        break;
    case 5:
        LOG(cuMemcpyHtoA(a, 0, host, WIDTH));
        break;
    case 6:
        LOG(cuMemcpyHtoAAsync(a, 0, host, WIDTH, stream));
        break;
    case 7:
        LOG(cuMemcpyAtoA(a, 0, NULL, 0, 16)); /* refused */
        break;
    default:
        LOG(cuMemcpyAtoH(host, a, 0, (size_t)1 << 30)); /* refused */
    }
}

static void copy_lines(cudaArray_t a, cudaArray_t b, void *memory, cudaStream_t stream)
{
    switch (pick(5)) {
    case 0:
        LOG(cudaMemcpyToArray(a, 0, 0, host, WIDTH, cudaMemcpyHostToDevice));
        break;
    case 1:
        LOG(cudaMemcpyToArrayAsync(a, 0, 1, memory, WIDTH, cudaMemcpyDeviceToDevice, stream));
        break;
    case 2:
        LOG(cudaMemcpyFromArray(host, a, 0, 0, WIDTH, cudaMemcpyDeviceToHost));
        break;
    case 3:
        LOG(cudaMemcpyFromArrayAsync(memory, a, 0, 0, WIDTH, cudaMemcpyDeviceToDevice, stream));
        break;
    default:
        LOG(cudaMemcpyArrayToArray(a, 0, 0, b, 0, 0, WIDTH, cudaMemcpyDeviceToDevice));
    }
}

static void copy_rectangles(cudaArray_t a, cudaArray_t b, void *memory, cudaStream_t stream)
{
    switch (pick(5)) {
    case 0:
        LOG(cudaMemcpy2DToArray(a, 0, 0, host, WIDTH, WIDTH, ROWS, cudaMemcpyHostToDevice));
        break;
    case 1:
        LOG(cudaMemcpy2DToArrayAsync(a, 8, 0, memory, WIDTH, 32, ROWS, cudaMemcpyDeviceToDevice,
                                     stream));
        break;
    case 2:
        LOG(cudaMemcpy2DFromArray(host, WIDTH, a, 0, 0, WIDTH, ROWS, cudaMemcpyDeviceToHost));
        break;
    case 3:
        LOG(cudaMemcpy2DFromArrayAsync(memory, WIDTH, a, 0, 2, WIDTH, 4, cudaMemcpyDeviceToDevice,
                                       stream));
        break;
    default:
        LOG(cudaMemcpy2DArrayToArray(a, 0, 0, b, 0, 0, WIDTH, ROWS, cudaMemcpyDeviceToDevice));
    }
}

/* Finds the variable by its host address, as compiled code does. */
static void copy_variable(cudaStream_t stream)
{
    void *address;
    switch (pick(5)) {
    case 0:
        LOG(cudaMemcpyToSymbol(random_variable, host, 32, 0, cudaMemcpyHostToDevice));
        break;
    case 1:
        LOG(cudaMemcpyToSymbolAsync(random_variable, host, 16, 8, cudaMemcpyHostToDevice, stream));
        break;
    case 2:
        LOG(cudaMemcpyFromSymbol(host, random_variable, 32, 0, cudaMemcpyDeviceToHost));
        break;
    case 3:
        LOG(cudaMemcpyFromSymbolAsync(host, random_variable, 16, 8, cudaMemcpyDeviceToHost,
                                      stream));
        break;
    default:
        LOG(cudaGetSymbolAddress(&address, random_variable));
    }
}

void STEP(array_copy)(void)
{
    const struct cudaChannelFormatDesc bytes = {8, 0, 0, 0, cudaChannelFormatKindUnsigned};
    const int index = find_sized(LINEAR, BYTES);
    cudaArray_t a, b;
    if (index < 0 || LOG(cudaMallocArray(&a, &bytes, WIDTH, ROWS, 0)) != 0)
        return;
    if (LOG(cudaMallocArray(&b, &bytes, WIDTH, ROWS, 0)) == 0) {
        for (unsigned count = 1 + pick(5); count > 0; count--) {
            void *const memory = objects[index].pointer;
            switch (pick(4)) {
            case 0:
                copy_by_driver((CUarray)a, (CUarray)b, (CUdeviceptr)memory, random_stream());
                break;
            case 1:
                copy_lines(a, b, memory, random_stream());
                break;
            case 2:
                copy_rectangles(a, b, memory, random_stream());
                break;
            default:
                copy_variable(random_stream());
            }
        }
        LOG(cudaFreeArray(b));
    }
    LOG(cudaFreeArray(a));
}
