# SPDX-License-Identifier: Apache-2.0
"""Rules that take values as they are, in whatever shape: what large graphs are made of.

Each rule adds one op, or a pattern (a value joined with itself dozens of times), or raises Skip.
Recurrent cells stand in recurrent_rules.py, variables in variable_rules.py. FAMILIES gives the
rules by the profile of graph in which they are drawn.
"""

from __future__ import annotations

from typing import Any, Callable, Dict, List, Sequence, Tuple

import backend
import harness
import numpy as np

import interpreter
import recurrent_rules
import variable_rules
from builder import FLOATS, INTS, Builder, Skip
from program import Ref, dense

NUMBERS = harness.ALL_NUMBERS
REALS = harness.REALS
Rule = Callable[[Builder], Any]

ELEMENTWISE = sorted(n for n, d in backend.DESCRIPTIONS.items()
                     if d["elementwise"] and n in interpreter.OPS)
UNARY = [n for n in ELEMENTWISE if len(backend.DESCRIPTIONS[n]["inputs"]) == 1]
BINARY = [n for n in ELEMENTWISE if len(backend.DESCRIPTIONS[n]["inputs"]) == 2]
# Those whose second operand must keep away from 0, and those whose first must too.
DIVISIONS = ("RealDiv", "Div", "TruncateDiv", "FloorDiv", "FloorMod", "Mod", "TruncateMod",
             "DivNoNan", "Xdivy", "Xlogy", "Atan2")
# Those that only their cases give operands: others are outside the domain of the oracle.
BY_CASES = ("Complex", "Zeta", "Polygamma", "Igamma", "Igammac", "IgammaGradA",
            "IgammaGradAA")
SMOOTH_UNARY = ("Tanh", "Sigmoid", "Sin", "Cos", "Square", "Softplus", "Erf", "Neg", "Exp", "Atan",
                "Asinh", "Softsign", "Identity", "Gelu", "Cosh")
SMOOTH_BINARY = ("Add", "Sub", "Mul", "SquaredDifference")


def dtypes_of(op: str) -> List[str]:
    return [d for d in interpreter.OPS[op].options["dtypes"] if d != "string"]


def operand(b: Builder, op: str) -> Ref:
    """A value that the op takes, in its domain."""
    dtypes = dtypes_of(op)
    ref = b.pick(dtypes)
    low, high = interpreter.OPS[op].options["domain"]
    if (low, high) not in ((-2, 2), (-2.0, 2.0), (-9, 9), (-5, 5), (0, 2), (-3, 12), (-3, 3)):
        ref = b.within(ref, low, high)
    return ref


def partner(b: Builder, x: Ref) -> Ref:
    """Something that broadcasts with x, either way; now and then x itself."""
    shape, dtype = b.shape_of(x), b.dtype_of(x)
    draw = b.rng.random()
    if draw < 0.12:
        return x
    same = [r for r in b.pool[-80:] if b.dtype_of(r) == dtype and _broadcast(shape, b.shape_of(r))]
    if same and draw < 0.8:
        return b.one_of(same)
    other = [d if b.chance(0.6) else 1 for d in shape][int(b.rng.integers(0, len(shape) + 1)):]
    if b.chance(0.3):
        return b.shaped(b.pick([dtype]), other)
    return b.fresh(other, dtype)


def _broadcast(a: Sequence[int], b: Sequence[int]) -> bool:
    return all(x == y or 1 in (x, y) for x, y in zip(a[::-1], b[::-1]))


def within_size(b: Builder, x: Ref, y: Ref) -> None:
    if np.prod(np.broadcast_shapes(b.shape_of(x), b.shape_of(y))) > 4 * b.most:
        raise Skip


def unary(op: str = "") -> Rule:
    def rule(b: Builder) -> None:
        name = op or b.one_of(UNARY)
        attrs = {"Gelu": {"approximate": b.chance(0.5)}, "LeakyRelu": {"alpha": 0.25},
                 "Cast": {"DstT": "bool"}}.get(name, {})
        if name == "Cast":
            return cast(b)
        if name in ("Complex", "Real", "Imag", "Angle", "ComplexAbs"):
            raise Skip  # by their cases
        b.add(name, [operand(b, name)], **attrs)
    return rule


