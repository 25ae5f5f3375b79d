/* Arrays through a plugin of XLA's: arrays PLUGIN. Prints what each call gave, and what lives on each device as it counts
 * itself: "LIVE device bytes", and at last "PEAK device bytes". */
#include <dlfcn.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef uint64_t word;
typedef void *function(word *);

static const word *table;
static long live[2], peak[2];

static void *call(int slot, word *arguments)
{
    void *error = ((function *)table[slot])(arguments);
    if (error) {
        word code[] = {32, 0, (word)error, 0}, destroy[] = {24, 0, (word)error};
        ((function *)table[7])(code);
        printf("slot %d: error %d\n", slot, (int)code[3]);
        ((function *)table[5])(destroy);
    }
    return error;
}

static void change(int device, long bytes)
{
    live[device] += bytes;
    peak[device] = live[device] > peak[device] ? live[device] : peak[device];
}

static word from_host(word memory, int64_t elements, int type)
{
    word a[15] = {sizeof(a), 0, 1, 1, (word)type, (word)&elements, 1};
    a[11] = memory;
    return call(27, a) ? 0 : a[14];
}

static void destroy(word buffer)
{
    call(63, (word[]){24, 0, buffer});
}

static word *execute(word executable, word *arguments, word count, word *out)
{
    word *in[] = {arguments}, *outs[] = {out};
    word a[10] = {sizeof(a), 0, executable, 0, (word)in, 1, count, (word)outs, 0, 0};
    return call(60, a) ? NULL : out;
}

__attribute__((noinline)) static word keep_weights(word memory)
{
    return from_host(memory, 1 << 20, 11);
}

/* On so many devices, from the first on: whether each was refused is told by the event. Each output ends. */
static void execute_with_events(word executable, word argument, int first, int count, long size)
{
    word outputs[2], events[2], *in[] = {&argument, &argument}, *out[] = {&outputs[0], &outputs[1]};
    word a[10] = {sizeof(a), 0, executable, 0, (word)in, (word)count, 1, (word)out, (word)events};
    long made[2] = {size, size};
    call(60, a);
    for (int i = 0; i < count; i++) {
        word ready[] = {32, 0, events[i], 0};
        call(11, ready);
        if (ready[3] && call(12, (word[]){24, 0, events[i]}))
            made[i] = 0;
        change(first + i, made[i]);
    }
    for (int i = 0; i < count; i++) {
        destroy(outputs[i]);
        change(first + i, -made[i]);
    }
}

/* What was refused is an argument of a computation that then fails as well, but was refused nothing. */
static void execute_on_refused(word executable, word argument)
{
    word output, next, event, *out[] = {&output}, *in[] = {&argument};
    word a[10] = {sizeof(a), 0, executable, 0, (word)in, 1, 1, (word)out, (word)&event};
    call(60, a);
    call(12, (word[]){24, 0, event});
    in[0] = &output;
    out[0] = &next;
    call(60, a);
    printf("propagated ");
    call(12, (word[]){24, 0, event});
    destroy(output);
    destroy(next);
}

/* Its two outputs are kept. */
__attribute__((noinline)) static void compute(word executable, word argument)
{
    word outputs[2];
    execute(executable, &argument, 1, outputs); /* with temporaries */
}

/* Requests for more than device 1 has. */
static void refuse_on(word device, word executable, word memory, word buffer)
{
    int64_t elements = 5 << 20;
    word host[15] = {sizeof(host), 0, 1, 1, 11, (word)&elements, 1};
    host[10] = device;
    word copy[5] = {sizeof(copy), 0, from_host(0, 5 << 20, 11), device, 0}, out[1];
    call(74, copy);
    destroy(copy[2]);
    execute(executable, &buffer, 1, out); /* compiled for both */
    word *in[] = {&buffer}, *outs[] = {out};
    word run[10] = {sizeof(run), 0, executable, 0, (word)in, 1, 1, (word)outs, 0, device};
    call(60, run);
    execute_with_events(executable, buffer, 1, 1, 20 << 20);
    execute_with_events(executable, buffer, 0, 2, 20 << 20);
    execute_on_refused(executable, buffer);
    call(25, (word[7]){7 * sizeof(word), 0, 1, 0, 0, 0, 0});
    if (table[0] / 8 > 108)
        call(108, (word[9]){9 * sizeof(word), 0, 1, 0, 0, 0, 0, memory, 0});
    call(27, host); /* the last one is what the report explains */
}

