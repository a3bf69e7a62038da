# SPDX-License-Identifier: Apache-2.0
"""DType objects."""

import pickle

import numpy as np
import pytest

import treenail as tn


@pytest.mark.parametrize("given,name", [("float32", "float32"), ("float", "float32"),
                                        ("double", "float64"), ("half", "float16"), (1, "float32"),
                                        (9, "int64"), (np.float32, "float32"),
                                        (np.dtype("u2"), "uint16"), (float, "float32"),
                                        (int, "int64"), (bool, "bool"), (complex, "complex128"),
                                        (str, "string"), (bytes, "string"), (np.object_, "string"),
                                        (tn.int8, "int8")])
def test_what_names_a_dtype(given, name):
    dtype = tn.as_dtype(given)
    assert dtype.name == name
    assert dtype == name and dtype == given and hash(dtype) == hash(tn.as_dtype(name))
    assert dtype is getattr(tn, name)


@pytest.mark.parametrize("given", ["float33", 99, 0, -1, None, "M8", np.dtype("M8[s]"), object(),
                                   2**80])
def test_what_does_not(given):
    with pytest.raises(TypeError):
        tn.as_dtype(given)
    assert tn.float32 != given


def test_numbers_are_those_of_files():
    assert [d.as_datatype_enum for d in (tn.float32, tn.float64, tn.int32, tn.string, tn.bool,
                                         tn.bfloat16, tn.float16)] == [1, 2, 3, 7, 10, 14, 19]


def test_numpy_types_and_limits():
    for name in ("float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8",
                 "uint16", "uint32", "uint64"):
        dtype = tn.as_dtype(name)
        assert dtype.as_numpy_dtype == np.dtype(name).type
        assert dtype.size == np.dtype(name).itemsize
        info = np.iinfo(name) if dtype.is_integer else np.finfo(name)
        assert (dtype.min, dtype.max) == (info.min, info.max)
    assert tn.bfloat16.as_numpy_dtype == np.uint16 and tn.bfloat16.max == pytest.approx(3.3895e38,
                                                                                        rel=1e-4)
    assert tn.string.as_numpy_dtype == np.object_
    with pytest.raises(TypeError, match="no limits"):
        tn.string.max
    with pytest.raises(TypeError, match="resource"):
        tn.resource.as_numpy_dtype


def test_kinds():
    assert [d.name for d in (tn.float16, tn.float32, tn.int8, tn.uint8, tn.bool, tn.complex64,
                             tn.string) if d.is_floating] == ["float16", "float32"]
    assert tn.int8.is_integer
    assert tn.uint8.is_unsigned
    assert not tn.bool.is_integer
    assert tn.complex64.is_complex
    assert tn.complex64.real_dtype == tn.float32 and tn.float32.base_dtype is tn.float32


def test_pickle_and_repr():
    assert pickle.loads(pickle.dumps(tn.float32)) is tn.float32
    assert repr(tn.float32) == "tn.float32" and str(tn.float32) == "<dtype: 'float32'>"
    with pytest.raises(TypeError):
        tn.DType()
