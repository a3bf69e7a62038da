# SPDX-License-Identifier: Apache-2.0
"""The end of a process whose daemon threads are in the middle of something: quiet, whatever it is.

CPython ends such a thread where it asks for the GIL again. TREENAIL_TEST_REPEAT runs each case that
many times (once when unset).
"""

import os
import subprocess
import sys

import pytest

REPEAT = int(os.environ.get("TREENAIL_TEST_REPEAT", "1"))

START = """
import sys, threading, time
import numpy as np
import treenail as tn

begun = threading.Semaphore(0)

def daemons(work, count=2):
    def forever():
        begun.release()
        while True:
            work()
    for _ in range(count):
        threading.Thread(target=forever, daemon=True).start()
    for _ in range(count):
        begun.acquire()
    time.sleep(0.02)
"""

WORK = {
    "long products": """
x = tn.placeholder(tn.float32, [500, 500])
y = tn.matmul(tn.matmul(x, x), x)
session = tn.Session()
value = np.ones((500, 500), np.float32)
daemons(lambda: session.run(y, {x: value}))
""",
    "long element-wise work": """
x = tn.placeholder(tn.float32, [2_000_000])
y = tn.sin(x) + tn.exp(x)
session = tn.Session()
value = np.ones(2_000_000, np.float32)
daemons(lambda: session.run(y, {x: value}))
""",
    "runs that fail": """
x = tn.placeholder(tn.float32, [None])
y = tn.check_numerics(x, "not finite")
session = tn.Session()
value = np.full(300_000, np.nan, np.float32)
def work():
    try:
        session.run(y, {x: value})
    except tn.errors.InvalidArgumentError:
        pass
daemons(work)
""",
    "graphs being built": """
def work():
    with tn.Graph().as_default():
        x = tn.placeholder(tn.float32, [3, 3])
        for _ in range(50):
            x = tn.matmul(x, x) + 1.0
        tn.gradients(x, [x])
daemons(work)
""",
    "one graph, built by several": """
x = tn.placeholder(tn.float32, [3, 3])
graph = tn.get_default_graph()
def work():
    with graph.as_default():
        tn.matmul(x, x) + 1.0
daemons(work, 4)
""",
    "gradients written in Python": """
@tn.RegisterGradient("Twice")
def twice(op, grad):
    for _ in range(1000):
        pass
    return 2.0 * grad
def work():
    with tn.Graph().as_default() as g, g.gradient_override_map({"Identity": "Twice"}):
        x = y = tn.placeholder(tn.float32, [3])
        for _ in range(20):
            y = tn.identity(y)
        tn.gradients(y, [x])
daemons(work)
""",
    "sessions that come and go": """
x = tn.Variable(np.ones(100_000, np.float32))
y = x.assign_add(tn.ones_like(x))
start = tn.global_variables_initializer()
def work():
    with tn.Session() as session:
        session.run(start)
        session.run(y)
daemons(work)
""",
    "timeouts": """
x = tn.placeholder(tn.float32, [2_000_000])
y = tn.sin(x) + tn.exp(x)
session = tn.Session()
value = np.ones(2_000_000, np.float32)
options = tn.RunOptions(timeout_in_ms=1)
def work():
    try:
        session.run(y, {x: value}, options=options)
    except tn.errors.DeadlineExceededError:
        pass
daemons(work)
""",
    "checkpoints": """
try:
    import h5py
except ImportError:
    pass
v = tn.Variable(np.ones(50_000, np.float32))
saver = tn.train.Saver()
session = tn.Session()
session.run(tn.global_variables_initializer())
def work():
    path = sys.argv[1] + "/" + str(threading.get_ident())
    saver.save(session, path)
    saver.restore(session, path)
daemons(work)
""",
}


@pytest.mark.parametrize("ending", ["", "sys.exit(0)", "import gc; gc.collect()"],
                         ids=["end", "exit", "collect"])
@pytest.mark.parametrize("name", WORK)
def test_exit_while_daemon_threads_work(name, ending, tmp_path):
    for _ in range(REPEAT):
        done = subprocess.run([sys.executable, "-c", START + WORK[name] + ending, tmp_path],
                              capture_output=True, text=True)
        assert (done.returncode, done.stderr) == (0, ""), name


def test_exit_while_rules_of_gradients_are_in_the_middle_of_something(tmp_path):
    # On processors that others want, a thread stands inside a rule more often than between two.
    command = [sys.executable, "-c", START + WORK["gradients written in Python"], tmp_path]
    for _ in range(2 * REPEAT):
        many = [subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE,
                                 text=True) for _ in range(6)]
        ends = [(process.communicate()[1], process.returncode) for process in many]
        assert ends == [("", 0)] * len(many)
