# SPDX-License-Identifier: Apache-2.0
"""Devices that operations ask for: names, and functions of an operation, in nested contexts."""

from __future__ import annotations

import threading

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any


class DeviceFunctions(threading.local):
    """Each thread's functions that choose devices, the innermost last, each with the device that
    was asked for around it."""

    def __init__(self) -> None:
        self.stack: tuple = ()


class DeviceContext:
    """A context manager in which new operations ask for a device, and then for those that the
    functions say, the innermost first."""

    __slots__ = ("_graph", "_device", "_stack", "_old")

    def __init__(self, graph: Any, device: str, stack: tuple) -> None:
        self._graph, self._device, self._stack = graph, device, stack

    def __enter__(self) -> None:
        self._old = self._graph._device, self._graph._device_functions.stack
        self._set(self._device, self._stack)

    def __exit__(self, *unused) -> None:
        self._set(*self._old)

    def _set(self, device: str, stack: tuple) -> None:
        self._graph._device = device
        self._graph._device_functions.stack = stack
        self._graph._asks_for_devices = bool(stack)


class ColocationContext:
    """A DeviceContext in which new operations also ask to run beside those of some names."""

    __slots__ = ("_graph", "_beside", "_old", "_around")

    def __init__(self, graph: Any, device: str, beside: tuple, stack: tuple) -> None:
        self._graph, self._beside = graph, beside
        self._around = DeviceContext(graph, device, stack)

    def __enter__(self) -> None:
        self._around.__enter__()
        self._old = self._graph._colocated
        self._graph._colocated = self._beside

    def __exit__(self, *unused) -> None:
        self._graph._colocated = self._old
        self._around.__exit__()


def device_name(device: Any) -> str:
    """The name with a "/" before it. Raises TypeError for what is no str."""
    if not isinstance(device, str):
        raise TypeError("a device must be a str, a function that gives one, or None, not %r"
                        % (device,))
    return "/" + device if device and device[0] != "/" else device


def merged_device(outer: str, inner: str) -> str:
    """'/job:a' and '/cpu:0' give '/job:a/device:cpu:0': what the inner one does not state comes
    from the outer one."""
    if not outer:
        return inner
    parts = {}
    for device in (outer, inner):
        for part in filter(None, device.split("/")):
            key = part.split(":", 1)[0].lower()
            parts["device" if key in ("cpu", "gpu", "device") else key] = part
    order = ("job", "replica", "task", "device")
    return "".join("/" + parts[key] for key in sorted(parts,
                                                      key=lambda k: order.index(k) if k in order
                                                      else -1))
