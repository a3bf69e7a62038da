# SPDX-License-Identifier: Apache-2.0
"""Where files go: libdir, the Python directory of each prefix, run paths, manifest and wheel."""

import dataclasses
import json
import subprocess
import sys

import pytest
from small_tree import SOURCE, python_facts
from gen.configure import make_plan
from gen.deps import FEATURES
from gen.distro import Distro
from gen.errors import ConfigureError
from gen.install import (directories, distinct_pythons, first_lines, is_searched, module_runpath,
                         python_directory)
from gen.model import load
from gen.options import parse
from gen.facts import External, Interpreter


def context_of(tree, facts, *arguments):
    return make_plan(load(str(tree.root)), parse(list(arguments), {}), facts, "..", [])


DEBIAN = Distro("debian", "12", "debian", "Debian")
FEDORA = Distro("fedora", "42", "fedora", "Fedora")


@pytest.mark.parametrize("distro, prefix, libdir", [
    (DEBIAN, "/usr", "/usr/lib/x86_64-linux-gnu"), (FEDORA, "/usr", "/usr/lib64"),
    (DEBIAN, "/usr/local", "/usr/local/lib"), (FEDORA, "/opt/t", "/opt/t/lib")])
def test_default_libdir(facts, distro, prefix, libdir):
    facts.distro = distro
    assert directories(parse(["--prefix=" + prefix], {}), facts)["libdir"] == libdir


def test_given_libdir_wins(facts):
    options = parse(["--prefix=/usr", "--libdir=/usr/lib/other"], {})
    assert directories(options, facts)["libdir"] == "/usr/lib/other"


def fedora_python():
    facts = dict(python_facts((3, 13, 1)), deb_system="", posix_local="",
                 posix_prefix="/BASE/lib64/python3.13/site-packages",
                 searched=["/usr/lib64/python3.13/site-packages",
                           "/usr/local/lib64/python3.13/site-packages"])
    return Interpreter("/usr/bin/python3", "test", facts)


def debian_python():
    return Interpreter("/usr/bin/python3", "test", python_facts())


@pytest.mark.parametrize("python, prefix, folder, searched", [
    (debian_python(), "/usr", "/usr/lib/python3/dist-packages", True),
    (debian_python(), "/usr/local", "/usr/local/lib/python3.11/dist-packages", True),
    (debian_python(), "/opt/t", "/opt/t/lib/python3.11/site-packages", False),
    (fedora_python(), "/usr", "/usr/lib64/python3.13/site-packages", True),
    (fedora_python(), "/usr/local", "/usr/local/lib64/python3.13/site-packages", True),
    (fedora_python(), "/opt/t", "/opt/t/lib64/python3.13/site-packages", False)])
def test_python_directory(python, prefix, folder, searched):
    assert python_directory(prefix, python) == folder
    assert is_searched(folder, python) == searched


def pyenv_python():
    own = "/home" + "/me/.pyenv/versions/3.11.7"
    return Interpreter(own + "/bin/python3", "test", dict(
        python_facts((3, 11, 7)), deb_system="", posix_local="", include=own + "/include",
        searched=[own + "/lib/python3.11/site-packages"]))


def test_prefix_of_an_environment_is_searched():
    facts = dict(python_facts(), searched=["/venv/lib/python3.11/site-packages"])
    python = Interpreter("/venv/bin/python", "test", facts)
    assert is_searched(python_directory("/venv", python), python)


@pytest.mark.parametrize("prefix", ["/usr", "/usr/local"])
def test_an_interpreter_of_ones_own_does_not_search_the_systems_directories(prefix):
    folder = python_directory(prefix, pyenv_python())
    assert folder == prefix + "/lib/python3.11/site-packages"
    assert not is_searched(folder, pyenv_python())


def test_interpreter_named_twice_counts_once(facts):
    twin = Interpreter("/usr/bin/python3.11", "test", python_facts())
    facts.pythons += (twin,)
    assert [p.path for p in distinct_pythons(parse([], {}), facts)] == ["/usr/bin/python3"]


