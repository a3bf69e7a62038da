# SPDX-License-Identifier: Apache-2.0
"""Checkpoints on file systems without locks, and HDF5_USE_FILE_LOCKING. A library that is loaded
before libc refuses flock below one directory, as such file systems do, and notes each call."""

import errno
import fcntl
import json
import os
import shutil
import subprocess
import sys

import pytest

import treenail as tn
from needs import needs_hdf5

SHIM = r"""
#define _GNU_SOURCE
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <unistd.h>

int flock(int fd, int operation) {
  char link[64], path[4096];
  snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
  const ssize_t size = readlink(link, path, sizeof path - 1);
  path[size < 0 ? 0 : size] = 0;
  const char* below = getenv("NO_LOCKS_BELOW");
  if (below == NULL || strncmp(path, below, strlen(below)) != 0) {
    return (int)syscall(SYS_flock, fd, operation);
  }
  fprintf(stderr, "flock %s\n", operation & LOCK_UN ? "off" : operation & LOCK_EX ? "ex" : "sh");
  errno = atoi(getenv("NO_LOCKS_ERRNO"));
  return errno != 0 ? -1 : (int)syscall(SYS_flock, fd, operation);
}
"""

# Saves or restores, and tells the outcome of each; flock's calls are on standard error.
PROGRAM = r"""
import fcntl, json, os, sys
import treenail as tn
what, path = sys.argv[1:3]
v = tn.Variable([3.0, 4.0], name="v")
saver = tn.train.Saver()
found = []
with tn.Session() as session:
    for number in sys.argv[3:]:
        os.environ["NO_LOCKS_ERRNO"] = number
        try:
            if what == "save":
                session.run(tn.global_variables_initializer())
                saver.save(session, path)
                found.append("saved")
            else:
                saver.restore(session, path)
                found.append(session.run(v).tolist())
        except tn.errors.OpError as error:
            found.append([type(error).__name__, str(error)])
del os.environ["NO_LOCKS_BELOW"]
if os.environ["LOCKED_BY_ANOTHER"] == "no":
    with open(path, "rb") as file:  # nothing of ours is left locked
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
print(json.dumps(found))
"""
REFUSALS = {errno.ENOLCK: "No locks available", errno.ENOSYS: "Function not implemented",
            errno.EOPNOTSUPP: "Operation not supported"}

pytestmark = needs_hdf5


@pytest.fixture(scope="module")
def shim(tmp_path_factory):
    compiler = next(filter(None, map(shutil.which, ("cc", "gcc", "clang"))), None)
    if compiler is None:
        pytest.skip("no C compiler is installed")
    folder = tmp_path_factory.mktemp("shim")
    (folder / "flock.c").write_text(SHIM)
    subprocess.run([compiler, "-shared", "-fPIC", "-o", str(folder / "flock.so"),
                    str(folder / "flock.c")], check=True)
    return str(folder / "flock.so")


@pytest.fixture
def attempt(shim, tmp_path):
    """Saves or restores tmp_path/model with a setting of the variable, where flock fails with each
    of some numbers (0: it works); the outcomes, and the calls of flock."""
    def run(what, setting, *numbers, locked="no"):
        environment = dict(os.environ, LD_PRELOAD=shim, NO_LOCKS_BELOW=str(tmp_path),
                           LOCKED_BY_ANOTHER=locked)
        environment.pop("HDF5_USE_FILE_LOCKING", None)
        if setting is not None:
            environment["HDF5_USE_FILE_LOCKING"] = setting
        done = subprocess.run([sys.executable, "-c", PROGRAM, what, str(tmp_path / "model"),
                               *map(str, numbers)], env=environment, stdout=subprocess.PIPE,
                              stderr=subprocess.PIPE, universal_newlines=True, check=False)
        assert done.returncode == 0, done.stderr
        calls = [line.split()[1] for line in done.stderr.splitlines() if line.startswith("flock ")]
        return json.loads(done.stdout), calls
    return run


@pytest.fixture
def model(tmp_path):
    """tmp_path/model, saved where locks work."""
    v = tn.Variable([1.0, 2.0], name="v")
    with tn.Session() as session:
        session.run(v.initializer)
        return tn.train.Saver().save(session, str(tmp_path / "model"))


@pytest.mark.parametrize("setting", [None, "FALSE", "0", "", "perhaps"])
def test_no_lock_is_asked_for_by_default(attempt, model, setting):
    assert attempt("restore", setting, *REFUSALS) == ([[1, 2]] * 3, [])
    assert attempt("save", setting, *REFUSALS) == (["saved"] * 3, [])
    assert attempt("restore", setting, errno.ENOLCK) == ([[3, 4]], [])


@pytest.mark.parametrize("setting", ["TRUE", "1"])
def test_a_lock_that_was_asked_for_and_cannot_be_had_is_told(attempt, model, setting):
    for what, doing, call in (("restore", "read", "sh"), ("save", "write", "ex")):
        outcomes, calls = attempt(what, setting, *REFUSALS)
        assert calls == [call] * 3
        for (kind, text), reason in zip(outcomes, REFUSALS.values()):
            assert kind == "FailedPreconditionError"
            assert ("cannot %s checkpoint %s: the file system gives no lock on the file (flock: %s)"
                    % (doing, model, reason)) in text
            assert "HDF5_USE_FILE_LOCKING=FALSE turns locks off" in text
    folder = os.path.dirname(model)
    assert sorted(os.listdir(folder)) == ["checkpoint", "model"]  # nothing of the failed saves
    assert attempt("restore", "FALSE", errno.ENOLCK)[0] == [[1, 2]]


def test_locks_are_taken_where_they_work(attempt, model):
    for setting, value in (("TRUE", [1, 2]), ("BEST_EFFORT", [3, 4])):
        outcomes, calls = attempt("restore", setting, 0)
        assert outcomes == [value] and set(calls) == {"sh"}
        outcomes, calls = attempt("save", setting, 0)
        assert outcomes == ["saved"] and set(calls) == {"ex"}


def test_best_effort_does_without(attempt, model):
    assert attempt("restore", "BEST_EFFORT", *REFUSALS)[0] == [[1, 2]] * 3
    assert attempt("save", "BEST_EFFORT", *REFUSALS)[0] == ["saved"] * 3


@pytest.mark.parametrize("setting", ["TRUE", "BEST_EFFORT"])
def test_a_file_that_another_program_writes(attempt, model, setting):
    with open(model, "rb") as other:
        fcntl.flock(other, fcntl.LOCK_EX)
        ((kind, text),), _ = attempt("restore", setting, 0, locked="yes")
        assert kind == "UnavailableError"
        assert "cannot read checkpoint %s: another program has locked the file" % model in text
        assert attempt("restore", None, 0, locked="yes") == ([[1, 2]], [])
        fcntl.flock(other, fcntl.LOCK_SH)  # readers do not mind each other
        assert attempt("restore", setting, 0, locked="yes")[0] == [[1, 2]]
