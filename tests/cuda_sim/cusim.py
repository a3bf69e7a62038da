# SPDX-License-Identifier: Apache-2.0
"""GPUs in tests: is there one, and where it is the simulated CUDA, what exports.h lets tests do."""

import ctypes
import functools
import gc
from contextlib import contextmanager

import pytest

import treenail as tn

DEVICES = ["/job:localhost/replica:0/task:0/device:GPU:%d" % i for i in range(8)]
COUNTERS = ("launches copies_in copies_out copies_within copies_peer bytes_in bytes_out "
            "bytes_within bytes_peer memsets synchronisations allocations library_calls").split()


@functools.lru_cache(maxsize=None)
def missing():
    """Why there is no GPU, in Treenail's words; "" where there is one."""
    try:
        with tn.eager(), tn.device("/gpu:0"):
            tn.identity(1.0)
    except tn.errors.InvalidArgumentError as error:
        return str(error)
    return ""


@functools.lru_cache(maxsize=None)
def library():
    """The functions of exports.h; None where the driver is a real one, or none."""
    try:
        driver = ctypes.CDLL("libcuda.so.1")
        driver.cusim_seed
    except (OSError, AttributeError):
        return None
    number, many = ctypes.c_int, ctypes.c_int64
    for name, result, arguments in [
            ("seed", None, [ctypes.c_uint64]), ("hold", None, [number, number]),
            ("wait", None, [number]), ("driver_version", None, [number]),
            ("no_binary", None, [number]), ("live_blocks", many, [number]),
            ("live_bytes", many, [number]), ("pinned_blocks", many, []),
            ("set_limit", None, [number, many]), ("fail_allocation", None, [number, many]),
            ("lose", None, [number, many]), ("restore", None, [number]),
            ("count", many, [number, number])]:
        function = getattr(driver, "cusim_" + name)
        function.restype, function.argtypes = result, arguments
    return driver


def needs_gpu():
    """Asks the driver, and so is no constant."""
    return pytest.mark.skipif(bool(missing()), reason=missing())


needs_simulator = pytest.mark.skipif(
    library() is None, reason="looks into the simulated CUDA, which this GPU is not")


def counts(device=0):
    """{counter: how often so far}, when the device has done what it was given."""
    library().cusim_wait(device)
    return {name: library().cusim_count(device, i) for i, name in enumerate(COUNTERS)}


@contextmanager
def counted(device=0):
    """A dictionary that holds, afterwards, the counters that moved and by how much."""
    before = counts(device)
    moved = {}
    yield moved
    moved.update({name: n - before[name] for name, n in counts(device).items()
                  if n != before[name]})


def live():
    """(blocks, bytes) that the process has of the first GPU, and blocks of pinned memory."""
    gc.collect()
    library().cusim_wait(0)
    return (library().cusim_live_blocks(0), library().cusim_live_bytes(0),
            library().cusim_pinned_blocks())
