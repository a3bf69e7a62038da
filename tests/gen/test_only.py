# SPDX-License-Identifier: Apache-2.0
"""--only=cuda: the plugin alone, for a libtreenail that is installed; and what both must share."""

import json
import os
import re
import subprocess

import pytest
from gen import installed_library, private_abi
from gen.errors import ConfigureError
from gen.model import load
from gen.options import parse
from small_tree import SOURCE
from test_cuda import configure, gpu_tree, toolkit  # noqa: F401  (the last two are fixtures)

PLUGIN = "lib/treenail-0/devices/libtreenail-cuda.so"
LIBRARY = '''#include <cuda.h>
#include "build_info.h"
#include "framework/base/registry.h"
struct DeviceLibrary { unsigned abi; const char* build_id; const char* kind; };
extern "C" const DeviceLibrary* treenail_device_library() {
  static const DeviceLibrary library = {1, treenail::build_info::kBuildId, "GPU"};
  return treenail::count_things() > 0 ? &library : nullptr;
}
'''


@pytest.fixture
def installed_tree(gpu_tree, tmp_path):  # noqa: F811
    """The tree, and below `prefix` what an installation of it has that a plugin is linked with."""
    gpu_tree.write("kernels/cuda/driver/library.cc", LIBRARY)
    gpu_tree.edit("framework/base/base.cc", "kVersion", "kBuildId")
    gpu_tree.prefix = tmp_path / "prefix"
    gpu_tree.configure("--without-cuda", "--prefix=%s" % gpu_tree.prefix)
    gpu_tree.ninja("lib/libtreenail.so", "lib/libtreenail.so.0", "gen/build_info.h")
    (gpu_tree.prefix / "lib").mkdir(parents=True)
    subprocess.run("cp -a lib/libtreenail.so* %s/lib" % gpu_tree.prefix, shell=True, check=True,
                   cwd=gpu_tree.root / "build")
    return gpu_tree


def only(tree, toolkit, *arguments, **more):  # noqa: F811
    """Configures in build-only."""
    return configure(tree, toolkit, "--only=cuda", "--build-dir=build-only", *arguments, **more)


def refused(tree, toolkit, *arguments, **more):  # noqa: F811
    """The sentence, which is one."""
    done = only(tree, toolkit, *arguments, check=False, **more)
    assert done.returncode == 1 and done.stderr.count("\n") == 1, done.stderr
    return done.stderr


def build_of(tree, folder="build"):
    text = (tree.root / folder / "gen/build_info.h").read_text()
    return re.search(r"treenail-private-abi-([^\"]+)", text).group(1)


# ---- the plugin alone ----------------------------------------------------------------------------


def test_the_plugin_is_built_for_what_is_installed(installed_tree, toolkit):  # noqa: F811
    tree = installed_tree
    said = only(tree, toolkit, "--prefix=%s" % tree.prefix).stdout
    assert "%s/lib/libtreenail.so, build %s (the configured prefix)" % (
        tree.prefix, build_of(tree)) in said
    assert "Left out" not in said and "Python" not in said
    assert str(tree.root) not in tree.ninja(build="build-only").stdout.replace(
        str(tree.root / "build-only"), "")
    made = tree.root / "build-only" / PLUGIN
    needed = subprocess.run(["readelf", "-d", str(made)], stdout=subprocess.PIPE, check=True,
                            universal_newlines=True).stdout
    assert "[libtreenail.so.0]" in needed and "PATH" not in needed and "libcuda" not in needed
    assert build_of(tree, "build-only") == build_of(tree) == private_abi.of_library(str(made))
    assert "no work to do" in tree.ninja(build="build-only").stdout
    assert "No missing dependencies" in tree.ninja("-t", "missingdeps", build="build-only").stdout
    built = {name for _, _, names in os.walk(tree.root / "build-only") for name in names
             if re.search(r"\.so(\.|$)", name)}
    assert built == {"libtreenail-cuda.so"}


def test_it_opens_with_the_installed_library(installed_tree, toolkit):  # noqa: F811
    tree = installed_tree
    only(tree, toolkit, "--prefix=%s" % tree.prefix)
    assert "%s opens: devices of kind GPU, build %s" % (PLUGIN, build_of(tree)) in tree.ninja(
        "test", build="build-only").stdout
    tree.edit("kernels/cuda/driver/library.cc", "treenail::count_things()", "absent()")
    tree.edit("kernels/cuda/driver/library.cc", "struct Dev", "int absent();\nstruct Dev")
    assert "absent()" in tree.ninja("test", build="build-only", check=False).stdout


