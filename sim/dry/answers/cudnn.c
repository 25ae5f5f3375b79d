/*
 * cuDNN 8 and 9: a graph API whose descriptors keep what they are told, one engine for every graph,
 * and descriptors of tensors and RNNs that read back.
 *
 * A plan's workspace is the one size that cuDNN alone knows. A plan with a convolution gets
 * GPUMEM_DRY_CUDNN times the bytes of its tensors (default 0, a decimal fraction): two runs with two
 * values tell how much a program's peak depends on it. All others get 0.
 */
#include "common.h"

#ifndef CUDNN_MAJOR
#define CUDNN_MAJOR GPUMEM_SONAME_MAJOR
#define CUDNN_MINOR 0
#define CUDNN_PATCHLEVEL 0
#endif

enum { BAD_PARAM = CUDNN_MAJOR >= 9 ? 2000 : 3, NOT_SUPPORTED = CUDNN_MAJOR >= 9 ? 3000 : 9 };

ANSWER(cudnnGetVersion, void)
{
    return CUDNN_MAJOR >= 9 ? CUDNN_MAJOR * 10000 + CUDNN_MINOR * 100 + CUDNN_PATCHLEVEL
                            : CUDNN_MAJOR * 1000 + CUDNN_MINOR * 100 + CUDNN_PATCHLEVEL;
}

ANSWER(cudnnGetMaxDeviceVersion, void)
{
    return cudnnGetVersion();
}

ANSWER(cudnnGetCudartVersion, void)
{
    return CUDNN_MAJOR >= 9 ? 13000 : 12000;
}

ANSWER(cudnnGetProperty, int type, int *value)
{
    return gpumem_stub_property(type, value, CUDNN_MAJOR, CUDNN_MINOR, CUDNN_PATCHLEVEL);
}

ANSWER(cudnnSetStream, void **handle, void *stream)
{
    if (!handle)
        return BAD_PARAM;
    handle[0] = stream;
    return 0;
}

ANSWER(cudnnGetStream, void **handle, void **stream)
{
    if (!handle)
        return BAD_PARAM;
    if (stream)
        *stream = handle[0];
    return 0;
}

static size_t element_size(int data_type)
{
    switch (data_type) {
    case 1:  /* double */
    case 10: /* int64 */
        return 8;
    case 0: /* float */
    case 4: /* int32 */
    case 5: /* int8x4 */
        return 4;
    case 2: /* half */
    case 9: /* bfloat16 */
        return 2;
    default: /* 8-bit integers and floats, booleans */
        return 1;
    }
}

/* ---- the graph API ---------------------------------------------------------------------------- */

enum descriptor_type {
    ENGINE = 2,
    ENGINECFG = 3,
    OPERATION_CONVOLUTION_FORWARD = 10,
    OPERATION_CONVOLUTION_BACKWARD_FILTER = 11,
    OPERATION_CONVOLUTION_BACKWARD_DATA = 12,
    TENSOR = 17,
};

enum attribute_name {
    ENGINEHEUR_OPERATION_GRAPH = 201,
    ENGINEHEUR_RESULTS = 202,
    ENGINECFG_ENGINE = 300,
    ENGINECFG_WORKSPACE_SIZE = 303,
    ENGINECFG_SHARED_MEMORY_USED = 304,
    EXECUTION_PLAN_WORKSPACE_SIZE = 402,
    EXECUTION_PLAN_JSON_REPRESENTATION = 405,
    OPERATIONGRAPH_ENGINE_GLOBAL_COUNT = 802,
    TENSOR_DATA_TYPE = 901,
    TENSOR_DIMENSIONS = 902,
    TENSOR_IS_VIRTUAL = 907,
    TENSOR_IS_BY_VALUE = 908,
    ENGINE_OPERATION_GRAPH = 1300,
    ENGINE_GLOBAL_INDEX = 1301,
};

enum { TYPE_BOOLEAN = 2, TYPE_INT64 = 3, TYPE_DESCRIPTOR = 15, TYPE_INT32 = 23 };

struct attribute {
    int name;
    int type;
    int64_t count;
    char *bytes;
    struct attribute *next;
};

struct descriptor {
    int type;
    int references;
    struct attribute *attributes;
};

