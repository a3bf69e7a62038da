# SPDX-License-Identifier: Apache-2.0
"""DLPack capsules made by hand, right and wrong, and a count of how often each is given back."""

import ctypes

import numpy as np

INT, UINT, FLOAT, OPAQUE, BFLOAT, COMPLEX, BOOL = range(7)
CPU, CUDA = 1, 2


class View(ctypes.Structure):
    _fields_ = [("data", ctypes.c_void_p), ("device_type", ctypes.c_int32),
                ("device_id", ctypes.c_int32), ("ndim", ctypes.c_int32),
                ("code", ctypes.c_uint8), ("bits", ctypes.c_uint8), ("lanes", ctypes.c_uint16),
                ("shape", ctypes.POINTER(ctypes.c_int64)),
                ("strides", ctypes.POINTER(ctypes.c_int64)), ("byte_offset", ctypes.c_uint64)]


DELETER = ctypes.CFUNCTYPE(None, ctypes.c_void_p)


class Managed(ctypes.Structure):
    _fields_ = [("view", View), ("context", ctypes.c_void_p), ("deleter", DELETER)]


class Versioned(ctypes.Structure):
    _fields_ = [("major", ctypes.c_uint32), ("minor", ctypes.c_uint32),
                ("context", ctypes.c_void_p), ("deleter", DELETER), ("flags", ctypes.c_uint64),
                ("view", View)]


api = ctypes.pythonapi
api.PyCapsule_New.restype = ctypes.py_object
api.PyCapsule_New.argtypes = [ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p]
api.PyCapsule_GetPointer.restype = ctypes.c_void_p
api.PyCapsule_GetPointer.argtypes = [ctypes.py_object, ctypes.c_char_p]
api.PyCapsule_GetName.restype = ctypes.c_char_p
api.PyCapsule_GetName.argtypes = [ctypes.py_object]
api.PyCapsule_SetName.argtypes = [ctypes.py_object, ctypes.c_char_p]
USED = b"used_dltensor_versioned"  # a capsule refers to its name


def numbers(values):
    return None if values is None else (ctypes.c_int64 * max(len(values), 1))(*values)


class Made:
    """A capsule over the memory of `array`, with what is said of it changed; `given_back` counts
    the calls of its deleter."""

    def __init__(self, array=None, version=None, strides=None, **said):
        self.array = np.arange(6, dtype=np.float32) if array is None else array
        self.given_back = 0
        self.kept = [numbers(said.pop("shape", self.array.shape)), numbers(strides)]
        view = {"data": self.array.ctypes.data, "device_type": CPU, "ndim": self.array.ndim,
                "code": FLOAT, "bits": 8 * self.array.itemsize, "lanes": 1, **said}
        self.managed = Managed() if version is None else Versioned(*version)
        for name, value in view.items():
            setattr(self.managed.view, name, value)
        for name, value in zip(("shape", "strides"), self.kept):
            if value is not None:
                setattr(self.managed.view, name, ctypes.cast(value, ctypes.POINTER(ctypes.c_int64)))
        self.managed.deleter = DELETER(self.give_back)
        # The capsule refers to its name.
        self.name = b"dltensor" if version is None else b"dltensor_versioned"
        self.capsule = api.PyCapsule_New(ctypes.addressof(self.managed), self.name, None)

    def give_back(self, _):
        self.given_back += 1


def read(capsule):
    """The structure in a capsule that nobody has taken."""
    name = api.PyCapsule_GetName(capsule)
    kind = Versioned if name == b"dltensor_versioned" else Managed
    return kind.from_address(api.PyCapsule_GetPointer(capsule, name))


def take(capsule):
    """The structure in a capsule of version 1, as a consumer takes it."""
    inside = read(capsule)
    api.PyCapsule_SetName(capsule, USED)
    return inside


def end(inside):
    inside.deleter(ctypes.addressof(inside))
