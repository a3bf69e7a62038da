# SPDX-License-Identifier: Apache-2.0
"""Variables in immediate execution, for the tests of ops that read and change them."""

from __future__ import annotations

from typing import Any, List, Optional, Sequence

import numpy as np
from treenail import _treenail as core

from harness import from_bfloat16, stored


def tensor(values: Any, dtype: str) -> Any:
    """A concrete tensor of these values, rounded to dtype."""
    return core.tensor(stored(values, dtype), dtype)


def numbers(value: Any, dtype: str) -> np.ndarray:
    """What a tensor of that dtype holds; bfloat16 as float32."""
    array = np.asarray(value)
    return from_bfloat16(array) if dtype == "bfloat16" else array


class Variable:
    """A variable of its own, held by its handle."""

    def __init__(
        self, dtype: str, value: Any = None, shape: Optional[Sequence[int]] = None
    ) -> None:
        self.dtype = dtype
        if value is not None and shape is None:
            shape = np.shape(value)
        self.handle = core.execute_tensors("VarHandleOp", [], {"dtype": dtype, "shape": shape})
        if value is not None:
            self.assign(value)

    def assign(self, value: Any) -> None:
        core.execute("AssignVariableOp", [self.handle, tensor(value, self.dtype)])

    def read(self) -> np.ndarray:
        return numbers(
            core.execute("ReadVariableOp", [self.handle], {"dtype": self.dtype})[0], self.dtype
        )

    def call(self, op: str, *inputs: Any, **attrs: Any) -> List[np.ndarray]:
        """Runs an op on the handle; inputs that are not tensors yet become ones of the variable's dtype."""
        given = [
            x if isinstance(x, (np.ndarray, np.generic, core.Tensor)) else tensor(x, self.dtype)
            for x in inputs
        ]
        return core.execute(op, [self.handle] + given, attrs)
