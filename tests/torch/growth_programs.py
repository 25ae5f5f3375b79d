#!/usr/bin/env python3
"""Programs whose memory grows, and whether it should; one per process: growth_programs.py NAME

`sound` ones grow as they are meant to: a request, a cache that fills, one validation. In `sick` ones memory is kept that
nothing bounds, by the lines that end with "# cause". They were written for no rule; test_growth.py judges.
"""
import random
import sys
import threading
from collections import OrderedDict, deque

from torch import replica_tensor
from torch.growth_tensor import (KIB, MIB, Managed, Memory, Ordered, Pinned, Tensor, activation, batch, from_host,
                                 gradient, item, optimizer_state, parameter, register)

LAYERS = 8
programs = {}
random.seed(5)


def sound(function=None, **_):
    """`memory`, which the test reads: of the device, as GPUMEM_SIM_MEMORY has it."""
    def add(one):
        programs[one.__name__] = one
        return one
    return add(function) if function else add


sick = sound


def model(size=2 * MIB, layers=LAYERS):
    return [parameter(size) for _ in range(layers)]


def forward(size, layers=LAYERS, make=activation):
    """What a backward pass needs; each layer has a temporary, too."""
    made = []
    for _ in range(layers):
        temporary = Tensor(size)
        made.append(make(size))
        del temporary
    return made


def backward(made):
    while made:
        flow = gradient(made[-1].size)
        made.pop()
        del flow


def infer(size, layers=LAYERS):
    hidden = batch(size)
    for _ in range(layers):
        hidden = activation(size)  # cause
    return hidden


def train_step(size=MIB):
    backward(forward(size))


# ---- sound: requests ---------------------------------------------------------------------------------------------


@sound
def one_request_joined():
    weights, cache = model(16 * MIB), None
    for tokens in range(1, 301):
        infer(64 * KIB)
        cache = Tensor(tokens * 64 * KIB)
        item(cache)
    return weights


@sound
def one_request_joined_by_layers():
    weights, cache = model(16 * MIB), [None] * LAYERS
    for tokens in range(1, 151):
        for layer in range(LAYERS):
            hidden = activation(128 * KIB)
            cache[layer] = activation(tokens * 16 * KIB)
        item(hidden)
    return weights


@sound
def one_request_paged():
    weights, pages = model(16 * MIB), []
    for token in range(1600):
        if token % 16 == 0:
            pages.append(Tensor(2 * MIB))
        item(infer(64 * KIB, 2))
    del pages
    item(infer(64 * KIB))
    return weights


@sound
def one_request_paged_without_framework():
    weights, pages = [Memory(16 * MIB) for _ in range(LAYERS)], []
    for token in range(800):
        if token % 8 == 0:
            pages.append(Memory(MIB))
        scratch = Memory(256 * KIB)
        item(scratch)
        scratch.release()
    for page in pages + weights:
        page.release()


@sound
def requests_joined():
    for length in [20, 50, 12, 33, 44, 29, 51, 18, 80]:
        cache = None
        for tokens in range(1, length):
            infer(64 * KIB)
            cache = Tensor(tokens * 256 * KIB)
        item(cache)


@sound
def requests_paged():
    for length in [20, 50, 12, 33, 44, 29, 51, 18, 80]:
        pages = [Tensor(MIB) for _ in range(length) if infer(64 * KIB)]
        item(pages[-1])


@sound
def chat_of_one_user():
    history = None
    for turn in range(1, 60):
        question = from_host(batch(128 * KIB))
        history = Tensor(turn * 512 * KIB)
        item(infer(MIB))
    del history, question
    item(infer(MIB))


@sound
def speculative_decoding():
    cache = []
    for _token in range(200):
        drafts = [Tensor(256 * KIB) for _ in range(4)]
        cache.append(Tensor(256 * KIB))
        del drafts
    whole = Tensor(200 * 256 * KIB)
    del cache
    item(whole)


@sound
def sessions_ramp_up():
    weights, sessions = [Memory(64 * MIB) for _ in range(4)], []
    for _number in range(60):
        sessions.append(Memory(2 * MIB))
        for _ in sessions[:4]:
            scratch = Memory(MIB)
            item(scratch)
            scratch.release()
    for session in sessions + weights:
        session.release()


@sound
def sessions_come_and_go():
    sessions = {}
    for number in range(400):
        sessions[number] = Tensor(random.randint(1, 8) * 256 * KIB)
        item(infer(256 * KIB, 2))
        if len(sessions) > 20:
            del sessions[random.choice(list(sessions))]


@sound
def adapters_loaded_between_requests():
    weights, adapters = model(16 * MIB), []
    for _ in range(12):
        adapters.append([from_host(parameter(512 * KIB)) for _ in range(2 * LAYERS)])
        for _ in range(10):
            item(infer(256 * KIB))
    return weights, adapters


