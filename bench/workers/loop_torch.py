# SPDX-License-Identifier: Apache-2.0
"""Training steps of torch.nn.LSTMCell in a loop of Python. Arguments: threads, and "compiled" where
torch.compile is to make one function of the loop.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
import loop  # noqa: E402
import numpy as np  # noqa: E402


def main() -> None:
    try:
        import torch
    except ImportError:
        harness.serve({"absent": "python3-torch is not installed"}, lambda request: {})
        return
    imported = harness.resident()
    torch.set_num_threads(int(sys.argv[1]))
    compiled = torch.compile if sys.argv[2:] == ["compiled"] else lambda function: function
    inputs, (i, g, f, o) = torch.from_numpy(loop.inputs()), np.split(loop.kernel().T, 4)
    weight = torch.from_numpy(np.concatenate([i, f, g, o]))

    def fresh():
        cell = torch.nn.LSTMCell(loop.UNITS, loop.UNITS)
        with torch.no_grad():
            cell.weight_ih.copy_(weight[:, :loop.UNITS])
            cell.weight_hh.copy_(weight[:, loop.UNITS:])
            cell.bias_ih.zero_()
            cell.bias_hh.zero_()
        cell.bias_hh.requires_grad_(False)  # one bias, as elsewhere
        return cell, torch.optim.SGD([p for p in cell.parameters() if p.requires_grad], loop.RATE)

    @compiled
    def loss_of(cell):
        state = torch.zeros(loop.BATCH, loop.UNITS), torch.zeros(loop.BATCH, loop.UNITS)
        for x in inputs:
            state = cell(x, state)
        return state[0].square().mean()

    def step(cell, optimizer):
        optimizer.zero_grad()
        loss = loss_of(cell)
        loss.backward()
        optimizer.step()
        return loss

    def losses(steps):
        begin = fresh()
        return [float(step(*begin).detach()) for _ in range(steps)]

    state = fresh()
    harness.serve_network({"version": torch.__version__}, imported, losses, lambda: [],
                          {"train": lambda: step(*state)})


main()
