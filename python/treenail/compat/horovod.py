# SPDX-License-Identifier: Apache-2.0
"""Horovod's calls for TensorFlow 1, on groups of processes of treenail.distributed:

    import treenail.compat.horovod as hvd
    hvd.init()
    optimizer = hvd.DistributedOptimizer(tn.train.AdamOptimizer(0.001 * hvd.size()))
    hooks = [hvd.BroadcastGlobalVariablesHook(0)]

Names, arguments and defaults are those of horovod.tensorflow 0.19 (horovod/tensorflow/__init__.py);
what stands for GPUs there has no meaning here and is accepted. Reductions follow the order of
ranks.
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail import distributed as _distributed
from treenail._convert import IndexedSlices as _IndexedSlices
from treenail._convert import convert_to_tensor as _convert
from treenail._math import cast as _cast
from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from treenail._treenail import Operation, Tensor

Average, Sum = "Average", "Sum"


class Compression:
    """How values travel."""

    none = None  # as they are
    fp16 = "float16"


def init(comm: Any = None) -> None:
    """Joins the group of all processes that the launcher has started. Raises ValueError for a
    communicator of some of them; else as treenail.distributed.init."""
    if comm:
        raise ValueError("comm is %r; only the group of all processes is served" % (comm,))
    _distributed.init()


def shutdown() -> None:
    """Leaves the group."""
    _distributed.shutdown()


def is_initialized() -> bool:
    """Whether init() was called."""
    return _distributed.is_initialized()


def rank() -> int:
    """The number of this process, from 0."""
    return _distributed.rank()


def size() -> int:
    """How many processes there are."""
    return _distributed.size()


def local_rank() -> int:
    """The number of this process among those on its host."""
    return _distributed.local_rank()


def local_size() -> int:
    """How many processes are on this host."""
    return _distributed.local_size()


def mpi_threads_supported() -> bool:
    """Whether other threads may call MPI meanwhile: no."""
    return False


def _reduction(average: bool | None, op: Any) -> str:
    if average is not None and op is not None:
        raise ValueError("The op parameter supersedes average. Please provide only one of them.")
    if op not in (None, Average, Sum):
        raise ValueError("op is %r; needed is Average or Sum" % (op,))
    return "sum" if op == Sum or average is False else "mean"


def allreduce(tensor: Any, average: bool | None = None, device_dense: str = "",
              device_sparse: str = "", compression: Any = Compression.none, op: Any = None,
              name: str | None = None) -> Any:
    """The mean of the tensor over all processes, or the sum (average=False or op=Sum); in the order
    of ranks. IndexedSlices are gathered. The mean of integers is rounded down."""
    reduction = _reduction(average, op)
    if isinstance(tensor, _IndexedSlices):
        values = allgather(tensor.values)
        if reduction == "mean":
            values = values / size()
        return _IndexedSlices(values, allgather(tensor.indices), tensor.dense_shape)
    value = _convert(tensor)
    narrow = _core.float16 if compression == Compression.fp16 and value.dtype.is_floating else None
    if reduction == "mean" and value.dtype.is_integer:
        return _distributed.all_reduce(value, "sum", name=name) // size()
    if narrow is None:
        return _distributed.all_reduce(value, reduction, name=name)
    return _cast(_distributed.all_reduce(_cast(value, narrow), reduction, name=name), value.dtype)


def allgather(tensor: Any, name: str | None = None) -> Tensor:
    """The tensors of all processes joined along the first axis, whose extents may differ."""
    return _distributed.all_gather(tensor, name=name)


def broadcast(tensor: Any, root_rank: int, name: str | None = None) -> Tensor:
    """The tensor of process root_rank."""
    return _distributed.broadcast(tensor, root_rank, name=name)


def broadcast_variables(variables: Any, root_rank: int) -> Operation:
    """An operation that gives these variables the values of process root_rank.
    Raises TypeError for what is no variable."""
    return _distributed.broadcast_variables(variables, root_rank)


def broadcast_global_variables(root_rank: int) -> Operation:
    """The same for all global variables."""
    return _distributed.broadcast_variables(None, root_rank)


class BroadcastGlobalVariablesHook(_distributed.BroadcastVariablesHook):
    """A session hook that begins with the variables of process root_rank."""

    def __init__(self, root_rank: int, device: str = "") -> None:
        super().__init__(root_rank)


def DistributedOptimizer(optimizer: Any, name: str | None = None, use_locking: bool = False,
                         device_dense: str = "", device_sparse: str = "",
                         compression: Any = Compression.none, sparse_as_dense: bool = False,
                         backward_passes_per_step: int = 1, op: Any = Average) -> Any:
    """The optimizer, with gradients averaged over all processes, or summed (op=Sum). Raises
    ValueError for backward_passes_per_step other than 1."""
    if backward_passes_per_step != 1:
        raise ValueError("backward_passes_per_step is %r; only 1 is served"
                         % (backward_passes_per_step,))
    return _distributed.DistributedOptimizer(
        optimizer, _reduction(None, op), compression=compression,
        name=name or "Distributed" + type(optimizer).__name__)


__all__ = ["Average", "Sum", "Compression", "init", "shutdown", "is_initialized", "rank", "size",
           "local_rank", "local_size", "mpi_threads_supported", "allreduce", "allgather",
           "broadcast", "broadcast_variables", "broadcast_global_variables",
           "BroadcastGlobalVariablesHook", "DistributedOptimizer"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
