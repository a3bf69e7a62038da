# SPDX-License-Identifier: Apache-2.0
"""Tensors to and from other libraries by DLPack: tn.from_dlpack and Tensor.__dlpack__."""

import gc
import threading
import weakref

import numpy as np
import pytest
import treenail as tn
from dlpack_capsules import (BFLOAT, BOOL, COMPLEX, CUDA, FLOAT, INT, OPAQUE, UINT, Made, end,
                             read, take)

DTYPES = ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "uint16",
          "uint32", "uint64", "complex64", "complex128"]
SHAPES = [(), (1,), (5,), (2, 3), (0,), (3, 0, 2), (1, 4, 1)]


def address(tensor, version=(1, 0)):
    capsule = tensor.__dlpack__(max_version=version)
    return read(capsule).view.data


def identity(value):
    """A tensor whose memory is its own."""
    return tn.execute("Add", [value, np.zeros_like(value)])


@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("shape", SHAPES)
def test_from_numpy_and_back(dtype, shape):
    array = np.arange(np.prod(shape)).astype(dtype).reshape(shape)
    tensor = tn.from_dlpack(array)
    assert tensor.dtype == dtype and tuple(tensor.shape.as_list()) == shape
    np.testing.assert_array_equal(tensor.numpy(), array)
    back = np.from_dlpack(tensor)
    assert back.dtype == array.dtype and back.shape == array.shape
    np.testing.assert_array_equal(back, array)


def test_no_copy_of_what_numpy_has():
    array = np.arange(3000, dtype=np.float64).reshape(30, 100)
    tensor = tn.from_dlpack(array)
    assert address(tensor) == array.ctypes.data
    small = np.float32([1])
    assert address(tn.from_dlpack(small, copy=False)) == small.ctypes.data
    array[0, 0] = -1  # it is the same memory
    assert tensor.numpy()[0, 0] == -1
    assert address(tn.from_dlpack(array, copy=True)) != array.ctypes.data


def test_no_copy_of_what_is_the_tensors_alone():
    tensor = identity(np.arange(4.0))
    where = address(tensor)
    array = np.from_dlpack(tensor)
    assert array.ctypes.data == where
    again = np.from_dlpack(tensor)  # the first may be written to, so this one is its own
    np.testing.assert_array_equal(again, array)
    assert not np.shares_memory(again, array) or not again.flags.writeable
    del tensor
    gc.collect()
    np.testing.assert_array_equal(array, np.arange(4.0))


def test_a_capsule_of_version_1_shares_and_is_read_only():
    array = np.arange(6.0).reshape(2, 3)
    tensor = tn.from_dlpack(array)
    capsule = tensor.__dlpack__(max_version=(1, 3))
    inside = read(capsule)
    assert (inside.major, inside.flags) == (1, 1)
    assert inside.view.data == array.ctypes.data and inside.view.byte_offset == 0
    assert (inside.view.shape[:2], inside.view.strides[:2]) == ([2, 3], [3, 1])
    capsule = tensor.__dlpack__(max_version=(1, 0), copy=True)
    copied = read(capsule)
    assert copied.flags == 2 and copied.view.data != array.ctypes.data


def test_the_old_capsule_never_shares_what_others_use():
    array = np.arange(6.0)
    tensor = tn.from_dlpack(array)
    assert address(tensor, None) != array.ctypes.data
    assert address(tensor, (0, 8)) != array.ctypes.data
    with pytest.raises(BufferError, match="copy = False.*max_version"):
        tensor.__dlpack__(copy=False)


@pytest.mark.parametrize("dtype, code, bits", [
    ("bool", BOOL, 8), ("bfloat16", BFLOAT, 16), ("float16", FLOAT, 16), ("uint32", UINT, 32),
    ("int8", INT, 8), ("complex128", COMPLEX, 128)])
def test_types_that_are_said(dtype, code, bits):
    tensor = tn.execute("Cast", [np.float32([0, 1])], DstT=dtype)
    capsule = tensor.__dlpack__()
    view = read(capsule).view
    assert (view.code, view.bits, view.lanes) == (code, bits, 1)
    back = tn.from_dlpack(tensor)
    assert back.dtype == dtype


def test_device_of_a_tensor():
    assert tn.execute("Neg", [1.0]).__dlpack_device__() == (1, 0)


@pytest.mark.parametrize("strided", [
    lambda a: a.T, lambda a: a[::2], lambda a: a[:, ::-1], lambda a: a[1:, 1:],
    lambda a: np.broadcast_to(a[:, :1], a.shape).T])
def test_other_strides_are_copied(strided):
    base = np.arange(20, dtype=np.int32).reshape(4, 5)
    array = strided(base)
    if not array.flags.writeable:
        array = np.lib.stride_tricks.as_strided(base, array.shape, array.strides)
    tensor = tn.from_dlpack(array)
    np.testing.assert_array_equal(tensor.numpy(), array)
    with pytest.raises(BufferError, match="does not lie row by row"):
        tn.from_dlpack(array, copy=False)


