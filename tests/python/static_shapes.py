# SPDX-License-Identifier: Apache-2.0
"""What the tables of static shapes (shape_rows_*.py) are written with, and how a row is checked.

A row is a public function called with placeholders, and the static shape that TensorFlow 1.15 gives
its result (its shape functions, and what its Python functions set): a list with None where an
extent is unknown, ANY for an unknown rank, a tuple of such for several results. Treenail must know
at least as much, and what it says must hold when the row is run.
"""

import inspect
import types

import numpy as np

import treenail as tn

ANY = None
ROWS = []
EXCUSED = {}

MODULES = ("", "nn", "layers", "image", "losses", "lookup", "math", "strings", "audio", "signal",
           "random", "train", "initializers", "regularizers", "seq2seq", "linalg", "metrics",
           "distributed")


def row(name, build, shape, runs=True):
    """One case of the function `name` ("nn.relu"): build(p) calls it, p makes placeholders.

    runs: whether the case can be run, which needs no library that a build may lack.
    """
    ROWS.append((name, build, shape, runs))


def rows(names, build, shape, runs=True):
    """The same case for several functions: build(function, p)."""
    for name in names.split():
        function = resolve(name)
        row(name, lambda p, function=function: build(function, p), shape, runs)


def excuse(names, reason):
    """Functions that have no row, and why."""
    for name in names.split():
        EXCUSED[name] = reason


def resolve(name):
    """The public function of that name."""
    value = tn
    for part in name.split("."):
        value = getattr(value, part)
    return value


def public_functions():
    """{name: function}: one name for each public function of Python; what the registry makes a
    function of by itself is an op, whose shape rule tests/cases holds to what its kernel gives."""
    found = {}
    for module in MODULES:
        space = resolve(module) if module else tn
        elsewhere = getattr(space, "_ELSEWHERE", ())
        names = [*space.__all__, *elsewhere] if hasattr(space, "__all__") else dir(space)
        for name in sorted(names):
            value = getattr(space, name, None)
            if name.startswith("_") or not callable(value) or inspect.isclass(value):
                continue
            if isinstance(value, type(tn.add)):
                continue
            if not isinstance(value, types.ModuleType):
                found.setdefault(id(value), ("%s.%s" % (module, name) if module else name, value))
    return dict(found.values())


class Placeholders:
    """Makes the placeholders of a row, and what to feed them. An unknown extent is fed as 2."""

    def __init__(self):
        self.feeds = {}

    def of(self, dtype, shape, fed=None, value=None):
        """A placeholder; fed: its shape in a run, value: its value there."""
        placeholder = tn.placeholder(dtype, shape)
        if value is None:
            fed = [2 if n is None else n for n in shape] if fed is None else fed
            kind = np.dtype(placeholder.dtype.as_numpy_dtype)
            value = np.full(fed, b"1", object) if kind.kind == "O" else np.ones(fed, kind)
        self.feeds[placeholder] = value
        return placeholder

    def f(self, *shape):
        """float32."""
        return self.of(tn.float32, shape)

    def u(self, *fed):
        """float32 of unknown rank, fed in shape `fed`."""
        return self.of(tn.float32, None, fed)

    def d(self, *shape):
        """float64."""
        return self.of(tn.float64, shape)

    def c(self, *shape):
        """complex64."""
        return self.of(tn.complex64, shape)

    def i(self, *shape):
        """int32, fed with ones."""
        return self.of(tn.int32, shape)

    def b(self, *shape):
        """bool."""
        return self.of(tn.bool, shape)

    def s(self, *shape):
        """string."""
        return self.of(tn.string, shape)

    def n(self, value, dtype=tn.int32):
        """An integer scalar that only a run tells."""
        return self.of(dtype, [], value=value)

    def v(self, value, shape=(None,), dtype=tn.int32):
        """Integers that only a run tells."""
        return self.of(dtype, shape, value=value)


def flattened(result):
    """The tensors of a result."""
    if isinstance(result, tn.SparseTensor):
        return [result.indices, result.values, result.dense_shape]
    if isinstance(result, (list, tuple)):
        return [t for part in result for t in flattened(part)]
    return [result]


def as_shapes(shape, count):
    """The shapes of a row as a list of `count`."""
    shapes = list(shape) if isinstance(shape, tuple) else [shape]
    assert len(shapes) == count, "the row states %d shapes for %d results" % (len(shapes), count)
    return shapes


def knows_at_least(known, wanted):
    """Whether the TensorShape `known` says all that `wanted` does, and nothing else."""
    if wanted is ANY:
        return True
    if known.ndims is None or known.ndims != len(wanted):
        return False
    return all(w is None or k == w for k, w in zip(known.as_list(), wanted))