@sound
def adapters_loaded_on_demand():
    weights, adapters = model(16 * MIB), {}
    for _ in range(160):
        name = random.randrange(16)
        if name not in adapters:
            adapters[name] = [from_host(parameter(512 * KIB)) for _ in range(LAYERS)]
        item(infer(256 * KIB))
    return weights, adapters


@sound
def prefix_cache_filling():
    cache = {}
    for _ in range(240):
        key = random.randrange(300)
        made = Tensor(MIB)
        if key not in cache:
            cache[key] = made
        item(infer(256 * KIB, 2))
    return cache


@sound
def prefix_cache_full():
    cache = OrderedDict()
    for _ in range(500):
        key = int(random.expovariate(0.02))
        if key in cache:
            cache.move_to_end(key)
        else:
            cache[key] = Tensor(MIB)
        while len(cache) > 32:
            cache.popitem(last=False)
        item(infer(256 * KIB, 2))


@sound
def cache_half_full_without_framework():
    cache = {}
    for _ in range(300):
        key = random.randrange(400)
        if key not in cache:
            cache[key] = Memory(MIB)
        scratch = Memory(2 * MIB)
        item(scratch)
        scratch.release()
    for entry in cache.values():
        entry.release()


@sound
def tables_by_length():
    tables = {}
    for _ in range(400):
        length = random.randint(1, 20)
        if length not in tables:
            tables[length] = Tensor(length * 256 * KIB)
        item(Tensor(length * 64 * KIB))
    return tables


@sound
def vocabulary_of_words():
    vectors = {}
    for _ in range(600):
        word = int(random.expovariate(0.05))
        if word not in vectors:
            vectors[word] = from_host(batch(64 * KIB))
        item(infer(256 * KIB, 2))
    return vectors


@sound
def features_of_images_drawn():
    weights, features = model(), {}
    for _ in range(240):
        image = random.randrange(200)
        if image not in features:
            features[image] = activation(MIB)
        train_step()
    return weights, features


# ---- sound: training -----------------------------------------------------------------------------------------------


@sound
def adam():
    weights, state = model(), None
    for _ in range(60):
        train_step()
        state = state or [optimizer_state(2 * MIB) for _ in range(2 * LAYERS)]
    return weights, state


@sound
def adam_from_the_second_step_on():
    weights, gradients, state = model(), [], []
    for step in range(60):
        train_step()
        gradients = gradients or [gradient(2 * MIB) for _ in range(LAYERS)]
        if step == 1:
            state = [optimizer_state(2 * MIB) for _ in range(2 * LAYERS)]
    return weights, gradients, state


@sound
def accumulation_cut_after_one_round():
    weights, graphs = model(), []
    for _ in range(12):
        data = from_host(batch(512 * KIB))
        graphs.append((data, forward(MIB)))
    for _, made in graphs:
        backward(made)
    return weights


@sound
def accumulation():
    weights = model()
    for _ in range(12):
        graphs = [forward(MIB) for _ in range(6)]
        for made in graphs:
            backward(made)
        item(weights[0])


@sound
def averages_from_the_twentieth_step_on():
    weights, average = model(), None
    for step in range(60):
        train_step()
        if step == 20:
            average = [Tensor(2 * MIB) for _ in weights]
    return weights, average


@sound
def last_five_checkpoints():
    weights, kept = model(), deque(maxlen=5)
    for _ in range(30):
        train_step()
        train_step()
        kept.append([Tensor(2 * MIB) for _ in weights])
    return kept


@sound
def layers_thawed_one_by_one():
    weights, state = model(), []
    for _layer in range(LAYERS):
        state += [optimizer_state(2 * MIB), optimizer_state(2 * MIB), gradient(2 * MIB)]
        for _ in range(10):
            train_step()
    return weights, state


@sound
def curriculum():
    weights = model()
    for length in range(1, 61):
        train_step(length * 64 * KIB)
    return weights


@sound
def batches_by_length():
    weights, data = model(), None
    for length in range(1, 101):
        data = from_host(batch(length * 128 * KIB))
        item(infer(length * 64 * KIB))
    return weights, data


@sound
def batches_by_length_without_framework():
    data = None
    for length in range(1, 101):
        new = Memory(length * 256 * KIB)
        if data:
            data.release()
        data = new
        item(data)
    data.release()


@sound
def batch_size_warm_up():
    weights = model()
    for size in [1, 1, 2, 2, 4, 4, 8, 8, 16, 16, 16, 16, 16, 16]:
        for _ in range(4):
            train_step(size * 128 * KIB)
    return weights


@sound
def one_validation():
    weights, predictions = model(), []
    for _ in range(60):
        from_host(batch(MIB))
        predictions.append(infer(512 * KIB))
    joined = Tensor(60 * 512 * KIB)
    del predictions
    item(joined)
    return weights


@sound
def one_validation_with_targets():
    weights, predictions, targets = model(), [], []
    for _ in range(80):
        predictions.append(infer(512 * KIB))
        targets.append(from_host(batch(256 * KIB)))
    joined = Tensor(80 * 512 * KIB), Tensor(80 * 256 * KIB)
    del predictions, targets
    item(joined[0])
    return weights


