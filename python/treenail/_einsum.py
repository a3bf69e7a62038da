# SPDX-License-Identifier: Apache-2.0
"""einsum by transposition, batched matrix products and sums. Operands are contracted pairwise from
the left."""

from __future__ import annotations

from treenail._convert import convert_to_tensor, scope_of
from treenail._ops import ops
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def _parse(equation: str, count: int) -> tuple:
    text = equation.replace(" ", "")
    left, arrow, output = text.partition("->")
    labels = left.split(",")
    if len(labels) != count:
        raise ValueError("einsum equation %r names %d operands, %d were given"
                         % (equation, len(labels), count))
    for part in labels + [output]:
        if part and not part.isalpha():
            raise ValueError("einsum equation %r: only letters, ',' and '->' are understood"
                             % equation)
        if len(set(part)) != len(part):
            raise ValueError("einsum equation %r repeats an index within %r" % (equation, part))
    if not arrow:
        joined = "".join(labels)
        output = "".join(sorted(c for c in set(joined) if joined.count(c) == 1))
    unknown = set(output) - set("".join(labels))
    if unknown:
        raise ValueError("einsum equation %r: index %r of the output is in no operand"
                         % (equation, sorted(unknown)[0]))
    return labels, output


def _ordered(tensor: Tensor, labels: str, wanted: str) -> Tensor:
    perm = [labels.index(c) for c in wanted]
    return tensor if perm == list(range(len(perm))) else ops.Transpose(tensor, perm)


def _summed(tensor: Tensor, labels: str, keep: str) -> tuple:
    """Sums out the indices that nobody else needs."""
    axes = [i for i, c in enumerate(labels) if c not in keep]
    if not axes:
        return tensor, labels
    return ops.Sum(tensor, axes), "".join(c for c in labels if c in keep)


def _sizes(tensor: Tensor, labels: str) -> dict:
    static = tensor.shape
    dynamic = None
    result = {}
    for i, c in enumerate(labels):
        extent = static[i] if static.ndims is not None else None
        if extent is None:
            if dynamic is None:
                dynamic = ops.Shape(tensor)
            extent = dynamic[i]
        result[c] = extent
    return result


def _extent_vector(extents: list) -> Any:
    if all(isinstance(e, int) for e in extents):
        return extents
    return ops.Pack([convert_to_tensor(e, "int32") for e in extents])


def _product(extents: list) -> Any:
    total = 1
    for extent in extents:
        total = extent if isinstance(total, int) and total == 1 else total * extent
    return total


def _pair(a: Tensor, a_labels: str, b: Tensor, b_labels: str, keep: str) -> tuple:
    """a and b contracted to the indices in `keep`, by one batched matrix product."""
    a, a_labels = _summed(a, a_labels, keep + b_labels)
    b, b_labels = _summed(b, b_labels, keep + a_labels)
    shared = [c for c in a_labels if c in b_labels]
    batch = "".join(c for c in shared if c in keep)
    inner = "".join(c for c in shared if c not in keep)
    a_free = "".join(c for c in a_labels if c not in shared)
    b_free = "".join(c for c in b_labels if c not in shared)
    a = _ordered(a, a_labels, batch + a_free + inner)
    b = _ordered(b, b_labels, batch + inner + b_free)
    sizes = {**_sizes(a, batch + a_free + inner), **_sizes(b, batch + inner + b_free)}

    def matrix(tensor: Tensor, rows: str, columns: str) -> Tensor:
        extents = [sizes[c] for c in batch] + [_product([sizes[c] for c in rows]),
                                               _product([sizes[c] for c in columns])]
        return ops.Reshape(tensor, _extent_vector(extents))

    a_matrix, b_matrix = matrix(a, a_free, inner), matrix(b, inner, b_free)
    product = ops.BatchMatMul(a_matrix, b_matrix) if batch else ops.MatMul(a_matrix, b_matrix)
    labels = batch + a_free + b_free
    return ops.Reshape(product, _extent_vector([sizes[c] for c in labels])), labels


def einsum(equation: str, inputs: Sequence, name: str | None) -> Tensor:
    """See treenail.einsum."""
    with scope_of(name, "einsum", inputs) as scope:
        tensors = [convert_to_tensor(inputs[0])] if inputs else []
        for x in inputs[1:]:
            tensors.append(convert_to_tensor(x, None if hasattr(x, "dtype") else tensors[0].dtype))
        labels, output = _parse(equation, len(tensors))
        for tensor, part in zip(tensors, labels):
            if tensor.shape.ndims is not None and tensor.shape.ndims != len(part):
                raise ValueError("einsum equation %r: operand %r has rank %d"
                                 % (equation, part, tensor.shape.ndims))
        result, have = tensors[0], labels[0]
        for i in range(1, len(tensors)):
            keep = output + "".join(labels[i + 1:])
            result, have = _pair(result, have, tensors[i], labels[i], keep)
        result, have = _summed(result, have, output)
        return ops.Identity(_ordered(result, have, output), name=scope)
