# SPDX-License-Identifier: Apache-2.0
"""Random programs of nested branches, loops and calls in every mode: in a session, at once, and by
tn.function, which must give the same bits, and beside them a plain interpreter over NumPy for the
values. Gradients of branches that run at once are summed without the branches around them, in
another association, and agree to rounding."""

import numpy as np
import pytest
import treenail as tn

UNARY = {"tanh": np.tanh, "neg": np.negative, "abs": np.abs, "square": np.square}
BINARY = {"add": np.add, "sub": np.subtract, "mul": np.multiply, "maximum": np.maximum}
SHAPE = (3,)


class Maker:
    """Makes a program: nested lists, of which each statement appends one value to those there are.
    """

    def __init__(self, seed):
        self.rng = np.random.RandomState(seed)

    def block(self, count, depth, length):
        statements = []
        for _ in range(length):
            statements.append(self.statement(count, depth))
            count += 1
        return statements

    def statement(self, count, depth):
        kinds = ["unary", "binary", "scale"] + ["if", "while", "call"] * (depth > 0)
        kind = kinds[self.rng.randint(len(kinds))]
        a, b = self.rng.randint(count), self.rng.randint(count)
        if kind == "unary":
            return kind, list(UNARY)[self.rng.randint(len(UNARY))], a
        if kind == "binary":
            return kind, list(BINARY)[self.rng.randint(len(BINARY))], a, b
        if kind == "scale":
            return kind, float(np.float32(self.rng.uniform(-0.9, 0.9))), a
        length = self.rng.randint(1, 4)
        if kind == "if":
            return (kind, a, self.block(count, depth - 1, length),
                    self.block(count, depth - 1, length))
        if kind == "while":
            return kind, self.rng.randint(4), a, self.block(count + 1, depth - 1, length)
        return kind, self.block(count, depth - 1, length)


class Numbers:
    """The plain interpreter."""

    def run(self, block, values):
        values = list(values)
        for kind, *rest in block:
            values.append(getattr(self, kind)(values, *rest))
        return values[-1]

    def unary(self, values, name, a):
        return UNARY[name](values[a])

    def binary(self, values, name, a, b):
        return BINARY[name](values[a], values[b])

    def scale(self, values, factor, a):
        return values[a] * np.float32(factor)

    def choose(self, values, a):
        return values[a].sum() > 0

    def call(self, values, block):
        return self.run(block, values)

    def __getattr__(self, name):
        return {"if": self.branch, "while": self.loop}[name]

    def branch(self, values, a, first, second):
        return self.run(first if self.choose(values, a) else second, values)

    def loop(self, values, times, a, block):
        carried = values[a]
        for _ in range(times):
            carried = np.tanh(self.run(block, values + [carried]))
        return carried


class Tensors(Numbers):
    """The same by Treenail, in whatever mode; functions: calls are of tn.function."""

    def __init__(self, functions):
        self.functions = functions

    def unary(self, values, name, a):
        return getattr(tn, name)(values[a])

    def binary(self, values, name, a, b):
        return getattr(tn, name)(values[a], values[b])

    def scale(self, values, factor, a):
        return values[a] * factor

    def branch(self, values, a, first, second):
        return tn.cond(tn.reduce_sum(values[a]) > 0.0, lambda: self.run(first, values),
                       lambda: self.run(second, values))

    def loop(self, values, times, a, block):
        return tn.while_loop(
            lambda i, carried: i < times,
            lambda i, carried: (i + 1, tn.tanh(self.run(block, values + [carried]))),
            (tn.constant(0), values[a]))[1]

    def call(self, values, block):
        if not self.functions:
            return self.run(block, values)
        return tn.function(lambda *given: self.run(block, given), autograph=False)(*values)


def in_a_session(program, inputs, functions):
    with tn.Graph().as_default(), tn.Session() as session:
        given = [tn.placeholder(tn.float32, SHAPE) for _ in inputs]
        y = Tensors(functions).run(program, given)
        gradients = tn.gradients(y, given)
        known = [g for g in gradients if g is not None]
        result = session.run([y] + known, dict(zip(given, inputs)))
        found = iter(result[1:])
        return [result[0]] + [None if g is None else next(found) for g in gradients]


def at_once(program, inputs, functions, whole):
    with tn.eager():
        given = [tn.constant(x) for x in inputs]

        def run(*values):
            return Tensors(functions).run(program, values)
        run = tn.function(run, autograph=False) if whole else run
        with tn.GradientTape() as tape:
            tape.watch(given)
            y = run(*given)
        gradients = tape.gradient(y, given)
        if whole:  # the same trace, whose branches and loops have others beside them by now
            np.testing.assert_array_equal(run(*given), y)
        return [y.numpy()] + [None if g is None else g.numpy() for g in gradients]


def same(a, b, rounded=False):
    """Bit for bit, or the gradients to rounding; no path, and a path that a branch leaves, are both
    no gradient."""
    for number, (x, y) in enumerate(zip(a, b)):
        if x is None or y is None:
            assert not np.any(x if y is None else y)
        elif rounded and number > 0:
            np.testing.assert_allclose(x, y, rtol=1e-5, atol=1e-6)
        else:
            np.testing.assert_array_equal(x, y)


@pytest.mark.parametrize("seed", range(60))
def test_random_programs(seed):
    maker = Maker(seed)
    inputs = [maker.rng.uniform(-1, 1, SHAPE).astype(np.float32) for _ in range(2)]
    program = maker.block(2, 3, 4)
    graph = in_a_session(program, inputs, False)
    np.testing.assert_allclose(graph[0], Numbers().run(program, inputs), rtol=1e-4, atol=1e-5)
    same(graph, in_a_session(program, inputs, True))
    same(graph, at_once(program, inputs, False, False), rounded=True)
    same(graph, at_once(program, inputs, True, False), rounded=True)
    same(graph, at_once(program, inputs, False, True))
    same(graph, at_once(program, inputs, True, True))
