/*
 * A plugin of XLA's in small: GetPjrtApi with the functions that JAX uses for arrays, over one allocation of CUDA's.
 * Built with BIG, OTHER_MAJOR or OLD: a table that is too large, of another major version, or one that ends before
 * CopyToMemory.
 */
#include <cuda_runtime_api.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t word;

struct memory {
    const char *kind;
    word device; /* the object that stands for it */
};
struct buffer {
    struct memory *memory;
    word size;
    int deleted;
    int is_view;
    word refused; /* bytes that whoever made it did not get */
};
struct executable {
    struct memory *memory; /* of its outputs */
    word outputs;
    word output_size;
    word taken; /* of its arguments, from the first on */
};
struct error {
    word code;
    char message[96];
};
struct event {
    int is_held;  /* not ready */
    word refused; /* bytes; 0: no error */
};

enum { CAPACITY = 64 << 20 };
static word devices[2] = {0, 1}, device_list[2] = {(word)&devices[0], (word)&devices[1]};
static word in_use[2]; /* bytes of each device */
static word most_in_use[2];
static word temporaries; /* bytes, of the next computation */
static struct memory memories[] = {{"device", (word)&devices[0]},
                                   {"pinned_host", (word)&devices[0]},
                                   {"device", (word)&devices[1]}};
static void *pool;
static int holds_events;

static void *refuse(word code, const char *format, word bytes)
{
    struct error *error = calloc(1, sizeof(*error));
    error->code = code;
    snprintf(error->message, sizeof(error->message), format, (unsigned long)bytes);
    return error;
}

/* What is free lies in two holes on device 1. */
static word largest_hole(word device)
{
    return (CAPACITY - in_use[device]) >> device;
}

static void note_most(word device, word beside)
{
    if (in_use[device] + beside > most_in_use[device])
        most_in_use[device] = in_use[device] + beside;
}

static void *make(struct memory *memory, word size, word *buffer)
{
    word *used = &in_use[*(word *)memory->device];
    if (size > largest_hole(*(word *)memory->device))
        return refuse(8, "Out of memory while trying to allocate %lu bytes.", size);
    struct buffer *made = calloc(1, sizeof(*made));
    *made = (struct buffer){memory, size, 0, 0};
    *used += size;
    note_most(*(word *)memory->device, 0);
    *buffer = (word)made;
    return NULL;
}

static struct memory *memory_of(word device)
{
    return device ? &memories[*(word *)device * 2] : &memories[0];
}