def binary(op: str = "") -> Rule:
    def rule(b: Builder) -> None:
        name = op or b.one_of(BINARY)
        if name in BY_CASES:
            raise Skip
        x = operand(b, name)
        y = partner(b, x)
        if name in DIVISIONS or name == "Pow":
            y = b.within(y, 1, 5 if name != "Pow" else 3)
        if name in ("Pow", "Atan2"):
            x = b.within(x, 1, 3)
        if name.endswith("Grad"):
            y = b.shaped(y, b.shape_of(x))
        within_size(b, x, y)
        b.add(name, [x, y], **({"alpha": 0.25} if name == "LeakyReluGrad" else
                               {"approximate": True} if name == "GeluGrad" else {}))
    return rule


def select(b: Builder) -> None:
    x = b.pick()
    y = partner(b, x)
    within_size(b, x, y)
    condition = b.pick(["bool"], lambda r: _broadcast(b.shape_of(r), b.shape_of(x)) and
                       _broadcast(b.shape_of(r), b.shape_of(y))) if b.chance(0.6) else b.put(
        "Less", [b.cast(x, "float32"), b.fresh((), "float32")])
    b.add("Select", [condition, x, y])


def clip(b: Builder) -> None:
    x = b.pick(REALS)
    dtype = b.dtype_of(x)
    low, high = (b.leaf(harness.stored(np.array(v), dtype), dtype, True) for v in (0, 2))
    b.add("ClipByValue", [x, low, high])


def cast(b: Builder) -> None:
    x = b.pick(FLOATS + INTS + ("bool",))
    b.cast(x, b.one_of(FLOATS + ("int32", "int64", "bool", "uint8", "int16", "complex64"))
           if b.chance(0.4) else b.dtype)


def add_n(b: Builder, most: int = 64) -> None:
    """Up to 64 inputs; one of them up to 64 times."""
    x = b.pick(NUMBERS)
    same = [r for r in b.pool if b.dtype_of(r) == b.dtype_of(x)
            and b.shape_of(r) == b.shape_of(x)]
    count = int(b.one_of([1, 2, 3, 5, 9, 16, 17, 18, 33, 64]))
    b.add("AddN", [[b.one_of(same) if b.chance(0.5) else x for _ in range(min(count, most))]])


def sum_of_products(b: Builder) -> None:
    """One weight used by many products, whose sum is one group: 17 and more inputs."""
    dtype = b.one_of(["float32", "float64"])
    count = int(b.one_of([2, 8, 16, 17, 20, 33, 64]))
    m, k, n = (int(b.one_of([1, 2, 5, 8, 16])) for _ in range(3))
    x = b.shaped(b.cast(b.pick(), dtype), (count, m, k))
    parts = b.add("Unpack", [x], num=count)
    weight = b.fresh((k, n), dtype)
    products = [b.put("MatMul", [(parts, j), weight]) for j in range(count)]
    if b.chance(0.5):
        products = [b.put(b.one_of(["Tanh", "Relu", "Neg"]), [p]) for p in products]
    if b.chance(0.6):
        b.add("AddN", [products])
    else:
        total = products[0]
        for product in products[1:]:
            total = b.put("Add", [total, product])


def concat(b: Builder) -> None:
    x = b.pick(fits=lambda r: 1 <= b.array(r).ndim)
    axis = int(b.rng.integers(b.array(x).ndim))
    rest = [d for j, d in enumerate(b.shape_of(x)) if j != axis]
    fit = [r for r in b.pool if b.dtype_of(r) == b.dtype_of(x)
           and len(b.shape_of(r)) == len(rest) + 1
           and [d for j, d in enumerate(b.shape_of(r)) if j != axis] == rest]
    count = int(b.one_of([1, 2, 2, 3, 5, 17, 64]))
    if count * b.array(x).size > 2 * b.most:
        count = 2
    items = [x] + [b.one_of(fit) for _ in range(count - 1)]
    b.add("Concat", [items, b.fixed(axis if b.chance(0.7) else axis - len(rest) - 1)])


