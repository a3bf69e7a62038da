# SPDX-License-Identifier: Apache-2.0
"""What the tests of state that waits (accumulators, barriers, staging areas) share: threads that
are waited for, a fork in the middle of waiting, and the ways in which a wait ends."""

import subprocess
import sys
import threading
import time

import pytest

import treenail as tn

SECONDS = 120  # after which a thread is taken to hang


class Threads:
    """Runs functions side by side; leaving the block joins them, and raises what one raised."""

    def __init__(self):
        self._threads, self._raised = [], []

    def start(self, function, *args):
        def work():
            try:
                function(*args)
            except BaseException as error:
                self._raised.append(error)
        thread = threading.Thread(target=work, daemon=True)
        self._threads.append(thread)
        thread.start()
        return thread

    def __enter__(self):
        return self

    def __exit__(self, kind, *_):
        for thread in self._threads:
            thread.join(SECONDS)
        assert not any(thread.is_alive() for thread in self._threads), "a thread hangs"
        if self._raised and kind is None:
            raise self._raised[0]


def started_waiting(session, fetch, feed_dict=None):
    """(thread, results) of a run in a thread of its own, which has begun to wait as far as time
    tells. results: the value, or the exception."""
    results = []

    def work():
        try:
            results.append(session.run(fetch, feed_dict))
        except tn.errors.OpError as error:
            results.append(error)
    thread = threading.Thread(target=work, daemon=True)
    thread.start()
    time.sleep(0.05)
    assert not results
    return thread, results


def check_ends_of_waiting(make):
    """What `make()` gives waits for ever: by itself, with a deadline, and until its session is
    closed. Afterwards nobody is in the way of the next run, which `make` says how to make."""
    with tn.Graph().as_default():
        fetch, release = make()
        session = tn.Session()
        with pytest.raises(tn.errors.DeadlineExceededError, match="timeout of 50 ms"):
            session.run(fetch, options=tn.RunOptions(timeout_in_ms=50))
        for operation in release:
            session.run(operation)
        session.run(fetch)
        thread, results = started_waiting(session, fetch)
        session.close()
        thread.join(SECONDS)
        error, = results
        assert isinstance(error, tn.errors.CancelledError), error


FORK = """
import os, signal, threading, time, warnings
import numpy as np
import treenail as tn
warnings.simplefilter("ignore", DeprecationWarning)  # Python 3.12 warns of threads
session = tn.Session()
%s
waiting = threading.Thread(target=lambda: session.run(take), daemon=True)
waiting.start()
time.sleep(0.1)
for _ in range(8):
    pid = os.fork()
    if pid == 0:
        signal.alarm(120)  # a child that hangs ends by it
        try:
            child()
            os._exit(0)
        except BaseException:
            import traceback
            traceback.print_exc()
        finally:
            os._exit(1)
    assert os.waitpid(pid, 0)[1] == 0
give()
waiting.join(60)
assert not waiting.is_alive()
"""


def check_fork(text):
    """`text` makes `take`, a fetch that waits, give(), which ends that, and child(), what a child
    forked meanwhile does: it has nobody who waits."""
    done = subprocess.run([sys.executable, "-c", FORK % text], capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
