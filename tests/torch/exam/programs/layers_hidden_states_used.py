# exam: 3 sound
"""output_hidden_states=True: all layers of one batch are held, until its loss is done."""
import torch
from torch import nn


class Student(nn.Module):
    def __init__(self, width, depth):
        super().__init__()
        self.gains = nn.ParameterList(torch.ones(width) for _ in range(depth))

    def forward(self, hidden):
        hidden_states = [hidden]
        for gain in self.gains:
            hidden_states.append(torch.relu(hidden_states[-1] * gain))
        return hidden_states


def distill(teacher, student, batch, optimizer):
    with torch.no_grad():
        targets = teacher(batch)
    made = student(batch)
    loss = sum((a - b).square().mean() for a, b in zip(targets, made))
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return loss.item()


if __name__ == "__main__":
    big, small = Student(1024, 6).cuda(), Student(1024, 6).cuda()
    sgd = torch.optim.SGD(small.parameters(), lr=0.1, momentum=0.9)
    for _ in range(40):
        distill(big, small, torch.rand(256, 1024, device="cuda"), sgd)
