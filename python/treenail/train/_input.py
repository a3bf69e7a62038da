# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1's input pipeline on queues: producers of elements, and batches of them.

Each function makes a queue and a QueueRunner that fills it, in the collection that
start_queue_runners() starts; nothing flows before. Where epochs are counted, their counter is a
local variable: run tn.local_variables_initializer() first.
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._assertions import Assert
from treenail._convert import constant_value, convert_n_to_tensor, convert_to_tensor, scope_of
from treenail._framework import GraphKeys, get_default_graph
from treenail._ops import ops
from treenail._queues import FIFOQueue, PaddingFIFOQueue, RandomShuffleQueue
from treenail._random import random_shuffle
from treenail._shape import TensorShape
from treenail._variables import Variable
from treenail.train._queue_runner import QueueRunner, add_queue_runner

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence

    from treenail._queues import QueueBase
    from treenail._treenail import Operation, Tensor


# --- Producers ------------------------------------------------------------------------------------

def limit_epochs(tensor: Any, num_epochs: int | None = None, name: str | None = None) -> Tensor:
    """`tensor`, which can be computed num_epochs times; after that runs raise OutOfRangeError.
    None: without an end."""
    if num_epochs is None:
        return convert_to_tensor(tensor)
    if num_epochs <= 0:
        raise ValueError("num_epochs must be > 0 not %d." % num_epochs)
    with scope_of(name, "limit_epochs", [tensor]) as scope:
        epochs = Variable(convert_to_tensor(0, _core.int64), trainable=False, name="epochs",
                          collections=[GraphKeys.LOCAL_VARIABLES])
        with get_default_graph().control_dependencies([epochs.count_up_to(num_epochs)]):
            return ops.Identity(convert_to_tensor(tensor), name=scope)


def input_producer(input_tensor: Any, element_shape: Any = None, num_epochs: int | None = None,
                   shuffle: bool = True, seed: int | None = None, capacity: int = 32,
                   shared_name: str | None = None, summary_name: str | None = None,
                   name: str | None = None, cancel_op: Operation | None = None) -> QueueBase:
    """A FIFOQueue that gets the rows of input_tensor, again and again.

    element_shape: of a row, where input_tensor does not tell. num_epochs: how often each row comes,
    then OutOfRangeError; None: without an end. shuffle: whether rows come in another order each
    time. summary_name: of a summary of how full the queue is. Raises ValueError for rows of unknown
    shape.
    """
    with scope_of(name, "input_producer", [input_tensor]) as scope:
        rows = convert_to_tensor(input_tensor, name="input_tensor")
        shape = _row_shape(rows.shape).merge_with(element_shape)
        if not shape.is_fully_defined():
            raise ValueError("Either `input_tensor` must have a fully defined shape or "
                             "`element_shape` must be specified")
        if shuffle:
            rows = random_shuffle(rows, seed=seed)
        rows = limit_epochs(rows, num_epochs)
        queue = FIFOQueue(capacity, [rows.dtype], [shape], shared_name=shared_name, name=scope)
        add_queue_runner(QueueRunner(queue, [queue.enqueue_many(rows)], cancel_op=cancel_op))
        if summary_name is not None:
            _summarize(summary_name, queue.size(), capacity)
        return queue


def string_input_producer(string_tensor: Any, num_epochs: int | None = None, shuffle: bool = True,
                          seed: int | None = None, capacity: int = 32,
                          shared_name: str | None = None, name: str | None = None,
                          cancel_op: Operation | None = None) -> QueueBase:
    """A FIFOQueue of the strings of string_tensor, a vector: of the names of files, say. Parameters
    as of input_producer(). Raises ValueError, or the run InvalidArgumentError, for no strings."""
    needed = "string_input_producer requires a non-null input tensor"
    if isinstance(string_tensor, (list, tuple)) and not string_tensor:
        raise ValueError(needed)
    with scope_of(name, "input_producer", [string_tensor]) as scope:
        strings = convert_to_tensor(string_tensor, _core.string)
        some = Assert(ops.Greater(ops.Size(strings), 0), [needed])
        with get_default_graph().control_dependencies([some]):
            strings = ops.Identity(strings)
        return input_producer(strings, [], num_epochs, shuffle, seed, capacity, shared_name,
                              "fraction_of_%d_full" % capacity, scope, cancel_op)


