# SPDX-License-Identifier: Apache-2.0
"""The language of op cases.

A family file (tests/cases/<family>.py, named like framework/ops/<family>.cc) says for each op what
it should compute, by an oracle that shares no code with Treenail (NumPy mostly), and on what:

    from harness import ALL_NUMBERS, T, op, rand

    op("Add", np.add, dtypes=ALL_NUMBERS).case((2, 3), (3,)).case((), (0, 4)).error(
        "InvalidArgument", r"Incompatible shapes: \\[2\\] vs. \\[3\\]", (2,), (3,))

Every case is run for each of the op's dtypes

  * immediately, in a session, with the shapes known while the graph is built and with shapes
    unknown, and within a tn.function: the same bits each time, and the shapes that the shape rule
    promised. One graph and one function hold all dtypes of a case;
  * against the oracle, within a tolerance that depends on the dtype;
  * at every ISA level that is installed and that this machine runs (runner.py, a process each);
  * for the gradient, in float64 (complex128 where the op has no float64): the op's rule against
    central differences of the op itself; the gradient of the gradient likewise (`grad=2`). A tape
    around the function gives the bits of the graph's gradient.

An input of a case is one of

    (2, 3)                random numbers of that shape, in the case's dtype, from the op's domain
    rand((2, 3), lo, hi)  the same with bounds of its own; spaced(...): all values well apart
    T([1.5, -2])          these values in the case's dtype
    flags((2, 3))         random booleans
    ints((2, 3), lo, hi[, dtype])  random integers in [lo, hi)
    np.array(...)         exactly this array, whatever the case's dtype
    3, [0, 1]             int32 (axes, shapes)
    many(a, b, ...)       a list argument

`attrs` of a case follow as keywords and reach the oracle as keywords too (`oracle_attrs=False`:
not). "DTYPE" as the value of an attribute stands for the case's dtype. Errors are stated on
float32 unless `on=` names another dtype. Options of an op, or of one case (`options=`): _DEFAULTS.
"""

from __future__ import annotations

import zlib
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, Callable, Dict, List, Optional, Sequence, Tuple

import numpy as np

HALVES = ("float16", "bfloat16")
REAL_FLOATS = ("float32", "float64")
FLOATS = REAL_FLOATS + HALVES
COMPLEX = ("complex64", "complex128")
SIGNED = ("int32", "int64", "int8", "int16")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTS = SIGNED + UNSIGNED
REALS = FLOATS + INTS
ALL_NUMBERS = REALS + COMPLEX
EVERYTHING = ALL_NUMBERS + ("bool",)

# Spacing of numbers near 1.
EPSILON = {
    "float16": 2.0**-10,
    "bfloat16": 2.0**-7,
    "float32": 2.0**-23,
    "float64": 2.0**-52,
    "complex64": 2.0**-23,
    "complex128": 2.0**-52,
}


def wide(dtype: str) -> np.dtype:
    """The NumPy type in which oracles compute."""
    if dtype in FLOATS:
        return np.dtype("float64")
    if dtype in COMPLEX:
        return np.dtype("complex128")
    return np.dtype(dtype)


def to_bfloat16(x: np.ndarray) -> np.ndarray:
    """The bits of float values rounded to bfloat16, to nearest even."""
    bits = np.asarray(x, np.float32).view(np.uint32)
    rounded = (bits + np.uint32(0x7FFF) + ((bits >> np.uint32(16)) & np.uint32(1))) >> np.uint32(16)
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(x), quiet, rounded).astype(np.uint16)


def from_bfloat16(bits: np.ndarray) -> np.ndarray:
    return (np.asarray(bits, np.uint16).astype(np.uint32) << np.uint32(16)).view(np.float32)


def stored(values: Any, dtype: str) -> np.ndarray:
    """Values as Treenail gets them; bfloat16 as uint16 bits."""
    with np.errstate(all="ignore"):
        if dtype == "bfloat16":
            return to_bfloat16(np.asarray(values, np.float32))
        return np.asarray(values).astype(dtype)


def seen(array: np.ndarray, dtype: str) -> np.ndarray:
    """What was stored, as the oracle sees it: exactly the same numbers, in the wide type."""
    return (
        from_bfloat16(array).astype(np.float64)
        if dtype == "bfloat16"
        else array.astype(wide(dtype))
    )


# --- Inputs
# ---------------------------------------------------------------------------------------------------


@dataclass(frozen=True)
class Spec:
    """An input to be made: kind and what that kind needs."""

    kind: str
    shape: Tuple[int, ...] = ()
    low: Optional[float] = None
    high: Optional[float] = None
    values: Any = None
    dtype: str = ""


def rand(shape: Sequence[int], low: float, high: float) -> Spec:
    return Spec("random", tuple(shape), low, high)


