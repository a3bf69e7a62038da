# SPDX-License-Identifier: Apache-2.0
"""Type stubs and the op reference: fresh, and true to the module."""

import ast
import os
import subprocess
import sys

import pytest

import treenail as tn

TOP = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
PACKAGE = os.path.join(TOP, "python", "treenail")
STUBS = [name for name in sorted(os.listdir(PACKAGE)) if name.endswith(".pyi")]


def test_generated_files_are_fresh():
    """`ninja generate` rewrites them."""
    done = subprocess.run([sys.executable, os.path.join(TOP, "python/tools/generate.py"),
                           "--check"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          check=False)
    assert done.returncode == 0, done.stdout


def _tree(name):
    with open(os.path.join(PACKAGE, name), encoding="utf-8") as stream:
        return ast.parse(stream.read())


def _names(tree):
    found = set()
    for node in tree.body:
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)):
            found.add(node.name)
        elif isinstance(node, ast.AnnAssign):
            found.add(node.target.id)
        elif isinstance(node, ast.Assign):
            found.update(target.id for target in node.targets)
        elif isinstance(node, ast.ImportFrom):
            found.update(alias.asname for alias in node.names if alias.asname)
    return found


def test_the_stub_of_the_package_has_every_public_name():
    names = _names(_tree("__init__.pyi"))
    assert set(tn.__all__) <= names
    for name in names:
        assert hasattr(tn, name), name


@pytest.mark.parametrize("name", STUBS)
def test_stubs_are_valid_python(name):
    _tree(name)


def test_the_stub_of_the_compiled_module_is_true():
    tree = _tree("_treenail.pyi")
    core = tn._core
    public = {n for n in dir(core) if not n.startswith("_")} | {"__version__", "__features__"}
    assert _names(tree) == public
    for node in tree.body:
        if not isinstance(node, ast.ClassDef):
            continue
        cls = getattr(core, node.name)
        stated = {n.name for n in node.body if isinstance(n, ast.FunctionDef)}
        stated |= {n.target.id for n in node.body if isinstance(n, ast.AnnAssign)}
        there = {n for n in vars(cls) if not n.startswith("_")}
        assert there == {n for n in stated if not n.startswith("__")}, node.name
        assert all(hasattr(cls, n) for n in stated), node.name


def test_the_stub_of_raw_ops_names_every_op():
    names = _names(_tree("raw_ops.pyi"))
    for name in dir(tn.raw_ops):
        assert name in names
    for node in _tree("raw_ops.pyi").body:
        if isinstance(node, ast.FunctionDef):
            function = getattr(tn.raw_ops, node.name)
            assert [a.arg for a in node.args.args] == [p[0] for p in function.parameters]
            assert ast.get_docstring(node), node.name


def test_the_package_says_that_it_is_typed():
    assert os.path.exists(os.path.join(PACKAGE, "py.typed"))