def test_only_the_plugin_is_installed(installed_tree, toolkit, tmp_path):  # noqa: F811
    tree = installed_tree
    only(tree, toolkit, "--prefix=%s" % tree.prefix)
    root = tmp_path / "root"
    tree.ninja("install", build="build-only", environment={"DESTDIR": str(root)})
    found = [os.path.join(folder, name) for folder, _, names in os.walk(root) for name in names]
    assert found == ["%s%s/%s" % (root, tree.prefix, PLUGIN)]
    parts = {e["package"] for e in json.loads(
        (tree.root / "build-only/gen/install.json").read_text())["entries"]}
    assert parts == {"cuda"}
    targets = (tree.root / "build-only/gen/help.txt").read_text()
    assert "  all " in targets and "  test " in targets and " deb " not in targets


def test_without_a_prefix_pkg_config_says_where(installed_tree, toolkit, tmp_path):  # noqa: F811
    """And the plugin goes beside the library, the only place where it is looked for."""
    tree = installed_tree
    (tmp_path / "pc").mkdir()
    (tmp_path / "pc/treenail.pc").write_text(
        "libdir=%s/lib\nName: t\nDescription: t\nVersion: 0.1.0\n" % tree.prefix)
    environment = {"PKG_CONFIG_PATH": str(tmp_path / "pc")}
    assert "(pkg-config treenail)" in only(tree, toolkit, environment=environment).stdout
    manifest = json.loads((tree.root / "build-only/gen/install.json").read_text())
    assert [e["to"] for e in manifest["entries"]] == ["%s/%s" % (tree.prefix, PLUGIN)]
    only(tree, toolkit, "--prefix=/usr", "--libdir=/usr/lib/nowhere", environment=environment)
    manifest = json.loads((tree.root / "build-only/gen/install.json").read_text())
    assert manifest["entries"][0]["to"] == "/usr/lib/nowhere/treenail-0/devices/" + (
        "libtreenail-cuda.so")


@pytest.mark.parametrize("named", [True, False])
def test_a_library_that_is_only_unpacked(installed_tree, toolkit, tmp_path, named):  # noqa: F811
    """Below a sysroot, as pkg-config calls it; what is built is for a system without it."""
    tree = installed_tree
    libdir = tmp_path / "sysroot/usr/lib/there"
    libdir.mkdir(parents=True)
    subprocess.run("cp -a %s/lib/* %s" % (tree.prefix, libdir), shell=True, check=True)
    (tmp_path / "treenail.pc").write_text(
        "libdir=/usr/lib/there\nName: t\nDescription: t\nVersion: 0.1.0\n")
    arguments = ["--prefix=/usr", "--libdir=/usr/lib/there"] if named else []
    only(tree, toolkit, *arguments, environment={
        "PKG_CONFIG_SYSROOT_DIR": str(tmp_path / "sysroot"), "PKG_CONFIG_PATH": str(tmp_path)})
    manifest = json.loads((tree.root / "build-only/gen/install.json").read_text())
    assert manifest["entries"][0]["to"] == (
        "/usr/lib/there/treenail-0/devices/libtreenail-cuda.so")
    assert str(libdir / "libtreenail.so") in (tree.root / "build-only/build.ninja").read_text()


# ---- what is refused -----------------------------------------------------------------------------


def test_a_library_of_another_build_is_refused(installed_tree, toolkit):  # noqa: F811
    """By configure; and by the build, where it came afterwards."""
    tree, old = installed_tree, build_of(installed_tree)
    only(tree, toolkit, "--prefix=%s" % tree.prefix)
    tree.edit("framework/base/registry.h", "int count = 0;", "long count = 0;")
    said = tree.ninja(build="build-only", check=False).stdout
    sentence = "%s/lib/libtreenail.so is of build %s, but this source tree makes plugins for " % (
        tree.prefix, old)
    assert "private ABI: " + sentence in said and not (tree.root / "build-only" / PLUGIN).exists()
    assert "--only: " + sentence in refused(tree, toolkit, "--prefix=%s" % tree.prefix)


def test_no_library(installed_tree, toolkit, tmp_path):  # noqa: F811
    said = refused(installed_tree, toolkit, "--prefix=%s" % tmp_path)
    assert ("--only=cuda needs an installed libtreenail, but there is no libtreenail.so in "
            "%s/lib" % tmp_path) in said
    assert "--prefix=DIR" in said


