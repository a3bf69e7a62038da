# SPDX-License-Identifier: Apache-2.0
"""Arithmetic, reductions and linear algebra: TensorFlow 1's math functions."""

from __future__ import annotations

import builtins
from operator import index as _index

from treenail import _treenail as _core
from treenail._array import _one_of, concat
from treenail._convert import (IndexedSlices, constant_value, convert_beside,
                               convert_n_to_tensor, convert_to_tensor, scope_of)
from treenail._framework import graph_of
from treenail._ops import ops
from treenail._refusals import at_once
from treenail._shape import TensorShape
from treenail._sparse import SparseTensor
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


# --- Casts ----------------------------------------------------------------------------------------

def cast(x: Any, dtype: Any, name: str | None = None) -> Any:
    """`x` with elements of another dtype. float to int truncates toward zero and saturates; NaN
    gives 0."""
    dtype = _core.as_dtype(dtype)
    if isinstance(x, (IndexedSlices, SparseTensor)):
        return _with_values(x, cast(x.values, dtype, name))
    x = convert_to_tensor(x)
    return x if x.dtype == dtype else ops.Cast(x, dtype, name=name)


def _with_values(x: Any, values: Tensor) -> Any:
    """An IndexedSlices or SparseTensor with other values in the same places."""
    if isinstance(x, SparseTensor):
        return SparseTensor(x.indices, values, x.dense_shape)
    return IndexedSlices(values, x.indices, x.dense_shape)


def saturate_cast(value: Any, dtype: Any, name: str | None = None) -> Tensor:
    """`value` clipped to the range of `dtype`, then cast."""
    with scope_of(name, "saturate_cast", [value]):
        value, dtype = convert_to_tensor(value), _core.as_dtype(dtype)
        if value.dtype.min < dtype.min:
            value = ops.Maximum(value, convert_to_tensor(dtype.min, value.dtype))
        if value.dtype.max > dtype.max:
            value = ops.Minimum(value, convert_to_tensor(dtype.max, value.dtype))
        return cast(value, dtype)


def _cast_function(dtype, name: str):
    def function(x: Any, name: str = name) -> Tensor:
        return cast(x, dtype, name)
    function.__name__ = function.__qualname__ = name
    function.__doc__ = "cast(x, %s)." % dtype.name
    return function


to_float = _cast_function(_core.float32, "ToFloat")
to_double = _cast_function(_core.float64, "ToDouble")
to_int32 = _cast_function(_core.int32, "ToInt32")
to_int64 = _cast_function(_core.int64, "ToInt64")
to_bfloat16 = _cast_function(_core.bfloat16, "ToBFloat16")
to_complex64 = _cast_function(_core.complex64, "ToComplex64")
to_complex128 = _cast_function(_core.complex128, "ToComplex128")


# --- Element-wise ---------------------------------------------------------------------------------

def _unary(op_name: str, public_name: str, doc: str):
    """A function of one tensor that is 0 at 0: so it works on the values of a SparseTensor and the
    rows of IndexedSlices, too."""
    def function(x: Any, name: str | None = None) -> Any:
        if isinstance(x, (IndexedSlices, SparseTensor)):
            return _with_values(x, getattr(ops, op_name)(x.values, name=name))
        return getattr(ops, op_name)(x, name=name)
    function.__name__ = function.__qualname__ = public_name
    function.__doc__ = doc
    return function


square = _unary("Square", "square", "x * x, element by element.")
sqrt = _unary("Sqrt", "sqrt", "The square root of each element; NaN for negative ones.")
negative = _unary("Neg", "negative", "-x, element by element.")
sign = _unary("Sign", "sign", "-1, 0 or 1: the sign of each element.")
tanh = _unary("Tanh", "tanh", "The hyperbolic tangent of each element.")
erf = _unary("Erf", "erf", "The Gauss error function of each element.")
neg = negative


def abs(x: Any, name: str | None = None) -> Any:
    """The absolute value of each element; of complex numbers the modulus, a real tensor."""
    if isinstance(x, (IndexedSlices, SparseTensor)):
        return _with_values(x, abs(x.values, name))
    x = convert_to_tensor(x)
    if x.dtype.is_complex:
        return ops.ComplexAbs(x, Tout=x.dtype.real_dtype, name=name)
    return ops.Abs(x, name=name)


