# SPDX-License-Identifier: Apache-2.0
"""What a run tells of its operations: times, threads, memory, arithmetic; tables and traces."""

import json
import os

import numpy as np
import pytest

import treenail as tn

FULL = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)


def traced(session, fetches, feed_dict=None):
    metadata = tn.RunMetadata()
    session.run(fetches, feed_dict, FULL, metadata)
    return metadata


@pytest.fixture(name="network")
def _network():
    x = tn.placeholder(tn.float32, [64, 100], name="x")
    w = tn.Variable(tn.ones([100, 50]), name="w")
    hidden = tn.nn.relu(tn.matmul(x, w, name="product") + 1.0, name="hidden")
    loss = tn.reduce_mean(hidden, name="loss")
    with tn.Session() as session:
        session.run(w.initializer)
        yield session, loss, {x: np.ones((64, 100), np.float32)}


def test_a_run_tells_nothing_of_its_operations_unless_asked(network):
    session, loss, feeds = network
    metadata = tn.RunMetadata()
    session.run(loss, feeds, None, metadata)
    assert metadata.nodes == []
    session.run(loss, feeds, tn.RunOptions(), metadata)
    assert metadata.nodes == []
    session.run(loss, feeds, FULL)  # nobody to tell


def test_every_kernel_is_there_with_its_time_thread_and_device(network):
    session, loss, feeds = network
    nodes = traced(session, loss, feeds).nodes
    names = {name for n in nodes for name in [n.name] + [name for name, _ in n.fused]}
    assert {"product", "hidden", "loss"} <= names
    assert all(0 <= n.start_ns <= n.end_ns for n in nodes)
    assert [n.start_ns for n in nodes] == sorted(n.start_ns for n in nodes)
    assert all(os.path.isdir("/proc/self/task/%d" % n.thread) for n in nodes)
    assert {n.device for n in nodes} == {"/job:localhost/replica:0/task:0/device:CPU:0"}
    assert all(n.bytes_in_use > 0 for n in nodes)


def test_arithmetic_is_counted_by_the_definitions_of_operations():
    x = np.ones((2, 9, 9, 3), np.float32)
    w = np.ones((3, 3, 3, 8), np.float32)
    depthwise = np.ones((3, 3, 3, 2), np.float32)
    given = [tn.placeholder(tn.float32, a.shape) for a in (x, w, depthwise)]
    feeds = dict(zip(given, (x, w, depthwise)))
    out = tn.nn.conv2d(given[0], given[1], [1, 1, 1, 1], "VALID")
    cases = [(out, 2 * 2 * 7 * 7 * 8 * 27), (tn.gradients(out, given[0])[0], 2 * 2 * 49 * 8 * 27),
             (tn.gradients(out, given[1])[0], 2 * 2 * 49 * 8 * 27),
             (tn.nn.depthwise_conv2d(given[0], given[2], [1, 1, 1, 1], "VALID"),
              2 * 2 * 49 * 6 * 9),
             (tn.matmul(tn.reshape(given[1], [27, 8]), tn.reshape(given[2], [27, 2]),
                        transpose_a=True), 2 * 8 * 2 * 27)]
    with tn.Session() as session:
        for value, flops in cases:
            assert max(n.flops for n in traced(session, value, feeds).nodes) == flops


def test_arithmetic_of_a_fused_kernel_is_that_of_its_parts():
    x = tn.placeholder(tn.float32, [1000])
    y = tn.tanh(x * 2.0 + 1.0)
    with tn.Session() as session:
        kernel, = traced(session, y, {x: np.ones(1000)}).nodes
    assert [op for _, op in kernel.fused] == ["Mul", "Add"] and kernel.op == "Tanh"
    assert kernel.flops == 3000 and kernel.bytes_allocated == 4000


def test_shapes_that_only_the_run_tells_are_counted():
    x = tn.placeholder(tn.float32, [None])
    y = tn.boolean_mask(x, x > 0) * tn.constant(2.0)
    with tn.Session() as session:
        nodes = traced(session, y, {x: np.arange(-10, 11)}).nodes
    last, = [n for n in nodes if n.op == "Mul"]
    assert last.flops == 10 and last.bytes_allocated == 40


@pytest.mark.parametrize("threads", [1, 3])
def test_independent_nodes_have_the_threads_they_ran_on(threads):
    a = tn.placeholder(tn.float32, [300, 300])
    sums = [tn.matmul(tn.matmul(a, a + float(i)), a) for i in range(6)]
    config = tn.ConfigProto(intra_op_parallelism_threads=threads)
    with tn.Session(config=config) as session:
        nodes = traced(session, sums, {a: np.ones((300, 300))}).nodes
    assert len([n for n in nodes if n.op == "MatMul"]) == 12
    assert len({n.thread for n in nodes}) <= threads


def test_a_table_sums_up_by_operation_and_by_node(network):
    session, loss, feeds = network
    profiler = tn.profiler.Profiler()
    expected = session.run(loss, feeds)
    for _ in range(3):
        assert profiler.run(session, loss, feeds) == expected
    by_op = profiler.table(peak_gflops=100.0).splitlines()
    assert by_op[0].split() == ["kernel", "count", "ms", "share", "MB", "GFLOP/s", "of", "peak"]
    assert by_op[-1].startswith("all ") and "100.0 %" in by_op[-1]
    assert any("MatMul" in line for line in by_op)
    by_node = profiler.table("node", peak_gflops=100.0)
    assert "loss" in by_node and repr(profiler) == "<tn.profiler.Profiler of 3 runs>"
    assert "others" in profiler.table("node", rows=1, peak_gflops=100.0)


def test_a_trace_is_what_chrome_and_perfetto_read(network, tmp_path):
    session, loss, feeds = network
    metadata = traced(session, loss, feeds)
    path = tmp_path / "trace.json"
    tn.profiler.write_trace(path, [metadata, metadata])
    with open(path, encoding="utf-8") as stream:
        events = json.load(stream)["traceEvents"]
    assert len(events) == 2 * len(metadata.nodes)
    assert all(e["ph"] == "X" and e["dur"] >= 0 and e["args"]["node"] for e in events)
    assert [e["args"]["run"] for e in events] == sorted(e["args"]["run"] for e in events)
    assert os.listdir(tmp_path) == ["trace.json"]


def test_tensorboards_message_has_the_operations(network):
    session, loss, feeds = network
    metadata = traced(session, loss, feeds)
    data = metadata.SerializeToString()
    assert b"product" in data and b"/device:CPU:0" in data and b"Session.run" not in data


def test_what_cannot_be_shown_is_refused_with_a_sentence(tmp_path):
    with pytest.raises(ValueError, match="no operation was timed: Session.run needs options="):
        tn.profiler.table(tn.RunMetadata())
    with pytest.raises(ValueError, match='by must be "op" or "node", not \'time\''):
        tn.profiler.table(tn.RunMetadata(), by="time")
    with pytest.raises(TypeError, match="run_metadata must be a RunMetadata or a list"):
        tn.profiler.table("trace")
    with pytest.raises(ValueError, match="no operation was timed"):
        tn.profiler.write_trace(tmp_path / "none.json", tn.RunMetadata())
    assert os.listdir(tmp_path) == []


def test_a_failed_write_leaves_the_file_before(network, tmp_path):
    session, loss, feeds = network
    metadata = traced(session, loss, feeds)
    with pytest.raises(OSError):
        tn.profiler.write_trace(tmp_path / "missing" / "trace.json", metadata)


def test_a_peak_is_measured():
    assert tn.profiler.measured_peak() > 0.1
