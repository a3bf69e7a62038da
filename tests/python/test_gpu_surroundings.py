# SPDX-License-Identifier: Apache-2.0
"""Where a GPU's driver, its libraries or the plugin are missing or of the wrong kind: one sentence
says which, and the CPU goes on. Each in a process of its own, with the simulated CUDA where it
needs a driver."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import treenail as tn

BUILD = Path(tn._core.__file__).resolve().parents[2]
SIMULATED = BUILD / "tests/cuda_sim"
PLUGIN = "libtreenail-cuda.so"
PRIVATE = BUILD / "lib" / ("treenail-" + tn.__version__.split(".")[0])

pytestmark = pytest.mark.skipif(
    not ((SIMULATED / "libcuda.so.1").exists() and (PRIVATE / "devices" / PLUGIN).exists()),
    reason="a build with the CUDA plugin, and `ninja tests`, make what this runs")

PROGRAM = """
import ctypes, os, treenail as tn

def say(work):
    try:
        print(float(work()))
    except tn.errors.OpError as error:
        print(type(error).__name__ + ": " + str(error).splitlines()[0])

for call, value in eval(os.environ["CUSIM_CALLS"]):
    getattr(ctypes.CDLL("libcuda.so.1"), call)(value)

def exponential():
    with tn.eager(), tn.device("/gpu:0"):
        return tn.exp(tn.constant(0.0)).numpy()

def product():
    with tn.device("/gpu:0"):
        y = tn.matmul(tn.fill([1, 1], 2.0), tn.fill([1, 1], 3.0))
    with tn.Session() as sess:
        return sess.run(y)[0, 0]

def on_the_cpu():
    with tn.Session() as sess:
        return sess.run(tn.exp(0.0))

def transform():
    with tn.device("/gpu:0"):
        y = tn.real(tn.fft(tn.complex(tn.fill([1], 5.0), tn.fill([1], 0.0))))
    with tn.Session() as sess:
        return sess.run(y)[0]

for work in (exponential, product, transform, on_the_cpu, exponential):
    say(work)
"""


def run(libraries=SIMULATED, calls=(), **environment):
    """What an operation on the GPU, a product and a transform on it, one on the CPU, and the first
    again say; all but the last two."""
    found = subprocess.run([sys.executable, "-c", PROGRAM], text=True, check=False,
                           env=dict(os.environ, LD_LIBRARY_PATH=str(libraries),
                                    CUSIM_CALLS=repr(list(calls)), **environment),
                           stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    assert found.returncode == 0, found.stdout
    lines = found.stdout.splitlines()
    assert len(lines) == 5 and lines[4] == lines[0] and lines[3] == "1.0", found.stdout
    return lines[:3]


def check_absent(why, **arguments):
    """No session has a GPU, and its absence is explained."""
    for line in run(**arguments):
        assert re.match(r'InvalidArgumentError: .*cannot be placed on "/gpu:0": this \w+ has '
                        r"\S*CPU:0 \(%s\); allow_soft_placement" % why, line), line


def private_directory(tmp_path):
    """The private library directory without device libraries."""
    (tmp_path / "devices").mkdir()
    for name in ("kernels", "adapters"):
        os.symlink(PRIVATE / name, tmp_path / name)
    return tmp_path / "devices" / PLUGIN


def test_with_everything_there():
    assert run() == ["1.0", "6.0", "5.0"]


def test_no_driver(tmp_path):
    (tmp_path / "libcuda.so.1").touch()  # found before a real one
    check_absent(r"NVIDIA's driver is not there: \S*libcuda.so.1: file too short",
                 libraries=tmp_path)


def test_an_old_driver():
    check_absent(r"NVIDIA's driver is for CUDA 11\.4; this plugin was built for CUDA \d+\.\d+ and "
                 r"needs a driver for CUDA \d+\.0 or later",
                 calls=[("cusim_driver_version", 11040)])


def test_no_gpu():
    check_absent("NVIDIA's driver finds no GPU that this process may use",
                 TREENAIL_CUDA_SIM_DEVICES="0")


def test_no_plugin(tmp_path):
    private_directory(tmp_path)
    check_absent(r"the part of Treenail for NVIDIA GPUs is not installed: version \S+ \(Debian: "
                 r"libtreenail\d+-cuda, Fedora: treenail-cuda\)",
                 TREENAIL_LIBRARY_DIR=str(tmp_path))


def test_a_truncated_plugin(tmp_path):
    plugin = private_directory(tmp_path)
    shutil.copy(PRIVATE / "devices" / PLUGIN, plugin)
    os.truncate(plugin, 100000)
    check_absent(r"the plugin \S*%s is truncated: its header speaks of \d+ bytes, it has 100000" %
                 PLUGIN, TREENAIL_LIBRARY_DIR=str(tmp_path))


def test_a_plugin_of_another_build(tmp_path):
    plugin = private_directory(tmp_path)
    code = (PRIVATE / "devices" / PLUGIN).read_bytes()
    changed, count = re.subn(rb"(treenail-private-abi-\d+\.\d+\.\d+-)[0-9a-f]{12}\0",
                             rb"\1ffffffffffff\0", code)
    assert count
    plugin.write_bytes(changed)
    check_absent(r"\S*%s is of build \S+-ffffffffffff; this libtreenail is of build \S+" % PLUGIN,
                 TREENAIL_LIBRARY_DIR=str(tmp_path))


def libraries_without(part, folder):
    """The simulated ones, but for those with `part` in their names, which are empty files."""
    for library in SIMULATED.iterdir():
        if part in library.name:
            (folder / library.name).touch()
        else:
            os.symlink(library, folder / library.name)
    return folder


def test_no_cublaslt(tmp_path):
    exponential, product, transform = run(libraries=libraries_without("cublas", tmp_path))
    assert (exponential, transform) == ("1.0", "5.0")
    assert re.match(r'FailedPreconditionError: \[MatMul node "MatMul"\] cuBLASLt, for products on '
                    r"a GPU, is not there: \S*libcublasLt\.so\.\d+: file too short", product)


def test_no_cufft(tmp_path):
    exponential, product, transform = run(libraries=libraries_without("cufft", tmp_path))
    assert (exponential, product) == ("1.0", "6.0")
    assert re.match(r'FailedPreconditionError: \[FFT node "\S+"\] cuFFT, for Fourier transforms on '
                    r"a GPU, is not there: \S*libcufft\.so\.\d+: file too short", transform)


def convolved(libraries, **environment):
    """Two sums of three by a convolution on the GPU, and the log."""
    program = """
