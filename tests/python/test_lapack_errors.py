# SPDX-License-Identifier: Apache-2.0
"""A LAPACK that gives up, or that refuses its arguments: simulated by one that is loaded before the
system's and fails at the matrix that it is told to."""

import os
import shutil
import subprocess
import sys

import pytest

import treenail as tn

pytestmark = pytest.mark.skipif("lapack" not in tn.build_info()["adapters"],
                                reason="this build has no adapter for LAPACK")

LIBRARY = r"""
#include <stddef.h>
#include <stdlib.h>
static int calls;
/* Zeros are results like others: nobody looks at them. */
static int outcome(void) { return calls++ == atoi(getenv("FAILS_AT")) ? atoi(getenv("INFO")) : 0; }
static int asks(const int* lwork, double* work) {
  if (*lwork == -1) *work = 8;
  return *lwork == -1;
}
void dpotrf_(const char* u, const int* n, double* a, const int* lda, int* info) {
  *info = outcome();
}
void dgetrf_(const int* m, const int* n, double* a, const int* lda, int* pivots, int* info) {
  for (int i = 0; i < *n; ++i) pivots[i] = i + 1, a[i * *lda + i] = 1;
  *info = outcome();
}
void dgeqrf_(const int* m, const int* n, double* a, const int* lda, double* tau, double* work,
             const int* lwork, int* info) {
  *info = asks(lwork, work) ? 0 : outcome();
}
void dorgqr_(const int* m, const int* n, const int* k, double* a, const int* lda,
             const double* tau, double* work, const int* lwork, int* info) {
  asks(lwork, work);
  *info = 0;
}
void dsyevd_(const char* j, const char* u, const int* n, double* a, const int* lda, double* w,
             double* work, const int* lwork, int* iwork, const int* liwork, int* info) {
  if (asks(lwork, work)) *iwork = 8, *info = 0;
  else *info = outcome();
}
void dgeev_(const char* l, const char* r, const int* n, double* a, const int* lda, double* re,
            double* im, double* vl, const int* ldvl, double* vr, const int* ldvr, double* work,
            const int* lwork, int* info) {
  *info = asks(lwork, work) ? 0 : outcome();
}
void dgees_(const char* j, const char* sort, void* select, const int* n, double* a,
            const int* lda, int* sdim, double* re, double* im, double* vs, const int* ldvs,
            double* work, const int* lwork, int* bwork, int* info) {
  *info = asks(lwork, work) ? 0 : outcome();
}
void dgesdd_(const char* j, const int* m, const int* n, double* a, const int* lda, double* s,
             double* u, const int* ldu, double* vt, const int* ldvt, double* work,
             const int* lwork, int* iwork, int* info) {
  *info = asks(lwork, work) ? 0 : outcome();
}
"""

PROGRAM = """
import sys
import numpy as np
import treenail as tn
x = tn.placeholder(tn.float64, [2, 3, 100, 100])
results = {
    "cholesky": lambda: tn.linalg.cholesky(x),
    "inv": lambda: tn.linalg.inv(x),
    "qr": lambda: tn.linalg.qr(x)[0],
    "eigh": lambda: tn.linalg.eigvalsh(x),
    "svd": lambda: tn.linalg.svd(x, compute_uv=False),
    "eig": lambda: tn.linalg.eigvals(x),
    "sqrtm": lambda: tn.linalg.sqrtm(x),
}
with tn.Session() as sess:
    try:
        sess.run(results[sys.argv[1]](), {x: np.broadcast_to(np.eye(100) + 0.01, [2, 3, 100, 100])})
        print("no error")
    except tn.errors.OpError as error:
        print(type(error).__name__, error.message.split("\\n")[0])
"""


ALL = ["cholesky", "inv", "qr", "eigh", "svd", "eig", "sqrtm"]


@pytest.fixture(scope="module")
def failing(tmp_path_factory):
    """Runs a decomposition of six matrices whose fifth LAPACK ends with that info."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("no C compiler is installed")
    folder = tmp_path_factory.mktemp("lapack")
    (folder / "lapack.c").write_text(LIBRARY)
    library = str(folder / "lapack.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-w", "-o", library, str(folder / "lapack.c")],
                   check=True)

    def run(name, info):
        done = subprocess.run(
            [sys.executable, "-c", PROGRAM, name], capture_output=True, text=True,
            env=dict(os.environ, LD_PRELOAD=library, FAILS_AT="4", INFO=str(info),
                     TREENAIL_NUM_THREADS="1"))
        assert done.stderr == ""
        return done.stdout.strip()
    return run


@pytest.mark.parametrize("name", ALL)
def test_without_an_error_there_is_none(failing, name):
    assert failing(name, 0) == "no error"


@pytest.mark.parametrize("name, said", [
    ("cholesky", "Cholesky decomposition was not successful"),
    ("eigh", "Self-adjoint eigen decomposition was not successful"),
    ("svd", "Singular value decomposition was not successful"),
    ("eig", "Eigen decomposition was not successful"),
    ("sqrtm", "Schur decomposition was not successful")])
def test_what_does_not_converge_is_an_invalid_argument(failing, name, said):
    found = failing(name, 3)
    assert found.startswith("InvalidArgumentError [") and said in found and "[1,1]" in found


@pytest.mark.parametrize("name", ALL)
def test_what_refuses_its_arguments_is_an_internal_error(failing, name):
    found = failing(name, -4)
    assert found.startswith("InternalError [") and "LAPACK's " in found
    assert "has not accepted argument 4 for matrix 4 of the batch" in found
