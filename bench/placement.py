#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Placement by predicted cost: what it costs, how near predictions come, and curves for clusters.

  build/python3 bench/placement.py             everything, as in RESULTS.md
  build/python3 bench/placement.py size        time to place n and 4 n operations on 8 devices
  build/python3 bench/placement.py accuracy    predicted and measured time of a step, by a profile
  build/python3 bench/placement.py tasks       the same over two tasks, each on a core of its own
  build/python3 bench/placement.py parameters  synchronous steps with parameter servers
  build/python3 bench/placement.py inception   throughput of Inception-v3, asynchronous

Published figures: Abadi et al., "TensorFlow: A System for Large-Scale Machine Learning", OSDI 2016,
sections 6.2 (figure 6) and 6.3 (figure 7).
"""

import argparse
import json
import os
import statistics
import sys
import time

import numpy as np
from figure_clusters import ports, serving

import treenail as tn


def row(*cells):
    print("| " + " | ".join(str(cell) for cell in cells) + " |", flush=True)


# --- What it costs


def layered(n):
    """n operations in layers of 40, each on two of the layer before."""
    random = np.random.RandomState(1)
    x = tn.placeholder(tn.float32, [64, 64], name="x")
    layer, made = [x * float(i) for i in range(40)], 40
    while made < n:
        fresh = []
        for _ in range(min(40, n - made)):
            a, b = random.randint(len(layer), size=2)
            fresh.append(tn.matmul(layer[a], layer[b]))
            made += 1
        layer = fresh
    return layer


def size():
    print("\n| operations | devices | seconds | placement |\n|---|---|---|---|")
    devices = ["/job:worker/task:%d/cpu:0" % task for task in range(8)]
    for n in (2_500, 10_000, 40_000):
        with tn.Graph().as_default():
            fetches = layered(n)
            times = []
            for _ in range(3):
                begin = time.perf_counter()
                found = tn.placement.explain(fetches=fetches, devices=devices)
                times.append(time.perf_counter() - begin)
            row(n, len(devices), "%.2f" % min(times), found.strategy)


# --- How near predictions come


def perceptron():
    x, y = tn.placeholder(tn.float32, [128, 784]), tn.placeholder(tn.int64, [128])
    hidden = tn.layers.dense(tn.layers.dense(x, 512, activation=tn.nn.relu), 512,
                             activation=tn.nn.relu)
    loss = tn.losses.sparse_softmax_cross_entropy(labels=y, logits=tn.layers.dense(hidden, 10))
    return tn.train.AdamOptimizer(0.001).minimize(loss), {x: (128, 784), y: (128,)}


def convolutional():
    x, y = tn.placeholder(tn.float32, [32, 28, 28, 1]), tn.placeholder(tn.int64, [32])
    a = tn.layers.max_pooling2d(tn.layers.conv2d(x, 32, 5, padding="same", activation=tn.nn.relu),
                                2, 2)
    a = tn.layers.max_pooling2d(tn.layers.conv2d(a, 64, 5, padding="same", activation=tn.nn.relu),
                                2, 2)
    a = tn.layers.dense(tn.reshape(a, [32, 7 * 7 * 64]), 256, activation=tn.nn.relu)
    loss = tn.losses.sparse_softmax_cross_entropy(labels=y, logits=tn.layers.dense(a, 10))
    return tn.train.MomentumOptimizer(0.01, 0.9).minimize(loss), {x: (32, 28, 28, 1), y: (32,)}


def recurrent():
    x, y = tn.placeholder(tn.float32, [32, 20, 64]), tn.placeholder(tn.float32, [32, 128])
    last = tn.nn.dynamic_rnn(tn.nn.rnn_cell.GRUCell(128), x, dtype=tn.float32)[1]
    loss = tn.reduce_mean(tn.square(last - y))
    return tn.train.GradientDescentOptimizer(0.01).minimize(loss), {x: (32, 20, 64), y: (32, 128)}


def branches():
    """Four chains of products that need nothing of one another."""
    x = tn.placeholder(tn.float32, [256, 256])
    ends = []
    for _ in range(4):
        value = x
        for _ in range(6):
            value = tn.tanh(tn.matmul(value, x))
        ends.append(value)
    return tn.add_n(ends), {x: (256, 256)}


def measured_step(network, threads):
    """(seconds of a step, seconds predicted by a profile of other steps)."""
    with tn.Graph().as_default():
        step, shapes = network()
        random = np.random.RandomState(1)
        feed = {value: random.rand(*shape).astype(np.float32) * 0.1 if value.dtype == tn.float32
                else random.randint(0, 10, shape) for value, shape in shapes.items()}
        fetch = step if isinstance(step, tn.Operation) else step.op
        with tn.Session(config=tn.ConfigProto(intra_op_parallelism_threads=threads)) as session:
            session.run(tn.global_variables_initializer())
            traced = tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE)
            for _ in range(5):
                session.run(fetch, feed)
            runs, times = [], []
            for _ in range(45):
                runs.append(tn.RunMetadata())
                session.run(fetch, feed, traced, runs[-1])
                begin = time.perf_counter()
                session.run(fetch, feed)
                times.append(time.perf_counter() - begin)
        # Of either the quickest third: what others do on the machine meets them by chance.
        runs = sorted(runs, key=lambda run: max(s.end_ns for s in run.nodes))[:15]
        measured = statistics.mean(sorted(times)[:15])
        at_once = max(len({s.thread for s in run.nodes}) for run in runs)
        model = tn.placement.DeviceModel("/cpu:0", slots=at_once)
        found = tn.placement.explain(fetches=fetch, feeds=list(feed),
                                     profile=tn.placement.Profile.from_runs(runs),
                                     options=tn.placement.Options(devices=[model]))
    return measured, found.makespan


def accuracy():
    print("\n| step | threads | measured ms | predicted ms | predicted / measured |"
          "\n|---|---|---|---|---|")
    for network in (perceptron, convolutional, recurrent, branches):
        for threads in (1, 2):
            measured, predicted = measured_step(network, threads)
            row(network.__name__, threads, "%.2f" % (1e3 * measured), "%.2f" % (1e3 * predicted),
                "%.2f" % (predicted / measured))


# --- Two tasks

CHAINS = 6
PAUSE = 0.1  # seconds before each step, in which what else the machine runs has its turn


def chains():
    """Chains of products that need nothing of one another, of a value of the first task."""
    x = tn.placeholder(tn.float32, [384, 384])
    ends = []
    for i in range(CHAINS):
        value = x * (1.0 + i)
        for _ in range(6):
            value = tn.tanh(tn.matmul(value, x))
        ends.append(value)
    return tn.add_n(ends).op, {x: np.full([384, 384], 1e-3, np.float32)}


def serve(cluster, task):
    server = tn.train.Server(json.loads(cluster), "worker", int(task))
    print("listens", flush=True)
    server.join()


def seconds_of(session, fetch, feed):
    """Of a step, the mean of the quickest third: others use the machine, too."""
    times = []
    for _ in range(60):
        time.sleep(PAUSE)
        begin = time.perf_counter()
        session.run(fetch, feed)
        times.append(time.perf_counter() - begin)
    return statistics.mean(sorted(times[5:])[:20])


def traced_runs(session, fetch, feed):
    runs = []
    for _ in range(30):
        time.sleep(PAUSE)
        runs.append(tn.RunMetadata())
        session.run(fetch, feed, tn.RunOptions(trace_level=tn.RunOptions.FULL_TRACE), runs[-1])
    return sorted(runs[5:], key=lambda run: max(s.end_ns for s in run.nodes))[:8]


def placed_over(target):
    """Seconds of a step on one task, of a placed one, predicted for that; operations elsewhere."""
    with tn.Graph().as_default():
        fetch, feed = chains()
        with tn.Session(target) as session:
            alone = seconds_of(session, fetch, feed)
            profile = tn.placement.Profile.from_runs(traced_runs(session, fetch, feed))
        profile = tn.placement.measure(target, profile=profile)
        options = tn.GraphOptions(placement=tn.placement.Options(profile=profile))
        with tn.Session(target, config=tn.ConfigProto(graph_options=options)) as session:
            found = tn.placement.explain(fetches=fetch, feeds=list(feed), session=session)
            placed = seconds_of(session, fetch, feed)
    away = sum("task:1" in node.device for node in found.nodes)
    return alone, placed, found.makespan, away


def tasks():
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        print("two tasks: skipped, for this process may use one core")
        return
    print("\n| values between tasks | one task, ms | placed over two, ms | predicted ms "
          "| predicted / measured | operations elsewhere |\n|---|---|---|---|---|---|")
    for way, memory in (("shared memory", ""), ("gRPC", "no")):
        addresses = ["localhost:%d" % port for port in ports(2)]
        servers = [["taskset", "-c", str(cores[task]), sys.executable, "-B", __file__, "serve",
                    json.dumps({"worker": addresses}), str(task)] for task in range(2)]
        with serving(servers, memory):
            alone, placed, predicted, away = placed_over("grpc://" + addresses[0])
        row(way, "%.2f" % (1e3 * alone), "%.2f" % (1e3 * placed), "%.2f" % (1e3 * predicted),
            "%.2f" % (predicted / placed), away)


# --- Clusters

SERVERS = 16
CARD = 1.33e9    # bytes per second each way: what fits 1 and 100 workers with 100 MB (of 16 Gbit/s)
LATENCY = 9e-4   # seconds: what fits one worker's scalar step


def synchronous_step(workers, total_bytes):
    """Seconds of a step in which each worker fetches all parameters from 16 servers, does next to
    nothing, and sends an update of the same size to each."""
    each = max(1, total_bytes // 4 // SERVERS)
    server = ["/job:ps/task:%d/cpu:0" % task for task in range(SERVERS)]
    worker = ["/job:worker/task:%d/cpu:0" % task for task in range(workers)]
    with tn.Graph().as_default():
        variables, updates = [], []
        for device in server:
            with tn.device(device):
                variables.append(tn.Variable(tn.zeros([each])))
        sent = [[] for _ in server]
        for other in worker:
            with tn.device(other):
                taken = [tn.negative(v) for v in variables]
                with tn.control_dependencies(taken):
                    for updates_of, value in zip(sent, taken):
                        updates_of.append(tn.square(value))
        for device, v, updates_of in zip(server, variables, sent):
            with tn.device(device):
                updates.append(v.assign_add(tn.add_n(updates_of)).op)
        options = tn.placement.Options(
            devices=[tn.placement.DeviceModel("", seconds_per_node=0, bytes_per_second=1e13,
                                              flops_per_second=1e13)],
            links=[tn.placement.Link("", "", latency=LATENCY, bytes_per_second=CARD,
                                     shared_by="both")])
        return tn.placement.explain(fetches=updates, devices=server + worker,
                                    options=options).makespan


def parameters():
    published = {("scalar", 1): 1.8, ("scalar", 100): 8.8, ("100 MB", 1): 147, ("100 MB", 100): 613,
                 ("1 GB", 1): 1010, ("1 GB", 100): 7160}
    print("\n| dense parameters | workers | predicted ms | published ms | ratio |"
          "\n|---|---|---|---|---|")
    for name, size_of in (("scalar", 4 * SERVERS), ("100 MB", 10 ** 8), ("1 GB", 10 ** 9)):
        for workers in (1, 2, 5, 10, 25, 50, 100, 200, 500, 1024):
            if name != "100 MB" and workers not in (1, 100):
                continue
            predicted = 1e3 * synchronous_step(workers, size_of)
            known = published.get((name, workers))
            row(name, workers, "%.1f" % predicted, known or "",
                "%.2f" % (predicted / known) if known else "")


IMAGES = 32                # per worker and step
PARAMETER_BYTES = 4 * 23.8e6
INCEPTION_SERVERS = 17
# Seconds of a K40 for a step. One worker's figure is not published with the curve; this is what
# makes 200 workers, were there no network, 2,500 images/s.
STEP = 200 * IMAGES / 2500


def inception():
    """Workers do not wait for one another: as many steps as the servers' cards let through."""
    print("\n| workers | predicted images/s | without a network | published |\n|---|---|---|---|")
    for workers in (1, 25, 50, 100, 200, 400, 1024):
        seconds = (asynchronous_steps(workers, 4) - asynchronous_steps(workers, 2)) / 2
        row(workers, "%.0f" % (workers * IMAGES / seconds), "%.0f" % (workers * IMAGES / STEP),
            {200: 2300}.get(workers, ""))


