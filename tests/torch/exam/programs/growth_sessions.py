# exam: 2 sick retained growing
"""A chat server: every session's history grows, and none is ever closed."""
import asyncio
import random

import torch


class Session:
    def __init__(self):
        self.history = torch.zeros(1, 4096, device="cuda")

    async def say(self, tokens):
        fresh = torch.rand(tokens, 4096, device="cuda")
        self.history = torch.cat((self.history, fresh))  # cause
        await asyncio.sleep(0)
        return self.history.mean(0)


async def client(server, name, turns):
    for _ in range(turns):
        session = server.setdefault(name, Session())
        await session.say(random.randint(4, 24))


async def main():
    random.seed(1)
    server = {}
    for wave in range(8):
        await asyncio.gather(*[client(server, f"user {wave}.{n}", 6) for n in range(5)])
    print(len(server), "sessions")


asyncio.run(main())