def _binary(op_name: str, public_name: str, doc: str):
    """A function x, y -> z whose parameters TensorFlow 1 calls x and y."""
    def function(x: Any, y: Any, name: str | None = None) -> Tensor:
        return getattr(ops, op_name)(x, y, name=name)
    function.__name__ = function.__qualname__ = public_name
    function.__doc__ = doc
    return function


subtract = _binary("Sub", "subtract", "x - y, element by element, with broadcasting.")
multiply = _binary("Mul", "multiply", "x * y, element by element, with broadcasting.")
realdiv = _binary("RealDiv", "realdiv", "x / y for floating-point and complex types.")
floordiv = _binary("FloorDiv", "floordiv", "x / y rounded toward minus infinity.")
floor_div = floordiv
floormod = _binary("FloorMod", "floormod", "The remainder of floordiv: it has the sign of y.")
mod = floormod
truncatediv = _binary("TruncateDiv", "truncatediv", "x / y rounded toward zero, for integers.")
truncatemod = _binary("TruncateMod", "truncatemod",
                      "The remainder of truncatediv, as C's % and fmod: it has the sign of x. "
                      "Gradients are 1 for x and -truncatediv(x, y) for y; TensorFlow has none.")
div_no_nan = _binary("DivNoNan", "div_no_nan", "x / y, and 0 where y is 0.")
multiply_no_nan = _binary("MulNoNan", "multiply_no_nan",
                          "x * y, and 0 where y is 0, even if x is infinite or NaN.")
pow = _binary("Pow", "pow", "x to the power of y.")
sub, mul = subtract, multiply


