# SPDX-License-Identifier: Apache-2.0
"""What must not grow faster than the program: counted in lines run and bytes kept, not in time."""

from __future__ import annotations

import os
import subprocess
import sys
import tracemalloc

import numpy as np
import pytest
import treenail as tn


def lines_run(function):
    """How many lines of Python the call runs."""
    count = 0

    def trace(frame, event, arg):
        nonlocal count
        count += event == "line"
        return trace

    old = sys.gettrace()
    sys.settrace(trace)
    try:
        function()
    finally:
        sys.settrace(old)
    return count


def bytes_kept(function):
    """The most that Python objects held during the call."""
    tracemalloc.start()
    try:
        function()
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


def unnamed_variables(n):
    for _ in range(n):
        tn.Variable(0.0)


def unnamed_variable_scopes(n):
    for _ in range(n):
        with tn.variable_scope(None, "s"):
            pass


def named_variable_scopes(n):
    for i in range(n):
        with tn.variable_scope("s%d" % i):
            pass


def a_scope_entered_again(n):
    with tn.variable_scope("s") as scope:
        pass
    for i in range(n):
        with tn.variable_scope("t%d" % i), tn.variable_scope(scope):
            pass


def unnamed_layers(n):
    x = tn.ones([1, 1])
    for _ in range(n):
        x = tn.layers.dense(x, 1)


@pytest.mark.parametrize("build", [unnamed_variables, unnamed_variable_scopes,
                                   named_variable_scopes, a_scope_entered_again, unnamed_layers])
def test_lines_grow_linearly(build):
    counts = []
    for n in (40, 40, 80):  # the first one imports what is imported late
        with tn.Graph().as_default():
            counts.append(lines_run(lambda: build(n)))
    assert counts[2] < 2.3 * counts[1]


def test_deeply_nested_scopes_keep_no_prefixes():
    def nested(depth):
        scopes = []
        for _ in range(depth):
            scopes.append(tn.name_scope("scope"))
            scopes[-1].__enter__()
        while scopes:
            scopes.pop().__exit__(None, None, None)

    peaks = []
    for depth in (1000, 4000):
        with tn.Graph().as_default():
            peaks.append(bytes_kept(lambda: nested(depth)))
    assert peaks[1] < 6 * peaks[0]


def test_nested_scopes_come_back_where_they_began():
    with tn.Graph().as_default() as graph, tn.name_scope("a" * 300) as outer:
        with tn.name_scope("b") as inner:
            assert inner == outer + "b/"
            with tn.name_scope("elsewhere/"):
                assert tn.constant(1).op.name == "elsewhere/Const"
            assert tn.constant(1).op.name == inner + "Const"
        assert graph.get_name_scope() + "/" == outer
        assert tn.constant(1).op.name == outer + "Const"


PLANNING = """
import sys
import numpy as np
import treenail as tn

def resident():
    with open("/proc/self/statm", encoding="ascii") as stream:
        return int(stream.read().split()[1]) * 4096

n = int(sys.argv[1])
x = tn.placeholder(tn.float32, [4, 4])
y = x
for _ in range(n):
    y = tn.matmul(y, x)
with tn.Session() as session:
    session.run(x + x, {x: np.zeros([4, 4])})
    before = resident()
    session.run(y, {x: np.zeros([4, 4])})
    print((resident() - before) / n)
"""


@pytest.mark.skipif("san" in os.environ.get("LD_PRELOAD", ""),
                    reason="a sanitizer keeps memory of its own beside each block")
def test_a_planned_node_keeps_few_bytes():
    def bytes_of_a_node(n):
        return float(subprocess.check_output([sys.executable, "-c", PLANNING, str(n)]))

    few, many = bytes_of_a_node(8000), bytes_of_a_node(32000)
    assert many < 1.5 * few
    assert many < 1600


def bytes_read():
    """What this process has read from files, caches included."""
    with open("/proc/self/io", encoding="ascii") as stream:
        return int(next(line for line in stream if line.startswith("rchar:")).split()[1])


def test_a_reader_of_checkpoints_reads_the_file_once(tmp_path):
    n = 60
    with tn.Graph().as_default(), tn.Session() as session:
        for i in range(n):
            tn.Variable(np.full([1000], i, np.float32), name="v%d" % i)
        session.run(tn.global_variables_initializer())
        path = tn.train.Saver().save(session, str(tmp_path / "model"))
    before = bytes_read()
    reader = tn.train.load_checkpoint(path)
    for i in range(n):
        assert reader.get_tensor("v%d" % i)[7] == i
    assert bytes_read() - before < 4 * os.path.getsize(path)


