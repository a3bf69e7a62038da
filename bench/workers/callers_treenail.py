# SPDX-License-Identifier: Apache-2.0
"""Inference of the MLP with batch 1 from one thread and from two, each with a session of its own.
Argument: threads of the pool. Requests: callers (1 or 2), fill; answers with seconds per run.
"""

import os
import sys
import threading
import time

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402
import networks  # noqa: E402
import treenail as tn  # noqa: E402

RUNS = 20  # between two looks at the clock


def made_call(threads, inputs):
    with tn.Graph().as_default() as graph:
        x = tn.placeholder(tn.float32, (None,) + inputs.shape[1:])
        w = {name: tn.Variable(value) for name, value in networks.weights("mlp").items()}
        y = tn.nn.relu(tn.matmul(x, w["w1"]) + w["b1"])
        y = tn.nn.relu(tn.matmul(y, w["w2"]) + w["b2"])
        y = tn.matmul(y, w["w3"]) + w["b3"]
        config = tn.ConfigProto(intra_op_parallelism_threads=threads)
        session = tn.Session(graph=graph, config=config)
        session.run(tn.global_variables_initializer())
    feed = {x: inputs}
    return lambda: session.run(y, feed)


def main() -> None:
    inputs, _ = networks.batch("mlp", 1)
    calls = [made_call(int(sys.argv[1]), inputs) for _ in range(2)]

    def answer(request):
        count, end = [0, 0], time.perf_counter() + request["fill"]

        def loop(caller):
            while time.perf_counter() < end:
                for _ in range(RUNS):
                    calls[caller]()
                count[caller] += RUNS

        begin = time.perf_counter()
        others = [threading.Thread(target=loop, args=(i,)) for i in range(1, request["callers"])]
        for other in others:
            other.start()
        loop(0)
        for other in others:
            other.join()
        return {"seconds": (time.perf_counter() - begin) / sum(count)}

    harness.serve({"version": tn.__version__}, answer)


main()