def div(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as Python 2 divides: for integers rounded toward minus infinity."""
    with scope_of(name, "div", [x, y]) as scope:
        x, y = convert_beside(convert_to_tensor(x), y)
        op = ops.RealDiv if x.dtype.is_floating or x.dtype.is_complex else ops.FloorDiv
        return op(x, y, name=scope)


_WIDE = {"int8": "float32", "uint8": "float32", "int16": "float32", "uint16": "float32",
         "bool": "float32", "int32": "float64", "uint32": "float64", "int64": "float64",
         "uint64": "float64"}


def truediv(x: Any, y: Any, name: str | None = None) -> Tensor:
    """x / y as Python 3 divides: 8- and 16-bit integers become float32, wider ones float64."""
    with scope_of(name, "truediv", [x, y]) as scope:
        if isinstance(y, Tensor) and not isinstance(x, Tensor):
            y, x = convert_beside(y, x)
        else:
            x, y = convert_beside(convert_to_tensor(x), y)
        if x.dtype != y.dtype:
            raise TypeError("x and y must have the same dtype, got %s != %s"
                            % (x.dtype.name, y.dtype.name))
        wide = _WIDE.get(x.dtype.name)
        if wide is not None:
            x, y = ops.Cast(x, wide), ops.Cast(y, wide)
        return ops.RealDiv(x, y, name=scope)


divide = truediv


def logical_xor(x: Any, y: Any, name: str | None = "LogicalXor") -> Tensor:
    """Whether exactly one of x and y is true."""
    return ops.NotEqual(convert_to_tensor(x, _core.bool), convert_to_tensor(y, _core.bool),
                        name=name)


def add_n(inputs: Sequence, name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and dtype."""
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ValueError("inputs must be a list of at least one Tensor/IndexedSlices with the same "
                         "dtype and shape")
    tensors = convert_n_to_tensor(inputs)
    if len(tensors) == 1:
        return ops.Identity(tensors[0], name=name) if name else tensors[0]
    return ops.AddN(tensors, name=name)


def accumulate_n(inputs: Sequence, shape: Any = None, tensor_dtype: Any = None,
                 name: str | None = None) -> Tensor:
    """The sum of tensors of one shape and dtype, as add_n gives it. shape, tensor_dtype: what they
    must be compatible with, and their dtype, where given.

    Raises ValueError for an empty list, other shapes or different dtypes, TypeError for a dtype
    that is not tensor_dtype.
    """
    if not isinstance(inputs, (list, tuple)) or not inputs:
        raise ValueError("inputs must be a list of at least one Tensor with the same dtype and "
                         "shape, but got %r" % (inputs,))
    inputs = [convert_to_tensor(x) for x in inputs]
    merged = TensorShape(shape)
    for i, x in enumerate(inputs):
        if x.dtype != inputs[0].dtype:
            raise ValueError("inputs must be of one dtype: inputs[0] is %s, inputs[%d] is %s"
                             % (inputs[0].dtype.name, i, x.dtype.name))
        merged = merged.merge_with(x.shape)
    if tensor_dtype is not None and inputs[0].dtype != _core.as_dtype(tensor_dtype):
        raise TypeError("tensor_dtype is %s, but the inputs are %s"
                        % (_core.as_dtype(tensor_dtype).name, inputs[0].dtype.name))
    total = add_n(inputs, name)
    total.set_shape(merged)
    return total


def scalar_mul(scalar: Any, x: Any, name: str | None = None) -> Any:
    """A scalar times a tensor or IndexedSlices."""
    if isinstance(x, IndexedSlices):
        scalar = convert_to_tensor(scalar, x.dtype)
    else:
        x, scalar = convert_beside(convert_to_tensor(x), scalar)
    if scalar.shape.ndims != 0:
        raise ValueError("Only scalar multiply works, got shape %s" % scalar.shape)
    if isinstance(x, IndexedSlices):
        return IndexedSlices(ops.Mul(scalar, x.values, name=name), x.indices, x.dense_shape)
    return ops.Mul(scalar, x, name=name)


def log_sigmoid(x: Any, name: str | None = None) -> Tensor:
    """log(sigmoid(x)), computed so that it neither overflows nor loses digits."""
    with scope_of(name, "LogSigmoid", [x]) as scope:
        return ops.Neg(ops.Softplus(-convert_to_tensor(x)), name=scope)


def real(input: Any, name: str | None = None) -> Tensor:
    """The real part of each element."""
    input = convert_to_tensor(input)
    return ops.Real(input, Tout=input.dtype.real_dtype,
                    name=name) if input.dtype.is_complex else input


def imag(input: Any, name: str | None = None) -> Tensor:
    """The imaginary part of each element."""
    input = convert_to_tensor(input)
    return ops.Imag(input, Tout=input.dtype.real_dtype,
                    name=name) if input.dtype.is_complex else ops.ZerosLike(input)


def angle(input: Any, name: str | None = None) -> Tensor:
    """The argument of each complex element, in radians."""
    input = convert_to_tensor(input)
    if input.dtype.is_complex:
        return ops.Angle(input, Tout=input.dtype.real_dtype, name=name)
    zero = ops.ZerosLike(input)
    return ops.Select(ops.Less(input, zero), zero + 3.141592653589793, zero, name=name)


def complex(real: Any, imag: Any, name: str | None = None) -> Tensor:
    """Complex numbers from real and imaginary parts, float32 or float64."""
    real = convert_to_tensor(real)
    imag = convert_to_tensor(imag, real.dtype)
    wide = _core.complex128 if real.dtype == _core.float64 else _core.complex64
    return ops.Complex(real, imag, Tout=wide, name=name)


def conj(x: Any, name: str | None = None) -> Tensor:
    """The complex conjugate of each element; a real tensor as it is."""
    x = convert_to_tensor(x)
    return ops.Conj(x, name=name) if x.dtype.is_complex else x


# --- Reductions -----------------------------------------------------------------------------------

def _axes(x: Any, axis: Any) -> Any:
    """The axes to reduce as the ops take them; None means all."""
    if axis is None:
        ndims = x._ndims
        if ndims is not None:
            return list(builtins.range(ndims))
        return ops.Range(0, ops.Rank(x), 1)
    if isinstance(axis, tuple):
        return list(axis)
    return axis


def _scalar(tensor: Tensor) -> Tensor:
    """`tensor`, known to be a scalar: what all axes were reduced of, however many they are."""
    if tensor._ndims is None:
        tensor.set_shape([])
    return tensor


def _reduction(op_name: str, public_name: str, doc: str):
    def function(input_tensor: Any, axis: Any = None, keepdims: bool | None = None,
                 name: str | None = None, reduction_indices: Any = None,
                 keep_dims: bool | None = None) -> Tensor:
        axis = _one_of(axis, reduction_indices, "axis", "reduction_indices")
        keep = builtins.bool(_one_of(keepdims, keep_dims, "keepdims", "keep_dims"))
        x = convert_to_tensor(input_tensor)
        result = getattr(ops, op_name)(x, _axes(x, axis), keep, name=name)
        return _scalar(result) if axis is None and not keep else result
    function.__name__ = function.__qualname__ = public_name
    function.__doc__ = (doc + "\n\naxis: an axis or a list of axes, negative ones from the end; "
                        "None: all. keepdims: keep reduced axes with extent 1.")
    return at_once(op_name, "reduction")(function)


reduce_sum = _reduction("Sum", "reduce_sum", "The sum of the elements along `axis`.")
reduce_mean = _reduction("Mean", "reduce_mean",
                         "The mean of the elements along `axis`, in the dtype of the input.")
reduce_prod = _reduction("Prod", "reduce_prod", "The product of the elements along `axis`.")
reduce_max = _reduction("Max", "reduce_max", "The largest element along `axis`; NaN wins.")
reduce_min = _reduction("Min", "reduce_min", "The smallest element along `axis`; NaN wins.")
reduce_all = _reduction("All", "reduce_all", "Whether all elements along `axis` are true.")
reduce_any = _reduction("Any", "reduce_any", "Whether some element along `axis` is true.")
reduce_euclidean_norm = _reduction("EuclideanNorm", "reduce_euclidean_norm",
                                   "The square root of the sum of squares along `axis`.")


def reduce_variance(input_tensor: Any, axis: Any = None, keepdims: bool = False,
                    name: str | None = None) -> Tensor:
    """The mean squared distance from the mean along `axis`."""
    with scope_of(name, "reduce_variance", [input_tensor]):
        x = convert_to_tensor(input_tensor)
        return reduce_mean(ops.SquaredDifference(x, reduce_mean(x, axis, True)), axis, keepdims)


def reduce_std(input_tensor: Any, axis: Any = None, keepdims: bool = False,
               name: str | None = None) -> Tensor:
    """The square root of reduce_variance."""
    with scope_of(name, "reduce_std", [input_tensor]):
        return ops.Sqrt(reduce_variance(input_tensor, axis, keepdims))


def reduce_logsumexp(input_tensor: Any, axis: Any = None, keepdims: bool | None = None,
                     name: str | None = None, reduction_indices: Any = None,
                     keep_dims: bool | None = None) -> Tensor:
    """log(sum(exp(x))) along `axis`, computed so that it does not overflow."""
    axis = _one_of(axis, reduction_indices, "axis", "reduction_indices")
    keep = builtins.bool(_one_of(keepdims, keep_dims, "keepdims", "keep_dims"))
    with scope_of(name, "ReduceLogSumExp", [input_tensor]):
        x = convert_to_tensor(input_tensor)
        largest = reduce_max(x, axis, True)
        finite = ops.StopGradient(ops.Select(ops.IsFinite(largest), largest,
                                             ops.ZerosLike(largest)))
        total = ops.Log(reduce_sum(ops.Exp(x - finite), axis, keep))
        if not keep:
            finite = ops.Reshape(finite, ops.Shape(total))
        total = total + finite
        return _scalar(total) if axis is None and not keep else total


def count_nonzero(input_tensor: Any = None, axis: Any = None, keepdims: bool | None = None,
                  dtype: Any = _core.int64, name: str | None = None, reduction_indices: Any = None,
                  keep_dims: bool | None = None) -> Tensor:
    """How many elements along `axis` differ from zero."""
    axis = _one_of(axis, reduction_indices, "axis", "reduction_indices")
    keep = builtins.bool(_one_of(keepdims, keep_dims, "keepdims", "keep_dims"))
    with scope_of(name, "count_nonzero", [input_tensor]):
        x = convert_to_tensor(input_tensor)
        return cast(reduce_sum(ops.Cast(ops.NotEqual(x, ops.ZerosLike(x)), _core.int64), axis,
                               keep), dtype)


def _arg_reduction(op_name: str, public_name: str, doc: str):
    def function(input: Any, axis: Any = None, name: str | None = None, dimension: Any = None,
                 output_type: Any = _core.int64) -> Tensor:
        axis = _one_of(axis, dimension, "axis", "dimension")
        return getattr(ops, op_name)(input, 0 if axis is None else axis, output_type=output_type,
                                     name=name)
    function.__name__ = function.__qualname__ = public_name
    function.__doc__ = doc
    return function


argmax = _arg_reduction("ArgMax", "argmax",
                        "The index of the largest element along `axis` (0); the first one wins.")
argmin = _arg_reduction("ArgMin", "argmin",
                        "The index of the smallest element along `axis` (0); the first one wins.")
arg_max, arg_min = argmax, argmin


def cumsum(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False,
           name: str | None = None) -> Tensor:
    """Partial sums along `axis`. exclusive: without the element itself; reverse: from the end."""
    return ops.Cumsum(x, axis, exclusive=exclusive, reverse=reverse, name=name)


def cumprod(x: Any, axis: Any = 0, exclusive: bool = False, reverse: bool = False,
            name: str | None = None) -> Tensor:
    """Partial products along `axis`. exclusive: without the element itself; reverse: from the
    end."""
    return ops.Cumprod(x, axis, exclusive=exclusive, reverse=reverse, name=name)


# --- Matrices -------------------------------------------------------------------------------------

def _are_matrices(a: Any, b: Any) -> bool:
    """Whether both are symbolic and known to have two axes."""
    return (type(a) is type(b) is Tensor and a._ndims == b._ndims == 2
            and not a._is_concrete and not b._is_concrete)


@at_once("MatMul", "matrices")
def matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False,
           adjoint_a: bool = False, adjoint_b: bool = False, a_is_sparse: bool = False,
           b_is_sparse: bool = False, name: str | None = None,
           output_type: Any = None) -> Tensor:
    """The matrix product a b; of tensors of higher rank the product of their last two axes, the
    others broadcast. Numbers of any dtype; integers wrap around.

    transpose_a, transpose_b: the last two axes are exchanged first; adjoint_a, adjoint_b: and
    conjugated. a_is_sparse and b_is_sparse are taken and change nothing. output_type: the dtype
    that the operands are cast to first, such as int32 for a product of int8. Raises ValueError for
    a rank below 2 and for inner extents that differ, InvalidArgumentError where a run finds them.
    """
    if output_type is not None:
        a, b = cast(a, output_type), cast(b, output_type)
    if transpose_a and adjoint_a or transpose_b and adjoint_b:
        raise ValueError("Only one of transpose and adjoint can be True.")
    if name is None and not (adjoint_a or adjoint_b) and _are_matrices(a, b):
        scope = graph_of([a])._unique_name("MatMul") + "/"  # as below, where more nodes are named
        return ops.MatMul(a, b, transpose_a, transpose_b, name=scope)
    with scope_of(name, "MatMul", [a, b]) as scope:
        if isinstance(b, Tensor) and not hasattr(a, "dtype"):
            a = convert_to_tensor(a, b.dtype)
        else:
            a = convert_to_tensor(a)
            b = convert_to_tensor(b, None if hasattr(b, "dtype") else a.dtype)
        if builtins.max(3 if x._ndims is None else x._ndims for x in (a, b)) > 2:
            if transpose_a:
                a, adjoint_a = conj(a), True
            if transpose_b:
                b, adjoint_b = conj(b), True
            return ops.BatchMatMul(a, b, adj_x=adjoint_a, adj_y=adjoint_b, name=scope)
        if adjoint_a:
            a, transpose_a = conj(a), True
        if adjoint_b:
            b, transpose_b = conj(b), True
        return ops.MatMul(a, b, transpose_a=transpose_a, transpose_b=transpose_b, name=scope)


