# SPDX-License-Identifier: Apache-2.0
"""The parts of the smoke test: data, the reader of IDX files, the terminal, the library map. The
trainings: smoke/check.py."""

import gzip
import hashlib
import importlib.util
import io
import os
import struct
import subprocess
import sys

import numpy as np
import pytest

import treenail as tn

SMOKE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))),
                     "smoke")


def _load(name):
    path = os.path.join(SMOKE, name + ".py")
    spec = importlib.util.spec_from_file_location("smoke_" + name, path)
    module = importlib.util.module_from_spec(spec)
    sys.modules[spec.name] = module
    spec.loader.exec_module(module)
    return module


dataset, terminal, libraries, train = [
    _load(name) for name in ("dataset", "terminal", "libraries", "train")]


def test_the_data_is_what_its_page_says():
    with open(os.path.join(SMOKE, "digits.csv"), "rb") as stream:
        digest = hashlib.sha256(stream.read()).hexdigest()
    with open(os.path.join(SMOKE, "DATA.md"), encoding="utf-8") as stream:
        page = stream.read()
    assert digest in page and "CC BY 4.0" in page and "10.24432/C50P49" in page


def test_the_held_out_images_are_the_stated_ones():
    wanted = np.random.RandomState(599).permutation(1797)[:599]
    np.testing.assert_array_equal(dataset.held_out(), wanted)


def test_training_and_test_images_do_not_mix():
    data = dataset.load_digits()
    assert data.train_images.shape == (1198, 8, 8, 1) and data.test_images.shape == (599, 8, 8, 1)
    assert data.train_images.dtype == np.float32 and data.classes == 10
    assert 0 <= data.train_images.min() and data.train_images.max() == 1
    rows = np.loadtxt(os.path.join(SMOKE, "digits.csv"), delimiter=",")
    np.testing.assert_array_equal(data.test_labels, rows[dataset.held_out(), 64])


def test_each_pass_sees_every_image_once_in_its_own_order():
    data = dataset.load_digits()
    data.train_images = np.arange(1198)
    first = np.concatenate([data.batch(i, 64, 1)[0] for i in range(18)])
    assert len(set(first)) == 18 * 64
    assert (data.batch(18, 64, 1)[0] != data.batch(0, 64, 1)[0]).any()
    np.testing.assert_array_equal(data.batch(20, 64, 1)[0], data.batch(20, 64, 1)[0])
    assert (data.batch(0, 64, 1)[0] != data.batch(0, 64, 2)[0]).any()


def idx(array, kind=0x08):
    header = struct.pack(">BBBB%dI" % array.ndim, 0, 0, kind, array.ndim, *array.shape)
    return header + array.astype(dataset._IDX_TYPES[kind]).tobytes()


@pytest.mark.parametrize("kind", sorted(dataset._IDX_TYPES))
@pytest.mark.parametrize("packed", [False, True])
def test_idx_files(kind, packed, tmp_path):
    array = np.arange(24).reshape(2, 3, 4)
    path = tmp_path / "file"
    data = idx(array, kind)
    path.write_bytes(gzip.compress(data) if packed else data)
    result = dataset.read_idx(str(path))
    np.testing.assert_array_equal(result, array)
    assert result.dtype.isnative


WHOLE = idx(np.arange(6).reshape(2, 3))


@pytest.mark.parametrize("data,text", [
    (b"", "is no IDX file: it begins with nothing"), (b"\x89PNG", "is no IDX file"),
    (b"\0\0\x07\1\0\0\0\0", "is no IDX file"), (b"\0\0\x08\0", "is no IDX file"),
    (WHOLE[:9], "ends within its header"), (WHOLE[:-1], "has 5 bytes of data, its header"),
    (WHOLE + b"x", "has 7 bytes of data"), (gzip.compress(WHOLE)[:-5], "damaged gzip data"),
    (b"\0\0\x08\3" + b"\xff" * 12, "its header")])
def test_files_that_are_no_idx(data, text, tmp_path):
    path = tmp_path / "file"
    path.write_bytes(data)
    with pytest.raises(dataset.DataError, match=text):
        dataset.read_idx(str(path))


