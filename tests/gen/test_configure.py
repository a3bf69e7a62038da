# SPDX-License-Identifier: Apache-2.0
"""configure.py as a user meets it: what bad input gets, the summary, the stored record."""

import json
import os
import platform
import shutil
import time

import pytest
from gen.toolchain import matching_cc

BAD = [
    (["--prefx=/usr"], {}, "unknown option '--prefx'; did you mean --prefix?"),
    (["--isa-baseline=x86-64-v9"], {}, "'x86-64-v9' is not an instruction set level"),
    (["--kernel-isas=avx2"], {}, "'avx2' is not an instruction set level"),
    (["CXX=no-such-compiler"], {}, "the C++ compiler 'no-such-compiler' was not found; "),
    ([], {"CXX": "false"}, "the compiler 'false' cannot compile a small program"),
    (["CXXFLAGS=--no-such-flag"], {}, "cannot compile a small program: "),
    (["CC=false"], {}, "the compiler 'false' cannot compile a small program"),
    ([], {"CXX": "false"}, "program: it ended with status 1 and no message"),
    (["CXX=/etc/passwd"], {}, "the C++ compiler '/etc/passwd' is not a program that can be run"),
    (["CC=not-there"], {}, "the C compiler 'not-there' was not found; "),
    (["CC=true"], {}, "'true' is neither GCC nor Clang"),
    (["LDFLAGS=-lnosuch"], {}, "cannot link a small program: "),
    (["LDFLAGS=-lnosuch"], {}, "cannot find -lnosuch"),
    (["CXXFLAGS=-Ofast"], {}, "CXXFLAGS holds -Ofast: "),
    (["CFLAGS=-ffinite-math-only"], {}, "CFLAGS holds -ffinite-math-only: "),
    (["CPPFLAGS=-ffast-math"], {}, "CPPFLAGS holds -ffast-math: "),
    (["LDFLAGS=-Ofast"], {}, "LDFLAGS holds -Ofast: "),
    (["CXX=g++ -ffast-math"], {}, "CXX holds -ffast-math: "),
    (["CXXFLAGS='"], {}, "cannot split"),
    (["--python=/no/python3"], {}, "--python=/no/python3: there is no such program"),
    (["--python=true"], {}, "it does not run as a Python interpreter"),
    (["--host=sparc64-linux-gnu"], {}, "a cross compiler is needed"),
    (["--blas=openblas"], {}, "no part that uses blas"),
    (["--regenerate"], {}, "configure again"),
    (["PKG_CONFIG=no-pkg-config"], {}, "eigen3 is needed"),
    (["PKG_CONFIG_LIBDIR=/nowhere"], {}, "eigen3 is needed (vector math inside kernel files)"),
]
if platform.machine() == "x86_64":
    BAD += [
        (["CXXFLAGS=-mavx2"], {}, "CXXFLAGS give AVX, AVX2 beyond x86-64-v2; "),
        (["CXX=g++ -mavx2"], {}, "CXX give AVX, AVX2 beyond x86-64-v2; "),
        (["CFLAGS=-march=x86-64-v3"], {}, "CFLAGS and CXXFLAGS disagree about the instruction set"),
    ]