def test_two_interpreters_of_one_tag_are_refused(facts):
    facts.pythons += (pyenv_python(),)
    with pytest.raises(ConfigureError, match="have one ABI tag, cpython-311-x86_64-linux-gnu, but"):
        distinct_pythons(parse([], {}), facts)


def test_prefix_of_one_slash(small_tree, facts):
    context = context_of(small_tree, facts, "--prefix=/")
    assert "/lib/libtreenail.so.0.1.0" in entries(context)
    assert not [path for path in entries(context) if "//" in path]
    assert "//" not in context.plan.files["gen/install/treenail.pc"]


def test_run_path_only_where_the_linker_does_not_look(small_tree, facts):
    def runpath(*arguments):
        return module_runpath(context_of(small_tree, facts, *arguments), facts.pythons[0])
    assert runpath("--prefix=/usr") == ""
    assert runpath("--prefix=/usr/local") == "$ORIGIN/../../.."
    assert runpath("--prefix=/usr", "--libdir=/usr/lib/private") == (
        "$ORIGIN/../../../private")


def entries(context):
    return {e["to"]: e for e in json.loads(context.plan.files["gen/install.json"])["entries"]}


def test_manifest_of_a_debian_package(small_tree, facts):
    found = entries(context_of(small_tree, facts, "--prefix=/usr"))
    lib = "/usr/lib/x86_64-linux-gnu"
    module = "/usr/lib/python3/dist-packages/treenail/_treenail.cpython-311-x86_64-linux-gnu.so"
    for path in (lib + "/libtreenail.so.0.1.0",
                 lib + "/treenail-0/kernels/x86-64-v3/libtreenail-kernels-cpu.so",
                 lib + "/pkgconfig/treenail.pc", lib + "/cmake/Treenail/treenail-config.cmake",
                 "/usr/include/treenail/treenail.h", "/usr/bin/tool", module,
                 "/usr/share/man/man1/tool.1", "/usr/share/bash-completion/completions/tool",
                 "/usr/lib/python3/dist-packages/treenail/extra.py",
                 "/usr/lib/python3/dist-packages/treenail-0.1.0.dist-info/METADATA"):
        assert path in found, path
    assert found[lib + "/libtreenail.so.0"]["target"] == "libtreenail.so.0.1.0"
    assert found[lib + "/libtreenail.so"]["target"] == "libtreenail.so.0.1.0"


def of_version(facts, version):
    """{part: paths} of the installation of this very tree, were that its version."""
    facts.externals.update((dep.name, External(True, (), (), "1", "test")) for dep in FEATURES)
    model = dataclasses.replace(load(str(SOURCE)), version=version)
    context = make_plan(model, parse(["--prefix=/usr"], {}), facts, "..", [])
    parts = {}
    for path, entry in entries(context).items():
        parts.setdefault(entry["package"], set()).add(path)
    return parts


def test_libraries_of_two_major_versions_can_be_installed_together(facts):
    one, two = of_version(facts, "1.4.2"), of_version(facts, "2.0.0")
    assert one["runtime"] and len(one["runtime"]) == len(two["runtime"])
    assert one["runtime"] & two["runtime"] == set()
    # Of what programs are built with, and of the module, there is one at a time.
    assert one["development"] & two["development"] and one["python"] & two["python"]


def test_every_file_belongs_to_a_part_of_the_installation(small_tree, facts):
    parts = {}
    for path, entry in entries(context_of(small_tree, facts, "--prefix=/usr")).items():
        parts.setdefault(entry["package"], set()).add(path.rsplit("/", 1)[1])
    assert set(parts) == {"runtime", "development", "tools", "python", "license"}
    assert {"libtreenail.so.0", "libtreenail.so.0.1.0", "libtreenail-kernels-cpu.so"} <= (
        parts["runtime"])
    assert parts["development"] == {"libtreenail.so", "treenail.h", "treenail.pc",
                                    "treenail-config.cmake", "treenail-config-version.cmake"}
    assert parts["tools"] == {"tool", "tool.1"}  # the completion is named as the program
    assert parts["license"] == {"LICENSE"}


