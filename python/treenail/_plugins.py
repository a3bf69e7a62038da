# SPDX-License-Identifier: Apache-2.0
"""Libraries with ops and kernels of one's own (docs/custom-ops.md)."""

from __future__ import annotations

import os
import types

from treenail import _treenail as _core
from treenail._checks import a_path

__all__ = ["load_op_library", "load_pluggable_device_library"]

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

_loaded: dict = {}


def load_op_library(library_filename: Any) -> types.ModuleType:
    """Loads a plugin and gives its ops as functions of a module: load_op_library("a.so").cube(x).

    The ops are then there for the whole process, as tn.cube and tn.raw_ops.Cube too. Loading a
    library again gives the same module.

    Raises NotFoundError (no such file), FailedPreconditionError (no plugin, or of another ABI
    version), AlreadyExistsError (an op of that name is there), InvalidArgumentError (a wrong
    declaration), and whatever the plugin says; nothing of it stays then.
    """
    path = os.path.realpath(a_path(library_filename, "library_filename"))
    if path not in _loaded:
        before = set(_core.op_names().values())
        _core.load_plugin(path)
        names = {name: op for name, op in _core.op_names().items() if op not in before}
        _forget_names()
        module = types.ModuleType(os.path.basename(path).split(".")[0], "The ops of %s." % path)
        module.__dict__.update({name: _core.op_function(op) for name, op in names.items()})
        module.__file__ = path
        _loaded[path] = module
    return _loaded[path]


def load_pluggable_device_library(library_location: Any) -> None:
    """Loads a library that brings a kind of device with its kernels: sessions opened afterwards
    have the devices (Session.list_devices()). Loading a library again does nothing.

    Such a library is of the same build as this Treenail.

    Raises NotFoundError (no such file), FailedPreconditionError (no device library, or of another
    build), AlreadyExistsError (devices of those names are there); nothing of it stays then.
    """
    _core.load_device_library(os.path.realpath(a_path(library_location, "library_location")))


def _forget_names() -> None:
    """The names of ops are listed once: again, next time."""
    import treenail
    from treenail import raw_ops
    treenail._op_cache.clear()
    raw_ops._cache.clear()
