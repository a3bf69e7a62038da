# SPDX-License-Identifier: Apache-2.0
"""Immediate execution: the context in which operations run at once and give concrete tensors.

It takes the place of a default graph, so that whoever asks for the default graph's name scope,
device or seed finds them; no operation is ever added to it.
"""

from __future__ import annotations

from treenail import _treenail as _core
from treenail._framework import Graph, NullContext, _DefaultGraph, _NameScope, check_scope_type
from treenail._framework import _check_scope_name, executing_eagerly
from treenail._session_options import ConfigProto, device_limits
from treenail._treenail import Tensor

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Callable, Sequence

    from treenail._devices import DeviceContext

# What becomes of an input that lies on another device than the operation: TensorFlow's numbers.
_EXPLICIT, _WARN, _SILENT, _SILENT_FOR_INT32 = range(4)


class ImmediateContext(Graph):
    """What stands in for a graph while operations run at once. There is one per process."""

    _immediate = True

    def __init__(self) -> None:
        super().__init__()
        _core.mark_immediate(self)
        self._ops_without_seed = 0

    def name_scope(self, name: str | None) -> _NameScope:
        check_scope_type(name)
        if not name:
            return _NameScope(self, "")
        if name[-1] == "/":
            return _NameScope(self, name)
        _check_scope_name(name, bool(self._scope))
        return _NameScope(self, self._scope + name + "/")

    def unique_name(self, name: str, mark_as_used: bool = True) -> str:
        return self._scope + name

    def control_dependencies(self, control_inputs: Any) -> Any:
        return NullContext()

    def device(self, device_name_or_function: str | Callable | None) -> DeviceContext:
        if callable(device_name_or_function):
            raise ValueError("tn.device does not support functions when eager execution is "
                             "enabled: an operation that runs at once is none that a function "
                             "could be given; name the device, such as '/cpu:0'")
        return super().device(device_name_or_function)

    def gradient_override_map(self, op_type_map: dict) -> Any:
        raise RuntimeError("gradient_override_map changes operations of a graph; with immediate "
                           "execution write a function with tn.custom_gradient")

    def create_op(self, op_type: str, inputs: Sequence = (), attrs: dict | None = None,
                  name: str | None = None, control_inputs: Sequence | None = None) -> Any:
        raise RuntimeError("operations are added to a graph; immediate execution has none: use "
                           "tn.raw_ops, or enter `with tn.Graph().as_default()`")

    def _op_seed(self) -> int:
        self._ops_without_seed += 1
        return self._ops_without_seed

    def _set_seed(self, seed: int | None) -> None:
        """Random numbers begin anew, of operations with seeds of their own, too."""
        self.seed = seed
        self._ops_without_seed = 0
        _core.restart_random_counters()

    def __repr__(self) -> str:
        return "<tn immediate execution>"


_contexts: list = []


def immediate_context() -> ImmediateContext:
    """The process's context of immediate execution."""
    if not _contexts:
        _contexts.append(ImmediateContext())
    return _contexts[0]


def eager() -> _DefaultGraph:
    """A context manager within which operations run at once, on this thread; graphs built around
    it, or within it by `with graph.as_default()`, are not touched."""
    return _DefaultGraph(immediate_context())


def enable_eager_execution(config: ConfigProto | None = None, device_policy: int | None = None,
                           execution_mode: Any = None) -> None:
    """From now on operations run at once, on every thread, and give concrete tensors; `with
    graph.as_default()` still builds graphs.

    config: of it device_count and allow_soft_placement count here, for the whole process.
    device_policy: what happens to an input that lies on another device than the operation: 0
    (TensorFlow's DEVICE_PLACEMENT_EXPLICIT) raises InvalidArgumentError, 1 (WARN) writes a line to
    standard error and copies it, 2 (SILENT, the default) copies it, 3 (SILENT_FOR_INT32) copies
    int32 alone. Scalars are always copied. execution_mode: TensorFlow 1's, and not needed here.

    To be called before anything is added to the default graph: ValueError otherwise, and inside of
    `with graph.as_default()`. Called again it does nothing; ValueError where it says other things
    than before.
    """
    options = _options(config, device_policy)
    if not executing_eagerly() and not _core.replace_default_graph(immediate_context()):
        raise ValueError("tn.enable_eager_execution must be called at program startup: there are "
                         "operations in the default graph, or a graph is the default of this "
                         "thread")
    if _chosen and (config is not None or device_policy is not None) and _chosen[0] != options:
        raise ValueError("Trying to change the options of an active eager execution: they are "
                         "(device_count, allow_soft_placement, device_policy) = %r, asked for is "
                         "%r" % (_chosen[0], options))
    if not _chosen:
        _chosen.append(options)
        _core.set_immediate_options(*options)


_chosen: list = []


def _options(config: Any, device_policy: Any) -> tuple:
    """(device_count, whether soft placement is allowed, device policy)"""
    if config is None:
        config = ConfigProto()
    if not isinstance(config, ConfigProto):
        raise TypeError("config must be a tn.ConfigProto, not %r" % (config,))
    policy = _SILENT if device_policy is None else device_policy
    if isinstance(policy, bool) or policy not in (_EXPLICIT, _WARN, _SILENT, _SILENT_FOR_INT32):
        raise ValueError("device_policy must be 0 (explicit), 1 (warn), 2 (silent) or 3 (silent "
                         "for int32), or None, not %r" % (device_policy,))
    return device_limits(config.device_count), config.allow_soft_placement, int(policy)


def is_concrete(value: Any) -> bool:
    """Whether `value` is a tensor of immediate execution."""
    return isinstance(value, Tensor) and value._is_concrete


__all__ = ["eager", "enable_eager_execution"]
