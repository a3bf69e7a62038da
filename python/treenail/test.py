# SPDX-License-Identifier: Apache-2.0
"""What tests of programs need: gradients held to finite differences, clusters of one process."""

from __future__ import annotations

import contextlib

from treenail import _treenail as _core
from treenail._convert import IndexedSlices, convert_to_tensor
from treenail._gradients import gradients
from treenail._names import no_attribute as _no_attribute
from treenail._ops import ops
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._session import session_or_default
from treenail._shape import as_shape
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_DTYPES = (_core.float16, _core.float32, _core.float64, _core.complex64, _core.complex128)


def compute_gradient(x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None,
                     delta: float = 1e-3, init_targets: Any = None,
                     extra_feed_dict: dict | None = None) -> Any:
    """The Jacobian of y with respect to x twice, as arrays [elements of x, elements of y]: by
    tn.gradients, and by central differences; for a list of tensors x a list of such pairs.

    x: a tensor that is fed, or a list of them; x_shape: its shape, or a list of shapes; y, y_shape:
    a tensor and its shape. float16, float32, float64, complex64 or complex128; a complex element
    counts as two, its real and its imaginary part. x_init_value: an array, or a list of them, where
    to differentiate; by default random numbers in [0, 1). delta: how far elements of x are moved
    either way. init_targets: operations that are run before, as initializers of variables.
    extra_feed_dict: fed besides.

    Runs in the default session. Raises TypeError for what is no tensor, another dtype and shape, or
    a y that does not depend on x (ValueError), and ValueError without a default session.
    """
    several = isinstance(x, (list, tuple))
    xs = list(x) if several else [x]
    shapes = list(x_shape) if several else [x_shape]
    values = list(x_init_value) if several and x_init_value is not None else [x_init_value] * len(
        xs)
    if not len(xs) == len(shapes) == len(values):
        raise ValueError("x, x_shape and x_init_value must be lists of as many, not of %d, %d and "
                         "%d" % (len(xs), len(shapes), len(values)))
    point = {each: _initial(each, shape, value) for each, shape, value in zip(xs, shapes, values)}
    check = _Check(y, y_shape, point, _delta(delta), extra_feed_dict)
    check.initialize(init_targets)
    found = [(check.theoretical(each), check.numerical(each)) for each in xs]
    return found if several else found[0]


def compute_gradient_error(x: Any, x_shape: Any, y: Any, y_shape: Any, x_init_value: Any = None,
                           delta: float = 1e-3, init_targets: Any = None,
                           extra_feed_dict: dict | None = None) -> float:
    """The largest difference between elements of the two Jacobians that tn.test.compute_gradient
    gives, which see; 0 where they have none. NaN where one of them is."""
    found = compute_gradient(x, x_shape, y, y_shape, x_init_value, delta, init_targets,
                             extra_feed_dict)
    pairs = found if isinstance(found, list) else [found]
    return float(max([abs(a - b).max() for a, b in pairs if a.size] or [0],
                     key=lambda error: float("inf") if error != error else error))


def _checked(tensor: Any, shape: Any, what: str) -> list:
    """The shape, all of it known, of a tensor whose dtype is one of those."""
    if not isinstance(tensor, Tensor):
        raise TypeError("%s must be a Tensor, not %r" % (what, tensor))
    if tensor.dtype not in _DTYPES:
        raise TypeError("%s has dtype %s; gradients are computed of %s"
                        % (what, tensor.dtype.name, ", ".join(d.name for d in _DTYPES)))
    known = as_shape(shape)
    if not known.is_fully_defined():
        raise ValueError("%s_shape must be fully known, not %s" % (what, known))
    if not tensor.shape.is_compatible_with(known):
        raise ValueError("%s_shape is %s, but %s has shape %s" % (what, known, what, tensor.shape))
    return known.as_list()


def _initial(x: Any, shape: Any, value: Any) -> Any:
    import numpy as np
    extents = _checked(x, shape, "x")
    dtype = x.dtype.as_numpy_dtype
    if value is None:
        value = np.random.random_sample(extents)
        if x.dtype.is_complex:
            value = value + 1j * np.random.random_sample(extents)
    value = np.array(value, dtype)
    if list(value.shape) != extents:
        raise ValueError("x_init_value has shape %s, x_shape is %s" % (list(value.shape), extents))
    return value


def _delta(delta: Any) -> float:
    if isinstance(delta, bool) or not isinstance(delta, (int, float)) or not delta > 0:
        raise ValueError("delta must be a positive number, not %r" % (delta,))
    return float(delta)


def _parts(array: Any) -> Any:
    """The elements of a contiguous array, a complex one's parts as two: a view."""
    flat = array.reshape(-1)
    return flat.view(flat.real.dtype) if flat.dtype.kind == "c" else flat


