# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/gru.cc. Oracle: the formulas in NumPy, step by step; the gradient's by the
chain rule, step by step backwards."""

import numpy as np

from harness import FLOATS, Many, T, no_gradient_case, op, rand


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def cell(x, h_prev, w_ru, w_c, b_ru, b_c):
    r, u = np.split(sigmoid(np.concatenate([x, h_prev], 1) @ w_ru + b_ru), 2, 1)
    c = np.tanh(np.concatenate([x, r * h_prev], 1) @ w_c + b_c)
    return r, u, c, u * h_prev + (1 - u) * c


def block(seq_len_max, x, h, *weights):
    outputs = np.zeros((4, len(x)) + h.shape)
    for t in range(int(seq_len_max)):
        outputs[:, t] = cell(x[t], h, *weights)
        h = outputs[3, t]
    return list(outputs)


def block_grad(
    steps, x, h_prev, w_ru, w_c, b_ru, b_c, r, u, c, h, h_grad, gate_grads=(), input_gradient=True
):
    h_grad = h_grad if h_grad.ndim == 3 else np.zeros_like(h)  # empty: zeros
    r_grad, u_grad, c_grad = gate_grads or [np.zeros_like(r)] * 3
    x_grad = np.zeros_like(x)
    totals = [np.zeros_like(a) for a in (w_ru, w_c, b_ru, b_c)]
    d_h = np.zeros_like(h_prev)
    inputs = x.shape[2]
    for t in reversed(range(int(steps))):
        before = h[t - 1] if t else h_prev
        d_h = d_h + h_grad[t]
        d_c = (c_grad[t] + d_h * (1 - u[t])) * (1 - c[t] ** 2)
        d_u = (u_grad[t] + d_h * (before - c[t])) * u[t] * (1 - u[t])
        through_c = d_c @ w_c.T
        d_reset = through_c[:, inputs:]
        d_r = (r_grad[t] + d_reset * before) * r[t] * (1 - r[t])
        d_ru = np.concatenate([d_r, d_u], 1)
        through_ru = d_ru @ w_ru.T
        x_grad[t] = through_c[:, :inputs] + through_ru[:, :inputs]
        d_h = d_h * u[t] + d_reset * r[t] + through_ru[:, inputs:]
        totals[0] += np.concatenate([x[t], before], 1).T @ d_ru
        totals[1] += np.concatenate([x[t], r[t] * before], 1).T @ d_c
        totals[2] += d_ru.sum(0)
        totals[3] += d_c.sum(0)
    return [x_grad if input_gradient else np.zeros(0), d_h, *totals]


def layer(batch, inputs, cells, time=None, steps=None):
    """Random inputs of a layer; those of a sequence begin with seq_len_max."""
    spread = 1.5 / np.sqrt(max(inputs + cells, 1))
    given = [
        rand((batch, inputs) if time is None else (time, batch, inputs), -1, 1),
        rand((batch, cells), -1, 1),
        rand((inputs + cells, 2 * cells), -spread, spread),
        rand((inputs + cells, cells), -spread, spread),
        rand((2 * cells,), -1, 1),
        rand((cells,), -1, 1),
    ]
    return given if time is None else [np.int64(time if steps is None else steps)] + given


def with_input(inputs, place, spec):
    return inputs[:place] + [spec] + inputs[place + 1 :]


SHARED = {"dtypes": FLOATS, "norm": True, "ulps": 16, "half_ulps": 4}
# All widths around those of vectors and panels; nothing at all.
SIZES = [(1, 1, 1), (2, 3, 5), (5, 2, 8), (3, 4, 17), (0, 3, 4), (2, 0, 3), (2, 3, 0)]

cells = op("GRUBlockCell", cell, **SHARED, grad=2)
blocks = op("BlockGRU", block, **SHARED)
for sizes in SIZES:
    cells.case(*layer(*sizes))
    blocks.case(*layer(*sizes, time=3))
cells.case(*layer(40, 70, 65), options={"grad": 0})
for place, spec, message in [
    (0, (2,), r"x must have rank 2, its shape is \[2\]"),
    (1, (3, 5), "h_prev has batch size 3, needed is 2"),
    (2, (9, 10), "w_ru has 9 rows, needed is one for each input and each cell"),
    (2, (8, 11), "w_ru has 11 columns, needed are 2 for each cell"),
    (3, (8, 6), "w_c has cell size 6, needed is 5"),
    (4, (9,), "b_ru has 9 elements, needed are 2 for each cell"),
    (5, (4,), "b_c has cell size 4, needed is 5"),
]:
    cells.error("InvalidArgument", message, *with_input(layer(2, 3, 5), place, spec))

blocks.case(*layer(3, 4, 5, time=4, steps=2)).case(*layer(2, 3, 4, time=3, steps=0))
blocks.case(*layer(2, 3, 4, time=0)).case(*layer(2, 3, 4, time=1))
# Several pieces of rows, several panels deep and wide.
blocks.case(*layer(41, 20, 33, time=6), options={"grad": 0})
blocks.case(
    *layer(19, 30, 300, time=3), options={"grad": 0, "dtypes": ("float32", "float64"), "ulps": 64}
)
for steps in (-1, 4):
    blocks.error(
        "InvalidArgument",
        r"seq_len_max = %d is not in \[0, 3\], the length of x" % steps,
        *layer(2, 3, 5, time=3, steps=steps),
    )
blocks.error("InvalidArgument", "x must have rank 3", *with_input(layer(2, 3, 5, 3), 1, (2, 3)))


def after(batch, inputs, cells, time, steps=None, gates=False):
    """Inputs of the gradient: a layer's, any values for its outputs, and gradients of those."""
    output = (time, batch, cells)
    given = layer(batch, inputs, cells, time, steps)
    given += [rand(output, 0.05, 0.95)] * 2 + [rand(output, -0.95, 0.95)] * 2
    given += [rand(output, -1, 1)]
    return given + [Many(rand(output, -1, 1) for _ in range(3 if gates else 0))]


grads = op("BlockGRUGrad", block_grad, **SHARED, grad=0)
for sizes in SIZES:
    grads.case(*after(*sizes, time=3))
grads.case(*after(3, 4, 5, time=4, steps=2, gates=True))
grads.case(*after(3, 4, 5, time=4, gates=True), input_gradient=False)
grads.case(*after(2, 3, 4, time=3, steps=0)).case(*after(2, 3, 4, time=0))
grads.case(*after(41, 20, 33, time=6))
grads.case(*after(19, 30, 150, time=3), options={"ulps": 64})
grads.case(*with_input(after(3, 4, 5, time=4, gates=True), 11, (0,)))
# What lies behind the last step is not read.
padded = T(np.concatenate([np.full((2, 3, 4), 0.5), np.full((2, 3, 4), np.nan)]))
blocks.case(*with_input(layer(3, 4, 5, time=4, steps=2), 1, padded), options={"grad": 0})
grads.case(*with_input(after(3, 4, 5, time=4, steps=2), 1, padded))
grads.error(
    "InvalidArgument",
    r"h has shape \[0\], needed is \[3,2,5\]",
    *with_input(after(2, 3, 5, time=3), 10, (0,)),
)
grads.error(
    "InvalidArgument",
    "gate_grads has 2 values",
    *with_input(after(2, 3, 5, time=3), 12, Many([(3, 2, 5), (3, 2, 5)])),
)
no_gradient_case("BlockGRUGrad", "refused; tests/python/test_rnn.py")