def asynchronous_steps(workers, steps):
    """Seconds of so many steps of every worker."""
    each = int(PARAMETER_BYTES / 4 / INCEPTION_SERVERS)
    server = ["/job:ps/task:%d/cpu:0" % task for task in range(INCEPTION_SERVERS)]
    worker = ["/job:worker/task:%d/cpu:0" % task for task in range(workers)]
    with tn.Graph().as_default():
        variables = []
        for device in server:
            with tn.device(device):
                variables.append(tn.Variable(tn.zeros([each]), name="v"))
        updates = [[None] * INCEPTION_SERVERS for _ in worker]
        for _ in range(steps):
            for other, done in zip(worker, updates):
                for k, (device, v) in enumerate(zip(server, variables)):
                    with tn.device(device), tn.control_dependencies([done[k]] if done[k] else []):
                        taken = v.read_value()
                    with tn.device(other):
                        gradient = tn.negative(taken)
                    with tn.device(device):
                        done[k] = tn.reduce_max(gradient).op
        options = tn.placement.Options(
            devices=[tn.placement.DeviceModel("/job:worker", bytes_per_second=1e15,
                                              seconds_per_node=STEP / INCEPTION_SERVERS),
                     tn.placement.DeviceModel("/job:ps", seconds_per_node=0, slots=1000,
                                              flops_per_second=1e13, bytes_per_second=1e13)],
            links=[tn.placement.Link("", "", latency=LATENCY, bytes_per_second=CARD,
                                     shared_by="both")])
        return tn.placement.explain(fetches=updates, devices=server + worker,
                                    options=options).makespan


PARTS = {"size": size, "accuracy": accuracy, "tasks": tasks, "parameters": parameters,
         "inception": inception}


def main():
    if sys.argv[1:2] == ["serve"]:
        return serve(*sys.argv[2:])
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("parts", nargs="*", metavar="PART", help=", ".join(PARTS))
    chosen = parser.parse_args().parts
    for part in chosen:
        if part not in PARTS:
            parser.error("there is no part %r, there are %s" % (part, ", ".join(PARTS)))
    for part in chosen or PARTS:
        PARTS[part]()
    return None


if __name__ == "__main__":
    main()
