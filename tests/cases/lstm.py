# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/lstm.cc. Oracle: the formulas in NumPy, step by step; the gradient's by the
chain rule, step by step backwards. Against torch.nn.LSTM: tests/python/test_rnn.py."""

import numpy as np

from harness import FLOATS, Many, T, no_gradient_case, op, rand


def sigmoid(x):
    return 1 / (1 + np.exp(-x))


def step(x, cs_prev, h_prev, w, wci, wcf, wco, b, forget_bias, cell_clip, use_peephole):
    i, ci, f, o = np.split(np.concatenate([x, h_prev], 1) @ w + b, 4, 1)
    if not use_peephole:
        wci = wcf = wco = 0
    i = sigmoid(i + cs_prev * wci)
    f = sigmoid(f + cs_prev * wcf + forget_bias)
    ci = np.tanh(ci)
    cs = ci * i + cs_prev * f
    if cell_clip > 0:
        cs = np.clip(cs, -cell_clip, cell_clip)
    o = sigmoid(o + cs * wco)
    co = np.tanh(cs)
    return i, cs, f, o, ci, co, co * o


def cell(*inputs, forget_bias=1.0, cell_clip=3.0, use_peephole=False):
    return step(*inputs, forget_bias, cell_clip, use_peephole)


def block(
    seq_len_max, x, cs, h, w, wci, wcf, wco, b, forget_bias=1.0, cell_clip=3.0, use_peephole=False
):
    outputs = np.zeros((7, len(x)) + cs.shape)
    for t in range(int(seq_len_max)):
        outputs[:, t] = step(
            x[t], cs, h, w, wci, wcf, wco, b, forget_bias, cell_clip, use_peephole
        )
        cs, h = outputs[1, t], outputs[6, t]
    return list(outputs)


def block_grad(
    steps, x, cs_prev, h_prev, w, wci, wcf, wco, b, i, cs, f, o, ci, co, h, cs_grad, h_grad,
    gate_grads=(), use_peephole=False, cell_clip=-1.0, input_gradient=True,
):  # fmt: skip
    # An empty gradient stands for zeros.
    cs_grad, h_grad = (g if g.ndim == 3 else np.zeros_like(h) for g in (cs_grad, h_grad))
    i_grad, f_grad, o_grad, ci_grad, co_grad = gate_grads or [np.zeros_like(i)] * 5
    x_grad, w_grad, b_grad = np.zeros_like(x), np.zeros_like(w), np.zeros_like(b)
    peepholes = [np.zeros_like(wci), np.zeros_like(wcf), np.zeros_like(wco)]
    d_cs, d_h = np.zeros_like(cs_prev), np.zeros_like(h_prev)
    for t in reversed(range(int(steps))):
        cs_before, h_before = (cs[t - 1], h[t - 1]) if t else (cs_prev, h_prev)
        d_h = d_h + h_grad[t]
        d_o = (o_grad[t] + d_h * co[t]) * o[t] * (1 - o[t])
        d_cs = d_cs + cs_grad[t] + (co_grad[t] + d_h * o[t]) * (1 - co[t] ** 2)
        if use_peephole:
            d_cs = d_cs + d_o * wco
        if cell_clip > 0:
            d_cs = d_cs * (abs(cs[t]) < cell_clip)
        d_i = (i_grad[t] + d_cs * ci[t]) * i[t] * (1 - i[t])
        d_ci = (ci_grad[t] + d_cs * i[t]) * (1 - ci[t] ** 2)
        d_f = (f_grad[t] + d_cs * cs_before) * f[t] * (1 - f[t])
        d_cs = d_cs * f[t]
        if use_peephole:
            d_cs = d_cs + d_i * wci + d_f * wcf
            for total, part in zip(
                peepholes, (d_i * cs_before, d_f * cs_before, d_o * cs[t])
            ):
                total += part.sum(0)
        d = np.concatenate([d_i, d_ci, d_f, d_o], 1)
        both = d @ w.T
        x_grad[t], d_h = both[:, : x.shape[2]], both[:, x.shape[2] :]
        w_grad += np.concatenate([x[t], h_before], 1).T @ d
        b_grad += d.sum(0)
    if not input_gradient:
        x_grad = np.zeros(0)
    return [x_grad, d_cs, d_h, w_grad, *peepholes, b_grad]


def layer(batch, inputs, cells, time=None, steps=None):
    """Random inputs of a layer; those of a sequence begin with seq_len_max."""
    x = (batch, inputs) if time is None else (time, batch, inputs)
    spread = 1.5 / np.sqrt(max(inputs + cells, 1))
    given = [
        rand(x, -1, 1),
        rand((batch, cells), -2, 2),
        rand((batch, cells), -1, 1),
        rand((inputs + cells, 4 * cells), -spread, spread),
        rand((cells,), -1, 1),
        rand((cells,), -1, 1),
        rand((cells,), -1, 1),
        rand((4 * cells,), -1, 1),
    ]
    return given if time is None else [np.int64(time if steps is None else steps)] + given


SHARED = {"dtypes": FLOATS, "norm": True, "ulps": 16, "half_ulps": 4}
# All widths around those of vectors and panels; states beyond the clip; nothing at all.
SIZES = [(1, 1, 1), (2, 3, 5), (5, 2, 8), (3, 4, 17), (0, 3, 4), (2, 0, 3), (2, 3, 0)]

cells = op("LSTMBlockCell", cell, **SHARED, grad=2)
for sizes in SIZES:
    cells.case(*layer(*sizes), cell_clip=-1.0)
cells.case(*layer(3, 4, 5), use_peephole=True, forget_bias=0.25, cell_clip=0.0)
cells.case(*layer(3, 4, 5), use_peephole=True, cell_clip=0.5)
cells.case(*layer(40, 70, 65), options={"grad": 0})
cells.case(*layer(40, 300, 270), use_peephole=True, options={"grad": 0, "dtypes": ("float32",)})
cells.case(
    *[T(np.full(s, v)) for s, v in zip([(1, 1), (1, 2), (1, 2), (3, 8)], [np.nan, 1, 1, 0])],
    T([0.0, 0.0]), T([0.0, 0.0]), T([0.0, 0.0]), T(np.zeros(8)),
    options={"grad": 0},
)  # fmt: skip


def with_input(inputs, place, spec):
    return inputs[:place] + [spec] + inputs[place + 1 :]


for place, spec, message in [
    (0, (2, 3, 4), r"x must have rank 2, its shape is \[2,3,4\]"),
    (1, (3, 5), "cs_prev has batch size 3, needed is 2"),
    (2, (2, 4), "h_prev has cell size 4, needed is 5"),
    (3, (9, 20), "w has 9 rows, needed is one for each input and each cell"),
    (3, (8, 22), "w has 22 columns, needed are 4 for each cell"),
    (7, (16,), "b has cell size 4, needed is 5"),
    (7, (21,), "b has 21 elements, needed are 4 for each cell"),
]:
    cells.error("InvalidArgument", message, *with_input(layer(2, 3, 5), place, spec))
cells.error(
    "InvalidArgument",
    "wco has cell size 1, needed is 5",
    *with_input(layer(2, 3, 5), 6, (1,)),
    use_peephole=True,
)

blocks = op("BlockLSTM", block, **SHARED)
for sizes in SIZES:
    blocks.case(*layer(*sizes, time=3), cell_clip=-1.0)
blocks.case(*layer(3, 4, 5, time=4, steps=2), use_peephole=True, cell_clip=-1.0)
blocks.case(*layer(3, 4, 5, time=4), use_peephole=True, forget_bias=0.25, cell_clip=0.5)
blocks.case(*layer(2, 3, 4, time=3, steps=0)).case(*layer(2, 3, 4, time=0))
blocks.case(*layer(2, 3, 4, time=1))
blocks.case(*with_input(layer(2, 3, 4, time=2), 5, (0,)))
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
blocks.error(
    "InvalidArgument", "x must have rank 3", *with_input(layer(2, 3, 5, time=3), 1, (2, 3))
)
blocks.error(
    "InvalidArgument", "cs_prev has batch size 1", *with_input(layer(2, 3, 5, time=3), 2, (1, 5))
)
blocks.error("InvalidArgument", "w has 7 rows", *with_input(layer(2, 3, 5, time=3), 4, (7, 20)))


def after(batch, inputs, cells, time, steps=None, gates=False, **attrs):
    """Inputs of the gradient: a layer's, any values for its outputs, and gradients of those."""
    output = (time, batch, cells)
    given = layer(batch, inputs, cells, time, steps)
    given += [rand(output, -0.95, 0.95)] * 7 + [rand(output, -1, 1)] * 2
    return given + [Many(rand(output, -1, 1) for _ in range(5 if gates else 0))]


