# SPDX-License-Identifier: Apache-2.0
"""Random numbers within functions: their streams go by the place of the call, whatever is called
there, and begin anew with the seed."""

import numpy as np
import pytest
import treenail as tn

X = np.ones(40, np.float32)


def dropout(x):
    return tn.nn.dropout(x, rate=0.5)


def in_a_branch(x):
    return tn.cond(tn.reduce_sum(x) > 0.0, lambda: dropout(x), lambda: x)


def in_a_loop(x):
    return tn.while_loop(lambda i, y: i < 3, lambda i, y: (i + 1, dropout(y) + x),
                         (tn.constant(0), x))[1]


def in_a_case(x):
    return tn.switch_case(tn.constant(1), [lambda: x, lambda: dropout(x) * 2.0])


def in_a_call(x):
    return tn.function(dropout)(x) + tn.function(in_a_branch)(x)


BODIES = [dropout, in_a_branch, in_a_loop, in_a_case, in_a_call]


@pytest.fixture(autouse=True)
def seeded():
    yield
    with tn.eager():
        tn.set_random_seed(None)


def in_sessions(body, with_gradient):
    """Three runs in a session of a graph with or without the gradient."""
    graph = tn.Graph()
    with graph.as_default():
        tn.set_random_seed(5)
        x = tn.placeholder(tn.float32, [40])
        y = body(x)
        fetched = [y, tn.gradients(y, x)[0]] if with_gradient else [y]
        with tn.Session() as session:
            return [session.run(fetched, {x: X})[0] for _ in range(3)]


@pytest.mark.parametrize("body", BODIES)
def test_a_gradient_changes_no_number_of_a_graph(body):
    plain = in_sessions(body, False)
    assert not np.array_equal(plain[0], plain[1])
    np.testing.assert_array_equal(in_sessions(body, True), plain)


def of_function(body, under_tape):
    """Four calls of a function, some under a tape of which a gradient is asked."""
    with tn.eager():
        tn.set_random_seed(5)
        f = tn.function(body)
        x = tn.constant(X)
        found = []
        for taped in under_tape:
            with tn.GradientTape() as tape:
                if taped:
                    tape.watch(x)
                y = f(x)
            if taped:
                tape.gradient(y, x)
            found.append(y.numpy())
        return found


@pytest.mark.parametrize("body", BODIES)
def test_a_tape_changes_no_number_of_a_function(body):
    plain = of_function(body, [False] * 4)
    assert not np.array_equal(plain[0], plain[1])
    for under_tape in ([True] * 4, [False, True, True, False], [True, False, False, True]):
        np.testing.assert_array_equal(of_function(body, under_tape), plain)


@pytest.mark.parametrize("body", BODIES)
def test_the_seed_begins_functions_anew(body):
    with tn.eager():
        tn.set_random_seed(1)
        f = tn.function(body)
        x = tn.constant(X)
        first = [f(x).numpy() for _ in range(2)]
        tn.set_random_seed(1)
        np.testing.assert_array_equal([f(x).numpy() for _ in range(2)], first)
        assert not np.array_equal(f(x), first[0])
        with tn.GradientTape() as tape:
            tape.watch(x)
            f(x)
        tn.set_random_seed(1)
        with tn.GradientTape() as tape:
            tape.watch(x)
            np.testing.assert_array_equal(f(x), first[0])


def test_branches_draw_from_streams_of_their_own():
    with tn.Graph().as_default(), tn.Session() as session:
        p = tn.placeholder(tn.bool, [])

        def draw():
            return tn.random_uniform([8], seed=3)
        y = tn.cond(p, draw, draw)
        yes = session.run(y, {p: True})
        no = session.run(y, {p: False})
        assert not np.array_equal(session.run(y, {p: True}), yes)
        assert not np.array_equal(session.run(y, {p: False}), no)
