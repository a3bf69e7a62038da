# SPDX-License-Identifier: Apache-2.0
"""Strategies of one process: replicas on several of its devices, or one on a device of choice."""

from __future__ import annotations

from treenail._devices import device_name
from treenail.distribute._cross_device_ops import check_cross_device_ops
from treenail.distribute._strategy import Strategy, StrategyExtended

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def _checked_devices(devices: Sequence) -> list:
    named = [device_name(device) for device in devices]
    if not named:
        raise ValueError("devices is empty; needed is one device or more, such as \"/cpu:0\"")
    for device in named:
        if named.count(device) > 1:
            raise ValueError("devices names %r twice: each replica needs a device of its own"
                             % device)
    return named


class MirroredStrategy(Strategy):
    """Replicas on several devices of this process, which train one model in step.

    devices: one for each replica, by default the first CPU alone. Several CPUs are there by
    tn.ConfigProto(device_count={"CPU": 4}), for each session. cross_device_ops: a
    tn.distribute.CrossDeviceOps; values are added in the order of replicas, whichever it is.

        strategy = tn.distribute.MirroredStrategy(["/cpu:0", "/cpu:1"])
        with strategy.scope():
            w = tn.get_variable("w", [2, 1])
            optimizer = tn.train.GradientDescentOptimizer(0.1)

            def step(x):
                loss = tn.reduce_sum(tn.square(tn.matmul(x, w) - 1.0)) / 4.0
                with tn.control_dependencies([optimizer.minimize(loss)]):
                    return tn.identity(loss)
            losses = strategy.run(step, args=(
                strategy.experimental_distribute_values_from_function(
                    lambda context: parts[context.replica_id_in_sync_group]),))
            train = strategy.reduce(tn.distribute.ReduceOp.SUM, losses, axis=None)

    Variables have a copy on each device. An optimizer adds the replicas' gradients up: a loss is to
    be a replica's share of the whole, such as its examples' sum over the size of the whole batch.
    Raises ValueError and TypeError for what are no devices.
    """

    def __init__(self, devices: Sequence | None = None, cross_device_ops: Any = None) -> None:
        check_cross_device_ops(cross_device_ops)
        chosen = ["/cpu:0"] if devices is None else devices
        if isinstance(chosen, str):
            raise TypeError("devices must be a list of devices, not %r" % (devices,))
        super().__init__(StrategyExtended(self, _checked_devices(chosen)))


class _OneDevice(StrategyExtended):
    """Plain variables on the one device."""

    _mirrors = False

    def _surroundings(self) -> list:
        from treenail._framework import device
        return [device(self._devices[0])]


class OneDeviceStrategy(Strategy):
    """One replica, whose variables and operations are on one device: a program for several
    replicas, tried out. device: such as "/cpu:0"."""

    def __init__(self, device: str) -> None:
        super().__init__(_OneDevice(self, _checked_devices([device])))
