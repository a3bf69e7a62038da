# SPDX-License-Identifier: Apache-2.0
"""Sparse tensors under TensorFlow 1's newer names."""

from treenail._accumulators import SparseConditionalAccumulator  # noqa: F401
from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail._sparse import SparseTensor  # noqa: F401
from treenail._sparse import sparse_placeholder as placeholder  # noqa: F401
from treenail._sparse import sparse_tensor_to_dense as to_dense  # noqa: F401

__all__ = ["SparseConditionalAccumulator", "SparseTensor", "placeholder", "to_dense"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
