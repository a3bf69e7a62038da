# SPDX-License-Identifier: Apache-2.0
"""The role `toolchain` with compilers of a prefix, of a module and of a version: which it takes,
and what they find when they run. Its probes compile and run each time."""

import glob
import importlib.util
import os
import re
import shutil

import pytest

pytest.importorskip("ansible", reason="ansible is not installed")
from plays import play  # noqa: E402  (Ansible first)

INITS = [path for path in ("/usr/share/lmod/lmod/init/bash", "/usr/share/modules/init/bash")
         if os.path.exists(path)]
COMPILERS = {"gcc": {"gcc": "gcc", "g++": "g++"}, "llvm": {"clang": "gcc", "clang++": "g++"}}
# Asked for its version, it tells one that nobody has. Without its library it does not start.
COMPILER = """#!/bin/sh
case :$LD_LIBRARY_PATH: in *:%(prefix)s/lib64:*) ;; *) echo 'no library' >&2; exit 127 ;; esac
case $1 in -dumpfullversion | -dumpversion) echo 99.1.0; exit ;; esac
exec /usr/bin/%(real)s "$@"
"""


def installed(folder, family):
    """A prefix with compilers that need a library of theirs."""
    prefix = str(folder / "compilers")
    os.makedirs(prefix + "/bin")
    os.makedirs(prefix + "/lib64")
    for name, real in dict(COMPILERS[family], gfortran="gfortran").items():
        with open(os.path.join(prefix, "bin", name), "w", encoding="utf-8") as stream:
            stream.write(COMPILER % {"prefix": prefix, "real": real})
        os.chmod(os.path.join(prefix, "bin", name), 0o755)
    return prefix


def chosen(folder, is_what=None, **variables):
    """(toolchain_facts, the message of what failed, packages asked for). In check mode nothing is
    installed; finding and trying is done all the same."""
    for name in ("gcc", "gfortran"):
        if not shutil.which(name):
            pytest.skip(name + " is not installed")
    if shutil.which("apt-get") and not importlib.util.find_spec("apt"):
        pytest.skip("python3-apt is not installed")
    report = play(folder, "toolchain", {"localhost": dict(
        variables, ansible_connection="local", ansible_python_interpreter="/usr/bin/python3",
        ansible_become=False)}, "--check", facts=is_what)
    facts, packages = {}, []
    for _, _, result in report.tasks:
        facts.update(result.get("ansible_facts", {}).get("toolchain_facts", {}))
        given = result.get("invocation", {}).get("module_args", {})
        packages += given.get("package") or []
    return facts, report.failure("localhost"), packages


@pytest.mark.parametrize("family", ["gcc", "llvm"])
def test_compilers_of_a_prefix(family, tmp_path):
    prefix = installed(tmp_path, family)
    facts, failure, packages = chosen(tmp_path, toolchain__mode="prefix", toolchain__family=family,
                                      toolchain__prefix=prefix)
    assert not failure
    if os.path.exists("/etc/debian_version"):
        assert {"patch", "make"} <= set(packages) and "gcc" not in packages
    assert (facts["id"], facts["library_path"]) == (family + "-99.1.0", prefix + "/lib64")
    assert facts["path"].startswith(prefix + "/bin:")


def versions(name):
    """Those that this machine has."""
    return [re.search(r"-(\d+)$", path).group(1) for path in glob.glob("/usr/bin/%s-*" % name)
            if re.fullmatch(r"[^-]+-\d+", os.path.basename(path))]


def test_compilers_of_a_version(tmp_path):
    found = versions("gfortran")
    if not found or not os.path.exists("/etc/debian_version"):
        pytest.skip("no gfortran-N of Debian's is installed")
    facts, failure, packages = chosen(tmp_path, toolchain__version=found[0])
    assert not failure
    named = [name + "-" + found[0] for name in ("gcc", "g++", "gfortran")]
    assert packages[:3] == [facts["cc"], facts["cxx"], facts["fc"]] == named
    assert facts["version"].split(".")[0] == found[0]


def test_a_version_that_the_family_does_not_have_is_refused(tmp_path):
    facts, failure, _ = chosen(tmp_path, toolchain__version="13", is_what={
        "ansible_os_family": "RedHat", "ansible_distribution": "Rocky"})
    assert not facts and "toolchain__prefix=/opt/rh/gcc-toolset-13/root/usr" in failure


@pytest.mark.parametrize("init", INITS)
def test_compilers_of_a_module(init, tmp_path):
    prefix = installed(tmp_path, "gcc")
    (tmp_path / "modules/compilers").mkdir(parents=True)
    (tmp_path / "modules/compilers/99").write_text(
        "#%%Module1.0\nprepend-path PATH %s/bin\nprepend-path LD_LIBRARY_PATH %s/lib64\n" % (
            prefix, prefix))
    options = {"toolchain__mode": "module", "toolchain__module": "compilers/99",
               "modules_facts": {"init": init, "paths": [str(tmp_path / "modules")]}}
    facts, failure, _ = chosen(tmp_path, **options)
    assert not failure
    assert (facts["id"], facts["library_path"]) == ("gcc-99.1.0", prefix + "/lib64")
    assert facts["path"].startswith(prefix + "/bin:")
    assert chosen(tmp_path, **dict(options, toolchain__module="compilers/98"))[1]
