# SPDX-License-Identifier: Apache-2.0
"""The built product itself: what it exports, what it needs, what is installed and used outside.

`ninja test` sets TREENAIL_BUILD_DIR. Nothing here builds; the product stands already.
"""

import json
import os
import re
import shutil
import sys

import pytest
from product import BUILD, needs_build, placed, run
from small_tree import SOURCE

pytestmark = needs_build
VERSION = (SOURCE / "VERSION").read_text().strip()
SYSTEM = {"libc.so.6", "libm.so.6", "libstdc++.so.6", "libgcc_s.so.1", "libpthread.so.0",
          "libdl.so.2", "ld-linux-x86-64.so.2", "ld-linux-aarch64.so.1"}
PRIVATE = re.compile(r"_ZN8treenail|_ZNK8treenail|_ZT[ISV]N8treenail|_ZT[HW]N8treenail|"
                     r"_ZGVN8treenail")


def needed(path):
    return set(re.findall(r"\(NEEDED\).*\[(.*)\]", run("readelf", "-dW", path)))


def exported(path):
    """(name, version) of each symbol the library defines for others."""
    found = []
    for line in run("nm", "-D", "--defined-only", "--with-symbol-versions", path).splitlines():
        words = line.split()
        name, _, version = words[-1].partition("@@")
        if words[-2] != "A":  # the names of the version nodes themselves
            found.append((name, version))
    return found


def libraries(pattern):
    found = sorted((BUILD / "lib").glob(pattern))
    assert found, "the build has no lib/" + pattern
    return found


def test_core_needs_the_system_alone():
    assert needed(BUILD / "lib" / ("libtreenail.so." + VERSION)) <= SYSTEM


def test_core_exports_its_two_nodes_and_nothing_else():
    symbols = exported(BUILD / "lib" / ("libtreenail.so." + VERSION))
    assert len(symbols) > 100
    for name, version in symbols:
        if name.startswith("tn_"):
            assert version == "TREENAIL_1", name
        else:
            assert PRIVATE.match(name), name
            assert version == "TREENAIL_PRIVATE_" + VERSION, name


def test_public_header_and_public_node_agree():
    """Every tn_ function of the installed headers is exported, and no other."""
    folder = SOURCE / "framework/capi/include/treenail"
    declared = set()
    for header in folder.glob("*.h"):
        text = re.sub(r"/\*.*?\*/|//[^\n]*", "", header.read_text(), flags=re.DOTALL)
        declared |= set(re.findall(r"\bTN_API\b[^;]*?\b(tn_\w+)\s*\(", text))
    public = {name for name, _ in exported(BUILD / "lib" / ("libtreenail.so." + VERSION))
              if name.startswith("tn_")}
    assert public == declared


def test_kernel_libraries_export_one_symbol_and_need_the_core():
    for path in libraries("treenail-*/kernels/*/*.so"):
        assert [name for name, _ in exported(path)] == ["treenail_kernel_library"], path
        assert needed(path) <= SYSTEM | {"libtreenail.so." + VERSION.split(".")[0]}, path


def test_kernel_libraries_run_nothing_when_they_are_opened():
    """No static initialiser: an instruction of the level would run before the CPU was asked."""
    for path in libraries("treenail-*/kernels/*/*.so"):
        assert "_GLOBAL__sub_I" not in run("nm", path), path


def test_adapters_export_one_symbol():
    for path in sorted((BUILD / "lib").glob("treenail-*/adapters/*.so")):
        assert [name for name, _ in exported(path)] == ["treenail_adapter"], path


def test_no_foreign_symbol_leaves_any_library():
    for path in libraries("**/*.so"):
        for name, _ in exported(path):
            assert not re.search(r"6google8protobuf|4absl|5Eigen", name), (path, name)


def test_the_module_exports_its_init_function_alone():
    for path in (BUILD / "python/treenail").glob("_treenail*.so"):
        assert [name for name, _ in exported(path)] == ["PyInit__treenail"]


