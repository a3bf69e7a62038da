# SPDX-License-Identifier: Apache-2.0
"""Immediate execution: one op on concrete values, without a graph."""

from __future__ import annotations

from treenail import _treenail as _core

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, Sequence


def execute(op: str, inputs: Sequence = (), **attrs: Any) -> Any:
    """Runs one op now: execute("MatMul", [a, b], transpose_a=True).

    inputs: arrays, numbers, lists or concrete tensors; a list argument of the op takes a list. attrs: its attributes. The result is a
    concrete Tensor (see Tensor.numpy), several as a named tuple, None for an op without outputs. No gradient is recorded.

    Raises NotFoundError for an unknown op, and what the op raises.
    """
    return _core.execute_tensors(op, inputs, attrs)
