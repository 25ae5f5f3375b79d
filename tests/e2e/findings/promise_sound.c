/* Sound programs that allocate more and more for a while, as many do. The documents promise them no warning. */
#include "programs.h"
#include <gpumem/gpumem.h>
#include <stdlib.h>

static void *take(size_t bytes)
{
    void *memory;
    check(cudaMalloc(&memory, bytes));
    return memory;
}

static void release_all(void **memory, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (memory[i])
            release(&memory[i]);
}

/* The host waits for a result, as .item() does. */
static void read_back(void *from)
{
    static char to[64];
    check(cudaMemcpy(to, from, sizeof(to), cudaMemcpyDeviceToHost));
}

static void copy_in(void *to, const void *from, size_t bytes)
{
    check(cudaMemcpy(to, from, bytes, cudaMemcpyDeviceToDevice));
}

/* ---- requests -------------------------------------------------------------------------------- */

static void one_request(void)
{
    void *model = take(256 * MIB), *state = take(MIB);
    for (size_t token = 2; token < 120; token++) {
        void *longer = take(token * MIB / 2);
        copy_in(longer, state, (token - 1) * MIB / 2);
        release(&state);
        state = longer;
        work(256 * KIB);
        read_back(state);
        step_done("token");
    }
    release(&state);
    release(&model);
}

static void one_paged_request(void)
{
    enum { PAGES = 90 };
    void *model = take(256 * MIB), *pages[PAGES];
    for (int page = 0; page < PAGES; page++) {
        pages[page] = take(2 * MIB);
        for (int token = 0; token < 16; token++)
            work(128 * KIB);
        read_back(pages[page]);
        step_done("page");
    }
    release_all(pages, PAGES);
    release(&model);
}

/* Four requests, each longer than the one before. */
static void longer_requests(void)
{
    void *pages[128];
    for (size_t length = 16; length <= 128; length *= 2) {
        for (size_t token = 0; token < length; token++) {
            pages[token] = take(MIB);
            work(64 * KIB);
        }
        release_all(pages, length);
        step_done("request");
    }
}

/* Requests come and go; each holds as many pages as it has tokens. */
static void continuous_batching(void)
{
    enum { SLOTS = 16, LONGEST = 40 };
    void *pages[SLOTS][LONGEST] = {{NULL}};
    size_t used[SLOTS] = {0}, end[SLOTS] = {0};
    for (int step = 0; step < 300; step++) {
        for (int slot = 0; slot < SLOTS; slot++) {
            if (used[slot] == end[slot]) {
                release_all(pages[slot], used[slot]);
                used[slot] = 0;
                end[slot] = draw(4, LONGEST);
            }
            pages[slot][used[slot]++] = take(256 * KIB);
        }
        step_done("step");
    }
    for (int slot = 0; slot < SLOTS; slot++)
        release_all(pages[slot], used[slot]);
}

static void beam_search(void)
{
    enum { BEAMS = 4 };
    void *beams[BEAMS];
    for (int i = 0; i < BEAMS; i++)
        beams[i] = take(KIB);
    for (size_t token = 1; token <= 60; token++) {
        for (int i = 0; i < BEAMS; i++) {
            void *next = take(token * 256 * KIB);
            release(&beams[i]);
            beams[i] = next;
        }
        read_back(beams[0]);
        step_done("token");
    }
    release_all(beams, BEAMS);
}

static void sessions_ramp_up(void)
{
    enum { SESSIONS = 60 };
    void *sessions[SESSIONS];
    for (int i = 0; i < SESSIONS; i++) {
        sessions[i] = take(3 * MIB);
        for (int other = 0; other <= i; other++)
            work(64 * KIB);
        read_back(sessions[i]);
        step_done("second");
    }
    release_all(sessions, SESSIONS);
}

/* After a ramp-up, as many come as go. */
static void sessions_at_a_limit(void)
{
    enum { SESSIONS = 40 };
    void *sessions[SESSIONS] = {NULL};
    for (int i = 0; i < 200; i++) {
        if (sessions[i % SESSIONS])
            release(&sessions[i % SESSIONS]);
        sessions[i % SESSIONS] = take(draw(1, 4) * MIB);
        work(MIB);
        step_done("session");
    }
    release_all(sessions, SESSIONS);
}

/* ---- caches and buffers ------------------------------------------------------------------------ */

