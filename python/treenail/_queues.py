# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1's queues: elements that wait in a session, and runs that wait for them.

In the graph a queue is a handle; what it holds belongs to the session (or to those that share its
state). An operation on it waits inside the run that asked for it, and other runs go on.
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._convert import convert_to_tensor, scope_of
from treenail._framework import get_seed
from treenail._ops import ops
from treenail._shape import TensorShape
from treenail._treenail import DType, Operation, Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


class QueueBase:
    """Elements of one or more components, each a tensor of a dtype and, where shapes are given, a
    shape. Runs that enqueue wait while the queue is full, runs that dequeue while it is empty;
    whoever came first is served first.

    dtypes: of the components. shapes: of the components, or None for any. names: of the components,
    or None; with names an element is a dict. queue_ref: the handle.

    An element is a tuple of tensors, or the tensor where there is one component.
    """

    def __init__(self, dtypes: Sequence, shapes: Sequence | None, names: Sequence | None,
                 queue_ref: Tensor) -> None:
        self._dtypes = [_core.as_dtype(dtype) for dtype in dtypes]
        _check_length("shapes", shapes, self._dtypes)
        _check_length("names", names, self._dtypes)
        self._shapes = [TensorShape(None if shapes is None else shapes[i])
                        for i in range(len(self._dtypes))]
        self._names = None if names is None else list(names)
        if not isinstance(queue_ref, Tensor) or queue_ref.dtype != _core.resource:
            raise TypeError("queue_ref must be a queue's handle, a tensor of dtype resource, not %r"
                            % (queue_ref,))
        self._queue_ref = queue_ref
        self._name = queue_ref.op.name.rpartition("/")[2]

    @staticmethod
    def from_list(index: Any, queues: Sequence) -> QueueBase:
        """The queue number `index`, an integer scalar that a run computes, of `queues`: they have
        the same dtypes and names. Raises TypeError."""
        if not queues or not isinstance(queues, list) or not all(isinstance(queue, QueueBase)
                                                                 for queue in queues):
            raise TypeError("A list of queues expected, not %r" % (queues,))
        dtypes, names = queues[0].dtypes, queues[0].names
        if any(queue.dtypes != dtypes for queue in queues):
            raise TypeError("Queues do not have matching component dtypes: %s"
                            % [[d.name for d in queue.dtypes] for queue in queues])
        if any(queue.names != names for queue in queues):
            raise TypeError("Queues do not have matching component names: %s"
                            % [queue.names for queue in queues])
        shapes = [_common(shapes) for shapes in zip(*(queue.shapes for queue in queues))]
        handles = ops.Pack([queue.queue_ref for queue in queues])
        return QueueBase(dtypes, shapes, names, ops.Gather(handles, convert_to_tensor(index), 0))

    @property
    def queue_ref(self) -> Tensor:
        """The handle, a scalar of dtype resource."""
        return self._queue_ref

    @property
    def name(self) -> str:
        """The name of the operation that gives the handle, without its scope."""
        return self._name

    @property
    def dtypes(self) -> list[DType]:
        """The dtypes of the components."""
        return self._dtypes

    @property
    def shapes(self) -> list[TensorShape]:
        """What is known of the components' shapes."""
        return self._shapes

    @property
    def names(self) -> list | None:
        """The names of the components, or None."""
        return self._names

    # --- In ---------------------------------------------------------------------------------------

    def _listed(self, vals: Any) -> list:
        """The components of an element, in the queue's order."""
        if isinstance(vals, dict):
            if not self._names:
                raise ValueError("Queue must have names to enqueue a dictionary")
            if sorted(map(str, self._names)) != sorted(map(str, vals)):
                raise ValueError("Keys in dictionary to enqueue do not match names of Queue.  "
                                 "Dictionary: %s, Queue: %s"
                                 % (sorted(map(str, vals)), sorted(map(str, self._names))))
            return [vals[name] for name in self._names]
        if self._names:
            raise ValueError("You must enqueue a dictionary in a Queue with names")
        return list(vals) if isinstance(vals, (list, tuple)) else [vals]

    def _tensors(self, values: list) -> list:
        if len(values) != len(self._dtypes):
            raise ValueError("Wrong number of components in tuple. Expected %d, got %d"
                             % (len(self._dtypes), len(values)))
        return [convert_to_tensor(value, dtype, name="component_%d" % i)
                for i, (value, dtype) in enumerate(zip(values, self._dtypes))]

    def enqueue(self, vals: Any, name: str | None = None) -> Operation:
        """Puts one element into the queue, and waits for room.

        vals: a tensor, a tuple or list of them, or a dict where the queue has names.
        The run raises CancelledError when the queue is closed. Raises ValueError for an element
        that is not one of this queue.
        """
        listed = self._listed(vals)
        with scope_of(name, "%s_enqueue" % self._name, [self._queue_ref, *listed]) as scope:
            values = self._tensors(listed)
            for value, shape in zip(values, self._shapes):
                value.shape.assert_is_compatible_with(shape)
            return ops.QueueEnqueueV2(self._queue_ref, values, name=scope)

    def enqueue_many(self, vals: Any, name: str | None = None) -> Operation:
        """Puts the rows of `vals` into the queue as its elements, each as soon as there is room.

        vals: as of enqueue(), each tensor with a first axis of the same length. A run that is
        cancelled on the way leaves the elements that are in. Raises as enqueue().
        """
        listed = self._listed(vals)
        with scope_of(name, "%s_EnqueueMany" % self._name, [self._queue_ref, *listed]) as scope:
            values = self._tensors(listed)
            for value, shape in zip(values, self._shapes):
                value.shape.assert_is_compatible_with(TensorShape([None]).concatenate(shape))
            return ops.QueueEnqueueManyV2(self._queue_ref, values, name=scope)

    # --- Out --------------------------------------------------------------------------------------

    def _element(self, values: list, rows: list) -> Any:
        # Most are known by the handle; those of from_list() are not.
        for value, shape in zip(values, self._shapes):
            wanted = TensorShape(rows).concatenate(shape)
            if value.shape.merge_with(wanted).dims != value.shape.dims:
                value.set_shape(wanted)
        if self._names:
            return dict(zip(self._names, values))
        return values[0] if len(values) == 1 else values

    def dequeue(self, name: str | None = None) -> Any:
        """Takes an element out of the queue, and waits for one: a tensor, a list of them, or a dict
        where the queue has names.

        The run raises OutOfRangeError when the queue is closed and empty.
        """
        values = ops.QueueDequeueV2(self._queue_ref, component_types=self._dtypes,
                                    name=name or "%s_Dequeue" % self._name)
        return self._element(values, [])

    def dequeue_many(self, n: Any, name: str | None = None) -> Any:
        """Takes n elements out of the queue, as they come: the components, each with a first axis
        of length n.

        n: an integer scalar, which may be more than the queue's capacity.
        The run raises OutOfRangeError when the queue is closed and has fewer, which then stay in
        it, and InvalidArgumentError when the queue was made without shapes.
        """
        values = ops.QueueDequeueManyV2(self._queue_ref, n, component_types=self._dtypes,
                                        name=name or "%s_DequeueMany" % self._name)
        return self._element(values, [None])

    def dequeue_up_to(self, n: Any, name: str | None = None) -> Any:
        """As dequeue_many(), but gives what there is, one element at least, when the queue is
        closed and has fewer than n."""
        values = ops.QueueDequeueUpToV2(self._queue_ref, n, component_types=self._dtypes,
                                        name=name or "%s_DequeueUpTo" % self._name)
        return self._element(values, [None])

    # --- The queue itself -------------------------------------------------------------------------

    def close(self, cancel_pending_enqueues: bool = False, name: str | None = None) -> Operation:
        """Closes the queue: what is enqueued later fails, and dequeues give what is left.

        cancel_pending_enqueues: whether enqueues that wait for room fail, too (CancelledError); if
        not, the operation waits until they are done.
        """
        return ops.QueueCloseV2(self._queue_ref,
                                cancel_pending_enqueues=cancel_pending_enqueues,
                                name=name or "%s_Close" % self._name)

    def is_closed(self, name: str | None = None) -> Tensor:
        """Whether the queue is closed, a bool scalar."""
        return ops.QueueIsClosedV2(self._queue_ref, name=name or "%s_Is_Closed" % self._name)

    def size(self, name: str | None = None) -> Tensor:
        """How many elements the queue holds, an int32 scalar."""
        return ops.QueueSizeV2(self._queue_ref, name=name or "%s_Size" % self._name)

    def __repr__(self) -> str:
        return "<tn.%s '%s' of %s>" % (type(self).__name__, self._name,
                                       ", ".join(dtype.name for dtype in self._dtypes))