def sparse_matmul(a: Any, b: Any, transpose_a: bool = False, transpose_b: bool = False,
                  a_is_sparse: bool = False, b_is_sparse: bool = False,
                  name: str | None = None) -> Tensor:
    """The product of two dense matrices, float32 or bfloat16 each, in float32. a_is_sparse and
    b_is_sparse say that many elements are zero; the result does not depend on them."""
    return ops.SparseMatMul(a, b, transpose_a=transpose_a, transpose_b=transpose_b,
                            a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse, name=name)


def matvec(a: Any, b: Any, transpose_a: bool = False, adjoint_a: bool = False,
           a_is_sparse: bool = False, b_is_sparse: bool = False, name: str | None = None) -> Tensor:
    """The product of matrices [..., m, n] and vectors [..., n]; the leading axes broadcast.

    Arguments are those of tn.matmul.
    """
    with scope_of(name, "MatVec", [a, b]):
        if isinstance(a, Tensor) and not hasattr(b, "dtype"):
            b = convert_to_tensor(b, a.dtype)
        product = matmul(a, ops.ExpandDims(b, -1), transpose_a=transpose_a, adjoint_a=adjoint_a,
                         a_is_sparse=a_is_sparse, b_is_sparse=b_is_sparse)
        return ops.Squeeze(product, squeeze_dims=[-1])


