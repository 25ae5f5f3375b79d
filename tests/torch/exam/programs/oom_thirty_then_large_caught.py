# exam: 1 sick retained growing
# exam-env: GPUMEM_SIM_MEMORY=1G
"""The same trouble in a service that survives it: the reference views are never dropped."""
import threading

import torch


class Gallery:
    def __init__(self):
        self.views = []
        self.lock = threading.Lock()

    def add(self, image):
        view = image.mul(1 / 255).sub(0.5)  # cause
        with self.lock:
            self.views.append(view)
        return float(view.shape[0])


def serve(gallery):
    for _ in range(10):
        image = torch.randint(0, 255, (3, 1500, 1500), dtype=torch.float32).cuda()
        gallery.add(image)


if __name__ == "__main__":
    everything = Gallery()
    workers = [threading.Thread(target=serve, args=(everything,)) for _ in range(3)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    try:
        mosaic = torch.empty(3, 9000, 6000, device="cuda")
    except torch.cuda.OutOfMemoryError:
        print("no mosaic today")
