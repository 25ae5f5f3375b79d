# exam: 4 sound
"""A rollout buffer with a limit that this run does not reach."""
from collections import deque

import torch


class Rollouts:
    def __init__(self, limit):
        self.steps = deque(maxlen=limit)

    def push(self, observation, action):
        self.steps.append((observation, action))


def act(policy, observation):
    return torch.tanh(observation * policy)


if __name__ == "__main__":
    actor = torch.ones(4096, device="cuda")
    rollouts = Rollouts(limit=1000)
    for _ in range(150):
        state = torch.rand(32, 4096, device="cuda")
        rollouts.push(state, act(actor, state))
    print(len(rollouts.steps))
