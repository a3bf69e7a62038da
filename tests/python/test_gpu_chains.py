# SPDX-License-Identifier: Apache-2.0
"""Element-wise operations that a GPU does in one launch: the bits of one launch each, and how many
launches there are."""

import os
import random
import sys

import numpy as np
import pytest

import treenail as tn

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.append(os.path.join(SOURCE, "tests", "cuda_sim"))
import cusim  # noqa: E402  (the path must be set first)

pytestmark = cusim.needs_gpu()

FLOATS = ["float32", "float16", "bfloat16"]
UNARY = {
    name: getattr(tn, name, None) or getattr(tn.nn, name, None) or getattr(tn.math, name)
    for name in ("abs", "negative", "sign", "reciprocal", "square", "sqrt", "rsqrt", "floor",
                 "ceil", "round", "exp", "expm1", "log", "tanh", "sigmoid", "erf", "relu", "relu6",
                 "elu", "selu", "softplus", "softsign", "leaky_relu", "gelu")}
BINARY = {
    name: getattr(tn, name, None) or getattr(tn.math, name)
    for name in ("add", "subtract", "multiply", "divide", "maximum", "minimum",
                 "squared_difference", "div_no_nan")}
COMPARISONS = {name: getattr(tn, name) for name in ("equal", "not_equal", "less", "less_equal",
                                                    "greater", "greater_equal")}
QUESTIONS = {name: getattr(tn, name, None) or getattr(tn.math, name)
             for name in ("is_nan", "is_inf", "is_finite")}


def session(fusion, soft=False):
    options = tn.OptimizerOptions(do_elementwise_fusion=fusion)
    return tn.Session(config=tn.ConfigProto(
        allow_soft_placement=soft, graph_options=tn.GraphOptions(optimizer_options=options)))


def launches(counted):
    return counted.get("launches", 0)


def ran(fetch, feed, fusion):
    """What it gives, and the launches that it took; None of a real GPU."""
    with session(fusion) as sess:
        sess.run(fetch, feed)
        if cusim.library() is None:
            return sess.run(fetch, feed), None
        with cusim.counted() as moved:
            found = sess.run(fetch, feed)
        return found, launches(moved)


def check_bits(fetch, feed):
    """How many launches it takes together, and one by one."""
    together, fewer = ran(fetch, feed, True)
    apart, many = ran(fetch, feed, False)
    assert together.dtype == apart.dtype and together.shape == apart.shape
    np.testing.assert_array_equal(bits(together), bits(apart))
    return fewer, many


def check(fetch, feed, alone=None):
    """One launch, which gives the bits of those that run one by one, `alone` of them."""
    one, many = check_bits(fetch, feed)
    if one is not None:
        assert one == 1 and many > 1 and alone in (None, many)


def bits(array):
    """Every NaN is the same one. NumPy has the bits of bfloat16 as uint16."""
    array = np.atleast_1d(array)
    if array.dtype == bool:
        return array
    whole = array.view("u%d" % array.dtype.itemsize).copy()
    value = (array.astype(np.uint32) << 16).view(np.float32) if array.dtype == np.uint16 else array
    whole[np.isnan(value)] = 0
    return whole