@sound
def validation_at_the_end():
    weights, predictions = model(), []
    for _ in range(40):
        train_step()
    for _ in range(50):
        predictions.append(infer(MIB))
    joined = Tensor(50 * MIB)
    del predictions
    item(joined)
    return weights


@sound
def validation_every_twentieth_step():
    weights = model()
    for step in range(100):
        train_step()
        if step % 20 == 19:
            predictions = [infer(512 * KIB) for _ in range(20)]
            joined = Tensor(10 * MIB)
            del predictions
            item(joined)
            del joined
    return weights


@sound
def checkpoint_to_host():
    weights, state = model(), [optimizer_state(2 * MIB) for _ in range(2 * LAYERS)]
    for step in range(40):
        train_step()
        if step % 10 == 9:
            staging = Pinned(2 * MIB)
            for one in weights + state:
                item(one)
            staging.release()


@sound
def deep_network_cut_after_its_first_pass():
    weights = model(256 * KIB, 200)
    return weights, forward(512 * KIB, 200)


@sound
def recomputed_activations():
    weights = model()
    for _ in range(30):
        borders = [activation(MIB) for _ in range(LAYERS)]
        while borders:
            backward(forward(MIB, 3))
            borders.pop()
    return weights


@sound
def trying_algorithms_first():
    weights = model()
    for size in range(1, 40):
        item(Tensor(size * MIB))
    workspace = Tensor(16 * MIB)
    for _ in range(60):
        train_step()
    return weights, workspace


@sound
def norms_of_the_last_fifty_steps():
    weights, norms = model(), deque(maxlen=50)
    for _ in range(150):
        train_step(256 * KIB)
        norms.append(Tensor(64 * KIB))
    return weights, norms


# ---- sound: learning by doing ----------------------------------------------------------------------------------------


@sound
def replay_filled_to_capacity():
    policy, memory = model(), deque(maxlen=100)
    for _step in range(400):
        memory.append((Tensor(256 * KIB), Tensor(64 * KIB)))
        item(memory[-1][1])
        train_step(256 * KIB)
    return policy, memory


@sound
def replay_partly_filled():
    policy, memory = model(), deque(maxlen=1000)
    for _step in range(300):
        state = Tensor(256 * KIB)
        memory.append((state, Tensor(64 * KIB)))
        if len(memory) >= 32:
            states = Tensor(32 * 256 * KIB)
            rewards = Tensor(32 * 64 * KIB)
            train_step(256 * KIB)
            item(rewards)
            del states, rewards
    return policy, memory


@sound
def rollouts_not_full():
    actor, rollouts = Tensor(MIB), deque(maxlen=1000)
    for _ in range(150):
        state, scaled = Tensor(512 * KIB), Tensor(512 * KIB)
        rollouts.append((state, Tensor(512 * KIB)))
        del scaled
    return actor, rollouts


@sound
def rollout_of_each_episode():
    policy = model()
    for _episode in range(12):
        rollout = []
        for _ in range(random.randint(20, 60)):
            rollout.append(infer(128 * KIB))
            item(rollout[-1])
        train_step(MIB)
    return policy


@sound
def population_made_at_start():
    population = [model(256 * KIB) for _ in range(20)]
    for _ in range(10):
        for _agent in population:
            item(infer(128 * KIB))
    return population


@sound
def search_of_one_move():
    network, tree = model(), []
    for _ in range(400):
        tree.append(Tensor(128 * KIB))
        infer(128 * KIB)
    policy = Tensor(400 * 128 * KIB)
    del tree
    item(policy)
    return network


# ---- sound: data and models ----------------------------------------------------------------------------------------


@sound
def prefetch_up_to_its_depth():
    weights, queue = model(), deque()
    for step in range(120):
        queue.append(from_host(batch(MIB)))
        if step % 4 == 0:
            queue.append(from_host(batch(MIB)))
        while len(queue) > 8 or step % 4 == 3 and queue:
            queue.popleft()
        train_step(512 * KIB)
    return weights


@sound
def data_kept_from_the_first_epoch_on():
    weights, samples = model(), {}
    for number in range(200):
        if number % 50 not in samples:
            samples[number % 50] = from_host(batch(MIB))
        train_step(256 * KIB)
    return weights, samples


@sound
def static_inputs_of_graphs():
    weights, static = model(), {}
    for size in (512, 256, 128, 64, 32, 16, 8, 4, 2, 1):
        for _ in range(3):
            infer(size * 8 * KIB)
        static[size] = Tensor(size * 8 * KIB), Tensor(size * 8 * KIB)
        item(static[size][1])
    for _ in range(100):
        item(static[64][1])
    return weights, static


@sound
def static_inputs_of_many_graphs():
    weights, static = model(), []
    for size in range(1, 36):
        data, scratch = from_host(Tensor(size * 128 * KIB)), Tensor(size * 256 * KIB)
        del scratch
        static.append((data, Tensor(size * 64 * KIB)))
    for number in range(300):
        item(static[number % 35][1])
    return weights, static


