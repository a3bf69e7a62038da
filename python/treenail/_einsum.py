# SPDX-License-Identifier: Apache-2.0
"""einsum by transpositions, products of matrices and sums, pair by pair. What an equation means:
_einsum_equation; which pair comes first: _einsum_path."""

from __future__ import annotations

from treenail._convert import convert_to_tensor, scope_of
from treenail._einsum_equation import MERGED, parse, title
from treenail._einsum_path import UNKNOWN, checked_path, contraction_path
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def _text(shape: Any) -> str:
    return "[%s]" % ",".join("?" if d is None else "%d" % d for d in shape)


def _node(what: str, indices: str) -> str | None:
    """The name of a node that fails in a run if one of these indices has extents that contradict:
    the error shows it."""
    letters = "".join(c for c in indices if c.isascii())
    if letters != indices:
        letters += "_ellipsis"
    return "%s_of_index_%s" % (what, letters.lstrip("_")) if indices else None


def _dense_shape(tensor: Tensor) -> Tensor:
    return ops.Shape(tensor, out_type="int64")


def _extent_vector(extents: list) -> Any:
    if all(isinstance(e, int) for e in extents):
        return convert_to_tensor(extents, "int64")
    return ops.Pack([convert_to_tensor(e, "int64") for e in extents])


def _product(extents: list) -> Any:
    total: Any = 1
    for extent in extents:
        total = extent if isinstance(total, int) and total == 1 else total * extent
    return total


class _Operand:
    """A tensor with an index for each axis, and its extents: numbers where known, else scalars of
    its Shape."""

    def __init__(self, tensor: Tensor, labels: str) -> None:
        self.tensor, self.labels = tensor, labels
        self.static = (list(tensor.shape) if tensor.shape.ndims is not None
                       else [None] * len(labels))
        self._dynamic: Any = None

    def known(self, c: str) -> int | None:
        return self.static[self.labels.index(c)]

    def extent(self, c: str) -> Any:
        i = self.labels.index(c)
        if self.static[i] is not None:
            return self.static[i]
        if self._dynamic is None:
            self._dynamic = _dense_shape(self.tensor)
        return self._dynamic[i]

    def extents(self, labels: str) -> list:
        return [self.extent(c) for c in labels]

    def ordered(self, wanted: str) -> _Operand:
        """With its axes in another order."""
        if wanted == self.labels:
            return self
        return _Operand(ops.Transpose(self.tensor, [self.labels.index(c) for c in wanted]), wanted)

    def summed(self, keep: str) -> _Operand:
        """Without the indices that nobody else needs."""
        axes = [i for i, c in enumerate(self.labels) if c not in keep]
        if not axes:
            return self
        return _Operand(ops.Sum(self.tensor, axes), "".join(c for c in self.labels if c in keep))


# --- Ellipses of unknown rank ---------------------------------------------------------------------

class _Ellipses:
    """Operands with ellipses of which not all ranks are known: their axes are broadcast in a run,
    and stand as one axis while sums are formed."""

    def __init__(self, tensors: Sequence[Tensor], labels: Sequence[str]) -> None:
        self._some = [MERGED in part for part in labels]
        self._shapes = [_dense_shape(t) if some else None for t, some in zip(tensors, self._some)]
        parts = []
        for shape, part in zip(self._shapes, labels):
            before, after = part.partition(MERGED)[::2]
            stop = -len(after) or None
            parts.append(None if shape is None else (
                shape[:len(before)], shape[len(before):stop],
                shape[stop:] if stop is not None else shape[:0]))
        self._parts = parts
        inner = [part[1] for part in parts if part is not None]
        self.extents = inner[0]
        for other in inner[1:]:
            self.extents = ops.BroadcastArgs(self.extents, other, name="extents_of_the_ellipsis")
        self._broadcast = len(inner) > 1

    def merged(self, i: int, tensor: Tensor) -> Tensor:
        if not self._some[i]:
            return tensor
        before, inner, after = self._parts[i]
        if self._broadcast:
            missing = ops.Sub(ops.Size(self.extents), ops.Size(inner))
            ones = ops.Fill(ops.Reshape(missing, [1]), convert_to_tensor(1, "int64"))
            tensor = ops.Reshape(tensor, ops.Concat([before, ones, inner, after], 0))
            tensor = ops.BroadcastTo(tensor, ops.Concat([before, self.extents, after], 0))
        whole = ops.Prod(self.extents, [0], keep_dims=True)
        return ops.Reshape(tensor, ops.Concat([before, whole, after], 0))

    def split(self, tensor: Tensor, labels: str) -> Tensor:
        if MERGED not in labels:
            return tensor
        at, shape = labels.index(MERGED), _dense_shape(tensor)
        return ops.Reshape(tensor, ops.Concat([shape[:at], self.extents, shape[at + 1:]], 0))


# --- Operands before they meet --------------------------------------------------------------------

def _with_rank(i: int, tensor: Tensor, labels: str) -> Tensor:
    """With as many axes as indices, which a run checks where that is not known."""
    if tensor.shape.ndims is not None:
        return tensor
    return ops.EnsureShape(tensor, shape=TensorShape([None] * len(labels)),
                           name="rank_of_operand_%d" % i)


