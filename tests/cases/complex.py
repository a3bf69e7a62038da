# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/complex.cc. Oracle: NumPy."""

import numpy as np

from harness import COMPLEX, PAIRS, SHAPES, op

PART = {"complex64": "float32", "complex128": "float64"}


def plain(function):
    return lambda *inputs, **attrs: function(*inputs)


cases = op("Complex", lambda x, y, Tout: x + 1j * y, dtypes=("float32",), grad=2, oracle_attrs=True)
cases.cases_of(*PAIRS, Tout="complex64")
cases.cases_of(*PAIRS, Tout="complex128", options={"dtypes": ("float64",)})
cases.error(
    "InvalidArgument",
    "complex64 does not go with float64",
    (2,),
    (2,),
    on="float64",
    Tout="complex64",
).error("InvalidArgument", r"Incompatible shapes: \[2\] vs. \[3\]", (2,), (3,))

for name, oracle in (
    ("Real", np.real),
    ("Imag", np.imag),
    ("Angle", np.angle),
    ("ComplexAbs", np.abs),
):
    cases = op(name, plain(oracle), dtypes=("complex64",), grad=2)
    for dtype, part in PART.items():
        cases.cases_of(*SHAPES, Tout=part, options={"dtypes": (dtype,)})
    cases.error("InvalidArgument", "complex64 does not go", (2,), on="complex64", Tout="float64")
op("Conj", np.conj, dtypes=COMPLEX, grad=2).cases_of(*SHAPES)