def pack(b: Builder) -> None:
    x = b.pick()
    same = [r for r in b.pool if b.dtype_of(r) == b.dtype_of(x)
            and b.shape_of(r) == b.shape_of(x)]
    count = int(b.one_of([1, 2, 3, 5, 17, 64]))
    if count * b.array(x).size > 2 * b.most:
        count = 2
    b.add("Pack", [[x] + [b.one_of(same) for _ in range(count - 1)]],
          axis=int(b.rng.integers(-b.array(x).ndim - 1, b.array(x).ndim + 1)))


def unpack(b: Builder) -> None:
    x = b.pick(fits=lambda r: b.array(r).ndim >= 1 and 1 <= b.array(r).shape[0] <= 20)
    b.add("Unpack", [x], num=b.shape_of(x)[0], axis=0)


def split(b: Builder) -> None:
    x = b.pick(fits=lambda r: b.array(r).ndim >= 1)
    axis = int(b.rng.integers(b.array(x).ndim))
    size = b.shape_of(x)[axis]
    divisors = [d for d in range(1, min(size, 16) + 1) if size % d == 0]
    if b.chance(0.5) and divisors:
        b.add("Split", [b.fixed(axis), x], num_split=b.one_of(divisors))
        return
    first = int(b.rng.integers(0, size + 1))
    b.add("SplitV", [x, b.fixed([first, size - first]), b.fixed(axis)], num_split=2)


def identity(b: Builder) -> None:
    x = b.pick()
    name = b.one_of(["Identity", "StopGradient", "IdentityN"])
    b.add(name, [[x, b.pick()]] if name == "IdentityN" else [x])


def group(b: Builder) -> None:
    """Control edges: NoOp after some nodes, and a value after it."""
    nodes = list(b.program.nodes)
    done = b.add("NoOp", [], control=[b.one_of(nodes) for _ in range(int(b.rng.integers(1, 5)))])
    b.add("Identity", [b.pick()], control=[done])


def reduction(b: Builder) -> None:
    name = b.one_of(["Sum", "Mean", "Max", "Min", "Prod", "All", "Any", "EuclideanNorm"])
    if name in ("All", "Any"):
        x = b.pick(["bool"])
    else:
        x = b.pick(dtypes_of(name))
        if name == "Prod":
            x = b.within(x, 0.8, 1.2)
    rank = b.array(x).ndim
    axes = [int(a) for a in b.rng.permutation(rank)[:int(b.rng.integers(0, rank + 1))]]
    axes = [a - rank if b.chance(0.2) else a for a in axes]
    b.add(name, [x, b.fixed(np.array(axes, np.int32))], keep_dims=b.chance(0.4))


def arg(b: Builder) -> None:
    x = b.pick(REALS, lambda r: b.array(r).ndim >= 1 and b.array(r).size > 0)
    b.add(b.one_of(["ArgMax", "ArgMin"]), [x, b.fixed(int(b.rng.integers(b.array(x).ndim)))],
          output_type=b.one_of(["int32", "int64"]))


def scan(b: Builder) -> None:
    x = b.pick(FLOATS + ("int32", "int64"), lambda r: b.array(r).ndim >= 1)
    b.add("Cumsum", [x, b.fixed(int(b.rng.integers(b.array(x).ndim)))],
          exclusive=b.chance(0.5), reverse=b.chance(0.5))


def softmax(b: Builder) -> None:
    b.add(b.one_of(["Softmax", "LogSoftmax"]), [b.pick(FLOATS, lambda r: b.array(r).ndim >= 1)])