static size_t size_of(int type)
{
    static const unsigned char sizes[] = {8, 4, 1, 8, 4, 8, 8, 4, 4, 4, 4, 4, 4, 4,
                                          4, 8, 4, 4, 4, 4, 4, 4, 4, 4, 1, 4, 16};
    return type >= 0 && (size_t)type < sizeof(sizes) ? sizes[type] : 4;
}

static struct descriptor *new_descriptor(int type)
{
    struct descriptor *descriptor = calloc(1, sizeof(*descriptor));
    if (descriptor) {
        descriptor->type = type;
        descriptor->references = 1;
    }
    return descriptor;
}

static struct descriptor *retain(struct descriptor *descriptor)
{
    if (descriptor)
        __atomic_add_fetch(&descriptor->references, 1, __ATOMIC_RELAXED);
    return descriptor;
}

static void forget_attributes(struct descriptor *descriptor);

static void release_descriptor(struct descriptor *descriptor)
{
    if (!descriptor || __atomic_sub_fetch(&descriptor->references, 1, __ATOMIC_ACQ_REL) > 0)
        return;
    forget_attributes(descriptor);
    free(descriptor);
}

static struct descriptor **targets(const struct attribute *attribute)
{
    return (struct descriptor **)(void *)attribute->bytes;
}

static void end_attribute(struct attribute *attribute)
{
    if (attribute->type == TYPE_DESCRIPTOR)
        for (int64_t i = 0; i < attribute->count; i++)
            release_descriptor(targets(attribute)[i]);
    free(attribute->bytes);
    free(attribute);
}

static void forget_attributes(struct descriptor *descriptor)
{
    while (descriptor->attributes) {
        struct attribute *first = descriptor->attributes;
        descriptor->attributes = first->next;
        end_attribute(first);
    }
}

static struct attribute *find_attribute(const struct descriptor *descriptor, int name)
{
    struct attribute *attribute = descriptor ? descriptor->attributes : NULL;
    while (attribute && attribute->name != name)
        attribute = attribute->next;
    return attribute;
}

static long set_attribute(struct descriptor *descriptor, int name, int type, int64_t count,
                          const void *bytes)
{
    if (!descriptor || count < 0 || count > 1 << 20 || (count && !bytes))
        return BAD_PARAM;
    struct attribute *attribute = calloc(1, sizeof(*attribute));
    char *copy = malloc((size_t)count * size_of(type) + 1);
    if (!attribute || !copy) {
        free(attribute);
        free(copy);
        return BAD_PARAM;
    }
    if (count)
        memcpy(copy, bytes, (size_t)count * size_of(type));
    *attribute = (struct attribute){name, type, count, copy, NULL};
    if (type == TYPE_DESCRIPTOR)
        for (int64_t i = 0; i < count; i++)
            retain(targets(attribute)[i]);
    for (struct attribute **link = &descriptor->attributes; *link; link = &(*link)->next)
        if ((*link)->name == name) {
            struct attribute *old = *link;
            *link = old->next;
            end_attribute(old);
            break;
        }
    attribute->next = descriptor->attributes;
    descriptor->attributes = attribute;
    return 0;
}

static struct descriptor *target_of(const struct descriptor *descriptor, int name)
{
    const struct attribute *attribute = find_attribute(descriptor, name);
    return attribute && attribute->type == TYPE_DESCRIPTOR && attribute->count
               ? targets(attribute)[0]
               : NULL;
}

static void copy_into(struct descriptor *to, const struct descriptor *from)
{
    if (!to || !from || to == from)
        return;
    forget_attributes(to);
    for (const struct attribute *a = from->attributes; a; a = a->next)
        set_attribute(to, a->name, a->type, a->count, a->bytes);
}

static bool flag_of(const struct descriptor *descriptor, int name)
{
    const struct attribute *attribute = find_attribute(descriptor, name);
    return attribute && attribute->count && attribute->bytes[0];
}