class FIFOQueue(QueueBase):
    """A queue whose elements leave as they came.

    capacity: how many elements it holds; -1: as many as come. dtypes, shapes, names: of the
    components, as QueueBase; a single one need not be in a list. shapes are fully known.
    shared_name: operations of the same name mean one queue, wherever they share a session's state;
    without it the operation's own name counts. Raises ValueError, and the run InvalidArgumentError
    where a queue of that name is another in any respect.
    """

    def __init__(self, capacity: int, dtypes: Any, shapes: Any = None, names: Any = None,
                 shared_name: str | None = None, name: str = "fifo_queue") -> None:
        dtypes = _dtypes_of(dtypes)
        shapes, names = _shapes_of(shapes, dtypes), _names_of(names, dtypes)
        handle = ops.FIFOQueueV2(component_types=dtypes, shapes=shapes or [], capacity=capacity,
                                 shared_name=shared_name or "", name=name)
        super().__init__(dtypes, shapes, names, handle)


class PaddingFIFOQueue(QueueBase):
    """A FIFOQueue whose shapes may have unknown extents: dequeue_many() and dequeue_up_to() fill
    elements up with zeros (False, empty strings) to the largest of the batch.

    Parameters as of FIFOQueue; shapes are needed, and their ranks known.
    """

    def __init__(self, capacity: int, dtypes: Any, shapes: Any, names: Any = None,
                 shared_name: str | None = None, name: str = "padding_fifo_queue") -> None:
        dtypes = _dtypes_of(dtypes)
        shapes, names = _shapes_of(shapes, dtypes, True), _names_of(names, dtypes)
        if shapes is None or len(shapes) != len(dtypes):
            raise ValueError("Shapes must be provided for all components, but received %d dtypes "
                             "and %d shapes." % (len(dtypes), len(shapes or ())))
        handle = ops.PaddingFIFOQueueV2(component_types=dtypes, shapes=shapes, capacity=capacity,
                                        shared_name=shared_name or "", name=name)
        super().__init__(dtypes, shapes, names, handle)