def test_strides_of_extents_of_one_do_not_matter():
    array = np.arange(6, dtype=np.float32).reshape(6, 1)[::1, ::-1]
    assert address(tn.from_dlpack(array, copy=False)) == array.ctypes.data


def test_what_is_not_aligned_is_copied():
    memory = np.zeros(33, np.uint8)
    made = Made(memory[1:].view(np.uint8), shape=(4,), bits=64)
    made.array[:] = np.frombuffer(np.arange(4.0).tobytes(), np.uint8)
    tensor = tn.from_dlpack(made.capsule)
    assert address(tensor) % 8 == 0
    np.testing.assert_array_equal(tensor.numpy(), np.arange(4.0))
    assert made.given_back == 1  # at once


def test_byte_offset():
    made = Made(byte_offset=8, shape=(4,))
    np.testing.assert_array_equal(tn.from_dlpack(made.capsule).numpy(), [2, 3, 4, 5])


def test_bools_other_than_0_and_1_are_made_so():
    made = Made(np.array([0, 1, 2, 255], np.uint8), code=BOOL)
    np.testing.assert_array_equal(tn.from_dlpack(made.capsule).numpy(), [False, True, True, True])


def test_no_memory_is_right_for_no_elements():
    for version in (None, (1, 0)):
        made = Made(data=None, shape=(0,), version=version)
        assert tn.from_dlpack(made.capsule).shape.as_list() == [0]
        assert made.given_back == 1


# ---- Who ends what, and how often ----


@pytest.mark.parametrize("version", [None, (1, 0), (1, 9)])
def test_a_capsule_is_taken_once_and_given_back_once(version):
    made = Made(version=version)
    tensor = tn.from_dlpack(made.capsule)
    with pytest.raises(BufferError, match='a capsule "used_dltensor.*can be taken once'):
        tn.from_dlpack(made.capsule)
    share = tn.execute("Identity", [tensor])
    del tensor
    tn.execute("Neg", [1.0])
    np.testing.assert_array_equal(share.numpy(), np.arange(6))
    del share
    tn.execute("Neg", [1.0])
    gc.collect()
    assert made.given_back == 1


def test_a_capsule_that_nobody_takes_ends_its_share():
    array = np.zeros(5000).view(type("Watched", (np.ndarray,), {}))
    watch = weakref.ref(array)
    tensor = tn.from_dlpack(array)
    capsules = [tensor.__dlpack__(max_version=(1, 0)) for _ in range(3)]
    del array, tensor
    gc.collect()
    assert watch() is not None
    del capsules
    tn.execute("Neg", [1.0])
    assert watch() is None


