# SPDX-License-Identifier: Apache-2.0
"""Programs written for other libraries' interfaces: horovod."""

from treenail._names import no_attribute as _no_attribute

__all__ = ["horovod"]


def __getattr__(name: str):
    if name in __all__:
        import importlib
        return importlib.import_module("treenail.compat." + name)
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)