def range_input_producer(limit: Any, num_epochs: int | None = None, shuffle: bool = True,
                         seed: int | None = None, capacity: int = 32,
                         shared_name: str | None = None, name: str | None = None) -> QueueBase:
    """A FIFOQueue of the numbers from 0 to limit - 1. Parameters as of input_producer()."""
    with scope_of(name, "input_producer", [limit]) as scope:
        numbers = ops.Range(0, limit, 1)
        return input_producer(numbers, [], num_epochs, shuffle, seed, capacity, shared_name,
                              "fraction_of_%d_full" % capacity, scope)


def slice_input_producer(tensor_list: Sequence, num_epochs: int | None = None,
                         shuffle: bool = True, seed: int | None = None, capacity: int = 32,
                         shared_name: str | None = None, name: str | None = None) -> list:
    """One row of each tensor in tensor_list, the same one of all; the next with each run.
    Parameters as of input_producer(). Raises ValueError for no tensors."""
    with scope_of(name, "input_producer", tensor_list):
        tensors = convert_n_to_tensor(tensor_list)
        if not tensors:
            raise ValueError("Expected at least one tensor in slice_input_producer().")
        rows = ops.StridedSlice(ops.Shape(tensors[0]), [0], [1], [1], shrink_axis_mask=1)
        queue = range_input_producer(rows, num_epochs, shuffle, seed, capacity, shared_name)
        index = queue.dequeue()
        return [ops.Gather(tensor, index, 0) for tensor in tensors]


def _row_shape(shape: TensorShape) -> TensorShape:
    if shape.ndims is None:
        return shape
    return TensorShape(shape.with_rank_at_least(1).as_list()[1:])


def _summarize(name: str, size: Tensor, most: int) -> None:
    from treenail import summary
    summary.scalar(name, ops.Mul(ops.Cast(size, DstT=_core.float32), 1.0 / most))


# --- Batches --------------------------------------------------------------------------------------

class _Sources:
    """What goes into a queue: one list of tensors, or several, all alike."""

    def __init__(self, sources: Sequence, keep_input: Any, enqueue_many: bool, shapes: Any,
                 function: str) -> None:
        self._original, self.enqueue_many = sources[0], enqueue_many
        self.lists = [convert_n_to_tensor(_listed(source, self._original)) for source in sources]
        if not self.lists[0]:
            raise ValueError("Expected at least one tensor in %s()." % function)
        self.dtypes = [tensor.dtype for tensor in self.lists[0]]
        for tensors in self.lists:
            if [tensor.dtype for tensor in tensors] != self.dtypes:
                raise TypeError("Expected types to be consistent: %s vs. %s."
                                % ([d.name for d in self.dtypes],
                                   [tensor.dtype.name for tensor in tensors]))
        self.shapes = self._merged() if shapes is None else shapes
        self._keep = _checked_keep(keep_input, enqueue_many)

    def _merged(self) -> list:
        merged = []
        for tensors in zip(*self.lists):
            for tensor in tensors:
                if tensor.shape.ndims is None:
                    raise ValueError("Cannot infer Tensor's rank: %s" % tensor)
            shapes = [_row_shape(tensor.shape) if self.enqueue_many else tensor.shape
                      for tensor in tensors]
            for shape in shapes[1:]:
                shapes[0] = shapes[0].merge_with(shape)
            merged.append(shapes[0])
        return merged

    def fill(self, queue: QueueBase, threads: int) -> None:
        """Adds the queue's runner: each list has so many threads."""
        put = [operation for tensors in self.lists
               for operation in [self._enqueue(queue, tensors)] * threads]
        add_queue_runner(QueueRunner(queue, put))

    def _enqueue(self, queue: QueueBase, tensors: list) -> Operation:
        if self._keep is None:
            return queue.enqueue_many(tensors) if self.enqueue_many else queue.enqueue(tensors)
        keep, rows = self._keep, tensors
        if not self.enqueue_many:
            rows = [ops.ExpandDims(tensor, 0) for tensor in tensors]
        if keep.shape.ndims == 0:
            keep = ops.Fill(ops.StridedSlice(ops.Shape(rows[0]), [0], [1], [1]), keep)
        kept = ops.Reshape(ops.Where(keep), [-1])
        return queue.enqueue_many([ops.Gather(row, kept, 0) for row in rows])

    def as_given(self, values: Any) -> Any:
        """Tensors of a batch, named as the sources' are."""
        if not isinstance(self._original, dict):
            return values
        return dict(zip(sorted(self._original, key=str),
                        [values] if len(self._original) == 1 else values))


