# SPDX-License-Identifier: Apache-2.0
"""Training steps of a cell that has no op of its own. Arguments: "loop" (dynamic_rnn) or "unrolled"
(static_rnn), threads.
"""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
import loop  # noqa: E402
import treenail as tn  # noqa: E402


class OwnCell(tn.nn.rnn_cell.LSTMCell):
    """The step of LSTMCell as a program's own: nothing is known of its sequence."""

    def call(self, inputs, state):
        return super().call(inputs, state)


def main() -> None:
    imported = harness.resident()
    form, threads = sys.argv[1], int(sys.argv[2])
    x = tn.placeholder(tn.float32, [loop.STEPS, loop.BATCH, loop.UNITS])
    cell = OwnCell(loop.UNITS, forget_bias=0.0)
    if form == "loop":
        _, state = tn.nn.dynamic_rnn(cell, x, dtype=tn.float32, time_major=True)
    else:
        _, state = tn.nn.static_rnn(cell, tn.unstack(x), dtype=tn.float32)
    loss = tn.reduce_mean(tn.square(state.h))
    train = tn.train.GradientDescentOptimizer(loop.RATE).minimize(loss)
    kernel, bias = tn.trainable_variables()
    session = tn.Session(config=tn.ConfigProto(intra_op_parallelism_threads=threads))
    begin = tn.group(kernel.assign(loop.kernel()), bias.initializer)
    session.run(begin)
    feed = {x: loop.inputs()}

    def losses(steps):
        session.run(begin)
        return [float(session.run([loss, train], feed)[0]) for _ in range(steps)]

    harness.serve_network({"version": tn.__version__}, imported, losses, lambda: [],
                          {"train": lambda: session.run(train, feed)})


main()
