#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Immediate execution: a small network learns two spirals, step by step in Python and again with
the step as a tn.function, with the same result; Python's control flow looks at values."""

import argparse

import numpy as np
import treenail as tn

tn.enable_eager_execution()


def spirals(count):
    """Points of two arms, and which arm each is of."""
    rng = np.random.RandomState(0)
    turn = np.sqrt(rng.uniform(0.05, 1.0, count)) * 2.5 * np.pi
    arm = rng.randint(0, 2, count)
    angle = turn + np.pi * arm
    points = np.stack([turn * np.cos(angle), turn * np.sin(angle)], 1) / 8.0
    return points.astype(np.float32), arm.astype(np.int64)


class Network:
    def __init__(self):
        dense = tn.layers.Dense
        self.layers = [dense(32, tn.tanh), dense(32, tn.tanh), dense(2)]

    def __call__(self, x):
        for layer in self.layers:
            x = layer(x)
        return x


def trained(steps, as_function):
    """The last loss, and how many points are told apart."""
    tn.set_random_seed(4)
    points, arms = spirals(300)
    x, y = tn.constant(points), tn.constant(arms)
    network, optimizer = Network(), tn.train.AdamOptimizer(0.02)
    network(x)  # makes the variables

    def step():
        with tn.GradientTape() as tape:
            loss = tn.losses.sparse_softmax_cross_entropy(y, network(x))
        variables = tape.watched_variables()
        optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
        return loss
    if as_function:
        step = tn.function(step)
    for number in range(steps):
        loss = step()
        if number % 100 == 0:
            print("  step %3d: loss %.4f" % (number, loss))
    right = tn.reduce_mean(tn.cast(tn.equal(tn.argmax(network(x), 1), y), tn.float32))
    return float(loss), float(right)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--steps", type=int, default=400)
    steps = parser.parse_args().steps
    print("at once:")
    loss, right = trained(steps, False)
    print("as a tn.function:")
    again = trained(steps, True)
    print("%.0f %% of the points are told apart" % (100 * right))
    assert again == (loss, right), "both ways give the same bits"
    assert right > 0.9 or steps < 300
    a = tn.constant(27)
    length = 0
    while not tn.equal(a, 1):
        a = a // 2 if tn.equal(a % 2, 0) else a * 3 + 1
        length += 1
    print("27 comes to 1 after %d steps" % length)
    assert length == 111


if __name__ == "__main__":
    main()