def spaced(shape: Sequence[int], low: float = -2.0, high: float = 2.0) -> Spec:
    """Evenly spaced values in random order: no two are near each other (for max, sort, ...)."""
    return Spec("spaced", tuple(shape), low, high)


def flags(shape: Sequence[int]) -> Spec:
    return Spec("flags", tuple(shape))


def ints(shape: Sequence[int], low: int, high: int, dtype: str = "int32") -> Spec:
    return Spec("ints", tuple(shape), low, high, dtype=dtype)


class T(Spec):
    """Literal values in the case's dtype."""

    def __init__(self, values: Any) -> None:
        super().__init__("values", values=values)


class Many(tuple):
    """A list argument."""


def many(*items: Any) -> Many:
    return Many(items)


@dataclass
class Value:
    """One input of a run: the array given, and the numbers in it as oracles see them."""

    array: np.ndarray
    numbers: np.ndarray
    dtype: str
    literal: bool = False  # not made from a shape


def _uniform(
    rng: np.random.Generator, dtype: str, shape: Tuple[int, ...], low: float, high: float
) -> np.ndarray:
    if dtype == "bool":
        return rng.integers(0, 2, shape).astype(bool)
    if dtype in COMPLEX:
        return rng.uniform(low, high, shape) + 1j * rng.uniform(low, high, shape)
    if dtype in FLOATS:
        return rng.uniform(low, high, shape)
    first = int(np.ceil(max(low, 0) if dtype in UNSIGNED else low))
    return rng.integers(first, max(int(np.floor(high)), first) + 1, shape)


def make_value(spec: Any, dtype: str, domain: Tuple[float, float], rng: np.random.Generator) -> Any:
    """A Value for one input of a case (a list of them for a list argument)."""
    if isinstance(spec, Many):
        return [make_value(item, dtype, domain, rng) for item in spec]
    if isinstance(spec, tuple):
        spec = Spec("random", spec, *domain)
    if not isinstance(spec, Spec):
        array = np.asarray(spec)
        given_dtype = isinstance(spec, (np.ndarray, np.generic))
        if not given_dtype and (array.dtype.kind in "iu" or array.size == 0):
            array = array.astype(np.int32)
        name = "string" if array.dtype.kind in "OSU" else array.dtype.name
        return Value(array, array, name, literal=True)
    if spec.kind == "flags":
        array = rng.integers(0, 2, spec.shape).astype(bool)
        return Value(array, array, "bool", literal=True)
    if spec.kind == "ints":
        array = rng.integers(int(spec.low), int(spec.high), spec.shape).astype(spec.dtype)
        return Value(array, array, spec.dtype, literal=True)
    if spec.kind == "values":
        numbers = np.asarray(spec.values)
    elif spec.kind == "spaced":
        count = int(np.prod(spec.shape))
        numbers = np.linspace(spec.low, spec.high, max(count, 1))[:count]
        if dtype not in FLOATS + COMPLEX:
            numbers = np.arange(count) if dtype in UNSIGNED else np.arange(count) - count // 2
        numbers = rng.permutation(numbers).reshape(spec.shape)
    else:
        numbers = _uniform(rng, dtype, spec.shape, spec.low, spec.high)
    array = stored(numbers, dtype)
    return Value(array, seen(array, dtype), dtype)


# --- The table
# ------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Case:
    op: "Op"
    inputs: Tuple[Any, ...]
    attrs: Dict[str, Any]
    number: int
    options: Dict[str, Any] = field(default_factory=dict)

    @property
    def name(self) -> str:
        return "%s-%d" % (self.op.name, self.number)

    def option(self, key: str) -> Any:
        return self.options.get(key, self.op.options[key])

    @lru_cache(maxsize=64)  # what each way to run a case asks for
    def values(self, dtype: str) -> List[Any]:
        """The same inputs each time: seeded by op, case and dtype."""
        rng = np.random.default_rng(zlib.crc32(("%s %s" % (self.name, dtype)).encode()))
        return [make_value(spec, dtype, self.option("domain"), rng) for spec in self.inputs]

    def attrs_for(self, dtype: str) -> Dict[str, Any]:
        return {
            key: dtype if isinstance(value, str) and value == "DTYPE" else value
            for key, value in self.attrs.items()
        }


@dataclass
class ErrorCase:
    op: "Op"
    code: str
    message: str
    inputs: Tuple[Any, ...]
    attrs: Dict[str, Any]
    number: int
    dtype: str

    @property
    def name(self) -> str:
        return "%s-error-%d" % (self.op.name, self.number)

    def values(self) -> List[Any]:
        rng = np.random.default_rng(self.number)
        return [
            make_value(spec, self.dtype, self.op.options["domain"], rng) for spec in self.inputs
        ]