def _diagonals(equation: str, operand: _Operand) -> _Operand:
    """Axes that share an index become one: their diagonal, which is the last axis."""
    for c in dict.fromkeys(operand.labels):
        while operand.labels.count(c) > 1:
            labels, known = operand.labels, operand.static
            i = labels.index(c)
            j = labels.index(c, i + 1)
            if None not in (known[i], known[j]) and known[i] != known[j]:
                raise ValueError("einsum equation %r: the axes of index %s within one operand must "
                                 "have one extent, not those of %s"
                                 % (equation, title(c), _text(known)))
            rest = [k for k in range(len(labels)) if k not in (i, j)]
            square = ops.Transpose(operand.tensor, rest + [i, j])
            if None in (known[i], known[j]):
                square = _as_square(square, c)
            operand = _Operand(ops.MatrixDiagPart(square), "".join(labels[k] for k in rest) + c)
    return operand


def _as_square(tensor: Tensor, c: str) -> Tensor:
    """Refuses, in a run, last axes of unequal extents: a square has as many elements only then."""
    shape = _dense_shape(tensor)
    last = tensor.shape.ndims - 1
    side = shape[last:]
    return ops.Reshape(tensor, ops.Concat([shape[:last - 1], side, side], 0),
                       name=_node("diagonal", c))


def _check_extents(equation: str, operands: list) -> None:
    """Raises ValueError where known extents contradict; 1 goes with any other, as in NumPy."""
    seen: dict = {}
    for i, operand in enumerate(operands):
        for c, extent in zip(operand.labels, operand.static):
            if extent in (None, 1):
                continue
            first, before = seen.setdefault(c, (i, extent))
            if before != extent:
                raise ValueError("einsum equation %r: index %s has extent %d in operand %d (%s) "
                                 "and %d in operand %d (%s)"
                                 % (equation, title(c), before, first,
                                    _text(operands[first].static), extent, i,
                                    _text(operand.static)))


def _without_ones(operands: list) -> list:
    """Drops an axis known to be 1 where another operand has the index with perhaps more: to stretch
    it and to leave it out is the same."""
    wider = {c for o in operands for c, e in zip(o.labels, o.static) if e != 1}
    result = []
    for o in operands:
        ones = [i for i, c in enumerate(o.labels) if o.static[i] == 1 and c in wider]
        result.append(o if not ones else _Operand(
            ops.Squeeze(o.tensor, squeeze_dims=ones),
            "".join(c for i, c in enumerate(o.labels) if i not in ones)))
    return result


def _estimates(operands: list) -> tuple:
    """Pairs of an index and the extent that it counts for."""
    found: dict = {}
    for o in operands:
        for c, e in zip(o.labels, o.static):
            found[c] = max(found.get(c, 0), UNKNOWN if e is None else e)
    return tuple(sorted(found.items()))


# --- Pairs ----------------------------------------------------------------------------------------

def _expanded(operand: _Operand, wanted: str) -> Tensor:
    """With axes of 1 for the indices that it lacks."""
    tensor = operand.ordered("".join(c for c in wanted if c in operand.labels)).tensor
    for i, c in enumerate(wanted):
        if c not in operand.labels:
            tensor = ops.ExpandDims(tensor, i)
    return tensor


def _multiplied(a: _Operand, b: _Operand, wanted: str) -> _Operand:
    """Element by element: no index is summed."""
    product = ops.Mul(_expanded(a, wanted), _expanded(b, wanted),
                      name=_node("product", "".join(c for c in a.labels if c in b.labels)))
    return _Operand(product, wanted)


def _layouts(a: _Operand, b: _Operand, batch: str, inner: str) -> list:
    """(order of the batch indices, of the contracted ones, whether a matrix of a and of b is given
    transposed), the one with the fewest elements to move first."""
    def cost(operand: _Operand, wanted: str) -> float:
        total = 1.0
        for e in operand.static:
            total *= UNKNOWN if e is None else e
        return 0.0 if operand.labels == wanted else total

    turned = (False, True) if not (batch and a.tensor.dtype.is_complex) else (False,)
    found = []
    for outer in dict.fromkeys(("".join(c for c in o.labels if c in batch) for o in (a, b))):
        for depth in dict.fromkeys(("".join(c for c in o.labels if c in inner) for o in (a, b))):
            for ta in turned:
                for tb in turned:
                    found.append((cost(a, _order(a, outer, depth, not ta))
                                  + cost(b, _order(b, outer, depth, tb)), outer, depth, ta, tb))
    return min(found, key=lambda entry: entry[0])[1:]


def _order(operand: _Operand, batch: str, inner: str, inner_last: bool) -> str:
    free = "".join(c for c in operand.labels if c not in batch + inner)
    return batch + (free + inner if inner_last else inner + free)