def test_libraries_say_which_instruction_sets_they_need():
    """glibc reads this note and refuses, where the CPU lacks a level, instead of a SIGILL."""
    text = (BUILD / "gen/build_info.h").read_text()
    if not re.search(r'kMachine\[\] = "x86_64"', text):
        pytest.skip("the note is x86-64's")
    baseline = re.search(r'kIsaBaseline\[\] = "(.*)"', text).group(1)
    marked = [(p, p.parent.name) for p in libraries("treenail-*/kernels/*/*.so")]
    marked.append((BUILD / "lib" / ("libtreenail.so." + VERSION), baseline))
    above = [level for level in ("x86-64-v2", "x86-64-v3", "x86-64-v4")]
    for path, level in marked:
        found = re.search(r"x86 ISA needed: (.*)", run("readelf", "-nW", path))
        needs = set(found.group(1).split(", ")) if found else set()
        assert level == "x86-64" or level in needs, (path, needs)
        assert not needs & set(above[above.index(level) + 1 if level in above else 0:]), path


def test_one_directory_per_level_of_build_info():
    text = (BUILD / "gen/build_info.h").read_text()
    levels = re.search(r'kKernelLevels\[\] = "(.*)"', text).group(1).split()
    assert sorted(p.parent.name for p in libraries("treenail-*/kernels/*/*.so")) == sorted(levels)


def test_size_of_library_and_module(installed, tmp_path):
    """As packages hold it: dh_strip and rpm's brp-strip take the symbols away, too. The code of
    GPUs is a package of its own, and as large as there are kinds of GPUs."""
    total = 0
    for path in installed.rglob("*"):
        if path.is_file() and not path.is_symlink() and path.parent.name != "devices":
            if path.read_bytes()[:4] == b"\x7fELF":
                run("strip", "--strip-unneeded", "-o", tmp_path / "stripped", path)
                path = tmp_path / "stripped"
            total += path.stat().st_size
    mode = re.search(r'kBuildType\[\] = "(.*)"', (BUILD / "gen/build_info.h").read_text())
    if mode.group(1) == "release":
        assert total < 22 * 1000 * 1000
    else:
        assert total > 0


def test_nothing_installed_names_the_build(installed):
    for path in installed.rglob("*"):
        if path.is_file() and not path.is_symlink():
            assert str(BUILD).encode() not in path.read_bytes(), path


PROGRAM = """#include <stdio.h>
#include <treenail/treenail.h>
int main(void) { puts(tn_version()); return 0; }
"""


@pytest.mark.parametrize("name, standard", [("p.c", "-std=c11"), ("p.cc", "-std=c++17")])
def test_program_outside_the_tree_by_pkg_config(installed, tmp_path, name, standard):
    (tmp_path / name).write_text(PROGRAM)
    pc = placed(installed, "/pkgconfig/treenail.pc")
    prefix = json.loads((BUILD / "gen/install.json").read_text())["prefix"]
    flags = run("pkg-config", "--define-variable=prefix=%s%s" % (installed, prefix), "--cflags",
                "--libs", "treenail", env=dict(os.environ, PKG_CONFIG_LIBDIR=str(pc.parent)))
    compiler = "gcc" if name.endswith(".c") else "g++"
    run(compiler, standard, "-Wall", "-Wextra", "-Werror", "-pedantic", tmp_path / name, "-o",
        tmp_path / "p", *flags.split())
    out = run(tmp_path / "p", env=dict(os.environ, LD_LIBRARY_PATH=str(pc.parents[1])))
    assert out.strip() == VERSION


@pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")
def test_program_outside_the_tree_by_find_package(installed, tmp_path):
    (tmp_path / "p.cc").write_text(PROGRAM)
    (tmp_path / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(p CXX)\n"
        "find_package(Treenail REQUIRED)\nadd_executable(p p.cc)\n"
        "target_link_libraries(p Treenail::treenail)\n")
    folder = placed(installed, "/treenail-config.cmake").parent
    run("cmake", "-G", "Ninja", "-S", tmp_path, "-B", tmp_path / "b", "-DTreenail_DIR=%s" % folder)
    run("cmake", "--build", tmp_path / "b")
    assert run(tmp_path / "b/p").strip() == VERSION