static void cache_not_full(void)
{
    enum { CAPACITY = 400, FILLED = 150 };
    void *cache[CAPACITY] = {NULL};
    for (int i = 0; i < FILLED; i++) {
        cache[i] = take(MIB);
        work(MIB);
        step_done("request");
    }
    release_all(cache, CAPACITY);
}

/* A third of the requests find theirs. */
static void cache_with_hits(void)
{
    enum { KEYS = 90 };
    void *cache[KEYS] = {NULL};
    for (int i = 0; i < 400; i++) {
        size_t key = draw(0, KEYS - 1);
        if (!cache[key])
            cache[key] = take(2 * MIB);
        work(512 * KIB);
        step_done("request");
    }
    release_all(cache, KEYS);
}

/* A prefix cache, bounded by its bytes: the oldest go. */
static void cache_of_bytes(void)
{
    enum { ENTRIES = 256 };
    void *cache[ENTRIES] = {NULL};
    size_t sizes[ENTRIES] = {0}, held = 0, oldest = 0;
    for (size_t i = 0; i < ENTRIES; i++) {
        sizes[i] = draw(1, 6) * MIB;
        while (held + sizes[i] > 200 * MIB) {
            held -= sizes[oldest];
            release(&cache[oldest++]);
        }
        cache[i] = take(sizes[i]);
        held += sizes[i];
        work(MIB);
        step_done("request");
    }
    release_all(cache, ENTRIES);
}

static void replay(size_t capacity, size_t collected)
{
    void **buffer = calloc(capacity, sizeof(*buffer)), *policy = take(64 * MIB);
    for (size_t i = 0; i < collected; i++) {
        void **slot = &buffer[i % capacity];
        if (*slot)
            release(slot);
        *slot = take(256 * KIB);
        work(MIB);
        if (i % 4 == 0)
            read_back(policy);
        step_done("transition");
    }
    release_all(buffer, capacity);
    release(&policy);
    free(buffer);
}

static void replay_buffer_begun(void)
{
    replay(1000, 300);
}

static void replay_buffer_full(void)
{
    replay(200, 600);
}

static void replay_buffer_just_full(void)
{
    replay(200, 200);
}

/* Blocks of a pool that the program keeps: it grows to what is needed at once. */
static void free_list(void)
{
    enum { BLOCKS = 64 };
    void *blocks[BLOCKS];
    size_t made = 0;
    for (int step = 0; step < 200; step++) {
        size_t needed = draw(1, 1 + (size_t)(step < 100 ? step : 100) / 2);
        while (made < needed && made < BLOCKS)
            blocks[made++] = take(2 * MIB);
        work(MIB);
        step_done("step");
    }
    release_all(blocks, made);
}

static void window_of_history(void)
{
    enum { WINDOW = 50 };
    void *window[WINDOW] = {NULL};
    for (int i = 0; i < 120; i++) {
        void **oldest = &window[i % WINDOW];
        if (*oldest)
            release(oldest);
        *oldest = take(MIB);
        read_back(*oldest);
        step_done("frame");
    }
    release_all(window, WINDOW);
}

static void vector_that_doubles(void)
{
    void *values = take(64 * KIB);
    size_t capacity = 64 * KIB;
    for (size_t used = 0; used < 100 * MIB; used += 256 * KIB) {
        if (used + 256 * KIB > capacity) {
            void *larger = take(2 * capacity);
            copy_in(larger, values, capacity);
            release(&values);
            values = larger;
            capacity *= 2;
        }
        work(MIB);
        step_done("append");
    }
    release(&values);
}

/* Plans of a dozen sizes, each made when it comes first. */
static void plans_by_size(void)
{
    enum { SIZES = 12 };
    void *plans[SIZES] = {NULL};
    for (int i = 0; i < 150; i++) {
        size_t size = draw(0, SIZES - 1);
        if (!plans[size])
            plans[size] = take((size + 1) * MIB);
        work(MIB);
        step_done("transform");
    }
    release_all(plans, SIZES);
}

/* ---- training -------------------------------------------------------------------------------- */

static void batch_of(size_t length)
{
    void *activations[6];
    for (int i = 0; i < 6; i++)
        activations[i] = take(length * 64 * KIB);
    read_back(activations[5]);
    release_all(activations, 6);
}

static void sorted_batches(void)
{
    void *model = take(128 * MIB), *last = NULL;
    for (size_t length = 8; length < 100; length++) {
        void *next = take(length * 128 * KIB); /* the last one is dropped after the next is there */
        if (last)
            release(&last);
        last = next;
        batch_of(length);
        step_done("step");
    }
    release(&last);
    release(&model);
}