def test_a_file_that_is_no_libtreenail(installed_tree, toolkit):  # noqa: F811
    tree = installed_tree
    path = tree.prefix / "lib/libtreenail.so"
    path.unlink()
    path.write_bytes(b"\0nothing\0")
    assert "libtreenail.so says of no build that it is" in refused(
        tree, toolkit, "--prefix=%s" % tree.prefix)


def test_no_toolkit(installed_tree, toolkit):  # noqa: F811
    (toolkit / "bin/nvcc").unlink()
    said = refused(installed_tree, toolkit, "--prefix=%s" % installed_tree.prefix)
    assert said.startswith("configure.py: --only=cuda, but cuda: CUDA_HOME=")


@pytest.mark.parametrize("arguments, message", [
    (["--only=cuda", "--without-cuda"], "--only=cuda and --with-cuda=no: nothing is left to build"),
    (["--only=gpu"], "--only=gpu: it must be one of all, cuda"),
    (["--only"], "--only needs a value: --only=PART")])
def test_options_that_leave_nothing(arguments, message):
    with pytest.raises(ConfigureError) as error:
        parse(arguments, {})
    assert message in str(error.value)


def test_all_is_what_is_built_without_the_option():
    assert parse([], {}).only == parse(["--only=all"], {}).only == ""
    assert parse(["--only=cuda"], {}).feature("cuda") == "yes"
    assert parse(["--only=cuda", "--auto-features=yes"], {}).feature("cuda") == "yes"


# ---- what both must share ------------------------------------------------------------------------


def test_every_header_that_a_library_of_ours_takes_from_libtreenail_is_in_the_identity():
    """What sources of the plugin, of kernel libraries and of adapters include of the tree, directly
    or through a header: it is of theirs alone, or it is hashed."""
    model = load(str(SOURCE))
    hashed = set(private_abi.shared_headers(model))
    owners = {path: name for name, paths in model.headers.items() for path in paths}
    own = {"cpu_kernels", "cuda_host", "cuda_entries", "cuda_kernels", "adapter_openmp",
           "cuda_sim_language", "adapter_mpi"}
    todo = [path for name, paths in model.sources.items() for path in paths
            if name in ("cpu_kernels", "cuda_plugin") or name.startswith("adapter_")]
    seen = set()
    while todo:
        with open(SOURCE / todo.pop(), encoding="utf-8") as stream:
            for name in re.findall(r'#include "([^"]+)"', stream.read()):
                if name in owners and name not in seen:
                    seen.add(name)
                    todo.append(name)
    assert len(seen) > 100 and "framework/device/device.h" in hashed
    assert "kernels/host/arrays/copy_plan.h" in seen & hashed
    lost = sorted(path for path in seen - hashed if owners[path] not in own
                  and not owners[path].startswith("adapter_"))
    assert lost == []
    assert not [path for path in hashed if path.startswith(("tests/", "kernels/cuda/"))]


def test_the_identity_follows_from_headers_alone(gpu_tree):  # noqa: F811
    before = private_abi.of_tree(load(str(gpu_tree.root)))
    gpu_tree.edit("framework/base/base.cc", "return r.count", "return 0 + r.count")
    assert private_abi.of_tree(load(str(gpu_tree.root))) == before
    assert before.startswith("0.1.0-") and len(before) == 18
    gpu_tree.edit("framework/base/registry.h", "count = 0", "count = 1")
    assert private_abi.of_tree(load(str(gpu_tree.root))) != before
    gpu_tree.write("VERSION", "0.1.1\n")
    assert private_abi.of_tree(load(str(gpu_tree.root))).startswith("0.1.1-")


def test_a_library_of_two_builds(tmp_path):
    path = tmp_path / "both.so"
    marks = [b"treenail-private-abi-1.0.0-%012d\0" % number for number in (1, 2)]
    path.write_bytes(b"".join(marks))
    with pytest.raises(ConfigureError, match="several builds that it is: 1.0.0-000000000001, 1.0"):
        private_abi.of_library(str(path))
    path.write_bytes(marks[0] + b"xx" + marks[0])
    assert private_abi.of_library(str(path)) == "1.0.0-000000000001"


def test_configure_compares_what_it_found(gpu_tree, facts):  # noqa: F811
    model = load(str(gpu_tree.root))
    library = installed_library.InstalledLibrary("/usr/lib/libtreenail.so", "/usr/lib",
                                                 "0.1.0-000000000000", "test")
    with pytest.raises(ConfigureError, match="is of build 0.1.0-000000000000, but this source"):
        installed_library.check(model, library)
