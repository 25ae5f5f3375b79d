# exam: 2 sound
"""A replay buffer that is made once and written round and round."""
import torch


class Replay:
    def __init__(self, capacity, width):
        self.states = torch.zeros(capacity, width, device="cuda")
        self.rewards = torch.zeros(capacity, device="cuda")
        self.next = 0

    def add(self, state, reward):
        self.states[self.next].copy_(state)
        self.rewards[self.next].copy_(reward)
        self.next = (self.next + 1) % len(self.rewards)

    def sample(self, count):
        chosen = torch.randint(0, len(self.rewards), (count,)).cuda()
        return self.states[chosen], self.rewards[chosen]


if __name__ == "__main__":
    policy = torch.ones(8192, device="cuda", requires_grad=True)
    optimizer = torch.optim.Adam([policy])
    buffer = Replay(500, 8192)
    for step in range(400):
        buffer.add(torch.rand(8192, device="cuda"), torch.tensor(1.0, device="cuda"))
        states, rewards = buffer.sample(64)
        ((states * policy).mean(1) - rewards).square().mean().backward()
        optimizer.step()
        optimizer.zero_grad()
