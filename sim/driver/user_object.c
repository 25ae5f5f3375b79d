/*
 * User objects: a destructor of the application that runs when the last reference is dropped;
 * graphs and executables hold references, too. Destructors run without the driver lock.
 */
#include "graph.h"

#include <stdlib.h>

bool gpusim_graph_retain(struct gpusim_graph *graph, struct gpusim_user_object *object,
                         unsigned int count)
{
    for (size_t i = 0; i < graph->retained_count; i++) {
        if (graph->retained[i].object == object) {
            graph->retained[i].count += count;
            return true;
        }
    }
    struct gpusim_retained *grown =
        realloc(graph->retained, (graph->retained_count + 1) * sizeof(*grown));
    if (!grown)
        return false;
    graph->retained = grown;
    graph->retained[graph->retained_count++] = (struct gpusim_retained){object, count};
    return true;
}

void gpusim_user_object_release(struct gpusim_user_object *object, unsigned int count)
{
    CUhostFn destroy = object->destroy;
    void *pointer = object->pointer;

    object->references -= count < object->references ? count : object->references;
    if (object->references > 0)
        return;
    gpusim_object_delete(object);
    gpusim_unlock();
    destroy(pointer);
    gpusim_lock();
}

CUresult cuUserObjectCreate(CUuserObject *handle, void *pointer, CUhostFn destroy,
                            unsigned int references, unsigned int flags)
{
    GPUSIM_ENTER();
    if (!handle || !destroy || references == 0 || flags != CU_USER_OBJECT_NO_DESTRUCTOR_SYNC)
        return CUDA_ERROR_INVALID_VALUE;
    struct gpusim_user_object *object =
        gpusim_object_new(sizeof(*object), GPUSIM_TYPE_USER_OBJECT, NULL);
    if (!object)
        return CUDA_ERROR_OUT_OF_MEMORY;
    object->pointer = pointer;
    object->destroy = destroy;
    object->references = references;
    *handle = GPUSIM_HANDLE(CUuserObject, object);
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRetain(CUuserObject handle, unsigned int count)
{
    GPUSIM_ENTER();
    struct gpusim_user_object *object = GPUSIM_FIND(handle, GPUSIM_TYPE_USER_OBJECT);

    if (!object || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    object->references += count;
    return CUDA_SUCCESS;
}

CUresult cuUserObjectRelease(CUuserObject handle, unsigned int count)
{
    GPUSIM_ENTER();
    struct gpusim_user_object *object = GPUSIM_FIND(handle, GPUSIM_TYPE_USER_OBJECT);

    if (!object || count == 0 || count > object->references)
        return CUDA_ERROR_INVALID_VALUE;
    gpusim_user_object_release(object, count);
    return CUDA_SUCCESS;
}

CUresult cuGraphRetainUserObject(CUgraph handle, CUuserObject object_handle, unsigned int count,
                                 unsigned int flags)
{
    GPUSIM_ENTER();
    struct gpusim_graph *graph = GPUSIM_FIND(handle, GPUSIM_TYPE_GRAPH);
    struct gpusim_user_object *object = GPUSIM_FIND(object_handle, GPUSIM_TYPE_USER_OBJECT);

    if (!graph || !object || count == 0 || (flags & ~(unsigned int)CU_GRAPH_USER_OBJECT_MOVE))
        return CUDA_ERROR_INVALID_VALUE;
    if (!gpusim_graph_retain(graph, object, count))
        return CUDA_ERROR_OUT_OF_MEMORY;
    if (!(flags & CU_GRAPH_USER_OBJECT_MOVE))
        object->references += count;
    return CUDA_SUCCESS;
}

CUresult cuGraphReleaseUserObject(CUgraph handle, CUuserObject object_handle, unsigned int count)
{
    GPUSIM_ENTER();
    struct gpusim_graph *graph = GPUSIM_FIND(handle, GPUSIM_TYPE_GRAPH);
    struct gpusim_user_object *object = GPUSIM_FIND(object_handle, GPUSIM_TYPE_USER_OBJECT);

    if (!graph || !object || count == 0)
        return CUDA_ERROR_INVALID_VALUE;
    for (size_t i = 0; i < graph->retained_count; i++) {
        struct gpusim_retained *retained = &graph->retained[i];

        if (retained->object != object || retained->count < count)
            continue;
        retained->count -= count;
        if (retained->count == 0)
            *retained = graph->retained[--graph->retained_count];
        gpusim_user_object_release(object, count);
        return CUDA_SUCCESS;
    }
    return CUDA_ERROR_INVALID_VALUE;
}