static double bytes_of_tensor(const struct descriptor *tensor)
{
    const struct attribute *type = find_attribute(tensor, TENSOR_DATA_TYPE);
    const struct attribute *dimensions = find_attribute(tensor, TENSOR_DIMENSIONS);
    int data_type = 0;
    double bytes = 1;
    if (!dimensions || flag_of(tensor, TENSOR_IS_VIRTUAL) || flag_of(tensor, TENSOR_IS_BY_VALUE))
        return 0;
    if (type && type->count)
        memcpy(&data_type, type->bytes, sizeof(data_type));
    for (int64_t i = 0; i < dimensions->count; i++)
        bytes *= (double)((const int64_t *)(const void *)dimensions->bytes)[i];
    return bytes * (double)element_size(data_type);
}

/* The bytes of the tensors below a descriptor, and whether a convolution is among the operations.
 * Graphs are trees of little depth: the bound is for cycles, which no sound program makes. */
static double bytes_below(const struct descriptor *descriptor, bool *convolves, int depth)
{
    double bytes = 0;
    if (!descriptor || depth > 8)
        return 0;
    if (descriptor->type == TENSOR)
        return bytes_of_tensor(descriptor);
    if (descriptor->type >= OPERATION_CONVOLUTION_FORWARD &&
        descriptor->type <= OPERATION_CONVOLUTION_BACKWARD_DATA)
        *convolves = true;
    for (const struct attribute *a = descriptor->attributes; a; a = a->next)
        if (a->type == TYPE_DESCRIPTOR)
            for (int64_t i = 0; i < a->count; i++)
                bytes += bytes_below(targets(a)[i], convolves, depth + 1);
    return bytes;
}

static int64_t workspace_of(const struct descriptor *descriptor)
{
    const char *factor = getenv("GPUMEM_DRY_CUDNN");
    double times = factor ? strtod(factor, NULL) : 0;
    bool convolves = false;
    double bytes = bytes_below(descriptor, &convolves, 0);
    if (convolves)
        gpumem_stub_tell("cudnn");
    return convolves && times > 0 && times <= 1000 ? (int64_t)(times * bytes) & ~INT64_C(255) : 0;
}

ANSWER(cudnnBackendCreateDescriptor, int type, struct descriptor **descriptor)
{
    if (!descriptor)
        return BAD_PARAM;
    *descriptor = new_descriptor(type);
    return *descriptor ? 0 : BAD_PARAM;
}

ANSWER(cudnnBackendDestroyDescriptor, struct descriptor *descriptor)
{
    release_descriptor(descriptor);
    return 0;
}

ANSWER(cudnnBackendSetAttribute, struct descriptor *descriptor, int name, int type, int64_t count,
       const void *bytes)
{
    return set_attribute(descriptor, name, type, count, bytes);
}

/* One configuration: the only engine, for the graph that was asked about. */
static long give_configuration(const struct descriptor *heuristics, int64_t wanted, int64_t *count,
                               struct descriptor **results)
{
    struct descriptor *graph = target_of(heuristics, ENGINEHEUR_OPERATION_GRAPH);
    int64_t index = 0;
    if (count)
        *count = 1;
    if (wanted < 1 || !results || !results[0])
        return 0;
    struct descriptor *engine = new_descriptor(ENGINE);
    if (!engine)
        return BAD_PARAM;
    set_attribute(engine, ENGINE_GLOBAL_INDEX, TYPE_INT64, 1, &index);
    if (graph)
        set_attribute(engine, ENGINE_OPERATION_GRAPH, TYPE_DESCRIPTOR, 1, &graph);
    forget_attributes(results[0]);
    set_attribute(results[0], ENGINECFG_ENGINE, TYPE_DESCRIPTOR, 1, &engine);
    release_descriptor(engine);
    return 0;
}

static long give_attribute(const void *bytes, int type, int64_t has, int64_t wanted, int64_t *count,
                           void *to)
{
    int64_t given = wanted < has ? wanted : has;
    if (count)
        *count = has;
    if (to && given > 0)
        memcpy(to, bytes, (size_t)given * size_of(type));
    return 0;
}

