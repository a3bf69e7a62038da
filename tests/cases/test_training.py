# SPDX-License-Identifier: Apache-2.0
"""Optimiser updates (framework/ops/training.cc) against the formulas of the papers, in NumPy and float64."""

import numpy as np
import pytest
import treenail as tn
from treenail import _treenail as core

from harness import EPSILON, FLOATS, REAL_FLOATS
from stateful import Variable, numbers, tensor

# Every rule: state (var and slots) and gradient in, state out. Scalars by the op's input names.


def shrink(x, step, l1, l2):
    """argmin over v of |v - x|^2 / 2 + step * (l1 |v| + l2 v^2 / 2) (Duchi and Singer 2009)."""
    return np.sign(x) * np.maximum(np.abs(x) - step * l1, 0) / (1 + step * l2)


def gradient_descent(s, g, alpha):
    return [s[0] - alpha * g]


def proximal_gradient_descent(s, g, alpha, l1, l2):
    return [shrink(s[0] - alpha * g, alpha, l1, l2)]


def momentum(s, g, lr, momentum, use_nesterov=False):
    velocity = momentum * s[1] + g
    return [s[0] - lr * (g + momentum * velocity if use_nesterov else velocity), velocity]


def adagrad(s, g, lr, update_slots=True):
    accum = s[1] + (g**2 if update_slots else 0)
    return [s[0] - lr * g / np.sqrt(accum), accum]


def proximal_adagrad(s, g, lr, l1, l2):
    accum = s[1] + g**2
    step = lr / np.sqrt(accum)
    return [shrink(s[0] - step * g, step, l1, l2), accum]


def adadelta(s, g, lr, rho, epsilon):
    accum = rho * s[1] + (1 - rho) * g**2
    delta = np.sqrt(s[2] + epsilon) / np.sqrt(accum + epsilon) * g
    return [s[0] - lr * delta, accum, rho * s[2] + (1 - rho) * delta**2]


def adam(s, g, beta1_power, beta2_power, lr, beta1, beta2, epsilon, use_nesterov=False):
    m = beta1 * s[1] + (1 - beta1) * g
    v = beta2 * s[2] + (1 - beta2) * g**2
    rate = lr * np.sqrt(1 - beta2_power) / (1 - beta1_power)
    direction = beta1 * m + (1 - beta1) * g if use_nesterov else m
    return [s[0] - rate * direction / (np.sqrt(v) + epsilon), m, v]


def adamax(s, g, beta1_power, lr, beta1, beta2, epsilon):
    m = beta1 * s[1] + (1 - beta1) * g
    u = np.maximum(beta2 * s[2], np.abs(g))
    return [s[0] - lr / (1 - beta1_power) * m / (u + epsilon), m, u]


def rmsprop(s, g, lr, rho, momentum, epsilon):
    square = rho * s[1] + (1 - rho) * g**2
    move = momentum * s[2] + lr * g / np.sqrt(square + epsilon)
    return [s[0] - move, square, move]


def centered_rmsprop(s, g, lr, rho, momentum, epsilon):
    mean = rho * s[1] + (1 - rho) * g
    square = rho * s[2] + (1 - rho) * g**2
    move = momentum * s[3] + lr * g / np.sqrt(square - mean**2 + epsilon)
    return [s[0] - move, mean, square, move]


def ftrl(s, g, lr, l1, l2, l2_shrinkage, lr_power):
    accum = s[1] + g**2
    sigma = (accum**-lr_power - s[1] ** -lr_power) / lr
    linear = s[2] + g + 2 * l2_shrinkage * s[0] - sigma * s[0]
    quadratic = accum**-lr_power / lr + 2 * l2
    return [
        np.where(np.abs(linear) > l1, (np.sign(linear) * l1 - linear) / quadratic, 0),
        accum,
        linear,
    ]