def peak_bytes(fetches, feeds):
    """The values, and the most memory that the run's plan holds at once."""
    metadata = tn.RunMetadata()
    with tn.Session() as session:
        values = session.run(fetches, feeds, run_metadata=metadata)
    return values, metadata.peak_bytes


def reference(x, w, strides, dilations, pads, depthwise=False):
    """Convolution of [batch, ..., channels] by definition: a sum over taps."""
    spatial = x.ndim - 2
    sizes = x.shape[1:-1]
    out_sizes = [(n + sum(p) - ((k - 1) * d + 1)) // s + 1
                 for n, p, k, d, s in zip(sizes, pads, w.shape, dilations, strides)]
    filters = w.shape[-1] * (w.shape[-2] if depthwise else 1)
    out = np.zeros([x.shape[0], *out_sizes, filters])
    for window in np.ndindex(*out_sizes):
        for tap in np.ndindex(*w.shape[:spatial]):
            at = tuple(o * s + t * d - p[0] for o, s, t, d, p in
                       zip(window, strides, tap, dilations, pads))
            if not all(0 <= i < n for i, n in zip(at, sizes)):
                continue
            pixel = x[(slice(None), *at)]
            if depthwise:
                out[(slice(None), *window)] += (pixel[:, :, None] * w[tap]).reshape(len(x), -1)
            else:
                out[(slice(None), *window)] += pixel @ w[tap]
    return out


def check_convolution(op, x, w, strides, dilations, pads, most_bytes):
    """Forward and gradients of op(x, w) against the definition, and the memory that they take.

    A convolution is linear in x and in w: <g, conv(x, w)> = <dx, x> = <dw, w>, and with another
    x or w in conv the same gradients give the same products."""
    rng = np.random.default_rng(3)
    depthwise = op.startswith("Depthwise")
    with tn.Graph().as_default():
        px, pw = tn.placeholder(x.dtype, x.shape), tn.placeholder(x.dtype, w.shape)
        attributes = dict(strides=[1, *strides, 1], dilations=[1, *dilations, 1])
        if op == "Conv3D":
            y = tn.nn.conv3d(px, pw, padding="SAME", **attributes)
        elif depthwise:
            y = tn.nn.depthwise_conv2d_native(px, pw, padding="SAME", **attributes)
        else:
            y = tn.nn.conv2d(px, pw, padding=[[0, 0], *pads, [0, 0]], **attributes)
        g = tn.constant(rng.standard_normal(y.shape.as_list()).astype(x.dtype))
        gradients = tn.gradients(y, [px, pw], g)
        (value, dx, dw, g), peak = peak_bytes([y, *gradients, g], {px: x, pw: w})
    np.testing.assert_allclose(value, reference(x, w, strides, dilations, pads, depthwise),
                               rtol=1e-4, atol=1e-4)
    assert peak < most_bytes
    for other in (rng.standard_normal(x.shape), x):
        product = np.sum(g * reference(other, w, strides, dilations, pads, depthwise))
        np.testing.assert_allclose(np.sum(dx * other), product, rtol=1e-3, atol=1e-2)
    for other in (rng.standard_normal(w.shape), w):
        product = np.sum(g * reference(x, other, strides, dilations, pads, depthwise))
        np.testing.assert_allclose(np.sum(dw * other), product, rtol=1e-3, atol=1e-2)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("rate", [2, 70, 3000])
def test_large_dilations_take_no_memory(dtype, rate):
    rng = np.random.default_rng(1)
    x, pads = rng.standard_normal([2, 5, 6, 3]).astype(dtype), [[rate, rate]] * 2
    w = rng.standard_normal([3, 3, 3, 4]).astype(dtype)
    check_convolution("Conv2D", x, w, [1, 1], [rate, rate], pads, 1 << 20)
    check_convolution("Depthwise", x, w[..., :2], [1, 1], [rate, rate], pads, 1 << 20)


@pytest.mark.parametrize("stride, rate, pad", [(2, 3, 40), (50, 25, 70), (1000, 1000, 2000),
                                               (999, 1, 2000), (3000, 7, 3001)])
def test_large_strides_and_paddings_take_no_memory(stride, rate, pad):
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal([2, 7, 5, 3]), rng.standard_normal([3, 4, 3, 4])
    check_convolution("Conv2D", x, w, [stride, stride], [rate, rate], [[pad, pad], [pad, pad + 1]],
                      1 << 20)