/* What the plugin says is in use on a device, as a program may ask. */
static void ask(word device, int number)
{
    word a[24] = {sizeof(a), 0, device};
    call(39, a);
    printf("TOLD %d %ld\nTHEN %d %ld\n", number, (long)a[3], number, live[number]);
}

int main(int count, char **arguments)
{
    (void)count;
    void *plugin = dlopen(arguments[1], RTLD_NOW | RTLD_LOCAL);
    if (!plugin)
        return 2;
    table = ((const word *(*)(void))dlsym(plugin, "GetPjrtApi"))();
    word (*memory)(int) = (word(*)(int))dlsym(plugin, "plugin_memory");
    word (*device)(int) = (word(*)(int))dlsym(plugin, "plugin_device");
    word (*executable)(word, word, word, word) =
        (word(*)(word, word, word, word))dlsym(plugin, "plugin_executable");
    if (dlsym(plugin, "GetPjrtApiX"))
        return 2;
    printf("table %d words\n", (int)(table[0] / 8));

    word weights = keep_weights(memory(0));
    change(0, 4 << 20);
    word host = from_host(memory(1), 1 << 18, 11); /* not the device's */
    word other = from_host(memory(2), 1 << 19, 11);
    change(1, 2 << 20);
    from_host(memory(0), 1 << 10, 0); /* refused for another reason */

    word plain = executable(memory(0), 2, 1 << 20, 0), takes = executable(memory(0), 1, 4 << 20, 1),
         out[4];
    for (int i = 0; i < 3; i++) { /* takes nothing */
        execute(plain, &weights, 1, out);
        change(0, 2 << 20);
        destroy(out[0]);
        call(72, (word[]){24, 0, out[1]}); /* its memory; the object later */
        change(0, -(2 << 20));
        destroy(out[1]);
    }
    for (int i = 0; i < 3; i++) { /* each step's weights become the next one's */
        word old = weights;
        execute(takes, &old, 1, out);
        weights = out[0];
        destroy(old);
    }
    void (*hold_events)(int) = (void (*)(int))dlsym(plugin, "plugin_hold_events");
    hold_events(1); /* not ready, and must not be asked */
    execute_with_events(executable(memory(0), 1, 2 << 20, 0), weights, 0, 1, 2 << 20);
    hold_events(0);
    /* Each is refused by device 1: its memory, the device as an argument, the only one without room. */
    word full = from_host(memory(2), 26 << 18, 11);
    change(1, 26 << 20);
    refuse_on(device(1), executable(memory(2), 1, 20 << 20, 0), memory(2), weights);
    ((void (*)(word))dlsym(plugin, "plugin_use_temporaries"))(20 << 20);
    compute(executable(memory(2), 2, 1 << 20, 0), weights);
    change(1, 2 << 20);
    printf("MOST 1 %ld\n", live[1] + (20 << 20));
    destroy(full);
    change(1, -(26 << 20));
    if (table[0] / 8 > 97) {
        word a[5] = {sizeof(a), 0, weights, memory(2), 0};
        call(97, a);
        change(1, 4 << 20);
    }
    if (table[0] / 8 > 98) { /* of memory that is not XLA's; the older table ends before it */
        int64_t elements = 1 << 18;
        word a[14] = {sizeof(a), 0, 1, 64, (word)&elements, 1, 11, 0, device(1)};
        call(98, a);
        change(1, 1 << 20);
        word array = 0;
        for (int slot = 78; slot <= 81; slot += 3) { /* of an array: none of its own */
            array = from_host(memory(2), 1 << 18, 11);
            change(1, 1 << 20);
            word told[] = {32, 0, array, 0};
            call(slot, told);
            a[3] = told[3];
            call(98, a);
        }
        destroy(array);
        call(98, a); /* that array is gone */
    }
    word big[20], got = 0; /* refused by the pool */
    while (got < 20 && (big[got] = from_host(memory(0), 2 << 20, 11))) {
        change(0, 8 << 20);
        got++;
    }
    ask(device(0), 0);
    ask(device(1), 1);
    printf("%d of 20\n", (int)got);
    while (got) {
        destroy(big[--got]);
        change(0, -(8 << 20));
    }
    destroy(host);
    destroy(0);
    (void)other; /* leaked, as the weights and the copy are */
    for (int device = 0; device < 2; device++)
        printf("LIVE %d %ld\nPEAK %d %ld\n", device, live[device], device, peak[device]);
    return 0;
}