_DEFAULTS = {
    "dtypes": ("float32", "float64"),
    "domain": (-2.0, 2.0),
    # Allowed error in units of the dtype's epsilon, relative to each expected element; norm=True:
    # relative to the largest one. `slack`: an absolute error besides. A half-width result is
    # rounded once, so one unit is enough.
    "ulps": 4.0,
    "norm": False,
    "slack": 0.0,
    # Must the signs of zeros agree? Set by special().
    "signed_zeros": False,
    "half_ulps": 1.0,
    # 0: none, 1: gradients, 2: and gradients of gradients. `wrt`: flat input numbers; None: all of
    # the case's dtype.
    "grad": 1,
    "wrt": None,
    "grad_tolerance": 1e-6,
    # Does the op see a Hermitian matrix in one triangle? Then so does the gradient: differences are
    # taken along Hermitian directions.
    "hermitian": False,
    # Compare immediate and session results by bits (False where the op is random).
    "same_bits": True,
    # Are result shapes known while the graph is built, with known input shapes?
    "static_shape": True,
    # Run with input shapes unknown while the graph is built?
    "unknown_shapes": True,
    # And the gradient as well? (False where it is stated to need known shapes.)
    "unknown_gradient": True,
    "oracle_attrs": True,
}


class Op:
    """All that is stated about one op. `case` and `error` give the Op back, so that they chain."""

    def __init__(self, name: str, oracle: Callable[..., Any], **options: Any) -> None:
        unknown = set(options) - set(_DEFAULTS)
        if unknown:
            raise TypeError("op(%r): no option %s" % (name, ", ".join(sorted(unknown))))
        self.name = name
        self.oracle = oracle
        self.options = dict(_DEFAULTS, **options)
        self.cases: List[Case] = []
        self.errors: List[ErrorCase] = []

    def case(self, *inputs: Any, options: Optional[Dict[str, Any]] = None, **attrs: Any) -> "Op":
        """One case; `options` replace those of the op."""
        self.cases.append(Case(self, inputs, attrs, len(self.cases), options or {}))
        return self

    def cases_of(self, *input_lists: Sequence[Any], **attrs: Any) -> "Op":
        """One case for each list of inputs."""
        for inputs in input_lists:
            self.case(*inputs, **attrs)
        return self

    def error(
        self, code: str, message: str, /, *inputs: Any, on: str = "float32", **attrs: Any
    ) -> "Op":
        """The op fails: `code` as in errors.<code>Error, and the text matches the regular
        expression `message`."""
        self.errors.append(ErrorCase(self, code, message, inputs, attrs, len(self.errors), on))
        return self

    def special(self, *specials: Any, **attrs: Any) -> "Op":
        """Special values in float32 and float64: NaN, infinities, signed zeros must agree.

        A list or a float stands for values, an int (an axis) for itself.
        """
        values = specials or (
            [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-45, -1e-45, 1e-40, 3e38, -3e38, 1.0, -1.0],
        )
        options = {"dtypes": REAL_FLOATS, "grad": 0, "signed_zeros": True}
        inputs = [v if isinstance(v, int) else T(v) for v in values]
        return self.case(*inputs, options=options, **attrs)


OPS: Dict[str, Op] = {}
# Ops that have no case, with the reason; tests elsewhere that cover them.
WITHOUT_CASE: Dict[str, str] = {}
WITHOUT_GRADIENT_CASE: Dict[str, str] = {}


def op(name: str, oracle: Callable[..., Any], **options: Any) -> Op:
    """Begins the cases of one op. Stating one op in two places is an error."""
    if name in OPS:
        raise ValueError("the cases of %s are stated twice" % name)
    OPS[name] = Op(name, oracle, **options)
    return OPS[name]


def no_case(name: str, reason: str) -> None:
    """The op has no case, for a reason: name the test that covers it."""
    WITHOUT_CASE[name] = reason


def no_gradient_case(name: str, reason: str) -> None:
    """The op's gradient has no case of its own, for a reason: name what covers it."""
    WITHOUT_GRADIENT_CASE[name] = reason


# Shapes that every element-wise op should meet: 0-d, empty, odd sizes around the vector widths,
# several axes.
SHAPES = [((),), ((0,),), ((3, 0, 2),), ((1,),), ((7,),), ((33,),), ((3, 5),), ((2, 3, 5, 7),)]
# And pairs of shapes that broadcast: scalars, rows, columns, both ways, missing axes, empty.
PAIRS = [
    ((), ()),
    ((7,), (7,)),
    ((33,), ()),
    ((), (33,)),
    ((3, 5), (5,)),
    ((5,), (3, 5)),
    ((3, 1), (1, 4)),
    ((2, 3, 4), (3, 1)),
    ((4, 1, 3), (2, 1)),
    ((0,), ()),
    ((3, 0), (1,)),
    ((0, 8, 1), (8, 64)),
    ((0, 1, 64), (3, 1)),
    ((0, 2, 1, 300), (2, 3, 1)),
    ((2, 70), (70,)),
    ((2, 70), (2, 1)),
    ((1, 2, 1, 3), (4, 1, 5, 1)),
]
