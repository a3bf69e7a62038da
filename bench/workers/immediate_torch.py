# SPDX-License-Identifier: Apache-2.0
"""The same calls in torch, eager; see immediate.py."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402


BODIES = {"add": "a + b", "number": "a + 1.0", "matmul": "torch.matmul(m, m)",
          "sum": "torch.sum(x)", "reshape": "torch.reshape(x, (3, 1))", "index": "i[0]",
          "read": "v.detach()"}


def main() -> None:
    try:
        import torch
    except ImportError as error:
        harness.serve({"absent": str(error)}, lambda request: {})
        return
    if "compiled" in sys.argv:
        harness.serve({"absent": "what is compiled makes no single calls"}, lambda request: {})
        return
    import immediate
    torch.set_num_threads(int(sys.argv[1]))
    values = {"a": 1.0, "b": 2.0, "m": [[1.0]], "v": 1.0, "x": [1.0, 2.0, 3.0],
              "i": [[1.0, 2.0], [3.0, 4.0]]}
    spaces = {taped: {"torch": torch, **{name: torch.tensor(value, requires_grad=taped)
                                         for name, value in values.items()}}
              for taped in (False, True)}

    def backward(clock):
        a, b = spaces[True]["a"], spaces[False]["b"]
        y = a
        for _ in range(500):
            y = y * b + a
        return clock(lambda: torch.autograd.grad(y, a)) / 1000

    def answer(request):
        what, _, taped = request["what"].partition(", with")
        if what == "backward":
            return {"seconds": immediate.best(backward)}
        body = "v.clone()" if what == "read" and taped else BODIES[what]
        many = immediate.many(body, spaces[bool(taped)])
        return {"seconds": immediate.best(lambda clock: clock(many)) / immediate.TIMES}

    harness.serve({"version": torch.__version__}, answer)


main()
