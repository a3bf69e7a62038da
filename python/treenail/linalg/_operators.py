# SPDX-License-Identifier: Apache-2.0
"""All kinds of linear operators: each says in its own module what its products, inverses and the
like are."""

from treenail.linalg import (_block_diag, _circulant, _composite, _dense, _diag, _householder,
                             _identity, _kronecker, _low_rank, _operator, _permutation, _toeplitz,
                             _tridiag, _zeros)
from treenail.linalg._block_diag import *  # noqa: F401,F403
from treenail.linalg._circulant import *  # noqa: F401,F403
from treenail.linalg._composite import *  # noqa: F401,F403
from treenail.linalg._dense import *  # noqa: F401,F403
from treenail.linalg._diag import *  # noqa: F401,F403
from treenail.linalg._householder import *  # noqa: F401,F403
from treenail.linalg._identity import *  # noqa: F401,F403
from treenail.linalg._kronecker import *  # noqa: F401,F403
from treenail.linalg._low_rank import *  # noqa: F401,F403
from treenail.linalg._operator import *  # noqa: F401,F403
from treenail.linalg._permutation import *  # noqa: F401,F403
from treenail.linalg._toeplitz import *  # noqa: F401,F403
from treenail.linalg._tridiag import *  # noqa: F401,F403
from treenail.linalg._zeros import *  # noqa: F401,F403

__all__ = []
for _kind in (_block_diag, _circulant, _composite, _dense, _diag, _householder, _identity,
              _kronecker, _low_rank, _operator, _permutation, _toeplitz, _tridiag, _zeros):
    __all__ += _kind.__all__
