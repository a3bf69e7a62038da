# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's ways to reduce values over devices and processes, which programs hand to strategies.
There is one way here, in the order of replicas, so that a choice among them changes nothing."""

from __future__ import annotations

import enum

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class CrossDeviceOps:
    """How a strategy reduces and copies values. One of its subclasses; all reduce in the order of
    replicas, whatever was chosen."""


class ReductionToOneDevice(CrossDeviceOps):
    """reduce_to_device, accumulation_fn: must be None; where and how values are added up is the
    strategy's. Raises ValueError for others."""

    def __init__(self, reduce_to_device: Any = None, accumulation_fn: Any = None) -> None:
        if reduce_to_device is not None or accumulation_fn is not None:
            raise ValueError("reduce_to_device is %r and accumulation_fn is %r; needed is None: "
                             "strategies add up in the order of replicas"
                             % (reduce_to_device, accumulation_fn))


class _AllReduce(CrossDeviceOps):

    def __init__(self, num_packs: int = 1) -> None:
        if isinstance(num_packs, bool) or not isinstance(num_packs, int) or num_packs < 0:
            raise ValueError("num_packs is %r; needed is a number from 0 on" % (num_packs,))


class HierarchicalCopyAllReduce(_AllReduce):
    """num_packs: 0 or more; nothing follows from it. Raises ValueError for another."""


class NcclAllReduce(_AllReduce):
    """num_packs: 0 or more; nothing follows from it. Raises ValueError for another."""


class CollectiveCommunication(enum.Enum):
    """How bytes travel between workers: which way is found, not chosen
    (tn.distributed.transport() tells)."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


def checked_kind(argument: str, given: Any, kind: type) -> None:
    """Raises TypeError for what is neither None nor of that kind."""
    if given is not None and not isinstance(given, kind):
        raise TypeError("%s must be a %s or None, not %r" % (argument, kind.__name__, given))


__all__ = ["CrossDeviceOps", "ReductionToOneDevice", "HierarchicalCopyAllReduce", "NcclAllReduce",
           "CollectiveCommunication"]
