# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1's ConditionalAccumulator and SparseConditionalAccumulator: gradients of several
threads, and their mean for whoever takes it."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._checks import having
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._math import cast
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import DType, Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


def _step(value: Any) -> Tensor:
    if isinstance(value, int):
        return convert_to_tensor(value, _core.int64)
    return cast(value, _core.int64)


class ConditionalAccumulatorBase:
    """What dense and sparse accumulators have in common.

    Programs make a ConditionalAccumulator or a SparseConditionalAccumulator. accumulator_ref: the
    handle, a tensor.
    """

    def __init__(self, dtype: Any, shape: Any, accumulator_ref: Tensor) -> None:
        self._dtype = _core.as_dtype(dtype)
        self._shape = TensorShape(shape)
        self._accumulator_ref = having(accumulator_ref, "op", "accumulator_ref", "a Tensor")
        self._name = accumulator_ref.op.name.rpartition("/")[2]

    @property
    def accumulator_ref(self) -> Tensor:
        """The handle that operations on the accumulator take."""
        return self._accumulator_ref

    @property
    def name(self) -> str:
        """The name of the operation that gives the handle, without its scope."""
        return self._name

    @property
    def dtype(self) -> DType:
        """The dtype of the gradients."""
        return self._dtype

    def num_accumulated(self, name: str | None = None) -> Tensor:
        """How many gradients are there, those left out that came too late: an int32 scalar."""
        return ops.AccumulatorNumAccumulated(self._accumulator_ref,
                                             name=name or self._name + "_NumAccumulated")

    def set_global_step(self, new_global_step: Any, name: str | None = None) -> Operation:
        """Sets the accumulator's step, an integer scalar: gradients of earlier ones are dropped
        from then on, and those that are there and have a place where it is another step."""
        return ops.AccumulatorSetGlobalStep(self._accumulator_ref, _step(new_global_step),
                                            name=name)


def _handle(op_name: str, dtype: Any, shape: Any, shared_name: str | None, name: str,
            reduction_type: str) -> Tensor:
    return getattr(ops, op_name)(dtype=dtype, shape=TensorShape(shape),
                                 shared_name=shared_name or "", reduction_type=reduction_type,
                                 name=name)


class ConditionalAccumulator(ConditionalAccumulatorBase):
    """Gathers gradients, from several threads as a rule, and gives their mean once there are
    enough: training in step.

    dtype: of the gradients, a number. shape: of the gradients, None for any and for unknown
    extents. shared_name: accumulators of one session that are called so are one. reduction_type:
    "MEAN" or "SUM".

    The accumulator has a step, which begins at 0 and goes up by one whenever gradients are taken: a
    gradient of an earlier step came too late, and is dropped without a word.
    """

    def __init__(self, dtype: Any, shape: Any = None, shared_name: str | None = None,
                 name: str = "conditional_accumulator", reduction_type: str = "MEAN") -> None:
        super().__init__(dtype, shape, _handle("ConditionalAccumulator", dtype, shape, shared_name,
                                               name, reduction_type))

    def apply_grad(self, grad: Any, local_step: Any = 0, name: str | None = None,
                   place: int = -1) -> Operation:
        """Adds a gradient of the accumulator's dtype and shape, unless `local_step`, an integer
        scalar, is below the accumulator's step.

        place: where it stands in the sum, such as the worker's number, so that the bits do not
        depend on who comes first; a second gradient at a place, before gradients are taken, is
        dropped, as is one of a later step than the accumulator's. -1: before these, as it comes.

        The run raises InvalidArgumentError for another shape; ValueError is raised at once where it
        is known already.
        """
        grad = convert_to_tensor(grad, self._dtype)
        if not self._shape.is_compatible_with(grad.shape):
            raise ValueError("grad must have the accumulator's shape %s, not %s"
                             % (self._shape, grad.shape))
        return ops.AccumulatorApplyGradient(self._accumulator_ref, _step(local_step), grad,
                                            place=place, name=name)

    def take_grad(self, num_required: Any, name: str | None = None) -> Tensor:
        """The mean (or sum) of all gradients that are there, once these are at least
        `num_required`: an int32 scalar, at least 1.

        The run waits for them. Then the accumulator is empty, and its step one higher. Who waits
        longest is served first.
        """
        return ops.AccumulatorTakeGradient(self._accumulator_ref, num_required, dtype=self._dtype,
                                           name=name)


class SparseConditionalAccumulator(ConditionalAccumulatorBase):
    """As ConditionalAccumulator, of gradients that are some slices of a larger tensor.

    dtype: of the values. shape: of the larger tensor, None for any and for unknown extents. The
    mean of a slice is over the gradients that have it; slices of one gradient at the same index are
    added.
    """

    def __init__(self, dtype: Any, shape: Any = None, shared_name: str | None = None,
                 name: str = "sparse_conditional_accumulator",
                 reduction_type: str = "MEAN") -> None:
        super().__init__(dtype, shape, _handle("SparseConditionalAccumulator", dtype, shape,
                                               shared_name, name, reduction_type))

    def apply_indexed_slices_grad(self, grad: IndexedSlices, local_step: Any = 0,
                                  name: str | None = None, place: int = -1) -> Operation:
        """Adds a gradient that is IndexedSlices, as apply_grad."""
        if not isinstance(grad, IndexedSlices):
            raise TypeError("grad must be an IndexedSlices, not %r" % (grad,))
        return self.apply_grad(grad.indices, grad.values, grad.dense_shape, local_step, name,
                               place)

    def apply_grad(self, grad_indices: Any, grad_values: Any, grad_shape: Any = None,
                   local_step: Any = 0, name: str | None = None, place: int = -1) -> Operation:
        """Adds a gradient, unless `local_step`, an integer scalar, is below the accumulator's step.

        grad_indices: integers [n], in any order. grad_values: [n, ...], values[i] at indices[i].
        grad_shape: an integer vector, the larger tensor's shape, None where it is not known. place:
        as of ConditionalAccumulator.apply_grad(). The run raises InvalidArgumentError for shapes
        that are not the accumulator's, and for indices outside of it.
        """
        return ops.SparseAccumulatorApplyGradient(
            self._accumulator_ref, _step(local_step), cast(grad_indices, _core.int64),
            convert_to_tensor(grad_values, self._dtype),
            convert_to_tensor([], _core.int64) if grad_shape is None else
            cast(grad_shape, _core.int64), has_known_shape=grad_shape is not None, place=place,
            name=name)

    def take_grad(self, num_required: Any, name: str | None = None) -> tuple:
        """The mean (or sum) of all gradients that are there, once these are at least
        `num_required`: an int32 scalar, at least 1.

        Gives (indices, values, shape): indices, int64 [n], ascend, none twice; values is [n, ...];
        shape, an int64 vector, begins with -1 where the accumulator's shape leaves that open. The
        run waits as ConditionalAccumulator.take_grad does.
        """
        return ops.SparseAccumulatorTakeGradient(self._accumulator_ref, num_required,
                                                 dtype=self._dtype, name=name)

    def take_indexed_slices_grad(self, num_required: Any, name: str | None = None) -> IndexedSlices:
        """What take_grad gives as IndexedSlices."""
        indices, values, shape = self.take_grad(num_required, name)
        return IndexedSlices(values, indices, shape)


__all__ = ["ConditionalAccumulatorBase", "ConditionalAccumulator", "SparseConditionalAccumulator"]