static void longest_first(void)
{
    for (size_t length = 100; length > 8; length--) {
        batch_of(length);
        step_done("step");
    }
}

static void curriculum(void)
{
    for (size_t length = 8; length <= 256; length *= 2)
        for (int step = 0; step < 20; step++) {
            batch_of(length);
            step_done("step");
        }
}

/* The batch is doubled every epoch. */
static void batch_ramp_up(void)
{
    void *parameters = take(64 * MIB), *input = NULL;
    for (size_t batch = 4; batch <= 128; batch *= 2) {
        if (input)
            release(&input);
        input = take(batch * 256 * KIB);
        for (int step = 0; step < 10; step++) {
            batch_of(batch);
            step_done("step");
        }
        step_done("epoch");
    }
    release(&input);
    release(&parameters);
}

static void validation_once(void)
{
    enum { BATCHES = 60 };
    void *model = take(128 * MIB), *predictions[BATCHES], *joined;
    for (int i = 0; i < BATCHES; i++) {
        work(4 * MIB);
        predictions[i] = take(512 * KIB);
        read_back(predictions[i]);
        step_done("batch");
    }
    joined = take(BATCHES * 512 * KIB);
    release_all(predictions, BATCHES);
    read_back(joined);
    release(&joined);
    release(&model);
}

/* Every epoch validates more of the samples. */
static void validations_that_grow(void)
{
    void *results[48];
    for (size_t batches = 8; batches <= 48; batches += 8) {
        for (int step = 0; step < 20; step++)
            batch_of(16);
        for (size_t i = 0; i < batches; i++) {
            results[i] = take(MIB);
            work(MIB);
        }
        release_all(results, batches);
        step_done("epoch");
    }
}

static void samples_of_the_first_epoch(void)
{
    enum { SAMPLES = 100 };
    void *samples[SAMPLES];
    for (int i = 0; i < SAMPLES; i++) {
        samples[i] = take(MIB);
        batch_of(8);
        step_done("sample");
    }
    for (int i = 0; i < 2 * SAMPLES; i++) {
        batch_of(8);
        step_done("sample");
    }
    release_all(samples, SAMPLES);
}

static void accumulated_gradients(void)
{
    enum { MICRO = 8 };
    void *parts[MICRO];
    for (int step = 0; step < 20; step++) {
        for (int i = 0; i < MICRO; i++) {
            parts[i] = take(4 * MIB);
            batch_of(8);
            step_done("micro batch");
        }
        release_all(parts, MICRO);
        step_done("step");
    }
}

/* Forward passes of all micro-batches, then their backward passes. */
static void pipeline_fills_and_drains(void)
{
    enum { MICRO = 24 };
    void *kept[MICRO];
    for (int step = 0; step < 8; step++) {
        for (int i = 0; i < MICRO; i++) {
            kept[i] = take(2 * MIB);
            work(MIB);
        }
        for (int i = MICRO; i-- > 0;) {
            work(2 * MIB);
            release(&kept[i]);
        }
        step_done("step");
    }
}

static void best_of_five(void)
{
    enum { KEPT = 5 };
    void *kept[KEPT] = {NULL}, *parameters = take(32 * MIB);
    for (int epoch = 0; epoch < 20; epoch++) {
        for (int step = 0; step < 10; step++)
            batch_of(16);
        if (kept[epoch % KEPT])
            release(&kept[epoch % KEPT]);
        kept[epoch % KEPT] = take(32 * MIB);
        copy_in(kept[epoch % KEPT], parameters, 32 * MIB);
        step_done("epoch");
    }
    release_all(kept, KEPT);
    release(&parameters);
}

/* Ten opponents at most; a run of half of them. */
static void league(void)
{
    enum { OPPONENTS = 10, SEEN = 7 };
    void *opponents[OPPONENTS] = {NULL};
    for (int generation = 0; generation < SEEN; generation++) {
        opponents[generation] = take(16 * MIB);
        for (int game = 0; game < 12; game++) {
            work(2 * MIB);
            read_back(opponents[generation]);
        }
        step_done("generation");
    }
    release_all(opponents, OPPONENTS);
}

static void moments_by_the_first_steps(void)
{
    enum { LAYERS = 40 };
    void *parameters[LAYERS], *moments[LAYERS] = {NULL};
    for (int i = 0; i < LAYERS; i++)
        parameters[i] = take(4 * MIB);
    for (int step = 0; step < 80; step++) { /* a layer is thawed with each step */
        if (step < LAYERS)
            moments[step] = take(8 * MIB);
        batch_of(16);
        step_done("step");
    }
    release_all(moments, LAYERS);
    release_all(parameters, LAYERS);
}