import treenail as tn
with tn.device("/gpu:0"):
    y = tn.nn.conv2d(tn.fill([1, 1, 4, 1], 2.0), tn.fill([1, 3, 1, 1], 1.5), [1, 1, 1, 1], "VALID")
with tn.Session() as sess:
    print(sess.run(y).ravel().tolist())
"""
    found = subprocess.run([sys.executable, "-c", program], text=True, check=False,
                           env=dict(os.environ, LD_LIBRARY_PATH=str(libraries),
                                    TREENAIL_LOG="warning", **environment),
                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
    assert found.returncode == 0, found.stderr
    return found.stdout, found.stderr


@pytest.mark.skipif(not list(SIMULATED.glob("libcudnn.so.*")),
                    reason="configure found no cudnn.h: there is no simulated cuDNN")
def test_no_cudnn(tmp_path):
    assert convolved(SIMULATED) == ("[9.0, 9.0]\n", "")
    result, said = convolved(libraries_without("cudnn", tmp_path))
    assert result == "[9.0, 9.0]\n"
    assert re.fullmatch(r"treenail warning: cuDNN, for convolutions on a GPU, is not there: "
                        r"\S*libcudnn\.so\.\d+: file too short; convolutions on GPUs are slower "
                        r"without it\n", said), said


@pytest.mark.skipif(not list(SIMULATED.glob("libcudnn.so.*")),
                    reason="configure found no cudnn.h: there is no simulated cuDNN")
def test_a_cudnn_that_cannot_work():
    """As where one of the libraries that it opens itself is missing."""
    assert convolved(SIMULATED, TREENAIL_CUDA_SIM_NO_DNN="1") == (
        "[9.0, 9.0]\n", "treenail warning: cuDNN cannot be used: cudnnCreate() says "
        "CUDNN_STATUS_NOT_INITIALIZED; convolutions on GPUs are slower without it\n")


def test_an_architecture_without_code():
    for line in run(calls=[("cusim_no_binary", 1)]):
        assert re.match(r"FailedPreconditionError: .*GPU:0: the plugin holds no code for GPUs of "
                        r"compute capability 9\.0, as Simulated CUDA device is", line), line
