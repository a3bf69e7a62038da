# SPDX-License-Identifier: Apache-2.0
"""install, uninstall, wheel and dist of the small tree, and programs built against the result."""

import hashlib
import os
import shutil
import subprocess
import sys
import tarfile
import zipfile

import pytest
from small_tree import SOURCE

PREFIX = "/opt/treenail-test"
PROGRAM = """#include <stdio.h>
#include <treenail/treenail.h>
int main(void) { printf("%d\\n", tn_count()); return 0; }
"""


@pytest.fixture(scope="module")
def installed(built_tree, tmp_path_factory):
    destination = tmp_path_factory.mktemp("destination")
    built_tree.ninja("install", environment={"DESTDIR": str(destination)})
    return destination


def run(command, **more):
    done = subprocess.run([str(word) for word in command], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, universal_newlines=True, check=False, **more)
    assert done.returncode == 0, done.stdout
    return done.stdout


def files_below(root):
    return sorted(str(p.relative_to(root)) for p in root.rglob("*") if not p.is_dir())


def test_links_of_the_library(installed):
    libdir = installed / PREFIX[1:] / "lib"
    assert os.readlink(libdir / "libtreenail.so") == "libtreenail.so.0.1.0"
    assert os.readlink(libdir / "libtreenail.so.0") == "libtreenail.so.0.1.0"


def test_modes(installed):
    libdir = installed / PREFIX[1:] / "lib"
    assert (libdir / "libtreenail.so.0.1.0").stat().st_mode & 0o777 == 0o755
    header = installed / PREFIX[1:] / "include/treenail/treenail.h"
    assert header.stat().st_mode & 0o777 == 0o644


@pytest.mark.parametrize("compiler, name", [("gcc", "p.c"), ("g++", "p.cc")])
def test_program_outside_the_tree_by_pkg_config(installed, tmp_path, compiler, name):
    (tmp_path / name).write_text(PROGRAM)
    libdir = installed / PREFIX[1:] / "lib"
    environment = dict(os.environ, PKG_CONFIG_LIBDIR=str(libdir / "pkgconfig"))
    asked = ["pkg-config", "--define-variable=prefix=%s" % (installed / PREFIX[1:])]
    flags = run(asked + ["--cflags", "--libs", "treenail"], env=environment).split()
    assert run(["pkg-config", "--modversion", "treenail"], env=environment) == "0.1.0\n"
    run([compiler, tmp_path / name, "-o", tmp_path / "p"] + flags)
    out = run([tmp_path / "p"], env=dict(os.environ, LD_LIBRARY_PATH=str(libdir)))
    assert out == "1\n"


def cmake_project(installed, folder, request, prefix=PREFIX):
    (folder / "p.cc").write_text(PROGRAM)
    (folder / "CMakeLists.txt").write_text(
        "cmake_minimum_required(VERSION 3.13)\nproject(p CXX)\n"
        "find_package(Treenail %s REQUIRED)\nadd_executable(p p.cc)\n"
        "target_link_libraries(p Treenail::treenail)\n" % request)
    return subprocess.run(
        ["cmake", "-G", "Ninja", "-S", folder, "-B", folder / "b", "-DCMAKE_PREFIX_PATH=%s"
         % (installed / prefix[1:])], stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
        universal_newlines=True, check=False)


needs_cmake = pytest.mark.skipif(shutil.which("cmake") is None, reason="cmake is not installed")


@needs_cmake
@pytest.mark.parametrize("request_", ["", "0.1", "0.1.0 EXACT"])
def test_program_outside_the_tree_by_find_package(installed, tmp_path, request_):
    done = cmake_project(installed, tmp_path, request_)
    assert done.returncode == 0, done.stdout
    run(["cmake", "--build", tmp_path / "b"])
    assert run([tmp_path / "b/p"]) == "1\n"


@needs_cmake
def test_find_package_on_a_merged_usr(small_tree, tmp_path):
    """/lib leads to /usr/lib, and CMake, which looks beside /bin first, comes through /lib."""
    root = tmp_path / "root"
    small_tree.configure("--prefix=/usr", "--libdir=/usr/lib")
    small_tree.ninja("install", environment={"DESTDIR": str(root)})
    os.symlink("usr/lib", root / "lib")
    done = cmake_project(root, tmp_path, "", prefix="")
    assert done.returncode == 0, done.stdout
    cache = (tmp_path / "b/CMakeCache.txt").read_text()
    assert "Treenail_DIR:PATH=%s/lib/cmake/Treenail" % root in cache
    run(["cmake", "--build", tmp_path / "b"])
    assert run([tmp_path / "b/p"]) == "1\n"


@needs_cmake
@pytest.mark.parametrize("request_", ["0.2", "1.0", "0.1.7"])
def test_find_package_refuses_another_version(installed, tmp_path, request_):
    done = cmake_project(installed, tmp_path, request_)
    assert done.returncode != 0 and "version" in done.stdout


def site(installed):
    found = list((installed / PREFIX[1:]).glob("lib*/python3*/site-packages"))
    assert len(found) == 1
    return found[0]


