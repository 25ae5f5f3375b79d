"""Stands for Inductor's pass that reads constants."""


def constant_of(tensor):
    return tensor.item()
