# SPDX-License-Identifier: Apache-2.0
"""TensorFlow's ways to reduce values over devices and processes, which programs hand to strategies.
There is one way here, in the order of replicas, so that a choice among them changes nothing."""

from __future__ import annotations

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


class CollectiveCommunication:
    """How bytes travel between workers: AUTO, RING or NCCL. Which way is found, not chosen
    (tn.distributed.transport() tells)."""

    AUTO = "AUTO"
    RING = "RING"
    NCCL = "NCCL"


def check_cross_device_ops(given: Any) -> None:
    """Raises TypeError for what is neither None nor one of them."""
    if given is not None and not isinstance(given, CrossDeviceOps):
        raise TypeError("cross_device_ops must be a tn.distribute.CrossDeviceOps or None, not %r"
                        % (given,))


def check_communication(given: Any) -> None:
    """Raises ValueError for what is neither None nor one of them."""
    ways = CollectiveCommunication
    if given not in (None, ways.AUTO, ways.RING, ways.NCCL):
        raise ValueError("communication must be AUTO, RING or NCCL of "
                         "tn.distribute.experimental.CollectiveCommunication, not %r" % (given,))


__all__ = ["CrossDeviceOps", "ReductionToOneDevice", "HierarchicalCopyAllReduce", "NcclAllReduce",
           "CollectiveCommunication"]
