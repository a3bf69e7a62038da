# SPDX-License-Identifier: Apache-2.0
"""replica_device_setter: variables on parameter servers, all else on the worker; and how variables
are shared out among the servers."""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._checks import having
from treenail._devices import device_name, merged_device
from treenail.train._cluster_spec import ClusterSpec

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from treenail._treenail import Operation

# What keeps state that servers hold: TensorFlow's list, as far as there are such operations.
STANDARD_PS_OPS = ("VarHandleOp", "MutableHashTableV2", "MutableHashTableOfTensorsV2")


def _at_least_one(num_tasks: Any) -> int:
    if isinstance(num_tasks, bool) or not hasattr(num_tasks, "__index__"):
        raise TypeError("num_tasks must be an int, not %r" % (num_tasks,))
    if num_tasks < 1:
        raise ValueError("num_tasks must be at least 1, not %r" % (num_tasks,))
    return num_tasks.__index__()


class RoundRobinStrategy:
    """A strategy for replica_device_setter: server after server in turn. The default one."""

    def __init__(self, num_tasks: int) -> None:
        self._num_tasks, self._next = _at_least_one(num_tasks), 0

    def __call__(self, op: Operation) -> int:
        """The server for this operation."""
        task, self._next = self._next, (self._next + 1) % self._num_tasks
        return task


class GreedyLoadBalancingStrategy:
    """A strategy for replica_device_setter: each operation goes to the server with the least load
    so far, the first of several.

    num_tasks: how many servers there are. load_fn(op): what it costs, such as byte_size_load_fn.
    """

    def __init__(self, num_tasks: int, load_fn: Callable) -> None:
        if not callable(load_fn):
            raise TypeError("load_fn must be a function of an operation, not %r" % (load_fn,))
        self._loads, self._load_fn = [0.0] * _at_least_one(num_tasks), load_fn

    def __call__(self, op: Operation) -> int:
        """The server for this operation, whose load then grows."""
        task = self._loads.index(min(self._loads))
        self._loads[task] += self._load_fn(op)
        return task


def byte_size_load_fn(op: Operation) -> float:
    """What a variable takes in bytes, by its operation; a string is counted as 16. Raises
    ValueError for an operation without outputs, and where the shape is not fully known."""
    having(op, "outputs", "op", "an Operation")
    if not op.outputs:
        raise ValueError("op must have an output, %r has none" % (op,))
    dtype, shape = op.outputs[0].dtype, op.outputs[0].shape
    if op.type == "VarHandleOp":
        dtype, shape = op.get_attr("dtype"), op.get_attr("shape")
    if not shape.is_fully_defined():
        raise ValueError("the shape of op %r must be fully known to count its bytes, it is %s"
                         % (op.name, shape))
    return float(shape.num_elements() * (16 if dtype == _core.string else dtype.size))


def _job(device: str) -> str | None:
    for part in device.split("/"):
        if part.startswith("job:"):
            return part[4:]
    return None


class _ReplicaDeviceChooser:
    """Says the device of each operation."""

    def __init__(self, ps_tasks: int, ps_device: str, worker_device: str, merge_devices: bool,
                 ps_ops: Sequence, ps_strategy: Callable) -> None:
        self._ps_tasks, self._ps_ops, self._strategy = ps_tasks, ps_ops, ps_strategy
        self._ps_device, self._worker_device = device_name(ps_device), device_name(worker_device)
        self._merge = merge_devices

    def __call__(self, op: Operation) -> str:
        given = op.device
        if not self._merge and given:
            return given
        if self._ps_tasks and self._ps_device and op.type in self._ps_ops:
            device = self._ps_device
            if _job(device) and _job(given) in (None, _job(device)):
                device = merged_device(device, "/task:%d" % self._strategy(op))
            return merged_device(device, given)
        for tensor in op.inputs:
            if tensor.dtype == _core.resource and tensor.op.type in self._ps_ops:
                return tensor.op.device  # works on a variable, so where that is
        return merged_device(self._worker_device, given)


def replica_device_setter(ps_tasks: int = 0, ps_device: str = "/job:ps",
                          worker_device: str = "/job:worker", merge_devices: bool = True,
                          cluster: Any = None, ps_ops: Sequence | None = None,
                          ps_strategy: Callable | None = None) -> Callable | None:
    """A function for tn.device(): variables, and what works on them, go to parameter servers, all
    other operations to the worker.

    ps_tasks: how many servers there are; 0 and no cluster: None is given. ps_device: their job.
    worker_device: the worker. merge_devices: whether operations that ask for a device themselves
    get what that leaves open. cluster: a ClusterSpec, or what makes one, that tells ps_tasks.
    ps_ops: types of operations that servers hold, ["VarHandleOp"] by default. ps_strategy(op): the
    server of each; in turn by default.

        with tn.device(tn.train.replica_device_setter(cluster=cluster)):
            ...
    """
    if cluster is not None:
        spec = ClusterSpec(cluster)
        job = _job(device_name(ps_device))
        if job not in spec.jobs:
            return None
        ps_tasks = spec.num_tasks(job)
    if isinstance(ps_tasks, bool) or not hasattr(ps_tasks, "__index__") or ps_tasks < 0:
        raise TypeError("ps_tasks must be an int of at least 0, not %r" % (ps_tasks,))
    if not ps_tasks:
        return None
    device_name(worker_device), device_name(ps_device)
    if ps_strategy is None:
        ps_strategy = RoundRobinStrategy(ps_tasks)
    if not callable(ps_strategy):
        raise TypeError("ps_strategy must be callable, not %r" % (ps_strategy,))
    if ps_ops is not None and not isinstance(ps_ops, (list, tuple)):
        raise TypeError("ps_ops must be a list of types of operations, not %r" % (ps_ops,))
    return _ReplicaDeviceChooser(ps_tasks, ps_device, worker_device, merge_devices,
                                 STANDARD_PS_OPS if ps_ops is None else ps_ops, ps_strategy)


__all__ = ["GreedyLoadBalancingStrategy", "RoundRobinStrategy", "byte_size_load_fn",
           "replica_device_setter"]
