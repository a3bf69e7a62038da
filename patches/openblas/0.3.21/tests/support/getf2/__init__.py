# SPDX-License-Identifier: Apache-2.0
"""The files of lapack/getf2 as a library with LAPACK's interface, plain loops for kernels."""

import os

import patchtest

HERE = os.path.dirname(os.path.abspath(__file__))


def library(tree: str) -> str:
    """A shared library in the working directory with sgetrf_, dgetrf_, cgetrf_ and zgetrf_."""
    compiler = patchtest.need("cc", "gcc")
    objects = []
    for letter, name, flags in (("s", "getf2_k.c", ["-UCOMPLEX", "-UDOUBLE"]),
                                ("d", "getf2_k.c", ["-UCOMPLEX", "-DDOUBLE"]),
                                ("c", "zgetf2_k.c", ["-DCOMPLEX", "-UDOUBLE"]),
                                ("z", "zgetf2_k.c", ["-DCOMPLEX", "-DDOUBLE"])):
        source = os.path.join(tree, "lapack/getf2", name)
        if not os.path.exists(source):
            patchtest.cannot_tell("there is no lapack/getf2/" + name)
        objects.append(letter + "getf2.o")
        patchtest.run([compiler, "-O2", "-w", "-fPIC", "-ffp-contract=off", *flags, "-I", HERE,
                       '-DGETF2_C="%s"' % source, "-DCNAME=%sgetf2_k" % letter,
                       "-DINTERFACE=%sgetrf_" % letter, "-c", os.path.join(HERE, "getf2.c"),
                       "-o", objects[-1]])
    patchtest.run([compiler, "-shared", *objects, "-o", "libgetf2.so"])
    return os.path.abspath("libgetf2.so")