def matmul(b: Builder) -> None:
    """Transposes; now and then one value as both operands."""
    name = b.one_of(["MatMul", "BatchMatMul"])
    dtypes = [d for d in dtypes_of(name) if d not in ("int8", "uint8")]
    x = b.of_rank(2 if name == "MatMul" else int(b.one_of([2, 3, 4])), dtypes)
    ta, tb = b.chance(0.4), b.chance(0.4)
    shape = b.shape_of(x)
    inner = shape[-2] if ta else shape[-1]
    if b.chance(0.2) and ta != tb:
        y = x
    else:
        n = b.dim()
        wanted = (*shape[:-2], *((n, inner) if tb else (inner, n)))
        y = b.shaped(b.pick([b.dtype_of(x)]), wanted) if b.chance(0.4) else b.fresh(
            wanted, b.dtype_of(x))
    if np.prod(shape) * max(b.shape_of(y)[-2:]) > 400000:
        raise Skip
    flags = ("transpose_a", "transpose_b") if name == "MatMul" else ("adj_x", "adj_y")
    z = b.put(name, [x, y], **dict(zip(flags, (ta, tb))))
    if b.chance(0.5) and b.dtype_of(z) in FLOATS:
        z = b.put("BiasAdd", [z, b.fresh(b.shape_of(z)[-1:], b.dtype_of(z))])
        if b.chance(0.7):
            b.add(b.one_of(["Relu", "Tanh", "Sigmoid", "Elu", "Relu6", "Softplus"]), [z])


def convolution(b: Builder) -> None:
    x = b.of_rank(4, ("float32", "float64"))
    n, h, w, c = b.shape_of(x)
    kh, kw = min(h, int(b.one_of([1, 3, 3, 5]))), min(w, int(b.one_of([1, 3, 3, 5])))
    filters = b.fresh((kh, kw, c, int(b.one_of([1, 3, 8, 16]))), b.dtype_of(x))
    stride = int(b.one_of([1, 1, 2]))
    name = b.one_of(["Conv2D", "Conv2D", "DepthwiseConv2dNative"])
    if name != "Conv2D":
        filters = b.fresh((kh, kw, c, 1), b.dtype_of(x))
    y = b.put(name, [x, filters], strides=[1, stride, stride, 1],
              padding=b.one_of(["SAME", "VALID"]), options={"ulps": 256})
    if b.chance(0.6):
        y = b.put("BiasAdd", [y, b.fresh(b.shape_of(y)[-1:], b.dtype_of(y))])
    if b.chance(0.6):
        y = b.put(b.one_of(["Relu", "Tanh", "Elu", "Relu6"]), [y])
    if b.chance(0.5):
        pooling(b, y)


def pooling(b: Builder, x: Any = None) -> None:
    x = x or b.of_rank(4, FLOATS)
    _, h, w, _ = b.shape_of(x)
    kh, kw = (int(b.rng.integers(1, min(d, 3) + 1)) for d in (h, w))
    b.add(b.one_of(["MaxPool", "AvgPool"]), [x], ksize=[1, kh, kw, 1],
          strides=[1, int(b.one_of([1, 2])), int(b.one_of([1, 2])), 1],
          padding=b.one_of(["SAME", "VALID"]))


def reshape(b: Builder) -> None:
    """To a stated shape, or to one that the graph computes: Shape, StridedSlice, Pack."""
    x = b.pick()
    shape = list(b.shape_of(x))
    if len(shape) >= 2 and b.chance(0.6) and 0 not in shape:
        sizes = b.put("Shape", [x], structural=True)
        first = b.put("StridedSlice", [sizes, b.fixed([0]), b.fixed([1]), b.fixed([1])],
                      structural=True, shrink_axis_mask=1)
        b.add("Reshape", [x, b.put("Pack", [[first, b.fixed(-1)]], structural=True)])
        return
    wanted = [int(d) for d in b.rng.permutation(shape)]
    if wanted and b.chance(0.5) and 0 not in shape:
        wanted[int(b.rng.integers(len(wanted)))] = -1
    b.add("Reshape", [x, b.fixed(np.array(wanted, np.int32))])


