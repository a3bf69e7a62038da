# SPDX-License-Identifier: Apache-2.0
"""Clusters and groups whose links are slow, silent or cut: what they compute does not depend on it,
and what is lost is named."""

import contextlib
import time

import numpy as np
import pytest

import process_group
import treenail as tn
from cluster_processes import Cluster
from free_ports import free_ports
from slow_links import Link

pytestmark = pytest.mark.skipif("grpc" not in tn.build_info()["features"],
                                reason="this build has no gRPC")

JOIN = """
D = tn.distributed
ports, links = eval(os.environ["TEST_PORTS"]), os.environ["TEST_LINKS"].split(",")
D.init("grpc", rank=rank, cluster=links, listen="127.0.0.1:%d" % ports[rank], join_timeout=30,
       keepalive_in_ms=int(os.environ["TEST_KEEPALIVE_MS"]))
"""


@contextlib.contextmanager
def linked(size, delay=0.0, keepalive_in_ms=0):
    """The links by which others reach each rank, and the environment that says so."""
    with contextlib.ExitStack() as open_links:
        ports = free_ports(size)
        links = [open_links.enter_context(Link(port, delay, seed=port)) for port in ports]
        yield links, {"TEST_PORTS": repr(ports), "TEST_KEEPALIVE_MS": str(keepalive_in_ms),
                      "TEST_LINKS": ",".join(link.address for link in links)}


def test_slow_links_change_no_bit_of_a_group(tmp_path):
    program = JOIN + """
value = np.random.default_rng(rank).standard_normal(70_001).astype(np.float32)
with tn.Session() as session:
    x = tn.constant(value)
    leave(session.run([D.all_reduce(x), D.all_gather(x[:5]), D.broadcast(x[:3], root=1),
                       D.all_to_all(x[:6])]))
"""
    with linked(3, delay=0.01) as (_, environment):
        found = process_group.run(tmp_path, program, 3, environment)
    values = [np.random.default_rng(rank).standard_normal(70_001).astype(np.float32)
              for rank in range(3)]
    for rank, (total, gathered, sent, exchanged) in enumerate(found):
        np.testing.assert_array_equal(total, values[0] + values[1] + values[2])
        np.testing.assert_array_equal(gathered, np.concatenate([v[:5] for v in values]))
        np.testing.assert_array_equal(sent, values[1][:3])
        np.testing.assert_array_equal(
            exchanged, np.concatenate([v[2 * rank:2 * rank + 2] for v in values]))


LOSE = JOIN + """
with tn.Session() as session:
    total = D.all_reduce(tn.constant(1.0))
    session.run(total)
    leave(None)
    def go_on():
        while True:
            session.run(total)
    said = error_of(go_on)
leave((said, time.time()))
"""


@pytest.mark.parametrize("how", [Link.cut, Link.fall_silent])
def test_a_group_names_the_rank_whose_link_is_lost(tmp_path, how):
    with linked(2, keepalive_in_ms=1000) as (links, environment):
        group = process_group.Group(tmp_path, LOSE, 2, environment)
        try:
            for rank in range(2):
                while not (tmp_path / ("result%d" % rank)).exists():
                    assert group.processes[rank].poll() is None, group.processes[rank].stdout.read()
                    time.sleep(0.01)
            lost = time.time()
            how(links[1])
        finally:
            results = group.wait()
    assert None not in results, "\n".join(group.outputs)
    for rank, ((kind, text), at) in enumerate(results):
        assert kind == "UnavailableError", text
        assert "rank %d" % (1 - rank) in text
        assert at - lost < 10
    assert links[1].address in results[0][0][1]


def test_slow_links_change_no_bit_of_a_cluster():
    ports = free_ports(3)
    with contextlib.ExitStack() as running:
        links = [running.enter_context(Link(port, 0.01, seed=port)) for port in ports]
        spec = {"ps": [links[0].address], "worker": [links[1].address, links[2].address]}
        listening = {"ps": ["127.0.0.1:%d" % ports[0]],
                     "worker": ["127.0.0.1:%d" % port for port in ports[1:]]}
        cluster = running.enter_context(Cluster(spec=spec, listening=listening, ps=1, worker=2))

        def trained(target, devices):
            with tn.Graph().as_default():
                x = tn.constant(np.random.default_rng(0).standard_normal([64, 20]), tn.float32)
                with tn.device(devices[0]):
                    w = tn.get_variable("w", [20, 3], initializer=tn.ones_initializer())
                losses = []
                for i, device in enumerate(devices[1:]):
                    with tn.device(device):
                        losses.append(tn.reduce_mean(tn.square(
                            tn.matmul(x[32 * i:32 * i + 32], w))))
                train = tn.train.GradientDescentOptimizer(0.1).minimize(tn.add_n(losses))
                with tn.Session(target) as session:
                    session.run(tn.global_variables_initializer())
                    for _ in range(5):
                        session.run(train)
                    return session.run(w)

        tasks = ["/job:ps/task:0", "/job:worker/task:0", "/job:worker/task:1"]
        np.testing.assert_array_equal(trained(cluster.target("worker"), tasks),
                                      trained("", [""] * 3))
