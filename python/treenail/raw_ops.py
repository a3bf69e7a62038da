# SPDX-License-Identifier: Apache-2.0
"""Every registered op as a function: raw_ops.MatMul(a, b, transpose_a=True, name="product"), also
as raw_ops.mat_mul.

The parameters are the op's inputs, then the attributes that the inputs do not tell, then name.
docs/ops.md lists them all.
"""

from __future__ import annotations

from treenail import _treenail as _core


def _names() -> dict:
    if "names" not in _cache:
        _cache["names"] = _core.op_names()
    return _cache["names"]


_cache: dict = {}


def __getattr__(name: str):
    if name.startswith("_"):
        raise AttributeError("module 'treenail.raw_ops' has no attribute %r" % name)
    names = _names()
    op_name = names.get(name, name)
    if op_name not in names.values():
        raise AttributeError("no op is called %r" % name)
    function = _core.op_function(op_name)
    globals()[name] = function
    return function


def __dir__() -> list:
    return sorted(list(_names()) + list(_names().values()))