@sound
def static_inputs_at_first_use():
    weights, static = model(), {}
    for _ in range(300):
        size = random.choice((1, 2, 4, 8, 16, 32))
        if size not in static:
            static[size] = Tensor(size * MIB)
        item(infer(128 * KIB, 2))
    return weights, static


@sound
def model_loaded():
    return [from_host(parameter(4 * MIB)) for _ in range(60)]


@sound
def model_loaded_and_cast():
    weights = []
    for _ in range(60):
        wide = from_host(Tensor(8 * MIB))
        weights.append(parameter(4 * MIB))
        del wide
    for _ in range(40):
        item(infer(256 * KIB))
    return weights


@sound(memory="1G")
def model_load_refused():
    buffers = []
    try:
        for _ in range(40):
            buffers.append(Memory(64 * MIB))
    except MemoryError:
        pass
    for buffer in buffers:
        buffer.release()


@sound
def shards_loaded_one_by_one():
    weights = []
    for _ in range(8):
        shard = from_host(Tensor(64 * MIB))
        weights += [Tensor(8 * MIB) for _ in range(8)]
        del shard
    for _ in range(50):
        item(infer(MIB))
    return weights


@sound
def weights_made_smaller():
    weights = model(8 * MIB, 40)
    for layer in range(40):
        smaller = Tensor(2 * MIB)
        item(smaller)
        weights[layer] = smaller
    return weights


@sound
def two_models_in_turn():
    for size in (32, 4, 16):
        weights = model(size * MIB)
        for _ in range(20):
            item(infer(size * 128 * KIB))
        del weights


# ---- sound: without a framework ----------------------------------------------------------------------------------------


@sound
def mesh_refined():
    levels = []
    for level in range(64):
        levels.append(Memory((level + 1) * 64 * KIB))
        for _ in range(3):
            scratch = Memory(MIB)
            item(scratch)
            scratch.release()
    for level in levels:
        level.release()


@sound
def mesh_refined_and_coarsened():
    cells = []
    for _wave in range(10):
        cells += [Memory(random.randint(1, 4) * MIB) for _ in range(20)]
        for _ in range(random.randint(18, 20)):
            cells.pop(random.randrange(len(cells))).release()
    for cell in cells:
        cell.release()


@sound
def array_doubled_when_full():
    array, capacity = Memory(64 * KIB), 64 * KIB
    for step in range(1, 400):
        scratch = Memory(128 * KIB)
        if step * 64 * KIB > capacity:
            new, capacity = Memory(2 * capacity), 2 * capacity
            array.release()
            array = new
        scratch.release()
    array.release()


@sound
def pool_up_to_its_high_water():
    free, used = [], []
    for _ in range(400):
        for _ in range(random.randint(1, 12)):
            used.append(free.pop() if free else Memory(MIB))
        item(used[0])
        free, used = free + used, []
    for one in free:
        one.release()


@sound
def workspace_of_the_largest():
    workspace, size = None, 0
    for _ in range(120):
        wanted = random.randint(1, 64) * MIB
        if wanted > size:
            if workspace:
                workspace.release()
            workspace, size = Memory(wanted), wanted
        item(workspace)
    workspace.release()


@sound
def undo_up_to_its_limit():
    undo = deque()
    for _ in range(200):
        undo.append(Memory(MIB))
        if len(undo) > 32:
            undo.popleft().release()
    for one in undo:
        one.release()


@sound
def frames_in_a_ring():
    ring = [Memory(4 * MIB) for _ in range(8)]
    for number in range(300):
        item(ring[number % 8])
    for one in ring:
        one.release()


@sound
def pinned_ring_grows_to_its_depth():
    ring, target = [], Memory(MIB)
    for number in range(300):
        if number % 10 == 0 and len(ring) < 16:
            ring.append(Pinned(MIB))
        item(target)
    for one in ring:
        one.release()
    target.release()


@sound
def table_of_results_read_at_the_end():
    rows = []
    for _ in range(120):
        scratch = Tensor(MIB)
        rows.append(Tensor(256 * KIB))
        del scratch
    table = Tensor(120 * 256 * KIB)
    del rows
    item(table)


@sound
def ordered_pool_in_waves():
    for _ in range(40):
        wave = [Ordered(random.randint(1, 8) * 256 * KIB) for _ in range(10)]
        for one in wave:
            one.release()


@sound
def ensemble_of_five():
    members = []
    for _ in range(5):
        members.append((model(), [optimizer_state(2 * MIB) for _ in range(2 * LAYERS)]))
        for _ in range(20):
            train_step()
    return members


@sound
def stages_added():
    layers = []
    for stage in range(7):
        layers.append(parameter(MIB << stage))
        for _ in range(15):
            backward(forward(512 * KIB, len(layers)))
    return layers