def trace(x: Any, name: str | None = None) -> Tensor:
    """The sum of the diagonal of the last two axes."""
    with scope_of(name, "Trace", [x]):
        return reduce_sum(ops.MatrixDiagPart(x), [-1])


def tensordot(a: Any, b: Any, axes: Any, name: str | None = None) -> Tensor:
    """The sum of products over the given axes: axes = n, the last n of a and the first n of b; or
    (axes of a, axes of b).

    Raises ValueError for axes out of range or named twice and for known extents that differ,
    InvalidArgumentError when run with extents that do.
    """
    with scope_of(name, "Tensordot", [a, b]):
        a = convert_to_tensor(a)
        b = convert_to_tensor(b, None if hasattr(b, "dtype") else a.dtype)
        if isinstance(axes, Tensor):
            known = constant_value(axes)
            axes = axes if known is None else known
        if a.shape.ndims is None or b.shape.ndims is None or isinstance(axes, Tensor):
            return _tensordot_when_run(a, b, axes)
        a_axes, b_axes = _contracted(a.shape.ndims, b.shape.ndims, axes)
        depth = _contracted_size(a, a_axes, b, b_axes)
        a_matrix, a_free = _as_matrix(a, a_axes, depth, last=True)
        b_matrix, b_free = _as_matrix(b, b_axes, depth, last=False)
        product = ops.MatMul(a_matrix, b_matrix)
        if isinstance(a_free, list) and isinstance(b_free, list):
            return ops.Reshape(product, a_free + b_free)
        return ops.Reshape(product, concat([convert_to_tensor(f, _core.int64) for f in (a_free,
                                                                                        b_free)],
                                           0))