# name, rule, slots, scalars before the gradient, scalars after it, attributes, has a sparse form
POWERS = {"beta1_power": 0.9, "beta2_power": 0.99}
BETAS = {"lr": 0.1, "beta1": 0.9, "beta2": 0.99, "epsilon": 0.01}
FTRL = {"lr": 0.2, "l1": 0.3, "l2": 0.1, "l2_shrinkage": 0.05, "lr_power": -0.5}
RULES = [
    ("GradientDescent", gradient_descent, 0, {"alpha": 0.3}, {}, {}, False),
    (
        "ProximalGradientDescent",
        proximal_gradient_descent,
        0,
        {"alpha": 0.3, "l1": 0.5, "l2": 0.25},
        {},
        {},
        True,
    ),
    ("Momentum", momentum, 1, {"lr": 0.2}, {"momentum": 0.75}, {}, True),
    ("Momentum", momentum, 1, {"lr": 0.2}, {"momentum": 0.75}, {"use_nesterov": True}, True),
    ("Adagrad", adagrad, 1, {"lr": 0.2}, {}, {}, True),
    ("Adagrad", adagrad, 1, {"lr": 0.2}, {}, {"update_slots": False}, True),
    ("ProximalAdagrad", proximal_adagrad, 1, {"lr": 0.2, "l1": 0.5, "l2": 0.25}, {}, {}, True),
    ("Adadelta", adadelta, 2, {"lr": 1.5, "rho": 0.75, "epsilon": 0.01}, {}, {}, True),
    ("Adam", adam, 2, {**POWERS, **BETAS}, {}, {}, False),
    ("Adam", adam, 2, {**POWERS, **BETAS}, {}, {"use_nesterov": True}, False),
    ("AdaMax", adamax, 2, {"beta1_power": 0.9, **BETAS}, {}, {}, False),
    (
        "RMSProp",
        rmsprop,
        2,
        {"lr": 0.1, "rho": 0.75, "momentum": 0.5, "epsilon": 0.01},
        {},
        {},
        True,
    ),
    (
        "CenteredRMSProp",
        centered_rmsprop,
        3,
        {"lr": 0.1, "rho": 0.75, "momentum": 0.5, "epsilon": 0.5},
        {},
        {},
        True,
    ),
    ("Ftrl", ftrl, 2, {}, FTRL, {}, True),
    ("Ftrl", ftrl, 2, {}, {**FTRL, "lr_power": -0.75, "l1": 0.0}, {}, True),
]
IDS = ["%s%s" % (r[0], "".join("-" + k for k in r[5])) for r in RULES]
STEPS = 3


class Run:
    """Variables of one update in Treenail and the same state in NumPy."""

    def __init__(self, rule, shape, dtype, seed=0):
        self.name, self.function, slots, self.before, self.after, self.attrs, _ = rule
        self.dtype, self.rng = dtype, np.random.default_rng(seed)
        # Slots are sums of squares mostly: positive, and for the centred mean small.
        start = [self.rng.uniform(-1, 1, shape)] + [
            self.rng.uniform(0.1, 0.3, shape) for _ in range(slots)
        ]
        if self.name == "CenteredRMSProp":
            start[2] += 1
        self.variables = [Variable(dtype, s) for s in start]
        self.state = [v.read().astype(np.float64) for v in self.variables]

    def scalars(self, names):
        return [tensor(value, self.dtype) for value in names.values()]

    def values(self):
        """The scalars as they are in this dtype."""
        given = {**self.before, **self.after}
        return {k: float(numbers(tensor(v, self.dtype), self.dtype)) for k, v in given.items()}

    def gradient(self, shape):
        given = tensor(self.rng.uniform(-1, 1, shape), self.dtype)
        return given, numbers(given, self.dtype).astype(np.float64)

    def update(self, op, gradient, *indices):
        handles = [v.handle for v in self.variables]
        inputs = (
            handles
            + self.scalars(self.before)
            + [gradient]
            + list(indices)
            + self.scalars(self.after)
        )
        core.execute(op, inputs, self.attrs)

    def check(self):
        # A few roundings a step, and in half types the state itself is rounded in between.
        tolerance = 30 * STEPS * EPSILON[self.dtype]
        for variable, wanted in zip(self.variables, self.state):
            np.testing.assert_allclose(
                variable.read().astype(np.float64), wanted, rtol=tolerance, atol=tolerance
            )
        self.state = [v.read().astype(np.float64) for v in self.variables]


@pytest.mark.parametrize("rule", RULES, ids=IDS)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("shape", [(), (0,), (1,), (7,), (33,), (3, 5, 7), (130, 131)])
def test_dense_updates(rule, dtype, shape):
    run = Run(rule, shape, dtype)
    for _ in range(STEPS):
        given, gradient = run.gradient(shape)
        run.update("ResourceApply" + run.name, given)
        run.state = [
            np.asarray(s) for s in run.function(run.state, gradient, **run.values(), **run.attrs)
        ]
        run.check()


def by_rows(run, gradient, indices):
    """Row after row, repeated indices one after the other."""
    for g, row in zip(gradient, indices):
        after = run.function([s[row] for s in run.state], g, **run.values(), **run.attrs)
        for s, value in zip(run.state, after):
            s[row] = value


@pytest.mark.parametrize(
    "rule", [r for r in RULES if r[6]], ids=[i for i, r in zip(IDS, RULES) if r[6]]
)
@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape,indices",
    [((5, 3), [3, 0]), ((4,), [1, 3, 0]), ((3, 2, 2), []), ((300, 70), range(0, 300, 2))],
)
def test_sparse_updates(rule, dtype, shape, indices):
    run = Run(rule, shape, dtype)
    for index_type in (np.int32, np.int64):
        rows = np.array(list(indices), index_type)
        given, gradient = run.gradient((len(rows),) + shape[1:])
        run.update("ResourceSparseApply" + run.name, given, rows)
        by_rows(run, gradient, rows)
        run.check()


