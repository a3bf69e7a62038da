# SPDX-License-Identifier: Apache-2.0
"""The Python package and its compiled module."""

Component(name="binding", sources=["python/binding/**/*.cc"], headers=["python/binding/**/*.h"],
          needs=["capi", "distributed", "collectives", "eager", "runtime", "kernel_api",
                 "placement", "graph", "op", "tensor", "device", "io", "base"],
          external=["pybind11", "python-dev"], debug_variables=False)
PythonExtension(name="_treenail", component="binding")
PythonPackage(name="treenail", root="python/treenail",
              files=["python/treenail/**/*.py", "python/treenail/**/*.pyi",
                     "python/treenail/**/py.typed"])
PythonProgram(name="treenail-bench", module="treenail.benchmark",
              manual="docs/man/treenail-bench.1",
              completion="python/tools/treenail-bench.bash")
Script(name="generate", present="python/tools/generate.py", needs=["all"],
       help="rewrite the committed stubs and the op reference")