@sound
def adapters_per_task():
    weights, adapters = model(8 * MIB), []
    for _ in range(30):
        adapters += [parameter(128 * KIB) for _ in range(LAYERS)]
        for _ in range(6):
            train_step(512 * KIB)
    return weights, adapters


@sound
def layers_unfrozen():
    weights, states = model(2 * MIB, 12), []
    for layer in range(12):
        states += [optimizer_state(2 * MIB), optimizer_state(2 * MIB)]
        for _ in range(12):
            backward(forward(512 * KIB, layer + 1))
    return weights, states


@sound
def lengths_grow_by_epochs():
    weights, lengths, inputs = model(), [8, 16, 24, 32, 48, 64, 80, 96], None
    for length in lengths:
        for _ in range(12):
            inputs = from_host(batch(length * 32 * KIB))
            state = Tensor(64 * KIB)
            for _ in range(length // 4):
                backward(forward(64 * KIB, 2))
            item(activation(64 * KIB))
            del state
    return weights, inputs


@sound
def pictures_get_larger():
    weights, pictures = model(), None
    for step in range(120):
        pictures = from_host(batch(2 * MIB + step * 64 * KIB))
        pooled = activation(128 * KIB)
        backward(forward(pictures.size))
        item(pooled)
    return weights, pictures


# ---- sick: training --------------------------------------------------------------------------------------------------


@sick
def losses_with_graphs():
    weights, losses = model(), []
    for _ in range(60):
        losses.append((activation(512 * KIB), activation(MIB), Tensor(512)))  # cause
        train_step()
    return weights, losses


@sick
def state_carried_with_its_graph():
    weights, graph = model(), []
    for _ in range(60):
        for _ in range(5):
            graph.append(activation(256 * KIB))  # cause
        for one in graph:
            gradient(one.size)
    return weights, graph


@sick
def losses_beside_a_large_model():
    weights, losses = model(96 * MIB, 32), []
    for _ in range(300):
        losses.append(Tensor(100 * KIB))  # cause
        train_step(4 * MIB)
    return weights, losses


@sick
def loss_beside_a_large_model_without_framework():
    weights, losses = Memory(3072 * MIB), []
    for _ in range(300):
        losses.append(Memory(100 * KIB))  # cause
        scratch = Memory(2 * MIB)
        item(scratch)
        scratch.release()
    for one in losses + [weights]:
        one.release()


@sick
def sum_of_losses():
    weights, total = model(), None
    for _ in range(80):
        made = [activation(512 * KIB) for _ in range(4)]  # cause
        total = total, made, Tensor(512)
        train_step(256 * KIB)
    return weights, total


@sick
def outputs_of_training():
    weights, outputs = model(), []
    for _step in range(100):
        outputs.append(activation(256 * KIB))  # cause
        train_step()
        item(outputs[-1])
    return weights, outputs


@sick
def hooks_never_removed():
    weights, seen = model(), {}
    for step in range(50):
        for layer in range(LAYERS):
            seen[step, layer] = activation(128 * KIB)  # cause
        train_step(512 * KIB)
    return weights, seen


@sick
def pullbacks_kept():
    weights, pullbacks = model(), []
    for _ in range(50):
        made = [activation(256 * KIB) for _ in range(6)]  # cause
        pullbacks.append(lambda made=made: made)
        backward(forward(256 * KIB))
    return weights, pullbacks


@sick
def exceptions_kept():
    weights, errors = model(), []

    def judge(number):
        data, made = batch(MIB), activation(512 * KIB)  # cause
        if number % 10 == 3:
            raise ValueError(number)
        return item(made), data

    for number in range(300):
        try:
            judge(number)
        except ValueError as error:
            errors.append(error)
        train_step(256 * KIB)
    return weights, errors


@sick
def closures_of_callbacks():
    weights, callbacks = model(), []
    for _ in range(70):
        output = activation(512 * KIB)  # cause
        callbacks.append(lambda output=output: item(output))
        train_step(512 * KIB)
    return weights, callbacks


@sick
def batches_of_the_loader_kept():
    weights, seen = model(), []
    for _ in range(120):
        seen.append(from_host(batch(512 * KIB)))  # cause
        train_step(256 * KIB)
        item(weights[0])
    return weights, seen


@sick
def gradients_collected():
    weights, norms = model(), []
    for _ in range(90):
        train_step(512 * KIB)
        norms.append(Tensor(512 * KIB))  # cause
    return weights, norms


@sick
def optimizer_for_each_phase():
    weights, optimizers = model(MIB), []
    for _ in range(16):
        optimizers.append([optimizer_state(MIB) for _ in range(2 * LAYERS)])  # cause
        for _ in range(5):
            train_step(512 * KIB)
    return weights, optimizers


@sick
def weights_of_every_epoch():
    weights, kept = model(MIB), []
    for _ in range(14):
        for _ in range(6):
            train_step(512 * KIB)
        kept.append([Tensor(MIB) for _ in weights])  # cause
    return kept


@sick
def an_epoch_keeps_something():
    weights, kept = model(16 * MIB), []
    for _ in range(5):
        for _ in range(60):
            train_step(2 * MIB)
        kept.append(Tensor(32 * MIB))  # cause
    return weights, kept


@sick
def an_epoch_keeps_something_without_framework():
    weights, kept = Memory(512 * MIB), []
    for _ in range(5):
        for _ in range(80):
            scratch = Memory(16 * MIB)
            item(scratch)
            scratch.release()
        kept.append(Memory(32 * MIB))  # cause
    for one in kept + [weights]:
        one.release()


@sick
def one_step_in_ten():
    weights, logged = model(), []
    for step in range(300):
        train_step(256 * KIB)
        if step % 10 == 0:
            logged.append(Tensor(MIB))  # cause
    return weights, logged


@sick
def hidden_state_never_cut():
    weights, hidden = model(), None
    for _ in range(100):
        hidden = hidden, activation(256 * KIB), activation(256 * KIB)  # cause
        train_step(128 * KIB)
    return weights, hidden


@sick
def samples_of_the_generator():
    weights, shown = model(), []
    for step in range(120):
        fake = infer(512 * KIB)  # cause
        train_step(512 * KIB)
        if step % 4 == 0:
            shown.append(fake)
    return weights, shown


@sick
def scores_in_a_list_of_an_evaluator():
    weights, evaluator = model(), []
    for _epoch in range(6):
        for _ in range(15):
            train_step(512 * KIB)
        for _ in range(8):
            evaluator.append(infer(512 * KIB))  # cause
    return weights, evaluator


@sick
def bank_of_features_joined():
    weights, bank = model(), None
    for step in range(1, 121):
        train_step(512 * KIB)
        bank = Tensor(step * 128 * KIB)  # cause
    return weights, bank


@sick
def pictures_of_two_lists():
    weights, inputs, outputs = model(), [], []
    for _ in range(60):
        inputs.append(Tensor(256 * KIB))  # cause
        outputs.append(activation(512 * KIB))  # cause
        train_step(512 * KIB)
    return weights, inputs, outputs


@sick
def last_layer_of_each_batch():
    weights, features = model(), []
    for _ in range(80):
        hidden = None
        for _ in range(12):
            hidden = activation(512 * KIB)  # cause
        features.append(hidden)
        train_step(128 * KIB)
    return weights, features


# 60 lines, of which each keeps a little.
LINES = ["def keep(kept):"] + ["    kept.append(Tensor(16 * KIB))"] * 60


def many_lines():
    scope = {"Tensor": Tensor, "Memory": Memory, "KIB": KIB}
    exec(compile("\n".join(LINES), "many_lines.py", "exec"), scope)  # in the folder where the program runs
    return scope["keep"]


@sick
def sixty_lines():
    """Its causes are the lines of many_lines.py."""
    weights, kept, keep = model(), [], many_lines()
    for _ in range(60):
        keep(kept)
        train_step(512 * KIB)
    return weights, kept


def acquire(size):
    return Tensor(size)  # cause


@sick
def one_wrapper():
    weights, kept = [acquire(2 * MIB) for _ in range(20)], []

    def remember():
        kept.append(acquire(256 * KIB))  # cause

    for _ in range(100):
        acquire(2 * MIB)
        acquire(MIB)
        remember()
    return weights, kept


@sick
def one_wrapper_beside_a_large_model():
    weights, kept = [acquire(128 * MIB) for _ in range(8)], []

    def remember():
        kept.append(acquire(128 * KIB))  # cause

    for _ in range(200):
        item(acquire(2 * MIB))
        remember()
    return weights, kept


@sick
def after_a_long_warm_up():
    weights, kept = model(), []
    for step in range(200):
        train_step(512 * KIB)
        if step > 80:
            kept.append(Tensor(256 * KIB))  # cause
    return weights, kept


@sick
def of_any_size():
    weights, kept = model(), []
    for _ in range(120):
        kept.append(Tensor(random.randint(1, 2000) * KIB))  # cause
        train_step(random.randint(1, 2000) * KIB)
    return weights, kept


@sick
def one_block_beside_much_work():
    weights, kept = model(), []
    for _ in range(40):
        for _ in range(12):
            train_step(512 * KIB)
        kept.append(Tensor(MIB))  # cause
    return weights, kept


@sick
def collected_for_two_epochs():
    weights, histogram = model(), []
    for epoch in range(5):
        for _ in range(30):
            train_step(512 * KIB)
            if epoch < 2:
                histogram.append(Tensor(MIB))  # cause
    return weights, histogram


@sick
def on_the_second_device():
    weights, kept = model(), []
    for _ in range(60):
        train_step(512 * KIB)
        kept.append(Tensor(MIB, 1))  # cause
        Tensor(4 * MIB, 1)
    return weights, kept


@sick
def in_a_thread():
    kept = []

    def run():
        for _ in range(80):
            kept.append(Tensor(512 * KIB))  # cause
            item(infer(512 * KIB, 2))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    return kept


# ---- sick: serving -----------------------------------------------------------------------------------------------------


@sick
def sessions_not_closed():
    weights, sessions = model(), {}
    for number in range(200):
        sessions[number] = Tensor(MIB)  # cause
        item(infer(256 * KIB, 2))
        if random.random() < 0.4:
            del sessions[number]
    return weights, sessions


@sick
def requests_that_timed_out():
    weights, retry = model(), []
    for number in range(400):
        hidden = activation(MIB)  # cause
        item(infer(256 * KIB, 2))
        if number % 10 == 7:
            retry.append(hidden)
    return weights, retry


@sick
def cancelled_requests():
    weights, lost = model(), []
    for number in range(80):
        pages = [Tensor(256 * KIB) for _ in range(12)]  # cause
        item(infer(256 * KIB, 2))
        if number % 5 == 2:
            lost.append(pages)
    return weights, lost


@sick
def results_by_request():
    weights, results = model(), {}
    for number in range(500):
        results[number] = infer(256 * KIB, 2)  # cause
        item(results[number])
    return weights, results


@sick
def logits_for_a_log():
    weights, log = model(), []
    for _number in range(60):
        cache = []
        for _token in range(12):
            cache.append(Tensor(128 * KIB))
            infer(128 * KIB, 2)
        from_host(batch(64 * KIB))
        log.append(activation(512 * KIB))  # cause
    return weights, log


@sick
def queue_that_nobody_empties():
    weights, queue = model(), deque()
    for _number in range(160):
        queue += [infer(256 * KIB, 2), infer(256 * KIB, 2)]  # cause
        item(queue.popleft())
    return weights, queue


@sick
def memo_of_a_recursion():
    memo = {}

    def evaluate(depth):
        result = Tensor(256 * KIB)
        if depth:
            evaluate(depth - 1)
        if random.random() < 0.3:
            memo[len(memo)] = Tensor(512 * KIB)  # cause
        return result

    for _ in range(120):
        evaluate(random.randint(2, 6))
    return memo


@sick
def adapters_never_evicted():
    weights, adapters = model(16 * MIB), {}
    for number in range(60):
        adapters[number] = [Tensor(256 * KIB) for _ in range(LAYERS)]  # cause
        for _ in range(5):
            item(infer(256 * KIB, 2))
    return weights, adapters


@sick
def workspace_by_length():
    spaces = {}
    for number in range(120):
        length = (number * 48271) % 2003 + 16
        if length not in spaces:
            spaces[length] = Tensor(length * KIB)  # cause
        item(infer(128 * KIB, 2))
    return spaces


@sick
def prompts_joined_and_never_cut():
    weights, cache, length = model(), None, 0
    for _ in range(20):
        from_host(batch(256 * KIB))
        for _ in range(12):
            length += 1
            cache = activation(length * 128 * KIB)  # cause
            infer(64 * KIB, 2)
    return weights, cache


@sick
def histories_joined_and_never_closed():
    weights, users = model(), {}
    for wave in range(30):
        for turn in range(1, 7):
            for user in range(2):
                users[wave, user] = Tensor(turn * 256 * KIB)  # cause
                item(infer(128 * KIB, 2))
    return weights, users


@sick
def futures_kept():
    weights, futures = model(), []
    for _ in range(100):
        futures.append(infer(512 * KIB, 3))  # cause
        item(infer(128 * KIB, 2))
    return weights, futures


# ---- sick: without a framework -----------------------------------------------------------------------------------------


def scratch():
    temporary = Memory(MIB)
    item(temporary)
    temporary.release()


@sick
def plans_by_shape():
    plans = {}
    for shape in range(150):
        plans[shape] = Memory(random.randint(1, 3) * MIB)  # cause
        scratch()
    for plan in plans.values():
        plan.release()


@sick
def results_of_jobs():
    results = []
    for _ in range(300):
        scratch()
        results.append(Memory(512 * KIB))  # cause
        scratch()
    for result in results:
        result.release()


@sick
def images_of_failed_jobs():
    failed = []
    for number in range(300):
        image = Memory(512 * KIB)  # cause
        scratch()
        if number % 6 == 1:
            failed.append(image)
        else:
            image.release()
    for image in failed:
        image.release()


@sick
def history_joined():
    history = None
    for step in range(1, 150):
        longer = Memory(step * 128 * KIB)  # cause
        if history:
            history.release()
        history = longer
        scratch()
    history.release()


@sick
def managed_frames():
    frames = []
    for _ in range(100):
        frames.append(Managed(MIB))  # cause
        scratch()
    for frame in frames:
        frame.release()


@sick
def ordered_never_freed():
    kept = []
    for _ in range(150):
        kept.append(Ordered(256 * KIB))  # cause
        temporary = Ordered(2 * MIB)
        temporary.release()
    for one in kept:
        one.release()


@sick
def never_freed():
    for _ in range(100):
        Memory(512 * KIB)  # cause
        scratch()


@sick
def pinned_by_batch():
    buffers, target = [], Memory(MIB)
    for _ in range(100):
        buffers.append(Pinned(MIB))  # cause
        item(target)
    for buffer in buffers + [target]:
        buffer.release()


@sick
def registered_by_batch():
    buffers, target = [], Memory(MIB)
    for _ in range(100):
        buffers.append(register(MIB))  # cause
        item(target)
    target.release()


@sick
def pinned_now_and_then():
    buffers, target = [], Memory(MIB)
    for number in range(300):
        if number % 8 == 0:
            buffers.append(Pinned(2 * MIB))  # cause
        item(target)
    for buffer in buffers + [target]:
        buffer.release()


# ---- sick: until memory runs out -----------------------------------------------------------------------------------------


@sick(memory="1G")
def losses_until_full():
    weights, losses = model(), []
    try:
        for _ in range(2000):
            losses.append((activation(MIB), activation(MIB)))  # cause
            train_step(4 * MIB)
    except MemoryError:
        return weights, losses


@sick(memory="1G")
def results_until_full():
    results = []
    try:
        for _ in range(2000):
            results.append(infer(2 * MIB))  # cause
    except MemoryError:
        return results


@sick(memory="1G")
def joined_until_full():
    weights, cache = model(), None
    try:
        for tokens in range(1, 2000):
            infer(256 * KIB)
            cache = Tensor(tokens * 2 * MIB)  # cause
    except MemoryError:
        return weights, cache


@sick(memory="1G")
def thirty_and_then_a_large_one():
    known = []
    for _ in range(30):
        rows = Tensor(16 * MIB)
        known.append(Tensor(16 * MIB))  # cause
        del rows
    try:
        Tensor(560 * MIB)
    except MemoryError:
        return known


@sick(memory="1G")
def jobs_until_full():
    results = []
    try:
        for _ in range(2000):
            results.append(Memory(2 * MIB))  # cause
            scratch()
    except MemoryError:
        for result in results:
            result.release()


@sick(memory="1G")
def optimizers_until_full():
    weights, optimizers = model(4 * MIB), []
    try:
        for _ in range(40):
            optimizers.append([optimizer_state(4 * MIB) for _ in range(2 * LAYERS)])  # cause
            train_step(2 * MIB)
            train_step(2 * MIB)
    except MemoryError:
        return weights, optimizers


@sick(memory="1G")
def copies_of_the_model_until_full():
    weights, history = model(4 * MIB), []
    try:
        for _ in range(40):
            for _ in range(4):
                train_step(2 * MIB)
            history.append([parameter(4 * MIB) for _ in range(LAYERS)])  # cause
    except MemoryError:
        return weights, history


@sick(memory="1G")
def folds_until_full():
    results = []
    try:
        for _ in range(20):
            weights = [parameter(4 * MIB) for _ in range(LAYERS)]  # cause
            train_step(2 * MIB)
            states = [optimizer_state(4 * MIB) for _ in range(2 * LAYERS)]  # cause
            for _ in range(9):
                train_step(2 * MIB)
            results.append((weights, states))
    except MemoryError:
        return results


@sick
def copies_of_the_model():
    weights, history = model(), []
    for _ in range(12):
        for _ in range(5):
            train_step(MIB)
        history.append([parameter(2 * MIB) for _ in range(LAYERS)])  # cause
    return weights, history


@sick
def queue_joined_beside_inputs():
    weights, queue = model(), Tensor(2 * MIB)
    for _ in range(80):
        inputs = from_host(batch(MIB))
        keys = activation(512 * KIB)
        logits = Tensor(queue.size)
        queue = Tensor(queue.size + 128 * KIB)  # cause
        train_step(512 * KIB)
        del logits, keys
    return weights, queue, inputs


@sick(memory="2G")
def one_leak_in_a_full_house():
    weights, kept = model(64 * MIB, 20), []
    try:
        for _ in range(5000):
            kept.append(Tensor(512 * KIB))  # cause
            train_step(4 * MIB)
    except MemoryError:
        return weights, kept


@sick(memory="1G")
def pages_until_full():
    weights, pages = Memory(256 * MIB), []
    try:
        for _ in range(60):
            pages += [Memory(MIB) for _ in range(16)]  # cause
            scratch()
            for page in pages[-3:]:
                page.release()
            del pages[-3:]
    except MemoryError:
        for page in pages + [weights]:
            page.release()


@sick(memory="1G")
def survived_by_dropping_a_batch():
    weights, kept = model(), []
    for _ in range(600):
        try:
            kept.append(activation(2 * MIB))  # cause
            train_step(2 * MIB)
        except MemoryError:
            break
    kept = None
    item(infer(MIB))
    return weights


if __name__ == "__main__":
    result = programs[sys.argv[1]]()
    print(sys.argv[1], replica_tensor.figures(), flush=True)