static void *error_destroy(word *a)
{
    free((void *)a[2]);
    return NULL;
}
static void *error_message(word *a)
{
    const struct error *error = (struct error *)a[2];
    a[3] = (word)error->message;
    a[4] = strlen(error->message);
    return NULL;
}
static void *error_code(word *a)
{
    a[3] = ((struct error *)a[2])->code;
    return NULL;
}
static void *from_host(word *a)
{
    if (!pool)
        cudaMalloc(&pool, CAPACITY);
    if (a[4] == 0)
        return refuse(3, "no type", 0);
    word size = 4;
    for (word i = 0; i < a[6]; i++)
        size *= (word)((int64_t *)a[5])[i];
    return make(a[11] ? (struct memory *)a[11] : memory_of(a[10]), size, &a[14]);
}
static void *copy_to_device(word *a)
{
    return make(memory_of(a[3]), ((struct buffer *)a[2])->size, &a[4]);
}
/* It stands for its memory. */
static void *pointer(word *a)
{
    a[3] = a[2];
    return NULL;
}
/* Of memory that is not the pool's, or an array's. */
static void *view(word *a)
{
    struct buffer *made = calloc(1, sizeof(*made));
    *made = (struct buffer){memory_of(a[8]), 4 * (word)((int64_t *)a[4])[0], 0, 1};
    a[12] = (word)made;
    return NULL;
}
static void *async_buffers(word *a)
{
    (void)a;
    return refuse(8, "Out of memory allocating %lu bytes.", 0);
}
static void *compile(word *a)
{
    (void)a;
    note_most(0, CAPACITY - in_use[0]); /* it tries something out */
    return refuse(8, "Out of memory while trying to allocate %lu bytes.", 3 << 20);
}
static void *list_devices(word *a)
{
    a[3] = (word)device_list;
    a[4] = 2;
    return NULL;
}
static void *hardware_id(word *a)
{
    a[3] = *(word *)a[2];
    return NULL;
}
static void *memory_stats(word *a)
{
    a[3] = in_use[*(word *)a[2]];
    a[4] = most_in_use[*(word *)a[2]];
    a[5] = 1;
    a[10] = CAPACITY;
    a[11] = 1;
    a[18] = largest_hole(*(word *)a[2]);
    a[19] = 1;
    a[20] = CAPACITY;
    a[21] = 1;
    return NULL;
}
static void *memory_kind(word *a)
{
    a[3] = (word)((struct memory *)a[2])->kind;
    a[4] = strlen(((struct memory *)a[2])->kind);
    return NULL;
}
static void *memory_devices(word *a)
{
    a[3] = (word) & ((struct memory *)a[2])->device;
    a[4] = 1;
    return NULL;
}
static void *nothing(word *a)
{
    (void)a;
    return NULL;
}
static void *name(word *a)
{
    a[3] = (word) "jit_step";
    a[4] = strlen("jit_step");
    return NULL;
}
static void *outputs(word *a)
{
    a[3] = ((struct executable *)a[2])->outputs;
    return NULL;
}
static void *compiled_stats(word *a)
{
    a[7] = 3 * ((struct executable *)a[2])->output_size; /* temporaries */
    return NULL;
}
static void *loaded_executable(word *a)
{
    a[3] = a[2];
    return NULL;
}
static void drop(struct buffer *buffer)
{
    if (!buffer->deleted && !buffer->is_view)
        in_use[*(word *)buffer->memory->device] -= buffer->size;
    buffer->deleted = 1;
}
/* What was refused to whoever made one of the arguments: this computation fails with the same. */
static word refused_argument(const word *a, word device)
{
    for (word i = 0; i < a[6]; i++) {
        const struct buffer *buffer = ((struct buffer *const *const *)a[4])[device][i];
        if (buffer->refused)
            return buffer->refused;
    }
    return 0;
}
/* Whose caller asks for events, one a device, finds a refusal there, beside buffers without memory. */
static void *execute(word *a)
{
    const struct executable *executable = (struct executable *)a[2];
    word *const *in = (word *const *)a[4], *const *out = (word *const *)a[7],
                *events = (word *)a[8];
    for (word i = 0; i < executable->taken; i++)
        drop((struct buffer *)in[0][i]);
    for (word device = 0; device < a[5]; device++) {
        struct memory *memory = a[5] > 1 ? memory_of(device_list[device]) : executable->memory;
        struct event *event = calloc(1, sizeof(*event));
        event->is_held = holds_events;
        event->refused = refused_argument(a, device);
        for (word i = 0; i < executable->outputs; i++) {
            struct buffer *made;
            if (!event->refused) {
                void *error = make(memory, executable->output_size, &out[device][i]);
                if (error && !events)
                    return error;
                if (!error)
                    continue;
                free(error);
                event->refused = executable->output_size;
            }
            made = malloc(sizeof(*made));
            *made = (struct buffer){memory, executable->output_size, 1, 0, event->refused};
            out[device][i] = (word)made;
        }
        if (events)
            events[device] = (word)event;
        note_most(*(word *)memory->device, temporaries);
    }
    temporaries = 0;
    return NULL;
}
static void *event_is_ready(word *a)
{
    a[3] = !((struct event *)a[2])->is_held;
    return NULL;
}
static void *event_error(word *a)
{
    const struct event *event = (struct event *)a[2];
    if (event->is_held)
        abort(); /* as XLA does */
    return event->refused
               ? refuse(8, "Out of memory while trying to allocate %lu bytes.", event->refused)
               : NULL;
}
static void *buffer_delete(word *a)
{
    drop((struct buffer *)a[2]);
    return NULL;
}
static void *buffer_destroy(word *a)
{
    if (a[2])
        drop((struct buffer *)a[2]);
    free((void *)a[2]);
    return NULL;
}
static void *buffer_size(word *a)
{
    a[3] = ((struct buffer *)a[2])->size;
    return NULL;
}
static void *buffer_memory(word *a)
{
    a[3] = (word)((struct buffer *)a[2])->memory;
    return NULL;
}
static void *buffer_is_deleted(word *a)
{
    a[3] = (word)((struct buffer *)a[2])->deleted;
    return NULL;
}
static void *copy_to_memory(word *a)
{
    return make((struct memory *)a[3], ((struct buffer *)a[2])->size, &a[4]);
}

enum { WORDS = 143 };
static word table[1024];

const word *GetPjrtApi(void);
const word *GetPjrtApi(void)
{
    typedef void *function(word *);
    static const struct {
        int slot;
        function *function;
    } rows[] = {
        {11, event_is_ready}, {12, event_error},       {21, list_devices}, {25, compile},
        {57, list_devices},   {74, copy_to_device},    {98, view},         {108, async_buffers},
        {5, error_destroy},   {6, error_message},      {7, error_code},    {27, from_host},
        {36, hardware_id},    {39, memory_stats},      {41, memory_kind},  {44, memory_devices},
        {45, nothing},        {49, outputs},           {55, nothing},      {56, loaded_executable},
        {60, execute},        {63, buffer_destroy},    {69, buffer_size},  {71, buffer_memory},
        {72, buffer_delete},  {73, buffer_is_deleted}, {78, pointer},      {81, pointer},
        {97, copy_to_memory}, {101, compiled_stats},   {46, name},
    };
    int version[2] = {0, 116};
    word words = WORDS;
#ifdef BIG
    words = 1000;
#endif
#ifdef OTHER_MAJOR
    version[0] = 1;
#endif
#ifdef OLD
    words = 90;
#endif
    table[0] = words * sizeof(word);
    memcpy(&table[4], version, sizeof(version));
    for (unsigned i = 0; i < sizeof(rows) / sizeof(rows[0]); i++)
        table[rows[i].slot] = (word)rows[i].function;
    return table;
}

/* For the program: objects that JAX would get by calls that nobody wraps. */
word plugin_device(int n);
word plugin_device(int n)
{
    return device_list[n];
}
word plugin_memory(int n);
word plugin_memory(int n)
{
    return (word)&memories[n];
}
void plugin_use_temporaries(word bytes);
void plugin_use_temporaries(word bytes)
{
    temporaries = bytes;
}
void plugin_hold_events(int holds);
void plugin_hold_events(int holds)
{
    holds_events = holds;
}
word plugin_executable(word memory, word count, word size, word taken);
word plugin_executable(word memory, word count, word size, word taken)
{
    struct executable *executable = calloc(1, sizeof(*executable));
    *executable = (struct executable){(struct memory *)memory, count, size, taken};
    return (word)executable;
}
