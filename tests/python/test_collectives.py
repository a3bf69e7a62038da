# SPDX-License-Identifier: Apache-2.0
"""Collective operations among 2 to 4 processes in shared memory, compared with NumPy on all ranks'
inputs, which each process makes for itself from the rank."""

import functools
import time

import numpy as np
import pytest

import process_group
import treenail as tn
from memory_group import memory_group

INTS = ("int8", "int16", "int32", "int64", "uint8", "uint16", "uint32", "uint64")
FLOATS = ("float16", "float32", "float64")
HAS_GRPC = "grpc" in tn.build_info()["features"]
SIZES = (2, 3, 4) + ("grpc",) * HAS_GRPC  # three ranks that meet by gRPC
# The last is cut into slices; 4097 elements leave ranks slices of different size.
SHAPES = ((), (0, 3), (5,), (17, 241), (3, 30001))

VALUES = """
def values(rank, shape, dtype):
    random = np.random.RandomState(100 * rank + len(shape) + 7)
    if dtype.startswith("complex"):
        return (random.randn(*shape) + 1j * random.randn(*shape)).astype(dtype)
    if dtype.startswith("float"):
        return np.asarray(random.randn(*shape)).astype(dtype)
    return np.asarray(random.randint(0, 100, shape)).astype(dtype)
"""
exec(VALUES)

PROGRAM = VALUES + """
from test_collectives import INTS, FLOATS, SHAPES
D = tn.distributed
join()
found = {"place": (D.rank(), D.size(), D.local_rank(), D.local_size(), D.transport())}
x = {}

def fetch(name, result):
    fetches[name] = result

fetches = {}
with tn.Graph().as_default():
    for dtype in FLOATS + INTS + ("complex64", "complex128"):
        for shape in SHAPES if dtype == "float32" else SHAPES[2:4]:
            given = tn.constant(values(rank, shape, dtype))
            for reduction in ("sum", "mean", "min", "max", "product"):
                if reduction == "mean" and dtype in INTS:
                    continue
                if reduction in ("min", "max") and dtype.startswith("complex"):
                    continue
                fetch((reduction, dtype, shape), D.all_reduce(given, reduction))
    half = tn.cast(tn.constant(values(rank, (1000,), "float32")), tn.bfloat16)
    fetch("bfloat16", tn.cast(D.all_reduce(half), tn.float32))
    fetch("list", D.all_reduce([tn.constant(values(rank, s, "float32")) for s in SHAPES]))
    one = tn.constant(values(rank, (12 * size, 3), "float32"))
    fetch("broadcast", D.broadcast(one, root=size - 1))
    fetch("flags", D.all_gather(one > 0))
    fetch("gather", D.all_gather(tn.constant(values(rank, (2 * rank, 3), "float64"))))
    fetch("scatter", D.reduce_scatter(one))
    fetch("scatter mean", D.reduce_scatter(one, "mean"))
    fetch("exchange", D.all_to_all(one))
    fetch("barrier", D.barrier())
    with tn.Session() as session:
        found.update(zip(fetches, session.run(list(fetches.values()))))
        found["again"] = session.run(fetches["sum", "float32", (3, 30001)])

# Gradients: of loss[rank] = sum(weight[rank] * f(x[rank])), summed over ranks.
with tn.Graph().as_default(), tn.Session() as session:
    shape = (2 * size, 3)
    x = tn.constant(values(rank, shape, "float64"))
    functions = {"sum": D.all_reduce, "mean": lambda t: D.all_reduce(t, "mean"),
                 "min": lambda t: D.all_reduce(t, "min"), "max": lambda t: D.all_reduce(t, "max"),
                 "product": lambda t: D.all_reduce(t, "product"),
                 "broadcast": lambda t: D.broadcast(t, 1), "gather": D.all_gather,
                 "rows": lambda t: D.all_gather(t[:rank + 1]), "scatter": D.reduce_scatter,
                 "scatter mean": lambda t: D.reduce_scatter(t, "mean"), "exchange": D.all_to_all}
    gradients = {}
    for name, function in functions.items():
        y = function(x)
        y.set_shape(session.run(tn.shape(y)))
        weight = tn.constant(values(rank + 10, tuple(y.shape.as_list()), "float64"))
        gradients[name] = tn.gradients(tn.reduce_sum(y * weight), x)[0]
    found["gradients"] = session.run(gradients)

# What ranks begin in another order; a key that comes twice at once from a loop.
with tn.Graph().as_default(), tn.Session() as session:
    keyed = [D.all_reduce(tn.constant([float(i + rank)]), key="k%d" % i) for i in range(40)]
    mine = np.random.RandomState(rank).permutation(40)
    chained, last = {}, None
    for i in mine:
        with tn.control_dependencies([] if last is None else [last]):
            chained[i] = last = tn.identity(tn.constant([float(i + rank)]))
    order = {i: D.all_reduce(chained[i], key="o%d" % i) for i in mine}
    found["keyed"] = session.run(keyed)
    found["order"] = [session.run(order)[i] for i in range(40)]
    loop = tn.while_loop(lambda i, t: i < 5, lambda i, t: (i + 1, D.all_reduce(t)),
                         [tn.constant(0), tn.constant([1.0])])
    found["loop"] = session.run(loop)[1]
    big = D.all_reduce(tn.constant(values(rank, (1 << 20,), "float32")))
    found["chain"] = session.run(D.all_reduce(big * 2.0, "mean"))[:100]

with tn.eager():
    found["eager"] = np.asarray(D.all_reduce(tn.constant([1.0 + rank])))
    with tn.GradientTape() as tape:
        v = tn.constant([1.0, 2.0 + rank])
        tape.watch(v)
        y = D.all_reduce(v) * (rank + 1.0)
    found["tape"] = np.asarray(tape.gradient(y, v))

def mismatch(make):
    with tn.Graph().as_default(), tn.Session() as session:
        return error_of(lambda: session.run(make()))

found["shapes"] = mismatch(lambda: D.all_reduce(tn.zeros([2, 2 + rank]), key="m"))
found["dtypes"] = mismatch(lambda: D.all_reduce(tn.zeros([2], (tn.float32, tn.float64)[rank > 0]),
                                                key="m"))
found["kinds"] = mismatch(lambda: D.all_reduce(tn.zeros([2]), ("sum", "max")[rank > 0], key="m"))
found["ops"] = mismatch(lambda: (D.all_reduce if rank else D.all_gather)(tn.zeros([2]), key="m"))
found["root"] = mismatch(lambda: D.broadcast(tn.zeros([2]), root=7, key="m"))
found["parts"] = mismatch(lambda: D.all_to_all(tn.zeros([size + 1]), key="m"))
found["after"] = mismatch(lambda: D.all_reduce(tn.zeros([2]), key="m"))
D.shutdown()
found["left"] = mismatch(lambda: D.all_reduce(tn.zeros([2]), key="m"))
leave(found)
"""