def test_large_dilations_of_volumes_take_no_memory():
    rng = np.random.default_rng(1)
    x, w = rng.standard_normal([1, 4, 5, 3, 2]), rng.standard_normal([3, 3, 3, 2, 3])
    check_convolution("Conv3D", x, w, [1] * 3, [900] * 3, [[900, 900]] * 3, 1 << 20)


@pytest.mark.parametrize("kind, nothing", [("MAX", -np.inf), ("AVG", np.nan)])
@pytest.mark.parametrize("taps", [2, 3, 5])
@pytest.mark.parametrize("rate", [2, 4, 9, 10, 3000])
def test_dilated_pooling_takes_no_memory(kind, nothing, taps, rate):
    x = np.random.default_rng(1).standard_normal([2, 9, 3])
    with tn.Graph().as_default():
        y = tn.nn.pool(tn.constant(x), [taps], kind, "SAME", dilation_rate=[rate])
        value, peak = peak_bytes(y, {})
    before = (taps - 1) * rate // 2
    expected = np.full_like(x, nothing)
    for i in range(9):
        met = [i + t * rate - before for t in range(taps) if 0 <= i + t * rate - before < 9]
        if met:
            expected[:, i] = x[:, met].max(1) if kind == "MAX" else x[:, met].mean(1)
    np.testing.assert_allclose(value, expected)
    assert peak < 1 << 16


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("m, k, n", [(1, 100003, 1), (1003, 1, 1), (1, 1, 1003), (1001, 16, 1),
                                     (1001, 7, 1), (5, 3, 1), (1, 5, 1), (2, 1001, 2),
                                     (2, 100003, 3), (1, 20001, 4), (4, 128, 1), (20, 90001, 30)])
def test_thin_products_have_the_bits_of_their_parts(dtype, m, k, n):
    """Right to rounding, and a row's bits do not depend on which rows stand beside it."""
    rng = np.random.default_rng(1)
    a, b = rng.standard_normal([m, k]).astype(dtype), rng.standard_normal([k, n]).astype(dtype)
    with tn.Graph().as_default(), tn.Session() as session:
        pa, pb = tn.placeholder(dtype), tn.placeholder(dtype)
        y = tn.matmul(pa, pb)
        whole = session.run(y, {pa: a, pb: b})
        scale = np.abs(a) @ np.abs(b)
        assert np.all(np.abs(whole - a.astype("float64") @ b) <= 40 * np.finfo(dtype).eps * scale)
        transposed = tn.matmul(pa, pb, transpose_a=True, transpose_b=True)
        flipped = session.run(transposed, {pa: a.T.copy(), pb: b.T.copy()})
        assert np.all(np.abs(flipped - whole) <= 80 * np.finfo(dtype).eps * scale)
        if k > 1 and n == 1 and m > 40:
            part = session.run(y, {pa: a[3:m - 5], pb: b})
            np.testing.assert_array_equal(part, whole[3:m - 5])


@pytest.mark.parametrize("dtype", ["float32", "float64", "float16"])
@pytest.mark.parametrize("flags", [(False, False), (True, False), (False, True), (True, True)])
@pytest.mark.parametrize("m, k, n", [(1, 8, 1), (1, 1, 1), (4, 4, 4), (3, 5, 7), (16, 16, 1),
                                     (1, 16, 8), (2, 0, 2), (5, 3, 2), (1, 17, 1), (9, 9, 9)])
def test_tiny_products_of_a_batch_have_the_bits_of_each_alone(dtype, flags, m, k, n):
    rng = np.random.default_rng(1)
    a = rng.standard_normal([1, 3, 7, *([k, m] if flags[0] else [m, k])]).astype(dtype)
    b = rng.standard_normal([5, 3, 1, *([n, k] if flags[1] else [k, n])]).astype(dtype)
    with tn.Graph().as_default(), tn.Session() as session:
        pa, pb = tn.placeholder(dtype), tn.placeholder(dtype)
        y = tn.matmul(pa, pb, transpose_a=flags[0], transpose_b=flags[1])
        whole = session.run(y, {pa: a, pb: b})
        assert whole.shape == (5, 3, 7, m, n)
        for i, j, l in np.ndindex(5, 3, 7):
            alone = session.run(y, {pa: a[0, j, l], pb: b[i, j, 0]})
            np.testing.assert_array_equal(whole[i, j, l], alone)
    x, y = (np.swapaxes(v, -1, -2) if flag else v for v, flag in zip((a, b), flags))
    expected = x.astype("float64") @ y
    scale = np.abs(x.astype("float64")) @ np.abs(y) + 1e-30
    assert np.all(np.abs(whole - expected) <= 20 * np.finfo(dtype).eps * scale)
