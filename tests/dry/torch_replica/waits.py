"""Loops that decide by a value of the device, and some that do not: waits.py NAME

Each prints how often it went round.
"""
import sys

import torch
from torch.optim.optimizer import Optimizer

MANY = 3000  # more than what is taken for endless
value, optimizer, rounds = torch.Tensor(), Optimizer(), 0


def go_round():
    global rounds
    rounds += 1
    assert rounds <= 20000, "nobody noticed"


def read():
    go_round()
    return value.item()


# ---- they end at once, by a value that may be another on a GPU ---

def at_once_by_a_break():
    for _ in range(MANY):
        read()
        if not value.item():
            break


def at_once_by_a_test():
    while value.item() != 0:
        go_round()


# ---- they are ended ----------------------------------------------------------------------------------

def by_its_test():
    loss = 0
    while loss < 1:
        loss = read()


def in_its_test():
    while not value:
        read()


def by_a_break():
    while True:
        loss = read()
        print(end="")
        if loss == 1:
            break


def by_a_raise():
    while True:
        loss = read()
        if loss == 1:
            raise StopIteration


def without_an_end():
    while True:
        go_round()
        optimizer.step()


def while_all_is_reserved():
    """More and more, in each round."""
    loss = 0
    while loss < 1:
        torch.cuda.reserved += 1
        loss = read()


# ---- these, after many more rounds ---------------------------------------------------------------------

def through_a_list():
    losses = [0]
    while losses[-1] < 1:
        for _ in range(2):
            losses.append(read())


def or_by_a_count():
    loss = 0
    while loss < 1 and rounds < 10 * MANY:
        loss = read()


def epoch():
    for _ in range(3):
        loss = read()
    return loss


def in_a_function():
    loss = 0
    while loss < 1:
        loss = epoch()


# ---- these end by themselves ---------------------------------------------------------------------------

def by_a_count():
    step = 0
    while step < MANY:
        step += 1
        loss = read()
        print(loss, end=" ")


def by_a_range():
    for _ in range(MANY):
        read()


def by_a_count_too():
    loss = 0
    while not (loss == 1 or rounds >= MANY):
        loss = read()


def by_an_exception():
    batches = iter(range(MANY))
    while True:
        try:
            next(batches)
        except StopIteration:
            break
        if read() == 1:
            break


def in_a_generator():
    def endless_batches():
        while True:
            optimizer.step()
            yield read()

    batches = endless_batches()
    for _ in range(MANY):
        next(batches)


def by_a_range_of_steps():
    for _ in range(MANY):
        go_round()
        optimizer.step()


def while_more_is_reserved():
    """Not steady: every few rounds more is reserved."""
    loss = 0
    while loss < 1 and rounds < MANY:
        torch.cuda.reserved += rounds % 100 == 0
        loss = read()


def on_the_host():
    value.is_cuda = False
    or_by_a_count_of_its_own()


def or_by_a_count_of_its_own():
    loss = 0
    while loss < 1 and rounds < MANY:
        loss = read()


try:
    globals()[sys.argv[1]]()
finally:
    print("rounds", rounds)