ANSWER(cudnnBackendGetAttribute, const struct descriptor *descriptor, int name, int type,
       int64_t wanted, int64_t *count, void *to)
{
    static const char json[] = "{\"engine\":\"simulated\"}";
    const struct attribute *attribute = find_attribute(descriptor, name);
    int64_t number = 0;
    if (!descriptor)
        return BAD_PARAM;
    switch (name) {
    case ENGINEHEUR_RESULTS:
        return give_configuration(descriptor, wanted, count, to);
    case ENGINECFG_WORKSPACE_SIZE:
    case EXECUTION_PLAN_WORKSPACE_SIZE:
        number = workspace_of(descriptor);
        return give_attribute(&number, type, 1, wanted, count, to);
    case OPERATIONGRAPH_ENGINE_GLOBAL_COUNT:
        number = 1;
        return give_attribute(&number, type, 1, wanted, count, to);
    case ENGINECFG_SHARED_MEMORY_USED:
    case ENGINE_GLOBAL_INDEX:
        return give_attribute(attribute ? (const void *)attribute->bytes : &number, type, 1, wanted,
                              count, to);
    case EXECUTION_PLAN_JSON_REPRESENTATION:
        return give_attribute(json, type, (int64_t)sizeof(json), wanted, count, to);
    default:
        break;
    }
    if (!attribute)
        return give_attribute(NULL, type, 0, wanted, count, NULL);
    if (attribute->type != TYPE_DESCRIPTOR)
        return give_attribute(attribute->bytes, attribute->type, attribute->count, wanted, count,
                              to);
    for (int64_t i = 0; to && i < wanted && i < attribute->count; i++)
        copy_into(((struct descriptor **)to)[i], targets(attribute)[i]);
    if (count)
        *count = attribute->count;
    return 0;
}

/* ---- tensors and filters that read back -------------------------------------------------------- */

/* What a descriptor's handle points to; no larger than gpumem_stub_handle gives. */
struct tensor {
    int data_type;
    int format;
    int rank;
    int dimensions[8];
    int strides[8];
};

static void set_tensor(struct tensor *tensor, int data_type, int rank, const int *dimensions,
                       const int *strides)
{
    tensor->data_type = data_type;
    tensor->rank = rank < 0 ? 0 : rank > 8 ? 8 : rank;
    for (int i = 0; i < tensor->rank; i++) {
        tensor->dimensions[i] = dimensions ? dimensions[i] : 1;
        tensor->strides[i] = strides ? strides[i] : 1;
    }
}

static void get_numbers(const int *from, int rank, int wanted, int *to)
{
    for (int i = 0; to && i < rank && i < wanted; i++)
        to[i] = from[i];
}

ANSWER(cudnnSetTensorNdDescriptor, struct tensor *tensor, int data_type, int rank,
       const int *dimensions, const int *strides)
{
    if (!tensor)
        return BAD_PARAM;
    set_tensor(tensor, data_type, rank, dimensions, strides);
    return 0;
}

ANSWER(cudnnGetTensorNdDescriptor, const struct tensor *tensor, int wanted, int *data_type,
       int *rank, int *dimensions, int *strides)
{
    if (!tensor)
        return BAD_PARAM;
    if (data_type)
        *data_type = tensor->data_type;
    if (rank)
        *rank = tensor->rank;
    get_numbers(tensor->dimensions, tensor->rank, wanted, dimensions);
    get_numbers(tensor->strides, tensor->rank, wanted, strides);
    return 0;
}

ANSWER(cudnnSetFilterNdDescriptor, struct tensor *tensor, int data_type, int format, int rank,
       const int *dimensions)
{
    if (!tensor)
        return BAD_PARAM;
    set_tensor(tensor, data_type, rank, dimensions, NULL);
    tensor->format = format;
    return 0;
}

ANSWER(cudnnGetFilterNdDescriptor, const struct tensor *tensor, int wanted, int *data_type,
       int *format, int *rank, int *dimensions)
{
    if (!tensor)
        return BAD_PARAM;
    if (data_type)
        *data_type = tensor->data_type;
    if (format)
        *format = tensor->format;
    if (rank)
        *rank = tensor->rank;
    get_numbers(tensor->dimensions, tensor->rank, wanted, dimensions);
    return 0;
}

/* ---- the older convolution API: one algorithm without a workspace ------------------------------ */

struct performance {
    int algorithm;
    int status;
    float milliseconds;
    size_t bytes;
    int determinism;
    int math_type;
    int reserved[3];
};