grads = op("BlockLSTMGrad", block_grad, **SHARED, grad=0)
for sizes in SIZES:
    grads.case(*after(*sizes, time=3), use_peephole=False)
grads.case(*after(3, 4, 5, time=4, steps=2, gates=True), use_peephole=True, cell_clip=0.5)
grads.case(*after(3, 4, 5, time=4, gates=True), use_peephole=False, input_gradient=False)
grads.case(*after(2, 3, 4, time=3, steps=0), use_peephole=True)
grads.case(*after(2, 3, 4, time=0), use_peephole=True)
grads.case(*after(41, 20, 33, time=6), use_peephole=True)
grads.case(*after(19, 30, 150, time=3), use_peephole=False, options={"ulps": 64})
# What lies behind the last step is not read.
padded = T(np.concatenate([np.full((2, 3, 4), 0.5), np.full((2, 3, 4), np.nan)]))
blocks.case(*with_input(layer(3, 4, 5, time=4, steps=2), 1, padded), options={"grad": 0})
grads.case(*with_input(after(3, 4, 5, time=4, steps=2), 1, padded), use_peephole=False)
for place in (16, 17):
    grads.case(*with_input(after(3, 4, 5, time=4), place, (0,)), use_peephole=True)
grads.error(
    "InvalidArgument",
    r"co has shape \[0\], needed is \[3,2,5\]",
    *with_input(after(2, 3, 5, time=3), 14, (0,)),
    use_peephole=False,
)
grads.error(
    "InvalidArgument",
    r"h_grad has shape \[3,2,4\], needed is \[3,2,5\]",
    *with_input(after(2, 3, 5, time=3), 17, (3, 2, 4)),
    use_peephole=False,
)
grads.error(
    "InvalidArgument",
    "gate_grads has 2 values",
    *with_input(after(2, 3, 5, time=3), 18, Many([(3, 2, 5), (3, 2, 5)])),
    use_peephole=False,
)
no_gradient_case("BlockLSTMGrad", "refused; tests/python/test_rnn.py")