def test_given_back_from_any_thread():
    array = np.zeros(5000).view(type("Watched", (np.ndarray,), {}))
    watch = weakref.ref(array)
    tensor = tn.from_dlpack(array)
    taken = [take(tensor.__dlpack__(max_version=(1, 0))) for _ in range(64)]
    del array, tensor
    threads = [threading.Thread(target=lambda i=i: [end(one) for one in taken[i::4]])
               for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    tn.execute("Neg", [1.0])
    assert watch() is None


def test_an_array_that_a_session_uses_outlives_its_tensor():
    x = tn.placeholder(tn.float32, [None])
    y = tn.reduce_sum(x)
    made = Made(np.ones(4000, np.float32))
    with tn.Session() as session:
        assert session.run(y, {x: tn.from_dlpack(made.capsule)}) == 4000
        session.run(y, {x: [1.0]})
    gc.collect()
    assert made.given_back == 1


# ---- What is refused ----

WRONG = [
    ({"version": (2, 0)}, "DLPack 2.0 was given; needed is version 1 or older"),
    ({"device_type": CUDA, "device_id": 3}, "device of DLPack type 2, number 3"),
    ({"ndim": -1}, "a tensor of rank -1 was given"),
    ({"ndim": 33}, "a tensor of rank 33 was given; ranks are 0 to 32"),
    ({"shape": None}, "a tensor of rank 1 was given without its shape"),
    ({"shape": (-6,)}, "whose extent 0 is -6"),
    ({"data": None}, r"a tensor of shape \[6\] without memory"),
    ({"bits": 8}, "DLPack type float with 8 bits and 1 lanes"),
    ({"lanes": 4}, "DLPack type float with 32 bits and 4 lanes"),
    ({"code": OPAQUE}, "DLPack type opaque with 32 bits"),
    ({"code": 200}, "DLPack type code 200 with 32 bits"),
    ({"code": COMPLEX}, "DLPack type complex with 32 bits"),
    ({"code": BFLOAT}, "DLPack type bfloat with 32 bits"),
    ({"code": INT, "bits": 4}, "DLPack type int with 4 bits"),
    ({"shape": (2 ** 40, 2 ** 40), "ndim": 2}, "overflow|too many|too large|elements"),
]


@pytest.mark.parametrize("said, message", WRONG)
def test_what_is_wrong_in_a_capsule_is_refused_and_given_back(said, message):
    made = Made(**said)
    with pytest.raises((BufferError, tn.errors.InvalidArgumentError), match=message):
        tn.from_dlpack(made.capsule)
    assert made.given_back == 1


@pytest.mark.parametrize("value", [3, "x", None, [1.0], object(), np.float32])
def test_an_object_without_dlpack_is_refused(value):
    with pytest.raises(TypeError, match=r"from_dlpack\(\): .*needed is one with __dlpack__"):
        tn.from_dlpack(value)


class Provider:
    def __init__(self, capsule, device=(1, 0)):
        self.capsule, self.device = capsule, device

    def __dlpack__(self):
        if isinstance(self.capsule, Exception):
            raise self.capsule
        return self.capsule

    def __dlpack_device__(self):
        return self.device


@pytest.mark.parametrize("provider, kind, message", [
    (Provider(3), TypeError, "gave 3, which is no capsule"),
    (Provider(RuntimeError("not now")), RuntimeError, "not now"),
    (Provider(Made().capsule, (2, 0)), BufferError, "DLPack type 2, number"),
    (Provider(Made().capsule, "x"), TypeError, ""),
    (Provider(Made().capsule, None), TypeError, ""),
    (Provider(Made().capsule, (2 ** 40, 0)), (OverflowError, BufferError), ""),
])
def test_a_provider_that_is_wrong(provider, kind, message):
    with pytest.raises(kind, match=message):
        tn.from_dlpack(provider)


@pytest.mark.parametrize("asked, kind, message", [
    ({"stream": 1}, BufferError, "stream = 1"),
    ({"dl_device": (2, 0)}, BufferError, r"dl_device = \(2, 0\)"),
    ({"dl_device": 2}, TypeError, "dl_device = 2"),
    ({"max_version": 1}, TypeError, "max_version = 1"),
    ({"max_version": (1,)}, TypeError, "max_version = "),
    ({"copy": 1}, TypeError, "copy = 1"),
    ({"other": 1}, TypeError, "other"),
])
def test_what_a_consumer_may_not_ask(asked, kind, message):
    with pytest.raises(kind, match=message):
        tn.execute("Neg", [1.0]).__dlpack__(**asked)


def test_a_tensor_without_plain_elements_is_refused():
    with pytest.raises(BufferError, match="dtype string has no DLPack form"):
        tn.execute("Identity", [["a"]]).__dlpack__()


def test_a_symbolic_tensor_is_refused():
    x = tn.placeholder(tn.float32, name="fed")
    for call in (x.__dlpack__, x.__dlpack_device__, lambda: tn.from_dlpack(x)):
        with pytest.raises(BufferError, match=r"symbolic Tensor \(fed.*has no memory yet"):
            call()


def test_another_device_is_refused():
    array = np.zeros(2)
    assert tn.from_dlpack(array, device="cpu").shape.as_list() == [2]
    with pytest.raises(BufferError, match="device = 'cuda:0'"):
        tn.from_dlpack(array, device="cuda:0")
    with pytest.raises(TypeError, match="copy = 'no'"):
        tn.from_dlpack(array, copy="no")


# ---- PyTorch ----


@pytest.fixture(scope="module")
def torch():
    return pytest.importorskip("torch", reason="PyTorch is not installed (python3-torch)")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16", "float32", "float64", "int8", "int16",
                                   "int32", "int64", "uint8", "complex64", "bool"])
def test_from_torch_and_back(torch, dtype):
    given = torch.arange(6).to(getattr(torch, dtype)).reshape(2, 3)
    try:
        given.__dlpack__()
    except (BufferError, RuntimeError) as error:
        pytest.skip("this PyTorch: %s" % error)
    tensor = tn.from_dlpack(given)
    assert tensor.dtype == dtype and address(tensor) == given.data_ptr()
    back = torch.from_dlpack(tensor)
    assert back.dtype == given.dtype and torch.equal(back, given)


def test_torch_without_a_copy(torch):
    tensor = identity(np.arange(5000.0))
    where = address(tensor)
    theirs = torch.from_dlpack(tensor)
    assert theirs.data_ptr() == where
    del tensor
    gc.collect()
    assert float(theirs.sum()) == np.arange(5000.0).sum()


def test_what_torch_refuses_itself(torch):
    with pytest.raises((BufferError, RuntimeError), match="gradient"):
        tn.from_dlpack(torch.zeros(2, requires_grad=True))
    np.testing.assert_array_equal(tn.from_dlpack(torch.ones(2, 3).t()).numpy(), np.ones((3, 2)))
