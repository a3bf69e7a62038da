# SPDX-License-Identifier: Apache-2.0
"""smoke/stack_check.py on this machine's own libraries: what it accepts and what it refuses."""

import ctypes.util
import json
import os
import shutil
import subprocess
import sys

import pytest

PROGRAM = os.path.join(os.path.dirname(__file__), os.pardir, os.pardir, "smoke/stack_check.py")
PACKAGE = {"mode": "package", "version": "9", "prefix": "", "module": "", "module_root": "",
           "flags": []}
CHECKS = [("openblas", "blas"), ("fftw", "fft"), ("hdf5", "hdf5")]


def there(check):
    if check == "hdf5":
        return all(map(shutil.which, ("cc", "h5dump", "pkg-config"))) and not subprocess.run(
            ["sh", "-c", "pkg-config --exists hdf5 || pkg-config --exists hdf5-serial"],
            check=False).returncode
    names = {"blas": ["openblas"], "fft": ["fftw3", "fftw3f"]}[check]
    return all(map(ctypes.util.find_library, names))


def checked(name, check, status=0, needs=(), **component):
    if not there(check):
        pytest.skip("the library for the check %s is not installed" % check)
    done = subprocess.run(
        [sys.executable, "-B", PROGRAM, check], input=json.dumps({
            "instance": dict(PACKAGE, name=name, **component), "needs": list(needs)}),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False,
        env={key: value for key, value in os.environ.items()
             if key not in ("HDF5_DIR", "LD_LIBRARY_PATH")})
    assert done.returncode == status, done.stdout
    return done.stdout


def version_of(name, check):
    """What the library says, by a refusal that names it."""
    text = checked(name, check, 1, mode="module", module=name + "/99", version="99",
                   module_root="/usr")
    return text.partition("it is version ")[2].partition(",")[0]


@pytest.mark.parametrize("name, check", CHECKS)
def test_the_distributions_library_is_taken_as_the_plan_says(name, check):
    assert "/lib" in checked(name, check)


@pytest.mark.parametrize("name, check", CHECKS)
def test_a_version_may_be_as_exact_as_the_modules_name(name, check):
    version = version_of(name, check)
    assert version.count(".") == 2 and version.replace(".", "").isdigit()
    for wanted in (version, version.rpartition(".")[0], version.split(".")[0], ""):
        checked(name, check, mode="module", module=name, version=wanted, module_root="/usr")


@pytest.mark.parametrize("name, check", CHECKS)
def test_another_version_than_the_modules_is_refused(name, check):
    text = checked(name, check, 1, mode="module", module=name + "/99.1", version="99.1",
                   module_root="/usr")
    assert text.startswith("%s: it is version " % name)
    assert text.endswith("but the plan has %s/99.1\n" % name)


@pytest.mark.parametrize("name, check", CHECKS)
def test_a_module_that_brings_nothing_of_its_own_is_refused(name, check):
    text = checked(name, check, 1, mode="module", module=name + "/1", version="")
    assert "is the distribution's /" in text and "but the plan takes the module %s/1" % name in text


@pytest.mark.parametrize("name, check", CHECKS)
def test_a_library_from_elsewhere_than_the_prefix_is_refused(name, check):
    version = version_of(name, check)
    text = checked(name, check, 1, mode="build", version=version, prefix="/opt/stack/x")
    assert "but the plan built it in /opt/stack/x" in text


def test_a_library_that_lacks_functions_is_refused(tmp_path):
    if not shutil.which("cc"):
        pytest.skip("there is no C compiler")
    (tmp_path / "blas.c").write_text("int cblas_dgemm(void) { return 0; }\n")
    subprocess.run(["cc", "-shared", "-o", str(tmp_path / "libopenblas.so.0"),
                    str(tmp_path / "blas.c")], check=True)
    done = subprocess.run(
        [sys.executable, "-B", PROGRAM, "blas"], env={"LD_LIBRARY_PATH": str(tmp_path)},
        input=json.dumps({"instance": dict(PACKAGE, name="openblas"), "needs": []}),
        stdout=subprocess.PIPE, stderr=subprocess.STDOUT, encoding="utf-8", check=False)
    assert done.returncode == 1
    assert done.stdout == "openblas: libopenblas.so.0 has no sgemm_, dgesv_, zheevd_\n"
