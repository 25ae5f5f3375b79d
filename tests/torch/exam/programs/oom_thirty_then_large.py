# exam: 1 sick retained growing
# exam-env: GPUMEM_SIM_MEMORY=1G
# exam-exit: 1
"""Thirty prompts are kept as embeddings, then the report wants one large matrix."""
import torch


def embed(prompt, table):
    ids = torch.randint(0, table.shape[0], (2048,)).cuda()
    rows = table[ids]
    return torch.nn.functional.normalize(rows * len(prompt), dim=-1)  # cause


def main():
    table = torch.rand(4096, 2048, device="cuda")
    known = {}
    for number in range(30):
        prompt = f"prompt {number}" * (1 + number % 3)
        known[prompt] = embed(prompt, table)
    similarity = torch.zeros(12000, 12000, device="cuda")
    return similarity, known


if __name__ == "__main__":
    main()
