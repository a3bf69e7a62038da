# SPDX-License-Identifier: Apache-2.0
"""contrib/easybuild/treenail.eb against the facts that it repeats. gen/site/easybuild_proof.py has
EasyBuild build it."""

import ast
import importlib
import os
import shlex
import subprocess
import sys

import pytest

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
sys.path.insert(0, SOURCE)
from gen import identity  # noqa: E402  (the path must be set first)
from gen.deps import DEPENDENCIES  # noqa: E402

# Names that EasyBuild defines for easyconfigs.
CONSTANTS = {"SYSTEM": {"name": "system", "version": "system"}, "SHLIB_EXT": "so",
             "SOURCELOWER_TAR_GZ": "%(namelower)s-%(version)s.tar.gz"}


def read(name):
    with open(os.path.join(SOURCE, name), encoding="utf-8") as stream:
        return stream.read()


@pytest.fixture(scope="module")
def easyconfig():
    """The file as EasyBuild reads it: assignments, evaluated in order."""
    found = dict(CONSTANTS)
    for node in ast.parse(read("contrib/easybuild/treenail.eb")).body:
        assert isinstance(node, ast.Assign), ast.dump(node)
        code = compile(ast.Expression(node.value), "treenail.eb", "eval")
        found[node.targets[0].id] = eval(code, {"__builtins__": {}}, dict(found))
    return found


def test_the_proof_reads_easybuilds_own_version(monkeypatch):
    monkeypatch.syspath_prepend(os.path.join(SOURCE, "gen", "tools"))
    proof = importlib.import_module("easybuild_proof")
    assert proof.told_version("This is EasyBuild 5.1.1 (framework: 5.1.0, easyblocks: 5.1.2) on "
                              "host x.\n") == "5.1.1"


def test_version(easyconfig):
    assert easyconfig["version"] == read("VERSION").strip()


def test_homepage_is_the_projects_own_or_none(easyconfig):
    assert easyconfig["homepage"] == (identity.HOMEPAGE or "https://treenail.invalid")


def test_source_is_what_ninja_dist_writes(easyconfig):
    (name,) = easyconfig["sources"]
    assert name % {"namelower": easyconfig["name"], "version": easyconfig["version"]} == (
        "treenail-%s.tar.gz" % read("VERSION").strip())
    assert "checksums" not in easyconfig  # the archive would have to hold its own


def expected():
    """What a build with every feature needs, by the table."""
    for dep in DEPENDENCIES:
        adapter = os.path.isdir(os.path.join(SOURCE, "kernels/adapters", dep.name))
        if dep.use in ("build", "run") or (dep.use == "feature" and adapter):
            fedora = dep.fedora.replace("-static", "-devel")
            yield dep.debian if dep.debian == fedora else (dep.debian, fedora)


def test_osdependencies_are_those_of_the_table(easyconfig):
    assert easyconfig["osdependencies"] == list(expected())


def test_configure_knows_the_options(easyconfig):
    done = subprocess.run([sys.executable, "-B", os.path.join(SOURCE, "configure.py"), "--help"],
                          stdout=subprocess.PIPE, encoding="utf-8", check=True)
    for word in shlex.split(easyconfig["configopts"]):
        assert word.split("=")[0] in done.stdout


def test_sanity_commands_are_right_in_shell_and_python(easyconfig):
    values = {"version": easyconfig["version"]}
    for text in easyconfig["sanity_check_commands"]:
        words = shlex.split(text % values)
        if "-c" in words:
            ast.parse(words[words.index("-c") + 1])
        subprocess.run(["sh", "-n", "-c", text % values], check=True)
    assert any("import treenail" in text for text in easyconfig["sanity_check_commands"])