@pytest.mark.parametrize("arguments, environment, message", BAD)
def test_bad_input_gets_a_sentence(small_tree, arguments, environment, message):
    done = small_tree.configure(*arguments, environment=environment, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("configure.py: ") and message in done.stderr
    assert "Traceback" not in done.stderr
    assert not (small_tree.root / "build" / "build.ninja").exists()


def test_licence_that_comes_by_a_response_file(small_tree, tmp_path):
    (tmp_path / "flags").write_text("-Ofast\n")
    done = small_tree.configure("CXXFLAGS=@%s/flags" % tmp_path, check=False)
    assert done.returncode == 1
    assert "the compiler defines __FAST_MATH__ with CXX, CPPFLAGS and CXXFLAGS" in done.stderr


@pytest.mark.parametrize("cxx, cc", [
    ("g++ -m64", "gcc -m64"), ("ccache g++ -m64", "ccache gcc -m64"),
    ("clang++ --rtlib=libgcc", "clang --rtlib=libgcc"),
    ("/opt/bin/x86_64-linux-gnu-g++-12 -std=c++20", "/opt/bin/x86_64-linux-gnu-gcc-12"),
    ("env LC_ALL=C clang++-14", "env LC_ALL=C clang-14"), ("c++", "cc"),
    ("clang --driver-mode=g++", "gcc"), ("icpx", "gcc")])
def test_c_compiler_beside_the_other_one(cxx, cc):
    assert " ".join(matching_cc(cxx.split(), "")) == cc


@pytest.mark.skipif(platform.machine() != "x86_64", reason="the flags are those of x86-64")
def test_compiler_with_words_after_it(small_tree):
    small_tree.configure("CXX=g++ -m64 -march=x86-64-v2")
    text = (small_tree.root / "build/build.ninja").read_text()
    assert "gcc -m64 -march=x86-64-v2 $flags" in text
    assert "kernels/x86-64-v2/" in text and "kernels/x86-64/" not in text


def test_missing_header_names_the_package(small_tree, tmp_path):
    (tmp_path / "eigen3.pc").write_text(
        "Name: eigen3\nDescription: x\nVersion: 3.4.0\nCflags: -I/nowhere\nLibs:\n")
    done = small_tree.configure("PKG_CONFIG_LIBDIR=%s" % tmp_path, check=False)
    assert done.returncode == 1
    assert "eigen3 is needed (vector math inside kernel files): <Eigen/Core> is not there; " in (
        done.stderr)
    assert "eigen3" in done.stderr.split("; ")[-1]


def test_missing_python_header_names_the_package(small_tree, tmp_path):
    """An interpreter without its development package: the fake says where headers would be."""
    fake = tmp_path / "python3"
    fake.write_text("#!/bin/sh\n/usr/bin/python3 \"$@\" | sed 's,\"/usr/include/python,"
                    "\"/nowhere/python,g'\n")
    os.chmod(fake, 0o755)
    done = small_tree.configure("--python=%s" % fake, check=False)
    assert done.returncode == 1
    assert "Python.h of %s" % fake in done.stderr and "was not found in /nowhere" in done.stderr


@pytest.mark.parametrize("script, message", [
    (None, "ninja was not found; "), ("echo 1.8.2", "1.10 or later is needed")])
def test_ninja_that_is_missing_or_too_old(small_tree, tmp_path, script, message):
    for name in ("g++", "gcc", "pkg-config", "env", "sh"):
        os.symlink(shutil.which(name), tmp_path / name)
    if script:
        (tmp_path / "ninja").write_text("#!/bin/sh\n%s\n" % script)
        os.chmod(tmp_path / "ninja", 0o755)
    done = small_tree.configure(environment={"PATH": str(tmp_path)}, check=False)
    assert done.returncode == 1 and message in done.stderr


def test_too_old_a_library_is_refused(small_tree, tmp_path):
    (tmp_path / "eigen3.pc").write_text(
        "Name: eigen3\nDescription: x\nVersion: 3.2.9\nCflags:\nLibs:\n")
    done = small_tree.configure("PKG_CONFIG_LIBDIR=%s" % tmp_path, check=False)
    assert done.returncode == 1
    assert "version 3.2.9 is there, 3.3 or later is needed" in done.stderr


EIGEN = "Name: eigen3\nDescription: x\nVersion: 3.4.0\nCflags: -I/usr/include/eigen3\nLibs:\n"


def add_feature(tree):
    tree.write("kernels/adapters/hdf5/hdf5.cc",
               'extern "C" const void* treenail_adapter(void) { return nullptr; }\n')
    text = (tree.root / "kernels/targets.py").read_text()
    tree.write("kernels/targets.py", text + '''
Component(name="adapter_hdf5", sources=["kernels/adapters/hdf5/*.cc"], external=["hdf5"])
Adapter(name="hdf5", component="adapter_hdf5", feature="hdf5", export="treenail_adapter")
''')


@pytest.fixture
def without_hdf5(small_tree, tmp_path):
    """The small tree with a feature whose library cannot be found on any machine."""
    add_feature(small_tree)
    folder = tmp_path / "pc"
    folder.mkdir()
    for name, version in (("eigen3", "3.4.0"), ("pybind11", "2.10")):
        (folder / (name + ".pc")).write_text(
            "Name: %s\nDescription: x\nVersion: %s\nCflags: -I/usr/include/eigen3\nLibs:\n"
            % (name, version))
    (folder / "hdf5.pc").write_text(
        "Name: hdf5\nDescription: x\nVersion: 1.10\nCflags: -I%s\nLibs: -lno_such_hdf5\n"
        % folder)
    (folder / "hdf5.h").write_text("")
    return small_tree, "PKG_CONFIG_LIBDIR=%s" % folder


def test_feature_yes_and_missing_names_the_package(without_hdf5):
    tree, variable = without_hdf5
    for arguments, shown in ((["--with-hdf5=yes"], "--with-hdf5=yes, but hdf5: "),
                             (["--auto-features=yes"], "--auto-features=yes, but hdf5: ")):
        done = tree.configure(variable, *arguments, check=False)
        assert done.returncode == 1 and shown in done.stderr
        assert "a program does not link with -lno_such_hdf5" in done.stderr
        assert "hdf5" in done.stderr.split(";")[-1]


def test_feature_auto_and_missing_is_left_out_with_the_reason(without_hdf5):
    tree, variable = without_hdf5
    out = tree.configure(variable).stdout
    left_out = out.split("Left out\n")[1]
    assert "hdf5" in left_out and "does not link with" in left_out


def test_feature_no_is_left_out_with_the_option(without_hdf5):
    tree, variable = without_hdf5
    assert "not wanted (--with-hdf5=no)" in tree.configure(variable, "--with-hdf5=no").stdout
    assert "not wanted (--auto-features=no)" in tree.configure(
        variable, "--auto-features=no").stdout


def test_help_is_a_page(small_tree):
    done = small_tree.configure("--help")
    assert max(map(len, done.stdout.splitlines())) <= 84
    for word in ("Build", "Features", "Directories", "Examples", "--isa-baseline", "--prefix"):
        assert word in done.stdout
    assert "--with-hdf5" not in done.stdout  # this tree has no such part
    add_feature(small_tree)
    assert "--with-hdf5" in small_tree.configure("--help").stdout


def test_summary_says_what_and_why(small_tree):
    out = small_tree.configure("--prefix=/opt/t").stdout
    assert "(the distribution's)" in out or "first in PATH" in out
    assert "export PYTHONPATH=/opt/t/lib" in out
    assert "baseline" in out and "Found" in out and "ninja -C" in out


def test_log_holds_every_command(small_tree):
    small_tree.configure()
    text = (small_tree.root / "build/gen/configure.log").read_text()
    assert "-dM -E" in text and "pkg-config" in text and "-> 0" in text


def test_options_are_stored_for_later(small_tree):
    small_tree.configure("--prefix=/opt/t", environment={"CXXFLAGS": "-DKEPT=1"})
    stored = json.loads((small_tree.root / "build/gen/configuration.json").read_text())
    assert stored["environment"]["CXXFLAGS"] == "-DKEPT=1"
    assert "-DKEPT=1" in (small_tree.root / "build/build.ninja").read_text()


def test_called_from_another_directory_it_builds_there(small_tree, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    small_tree.configure(cwd=elsewhere)
    assert (elsewhere / "build.ninja").exists()
    assert not (small_tree.root / "build").exists()


def test_source_tree_is_no_build_directory(small_tree):
    done = small_tree.configure("--build-dir=.", check=False)
    assert done.returncode == 1 and "must not be the source tree" in done.stderr


def test_second_run_is_remembered_and_gives_the_same_bytes(small_tree):
    small_tree.configure()
    first = (small_tree.root / "build/build.ninja").read_bytes()
    begin = time.monotonic()
    small_tree.configure()
    seconds = time.monotonic() - begin
    assert (small_tree.root / "build/build.ninja").read_bytes() == first
    assert "[remembered]" in (small_tree.root / "build/gen/configure.log").read_text()
    assert seconds < 20  # the aim is 2 s on a quiet machine; bench/ measures it


def test_failed_probes_are_asked_again(small_tree, tmp_path):
    """A package installed after a failed run must be seen."""
    folder = tmp_path / "pc"
    folder.mkdir()
    variable = "PKG_CONFIG_LIBDIR=%s" % folder
    assert small_tree.configure(variable, check=False).returncode == 1
    (folder / "eigen3.pc").write_text(
        EIGEN)
    small_tree.configure(variable)


def test_generated_files_hold_no_build_path(small_tree):
    small_tree.configure()
    text = (small_tree.root / "build/build.ninja").read_text()
    assert str(small_tree.root) not in text


def test_same_bytes_in_two_directories(small_tree, tmp_path):
    import shutil
    other = tmp_path / "second"
    shutil.copytree(small_tree.root, other)
    texts = []
    for root in (small_tree.root, other):
        small_tree.root = root
        small_tree.configure()
        texts.append((root / "build/build.ninja").read_bytes())
    assert texts[0] == texts[1]


def test_version(small_tree):
    assert small_tree.configure("--version").stdout == "treenail 0.1.0\n"


def test_interpreter_that_is_too_old_is_refused(small_tree, tmp_path):
    fake = tmp_path / "python3.8"
    fake.write_text('#!/bin/sh\necho \'{"version": [3, 8, 1], "implementation": "cpython", '
                    '"free_threaded": false}\'\n')
    os.chmod(fake, 0o755)
    done = small_tree.configure("--python=%s" % fake, check=False)
    assert "it is 3.8.1; 3.9 or later is needed" in done.stderr
    fake.write_text('#!/bin/sh\necho \'{"version": [3, 13, 1], "implementation": "cpython", '
                    '"free_threaded": true}\'\n')
    done = small_tree.configure("--python=%s" % fake, "--no-cache", check=False)
    assert "(free-threaded); the module needs CPython with the global" in done.stderr
