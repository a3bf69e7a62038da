#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recurrent cell of one's own over sequences of any length.

The sum of a sequence of numbers is learned from batches whose rows differ in length, and whose
longest row differs from batch to batch; then it is asked for sequences longer than any before.
"""

import argparse

import numpy as np

import treenail as tn

UNITS, BATCH, LONGEST = 32, 64, 12


class GatedCell(tn.nn.rnn_cell.RNNCell):
    """The minimal gated unit (Zhou and others 2016, arXiv:1603.09420): one gate for all."""

    state_size = output_size = UNITS

    def build(self, input_shape):
        rows = input_shape[-1] + UNITS
        self.gate = self.add_variable("gate", [rows, UNITS])
        self.candidate = self.add_variable("candidate", [rows, UNITS])

    def call(self, inputs, state):
        forget = tn.sigmoid(tn.matmul(tn.concat([inputs, state], 1), self.gate))
        new = tn.tanh(tn.matmul(tn.concat([inputs, forget * state], 1), self.candidate))
        state += forget * (new - state)
        return state, state


def some_rows(random, longest, batch=BATCH):
    """(numbers [batch, time, 1], lengths): zeros lie behind a row's length."""
    lengths = random.randint(1, longest + 1, batch)
    inside = np.arange(lengths.max()) < lengths[:, None]
    return (random.uniform(-0.5, 0.5, inside.shape) * inside)[..., None], lengths


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=400, help="of training (%(default)s)")
    steps = parser.parse_args().steps

    tn.set_random_seed(1)
    numbers = tn.placeholder(tn.float32, [None, None, 1])
    lengths = tn.placeholder(tn.int32, [None])
    _, state = tn.nn.dynamic_rnn(GatedCell(), numbers, lengths, dtype=tn.float32)
    found = tn.layers.dense(state, 1)[:, 0]
    loss = tn.reduce_mean(tn.squared_difference(found, tn.reduce_sum(numbers, [1, 2])))
    train = tn.train.AdamOptimizer(0.01).minimize(loss)

    random = np.random.RandomState(2)
    test = dict(zip((numbers, lengths), some_rows(np.random.RandomState(3), LONGEST, 500)))
    longer = dict(zip((numbers, lengths), some_rows(np.random.RandomState(4), 2 * LONGEST, 500)))
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        before = session.run(loss, test)
        for step in range(1, steps + 1):
            batch = some_rows(random, random.randint(2, LONGEST + 1))
            session.run(train, dict(zip((numbers, lengths), batch)))
            if step % max(1, steps // 8) == 0:
                print("step %4d: mean squared error %.4f" % (step, session.run(loss, test)))
        after, beyond = session.run(loss, test), session.run(loss, longer)
        some = some_rows(np.random.RandomState(5), LONGEST, 3)
        for row, length, sum_found in zip(*some, session.run(
                found, dict(zip((numbers, lengths), some)))):
            print("%2d numbers, sum %6.3f, found %6.3f" % (length, row.sum(), sum_found))
    print("error %.4f before, %.4f after; %.4f up to twice the length" % (before, after, beyond))
    assert after < before * (0.05 if steps >= 400 else 0.5), (before, after)


if __name__ == "__main__":
    main()
