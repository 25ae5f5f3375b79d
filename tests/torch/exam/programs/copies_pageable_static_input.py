# exam: 11 sick pageable-copies
"""A server copies each request, out of ordinary memory, into its static input."""
import asyncio

import torch


class Server:
    def __init__(self):
        self.static = torch.zeros(128, 2048, device="cuda")
        self.lock = asyncio.Lock()

    async def handle(self, request):
        async with self.lock:
            self.static.copy_(request)  # cause
            return self.static.sum().item()


async def main():
    server = Server()
    requests = [torch.rand(128, 2048) for _ in range(8)]
    for _ in range(10):
        await asyncio.gather(*[server.handle(request) for request in requests])


asyncio.run(main())