def _listed(source: Any, first: Any) -> list:
    if isinstance(source, dict):
        if not isinstance(first, dict) or source.keys() != first.keys():
            raise ValueError("all of tensors_list must have the same keys: %s and %s"
                             % (sorted(source, key=str), sorted(first, key=str)))
        return [source[key] for key in sorted(source, key=str)]
    if isinstance(source, (list, tuple)) and not isinstance(first, dict):
        return list(source)
    raise TypeError("a list or a dict of tensors is needed, not %r" % (source,))


def _checked_keep(keep_input: Any, enqueue_many: bool) -> Tensor | None:
    """Whether to keep, a bool tensor; None: always."""
    keep = convert_to_tensor(keep_input, _core.bool)
    if keep.shape.ndims is None:
        raise ValueError("`keep_input` dimensions must be known at graph construction.")
    if not enqueue_many and keep.shape.ndims == 1:
        raise ValueError("`keep_input` cannot be a vector when `enqueue_many=False`.")
    if keep.shape.ndims > 1:
        raise ValueError("`keep_input` must be 0 or 1 dimensions.")
    known = constant_value(keep) if keep.shape.ndims == 0 else None
    return None if known is not None and bool(known) else keep


def _several(tensors_list: Any, function: str) -> list:
    if not isinstance(tensors_list, (list, tuple)) or not tensors_list:
        raise ValueError("Expected at least one set of tensors in %s(), not %r"
                         % (function, tensors_list))
    return list(tensors_list)


def _batch(function: str, sources: Sequence, keep_input: Any, batch_size: Any, threads: int,
           capacity: int, enqueue_many: bool, shapes: Any, dynamic_pad: bool,
           allow_smaller_final_batch: bool, shared_name: str | None, name: str | None) -> Any:
    with scope_of(name, function, [*sources, keep_input]) as scope:
        given = _Sources(sources, keep_input, enqueue_many, shapes, function)
        kind = PaddingFIFOQueue if dynamic_pad else FIFOQueue
        queue = kind(capacity, given.dtypes, given.shapes, shared_name=shared_name)
        given.fill(queue, threads)
        _summarize("fraction_of_%d_full" % capacity, queue.size(), capacity)
        take = queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many
        return given.as_given(take(batch_size, name=scope))


def _shuffle_batch(function: str, sources: Sequence, keep_input: Any, batch_size: Any,
                   capacity: int, min_after_dequeue: int, threads: int, seed: int | None,
                   enqueue_many: bool, shapes: Any, allow_smaller_final_batch: bool,
                   shared_name: str | None, name: str | None) -> Any:
    if capacity <= min_after_dequeue:
        raise ValueError("capacity %d must be bigger than min_after_dequeue %d."
                         % (capacity, min_after_dequeue))
    with scope_of(name, function, [*sources, keep_input]) as scope:
        given = _Sources(sources, keep_input, enqueue_many, shapes, function)
        queue = RandomShuffleQueue(capacity, min_after_dequeue, given.dtypes, given.shapes,
                                   seed=seed, shared_name=shared_name)
        given.fill(queue, threads)
        _summarize("fraction_over_%d_of_%d_full" % (min_after_dequeue, capacity),
                   ops.Maximum(0, queue.size() - min_after_dequeue), capacity - min_after_dequeue)
        take = queue.dequeue_up_to if allow_smaller_final_batch else queue.dequeue_many
        return given.as_given(take(batch_size, name=scope))


def batch(tensors: Any, batch_size: Any, num_threads: int = 1, capacity: int = 32,
          enqueue_many: bool = False, shapes: Any = None, dynamic_pad: bool = False,
          allow_smaller_final_batch: bool = False, shared_name: str | None = None,
          name: str | None = None) -> Any:
    """Batches of what `tensors` are, run after run.

    tensors: a list or a dict of tensors, each without an axis for the batch (with it, if
    enqueue_many). The result is like it, each with a first axis of length batch_size; of a list of
    one tensor it is the tensor. num_threads: threads that compute tensors. capacity: elements that
    wait at most. shapes: of the elements, where the graph does not tell. dynamic_pad: elements of
    different sizes are filled up with zeros. allow_smaller_final_batch: whether the last batch may
    be smaller, rather than left out.

    The run raises OutOfRangeError when there is no more. Raises ValueError for elements of unknown
    shape.
    """
    return _batch("batch", [tensors], True, batch_size, num_threads, capacity, enqueue_many,
                  shapes, dynamic_pad, allow_smaller_final_batch, shared_name, name)


