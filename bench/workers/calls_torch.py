# SPDX-License-Identifier: Apache-2.0
"""The same arithmetic in torch, eager: one op on a tensor of an ndarray, 1,000 in a row, and one
on tensors."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

CHAIN = 1000


def main() -> None:
    try:
        import numpy as np
        import torch
    except ImportError as error:
        harness.serve({"absent": str(error)}, lambda request: {})
        return
    torch.set_num_threads(int(sys.argv[1]))
    torch.set_grad_enabled(False)
    value = np.array([1.5], np.float32)

    def one():
        return torch.neg(torch.from_numpy(value)).numpy()

    def chain():
        x = torch.from_numpy(value)
        y = x
        for _ in range(CHAIN):
            y = torch.add(y, x)
        return y.numpy()

    assert one()[0] == -1.5 and chain()[0] == 1.5 * (CHAIN + 1)
    pair = [torch.from_numpy(value)] * 2
    calls = {"one op": one, "chain": chain, "execute": lambda: torch.add(*pair)}

    def answer(request):
        return {"seconds": harness.timed(calls[request["what"]])}

    harness.serve({"version": torch.__version__}, answer)


main()