/* ---- warm-up, graphs, loading -------------------------------------------------------------------- */

static void tries_workspaces(void)
{
    for (size_t size = 1; size <= 512; size *= 2)
        for (int trial = 0; trial < 3; trial++) {
            void *workspace = take(size * MIB);
            read_back(workspace);
            release(&workspace);
        }
    for (int step = 0; step < 60; step++) {
        batch_of(16);
        step_done("step");
    }
}

/* Inputs and outputs for each size of a batch that a graph is captured for. */
static void inputs_of_graphs(void)
{
    enum { GRAPHS = 48 };
    void *inputs[GRAPHS], *outputs[GRAPHS], *model = take(256 * MIB);
    for (size_t i = 0; i < GRAPHS; i++) {
        inputs[i] = take((i + 1) * 64 * KIB);
        batch_of(i + 1);
        outputs[i] = take((i + 1) * 32 * KIB);
        read_back(outputs[i]);
        step_done("capture");
    }
    for (int i = 0; i < 300; i++) {
        copy_in(outputs[i % GRAPHS], inputs[i % GRAPHS], 1024);
        step_done("replay");
    }
    release_all(inputs, GRAPHS);
    release_all(outputs, GRAPHS);
    release(&model);
}

/* As above, and the server ends right after its start. */
static void only_captures(void)
{
    enum { GRAPHS = 35 };
    void *inputs[GRAPHS], *model = take(256 * MIB);
    for (size_t i = 0; i < GRAPHS; i++) {
        inputs[i] = take(MIB);
        for (int warm = 0; warm < 3; warm++)
            batch_of(8 * (i + 1));
        read_back(inputs[i]);
        step_done("capture");
    }
    release_all(inputs, GRAPHS);
    release(&model);
}

/* Layer by layer, through a buffer, each read back as a check. */
static void loads_a_model(void)
{
    enum { LAYERS = 64 };
    void *layers[LAYERS], *staging;
    check(cudaMallocHost(&staging, 8 * MIB));
    for (int i = 0; i < LAYERS; i++) {
        layers[i] = take(8 * MIB);
        check(cudaMemcpyAsync(layers[i], staging, 8 * MIB, cudaMemcpyHostToDevice, 0));
        work(MIB);
        read_back(layers[i]);
        step_done("layer");
    }
    release_all(layers, LAYERS);
    check(cudaFreeHost(staging));
}

static void quantizes_a_model(void)
{
    enum { LAYERS = 48 };
    void *layers[LAYERS];
    for (int i = 0; i < LAYERS; i++) {
        void *wide = take(16 * MIB), *scales = take(64 * KIB);
        layers[i] = take(4 * MIB);
        read_back(layers[i]);
        release(&wide);
        release(&scales);
        step_done("layer");
    }
    for (int step = 0; step < 20; step++)
        batch_of(8);
    release_all(layers, LAYERS);
}

/* Layers get their buffers when they first run. */
static void lazy_buffers(void)
{
    enum { LAYERS = 30 };
    void *buffers[LAYERS] = {NULL};
    for (int request = 0; request < 5; request++)
        for (int i = 0; i < LAYERS; i++) {
            if (!buffers[i])
                buffers[i] = take(4 * MIB);
            work(MIB);
            step_done("layer");
        }
    release_all(buffers, LAYERS);
}

static void adapters_by_tenant(void)
{
    enum { TENANTS = 25 };
    void *base = take(512 * MIB), *adapters[TENANTS] = {NULL};
    for (int i = 0; i < 200; i++) {
        size_t tenant = draw(0, TENANTS - 1);
        if (!adapters[tenant])
            adapters[tenant] = take(8 * MIB);
        batch_of(8);
        step_done("request");
    }
    release_all(adapters, TENANTS);
    release(&base);
}

static void weights_from_the_heap(void)
{
    enum { LAYERS = 24 };
    void *layers[LAYERS], *file = calloc(1, 8 * MIB);
    for (int i = 0; i < LAYERS; i++) {
        layers[i] = take(8 * MIB);
        check(cudaMemcpy(layers[i], file, 8 * MIB, cudaMemcpyHostToDevice));
    }
    for (int step = 0; step < 500; step++)
        batch_of(32);
    release_all(layers, LAYERS);
    free(file);
}

