# SPDX-License-Identifier: Apache-2.0
"""driver/others/dynamic.c on a made-up CPU.

The file is compiled by itself, against a common.h that makes up the answers of CPUID: any machine
plays any CPU, and no kernel needs to be built.
"""

import os

import patchtest

HERE = os.path.dirname(os.path.abspath(__file__))


def program(tree: str) -> str:
    """The file of a source tree as a program, in the working directory."""
    source = os.path.join(tree, "driver/others/dynamic.c")
    if not os.path.exists(source):
        patchtest.cannot_tell("there is no driver/others/dynamic.c")
    compiler = patchtest.need("cc", "gcc")
    patchtest.run([compiler, "-w", "-I", HERE, '-DDYNAMIC_C="%s"' % source,
                   os.path.join(HERE, "dynamic_core.c"), "-o", "dynamic-core"])
    return os.path.abspath("dynamic-core")


def chosen(command: str, family: int, exmodel: int, model: int, features: str,
           coretype: str = "") -> str:
    """The name of the kernels for an Intel CPU; coretype: OPENBLAS_CORETYPE."""
    environment = {"FAKE_FAMILY": str(family), "FAKE_EXMODEL": str(exmodel),
                   "FAKE_MODEL": str(model), "FAKE_FEATURES": features}
    if coretype:
        environment["OPENBLAS_CORETYPE"] = coretype
    return patchtest.run([command], environment=environment).stdout.strip().splitlines()[-1]