@pytest.fixture(scope="module", params=SIZES)
def results(request, tmp_path_factory):
    directory = tmp_path_factory.mktemp("group")
    if request.param == "grpc":
        return process_group.run(directory, PROGRAM, 3, process_group.by_grpc(3))
    return process_group.run(directory, PROGRAM, request.param)


REDUCTIONS = {"sum": np.add, "min": np.minimum, "max": np.maximum, "product": np.multiply}


def reduced(parts, reduction):
    """In the order of ranks, in the dtype; half in float32, rounded once."""
    dtype = parts[0].dtype
    wide = [p.astype(np.float32) if dtype == np.float16 else p for p in parts]
    with np.errstate(over="ignore"):
        total = functools.reduce(REDUCTIONS.get(reduction, np.add), wide)
    if reduction == "mean":
        total = total / np.asarray(len(parts), total.real.dtype)
    return total.astype(dtype)


def test_reductions_are_those_of_numpy_in_the_order_of_ranks(results):
    size = len(results)
    both = ("product", "mean")  # of complex numbers NumPy computes them in another way
    for rank, found in enumerate(results):
        assert found["place"][:4] == (rank, size, rank, size)
        assert found["place"][4] in ("shared_memory", "grpc")
        for name in (n for n in found if isinstance(n, tuple)):
            reduction, dtype, shape = name
            parts = [values(r, shape, dtype) for r in range(size)]  # noqa: F821
            wanted = reduced(parts, reduction)
            got = found[name]
            assert got.dtype == dtype and got.shape == shape
            if reduction in both and dtype.startswith("complex"):
                np.testing.assert_allclose(got, wanted, rtol=1e-5)
            else:
                np.testing.assert_array_equal(got, wanted, str(name))


def test_all_ranks_have_the_same_bits_each_time(results):
    for found in results:
        assert found["again"].tobytes() == results[0]["sum", "float32", (3, 30001)].tobytes()
        assert found["bfloat16"].tobytes() == results[0]["bfloat16"].tobytes()
        for got, shape in zip(found["list"], SHAPES):
            alone = found["sum", "float32", shape]
            assert got.tobytes() == alone.tobytes() and got.shape == shape


def test_what_moves_is_numpys(results):
    size = len(results)
    ones = [values(r, (12 * size, 3), "float32") for r in range(size)]  # noqa: F821
    rows = [values(r, (2 * r, 3), "float64") for r in range(size)]  # noqa: F821
    for rank, found in enumerate(results):
        mine = slice(12 * rank, 12 * rank + 12)
        np.testing.assert_array_equal(found["broadcast"], ones[-1])
        np.testing.assert_array_equal(found["flags"], np.concatenate(ones) > 0)
        np.testing.assert_array_equal(found["gather"], np.concatenate(rows))
        np.testing.assert_array_equal(found["scatter"], reduced(ones, "sum")[mine])
        np.testing.assert_array_equal(found["scatter mean"], reduced(ones, "mean")[mine])
        np.testing.assert_array_equal(found["exchange"], np.concatenate([o[mine] for o in ones]))
        assert found["barrier"] is None