/* ---- meshes, trees, images ------------------------------------------------------------------------- */

static void refinement(void)
{
    enum { LEVELS = 64 };
    void *levels[LEVELS];
    for (size_t i = 0; i < LEVELS; i++) {
        levels[i] = take((i + 1) * 128 * KIB);
        work((i + 1) * 64 * KIB);
        read_back(levels[i]);
        step_done("level");
    }
    release_all(levels, LEVELS);
}

/* Refines where the error is large, and coarsens again. */
static void refines_and_coarsens(void)
{
    enum { PATCHES = 64 };
    void *patches[PATCHES];
    size_t count = 0;
    for (int step = 0; step < 200; step++) {
        size_t wanted = (size_t)(step % 80 < 40 ? step % 80 : 80 - step % 80) + 10;
        while (count < wanted)
            patches[count++] = take(MIB);
        while (count > wanted)
            release(&patches[--count]);
        work(MIB);
        step_done("step");
    }
    release_all(patches, count);
}

static void multigrid(void)
{
    void *grids[8];
    for (int cycle = 0; cycle < 30; cycle++) {
        for (int level = 0; level < 8; level++)
            grids[level] = take((size_t)(64 * MIB) >> (2 * level > 12 ? 12 : 2 * level));
        release_all(grids, 8);
        step_done("cycle");
    }
}

static void tree_of_a_search(void)
{
    enum { NODES = 150 };
    void *nodes[NODES];
    for (int node = 0; node < NODES; node++) {
        nodes[node] = take(128 * KIB);
        batch_of(4);
        step_done("expansion");
    }
    release_all(nodes, NODES);
}

static void trees_of_moves(void)
{
    void *nodes[90];
    for (int move = 0; move < 12; move++) {
        size_t count = draw(30, 90);
        for (size_t node = 0; node < count; node++) {
            nodes[node] = take(256 * KIB);
            work(128 * KIB);
        }
        release_all(nodes, count);
        step_done("move");
    }
}

static void tiles_of_an_image(void)
{
    enum { TILES = 100 };
    void *tiles[TILES], *image;
    for (int i = 0; i < TILES; i++) {
        work(2 * MIB);
        tiles[i] = take(MIB);
        step_done("tile");
    }
    image = take(TILES * MIB);
    release_all(tiles, TILES);
    release(&image);
}

/* Particles multiply until the volume is full. */
static void population(void)
{
    size_t count = 16;
    void *particles = take(count * 64 * KIB);
    for (int step = 0; step < 120; step++) {
        size_t more = count + count / 16 < 1024 ? count + count / 16 : 1024;
        void *next = take(more * 64 * KIB);
        copy_in(next, particles, count * 64 * KIB);
        release(&particles);
        particles = next;
        count = more;
        step_done("step");
    }
    release(&particles);
}

static void key_frames_of_a_survey(void)
{
    enum { FRAMES = 80 };
    void *frames[FRAMES];
    size_t kept = 0;
    for (int i = 0; i < 4 * FRAMES; i++) {
        work(4 * MIB);
        if (i % 4 == 0)
            frames[kept++] = take(MIB);
        step_done("frame");
    }
    work(64 * MIB); /* the adjustment */
    release_all(frames, kept);
}

/* ---- the host, and requests that may be refused ------------------------------------------------------ */

static void buffers_of_workers(void)
{
    enum { WORKERS = 8 };
    void *pinned[WORKERS], *target = take(8 * MIB);
    for (int i = 0; i < WORKERS; i++)
        check(cudaMallocHost(&pinned[i], 8 * MIB));
    for (int step = 0; step < 200; step++) {
        check(cudaMemcpyAsync(target, pinned[step % WORKERS], 8 * MIB, cudaMemcpyHostToDevice, 0));
        step_done("step");
    }
    for (int i = 0; i < WORKERS; i++)
        check(cudaFreeHost(pinned[i]));
    release(&target);
}

/* A pool of pinned blocks that grows to what is on its way at once. */
static void pinned_free_list(void)
{
    enum { BLOCKS = 20 };
    void *blocks[BLOCKS], *target = take(2 * MIB);
    size_t made = 0;
    for (int step = 0; step < 300; step++) {
        size_t needed = draw(1, 1 + (size_t)(step < 60 ? step : 60) / 3);
        while (made < needed && made < BLOCKS)
            check(cudaMallocHost(&blocks[made++], 2 * MIB));
        check(
            cudaMemcpyAsync(target, blocks[step % (int)made], 2 * MIB, cudaMemcpyHostToDevice, 0));
        step_done("step");
    }
    while (made > 0)
        check(cudaFreeHost(blocks[--made]));
    release(&target);
}