def _tensordot_when_run(a: Tensor, b: Tensor, axes: Any) -> Tensor:
    """tensordot where a rank, or the axes, are known in a run only."""
    ranks = ops.Rank(a), ops.Rank(b)
    if isinstance(axes, Tensor) and axes.shape.ndims is None:
        raise ValueError("the rank of the axes of tn.tensordot must be known")
    if isinstance(axes, int) or _is_count(axes):
        count = cast(convert_to_tensor(axes), _core.int32)
        contracted = ops.Range(ranks[0] - count, ranks[0], 1), ops.Range(0, count, 1)
    else:
        contracted = _two_sides(axes)
    frees, orders = [], []
    for rank, given in zip(ranks, contracted):
        # As a vector, counted from the front; Gather refuses an axis out of range.
        given = ops.Reshape(cast(convert_to_tensor(given, preferred_dtype=_core.int32),
                                 _core.int32), [-1])
        every = ops.Range(0, rank, 1)
        given = ops.Gather(every, ops.Select(ops.Less(given, 0), given + rank, given), 0)
        frees.append(ops.ListDiff(every, given)[0])
        orders.append(given)
    extents = [ops.Shape(x, out_type=_core.int64) for x in (a, b)]
    sizes = [ops.Gather(size, order, 0) for size, order in zip(extents, orders)]
    # Reshaping both to the product of the merged extents refuses extents that differ.
    depth = ops.Prod(ops.BroadcastArgs(*sizes), [0])
    free = [ops.Gather(size, axes, 0) for size, axes in zip(extents, frees)]
    left = ops.Reshape(ops.Transpose(a, concat([frees[0], orders[0]], 0)),
                       ops.Pack([ops.Prod(free[0], [0]), depth]))
    right = ops.Reshape(ops.Transpose(b, concat([orders[1], frees[1]], 0)),
                        ops.Pack([depth, ops.Prod(free[1], [0])]))
    return ops.Reshape(ops.MatMul(left, right), concat(free, 0))


