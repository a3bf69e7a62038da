#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""A recurrent network whose layers are on different machines, as a pipeline.

Two layers of LSTM learn to continue a text. Each layer has its variables on a task of its own;
while the second is at one letter the first is at the next one. Where the other operations run is
said by hand, or predicted with --by-cost: both train with the same bits as one process does.
"""

import argparse

import numpy as np

import treenail as tn

TEXT = "the quick brown fox jumps over the lazy dog. "
LETTERS = sorted(set(TEXT))
UNITS, BATCH, LETTERS_AT_ONCE, LAYERS = 24, 16, 10, 2


def model(tasks, by_cost=False):
    """(letters [batch, time + 1] to feed, loss, training step); `tasks`: a device per layer."""
    def place(task):
        """All operations, or the variables alone, which do not move."""
        return tn.device((lambda op: task if op.type == "VarHandleOp" else "") if by_cost else task)

    letters = tn.placeholder(tn.int32, [BATCH, LETTERS_AT_ONCE + 1], name="letters")
    values = [tn.one_hot(letters[:, i], len(LETTERS)) for i in range(LETTERS_AT_ONCE)]
    for layer, task in enumerate(tasks):
        with place(task), tn.variable_scope("layer_%d" % layer):
            cell = tn.nn.rnn_cell.LSTMCell(UNITS)
            values, _ = tn.nn.static_rnn(cell, values, dtype=tn.float32)
    with place(tasks[-1]):
        logits = tn.layers.dense(tn.stack(values, 1), len(LETTERS))
        loss = tn.reduce_mean(tn.nn.sparse_softmax_cross_entropy_with_logits(
            labels=letters[:, 1:], logits=logits))
    return letters, loss, tn.train.AdamOptimizer(0.03).minimize(loss)


def batches(count):
    """So many batches of places in the text."""
    random = np.random.RandomState(3)
    places = np.array([LETTERS.index(letter) for letter in TEXT] * 2, np.int32)
    for _ in range(count):
        begins = random.randint(0, len(TEXT), BATCH)
        yield np.stack([places[begin:begin + LETTERS_AT_ONCE + 1] for begin in begins])


def trained(target, tasks, steps, by_cost=False, links=()):
    """The losses of so many steps of a session at `target`."""
    placement = tn.placement.Options(links=links) if by_cost else None
    config = tn.ConfigProto(graph_options=tn.GraphOptions(placement=placement))
    with tn.Graph().as_default():
        tn.set_random_seed(1)
        letters, loss, train = model(tasks, by_cost)
        with tn.Session(target, config=config) as session:
            session.run(tn.global_variables_initializer())
            return [session.run([loss, train], {letters: batch})[0] for batch in batches(steps)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n", maxsplit=1)[0])
    parser.add_argument("--steps", type=int, default=100, help="of training (%(default)s)")
    parser.add_argument("--target", default="", help="grpc://host:port of a server with tasks 0 and"
                        " 1 of the job worker; without one all layers are in this process")
    parser.add_argument("--by-cost", action="store_true", help="predict where operations run best")
    given = parser.parse_args()
    tasks = ["/job:worker/task:%d" % i if given.target else "" for i in range(LAYERS)]
    losses = trained(given.target, tasks, given.steps, given.by_cost and bool(given.target))
    for step in range(0, given.steps, max(1, given.steps // 8)):
        print("step %4d: %.3f nats a letter" % (step, losses[step]))
    guessed = np.log(len(LETTERS))
    print("last step: %.3f; of any letter like any other: %.3f" % (losses[-1], guessed))
    assert losses[-1] < 0.9 * guessed, "it has not learned"


if __name__ == "__main__":
    main()
