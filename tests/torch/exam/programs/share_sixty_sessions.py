# exam: 4 sick retained growing
"""Sessions that were not closed cleanly stay in the table: six in ten."""
import queue
import random
import threading

import torch

open_sessions = {}


class Session:
    def __init__(self, number):
        self.number = number
        self.state = torch.zeros(512, 1024, device="cuda")  # cause

    def turn(self):
        self.state.add_(torch.rand(512, 1024, device="cuda"))


def serve(incoming):
    while (number := incoming.get()) is not None:
        session = open_sessions[number] = Session(number)
        for _ in range(3):
            session.turn()
        if random.random() < 0.4:
            del open_sessions[number]


def main():
    random.seed(11)
    incoming = queue.Queue()
    threads = [threading.Thread(target=serve, args=(incoming,)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for number in range(200):
        incoming.put(number)
    for _ in threads:
        incoming.put(None)
    for thread in threads:
        thread.join()
    print(len(open_sessions))


main()