def transpose(b: Builder) -> None:
    x = b.pick()
    b.add("Transpose", [x, b.fixed(b.rng.permutation(b.array(x).ndim).astype(np.int32))])


def axes(b: Builder) -> None:
    x = b.pick()
    if 1 in b.shape_of(x) and b.chance(0.5):
        b.add("Squeeze", [x], squeeze_dims=[b.shape_of(x).index(1)])
    else:
        b.add("ExpandDims", [x, b.fixed(int(b.rng.integers(-b.array(x).ndim - 1,
                                                           b.array(x).ndim + 1)))])


def slicing(b: Builder) -> None:
    x = b.pick(fits=lambda r: b.array(r).ndim >= 1)
    shape = b.shape_of(x)
    begin = [int(b.rng.integers(0, d + 1)) for d in shape]
    if b.chance(0.5):
        size = [-1 if b.chance(0.3) else int(b.rng.integers(0, d - o + 1))
                for d, o in zip(shape, begin)]
        b.add("Slice", [x, b.fixed(begin), b.fixed(size)])
        return
    end = [int(b.rng.integers(0, d + 1)) for d in shape]
    steps = [int(b.one_of([1, 1, 1, 2, -1, -2])) for _ in shape]
    masks = {m: int(b.rng.integers(0, 2 ** len(shape))) for m in ("begin_mask", "end_mask")}
    if b.chance(0.3) and shape[0] > 0:
        begin[0], end[0], steps[0] = 0, 1, 1
        masks.update(shrink_axis_mask=1)
    b.add("StridedSlice", [x, b.fixed(begin), b.fixed(end), b.fixed(steps)], **masks)


def gather(b: Builder) -> None:
    """The same row several times, out of any axis."""
    x = b.pick(fits=lambda r: b.array(r).ndim >= 1)
    axis = int(b.rng.integers(b.array(x).ndim))
    size = b.shape_of(x)[axis]
    if size == 0:
        raise Skip
    indices = b.rng.integers(0, size, b.shape(int(b.one_of([0, 1, 1, 2])), 40))
    kind = b.one_of(["int32", "int64"])
    place = b.leaf(indices.astype(kind), kind, True, b.one_of(["Const", "Placeholder"]))
    b.add("Gather", [x, place, b.fixed(axis)])


def segments(b: Builder) -> None:
    x = b.pick(FLOATS + ("int32", "int64"), lambda r: b.array(r).ndim >= 1)
    count = int(b.one_of([1, 3, 8]))
    numbers = b.rng.integers(0, count, b.shape_of(x)[:1]).astype(np.int32)
    ids = b.leaf(numbers, "int32", True, b.one_of(["Const", "Placeholder"]))
    b.add(b.one_of(["UnsortedSegmentSum", "UnsortedSegmentMax"]), [x, ids, b.fixed(count)])


def layout(b: Builder) -> None:
    x = b.pick(fits=lambda r: b.array(r).ndim >= 1)
    rank = b.array(x).ndim
    name = b.one_of(["Tile", "Pad", "Reverse", "BroadcastTo"])
    if name == "Tile":
        times = [int(b.one_of([1, 1, 2, 3])) for _ in range(rank)]
        if np.prod(times) * b.array(x).size > b.most:
            raise Skip
        b.add("Tile", [x, b.fixed(times)])
    elif name == "Pad":
        zero = b.leaf(harness.stored(np.array(0), b.dtype_of(x)), b.dtype_of(x), True)
        b.add("Pad", [x, b.fixed([[int(v) for v in b.rng.integers(0, 3, 2)]
                                  for _ in range(rank)]), zero])
    elif name == "Reverse":
        b.add("Reverse", [x, b.fixed([int(b.rng.integers(rank))])])
    else:
        b.add("BroadcastTo", [x, b.fixed([2, *b.shape_of(x)])])