def _is_count(axes: Any) -> bool:
    """Whether the axes of tensordot are a count, in an array or a tensor of rank 0."""
    return hasattr(axes, "shape") and len(axes.shape) == 0


def _contracted(a_rank: int, b_rank: int, axes: Any) -> tuple:
    if hasattr(axes, "tolist"):
        axes = axes.tolist()
    if isinstance(axes, int):
        if axes < 0 or axes > builtins.min(a_rank, b_rank):
            raise ValueError("'axes' must be at least 0 and at most the rank of both operands, got "
                             "%d" % axes)
        return list(builtins.range(a_rank - axes, a_rank)), list(builtins.range(axes))
    a_axes, b_axes = _two_sides(axes)
    a_axes = _axes_in_range(a_axes, a_rank, "a")
    b_axes = _axes_in_range(b_axes, b_rank, "b")
    if len(a_axes) != len(b_axes):
        raise ValueError("Different number of contraction axes 'a' and 'b', %s != %s."
                         % (len(a_axes), len(b_axes)))
    return a_axes, b_axes


def _two_sides(axes: Any) -> tuple:
    """The axes of a and of b."""
    if isinstance(axes, Tensor):
        return axes[0], axes[1]
    sides = tuple(axes) if hasattr(axes, "__iter__") else ()
    if len(sides) != 2:
        raise ValueError("'axes' must be an int or a pair (axes of a, axes of b), not %r" % (axes,))
    return sides


def _axes_in_range(axes: Any, rank: int, operand: str) -> list:
    result: list = []
    if hasattr(axes, "tolist"):
        axes = axes.tolist()
    for axis in [axes] if isinstance(axes, int) else list(axes):
        number = _index(axis)
        if not -rank <= number < rank:
            raise ValueError("tensordot: axis %d of '%s' is not in [%d, %d)"
                             % (number, operand, -rank, rank))
        if number % rank in result:
            raise ValueError("tensordot: axis %d of '%s' is contracted twice"
                             % (number % rank, operand))
        result.append(number % rank)
    return result


def _contracted_size(a: Tensor, a_axes: list, b: Tensor, b_axes: list) -> Any:
    """The product of the contracted extents: a number where known, else one that a run finds when
    the extents of a and b agree."""
    product: Any = 1
    for i, j in zip(a_axes, b_axes):
        left, right = a.shape[i], b.shape[j]
        if None not in (left, right) and left != right:
            raise ValueError("tensordot: axis %d of 'a' (shape %s) has extent %d, but axis %d of "
                             "'b' (shape %s) has %d" % (i, a.shape, left, j, b.shape, right))
        product = None if product is None or None in (left, right) else product * left
    if product is not None:
        return product
    # Reshaping both to the product of the merged extents refuses 1 beside another extent, too.
    sizes = [ops.Gather(ops.Shape(x, out_type=_core.int64), axes, 0) for x, axes in ((a, a_axes),
                                                                                     (b, b_axes))]
    return ops.Prod(ops.BroadcastArgs(*sizes), [0])


