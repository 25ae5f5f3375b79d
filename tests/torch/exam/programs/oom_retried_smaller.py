# exam: 1 sound
# exam-env: GPUMEM_SIM_MEMORY=512M
"""Upscales in one go if that fits, in tiles if it does not."""
import torch


def upscale(image, factor):
    return image.repeat_interleave(factor, 0).repeat_interleave(factor, 1)


def process(image):
    try:
        return upscale(image, 12).mean()
    except torch.cuda.OutOfMemoryError:
        torch.cuda.empty_cache()
    return torch.stack([upscale(tile, 12).mean() for tile in image.split(64)]).mean()


if __name__ == "__main__":
    picture = torch.rand(1024, 1024, device="cuda")
    for _ in range(3):
        print(process(picture).shape)