def measures(b: Builder) -> None:
    """Numbers about shapes, used as values."""
    x = b.pick()
    name = b.one_of(["Shape", "Size", "Rank", "ZerosLike", "OnesLike"])
    b.add(name, [x])


def symmetric(b: Builder) -> None:
    """The same op twice, operands exchanged: what merging may take for one."""
    name = b.one_of(["Maximum", "Minimum", "Add", "Mul", "SquaredDifference", "Sub", "Equal"])
    dtype = b.dtype if b.dtype in dtypes_of(name) else "float32"
    shape = b.shape(most=200)
    zeros = harness.stored(b.rng.choice([0.0, -0.0, 1.0, -1.0], shape), dtype)
    x = b.leaf(dense(zeros), dtype)
    y = b.leaf(dense(-zeros if dtype != "bfloat16" else zeros ^ np.uint16(0x8000)), dtype)
    b.add(name, [x, y])
    b.add(name, [y, x])
    b.add(name, [x, y])


def constants(b: Builder) -> None:
    """A branch that folds as a whole, behind what passes values on."""
    x = b.leaf(b.random(b.shape(most=100), b.dtype), b.dtype, kind="Const")
    y = b.put(b.one_of(["Identity", "StopGradient"]), [x])
    if b.dtype in dtypes_of("Mul"):
        b.add("Mul", [y, y])
        b.add("Add", [y, x])


# --- Smooth, for gradients


def smooth_unary(b: Builder) -> None:
    unary(b.one_of(SMOOTH_UNARY))(b)


def smooth_binary(b: Builder) -> None:
    binary(b.one_of(SMOOTH_BINARY))(b)


def smooth_reduction(b: Builder) -> None:
    x = b.pick()
    rank = b.array(x).ndim
    found = [int(a) for a in b.rng.permutation(rank)[:int(b.rng.integers(0, rank + 1))]]
    b.add(b.one_of(["Sum", "Mean"]), [x, b.fixed(np.array(found, np.int32))],
          keep_dims=b.chance(0.4))


Weighted = List[Tuple[float, Rule]]
MOVEMENT: Weighted = [(1, concat), (1, pack), (1, unpack), (1, split), (2, reshape), (1, transpose),
                      (1, axes), (2, slicing), (1, gather), (1, layout), (0.5, measures)]
ELEMENT: Weighted = [(6, unary()), (8, binary()), (1, select), (0.7, clip), (1, cast),
                     (1, identity), (0.6, symmetric), (0.5, constants), (1, add_n)]
NUMERIC: Weighted = [(2, reduction), (0.7, arg), (0.7, scan), (1, softmax), (2, matmul),
                     (0.7, convolution), (0.5, pooling), (0.7, segments)]
SMOOTH: Weighted = [(5, smooth_unary), (6, smooth_binary), (1, smooth_reduction), (1.5, matmul),
                    (0.5, convolution), (1, softmax), (0.5, add_n), (0.5, scan), (1, concat),
                    (1, reshape), (1, transpose), (1, slicing), (1, gather), (0.5, layout),
                    (0.3, pack), (0.5, axes)]
FAMILIES: Dict[str, Weighted] = {
    "mixed": [*MOVEMENT, *ELEMENT, *NUMERIC, (0.3, group)],
    "elementwise": [*ELEMENT, (0.5, reshape), (0.5, slicing), (0.3, transpose), (0.5, reduction)],
    "joins": [(2, add_n), (2, concat), (2, pack), (1, unpack), (1, split), (2, sum_of_products),
              *ELEMENT, (1, identity), (1, group)],
    "recurrent": [(1, recurrent_rules.plain), (1, recurrent_rules.lstm), *ELEMENT, (1, reduction)],
    "images": [(3, convolution), (2, pooling), *ELEMENT, (1, reduction), (1, layout)],
    "variables": [(4, variable_rules.reading), (6, variable_rules.assigning),
                  (4, variable_rules.scattering), *ELEMENT, (2, matmul),
                  (1, reduction), (1, group)],
    "gradient": SMOOTH,
}
