# SPDX-License-Identifier: Apache-2.0
"""Single calls with immediate execution and a training step in three forms; see immediate.py."""

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


def loss_of(weights, x, y):
    hidden = x
    for w, b in weights[:-1]:
        hidden = tn.nn.relu(tn.matmul(hidden, w) + b)
    logits = tn.matmul(hidden, weights[-1][0]) + weights[-1][1]
    return tn.reduce_mean(tn.nn.sparse_softmax_cross_entropy_with_logits(labels=y, logits=logits))


def step_of(form):
    optimizer = tn.train.GradientDescentOptimizer(immediate.RATE)
    weights = [(tn.Variable(w), tn.Variable(b)) for w, b in immediate.starts()]
    flat = [v for pair in weights for v in pair]
    xs, ys = immediate.data()
    if form == "graph":
        x, y = tn.placeholder(tn.float32, xs.shape), tn.placeholder(tn.int64, ys.shape)
        loss = loss_of(weights, x, y)
        train = optimizer.minimize(loss)
        session = tn.Session()
        session.run(tn.global_variables_initializer())
        run = session.make_callable([loss, train], [x, y])
        return lambda: run(xs, ys)[0]

    def step(x, y):
        with tn.GradientTape() as tape:
            loss = loss_of(weights, x, y)
        optimizer.apply_gradients(zip(tape.gradient(loss, flat), flat))
        return loss
    step = tn.function(step) if form == "function" else step
    return lambda: step(tn.constant(xs), tn.constant(ys)).numpy()


def main() -> None:
    tn.execute("Neg", [np.zeros(1, np.float32)])
    with tn.eager():
        names = calls()
    with tn.Graph().as_default():
        steps = {"graph": step_of("graph")}
    with tn.eager():
        steps.update({form: step_of(form) for form in ("function", "eager")})
        first = {form: float(step()) for form, step in steps.items()}
    assert len(set(first.values())) == 1, first

    def answer(request):
        what, _, taped = request["what"].partition(", with")
        with tn.eager():
            if what.startswith("step, "):
                return {"seconds": harness.timed(steps[what[len("step, "):]])}
            if what == "backward":
                return {"seconds": immediate.best(lambda clock: backward(names, clock))}
            many = immediate.many(BODIES[what], names)
            run = with_tape(many, names) if taped else (lambda clock: clock(many))
            return {"seconds": immediate.best(run) / immediate.TIMES}

    harness.serve({"version": tn.__version__}, answer)


main()
