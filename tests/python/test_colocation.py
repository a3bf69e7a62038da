# SPDX-License-Identifier: Apache-2.0
"""Operations that must run beside others: what graphs keep of it, and what sessions make of it."""

import re

import numpy as np
import pytest

import treenail as tn
from treenail._graph_def import graph_def


@pytest.fixture(autouse=True)
def fresh(fresh_graph):
    """A default graph of its own."""


def cpus(count, **options):
    return tn.Session(config=tn.ConfigProto(device_count={"CPU": count}, **options))


def where(capfd, fetches, count=4):
    """{operation: device} of one run."""
    with cpus(count, log_device_placement=True) as session:
        session.run(fetches)
    rows = [line.split() for line in capfd.readouterr().err.splitlines()[1:]]
    return {row[0]: row[2].rpartition("/")[2] for row in rows}


def source(name, device=None):
    """A value that is not folded."""
    with tn.device(device):
        return tn.random_uniform([], name=name)


def test_new_operations_run_beside_an_operation(capfd):
    x = source("x", "/cpu:2")
    with tn.device("/cpu:1"), tn.colocate_with(x):
        y = tn.exp(x, name="y")
    z = tn.exp(y, name="z")
    assert y.op.device == x.op.device == "/cpu:2"
    assert y.op.colocation_groups() == [b"loc:@x"]
    assert x.op.colocation_groups() == [b"loc:@x"] and z.op.colocation_groups() == [b"loc:@z"]
    places = where(capfd, [y, z])
    assert (places["y"], places["z"]) == ("device:CPU:2", "device:CPU:0")


def test_it_holds_for_what_asks_for_nothing_itself(capfd):
    a = source("a")
    with tn.colocate_with(a):
        b = tn.exp(a, name="b")
        with tn.device("/cpu:3"):
            c = tn.sin(a, name="c")
    places = where(capfd, [b, c])
    assert a.op.device == b.op.device == ""
    assert {places[name] for name in "abc"} == {"device:CPU:3"}


def test_contexts_add_up_and_may_be_ignored():
    a, b = tn.constant(1.0, name="a"), tn.constant(2.0, name="b")
    with tn.colocate_with(a):
        with tn.colocate_with(b):
            both = tn.exp(a)
        with tn.colocate_with(b, ignore_existing=True):
            one = tn.exp(a)
        with tn.colocate_with(a):
            again = tn.exp(a)
    after = tn.exp(a)
    assert both.op.colocation_groups() == [b"loc:@a", b"loc:@b"]
    assert one.op.colocation_groups() == [b"loc:@b"]
    assert again.op.colocation_groups() == [b"loc:@a"]
    assert after.op.colocation_groups() == [b"loc:@%s" % after.op.name.encode()]


def test_functions_that_choose_devices_do_not_count_within():
    with tn.device("/cpu:1"):
        v = tn.Variable(1.0, name="v")
    with tn.device(lambda op: "/cpu:3"):
        with tn.colocate_with(v):
            inside = tn.constant(1.0)
        outside = tn.constant(1.0)
    assert inside.op.device == v.device == "/cpu:1"
    assert inside.op.colocation_groups() == [b"loc:@" + v.op.name.encode()]
    assert outside.op.device == "/cpu:3"


@pytest.mark.parametrize("soft", [False, True])
def test_contradictions_are_refused(soft):
    a = source("a", "/cpu:1")
    with tn.colocate_with(a), tn.device("/cpu:2"):
        b = tn.exp(a, name="b")
    text = ('[Exp node "b"] cannot be placed on "/cpu:2": "a", with which it is colocated, '
            'asks for "/cpu:1"')
    with cpus(3, allow_soft_placement=soft) as session:
        with pytest.raises(tn.errors.InvalidArgumentError, match=re.escape(text)):
            session.run(b)


def test_files_and_imports_keep_it(tmp_path):
    x = tn.constant(1.0, name="x")
    with tn.colocate_with(x):
        tn.exp(x, name="y")
    path = str(tmp_path / "graph.tng")
    x.graph.save(path)
    loaded = tn.load_graph(path)
    assert loaded.get_operation_by_name("y").colocation_groups() == [b"loc:@x"]
    with tn.Graph().as_default() as graph:
        tn.constant(0.0, name="model/x")  # takes the name
        tn.import_graph(path, name="model")
        ops = {op.type: op for op in graph.get_operations()}
        assert ops["Exp"].inputs[0].op.name == "model/x_1"
        assert ops["Exp"].colocation_groups() == [b"loc:@model/x_1"]


def test_a_graph_without_it_has_the_bytes_of_old(tmp_path):
    def stored(colocated):
        with tn.Graph().as_default() as graph:
            x = tn.constant(1.0, name="x")
            with tn.colocate_with(x) if colocated else tn.name_scope(None):
                tn.exp(x, name="y")
            graph.save(str(tmp_path / "g"))
        return (tmp_path / "g").read_bytes()
    assert b"COLO" not in stored(False) and b"COLO" in stored(True)


def test_the_graph_for_tensorboard_names_the_group():
    x = tn.constant(1.0, name="x")
    assert b"_class" not in graph_def(x.graph)
    with tn.colocate_with(x):
        tn.exp(x, name="y")
    # NodeDef.attr: key 1 "_class", value 2: AttrValue.list 1: its strings are field 2.
    assert b"\x0a\x06_class\x12\x0a\x0a\x08\x12\x06loc:@x" in graph_def(x.graph)


def test_bodies_that_take_their_calls_places_keep_companions_apart(capfd):
    @tn.function
    def f(x, device):
        a = tn.exp(x, name="a")
        with tn.colocate_with(a), tn.device(device):
            return a + tn.sin(x, name="b")
    x = source("x")
    places = where(capfd, [f(x, "/cpu:2"), f(x, "/cpu:3")])
    beside = [device for name, device in places.items() if name.endswith("/a")]
    assert sorted(beside) == ["device:CPU:2", "device:CPU:3"], places


def test_what_runs_at_once_has_no_companions():
    with tn.eager():
        x = tn.constant(1.0)
        with tn.colocate_with(x):
            assert float(tn.exp(x)) == pytest.approx(np.e)
