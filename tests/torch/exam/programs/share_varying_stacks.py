# exam: 4 sick retained growing
"""A tree of expressions is evaluated recursively; results are memoised without a bound."""
import random

import torch

memo = {}


def evaluate(depth, leaf):
    if depth == 0:
        return leaf
    left = evaluate(depth - 1, leaf)
    if random.random() < 0.3:
        left = evaluate(random.randrange(depth), left)
    key = random.getrandbits(48)
    result = left * 0.5 + leaf
    if random.random() < 0.4:
        memo[key] = torch.sin(result)  # cause
    return result


def main():
    random.seed(5)
    for _ in range(120):
        evaluate(random.randint(2, 6), torch.rand(256, 1024, device="cuda"))
    print(len(memo))


main()