def _as_matrix(tensor: Tensor, axes: list, depth: Any, last: bool) -> tuple:
    """`tensor` with `axes` (product of extents: `depth`) as one side of a matrix and the extents of
    the others, as a list where known."""
    free = [i for i in builtins.range(tensor.shape.ndims) if i not in axes]
    perm = free + axes if last else axes + free
    if perm != list(builtins.range(tensor.shape.ndims)):
        tensor = ops.Transpose(tensor, perm)
    split = len(free) if last else len(axes)
    kept: Any = tensor.shape.as_list()[:split] if last else tensor.shape.as_list()[split:]
    others: Any = 1
    if None in kept:
        sizes = ops.Shape(tensor, out_type=_core.int64)
        kept = sizes[:split] if last else sizes[split:]
        others = ops.Prod(kept, [0])
    else:
        for extent in kept:
            others *= extent
    sides = [convert_to_tensor(side, _core.int64) for side in (others, depth)]
    return ops.Reshape(tensor, ops.Pack(sides if last else sides[::-1])), kept


def einsum(equation: str, *inputs: Any, optimize: Any = "greedy",
           name: str | None = None) -> Tensor:
    """Sums of products named by index letters: einsum("ij,jk->ik", a, b) is the matrix product.

    An index that an operand repeats ("ii->i") means its diagonal. An ellipsis stands for all other
    axes, which are broadcast; without "->" the result has these and then, in alphabetical order,
    the indices that occur once. An index has one extent in all operands; 1 is stretched, as in
    NumPy. Ranks and extents may be unknown, and dtypes are those of tn.matmul.

    optimize: how the order of more than two operands is chosen, named as in opt_einsum. "greedy",
    "auto": the cheapest of all orders of up to 8 operands, by operations and by elements moved; of
    more, one that shrinks the data step by step. "optimal", "dp": all orders of up to 12.
    "branch-all", "branch-2", "branch-1", "auto-hq": between the two. False: as they are given. A
    list of pairs: positions in the list of operands, to whose end each result goes. An extent that
    a run tells counts as 64.
    Raises ValueError for an equation that does not fit the inputs, InvalidArgumentError when run
    with ranks or extents that contradict.
    """
    from treenail._einsum import einsum as compute
    return compute(equation, inputs, optimize, name)


# --- Tests and bins -------------------------------------------------------------------------------

def confusion_matrix(labels: Any, predictions: Any, num_classes: Any = None,
                     dtype: Any = _core.int32, name: str | None = None,
                     weights: Any = None) -> Tensor:
    """matrix[label, prediction]: how often that pair occurs, [num_classes, num_classes]."""
    with scope_of(name, "confusion_matrix", [labels, predictions]):
        labels, predictions = cast(labels, _core.int64), cast(predictions, _core.int64)
        if num_classes is None:
            num_classes = ops.Maximum(reduce_max(labels), reduce_max(predictions)) + 1
        size = cast(num_classes, _core.int64)
        values = ops.OnesLike(ops.Cast(predictions, dtype)) if weights is None else cast(weights,
                                                                                         dtype)
        return ops.ScatterNd(ops.Pack([labels, predictions], axis=1), values,
                             ops.Pack([size, size]))


__all__ = ["cast", "saturate_cast", "to_float", "to_double", "to_int32", "to_int64", "to_bfloat16",
           "to_complex64", "to_complex128", "square", "sqrt", "negative", "neg", "sign", "tanh",
           "erf", "abs", "subtract", "multiply", "sub", "mul", "realdiv", "floordiv", "floor_div",
           "floormod", "mod", "truncatediv", "truncatemod", "div_no_nan", "multiply_no_nan", "pow",
           "div", "truediv", "divide", "logical_xor", "add_n", "accumulate_n", "scalar_mul",
           "log_sigmoid", "real", "imag", "angle", "complex", "conj", "reduce_sum", "reduce_mean",
           "reduce_prod", "reduce_max", "reduce_min", "reduce_all", "reduce_any",
           "reduce_euclidean_norm", "reduce_variance", "reduce_std", "reduce_logsumexp",
           "count_nonzero", "argmax", "argmin", "arg_max", "arg_min", "cumsum", "cumprod",
           "matmul", "sparse_matmul", "matvec", "trace", "tensordot", "einsum", "confusion_matrix"]