@pytest.mark.parametrize(
    "rule", [r for r in RULES if r[6]], ids=[i for i, r in zip(IDS, RULES) if r[6]]
)
def test_repeated_rows_are_updated_one_after_the_other(rule):
    run = Run(rule, (4, 3), "float64")
    rows = np.array([2, 1, 2, 2], np.int32)
    given, gradient = run.gradient((4, 3))
    run.update("ResourceSparseApply" + run.name, given, rows)
    by_rows(run, gradient, rows)
    run.check()


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize(
    "shape,indices", [((5, 3), [3, 0]), ((4,), [1]), ((400, 90), range(0, 400, 3)), ((3, 2), [])]
)
def test_sparse_adam_is_adam_on_the_dense_gradient(dtype, shape, indices):
    rule = next(r for r in RULES if r[0] == "Adam")
    run = Run(rule, shape, dtype)
    rows = np.array(list(indices), np.int32)
    for _ in range(STEPS):
        given, gradient = run.gradient((len(rows),) + shape[1:])
        handles = [v.handle for v in run.variables]
        core.execute("ResourceSparseApplyAdam", handles + run.scalars(run.before) + [given, rows])
        dense = np.zeros(shape)
        dense[rows] = gradient
        run.state = adam(run.state, dense, **run.values())
        run.check()


def test_plain_descent_on_rows_is_a_scatter():
    variable = Variable("float64", np.ones((3, 2)))
    variable.call("ResourceScatterSub", np.array([1], np.int32), 0.5 * np.ones((1, 2)))
    np.testing.assert_array_equal(variable.read(), [[1, 1], [0.5, 0.5], [1, 1]])


@pytest.mark.parametrize("dtype", REAL_FLOATS)
def test_results_do_not_depend_on_the_number_of_threads(dtype):
    before = core.num_threads()
    results = []
    try:
        for threads in (1, 2, 3, 8):
            core.set_num_threads(threads)
            run = Run(next(r for r in RULES if r[0] == "Adam"), (700, 90), dtype)
            run.update("ResourceApplyAdam", run.gradient((700, 90))[0])
            sparse = Run(RULES[2], (700, 90), dtype)
            rows = np.random.default_rng(1).integers(0, 700, 2000)
            sparse.update("ResourceSparseApplyMomentum", sparse.gradient((2000, 90))[0], rows)
            results.append([v.read().tobytes() for v in run.variables + sparse.variables])
    finally:
        core.set_num_threads(before)
    assert all(r == results[0] for r in results)


def descend(variable, gradient, op="ResourceApplyGradientDescent"):
    core.execute(op, [variable.handle, np.float32(1), gradient])


def test_errors():
    two, three = Variable("float32", np.ones(2)), Variable("float32", np.ones(3))
    empty = Variable("float32", shape=[2])
    with pytest.raises(
        tn.errors.InvalidArgumentError,
        match=r"delta has shape \[3\], needed is \[2\] \(the shape of var\)",
    ):
        descend(two, np.ones(3, np.float32))
    with pytest.raises(tn.errors.FailedPreconditionError, match="uninitialized"):
        descend(empty, np.ones(2, np.float32))
    with pytest.raises(
        tn.errors.InvalidArgumentError,
        match=r"var and accum do not have the same shape: \[2\] \[3\]",
    ):
        core.execute(
            "ResourceApplyMomentum",
            [two.handle, three.handle, np.float32(1), np.ones(2, np.float32), np.float32(1)],
        )
    with pytest.raises(
        tn.errors.InvalidArgumentError, match="is given twice; var and slots must be different"
    ):
        core.execute(
            "ResourceApplyMomentum",
            [two.handle, two.handle, np.float32(1), np.ones(2, np.float32), np.float32(1)],
        )
    with pytest.raises(
        tn.errors.InvalidArgumentError,
        match="var is a variable of dtype float32, the update works on float64",
    ):
        core.execute("ResourceApplyGradientDescent", [two.handle, np.float64(1), np.ones(2)])
    with pytest.raises(tn.errors.InvalidArgumentError, match="lr must have rank 0"):
        core.execute(
            "ResourceApplyAdagrad",
            [
                two.handle,
                Variable("float32", np.ones(2)).handle,
                np.ones(1, np.float32),
                np.ones(2, np.float32),
            ],
        )
    np.testing.assert_array_equal(two.read(), [1, 1])


def test_bad_indices_change_nothing():
    var, accum = Variable("float32", np.ones((3, 2))), Variable("float32", np.ones((3, 2)))
    inputs = [
        var.handle,
        accum.handle,
        np.float32(1),
        np.ones((2, 2), np.float32),
        np.array([0, 3], np.int32),
    ]
    with pytest.raises(
        tn.errors.InvalidArgumentError, match=r"indices\[1\] = 3 is not in \[0, 3\)"
    ):
        core.execute("ResourceSparseApplyAdagrad", inputs)
    inputs[4] = np.array([0], np.int32)
    with pytest.raises(
        tn.errors.InvalidArgumentError,
        match=r"needed is \[1,2\] \(indices.shape \+ var.shape\[1:\]\)",
    ):
        core.execute("ResourceSparseApplyAdagrad", inputs)
    for variable in (var, accum):
        np.testing.assert_array_equal(variable.read(), np.ones((3, 2)))
