# SPDX-License-Identifier: Apache-2.0
"""Session.run of a one-op graph and of a chain of 1,000 tiny ops, unfused, one op at once, and
queues, from Python."""

import os
import sys

sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
import harness  # noqa: E402

import numpy as np  # noqa: E402
import treenail as tn  # noqa: E402
from treenail._treenail import execute_tensors  # noqa: E402

CHAIN = 1000
MANY = 1000


def queue_calls(session):
    """Elements in and out: one each in a run of its own, and MANY together."""
    queue = tn.FIFOQueue(MANY, tn.float32, [])
    one, many = tn.placeholder(tn.float32, []), tn.placeholder(tn.float32, [MANY])
    put, out = queue.enqueue([one]), queue.dequeue()
    put_many, out_many = queue.enqueue_many([many]), queue.dequeue_many(MANY)
    values = np.arange(MANY, dtype=np.float32)

    def single():
        session.run(put, {one: 1.5})
        return session.run(out)

    def together():
        session.run(put_many, {many: values})
        return session.run(out_many)
    assert single() == 1.5 and (together() == values).all()
    return {"queue": single, "queue of many": together}


def main() -> None:
    x = tn.placeholder(tn.float32, [1])
    one = tn.negative(x)
    chain = x
    for _ in range(CHAIN):
        chain = tn.add(chain, x)
    options = tn.OptimizerOptions(do_elementwise_fusion=False)
    graph_options = tn.GraphOptions(optimizer_options=options)
    session = tn.Session(config=tn.ConfigProto(graph_options=graph_options))
    value = np.array([1.5], np.float32)
    assert session.run(one, {x: value})[0] == -1.5
    assert session.run(chain, {x: value})[0] == 1.5 * (CHAIN + 1)
    feed = {x: value}
    pair = [execute_tensors("Neg", [value])] * 2
    calls = {"one op": lambda: session.run(one, feed), "chain": lambda: session.run(chain, feed),
             "execute": lambda: execute_tensors("Add", pair), **queue_calls(session)}

    def answer(request):
        return {"seconds": harness.timed(calls[request["what"]])}

    harness.serve({"version": tn.__version__}, answer)


main()