PUBLIC = sorted(str(p.relative_to(SOURCE / "framework/capi/include/treenail")) for p in
                (SOURCE / "framework/capi/include/treenail").rglob("*.h*"))


@pytest.mark.parametrize("header, language, standard", [
    (header, language, standard) for header in PUBLIC
    for language, standard in (("c", "-std=c11"), ("c++", "-std=c++17"))
    if language == "c++" or not header.endswith(".hpp")])
def test_public_headers_stand_alone(header, language, standard):
    include = SOURCE / "framework/capi/include"
    run("gcc" if language == "c" else "g++", "-x", language, standard, "-Wall", "-Wextra",
        "-Werror", "-pedantic", "-fsyntax-only", "-I", include, include / "treenail" / header)


def test_wheel_in_a_virtual_environment(tmp_path):
    """NumPy is taken from the system: nothing is fetched."""
    run(sys.executable, "-B", SOURCE / "gen/tools/wheel.py", "--manifest", "gen/wheel.json",
        "--into", tmp_path, cwd=BUILD)
    wheel, = tmp_path.glob("treenail-*.whl")
    baseline = re.search(r'kIsaBaseline\[\] = "(.*)"', (BUILD / "gen/build_info.h").read_text())
    assert "-0_%s-" % re.sub("[-.]", "_", baseline.group(1)) in wheel.name
    interpreter = (BUILD / "python3").read_text().split("exec ")[1].split()[0]
    run(interpreter, "-m", "venv", "--system-site-packages", tmp_path / "venv")
    python = tmp_path / "venv/bin/python"
    environment = {"PATH": os.environ["PATH"]}
    run(python, "-m", "pip", "install", "--no-index", "--no-deps", "-q", wheel, env=environment)
    out = run(python, "-c", "import treenail; print(treenail.__version__, treenail.__file__)",
              cwd=tmp_path, env=environment)
    assert out.split()[0] == VERSION and out.split()[1].startswith(str(tmp_path))


def test_installed_module_runs_without_the_build(installed, tmp_path):
    interpreter = (BUILD / "python3").read_text().split("exec ")[1].split()[0]
    package = placed(installed, "/treenail/__init__.py").parents[1]
    libdir = placed(installed, "libtreenail.so").parent
    out = run(interpreter, "-c", "import treenail; print(treenail.__version__); print("
              "{l.split()[-1] for l in open('/proc/self/maps') if 'treenail' in l})",
              cwd=tmp_path, env={"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1",
                                 "LD_LIBRARY_PATH": str(libdir)})
    assert out.splitlines()[0] == VERSION
    assert str(BUILD) not in out


def test_installed_program_runs_without_the_build(installed):
    """Below DESTDIR; kernels and adapters it finds by itself."""
    libdir = placed(installed, "libtreenail.so").parent
    told = json.loads(run(placed(installed, "/bin/treenail-info"), "--json",
                          env={"LD_LIBRARY_PATH": str(libdir)}))
    assert told["version"] == VERSION and told["installed_kernel_levels"] == told["kernel_levels"]
    assert str(BUILD) not in json.dumps(told)
    assert placed(installed, "/man1/treenail-info.1").read_text().startswith(".\\\"")


def test_installed_benchmark_runs_without_the_build(installed, tmp_path):
    package = placed(installed, "/treenail/__init__.py").parents[1]
    libdir = placed(installed, "libtreenail.so").parent
    run(placed(installed, "/bin/treenail-bench"), "--model=mlp", "--batch-size=8",
        "--num-batches=3", "--report", tmp_path / "report.json", cwd=tmp_path,
        env={"PYTHONPATH": str(package), "PYTHONDONTWRITEBYTECODE": "1",
             "LD_LIBRARY_PATH": str(libdir)})
    told = json.loads((tmp_path / "report.json").read_text())
    assert told["batches_measured"] == 3 and told["environment"]["version"] == VERSION
    assert told["environment"]["module"] == str(package / "treenail")