class _Check:
    """The two Jacobians of y at a point {x: value}."""

    def __init__(self, y: Any, y_shape: Any, point: dict, delta: float, feeds: Any) -> None:
        self._y, self._y_shape = y, _checked(y, y_shape, "y")
        self._point, self._delta = point, delta
        if feeds is not None and not isinstance(feeds, dict):
            raise TypeError("extra_feed_dict must be a dict, not %r" % (feeds,))
        self._feeds = {**(feeds or {}), **point}
        self._session = session_or_default(None, y.graph)
        for x in point:
            if x.graph is not y.graph:
                raise ValueError("x and y are of different graphs: %r, %r" % (x, y))

    def initialize(self, targets: Any) -> None:
        if targets is not None:
            self._session.run(list(targets) if isinstance(targets, (list, tuple)) else targets)

    def theoretical(self, x: Tensor) -> Any:
        import numpy as np
        with self._y.graph.as_default():
            incoming = ops.Identity(convert_to_tensor(np.ones(self._y_shape), self._y.dtype))
            (gradient,) = gradients(self._y, x, incoming)
            if gradient is None:
                raise ValueError("no path of differentiable operations leads from x (%r) to y (%r)"
                                 % (x, self._y))
            if isinstance(gradient, IndexedSlices):
                gradient = convert_to_tensor(gradient)
        given = np.zeros(self._y_shape, self._y.dtype.as_numpy_dtype)
        parts = _parts(given)
        rows = _parts(self._point[x]).size
        jacobian = np.zeros([rows, parts.size], parts.dtype)
        for column in range(parts.size):
            parts[:] = 0
            parts[column] = 1
            value = self._session.run(gradient, {**self._feeds, incoming: given})
            jacobian[:, column] = _parts(np.ascontiguousarray(value))
        return jacobian

    def numerical(self, x: Tensor) -> Any:
        import numpy as np
        moved = self._point[x].copy()
        parts = _parts(moved)
        columns = _parts(np.zeros(self._y_shape, self._y.dtype.as_numpy_dtype))
        jacobian = np.zeros([parts.size, columns.size], columns.dtype)
        for row in range(parts.size):
            before = parts[row]
            above, below = [self._value(x, moved, parts, row, before + step)
                            for step in (self._delta, -self._delta)]
            parts[row] = before
            jacobian[row] = (above - below) / (2 * self._delta)
        return jacobian

    def _value(self, x: Tensor, moved: Any, parts: Any, row: int, to: Any) -> Any:
        import numpy as np
        parts[row] = to
        value = self._session.run(self._y, {**self._feeds, x: moved.copy()})
        return _parts(np.ascontiguousarray(value))


def _free_addresses(count: int) -> list:
    """Of this machine; nobody listens there, though somebody may come."""
    import socket
    with contextlib.ExitStack() as until_all_are_known:
        found = []
        for _ in range(count):
            each = until_all_are_known.enter_context(socket.socket())
            each.bind(("localhost", 0))
            found.append("localhost:%d" % each.getsockname()[1])
    return found


def create_local_cluster(num_workers: int, num_ps: int, protocol: str = "grpc",
                         worker_config: Any = None, ps_config: Any = None) -> tuple:
    """(servers of the job "worker", servers of "ps"), lists of tn.train.Server: all tasks of a
    cluster in this process, at free ports of this machine.

    worker_config, ps_config: tn.ConfigProto of the servers. Raises ValueError for numbers below 0,
    a cluster without tasks, and a protocol other than "grpc".

        workers, ps = tn.test.create_local_cluster(num_workers=2, num_ps=1)
        with tn.Session(workers[0].target) as session:
            ...
    """
    from treenail.train import Server
    counts = {"worker": num_workers, "ps": num_ps}
    if any(isinstance(count, bool) or not isinstance(count, int) or count < 0
           for count in counts.values()) or not any(counts.values()):
        raise ValueError("num_workers is %r and num_ps is %r; needed are numbers from 0 on, and a "
                         "task" % (num_workers, num_ps))
    if protocol != "grpc":
        raise ValueError("protocol is %r; needed is \"grpc\"" % (protocol,))
    addresses = _free_addresses(num_workers + num_ps)
    cluster = {job: tasks for job, tasks in (("worker", addresses[:num_workers]),
                                             ("ps", addresses[num_workers:])) if tasks}
    configs = {"worker": worker_config, "ps": ps_config}
    servers: dict = {"worker": [], "ps": []}
    for job, tasks in cluster.items():
        servers[job] = [Server(cluster, job, task, config=configs[job])
                        for task in range(len(tasks))]
    return servers["worker"], servers["ps"]


__all__ = ["compute_gradient", "compute_gradient_error", "create_local_cluster"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