static long one_algorithm(int wanted, int *count, struct performance *found)
{
    if (wanted < 1 || !found || !count)
        return BAD_PARAM;
    found[0] = (struct performance){.algorithm = 1, .milliseconds = 1};
    *count = 1;
    return 0;
}

#define ONE_ALGORITHM                                                                              \
    void *handle, void *a, void *b, void *convolution, void *c, int wanted, int *count,            \
        struct performance *found

ANSWER(cudnnGetConvolutionForwardAlgorithm_v7, ONE_ALGORITHM)
{
    (void)handle, (void)a, (void)b, (void)convolution, (void)c;
    return one_algorithm(wanted, count, found);
}

ANSWER(cudnnGetConvolutionBackwardDataAlgorithm_v7, ONE_ALGORITHM)
{
    (void)handle, (void)a, (void)b, (void)convolution, (void)c;
    return one_algorithm(wanted, count, found);
}

ANSWER(cudnnGetConvolutionBackwardFilterAlgorithm_v7, ONE_ALGORITHM)
{
    (void)handle, (void)a, (void)b, (void)convolution, (void)c;
    return one_algorithm(wanted, count, found);
}

ANSWER(cudnnFindConvolutionForwardAlgorithm, ONE_ALGORITHM)
{
    (void)handle, (void)a, (void)b, (void)convolution, (void)c;
    return one_algorithm(wanted, count, found);
}

/* ---- recurrent networks -------------------------------------------------------------------------- */

struct rnn {
    int cell; /* 0 relu, 1 tanh, 2 LSTM, 3 GRU */
    int bias; /* 0 none, 1 of the input, 2 both, 3 recurrent */
    int directions;
    int data_type;
    int input, hidden, projection, layers;
};

struct rnn_data {
    int data_type;
    int steps, batch, vector;
};

static int gates_of(const struct rnn *rnn)
{
    return rnn->cell == 2 ? 4 : rnn->cell == 3 ? 3 : 1;
}

/* Width of what a layer hands on: smaller than the state where it is projected. */
static int64_t output_of(const struct rnn *rnn)
{
    return rnn->projection > 0 ? rnn->projection : rnn->hidden;
}

static bool is_projected(const struct rnn *rnn)
{
    return rnn->projection > 0 && rnn->projection < rnn->hidden;
}

static int64_t input_of(const struct rnn *rnn, int pseudo_layer)
{
    return pseudo_layer < rnn->directions ? rnn->input : output_of(rnn) * rnn->directions;
}

/* Elements of a layer's matrices, and of its biases. */
static int64_t matrices_of(const struct rnn *rnn, int pseudo_layer)
{
    int64_t elements =
        (int64_t)gates_of(rnn) * rnn->hidden * (input_of(rnn, pseudo_layer) + output_of(rnn));
    return elements + (is_projected(rnn) ? output_of(rnn) * rnn->hidden : 0);
}

static int64_t biases_of(const struct rnn *rnn)
{
    int sets = rnn->bias == 0 ? 0 : rnn->bias == 2 ? 2 : 1;
    return (int64_t)sets * gates_of(rnn) * rnn->hidden;
}

static int64_t weights_of(const struct rnn *rnn)
{
    int64_t elements = 0;
    for (int i = 0; i < rnn->layers * rnn->directions; i++)
        elements += matrices_of(rnn, i) + biases_of(rnn);
    return elements;
}

ANSWER(cudnnSetRNNDescriptor_v8, struct rnn *rnn, int algorithm, int cell, int bias, int direction,
       int input_mode, int data_type, int precision, int math, int32_t input, int32_t hidden,
       int32_t projection, int32_t layers, void *dropout, uint32_t flags)
{
    (void)algorithm, (void)input_mode, (void)precision, (void)math, (void)dropout, (void)flags;
    if (!rnn || hidden < 1 || layers < 1 || layers > 4096)
        return BAD_PARAM;
    *rnn =
        (struct rnn){cell, bias, direction ? 2 : 1, data_type, input, hidden, projection, layers};
    return 0;
}

