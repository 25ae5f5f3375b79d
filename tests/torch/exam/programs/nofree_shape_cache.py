# exam: 5 sick retained growing
"""Static workspaces per request length: there are as many lengths as requests."""
import torch


class Runner:
    def __init__(self):
        self.workspaces = {}

    def workspace(self, length):
        if length not in self.workspaces:
            self.workspaces[length] = torch.empty(length, 1024, device="cuda")  # cause
        return self.workspaces[length]

    def run(self, length):
        self.workspace(length).fill_(1.0)


def requests(count):
    length = 500
    for number in range(count):
        length = (length * 48271) % 2003
        yield length + 16


if __name__ == "__main__":
    runner = Runner()
    for size in requests(90):
        runner.run(size)
    print(len(runner.workspaces))
