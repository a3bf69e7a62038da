# SPDX-License-Identifier: Apache-2.0
"""Cases of framework/ops/py_func.cc."""

from harness import no_case

no_case("PyFunc", "calls a function of the process: tests/python/test_py_func.py")
no_case("PyFuncStateless", "calls a function of the process: tests/python/test_py_func.py")
