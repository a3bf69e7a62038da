# SPDX-License-Identifier: Apache-2.0
"""tn.TensorArray: tensors by number, in a list that its flow carries through the graph."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._control import no_op
from treenail._convert import constant_value, convert_to_tensor, scope_of
from treenail._ops import ops
from treenail._shape import TensorShape, as_shape
from treenail._treenail import Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class _Elements:
    """What is known of the elements, in all arrays that writes make of one: what a loop's body
    writes is known behind the loop."""

    def __init__(self, shape: TensorShape, infer: bool) -> None:
        self.shape, self._infer = shape, infer

    def agree(self, shape: TensorShape) -> None:
        if not shape.is_compatible_with(self.shape):
            raise ValueError("Inconsistent shapes: saw %s but expected %s%s"
                             % (shape, self.shape, " (and infer_shape=True)" if self._infer else
                                ""))
        if self._infer:
            self.shape = self.shape.merge_with(shape)


class TensorArray:
    """`size` tensors of one dtype, written and read by number.

    A write gives a new array, and the old one stays as it is: go on with what the write returned.
    Nothing is copied where the old one is not used any more. In tn.while_loop an array is a loop
    variable, in tn.cond a result. An element that was never written reads as zeros where the shape
    of elements is known.

    dynamic_size: writes beyond the end make the array longer. infer_shape: elements must agree in
    what is known of their shapes. element_shape: what must hold for every one. flow: of an array
    that is there already, instead of `size`; `handle` stands for the same. clear_after_read,
    tensor_array_name, colocate_with_first_write_call: as TensorFlow 1 takes them; they change
    nothing here.

    Raises ValueError without size and flow, and with both; TypeError for a flow that is no list.
    """

    def __init__(self, dtype: Any, size: Any = None, dynamic_size: bool | None = None,
                 clear_after_read: bool | None = None, tensor_array_name: str | None = None,
                 handle: Tensor | None = None, flow: Tensor | None = None, infer_shape: bool = True,
                 element_shape: Any = None, colocate_with_first_write_call: bool = True,
                 name: str | None = None) -> None:
        self._dtype = _core.as_dtype(dtype)
        self._dynamic_size = bool(dynamic_size)
        self._elements = _Elements(as_shape(element_shape), infer_shape)
        flow = handle if flow is None else flow
        if (size is None) == (flow is None):
            raise ValueError("a TensorArray needs a size or a flow, one of them: size=%r, flow=%r"
                             % (size, flow))
        if flow is None:
            with scope_of(name, "TensorArray", [size]) as scope:
                size = convert_to_tensor(size, _core.int32)
                flow = ops.TensorListReserve(self._shape_value(), size, element_dtype=self._dtype,
                                             name=scope)
        elif not isinstance(flow, Tensor) or flow.dtype != _core.variant:
            raise TypeError("flow must be the flow of a TensorArray, not %r" % (flow,))
        self._flow = flow

    def _with_flow(self, flow: Tensor) -> TensorArray:
        array = object.__new__(TensorArray)
        array._dtype, array._dynamic_size = self._dtype, self._dynamic_size
        array._elements, array._flow = self._elements, flow
        return array

    def _shape_value(self) -> Any:
        shape = self._elements.shape
        return -1 if shape.rank is None else _vector([
            -1 if extent is None else extent for extent in shape.as_list()])

    def __repr__(self) -> str:
        return "<tn.TensorArray dtype=%s element_shape=%s flow=%r>" % (
            self._dtype.name, self._elements.shape, self._flow.name)

    @property
    def dtype(self) -> Any:
        """The dtype of the elements."""
        return self._dtype

    @property
    def flow(self) -> Tensor:
        """The list itself, a variant scalar."""
        return self._flow

    @property
    def handle(self) -> Tensor:
        """The flow: there is nothing else to an array."""
        return self._flow

    @property
    def element_shape(self) -> TensorShape:
        """What is known of the elements' shapes."""
        return self._elements.shape

    @property
    def dynamic_size(self) -> bool:
        """Whether writes beyond the end make the array longer."""
        return self._dynamic_size

    def identity(self) -> TensorArray:
        """The same array."""
        return self._with_flow(ops.Identity(self._flow))

    def grad(self, source: str, flow: Tensor | None = None, name: str | None = None) -> TensorArray:
        """There is no array of gradients. Raises NotImplementedError: tn.gradients goes through
        arrays."""
        raise NotImplementedError("there is no array of gradients to write into: tn.gradients goes "
                                  "through a TensorArray by itself (source=%r)" % (source,))

    def read(self, index: Any, name: str | None = None) -> Tensor:
        """Element number `index`, an int32 scalar.

        Errors at run time: InvalidArgumentError for a number that is not there, and for an element
        that was never written where no shape is known.
        """
        return ops.TensorListGetItem(self._flow, index, self._shape_value(),
                                     element_dtype=self._dtype, name=name or "TensorArrayRead")

    def write(self, index: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with `value` as element number `index`, an int32 scalar.

        Raises ValueError for a value of another dtype or shape. Errors at run time:
        InvalidArgumentError for a number that is not there.
        """
        with scope_of(name, "TensorArrayWrite", [index, value]):
            value = convert_to_tensor(value, self._dtype)
            self._elements.agree(value.shape)
            index = convert_to_tensor(index, _core.int32)
            flow = self._flow
            if self._dynamic_size:
                size = ops.Maximum(ops.TensorListLength(flow), ops.Add(index, 1))
                flow = ops.TensorListResize(flow, size)
            return self._with_flow(ops.TensorListSetItem(flow, index, value))

    def stack(self, name: str | None = None) -> Tensor:
        """All elements as rows of one tensor. Errors at run time: InvalidArgumentError for elements
        of different shapes."""
        return ops.TensorListStack(self._flow, self._shape_value(), element_dtype=self._dtype,
                                   name=name or "TensorArrayStack")

    def gather(self, indices: Any, name: str | None = None) -> Tensor:
        """The elements of these numbers, an int32 vector, as rows of one tensor. Errors at run
        time: as those of read() and stack()."""
        return ops.TensorListGather(self._flow, indices, self._shape_value(),
                                    element_dtype=self._dtype, name=name or "TensorArrayGather")

    def concat(self, name: str | None = None) -> Tensor:
        """All elements, one behind the other along their first axis. Errors at run time:
        InvalidArgumentError for scalars, and elements that differ in another extent."""
        return ops.TensorListConcatV2(
            self._flow, self._shape_value(), _vector([], _core.int64), element_dtype=self._dtype,
            name=name or "TensorArrayConcat")[0]

    def unstack(self, value: Any, name: str | None = None) -> TensorArray:
        """The array of the rows of `value`, as many as these. Raises ValueError as write()."""
        with scope_of(name, "TensorArrayUnstack", [value]):
            value = convert_to_tensor(value, self._dtype)
            self._elements.agree(value.shape.with_rank_at_least(1)[1:])
            return self._with_flow(ops.TensorListFromTensor(value, self._shape_value()))

    def scatter(self, indices: Any, value: Any, name: str | None = None) -> TensorArray:
        """The array with row i of `value` as element number indices[i]; it grows where it ends
        before. Raises ValueError as write()."""
        with scope_of(name, "TensorArrayScatter", [indices, value]):
            value = convert_to_tensor(value, self._dtype)
            self._elements.agree(value.shape.with_rank_at_least(1)[1:])
            return self._with_flow(ops.TensorListScatterIntoExistingList(
                self._flow, value, convert_to_tensor(indices, _core.int32)))

    def split(self, value: Any, lengths: Any, name: str | None = None) -> TensorArray:
        """The array of pieces of `value` of `lengths` rows each. Raises ValueError as write().
        Errors at run time: InvalidArgumentError where the lengths do not add up to the rows."""
        with scope_of(name, "TensorArraySplit", [value, lengths]):
            value = convert_to_tensor(value, self._dtype)
            lengths = ops.Cast(convert_to_tensor(lengths), DstT=_core.int64)
            self._elements.agree(_shape_of_pieces(value.shape, constant_value(lengths)))
            return self._with_flow(ops.TensorListSplit(value, self._shape_value(), lengths))

    def size(self, name: str | None = None) -> Tensor:
        """How many elements there are, an int32 scalar."""
        return ops.TensorListLength(self._flow, name=name or "TensorArraySize")

    def close(self, name: str | None = None) -> Operation:
        """An operation that does nothing: a list goes with its last reader."""
        return no_op(name)


def _shape_of_pieces(shape: TensorShape, lengths: Any) -> TensorShape:
    """What all pieces of these lengths have in common."""
    rest = shape.with_rank_at_least(1)[1:]
    if lengths is None or not lengths.size or (lengths != lengths[0]).any():
        return TensorShape([None]).concatenate(rest)
    return TensorShape([int(lengths[0])]).concatenate(rest)


def _vector(values: list, dtype: Any = _core.int32) -> Tensor:
    """An integer vector, which may be empty."""
    return convert_to_tensor(values, dtype)


__all__ = ["TensorArray"]