def test_installed_module_finds_its_library_wherever_it_lies(installed, built_tree):
    """The run path is relative, so it holds below DESTDIR too; nothing of the build is used."""
    interpreter = (built_tree.root / "build/python3").read_text().split("exec ")[1].split()[0]
    out = run([interpreter, "-c", "import treenail, importlib.metadata as m; "
               "print(treenail.count(), m.version('treenail')); "
               "print([l.split()[-1] for l in open('/proc/self/maps') if 'libtreenail' in l][0])"],
              env={"PYTHONPATH": str(site(installed)), "PYTHONDONTWRITEBYTECODE": "1"})
    assert out.splitlines()[0] == "1 0.1.0"
    assert out.splitlines()[1].startswith(str(installed))


def test_installed_program_finds_its_library_wherever_it_lies(installed):
    program = installed / PREFIX[1:] / "bin/tool"
    assert program.stat().st_mode & 0o777 == 0o755
    assert run([program], env={}) == "1\n"
    assert (installed / PREFIX[1:] / "share/man/man1/tool.1").read_text() == ".TH TOOL 1\n"


def ran_script(program, **environment):
    done = subprocess.run([str(program), "a b"], stdout=subprocess.PIPE, check=False, env=dict(
        environment, PYTHONDONTWRITEBYTECODE="1"))
    return done.returncode, done.stdout.decode()


def test_installed_script_finds_its_module_wherever_it_lies(installed, built_tree, tmp_path):
    """Also through a link; the one of the build directory runs, too."""
    program = installed / PREFIX[1:] / "bin/script"
    assert program.stat().st_mode & 0o777 == 0o755
    (tmp_path / "link").symlink_to(program)
    for path in (program, tmp_path / "link", built_tree.root / "build/bin/script"):
        assert ran_script(path, PATH=os.environ["PATH"]) == (3, "1 a b\n")
    for name in ("man/man1/script.1", "bash-completion/completions/script"):
        assert (installed / PREFIX[1:] / "share" / name).exists()


def test_nothing_installed_names_the_build_directory(installed, built_tree):
    needle = str(built_tree.root).encode()
    for name in files_below(installed):
        path = installed / name
        if not path.is_symlink():
            assert needle not in path.read_bytes(), name


def test_uninstall_leaves_foreign_files(built_tree, tmp_path):
    environment = {"DESTDIR": str(tmp_path)}
    built_tree.ninja("install", environment=environment)
    foreign = tmp_path / PREFIX[1:] / "lib/pkgconfig/other.pc"
    foreign.write_text("x")
    built_tree.ninja("uninstall", environment=environment)
    assert files_below(tmp_path) == [str(foreign.relative_to(tmp_path))]


def test_install_twice_is_the_same(built_tree, tmp_path):
    environment = {"DESTDIR": str(tmp_path)}
    built_tree.ninja("install", environment=environment)
    first = files_below(tmp_path)
    built_tree.ninja("install", environment=environment)
    assert files_below(tmp_path) == first


def test_uninstall_counts_what_was_there(built_tree, tmp_path):
    environment = {"DESTDIR": str(tmp_path)}
    assert "removed 0 files" in built_tree.ninja("uninstall", environment=environment).stdout


def test_the_licence_is_installed(installed, built_tree):
    text = (built_tree.root / "LICENSE").read_text()
    found = [name for name in files_below(installed) if name.endswith("/LICENSE")]
    assert [name.split("/")[-2] for name in found] == ["treenail-0.1.0.dist-info", "treenail"]
    assert all((installed / name).read_text() == text for name in found)
    metadata = (installed / found[0]).parent / "METADATA"
    assert "License-File: LICENSE\n" in metadata.read_text()
    built_tree.ninja("wheel")
    wheel, = (built_tree.root / "build/dist").glob("*.whl")
    assert zipfile.ZipFile(wheel).read("treenail-0.1.0.dist-info/LICENSE").decode() == text


def kernel_levels(destination):
    return {p.parent.name for p in destination.rglob("libtreenail-kernels-cpu.so")}


def test_installing_over_an_older_one_leaves_nothing_of_it(small_tree, tmp_path):
    """By another build, of which only the private directory tells, and by the same one."""
    destination = tmp_path / "destination"
    destination.mkdir()
    environment = {"DESTDIR": str(destination)}
    private = destination / "usr/local/lib/treenail-0"
    old = private / "adapters/libtreenail-old.so"
    old.parent.mkdir(parents=True)
    old.write_text("x")
    older = private / "kernels/x86-64-v0/libtreenail-kernels-cpu.so"
    older.parent.mkdir(parents=True)
    older.write_text("x")
    device = private / "devices/libtreenail-cuda.so"
    device.parent.mkdir()
    device.write_text("x")
    foreign = private / "plugins/mine.so"
    foreign.parent.mkdir()
    foreign.write_text("x")
    small_tree.configure()
    assert "removed 3 of an earlier" in small_tree.ninja("install", environment=environment).stdout
    assert not old.exists() and not older.parent.exists() and foreign.exists()
    assert not device.exists()
    small_tree.configure("--kernel-isas=none")
    small_tree.write("VERSION", "0.1.1\n")
    small_tree.ninja("install", environment=environment)
    assert len(kernel_levels(destination)) == 1
    assert not any("0.1.0" in name for name in files_below(destination))
    small_tree.ninja("uninstall", environment=environment)
    assert files_below(destination) == [str(foreign.relative_to(destination))]


