# SPDX-License-Identifier: Apache-2.0
"""The simulated devices from Python: loading their library, and what exports.h lets tests do.

A process loads the library once. Operations run on the devices where they ask for them.
"""

import ctypes
import gc
import os
from contextlib import contextmanager
from pathlib import Path

import pytest

import treenail as tn

BUILD = Path(tn._core.__file__).resolve().parents[2]
LIBRARY = BUILD / "tests/plugins/libtreenail-simulated-device.so"
DEVICES = ["/job:localhost/replica:0/task:0/device:SIM:%d" % i for i in range(2)]
needs_library = pytest.mark.skipif(not LIBRARY.exists(), reason="built by `ninja tests`")


def _functions():
    tn.load_pluggable_device_library(str(LIBRARY))
    library = ctypes.CDLL(str(LIBRARY), mode=os.RTLD_NOLOAD | os.RTLD_NOW)
    number, many = ctypes.c_int, ctypes.c_int64
    for name, result, arguments in [
            ("seed", None, [ctypes.c_uint64]), ("delays", None, [number]),
            ("live_bytes", many, [number]), ("live_blocks", many, [number]),
            ("set_limit", None, [number, many]), ("fail_allocation", None, [number, many]),
            ("lose", None, [number, many]), ("restore", None, [number]),
            ("kernels_run", many, [number]), ("copies", many, [number, number]),
            ("copied_bytes", many, [number, number]), ("record_violations", None, [number]),
            ("violations", number, [ctypes.c_char_p, number]),
            ("left_out", ctypes.c_char_p, []), ("misuse", None, [number, number])]:
        function = getattr(library, "sim_" + name)
        function.restype, function.argtypes = result, arguments
    return library


_loaded = []


def library():
    """The functions of exports.h."""
    if not _loaded:
        _loaded.append(_functions())
    return _loaded[0]


def left_out():
    """{op: why it has no kernel for the simulated devices}."""
    lines = library().sim_left_out().decode().splitlines()
    return dict(line.split(": ", 1) for line in lines)


IN, OUT, WITHIN, PEER = range(4)


@contextmanager
def counted_copies(device=0):
    """A list that holds, afterwards, how many copies of each kind the device made."""
    before = [library().sim_copies(device, what) for what in range(4)]
    made = []
    yield made
    made += [library().sim_copies(device, what) - n for what, n in enumerate(before)]


@contextmanager
def nothing_left():
    """What is allocated within is freed at its end. What tn.function has planned before stays."""
    gc.collect()
    before = [library().sim_live_blocks(device) for device in range(2)]
    yield
    gc.collect()
    left = [library().sim_live_blocks(device) for device in range(2)]
    text = "memory is left: %r blocks, before %r" % (left, before)
    assert all(a <= b for a, b in zip(left, before)), text


def recorded_violations():
    """(how many, the last one's text) since the last call, where they are recorded."""
    text = ctypes.create_string_buffer(4096)
    count = library().sim_violations(text, len(text))
    return count, text.value.decode()


def ran_on(metadata):
    """{operation: device} of a traced run, but for what the session added."""
    return {n.name: n.device for n in metadata.nodes if not n.op.startswith("_")}


def traced():
    """Options of a run whose metadata tells where each operation ran."""
    return tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)