def _mnist(directory, labels=5):
    images = np.random.RandomState(0).randint(0, 256, (5, 28, 28))
    for part in ("train", "t10k"):
        (directory / (part + "-images-idx3-ubyte.gz")).write_bytes(gzip.compress(idx(images)))
        (directory / (part + "-labels-idx1-ubyte")).write_bytes(idx(np.arange(labels)))
    return images


def test_mnist_in_a_directory(tmp_path):
    images = _mnist(tmp_path)
    data = dataset.load(str(tmp_path))
    np.testing.assert_allclose(data.test_images[..., 0], images / 255, rtol=1e-6)
    assert data.shape == (28, 28) and data.classes == 5


def test_what_directories_refuse(tmp_path):
    with pytest.raises(dataset.DataError, match="holds no train-images-idx3-ubyte"):
        dataset.load(str(tmp_path))
    _mnist(tmp_path, labels=4)
    with pytest.raises(dataset.DataError, match="do not belong together"):
        dataset.load(str(tmp_path))
    (tmp_path / "digits.csv").write_text("1,2\n3,4\n")
    with pytest.raises(dataset.DataError, match="holds no UCI digits"):
        dataset.load_digits(str(tmp_path / "digits.csv"))


def test_the_progress_bar_writes_lines_where_no_terminal_reads():
    stream = io.StringIO()
    bar = terminal.ProgressBar(100, "mlp", stream=stream)
    for i in range(100):
        bar.update(i + 1, 1.0 / (i + 1))
    lines = stream.getvalue().splitlines()
    assert len(lines) == 5 and lines[-1].startswith("mlp [" + "=" * 28 + "] 100/100  loss 0.0100")


def test_the_curve_falls_where_the_loss_falls():
    lines = terminal.curve([10.0 ** (-i / 50) for i in range(200)]).splitlines()
    stars = [line.index("*") for line in lines[:10]]
    assert stars == sorted(stars) and "200 steps" in lines[-1]
    assert terminal.curve([]) == "" and "*" in terminal.curve([1.0])


def test_libraries_are_told_by_their_names(tmp_path):
    maps = tmp_path / "maps"
    maps.write_text("".join("7f00-7f01 r-xp 0 08:01 1 %s\n" % path for path in (
        "/usr/lib/x86_64-linux-gnu/openblas-pthread/libopenblasp-r0.3.21.so",
        "/usr/lib64/libflexiblas.so.3.3", "/usr/lib/libdnnl.so.2.6",
        "/usr/lib/libhdf5_serial.so.103",
        "/usr/lib/libblastoise.txt", "[heap]")))
    found = libraries.loaded(str(maps))
    assert [len(found[k]) for k in ("BLAS", "oneDNN", "HDF5", "treenail")] == [2, 1, 1, 0]


@pytest.mark.parametrize("arguments,text", [
    (["rnn"], "invalid choice"), (["mlp", "--steps", "0"], "--steps must be at least 1"),
    (["mlp", "--resume"], "need --checkpoint-dir"), (["mlp", "--data", "/nonexistent"], "holds no"),
    (["mlp", "--batch", "5000"], "more than the 1198 images")])
def test_bad_arguments(arguments, text, capsys, monkeypatch):
    monkeypatch.syspath_prepend(SMOKE)
    try:
        status = train.main(arguments)
    except SystemExit as error:
        status = error.code
    assert status == 2 and text in capsys.readouterr().err


def test_a_training_that_is_killed_goes_on_to_the_same_bits():
    if "hdf5" not in tn.build_info()["features"]:
        pytest.skip("this build has no HDF5")
    done = subprocess.run([sys.executable, os.path.join(SMOKE, "survive.py"), "--steps", "100",
                           "--kills", "2", "--every", "10"], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, text=True, check=False, timeout=300)
    assert done.returncode == 0, done.stdout
    assert done.stdout.splitlines()[-1] == ("the same bits: True; went on from checkpoints: True; "
                                            "accuracy reached: True")
