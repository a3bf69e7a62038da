# SPDX-License-Identifier: Apache-2.0
"""A process that gets too little address space (ulimit -v) or no threads: it works, with fewer
threads, or ends with a sentence that names what was short; it never hangs, aborts, or speaks of a
missing package.

OPENBLAS_NUM_THREADS is 1, for NumPy's OpenBLAS itself may hang at exit where its threads get no
memory.
"""

import os
import re
import shutil
import subprocess
import sys

import pytest

PROGRAM = """
import sys
import numpy as np
import treenail as tn
v = tn.Variable(np.ones((50, 50), np.float32), name="v")
y = tn.reduce_sum(tn.matmul(v, v))
with tn.Session() as session:
    session.run(tn.global_variables_initializer())
    assert session.run(y) == 125_000
    tn.train.Saver().save(session, sys.argv[1])
print("done")
"""

# What names memory: the type of an exception, or the dynamic linker's words where NumPy is loaded.
# CPython itself may lose the MemoryError in the middle of an import: 3.11 sets none where the stack
# of its frames cannot grow. (Of a compiled function that does so it says another sentence.)
OF_MEMORY = re.compile(
    "MemoryError|ResourceExhaustedError|failed to map segment|annot allocate memory|"
    "cannot map zero-fill pages|cannot create shared object|"
    "<frozen importlib[^\n]*\nSystemError: error return without exception set")

pytestmark = pytest.mark.skipif("san" in os.environ.get("LD_PRELOAD", ""),
                                reason="a sanitizer takes all address space there is")


def run(words, **variables):
    environment = dict(os.environ, OPENBLAS_NUM_THREADS="1", PYTHONDONTWRITEBYTECODE="1")
    environment.update(variables)
    return subprocess.run([sys.executable, *words], env=environment, capture_output=True, text=True,
                          timeout=600)


def address_space(tmp_path):
    """What the program takes without a limit, in bytes."""
    peak = run(["-c", PROGRAM + """
with open("/proc/self/status") as status:
    print(next(line.split()[1] for line in status if line.startswith("VmPeak")))
""", str(tmp_path / "model")])
    assert peak.returncode == 0, peak.stderr
    return int(peak.stdout.split()[-1]) * 1024


def test_a_ladder_of_limits(tmp_path):
    peak = address_space(tmp_path)
    # Below half Python itself may not start, and says so in ways of its own.
    for share in (1.05, 0.95, 0.85, 0.75, 0.65, 0.55):
        limit = int(peak * share)
        program = "import resource; resource.setrlimit(resource.RLIMIT_AS, (%d, %d))\n%s" % (
            limit, limit, PROGRAM)
        done = run(["-c", program, str(tmp_path / "model")])
        said = "%d of %d bytes: %s" % (limit, peak, done.stderr)
        if done.returncode == 0:
            assert done.stdout == "done\n" and not done.stderr, said
            continue
        assert done.returncode == 1, (done.returncode, said)
        assert OF_MEMORY.search(done.stderr), said
        assert "(Debian: " not in done.stderr, said  # so do sentences about packages end


SHIM = r"""
#define _GNU_SOURCE
#include <dlfcn.h>
#include <errno.h>
#include <pthread.h>
#include <stdlib.h>
static int made;
int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) {
  int (*real)(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  if (__atomic_fetch_add(&made, 1, __ATOMIC_SEQ_CST) >= atoi(getenv("THREADS"))) return EAGAIN;
  *(void**)&real = dlsym(RTLD_NEXT, "pthread_create");
  return real(thread, attributes, body, argument);
}
"""


@pytest.mark.parametrize("threads", [0, 2])
def test_threads_that_cannot_be_started(threads, tmp_path):
    """Runs take the threads there are, with the same bits; a timeout, which has a thread of its
    own, says what was short, and leaves signals alone."""
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("no C compiler is installed")
    (tmp_path / "threads.c").write_text(SHIM)
    shim = str(tmp_path / "threads.so")
    subprocess.run([compiler, "-shared", "-fPIC", "-o", shim, str(tmp_path / "threads.c"), "-ldl"],
                   check=True)
    done = run(["-c", """
import signal
import numpy as np
import treenail as tn
x = tn.placeholder(tn.float32, [None, 300])
products = [tn.matmul(tn.tanh(x), tn.ones([300, 300]) * float(i)) for i in range(4)]
y = tn.reduce_sum(tn.add_n(products))
value = np.linspace(-1, 2, 600_000, dtype=np.float32).reshape(2000, 300)
session = tn.Session()
print(session.run(y, {x: value}).tobytes().hex())
for _ in range(2):
    try:
        session.run(y, {x: value}, options=tn.RunOptions(timeout_in_ms=10_000_000))
    except tn.errors.ResourceExhaustedError as error:
        print(error.message)
print(len(signal.pthread_sigmask(signal.SIG_BLOCK, [])))
print(session.run(y, {x: value}).tobytes().hex())
"""], LD_PRELOAD=shim, THREADS=str(threads), TREENAIL_NUM_THREADS="4")
    assert done.returncode == 0, done.stderr
    first, *timeouts, blocked, second = done.stdout.splitlines()
    assert first == second and blocked == "0"
    assert len(timeouts) == 2 and all(
        "the thread that watches timeouts could not be started" in said for said in timeouts)
