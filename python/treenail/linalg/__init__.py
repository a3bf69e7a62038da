# SPDX-License-Identifier: Apache-2.0
"""Linear algebra: decompositions, systems of equations, what tn has for matrices otherwise, and
operators that know the structure of their matrix."""

from __future__ import annotations

import treenail as _tn
from treenail._array import diag as tensor_diag, diag_part as tensor_diag_part  # noqa: F401
from treenail._array import eye, matrix_transpose  # noqa: F401
from treenail._clip import global_norm  # noqa: F401
from treenail._linalg import *  # noqa: F401,F403
from treenail._linalg import __all__ as _linalg_names
from treenail._matrix_functions import *  # noqa: F401,F403
from treenail._matrix_functions import __all__ as _function_names
from treenail._math import einsum, matmul, matvec, tensordot, trace  # noqa: F401
from treenail._norms import norm, normalize  # noqa: F401
from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail.linalg._diag_functions import *  # noqa: F401,F403
from treenail.linalg._diag_functions import __all__ as _diag_names
from treenail.linalg._diagonals import *  # noqa: F401,F403
from treenail.linalg._diagonals import __all__ as _diagonal_names
from treenail.linalg._lu import *  # noqa: F401,F403
from treenail.linalg._lu import __all__ as _lu_names
from treenail.linalg._operators import *  # noqa: F401,F403
from treenail.linalg._operators import __all__ as _operator_names
from treenail.nn import l2_normalize  # noqa: F401

transpose = matrix_transpose

# Ops of the registry, under the names that they have in tn.
_MATRICES = {"band_part": "matrix_band_part"}

__all__ = list(_linalg_names) + list(_function_names) + list(_MATRICES) + [
    "einsum", "eye", "global_norm", "l2_normalize", "matmul", "matrix_transpose", "matvec", "norm",
    "normalize", "tensor_diag", "tensor_diag_part", "tensordot", "trace", "transpose"]
__all__ += _diag_names + _diagonal_names + _lu_names + _operator_names


def __getattr__(name: str):
    if name in _MATRICES:
        return getattr(_tn, _MATRICES[name])
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