def test_a_program_in_python_goes_with_its_module(small_tree, facts):
    found = entries(context_of(small_tree, facts, "--prefix=/usr"))
    for path in ("/usr/bin/script", "/usr/share/man/man1/script.1",
                 "/usr/share/bash-completion/completions/script"):
        assert found[path]["package"] == "python", path
    assert found["/usr/bin/script"]["kind"] == "script"


def script(tree, facts, *arguments):
    return context_of(tree, facts, *arguments).plan.files["gen/install/script"]


def test_a_program_in_python_finds_its_module(small_tree, facts):
    """By itself only where the interpreter would not."""
    plain = script(small_tree, facts, "--prefix=/usr")
    assert plain.startswith("#!%s\n" % facts.pythons[0].path) and "sys.path" not in plain
    assert "'../lib/python3.11/site-packages'" in script(small_tree, facts, "--prefix=/opt/t")
    assert "'../../lib/python3.11/site-packages'" in script(
        small_tree, facts, "--prefix=/opt/t", "--bindir=/opt/t/x/bin")


def test_a_program_in_python_of_a_cross_build(small_tree, facts):
    facts.pythons = (Interpreter("", "--host-python", facts.pythons[0].facts),)
    assert script(small_tree, facts, "--prefix=/usr").startswith("#!/usr/bin/python3\n")
    facts.pythons = (Interpreter("", "none", {}),)
    context = context_of(small_tree, facts, "--prefix=/usr")
    assert "gen/install/script" not in context.plan.files and "/usr/bin/script" not in entries(
        context)


@pytest.mark.parametrize("folder", ["a b", "long-" * 30, "it's"])
def test_an_interpreter_in_an_odd_place(folder, tmp_path):
    python = tmp_path / folder / "python3"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    program = tmp_path / "program"
    program.write_text("#!%s\nimport sys\nprint(sys.executable, sys.argv[1:])\n"
                       % first_lines(str(python)))
    program.chmod(0o755)
    out = subprocess.run([str(program), "x y"], stdout=subprocess.PIPE, check=True).stdout.decode()
    assert out == "%s ['x y']\n" % python


def test_no_test_program_is_installed(small_tree, facts):
    assert not any("test" in path for path in entries(context_of(small_tree, facts,
                                                                 "--prefix=/usr")))


def test_two_interpreters_share_a_folder_or_get_their_own(small_tree, facts):
    facts.pythons += (Interpreter("/usr/bin/python3.13", "t", python_facts((3, 13, 1))),)
    facts.python_flags["cpython-313-x86_64-linux-gnu"] = ()
    shared = [p for p in entries(context_of(small_tree, facts, "--prefix=/usr"))
              if p.endswith("extra.py")]
    assert len(shared) == 1
    own = [p for p in entries(context_of(small_tree, facts, "--prefix=/opt/t"))
           if p.endswith("extra.py")]
    assert len(own) == 2


def test_pkg_config_file_is_relocatable(small_tree, facts):
    context = context_of(small_tree, facts, "--prefix=/opt/t")
    text = context.plan.files["gen/install/treenail.pc"]
    assert text.count("/opt/t") == 1 and "prefix=/opt/t\n" in text
    assert "libdir=${exec_prefix}/lib\n" in text and "includedir=${prefix}/include\n" in text


def test_cmake_config_names_no_absolute_path(small_tree, facts):
    context = context_of(small_tree, facts, "--prefix=/opt/t")
    assert "/opt/t" not in context.plan.files["gen/install/treenail-config.cmake"]


def test_wheel_is_named_by_the_baseline(small_tree, facts):
    context = context_of(small_tree, facts)
    wheel = json.loads(context.plan.files["gen/wheel.json"])[0]
    assert wheel["file"] == "treenail-0.1.0-0_x86_64-cp311-cp311-linux_x86_64.whl"
    targets = {e["to"] for e in wheel["entries"]}
    assert "treenail/lib/libtreenail.so.0" in targets
    assert "treenail/lib/treenail-0/kernels/x86-64-v3/libtreenail-kernels-cpu.so" in targets
    assert "treenail/_treenail.cpython-311-x86_64-linux-gnu.so" in targets
    assert "treenail/__init__.py" in targets
    assert wheel["texts"]["entry_points.txt"] == (
        "[console_scripts]\nscript = treenail.extra:main\n")
