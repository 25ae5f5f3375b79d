/*
 * Stream capture.
 */
#include "memory.h"
#include "stream.h"

CUresult gpusim_check_unsafe_call(void)
{
    return CUDA_SUCCESS;
}
CUresult gpusim_check_wait(const struct gpusim_stream *stream)
{
    (void)stream;
    return CUDA_SUCCESS;
}
CUresult gpusim_capture_operation(struct gpusim_stream *s, const struct gpusim_operation *o)
{
    (void)s;
    (void)o;
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult gpusim_capture_alloc(struct gpusim_stream *s, struct gpusim_device *d, size_t n,
                              CUdeviceptr *p)
{
    (void)s;
    (void)d;
    (void)n;
    (void)p;
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult gpusim_capture_event_record(struct gpusim_stream *s, struct gpusim_event *e)
{
    (void)s;
    (void)e;
    return CUDA_ERROR_NOT_SUPPORTED;
}
CUresult gpusim_capture_wait(struct gpusim_stream *s, struct gpusim_event *e)
{
    (void)s;
    (void)e;
    return CUDA_SUCCESS;
}
void gpusim_capture_abandon(struct gpusim_stream *s)
{
    (void)s;
}
void gpusim_graph_memory_freed(struct gpusim_allocation *a)
{
    (void)a;
}