class RandomShuffleQueue(QueueBase):
    """A queue whose elements leave in random order.

    min_after_dequeue: so many elements stay while the queue is open: the more, the better the
    mixture. seed: with it, or after tn.set_random_seed, the order is the same each time, as long as
    enqueues and dequeues follow each other alike. Other parameters as of FIFOQueue.
    """

    def __init__(self, capacity: int, min_after_dequeue: int, dtypes: Any, shapes: Any = None,
                 names: Any = None, seed: int | None = None, shared_name: str | None = None,
                 name: str = "random_shuffle_queue") -> None:
        dtypes = _dtypes_of(dtypes)
        shapes, names = _shapes_of(shapes, dtypes), _names_of(names, dtypes)
        handle = ops.RandomShuffleQueueV2(
            component_types=dtypes, shapes=shapes or [], capacity=capacity,
            min_after_dequeue=min_after_dequeue, shared_name=shared_name or "", name=name,
            **_seeds(seed, shared_name))
        super().__init__(dtypes, shapes, names, handle)


def _seeds(seed: int | None, shared_name: str | None) -> dict:
    """As TensorFlow 1: who shares the queue by its name agrees on the second seed."""
    graph_seed, op_seed = get_seed(seed)
    if graph_seed is None and op_seed is None:
        graph_seed, op_seed = 0, 0
    elif seed is None and shared_name is not None:
        import hashlib
        digest = hashlib.md5(shared_name.encode(), usedforsecurity=False).hexdigest()
        op_seed = int(digest[:8], 16) & 0x7fffffff
    return {"seed": graph_seed, "seed2": op_seed}


