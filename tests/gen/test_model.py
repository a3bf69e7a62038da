# SPDX-License-Identifier: Apache-2.0
"""targets.py as data, patterns, and the law that each source belongs to exactly one target."""

import pytest
from gen.errors import ConfigureError
from gen.model import load, pattern_to_regex, read_targets


def test_a_targets_file_is_read_not_run():
    found = read_targets('"""Doc."""\nComponent(name="a", sources=["x/*.cc"])\n', "t")
    assert found[0].name == "a" and found[0].sources == ("x/*.cc",)


@pytest.mark.parametrize("text", [
    "import os\n", "x = 1\n", "Component(name=str(1))\n", "print('x')\n",
    "Component('a')\n", "for i in []:\n    pass\n", "Component(**{})\n",
    "Component(name='a', sources=[p for p in ()])\n", "if True:\n    Component(name='a')\n"])
def test_anything_else_is_refused(text):
    with pytest.raises(ConfigureError):
        read_targets(text, "t")


def test_unknown_argument_names_line():
    with pytest.raises(ConfigureError, match="t:2: .*colour"):
        read_targets("\nComponent(name='a', colour='red')\n", "t")


def test_syntax_error_names_line():
    with pytest.raises(ConfigureError, match="t:1"):
        read_targets("Component(name=\n", "t")


@pytest.mark.parametrize("pattern, path, matches", [
    ("a/*.cc", "a/x.cc", True), ("a/*.cc", "a/b/x.cc", False), ("a/**/*.cc", "a/x.cc", True),
    ("a/**/*.cc", "a/b/c/x.cc", True), ("a/*.cc", "a/x.cc.orig", False),
    ("a/x+y.cc", "a/x+y.cc", True), ("a/x+y.cc", "a/xxy.cc", False)])
def test_patterns(pattern, path, matches):
    assert bool(pattern_to_regex(pattern).match(path)) == matches


def test_sources_are_found(small_tree):
    model = load(str(small_tree.root))
    assert model.sources["tensor"] == ("framework/tensor/helper.cc", "framework/tensor/red.cc")
    assert model.owner["kernels/cpu/level.cc"] == "cpu"


def test_source_without_target_is_an_error(small_tree):
    small_tree.write("framework/other/lost.cc", "")
    with pytest.raises(ConfigureError, match="lost.cc belongs to no target"):
        load(str(small_tree.root))


def test_source_may_be_excluded_with_a_reason(small_tree):
    small_tree.write("framework/other/lost.cc", "")
    small_tree.edit("framework/targets.py", '"""A core of two layers."""',
                    'Excluded(files=["framework/other/*.cc"], reason="an example")')
    load(str(small_tree.root))


def test_source_of_two_targets_is_an_error(small_tree):
    small_tree.edit("framework/targets.py", 'sources=["framework/tensor/*.cc"],',
                    'sources=["framework/tensor/*.cc", "framework/base/*.cc"],')
    with pytest.raises(ConfigureError, match="belongs to two targets"):
        load(str(small_tree.root))


def test_name_that_dependency_files_cannot_hold(small_tree):
    small_tree.write("framework/base/it's.cc", "")
    with pytest.raises(ConfigureError, match="names of sources consist of"):
        load(str(small_tree.root))


def test_unknown_need_is_an_error(small_tree):
    small_tree.edit("framework/targets.py", 'needs=["tensor", "base"]', 'needs=["tensors"]')
    with pytest.raises(ConfigureError, match="needs 'tensors', which no targets.py describes"):
        load(str(small_tree.root))


def test_precompiled_headers_belong_to_a_component(small_tree):
    small_tree.edit("framework/targets.py", 'precompiled=["framework/base/registry.h"]',
                    'precompiled=["framework/base/gone.h"]')
    with pytest.raises(ConfigureError, match="precompiles framework/base/gone.h"):
        load(str(small_tree.root))


def test_version_is_checked(small_tree):
    small_tree.write("VERSION", "one\n")
    with pytest.raises(ConfigureError, match="MAJOR.MINOR.PATCH"):
        load(str(small_tree.root))