def numbers(shape, dtype, seed=0):
    """Of all sizes, with some that are not finite."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(shape) * np.exp(rng.standard_normal(shape))
    flat = x.reshape(-1)
    for i, special in enumerate([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 3e-39, 88.8]):
        flat[7 * i + 3:7 * i + 4] = special
    with np.errstate(all="ignore"):
        x = x.astype(np.float32)
        if dtype == "bfloat16":
            return (x.view(np.uint32) >> 16).astype(np.uint16)
        return x.astype(dtype)


def placeholder(shape, dtype="float32"):
    return tn.placeholder(dtype, shape)


@pytest.fixture(autouse=True)
def on_gpu():
    with tn.Graph().as_default(), tn.device("/gpu:0"):
        yield


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", UNARY)
def test_functions(name, dtype):
    x = placeholder([13, 17], dtype)
    check(UNARY[name](x) * x - x, {x: numbers([13, 17], dtype)}, alone=3)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", BINARY)
def test_functions_of_two(name, dtype):
    x, y = placeholder([13, 17], dtype), placeholder([13, 17], dtype)
    feed = {x: numbers([13, 17], dtype), y: numbers([13, 17], dtype, 1)}
    check(tn.tanh(BINARY[name](x, y)), feed, alone=2)


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("name", [*COMPARISONS, *QUESTIONS])
def test_truth_values_in_between(name, dtype):
    x, y = placeholder([13, 17], dtype), placeholder([13, 17], dtype)
    feed = {x: numbers([13, 17], dtype), y: numbers([13, 17], dtype, 1)}
    if name in QUESTIONS:
        truth = QUESTIONS[name](x)
    else:
        truth = COMPARISONS[name](x, y)
    check(tn.where(truth, x, y * x), feed, alone=3)
    check(tn.logical_not(truth), feed, alone=2)


@pytest.mark.parametrize("x", UNARY)
def test_gradients(x):
    """Of functions that have one; mostly of two operands."""
    value = placeholder([9, 16])
    y = UNARY[x](value)
    slope = tn.gradients(y * 2.0, value)[0]
    if slope is not None:
        check_bits(slope, {value: numbers([9, 16], "float32")})


@pytest.mark.parametrize("dtype", FLOATS)
@pytest.mark.parametrize("terms", [1, 2, 3, 9])
def test_sums_of_many(terms, dtype):
    """Rounded once, at the end, however many terms there are."""
    x = [placeholder([13, 17], dtype) for _ in range(terms)]
    feed = {term: numbers([13, 17], dtype, i) for i, term in enumerate(x)}
    fewer, many = check_bits(tn.tanh(tn.add_n([tn.square(term) for term in x])), feed)
    assert fewer is None or fewer < many


def test_truth_values_alone():
    a, b, c = (placeholder([50], "bool") for _ in range(3))
    rng = np.random.default_rng(0)
    feed = {v: rng.random(50) < 0.5 for v in (a, b, c)}
    check(tn.logical_or(tn.logical_and(a, b), tn.not_equal(b, tn.equal(a, c))), feed, alone=4)


@pytest.mark.parametrize("source", [*FLOATS, "bool"])
@pytest.mark.parametrize("to", [*FLOATS, "bool"])
def test_casts(source, to):
    x = placeholder([77], source)
    y = tn.logical_not(x) if source == "bool" else x * x
    z = tn.cast(y, to)
    z = tn.logical_not(z) if to == "bool" else z + z
    value = numbers([77], "float32") > 0 if source == "bool" else numbers([77], source)
    check(z, {x: value}, alone=2 if source == to else 3)


def test_attributes():
    x = placeholder([200])
    feed = {x: numbers([200], "float32")}
    for alpha in (0.0, 0.3, 1.7):
        check(tn.nn.leaky_relu(x, alpha) + x, feed, alone=2)
    for approximate in (True, False):
        check(tn.nn.gelu(x, approximate) + x, feed, alone=2)
    for tolerance in (1e-5, 0.25):
        check(tn.cast(tn.approximate_equal(x, x * 1.1, tolerance), tn.float32), feed)
    check(tn.clip_by_value(x, -0.5, 0.75) * x, feed)


LAYOUTS = [([8, 12], [12]), ([8, 12], [8, 1]), ([8, 12], []), ([8, 12], [1, 1]), ([7, 5], [5]),
           ([7, 5], [7, 1]), ([3, 1, 6, 4], [5, 1, 4]), ([2, 3, 4, 8], [3, 1, 8]),
           ([1, 1], [9, 9]), ([], []), ([1], [1]), ([1023], [1]), ([4, 3], [1, 3]),
           ([2, 1, 2, 1, 2, 1, 2], [1, 3, 1, 3, 1, 3, 1])]


@pytest.mark.parametrize("a, b", LAYOUTS)
def test_shapes(a, b):
    x, y = placeholder(a), placeholder(b)
    whole = np.broadcast_shapes(a, b)
    z = placeholder(list(whole))
    feed = {x: numbers(a, "float32"), y: numbers(b, "float32", 1), z: numbers(whole, "float32", 2)}
    check(tn.multiply(x, y) + z * z, feed, alone=3)
    check_bits(tn.cast(tn.cast(x, tn.float16) + tn.cast(y, tn.float16), tn.float32) - z, feed)


def test_more_dimensions_than_a_launch_can_say_are_computed_one_by_one():
    """Each of the two operands lies in five ways against the result, both together in nine."""
    x, one = placeholder([2] * 9), placeholder([2, 2, 1, 1, 2, 2, 1, 1, 2])
    other = placeholder([2, 1, 1, 2, 2, 1, 1, 2, 2])
    feed = {v: numbers(v.shape.as_list(), "float32", i) for i, v in enumerate([x, one, other])}
    fewer, many = check_bits(x * one - other, feed)
    assert fewer == many


@pytest.mark.parametrize("n", [0, 1, 2, 3, 4, 5, 255, 256, 257, 1024, 100_003])
def test_lengths(n):
    x = placeholder([n])
    value = np.arange(n, dtype=np.float32)
    found, count = ran(tn.square(x) + 1.0, {x: value}, True)
    np.testing.assert_array_equal(found, value * value + 1)
    assert count in (None, min(n, 1))


@pytest.mark.parametrize("offset", range(5))
def test_operands_that_begin_anywhere(offset):
    x = placeholder([64])
    part = x[offset:offset + 32]
    value = numbers([64], "float32")
    check_bits(tn.exp(part) + part * 2.0, {x: value})


@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
def test_biases(layout):
    shape = [2, 5, 3, 5]
    x, b = placeholder(shape), placeholder([5])
    feed = {x: numbers(shape, "float32"), b: numbers([5], "float32", 1)}
    biased = tn.nn.relu(tn.nn.bias_add(x, b, layout))
    check(biased, feed, alone=2)
    check(biased * b, feed, alone=3)  # along the channels, and along the last axis


def test_many_values_in_use():
    """Each of 7 differs from the last; then all are added: they wait in slots."""
    x = placeholder([40])
    values = [x * float(i) for i in range(1, 8)]
    total = values[0]
    for value in reversed(values[1:]):
        total = total + tn.abs(value)
    check_bits(total, {x: numbers([40], "float32")})


@pytest.mark.parametrize("inputs", [15, 16, 17, 40])
def test_many_operands(inputs):
    x = [placeholder([10]) for _ in range(inputs)]
    total = x[0]
    for value in x[1:]:
        total = total * 0.5 + value
    feed = {value: numbers([10], "float32", i) for i, value in enumerate(x)}
    fewer, many = check_bits(total, feed)
    assert fewer is None or fewer <= many / 4


def program(seed):
    """Placeholders and values of a random graph of operations that chains hold."""
    rng = random.Random(seed)
    shapes = [[6, 8], [8], [6, 1], []]
    feeds = [placeholder(rng.choice(shapes), rng.choice(FLOATS)) for _ in range(rng.randint(2, 6))]
    values = list(feeds)
    for _ in range(rng.randint(3, 30)):
        a, b = rng.choice(values), rng.choice(values)
        b = tn.cast(b, a.dtype)
        kind = rng.random()
        if kind < 0.3:
            made = UNARY[rng.choice(sorted(UNARY))](a)
        elif kind < 0.8:
            made = BINARY[rng.choice(sorted(BINARY))](a, b)
        else:
            truth = COMPARISONS[rng.choice(sorted(COMPARISONS))](a, b)
            whole = a * b
            made = tn.where(truth, a + b, whole)
        values.append(made)
    return feeds, [v for v in values[-4:] if v not in feeds]


@pytest.mark.parametrize("seed", range(40))
def test_random_programs(seed):
    feeds, fetches = program(seed)
    feed = {x: numbers(x.shape.as_list(), x.dtype.name, seed + i) for i, x in enumerate(feeds)}
    with session(True) as sess:
        together = [sess.run(fetches, feed) for _ in range(2)]
    with session(False) as sess:
        apart = sess.run(fetches, feed)
    for found in together:
        for one, other in zip(found, apart):
            np.testing.assert_array_equal(bits(one), bits(other))


def test_against_numpy():
    x, y = placeholder([100, 30]), placeholder([30])
    a, b = numbers([100, 30], "float32"), numbers([30], "float32", 1)
    found, _ = ran(tn.maximum(x * y, 0.0) - tn.square(y), {x: a, y: b}, True)
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(found, np.maximum(a * b, np.float32(0)) - b * b)
