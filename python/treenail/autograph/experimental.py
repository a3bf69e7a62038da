# SPDX-License-Identifier: Apache-2.0
"""TensorFlow 1's home of tn.autograph.do_not_convert."""

from __future__ import annotations

from treenail._names import no_attribute as _no_attribute
from treenail.autograph import do_not_convert


def __getattr__(name: str) -> None:
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


__all__ = ["do_not_convert"]