def loss(name, xs, weights, size):
    """The sum of all ranks' losses, by NumPy."""
    parts = [slice(2 * r, 2 * r + 2) for r in range(size)]
    total = functools.reduce(REDUCTIONS.get(name, np.add), xs)
    outputs = {
        "mean": [total / size] * size, "broadcast": [xs[1]] * size,
        "gather": [np.concatenate(xs)] * size,
        "rows": [np.concatenate([x[:r + 1] for r, x in enumerate(xs)])] * size,
        "scatter": [total[p] for p in parts], "scatter mean": [total[p] / size for p in parts],
        "exchange": [np.concatenate([x[p] for x in xs]) for p in parts],
    }.get(name, [total] * size)
    return sum(np.sum(y * w) for y, w in zip(outputs, weights))


def test_gradients_are_those_of_the_sum_of_losses(results):
    size = len(results)
    xs = [values(r, (2 * size, 3), "float64") for r in range(size)]  # noqa: F821
    shapes = {"gather": (2 * size * size, 3), "rows": (size * (size + 1) // 2, 3),
              "scatter": (2, 3), "scatter mean": (2, 3)}
    for name in results[0]["gradients"]:
        weights = [values(r + 10, shapes.get(name, (2 * size, 3)), "float64")  # noqa: F821
                   for r in range(size)]
        for rank in range(size):
            got = results[rank]["gradients"][name]
            for place in ((0, 0), (1, 2), (2 * size - 1, 1)):
                ends = []
                for step in (1e-6, -1e-6):
                    moved = [x.copy() for x in xs]
                    moved[rank][place] += step
                    ends.append(loss(name, moved, weights, size))
                assert abs((ends[0] - ends[1]) / 2e-6 - got[place]) < 1e-6, (name, rank, place)


def test_ranks_may_begin_in_another_order(results):
    size = len(results)
    for found in results:
        wanted = [[float(i * size + sum(range(size)))] for i in range(40)]
        np.testing.assert_array_equal(found["keyed"], wanted)
        np.testing.assert_array_equal(found["order"], wanted)
        assert found["loop"] == [float(size) ** 5]
        both = 2 * reduced([values(r, (1 << 20,), "float32") for r in range(size)],  # noqa: F821
                           "sum")
        np.testing.assert_allclose(found["chain"], both[:100], rtol=1e-6)


def test_immediate_execution(results):
    size = len(results)
    for found in results:
        assert found["eager"] == [size + sum(range(size))]
        np.testing.assert_array_equal(found["tape"], [sum(range(1, size + 1))] * 2)


@pytest.mark.parametrize("name, words", [
    ("shapes", ["all_reduce 'm' (execution 0)", "rank 0 asks for all_reduce (sum) of float32[2,2]",
                "rank 1 for all_reduce (sum) of float32[2,3]", "all ranks must ask for the same"]),
    ("dtypes", ["execution 1", "float32[2], rank 1 for all_reduce (sum) of float64[2]"]),
    ("kinds", ["rank 0 asks for all_reduce (sum)", "rank 1 for all_reduce (max)"]),
    ("ops", ["rank 0 asks for all_gather of float32[2]", "rank 1 for all_reduce (sum)"]),
    ("root", ["root 7 is not in [0, "]), ("parts", ["must be a multiple of the number of ranks"]),
])
def test_what_does_not_go_together_is_said_on_all_ranks(results, name, words):
    for found in results:
        kind, text = found[name]
        assert kind == "InvalidArgumentError", text
        for word in words:
            assert word in text, text


def test_the_group_goes_on_after_errors_and_ends(results):
    for found in results:
        assert found["after"] == (None, "")
        assert found["left"][0] == "FailedPreconditionError"
        assert "tn.distributed.init() first" in found["left"][1]


def test_memory_that_a_control_group_refuses_is_told_to_all_ranks_and_ends_none(tmp_path):
    program = """
D = tn.distributed
join()
given = tn.placeholder(tn.float32)
total = D.all_reduce(given)

def sum_of(count):
    return session.run(total, {given: np.ones(count, np.float32)}).sum()

with tn.Session() as session:
    before = sum_of(3)
    open(os.path.join(where, "joined%d" % rank), "w").close()
    while not os.path.exists(os.path.join(where, "limited")):
        time.sleep(0.01)
    refused = error_of(lambda: sum_of(20_000_000))
    after = sum_of(3)
leave((before, refused, after))
"""
    with memory_group(2 * 10**9) as limited:
        group = process_group.Group(tmp_path, program, 2, within=limited.within)
        try:
            while not all((tmp_path / ("joined%d" % rank)).exists() for rank in range(2)):
                assert all(process.poll() is None for process in group.processes)
                time.sleep(0.01)
            limited.leave(120_000_000)  # the value, and not a segment for it as well
        finally:
            (tmp_path / "limited").touch()
            found = group.wait()
    for before, (kind, text), after in found:
        assert before == after == 6
        assert kind == "ResourceExhaustedError" and "rank 0" in text, text
