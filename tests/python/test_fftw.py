# SPDX-License-Identifier: Apache-2.0
"""Fourier transforms by FFTW, for those who ask by environment; each in a process of its own."""

import os
import shutil
import subprocess
import sys

import pytest
import treenail as tn

HAVE = "fftw" in tn.build_info()["adapters"]
needs_fftw = pytest.mark.skipif(not HAVE, reason="this build has no FFTW adapter")

# All kinds, lengths cropped and padded, batches of one and several pieces, unaligned input.
COMPARE = """
import numpy as np
import treenail as tn
rng = np.random.default_rng(3)
for real, wide, eps in (("float32", "complex64", 2e-6), ("float64", "complex128", 1e-14)):
    for shape in [(7,), (1, 64), (33, 12), (100, 3), (2, 5, 6), (40, 2, 3, 5), (2, 257)]:
        z = (rng.normal(size=shape) + 1j * rng.normal(size=shape)).astype(wide)
        z = np.concatenate([z.ravel()[:1], z.ravel()])[1:].reshape(shape)
        for axes in range(1, min(3, len(shape)) + 1):
            over, name = range(-axes, 0), "" if axes == 1 else "%dD" % axes
            def near(op, inputs, want, **attrs):
                got = tn.execute(op + name, inputs, **attrs).numpy()
                assert got.shape == want.shape, (op, got.shape, want.shape)
                assert np.abs(got - want).max() <= eps * np.abs(want).max(), (op, shape, axes)
            near("FFT", [z], np.fft.fftn(z, axes=over))
            near("IFFT", [z], np.fft.ifftn(z, axes=over))
            for delta in (0, -1, 2):
                n = [max(1, s + delta) for s in shape[-axes:]]
                near("RFFT", [z.real.copy(), n], np.fft.rfftn(z.real, n, over), Tcomplex=wide)
                near("IRFFT", [z, n], np.fft.irfftn(z, n, over), Treal=real)
print(tn.build_info()["adapters"].get("fftw", {}).get("loaded"))
"""


def run(program, **environment):
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=dict(os.environ, **environment),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        universal_newlines=True,
        check=False,
    )
    return done.returncode, done.stdout


@needs_fftw
def test_results_agree():
    status, text = run(COMPARE, TREENAIL_FFT="fftw")
    assert status == 0, text
    assert text.splitlines()[-1] == "True", text


def test_builtin_is_the_default():
    status, text = run(COMPARE)
    assert status == 0, text
    assert "True" not in text.splitlines()[-1], text


ONE = "import treenail as tn; tn.execute('FFT', [[1j, 2, 3]])"


def test_another_choice_is_refused():
    status, text = run(ONE, TREENAIL_FFT="mkl")
    assert status != 0
    assert "TREENAIL_FFT" in text and "builtin" in text, text


def test_the_package_that_is_missing_is_named(without_adapters):
    where = without_adapters["TREENAIL_LIBRARY_DIR"]
    status, text = run(ONE, TREENAIL_FFT="fftw", TREENAIL_LIBRARY_DIR=where)
    assert status != 0
    assert (
        'UnimplementedError: feature "fftw" is needed for Fourier transforms by FFTW: no '
        "file %s/adapters/libtreenail-fftw.so; install Treenail's fftw adapter, version %s "
        "(Debian: libtreenail%s-fftw, Fedora: treenail-fftw), or build it with FFTW (Debian: "
        % (where, tn.__version__, tn.__version__.split(".")[0])
    ) in text.splitlines()[-1], text
    status, text = run(ONE, TREENAIL_LIBRARY_DIR=where)
    assert status == 0, text


@needs_fftw
def test_wisdom(tmp_path):
    nothing = tmp_path / "nothing"
    nothing.write_text("no wisdom")
    status, text = run(ONE, TREENAIL_FFTW_WISDOM=str(nothing))
    assert status != 0
    assert "holds no wisdom of FFTW" in text and "InvalidArgumentError" in text, text
    status, text = run(ONE, TREENAIL_FFTW_WISDOM=str(nothing), TREENAIL_FFT="builtin")
    assert status == 0, text


@needs_fftw
@pytest.mark.skipif(shutil.which("fftwf-wisdom") is None, reason="no fftwf-wisdom (libfftw3-bin)")
def test_measured_plans_are_taken(tmp_path):
    file = tmp_path / "wisdom"
    subprocess.run(["fftwf-wisdom", "-e", "-o", str(file), "cof64"], check=True)
    status, text = run(COMPARE, TREENAIL_FFTW_WISDOM=str(file))
    assert status == 0, text
    assert text.splitlines()[-1] == "True", text
