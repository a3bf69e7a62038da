# SPDX-License-Identifier: Apache-2.0
"""numpy.distutils ends with an error where no library of NPY_BLAS_ORDER or NPY_LAPACK_ORDER is
there, and only then."""

import os
import sys

import patchtest

# As NumPy's setup.py imports it: without the compiled part.
ASK = """import builtins, sys, warnings
builtins.__NUMPY_SETUP__ = True
warnings.simplefilter("ignore")
sys.path.insert(0, sys.argv[1])
from numpy.distutils import system_info
found = system_info.get_info(sys.argv[2], 0)
print("LIBRARIES", ",".join(found.get("libraries", ())) or "none")
"""
SITE = "[openblas]\nlibrary_dirs = %s\n[blas]\nlibrary_dirs = %s\n[lapack]\nlibrary_dirs = %s\n"
# All that both BLAS and LAPACK are asked for.
LIBRARY = "".join("void %s(void) {}\n" % name for name in (
    "zungqr_", "cblas_sgemm", "cblas_ddot", "sgemm_"))


def asked(tree, what, libraries, **order):
    """What numpy.distutils finds with a site.cfg that names one folder for everything."""
    os.makedirs("home", exist_ok=True)
    with open("home/.numpy-site.cfg", "w", encoding="utf-8") as stream:
        stream.write(SITE % (3 * (os.path.abspath(libraries),)))
    environment = {"HOME": os.path.abspath("home"), "SETUPTOOLS_USE_DISTUTILS": "stdlib"}
    environment.update(order)
    done = patchtest.run([sys.executable, "-B", "-W", "ignore", "-c", ASK, tree, what],
                         status=None, environment=environment)
    return done.returncode, done.stdout.strip().splitlines()[-1]


def tree(path):
    if sys.version_info >= (3, 12):
        patchtest.cannot_tell("this Python has no distutils, and NumPy 1.24 does not support it")
    if not os.path.exists(os.path.join(path, "numpy/distutils/system_info.py")):
        patchtest.cannot_tell("there is no numpy/distutils")
    patchtest.need("cc", "gcc")
    os.makedirs("empty")
    os.makedirs("full")
    with open("library.c", "w", encoding="utf-8") as stream:
        stream.write(LIBRARY)
    patchtest.run(["cc", "-shared", "-fPIC", "library.c", "-o", "full/libopenblas.so"])
    for what, name, every in (
            ("blas_opt", "NPY_BLAS_ORDER", "armpl,mkl,blis,openblas,accelerate,atlas,blas"),
            ("lapack_opt", "NPY_LAPACK_ORDER", "armpl,mkl,openblas,flame,accelerate,atlas,lapack")):
        got = asked(path, what, "full", **{name: "openblas"})
        if got[0] or "openblas" not in got[1]:
            raise RuntimeError("%s=openblas, and it is there: %s" % (name, got))
        for value in ("", "^" + every):
            got = asked(path, what, "empty", **{name: value})
            if got != (0, "LIBRARIES none"):
                patchtest.failed("%s='%s' insists on nothing, but: %s" % (name, value, got))
        status, said = asked(path, what, "empty", **{name: "openblas"})
        if not status:
            patchtest.failed("%s=openblas, and there is none: %s, exit status 0" % (name, said))
        if name + "=openblas" not in said:
            patchtest.failed("%s=openblas: the error does not name it: %s" % (name, said))


patchtest.main(tree=tree)
