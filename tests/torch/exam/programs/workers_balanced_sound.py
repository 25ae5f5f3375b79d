# exam: 10 sound
# exam-env: GPUMEM_SIM_DEVICES=2
"""Each device reduces its own half, numbers are gathered."""
import threading

import torch


def work(device, results):
    with torch.no_grad():
        weight = torch.ones(2048, 4096, device=device)
        for _ in range(20):
            results.append(torch.tanh(torch.rand(2048, 4096, device=device) * weight).mean().item())


if __name__ == "__main__":
    sums = []
    threads = [threading.Thread(target=work, args=(f"cuda:{n}", sums)) for n in range(torch.cuda.device_count())]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    print(len(sums))
