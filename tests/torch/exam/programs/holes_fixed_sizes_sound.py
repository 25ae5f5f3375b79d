# exam: 12 sound
# exam-env: GPUMEM_SIM_MEMORY=768M
"""Pages of one size: what one request gave back fits the next."""
import random

import torch


class Pages:
    def __init__(self):
        self.free = []

    def take(self):
        return self.free.pop() if self.free else torch.zeros(4 << 18, device="cuda")

    def give(self, page):
        self.free.append(page)


if __name__ == "__main__":
    random.seed(6)
    pages = Pages()
    for _ in range(60):
        held = [pages.take().fill_(1.0) for _ in range(random.randint(10, 90))]
        random.shuffle(held)
        for page in held:
            pages.give(page)