ANSWER(cudnnGetRNNWeightSpaceSize, void *handle, const struct rnn *rnn, size_t *bytes)
{
    (void)handle;
    if (!rnn || !bytes)
        return BAD_PARAM;
    *bytes = (size_t)weights_of(rnn) * element_size(rnn->data_type);
    return 0;
}

/* All matrices come first, layer by layer, those of the input before the recurrent ones; then all
 * biases in the same order. */
ANSWER(cudnnGetRNNWeightParams, void *handle, const struct rnn *rnn, int32_t pseudo_layer,
       size_t size, char *weights, int32_t which, struct tensor *matrix, char **matrix_at,
       struct tensor *bias, char **bias_at)
{
    (void)handle, (void)size;
    if (!rnn || pseudo_layer < 0 || pseudo_layer >= rnn->layers * rnn->directions || which < 0)
        return BAD_PARAM;
    int gates = gates_of(rnn);
    int64_t element = (int64_t)element_size(rnn->data_type), at = 0, bias_start = 0;
    for (int i = 0; i < rnn->layers * rnn->directions; i++)
        bias_start += matrices_of(rnn, i);
    for (int i = 0; i < pseudo_layer; i++)
        at += matrices_of(rnn, i);
    int64_t in = input_of(rnn, pseudo_layer), rows = rnn->hidden, columns = in;
    if (which < gates) {
        at += which * rows * in;
    } else if (which < 2 * gates) {
        columns = output_of(rnn);
        at += gates * rows * in + (which - gates) * rows * columns;
    } else { /* the projection */
        at += gates * rows * (in + output_of(rnn));
        columns = rows;
        rows = output_of(rnn);
    }
    if (matrix)
        set_tensor(matrix, rnn->data_type, 3, (int[]){1, (int)rows, (int)columns},
                   (int[]){(int)(rows * columns), (int)columns, 1});
    if (matrix_at)
        *matrix_at = weights + at * element;
    bool has_bias = which < 2 * gates && (rnn->bias == 2 || (rnn->bias == 1 && which < gates) ||
                                          (rnn->bias == 3 && which >= gates));
    int64_t of_bias = rnn->bias == 3 ? which - gates : which;
    if (bias)
        set_tensor(bias, rnn->data_type, has_bias ? 3 : 0, (int[]){1, rnn->hidden, 1},
                   (int[]){rnn->hidden, 1, 1});
    if (bias_at)
        *bias_at =
            has_bias
                ? weights +
                      (bias_start + pseudo_layer * biases_of(rnn) + of_bias * rnn->hidden) * element
                : NULL;
    return 0;
}

ANSWER(cudnnSetRNNDataDescriptor, struct rnn_data *data, int data_type, int layout, int steps,
       int batch, int vector, const int *lengths, void *fill)
{
    (void)layout, (void)lengths, (void)fill;
    if (!data)
        return BAD_PARAM;
    *data = (struct rnn_data){data_type, steps, batch, vector};
    return 0;
}

/* Assumed, from one network on one card (an LSTM of two layers in fp32, 100 steps, cuDNN 9.19 on an
 * H200), whose reserve it gives to the byte and whose workspace to 1 KiB: for each row, unit and direction
 * the reserve keeps the gates and the cell of all steps and two states for each layer, and what the
 * layers hand on. The workspace holds the gates' gradients of all layers; T / 4 + gates more is what
 * remained. Where nothing is trained, the gates of one layer. Another run asks for half as much again,
 * as the figures are no more than that. */
ANSWER(cudnnGetRNNTempSpaceSizes, void *handle, const struct rnn *rnn, int mode,
       const struct rnn_data *data, size_t *workspace, size_t *reserve)
{
    const char *factor = getenv("GPUMEM_DRY_CUDNN");

    (void)handle;
    if (!rnn || !data)
        return BAD_PARAM;
    size_t state = (size_t)data->batch * (size_t)rnn->hidden * (size_t)rnn->directions *
                   element_size(rnn->data_type);
    size_t steps = (size_t)data->steps, layers = (size_t)rnn->layers, gates = (size_t)gates_of(rnn);
    size_t worked = mode ? layers * (gates * steps + steps / 4 + gates) : gates * steps;
    size_t kept = mode ? layers * ((gates + 1) * steps + 2) + (layers - 1) * steps : 0;
    bool is_more = factor && strtod(factor, NULL) > 0;

    gpumem_stub_tell("cudnn");
    if (workspace)
        *workspace = state * (is_more ? worked + worked / 2 : worked);
    if (reserve)
        *reserve = state * (is_more ? kept + kept / 2 : kept);
    return 0;
}