def _stretched(a: _Operand, b: _Operand, inner: str) -> tuple:
    """The same with equal contracted extents. Where these are not all known, a run compares them,
    and stretches 1 as NumPy does."""
    if all(a.known(c) is not None and a.known(c) == b.known(c) for c in inner):
        return a, b
    shared = dict(zip(inner, ops.Unpack(
        ops.BroadcastArgs(_extent_vector(a.extents(inner)), _extent_vector(b.extents(inner)),
                          name=_node("extent", inner)), num=len(inner))))
    stretched = []
    for o in (a, b):
        extents = [shared[c] if c in inner else o.extent(c) for c in o.labels]
        stretched.append(_Operand(ops.BroadcastTo(o.tensor, _extent_vector(extents)), o.labels))
    return tuple(stretched)


def _as_matrices(operand: _Operand, batch: str, first: str, second: str) -> Tensor:
    """[batch, first, second] with one axis for all indices of `first` and one for `second`."""
    if len(first) == 1 and len(second) == 1:
        return operand.tensor
    sides = [_product(operand.extents(first)), _product(operand.extents(second))]
    return ops.Reshape(operand.tensor, _extent_vector(operand.extents(batch) + sides))


def _contracted(a: _Operand, b: _Operand, batch: str, inner: str) -> _Operand:
    """By one product of matrices. The indices that stay and are in both are its batch axes, one
    each: the product itself compares and broadcasts them."""
    a, b = _stretched(a, b, inner)
    batch, inner, ta, tb = _layouts(a, b, batch, inner)
    a = a.ordered(_order(a, batch, inner, not ta))
    b = b.ordered(_order(b, batch, inner, tb))
    rows = "".join(c for c in a.labels if c not in batch + inner)
    columns = "".join(c for c in b.labels if c not in batch + inner)
    left = _as_matrices(a, batch, *((inner, rows) if ta else (rows, inner)))
    right = _as_matrices(b, batch, *((columns, inner) if tb else (inner, columns)))
    if batch:
        product = ops.BatchMatMul(left, right, adj_x=ta, adj_y=tb, name=_node("product", batch))
    else:
        product = ops.MatMul(left, right, transpose_a=ta, transpose_b=tb)
    if len(rows) != 1 or len(columns) != 1:
        extents = _Operand(product, batch + "??").extents(batch)
        extents += a.extents(rows) + b.extents(columns)
        product = ops.Reshape(product, _extent_vector(extents))
    return _Operand(product, batch + rows + columns)


def _pair(a: _Operand, b: _Operand, keep: str, output: str) -> _Operand:
    """a and b contracted to the indices in `keep`, if possible in the order of the output."""
    a, b = a.summed(keep + b.labels), b.summed(keep + a.labels)
    inner = "".join(c for c in a.labels if c in b.labels and c not in keep)
    batch = "".join(c for c in a.labels if c in b.labels and c in keep)
    every = a.labels + "".join(c for c in b.labels if c not in a.labels)
    if not inner:
        wanted = output if set(output) == set(every) else every
        return _multiplied(a, b, wanted)
    free = [c for c in output if c in every and c not in batch]
    if free and free[0] in b.labels:
        a, b = b, a
    return _contracted(a, b, batch, inner)


def _prepared(equation: str, tensors: list) -> tuple:
    """(operands whose indices are all different, the output's indices, what gives an ellipsis of
    unknown rank its axes back)."""
    if not isinstance(equation, str):
        raise TypeError("equation must be a string, not %r" % (equation,))
    labels, output = parse(equation, tuple(t.shape.ndims for t in tensors))
    ellipses = None
    if any(MERGED in part for part in labels):
        ellipses = _Ellipses(tensors, labels)
        tensors = [ellipses.merged(i, t) for i, t in enumerate(tensors)]
    operands = [_diagonals(equation, _Operand(_with_rank(i, t, part), part))
                for i, (t, part) in enumerate(zip(tensors, labels))]
    _check_extents(equation, operands)
    return _without_ones(operands), output, ellipses


def einsum(equation: str, inputs: Sequence, optimize: Any, name: str | None) -> Tensor:
    """See treenail.einsum."""
    with scope_of(name, "einsum", inputs) as scope:
        tensors = [convert_to_tensor(inputs[0])] if inputs else []
        for x in inputs[1:]:
            tensors.append(convert_to_tensor(x, None if hasattr(x, "dtype") else tensors[0].dtype))
        path = checked_path(optimize, len(tensors))
        operands, output, ellipses = _prepared(equation, tensors)
        for i, o in enumerate(operands):
            others = "".join(other.labels for other in operands[:i] + operands[i + 1:])
            operands[i] = o.summed(output + others)
        if isinstance(path, str):
            path = contraction_path(tuple(o.labels for o in operands), output,
                                    _estimates(operands), path)
        for i, j in path:
            a, b = operands[i], operands[j]
            operands = [o for k, o in enumerate(operands) if k not in (i, j)]
            keep = output + "".join(o.labels for o in operands)
            operands.append(_pair(a, b, keep, output))
        result = operands[0].summed(output).ordered(output).tensor
        if ellipses is not None:
            result = ellipses.split(result, output)
        return ops.Identity(result, name=scope)
