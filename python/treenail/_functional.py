# SPDX-License-Identifier: Apache-2.0
"""tn.map_fn, tn.foldl, tn.foldr and tn.scan: a function for each row of tensors, as loops."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._array import shape as shape_of
from treenail._control_flow import while_loop
from treenail._convert import convert_to_tensor, scope_of
from treenail._nest import flatten, map_structure, pack
from treenail._shape import TensorShape
from treenail._sparse import SparseTensor
from treenail._tensor_array import TensorArray
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence


class _Rows:
    """The rows of a nest of tensors, which have as many each."""

    def __init__(self, elems: Any) -> None:
        for leaf in flatten(elems):
            if isinstance(leaf, SparseTensor):
                raise TypeError("elems must be dense tensors, not %r: go through its values, or "
                                "make it dense with tn.sparse.to_dense" % (leaf,))
        self.structure = map_structure(convert_to_tensor, elems)
        self.tensors = flatten(self.structure)
        if not self.tensors:
            raise ValueError("elems must be a tensor or a nest of tensors, not %r" % (elems,))
        self.static = TensorShape([None])
        for tensor in self.tensors:
            self.static = self.static.merge_with(tensor.shape.with_rank_at_least(1)[:1])
        extent = self.static.as_list()[0]
        self.count = convert_to_tensor(extent if extent is not None else
                                       shape_of(self.tensors[0])[0], _core.int32)
        self._arrays = [TensorArray(tensor.dtype, self.count).unstack(tensor)
                        for tensor in self.tensors]

    def read(self, index: Any) -> Any:
        return pack(self.structure, [array.read(index) for array in self._arrays])

    def stacked(self, arrays: Sequence) -> list:
        """The rows that were written, which are as many."""
        results = [array.stack() for array in arrays]
        for result in results:
            if result.shape.rank is None:
                continue
            result.set_shape(self.static.concatenate(result.shape[1:]))
        return results


def _callable(fn: Any) -> Callable:
    if not callable(fn):
        raise TypeError("fn must be callable, not %r" % (fn,))
    return fn


def _same_structure(wanted: Any, given: Any) -> list:
    """The leaves of what fn gave."""
    try:
        map_structure(lambda *_: None, wanted, given)
    except ValueError:
        raise ValueError("The two structures don't have the same nested structure: needed is that "
                         "of %r, fn gives %r" % (wanted, given)) from None
    return flatten(given)


def map_fn(fn: Callable, elems: Any, dtype: Any = None, parallel_iterations: int | None = None,
           back_prop: bool = True, swap_memory: bool = False, infer_shape: bool = True,
           name: str | None = None) -> Any:
    """What `fn` gives for each row of `elems`, stacked.

    elems: a tensor or a nest of tensors of as many rows; `fn` takes a row, or a nest of rows.
    dtype: of what fn gives, a nest of dtypes where it gives a nest; by default that is like
    `elems`.
    infer_shape: fn gives the same shape for every row. parallel_iterations, back_prop,
    swap_memory: as for tn.while_loop.

    Raises TypeError for what is not callable and for sparse tensors, ValueError for another
    structure, dtype or shape.
    """
    with scope_of(name, "map", flatten(elems)):
        fn, rows = _callable(fn), _Rows(elems)
        structure = rows.structure if dtype is None else dtype
        dtypes = [t.dtype for t in rows.tensors] if dtype is None else flatten(dtype)
        arrays = [TensorArray(kind, rows.count, infer_shape=infer_shape) for kind in dtypes]

        def step(i: Tensor, written: list) -> tuple:
            values = _same_structure(structure, fn(rows.read(i)))
            return i + 1, [array.write(i, value) for array, value in zip(written, values)]
        written = while_loop(lambda i, _: i < rows.count, step, (0, arrays),
                             parallel_iterations=parallel_iterations or 10, back_prop=back_prop,
                             swap_memory=swap_memory, maximum_iterations=rows.count)[1]
        return pack(structure, rows.stacked(written))


def foldl(fn: Callable, elems: Any, initializer: Any = None, parallel_iterations: int = 10,
          back_prop: bool = True, swap_memory: bool = False, name: str | None = None) -> Any:
    """fn(... fn(fn(initializer, row 0), row 1) ..., last row).

    elems: a tensor or a nest of tensors of as many rows. initializer: a tensor or a nest of
    tensors, as `fn` gives; by default row 0, which fn is not called for then. parallel_iterations,
    back_prop, swap_memory: as for tn.while_loop.

    Raises TypeError for what is not callable and for sparse tensors, ValueError for another
    structure, dtype or shape. Errors at run time: InvalidArgumentError where there is neither
    initializer nor row.
    """
    return _fold(fn, elems, initializer, parallel_iterations, back_prop, swap_memory, name, False)


def foldr(fn: Callable, elems: Any, initializer: Any = None, parallel_iterations: int = 10,
          back_prop: bool = True, swap_memory: bool = False, name: str | None = None) -> Any:
    """fn(... fn(fn(initializer, last row), last row but one) ..., row 0): as tn.foldl, from the
    last row to the first.

    elems: a tensor or a nest of tensors of as many rows. initializer: a tensor or a nest of
    tensors, as `fn` gives; by default the last row, which fn is not called for then.
    parallel_iterations, back_prop, swap_memory: as for tn.while_loop.

    Raises TypeError for what is not callable and for sparse tensors, ValueError for another
    structure, dtype or shape. Errors at run time: InvalidArgumentError where there is neither
    initializer nor row.
    """
    return _fold(fn, elems, initializer, parallel_iterations, back_prop, swap_memory, name, True)


def _fold(fn: Callable, elems: Any, initializer: Any, parallel_iterations: int, back_prop: bool,
          swap_memory: bool, name: str | None, reverse: bool) -> Any:
    with scope_of(name, "foldr" if reverse else "foldl", flatten(elems)):
        fn, rows = _callable(fn), _Rows(elems)
        first, value = _first(rows, initializer, reverse)

        def step(i: Tensor, value: Any) -> tuple:
            result = fn(value, rows.read(_place(rows, i, reverse)))
            return i + 1, pack(value, _same_structure(value, result))
        return while_loop(lambda i, _: i < rows.count, step, (first, value),
                          parallel_iterations=parallel_iterations, back_prop=back_prop,
                          swap_memory=swap_memory, maximum_iterations=rows.count)[1]


def _place(rows: _Rows, i: Any, reverse: bool) -> Any:
    """Of the row that is number i on the way."""
    return rows.count - 1 - i if reverse else i


def _first(rows: _Rows, initializer: Any, reverse: bool) -> tuple:
    """The number of the first row that fn is called for, and with which value."""
    if initializer is None:
        return 1, rows.read(_place(rows, 0, reverse))
    return 0, map_structure(convert_to_tensor, initializer)


def scan(fn: Callable, elems: Any, initializer: Any = None, parallel_iterations: int = 10,
         back_prop: bool = True, swap_memory: bool = False, infer_shape: bool = True,
         reverse: bool = False, name: str | None = None) -> Any:
    """Every value of tn.foldl on its way, stacked: result[i] = fn(result[i - 1], row i).

    elems: a tensor or a nest of tensors of as many rows. initializer: a tensor or a nest of
    tensors, as `fn` gives, that stands for the value before row 0; by default result[0] is row 0.
    reverse: from the last row to the first; result[i] then belongs to row i, too. infer_shape: fn
    gives the same shape for every row. parallel_iterations, back_prop, swap_memory: as for
    tn.while_loop.

    Raises TypeError for what is not callable and for sparse tensors, ValueError for another
    structure, dtype or shape. Errors at run time: InvalidArgumentError where there is neither
    initializer nor row.
    """
    with scope_of(name, "scan", flatten(elems)):
        fn, rows = _callable(fn), _Rows(elems)
        first, value = _first(rows, initializer, reverse)
        arrays = [TensorArray(t.dtype, rows.count, infer_shape=infer_shape,
                              element_shape=t.shape if infer_shape else None)
                  for t in flatten(value)]
        if initializer is None:
            arrays = [array.write(_place(rows, 0, reverse), t)
                      for array, t in zip(arrays, flatten(value))]

        def step(i: Tensor, value: Any, written: list) -> tuple:
            place = _place(rows, i, reverse)
            values = _same_structure(value, fn(value, rows.read(place)))
            return i + 1, pack(value, values), [array.write(place, t)
                                                for array, t in zip(written, values)]
        written = while_loop(lambda i, *_: i < rows.count, step, (first, value, arrays),
                             parallel_iterations=parallel_iterations, back_prop=back_prop,
                             swap_memory=swap_memory, maximum_iterations=rows.count)[2]
        return pack(value, rows.stacked(written))


__all__ = ["map_fn", "foldl", "foldr", "scan"]