def maybe_batch(tensors: Any, keep_input: Any, batch_size: Any, num_threads: int = 1,
                capacity: int = 32, enqueue_many: bool = False, shapes: Any = None,
                dynamic_pad: bool = False, allow_smaller_final_batch: bool = False,
                shared_name: str | None = None, name: str | None = None) -> Any:
    """As batch(), of those elements for which keep_input is true: a bool scalar, or with
    enqueue_many also a vector, one for each row."""
    return _batch("maybe_batch", [tensors], keep_input, batch_size, num_threads, capacity,
                  enqueue_many, shapes, dynamic_pad, allow_smaller_final_batch, shared_name, name)


def batch_join(tensors_list: Sequence, batch_size: Any, capacity: int = 32,
               enqueue_many: bool = False, shapes: Any = None, dynamic_pad: bool = False,
               allow_smaller_final_batch: bool = False, shared_name: str | None = None,
               name: str | None = None) -> Any:
    """As batch(), of several lists or dicts of tensors, each with a thread of its own."""
    sources = _several(tensors_list, "batch_join")
    return _batch("batch_join", sources, True, batch_size, 1, capacity, enqueue_many, shapes,
                  dynamic_pad, allow_smaller_final_batch, shared_name, name)


def maybe_batch_join(tensors_list: Sequence, keep_input: Any, batch_size: Any, capacity: int = 32,
                     enqueue_many: bool = False, shapes: Any = None, dynamic_pad: bool = False,
                     allow_smaller_final_batch: bool = False, shared_name: str | None = None,
                     name: str | None = None) -> Any:
    """As batch_join(), of those elements for which keep_input is true (maybe_batch())."""
    sources = _several(tensors_list, "maybe_batch_join")
    return _batch("maybe_batch_join", sources, keep_input, batch_size, 1, capacity, enqueue_many,
                  shapes, dynamic_pad, allow_smaller_final_batch, shared_name, name)


def shuffle_batch(tensors: Any, batch_size: Any, capacity: int, min_after_dequeue: int,
                  num_threads: int = 1, seed: int | None = None, enqueue_many: bool = False,
                  shapes: Any = None, allow_smaller_final_batch: bool = False,
                  shared_name: str | None = None, name: str | None = None) -> Any:
    """As batch(), in random order: out of the min_after_dequeue elements and more that wait. seed:
    as of RandomShuffleQueue. Raises ValueError unless capacity > min_after_dequeue."""
    return _shuffle_batch("shuffle_batch", [tensors], True, batch_size, capacity,
                          min_after_dequeue, num_threads, seed, enqueue_many, shapes,
                          allow_smaller_final_batch, shared_name, name)


def maybe_shuffle_batch(tensors: Any, batch_size: Any, capacity: int, min_after_dequeue: int,
                        keep_input: Any, num_threads: int = 1, seed: int | None = None,
                        enqueue_many: bool = False, shapes: Any = None,
                        allow_smaller_final_batch: bool = False, shared_name: str | None = None,
                        name: str | None = None) -> Any:
    """As shuffle_batch(), of those elements for which keep_input is true (maybe_batch())."""
    return _shuffle_batch("maybe_shuffle_batch", [tensors], keep_input, batch_size, capacity,
                          min_after_dequeue, num_threads, seed, enqueue_many, shapes,
                          allow_smaller_final_batch, shared_name, name)


def shuffle_batch_join(tensors_list: Sequence, batch_size: Any, capacity: int,
                       min_after_dequeue: int, seed: int | None = None,
                       enqueue_many: bool = False, shapes: Any = None,
                       allow_smaller_final_batch: bool = False, shared_name: str | None = None,
                       name: str | None = None) -> Any:
    """As shuffle_batch(), of several lists or dicts of tensors, each with a thread of its own."""
    sources = _several(tensors_list, "shuffle_batch_join")
    return _shuffle_batch("shuffle_batch_join", sources, True, batch_size, capacity,
                          min_after_dequeue, 1, seed, enqueue_many, shapes,
                          allow_smaller_final_batch, shared_name, name)


def maybe_shuffle_batch_join(tensors_list: Sequence, batch_size: Any, capacity: int,
                             min_after_dequeue: int, keep_input: Any, seed: int | None = None,
                             enqueue_many: bool = False, shapes: Any = None,
                             allow_smaller_final_batch: bool = False,
                             shared_name: str | None = None, name: str | None = None) -> Any:
    """As shuffle_batch_join(), of those elements for which keep_input is true (maybe_batch())."""
    sources = _several(tensors_list, "maybe_shuffle_batch_join")
    return _shuffle_batch("maybe_shuffle_batch_join", sources, keep_input, batch_size, capacity,
                          min_after_dequeue, 1, seed, enqueue_many, shapes,
                          allow_smaller_final_batch, shared_name, name)
