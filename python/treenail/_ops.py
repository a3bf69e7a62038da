# SPDX-License-Identifier: Apache-2.0
"""The registry's ops as functions, by their registered names: `ops.MatMul(a, b)`. Looked up on
first use."""

from __future__ import annotations

from treenail import _treenail as _core


class _Ops:
    def __getattr__(self, name: str):
        try:
            function = _core.op_function(name)
        except LookupError as error:
            raise AttributeError(str(error)) from None
        setattr(self, name, function)
        return function


ops = _Ops()