/* The last rounds of a run that reads a scalar in each. */
static void scalars(void)
{
    void *loss = take(512);
    for (int step = 0; step < 500; step++) {
        batch_of(16);
        read_back(loss);
        step_done("step");
    }
    release(&loss);
}

static void asks_how_much_there_is(void)
{
    size_t least = 0, most = (size_t)1 << 40;
    while (most - least > 64 * MIB) {
        void *memory;
        size_t middle = least + (most - least) / 2;
        if (cudaMalloc(&memory, middle) == cudaSuccess) {
            release(&memory);
            least = middle;
        } else {
            cudaGetLastError();
            most = middle;
        }
    }
    for (int step = 0; step < 30; step++) {
        batch_of(16);
        step_done("step");
    }
}

static void falls_back_to_managed_memory(void)
{
    void *table = NULL;
    if (cudaMalloc(&table, 9000 * MIB) != cudaSuccess) {
        cudaGetLastError();
        check(cudaMallocManaged(&table, 9000 * MIB, cudaMemAttachGlobal));
    }
    for (int step = 0; step < 40; step++) {
        batch_of(16);
        step_done("step");
    }
    release(&table);
}

static void buffers_in_stream_order(void)
{
    void *kept[60];
    for (int i = 0; i < 60; i++) {
        void *temporary;
        check(cudaMallocAsync(&temporary, 2 * MIB, 0));
        check(cudaMallocAsync(&kept[i], MIB, 0));
        check(cudaFreeAsync(temporary, 0));
        step_done("batch");
    }
    for (int i = 0; i < 60; i++)
        check(cudaFreeAsync(kept[i], 0));
    check(cudaDeviceSynchronize());
}

const struct program sound_programs[] = {
    {"one_request", one_request},
    {"one_paged_request", one_paged_request},
    {"longer_requests", longer_requests},
    {"continuous_batching", continuous_batching},
    {"beam_search", beam_search},
    {"sessions_ramp_up", sessions_ramp_up},
    {"sessions_at_a_limit", sessions_at_a_limit},
    {"cache_not_full", cache_not_full},
    {"cache_with_hits", cache_with_hits},
    {"cache_of_bytes", cache_of_bytes},
    {"replay_buffer_begun", replay_buffer_begun},
    {"replay_buffer_full", replay_buffer_full},
    {"replay_buffer_just_full", replay_buffer_just_full},
    {"free_list", free_list},
    {"window_of_history", window_of_history},
    {"vector_that_doubles", vector_that_doubles},
    {"plans_by_size", plans_by_size},
    {"sorted_batches", sorted_batches},
    {"longest_first", longest_first},
    {"curriculum", curriculum},
    {"batch_ramp_up", batch_ramp_up},
    {"validation_once", validation_once},
    {"validations_that_grow", validations_that_grow},
    {"samples_of_the_first_epoch", samples_of_the_first_epoch},
    {"accumulated_gradients", accumulated_gradients},
    {"pipeline_fills_and_drains", pipeline_fills_and_drains},
    {"best_of_five", best_of_five},
    {"league", league},
    {"moments_by_the_first_steps", moments_by_the_first_steps},
    {"tries_workspaces", tries_workspaces},
    {"inputs_of_graphs", inputs_of_graphs},
    {"only_captures", only_captures},
    {"loads_a_model", loads_a_model},
    {"quantizes_a_model", quantizes_a_model},
    {"lazy_buffers", lazy_buffers},
    {"adapters_by_tenant", adapters_by_tenant},
    {"weights_from_the_heap", weights_from_the_heap},
    {"refinement", refinement},
    {"refines_and_coarsens", refines_and_coarsens},
    {"multigrid", multigrid},
    {"tree_of_a_search", tree_of_a_search},
    {"trees_of_moves", trees_of_moves},
    {"tiles_of_an_image", tiles_of_an_image},
    {"population", population},
    {"key_frames_of_a_survey", key_frames_of_a_survey},
    {"buffers_of_workers", buffers_of_workers},
    {"pinned_free_list", pinned_free_list},
    {"scalars", scalars},
    {"asks_how_much_there_is", asks_how_much_there_is},
    {"falls_back_to_managed_memory", falls_back_to_managed_memory},
    {"buffers_in_stream_order", buffers_in_stream_order},
    {NULL, NULL},
};
