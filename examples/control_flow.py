#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Python's own `while`, `if` and `for` over tensors: tn.autograph.to_graph makes them loops and
branches of the graph. Collatz lengths and square roots by Newton's iteration, each traced once and
run for many numbers; the gradient goes back through the loop."""

import treenail as tn


def collatz(n):
    """How many steps lead from n to 1."""
    steps = 0
    while n != 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        steps += 1
    return steps


def root(x):
    """The square root of x, and the guesses on the way; -1 where there is none."""
    guesses = []
    if x < 0:
        return -1.0, tn.zeros([0])
    guess = x * 0.5 + 0.5
    for _ in tn.range(50):
        guesses.append(guess)
        following = 0.5 * (guess + x / guess)
        if abs(following - guess) < 1e-6 * guess:
            break
        guess = following
    return guess, tn.stack(guesses)


def main():
    """Prints a table of both."""
    with tn.Graph().as_default(), tn.Session() as session:
        n = tn.placeholder(tn.int32, [])
        steps = tn.autograph.to_graph(collatz)(n)
        for number in (1, 7, 27, 97):
            print("collatz(%d) = %d" % (number, session.run(steps, {n: number})))

        x = tn.placeholder(tn.float32, [])
        value, guesses = tn.autograph.to_graph(root)(x)
        slope, = tn.gradients(value, [x])
        for number in (2.0, 9.0, -1.0):
            got, tried, rate = session.run([value, guesses, slope], {x: number})
            print("root(%g) = %.5f after %d guesses, slope %.4f" % (number, got, len(tried), rate))


if __name__ == "__main__":
    main()