class PriorityQueue(QueueBase):
    """A queue whose elements leave the lowest priority first, of equal ones as they came.

    types, shapes: of the components behind the priority, which is the first component of each
    element, a scalar int64. names: of all components, the priority's first. Other parameters as of
    FIFOQueue.
    """

    def __init__(self, capacity: int, types: Any, shapes: Any = None, names: Any = None,
                 shared_name: str | None = None, name: str = "priority_queue") -> None:
        types = _dtypes_of(types)
        shapes = _shapes_of(shapes, types)
        handle = ops.PriorityQueueV2(component_types=types, shapes=shapes or [], capacity=capacity,
                                     shared_name=shared_name or "", name=name)
        all_shapes = [TensorShape([])] + (shapes or [TensorShape(None)] * len(types))
        super().__init__([_core.int64] + types, all_shapes, names, handle)


# --- Arguments ------------------------------------------------------------------------------------

def _check_length(what: str, given: Any, dtypes: list) -> None:
    if given is not None and len(given) != len(dtypes):
        raise ValueError("Queue %s must have the same length as dtypes, received len(%s)=%d, "
                         "len(dtypes)=%d" % (what, what, len(given), len(dtypes)))


def _dtypes_of(dtypes: Any) -> list:
    if isinstance(dtypes, (list, tuple)):
        return [_core.as_dtype(dtype) for dtype in dtypes]
    return [_core.as_dtype(dtypes)]


def _shapes_of(shapes: Any, dtypes: list, may_be_partly_known: bool = False) -> list | None:
    """One shape for each component, or None."""
    if shapes is None:
        return None
    if isinstance(shapes, TensorShape):
        shapes = [shapes]
    if not isinstance(shapes, (list, tuple)):
        raise TypeError("shapes must be a TensorShape or a list or tuple of TensorShapes, not %r"
                        % (shapes,))
    if all(extent is None or isinstance(extent, int) for extent in shapes):
        shapes = [shapes]  # of the only component
    shapes = [TensorShape(shape) for shape in shapes]
    if not may_be_partly_known and not all(shape.is_fully_defined() for shape in shapes):
        raise ValueError("All shapes must be fully defined: %s" % [str(s) for s in shapes])
    if any(shape.ndims is None for shape in shapes):
        raise ValueError("All shapes must have a defined rank: %s" % [str(s) for s in shapes])
    _check_length("shapes", shapes, dtypes)
    return shapes


def _names_of(names: Any, dtypes: list) -> list | None:
    if names is None:
        return None
    names = list(names) if isinstance(names, (list, tuple)) else [names]
    if len(names) != len(dtypes):
        raise ValueError("List of names must have the same length as the list of dtypes: %d names, "
                         "%d dtypes" % (len(names), len(dtypes)))
    return names


def _common(shapes: Sequence) -> TensorShape:
    """What all the shapes agree on."""
    if any(shape.ndims is None or shape.ndims != shapes[0].ndims for shape in shapes):
        return TensorShape(None)
    return TensorShape([extents[0] if len(set(extents)) == 1 else None
                        for extents in zip(*(shape.as_list() for shape in shapes))])
