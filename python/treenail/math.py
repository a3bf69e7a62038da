# SPDX-License-Identifier: Apache-2.0
"""Mathematical functions under TensorFlow 1's newer names: tn.math.log, tn.math.reduce_sum, ..."""

from __future__ import annotations

import treenail as _tn
from treenail._counting import bincount  # noqa: F401
from treenail._math import *  # noqa: F401,F403
from treenail._math import __all__ as _math_names
from treenail._names import no_attribute as _no_attribute
from treenail._special import (bessel_i0, bessel_i0e, bessel_i1, bessel_i1e,  # noqa: F401
                               cumulative_logsumexp, erfinv, lbeta, ndtri, nextafter)
from treenail.nn import (in_top_k, l2_normalize, log_softmax, sigmoid, softmax,  # noqa: F401
                         softplus, softsign, top_k, zero_fraction)

_ELEMENTWISE = ("acos", "acosh", "add", "asin", "asinh", "atan", "atan2", "atanh", "betainc",
                "ceil", "cos", "cosh", "digamma", "equal", "erfc", "exp", "expm1", "floor",
                "greater", "greater_equal", "igamma", "igammac", "invert_permutation", "is_finite",
                "is_inf", "is_nan", "less", "less_equal", "lgamma", "log", "log1p", "logical_and",
                "logical_not", "logical_or", "maximum", "minimum", "not_equal", "polygamma",
                "reciprocal", "rint", "round", "rsqrt", "segment_max", "segment_mean",
                "segment_min", "segment_prod", "segment_sum", "sin", "sinh", "squared_difference",
                "tan", "unsorted_segment_max", "unsorted_segment_min", "unsorted_segment_prod",
                "unsorted_segment_sum", "xdivy", "xlogy", "zeta")


__all__ = list(_math_names) + list(_ELEMENTWISE) + [
    "bessel_i0", "bessel_i0e", "bessel_i1", "bessel_i1e", "bincount", "cumulative_logsumexp",
    "erfinv", "in_top_k", "l2_normalize", "lbeta", "log_softmax", "ndtri", "nextafter", "sigmoid",
    "softmax", "softplus", "softsign", "top_k", "zero_fraction"]


def __getattr__(name: str):
    if name in _ELEMENTWISE:
        return getattr(_tn, name)
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)
