# SPDX-License-Identifier: Apache-2.0
"""Single calls with immediate execution; see immediate.py."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
import immediate  # noqa: E402

import numpy as np  # noqa: E402
import treenail as tn  # noqa: E402


def calls():
    a, b, m = tn.constant(1.0), tn.constant(2.0), tn.constant([[1.0]])
    v, x, i = tn.Variable(1.0), tn.constant([1.0, 2.0, 3.0]), tn.constant([[1.0, 2.0], [3.0, 4.0]])
    return {"a": a, "b": b, "m": m, "v": v, "x": x, "i": i, "tn": tn,
            "f": tn.function(lambda t: tn.tanh(t))}


BODIES = {"add": "a + b", "number": "a + 1.0", "matmul": "tn.matmul(m, m)",
          "sum": "tn.reduce_sum(x)", "reshape": "tn.reshape(x, [3, 1])", "index": "i[0]",
          "read": "v.value()", "function": "f(a)"}


def with_tape(many, names):
    """Seconds for one call: the tape is opened outside of what is timed."""
    def run(clock):
        with tn.GradientTape() as tape:
            tape.watch([names[n] for n in "abmxi"])
            return clock(many)
    return run


def backward(names, clock):
    with tn.GradientTape() as tape:
        tape.watch(names["a"])
        y = names["a"]
        for _ in range(500):
            y = y * names["b"] + names["a"]
    return clock(lambda: tape.gradient(y, names["a"])) / 1000


def main() -> None:
    tn.execute("Neg", [np.zeros(1, np.float32)])
    with tn.eager():
        names = calls()

    def answer(request):
        what, _, taped = request["what"].partition(", with")
        with tn.eager():
            if what == "backward":
                return {"seconds": immediate.best(lambda clock: backward(names, clock))}
            many = immediate.many(BODIES[what], names)
            run = with_tape(many, names) if taped else (lambda clock: clock(many))
            return {"seconds": immediate.best(run) / immediate.TIMES}

    harness.serve({"version": tn.__version__}, answer)


main()
