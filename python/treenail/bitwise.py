# SPDX-License-Identifier: Apache-2.0
"""Operations on the bits of integers: TensorFlow 1's tf.bitwise."""

import treenail as _tn
from treenail._names import no_attribute as _no_attribute

_NAMES = ("bitwise_and", "bitwise_or", "bitwise_xor", "invert", "left_shift", "right_shift")
__all__ = list(_NAMES)


def __getattr__(name: str):
    if name in _NAMES:
        return getattr(_tn, name)
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)