/* The forms of cuDNN 8 and before: the sizes of the input come with a tensor, steps by elements by width,
 * and the weights of both biases are always there. */
ANSWER(cudnnSetRNNDescriptor_v6, void *handle, struct rnn *rnn, int hidden, int layers,
       void *dropout, int input_mode, int direction, int cell, int algorithm, int precision)
{
    (void)handle, (void)dropout, (void)input_mode, (void)algorithm;
    if (!rnn || hidden < 1 || layers < 1 || layers > 4096)
        return BAD_PARAM;
    *rnn = (struct rnn){cell, 2, direction ? 2 : 1, precision, 0, hidden, 0, layers};
    return 0;
}

ANSWER(cudnnSetRNNProjectionLayers, void *handle, struct rnn *rnn, int recurrent, int output)
{
    (void)handle, (void)output;
    if (rnn)
        rnn->projection = recurrent;
    return 0;
}

static struct rnn with_input(const struct rnn *rnn, const struct tensor *input, int data_type)
{
    struct rnn sized = *rnn;
    sized.input = input && input->rank > 1 ? input->dimensions[1] : 0;
    sized.data_type = data_type;
    return sized;
}

ANSWER(cudnnGetRNNParamsSize, void *handle, const struct rnn *rnn, const struct tensor *input,
       size_t *bytes, int data_type)
{
    if (!rnn)
        return BAD_PARAM;
    struct rnn sized = with_input(rnn, input, data_type);
    return cudnnGetRNNWeightSpaceSize(handle, &sized, bytes);
}

ANSWER(cudnnGetRNNLinLayerMatrixParams, void *handle, const struct rnn *rnn, int pseudo_layer,
       const struct tensor *input, const struct tensor *filter, char *weights, int which,
       struct tensor *matrix, char **matrix_at)
{
    if (!rnn || !filter)
        return BAD_PARAM;
    struct rnn sized = with_input(rnn, input, filter->data_type);
    return cudnnGetRNNWeightParams(handle, &sized, pseudo_layer, 0, weights, which, matrix,
                                   matrix_at, NULL, NULL);
}

ANSWER(cudnnGetRNNLinLayerBiasParams, void *handle, const struct rnn *rnn, int pseudo_layer,
       const struct tensor *input, const struct tensor *filter, char *weights, int which,
       struct tensor *bias, char **bias_at)
{
    if (!rnn || !filter)
        return BAD_PARAM;
    struct rnn sized = with_input(rnn, input, filter->data_type);
    return cudnnGetRNNWeightParams(handle, &sized, pseudo_layer, 0, weights, which, NULL, NULL,
                                   bias, bias_at);
}

static struct rnn_data data_of(int steps, const struct tensor *const *inputs)
{
    const struct tensor *first = inputs && steps > 0 ? inputs[0] : NULL;
    return (struct rnn_data){first ? first->data_type : 0, steps, first ? first->dimensions[0] : 0,
                             first ? first->dimensions[1] : 0};
}

ANSWER(cudnnGetRNNWorkspaceSize, void *handle, const struct rnn *rnn, int steps,
       const struct tensor *const *inputs, size_t *bytes)
{
    struct rnn_data data = data_of(steps, inputs);
    return cudnnGetRNNTempSpaceSizes(handle, rnn, 0, &data, bytes, NULL);
}

ANSWER(cudnnGetRNNTrainingReserveSize, void *handle, const struct rnn *rnn, int steps,
       const struct tensor *const *inputs, size_t *bytes)
{
    struct rnn_data data = data_of(steps, inputs);
    return cudnnGetRNNTempSpaceSizes(handle, rnn, 1, &data, NULL, bytes);
}

/* Assumed: see docs/dry-run.md. */
ANSWER(cudnnDropoutGetStatesSize, void *handle, size_t *bytes)
{
    (void)handle;
    if (bytes)
        *bytes = 2 << 20;
    return 0;
}
