# SPDX-License-Identifier: Apache-2.0
"""The programs of examples/, built from the installed headers alone, by pkg-config and by CMake."""

import json
import os
import shutil

import pytest
from product import BUILD, needs_build, placed, run
from small_tree import SOURCE

pytestmark = needs_build
PRODUCT = SOURCE / "examples/tensor_product"
WARNINGS = ("-O2", "-Wall", "-Wextra", "-Werror", "-pedantic")
needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
COMPILERS = [pytest.param(name, marks=pytest.mark.skipif(shutil.which(name) is None,
                                                         reason=name + " is not installed"))
             for name in ("g++", "clang++")]


def flags_by_pkg_config(installed, *asked):
    prefix = json.loads((BUILD / "gen/install.json").read_text())["prefix"]
    pc = placed(installed, "/pkgconfig/treenail.pc")
    return run("pkg-config", "--define-variable=prefix=%s%s" % (installed, prefix), *asked,
               "treenail", env=dict(os.environ, PKG_CONFIG_LIBDIR=str(pc.parent))).split()


def copied(folder, tmp_path):
    """The example alone: nothing of the tree is beside it."""
    return shutil.copytree(folder, tmp_path / folder.name)


def check(folder, program, *arguments):
    return run(BUILD / "python3", program, *arguments, cwd=folder).splitlines()[-1]


@pytest.mark.parametrize("compiler", COMPILERS)
def test_ops_in_the_style_of_tensorflow_by_pkg_config(installed, tmp_path, compiler):
    folder = copied(PRODUCT, tmp_path)
    run(compiler, "-std=c++17", *WARNINGS, "-fPIC", "-shared", "op.cc", "kernel.cc", "-o",
        "tensor_product.so", *flags_by_pkg_config(installed, "--cflags"), cwd=folder)
    assert check(folder, "check.py", "./tensor_product.so") == "TensorProduct is right"
    needed = run("readelf", "-dW", folder / "tensor_product.so")
    assert "libtreenail" not in needed


def built_by_cmake(installed, folder):
    # CMake searches lib64, Fedora's, on Fedora alone.
    config = placed(installed, "/cmake/Treenail/treenail-config.cmake").parent
    run("cmake", "-G", "Ninja", "-S", folder, "-B", folder / "build",
        "-DPYTHON_EXECUTABLE=" + run(BUILD / "python3", "-c",
                                     "import sys; print(sys.executable)").strip(),
        "-DCMAKE_CXX_FLAGS=" + " ".join(WARNINGS), "-DCMAKE_PREFIX_PATH=%s;%s" % (
            config.parents[2], config))
    run("cmake", "--build", folder / "build")


@needs_cmake
def test_ops_in_the_style_of_tensorflow_by_find_package(installed, tmp_path):
    folder = copied(PRODUCT, tmp_path)
    built_by_cmake(installed, folder)
    assert check(folder, "check.py", "build/tensor_product.so") == "TensorProduct is right"
    if not list(folder.glob("build/tensor_product_extension*.so")):
        pytest.skip("CMake finds no pybind11 (pybind11-dev): the extension was not built")
    assert check(folder, "check_extension.py", "build") == "the extension is right"


# ---- PyTorch's style ----


def python_with(interpreter, *asked):
    """What the build's Python, not that of the test, says of building a module."""
    program = "import sysconfig as s; print(%s)" % ", ".join(asked)
    return run(interpreter, "-c", program).split()


@pytest.fixture(scope="module")
def pybind11_flags():
    if run("sh", "-c", "pkg-config --exists pybind11 && echo yes || echo no").strip() != "yes":
        pytest.skip("pybind11 is not installed (pybind11-dev)")
    return run("pkg-config", "--cflags", "pybind11").split()


def test_a_module_in_the_style_of_pytorch_by_pkg_config(installed, tmp_path, pybind11_flags):
    folder = copied(PRODUCT, tmp_path)
    include, suffix = python_with(BUILD / "python3", "s.get_path('include')",
                                  "s.get_config_var('EXT_SUFFIX')")
    run("g++", "-std=c++17", *WARNINGS, "-fPIC", "-shared", "-fvisibility=hidden", "extension.cc",
        "-o", "tensor_product_extension" + suffix, "-I" + include, *pybind11_flags,
        *flags_by_pkg_config(installed, "--cflags"), cwd=folder)
    assert check(folder, "check_extension.py", ".") == "the extension is right"


def test_a_plugin_of_a_later_interface_is_refused(installed, tmp_path):
    """As if its headers were of a later Treenail: without the check it would be called through a
    table of another shape."""
    folder = copied(PRODUCT, tmp_path)
    include = shutil.copytree(placed(installed, "/treenail/plugin.h").parents[1],
                              tmp_path / "include")
    header = include / "treenail/plugin.h"
    text = header.read_text()
    assert "#define TN_PLUGIN_ABI_VERSION 1u" in text
    header.write_text(text.replace("TN_PLUGIN_ABI_VERSION 1u", "TN_PLUGIN_ABI_VERSION 2u"))
    run("g++", "-std=c++17", "-fPIC", "-shared", "op.cc", "kernel.cc", "-o", "later.so", "-I",
        include, cwd=folder)
    told = run(BUILD / "python3", "-c", "import treenail as tn\n"
               "try: tn.load_op_library('./later.so')\n"
               "except tn.errors.FailedPreconditionError as error: print(error)", cwd=folder)
    assert "later.so" in told and "built for plugin ABI version 2" in told


# ---- Programs ----


def trained(program, libdir, tmp_path):
    if "libtreenail-hdf5.so" not in {p.name for p in libdir.glob("treenail-*/adapters/*.so")}:
        pytest.skip("this build has no HDF5, and so no checkpoints")
    told = run(program, tmp_path, env=dict(os.environ, LD_LIBRARY_PATH=str(libdir)))
    assert "(0.6, 0.8) turned is (-0.80, 0.60)" in told
    assert (tmp_path / "network.tng").exists() and (tmp_path / "weights.h5").exists()


@pytest.mark.parametrize("compiler", COMPILERS)
def test_a_program_trains_a_loop_by_pkg_config(installed, tmp_path, compiler):
    folder = copied(SOURCE / "examples/train_loop", tmp_path)
    run(compiler, "-std=c++17", *WARNINGS, "train_loop.cc", "-o", "train_loop",
        *flags_by_pkg_config(installed, "--cflags", "--libs"), cwd=folder)
    trained(folder / "train_loop", placed(installed, "/libtreenail.so").parent, tmp_path)


@needs_cmake
def test_a_program_trains_a_loop_by_find_package(installed, tmp_path):
    folder = copied(SOURCE / "examples/train_loop", tmp_path)
    built_by_cmake(installed, folder)
    trained(folder / "build/train_loop", placed(installed, "/libtreenail.so").parent, tmp_path)
