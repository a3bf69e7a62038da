# SPDX-License-Identifier: Apache-2.0
"""Matrix products and what is made of them."""

from __future__ import annotations

from treenail._convert import constant
from treenail._math import einsum
from treenail._ops import ops
from treenail.onnx._node import Node
from treenail.onnx._registry import converter
from treenail.onnx._shapes import scalar

TYPE_CHECKING = False
if TYPE_CHECKING:
    from treenail._treenail import Tensor


def matmul(node: Node, x: Tensor, y: Tensor) -> Tensor:
    """NumPy's matmul: vectors are rows or columns whose axis goes again, stacks broadcast."""
    ranks = x.shape.ndims, y.shape.ndims
    if None in ranks:
        node.refuse("the ranks of the factors must be known")
    if 0 in ranks:
        node.fail("a factor has no axes")
    x = ops.ExpandDims(x, scalar(0)) if ranks[0] == 1 else x
    y = ops.ExpandDims(y, scalar(1)) if ranks[1] == 1 else y
    result = _product(x, y)
    gone = [-2] * (ranks[0] == 1) + [-1] * (ranks[1] == 1)
    return ops.Squeeze(result, squeeze_dims=gone) if gone else result


def _product(x: Tensor, y: Tensor) -> Tensor:
    plain = x.shape.ndims == 2 and y.shape.ndims == 2
    return ops.MatMul(x, y) if plain else ops.BatchMatMul(x, y)


@converter("MatMul")
def _matmul(node: Node) -> Tensor:
    return matmul(node, node.input(0), node.input(1))


@converter("Gemm", sets={"broadcast": (1, 6), "beta": (1, None)})
def _gemm(node: Node) -> Tensor:
    """alpha A' B' + beta C."""
    a, b = node.input(0), node.input(1)
    trans_a, trans_b = node.flag("transA"), node.flag("transB")
    result = ops.MatMul(a, b, transpose_a=trans_a, transpose_b=trans_b)
    result = _scaled(result, node.float("alpha", 1.0))
    c = node.optional(2)
    return result if c is None else ops.Add(result, _scaled(c, node.float("beta", 1.0)))


def _scaled(x: Tensor, factor: float) -> Tensor:
    if factor == 1.0:
        return x
    if x.dtype.is_floating:
        return ops.Mul(x, constant(factor, x.dtype))
    return ops.Cast(ops.Mul(ops.Cast(x, "float64"), constant(factor, "float64")), x.dtype)


@converter("Einsum")
def _einsum(node: Node) -> Tensor:
    return einsum(node.string("equation"), *node.every())
