# SPDX-License-Identifier: Apache-2.0
"""Gradients of converted functions, against differences of the plain ones."""

import numpy as np
import pytest

import treenail as tn
from treenail.autograph._entry import converted


def early_return(x):
    if x < 0.0:
        return x * x
    if x > 2.0:
        return x * 3.0
    return x * x * x


def loop_with_break(x):
    y = x
    for i in range(6):
        y = y * x + 0.5
        if y > 9.0:
            break
        if i == 2:
            continue
        y = y - x
    return y


def nested_loops(x):
    total = x * 0.0
    k = 0
    while total < 20.0 and k < 5:
        k += 1
        for j in range(k):
            if (j + k) % 2 == 0:
                total += x * _number(j) + 1.0
            else:
                total = total * 0.9 + x * x
    return total


def _number(value):
    return tn.cast(value, tn.float64) if tn.is_tensor(value) else value


def grown_list(x):
    powers = [x]
    while powers[-1] < 30.0 and len(powers) < 8:
        powers.append(powers[-1] * x)
    total = x * 0.0
    for power in powers:
        total += power * power
    return total


def return_from_loop(x):
    y = x
    while True:
        y = y * 1.5 + x
        if y > 10.0:
            return y * y
        if y < -10.0:
            return -y


@pytest.mark.parametrize("function", [early_return, loop_with_break, nested_loops, grown_list,
                                      return_from_loop])
def test_gradient(function):
    with tn.Graph().as_default():
        x = tn.placeholder(tn.float64, [])
        y = converted(function)(x)
        slope, = tn.gradients(y, [x])
        with tn.Session() as session:
            for at in (-1.3, 0.7, 1.6, 2.4):
                if function is return_from_loop or at > 0 or function is early_return:
                    near = [function(np.float64(at + d)) for d in (-1e-6, 1e-6)]
                    got = session.run([y, slope], {x: at})
                    np.testing.assert_allclose(got[0], function(np.float64(at)), rtol=1e-12)
                    np.testing.assert_allclose(got[1], (near[1] - near[0]) / 2e-6, rtol=1e-5)


def test_a_second_gradient():
    def f(x):
        y = x
        for _ in tn.range(3):
            y = y * x if y > 1.0 else y + x
        return y
    with tn.Graph().as_default():
        x = tn.placeholder(tn.float64, [])
        first, = tn.gradients(converted(f)(x), [x])
        second, = tn.gradients(first, [x])
        with tn.Session() as session:  # x = 2: x⁴
            np.testing.assert_allclose(session.run([first, second], {x: 2.0}), [32.0, 48.0])