def test_the_same_directory_by_two_names_is_not_emptied(small_tree, tmp_path):
    """lib64 is lib here: what the record calls lib64/x is the x just written."""
    environment = {"DESTDIR": str(tmp_path)}
    (tmp_path / "usr/local/lib").mkdir(parents=True)
    os.symlink("lib", tmp_path / "usr/local/lib64")
    small_tree.configure("--libdir=/usr/local/lib64")
    small_tree.ninja("install", environment=environment)
    small_tree.configure("--libdir=/usr/local/lib")
    small_tree.ninja("install", environment=environment)
    assert (tmp_path / "usr/local/lib/libtreenail.so.0.1.0").exists()
    assert kernel_levels(tmp_path)


def test_install_where_nothing_can_be_written_says_so(built_tree, tmp_path):
    (tmp_path / "file").write_text("no directory")
    done = built_tree.ninja("install", environment={"DESTDIR": str(tmp_path / "file")},
                            check=False)
    assert done.returncode != 0 and "install: " in done.stdout
    assert "Traceback" not in done.stdout


def digest(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


def test_wheel_in_a_virtual_environment(built_tree, tmp_path):
    built_tree.ninja("wheel", environment={"SOURCE_DATE_EPOCH": "1700000000"})
    wheel, = (built_tree.root / "build/dist").glob("*.whl")
    first = digest(wheel)
    built_tree.ninja("wheel", environment={"SOURCE_DATE_EPOCH": "1700000000"})
    assert digest(wheel) == first
    interpreter = (built_tree.root / "build/python3").read_text().split("exec ")[1].split()[0]
    run([interpreter, "-m", "venv", tmp_path / "venv"])
    python = tmp_path / "venv/bin/python"
    run([python, "-m", "pip", "install", "--no-index", "--no-deps", "-q", wheel])
    out = run([python, "-c", "import treenail; print(treenail.count())"], cwd=tmp_path,
              env={"PATH": os.environ["PATH"]})
    assert out == "1\n"
    assert ran_script(tmp_path / "venv/bin/script", PATH=os.environ["PATH"]) == (3, "1 a b\n")
    assert "treenail" in run([python, "-m", "pip", "list"])
    run([python, "-m", "pip", "uninstall", "-q", "-y", "treenail"])


def test_wheel_holds_what_install_installs(built_tree, installed):
    """The same tree: libraries, headers, package; without pkg-config, CMake, links and programs."""
    built_tree.ninja("wheel")
    wheel, = (built_tree.root / "build/dist").glob("*.whl")
    names = {os.path.basename(n) for n in zipfile.ZipFile(wheel).namelist()}
    for name in files_below(installed):
        base = os.path.basename(name)
        if "pkgconfig" in name or "cmake" in name or (installed / name).is_symlink() or (
                base in ("tool", "tool.1", "script", "script.1")):
            continue
        if base in ("INSTALLER", "libtreenail.so.0.1.0"):
            continue
        assert base in names, name
    assert "libtreenail.so.0" in names


def test_pep517_backend(small_tree, tmp_path):
    """As pip calls it: a fresh process in the source tree, with the tree's backend path."""
    shutil.copy(SOURCE / "pyproject.toml", small_tree.root)
    program = ("import sys; sys.path.insert(0, 'gen/backend'); import pep517; "
               "print(pep517.build_sdist(sys.argv[1])); "
               "print(pep517.build_wheel(sys.argv[1], "
               "{'configure': '--kernel-isas=none --pch=no'}))")
    out = run(["/usr/bin/python3" if os.path.exists("/usr/bin/python3") else sys.executable,
               "-B", "-c", program, tmp_path], cwd=small_tree.root)
    for name in (line for line in out.splitlines() if line.endswith((".whl", ".tar.gz"))):
        assert (tmp_path / os.path.basename(name)).exists()
    assert list(tmp_path.glob("*.whl")) and list(tmp_path.glob("*.tar.gz"))


def test_dist_is_reproducible_and_builds(built_tree, tmp_path):
    environment = {"SOURCE_DATE_EPOCH": "1700000000"}
    built_tree.ninja("dist", environment=environment)
    path = built_tree.root / "build/dist/treenail-0.1.0.tar.gz"
    first = digest(path)
    os.utime(built_tree.root / "VERSION", (1, 1))
    built_tree.ninja("dist", environment=environment)
    assert digest(path) == first
    with tarfile.open(path) as archive:
        names = archive.getnames()
        assert "treenail-0.1.0/PKG-INFO" in names
        assert not any("/build/" in name for name in names)
        assert {m.uname for m in archive.getmembers()} == {"root"}
        archive.extractall(tmp_path)
    run([sys.executable, "configure.py", "--pch=no"], cwd=tmp_path / "treenail-0.1.0")
    run(["ninja", "-C", tmp_path / "treenail-0.1.0/build"])
