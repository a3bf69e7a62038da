# SPDX-License-Identifier: Apache-2.0
"""Edges to text: quoting, duplicates, cycles, and the same bytes from the same plan."""

import pytest
from gen.configure import make_plan
from gen.errors import ConfigureError
from gen.model import load
from gen.ninja import Plan, Rule, escape_path, render
from gen.options import parse


def small_plan():
    plan = Plan()
    plan.rules.append(Rule("copy", (("command", "cp $in $out"),)))
    return plan


def test_paths_are_escaped():
    assert escape_path("a b:c$d") == "a$ b$:c$$d"


def test_line_break_in_a_path_is_refused():
    with pytest.raises(ConfigureError):
        escape_path("a\nb")


def test_two_edges_for_one_output():
    plan = small_plan()
    plan.edge("copy", ["x"], ["a"])
    plan.edge("copy", ["x"], ["b"])
    with pytest.raises(ConfigureError, match="two edges make x"):
        render(plan)


def test_two_edges_for_one_implicit_output():
    plan = small_plan()
    plan.edge("copy", ["x"], ["a"], implicit_outputs=["y"])
    plan.edge("copy", ["y"], ["b"])
    with pytest.raises(ConfigureError, match="two edges make y"):
        render(plan)


def test_cycle():
    plan = small_plan()
    plan.edge("copy", ["a"], ["b"])
    plan.edge("copy", ["b"], ["c"])
    plan.edge("copy", ["c"], order_only=["a"])
    with pytest.raises(ConfigureError, match="depends on itself"):
        render(plan)


def test_diamond_is_no_cycle():
    plan = small_plan()
    plan.edge("copy", ["d"], ["b", "c"])
    plan.edge("copy", ["b"], ["a"])
    plan.edge("copy", ["c"], ["a"])
    plan.edge("copy", ["a"], ["source"])
    assert "build d: copy b c" in render(plan)


def test_unknown_rule():
    plan = small_plan()
    plan.edge("move", ["a"], ["b"])
    with pytest.raises(ConfigureError, match="rule 'move' does not exist"):
        render(plan)


def test_ninja_version_is_required(small_tree, facts):
    context = make_plan(load(str(small_tree.root)), parse([], {}), facts, "..", [])
    assert "ninja_required_version = 1.10" in render(context.plan)


def test_same_inputs_same_text_and_no_absolute_path(small_tree, facts, tmp_path):
    import shutil
    other = tmp_path / "other place"
    shutil.copytree(small_tree.root, other)
    texts = []
    for root in (small_tree.root, other):
        context = make_plan(load(str(root)), parse([], {}), facts, "..", ["configure.py"])
        texts.append((render(context.plan), context.plan.files))
    assert texts[0] == texts[1]
    assert str(tmp_path) not in texts[0][0] + repr(texts[0][1])
