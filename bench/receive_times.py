#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""When a task should ask for values of another: at once, or when what needs them is near.

A worker multiplies a batch by LAYERS matrices, each of which it receives from a parameter server.
"at once" is what Treenail does: all are asked for when the step begins. "when near": a matrix is
sent when the layer before last has been computed. Prints for each the time of a step, and how much
memory the worker's process takes more than before the first step. Run by build/python3.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time

from figure_clusters import ports, serving

LAYERS, WIDTH, STEPS = 12, 1024, 15  # 4 MiB each


def serve(cluster: dict) -> None:
    import treenail as tn
    tn.train.Server(cluster, "ps").join()


def resident() -> int:
    """Bytes of this process that lie in memory, shared ones as well."""
    with open("/proc/self/status", encoding="utf-8") as status:
        return next(int(line.split()[1]) << 10 for line in status if line.startswith("VmRSS"))


def step_of(tn, near: bool, batch: int):
    """An operation that computes all layers."""
    weights = []
    for i in range(LAYERS):
        with tn.device("/job:ps"):
            weights.append(tn.get_variable("w%d_%d_%d" % (i, near, batch), [WIDTH, WIDTH]))
    with tn.device("/job:worker"):
        values = [tn.ones([batch, WIDTH])]
    for i, weight in enumerate(weights):
        with tn.device("/job:ps"), tn.control_dependencies([values[i - 1]] if near and i else []):
            sent = tn.identity(weight)
        with tn.device("/job:worker"):
            values.append(tn.tanh(tn.matmul(values[-1], sent)))
    return values[-1].op


def work(cluster: dict, near: bool, batch: int) -> None:
    import treenail as tn
    server = tn.train.Server(cluster, "worker")
    step = step_of(tn, near, batch)
    with tn.Session(server.target) as session:
        session.run(tn.global_variables_initializer())
        run = session.make_callable(step)
        before, took, most = resident(), [], 0
        for _ in range(STEPS):
            begun = time.perf_counter()
            run()
            took.append(time.perf_counter() - begun)
            most = max(most, resident())
    print(json.dumps([sorted(took)[STEPS // 2] * 1e3, (most - before) / 2 ** 20]))


def main() -> None:
    print("| values | batch | asked for | a step | memory |\n|---|---|---|---|---|")
    for way, memory in (("gRPC", "no"), ("lent", "")):
        for batch in (16, 256):
            for near in (False, True):
                cluster = {job: ["localhost:%d" % port]
                           for job, port in zip(("ps", "worker"), ports(2))}
                program = [sys.executable, "-B", os.path.abspath(__file__)]
                text = json.dumps(cluster)
                with serving([program + ["serve", text]], memory, wait=False):
                    told = subprocess.run(
                        program + ["work", text, str(int(near)), str(batch)], check=True,
                        stdout=subprocess.PIPE, text=True, timeout=300,
                        env={**os.environ, "TREENAIL_SHARED_MEMORY": memory})
                took, more = json.loads(told.stdout)
                print("| %s | %d | %s | %.1f ms | %.0f MiB |" % (
                    way, batch, "when near" if near else "at once", took, more), flush=True)


if __name__ == "__main__":
    if sys.argv[1:2] == ["serve"]:
        serve(json.loads(sys.argv[2]))
    elif sys.argv[1:2] == ["work"]:
        work(json.loads(sys.argv[2]), sys.argv[3] == "1", int(sys.argv[4]))
    else:
        main()
