"""Loops that decide by a value of the device, and some that do not: waits.py NAME

Each prints how often it went round.
"""
import sys

import torch

MANY = 600  # more than what is taken for endless
value, rounds = torch.Tensor(), 0


def read():
    global rounds
    rounds += 1
    return value.item()


def by_its_test():
    loss = 0
    while loss < 1 and rounds < MANY:
        loss = read()


def in_its_test():
    while not value and rounds < MANY:
        read()


def by_a_break():
    while rounds < MANY:
        loss = read()
        print(end="")
        if loss == 1:
            break


def through_a_list():
    losses = [0]
    while losses[-1] < 1 and rounds < MANY:
        for _ in range(2):
            losses.append(read())


def by_a_count():
    step = 0
    while step < MANY:
        step += 1
        loss = read()
        print(loss, end=" ")


def by_a_range():
    for _ in range(MANY):
        read()


def while_more_is_reserved():
    """Not steady: every few rounds more is reserved."""
    loss = 0
    while loss < 1 and rounds < MANY:
        torch.cuda.reserved += rounds % 100 == 0
        loss = read()


def on_the_host():
    value.is_cuda = False
    by_its_test()


try:
    globals()[sys.argv[1]]()
finally:
    print("rounds", rounds)
