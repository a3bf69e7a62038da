# SPDX-License-Identifier: Apache-2.0
"""Queues: what goes in comes out, in order; who waits is served, cancelled or told."""

import os
import random
import subprocess
import sys
import threading
import time
from collections import Counter, deque

import numpy as np
import pytest

import treenail as tn


@pytest.fixture(name="sess")
def _sess():
    with tn.Session() as session:
        yield session


def started(target, *args):
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    return thread


class Waiting:
    """A run in a thread of its own, and what became of it."""

    def __init__(self, session, fetches, feed_dict=None, options=None):
        self.value = self.error = None
        self._thread = started(self._run, session, fetches, feed_dict, options)

    def _run(self, session, fetches, feed_dict, options):
        try:
            self.value = session.run(fetches, feed_dict, options)
        except tn.errors.OpError as error:
            self.error = error

    def waits(self):
        self._thread.join(0.05)
        return self._thread.is_alive()

    def result(self):
        self._thread.join(60)
        assert not self._thread.is_alive()
        if self.error is not None:
            raise self.error
        return self.value


# --- In and out -----------------------------------------------------------------------------------

def test_elements_of_one_component(sess):
    queue = tn.FIFOQueue(10, tn.float32, [2])
    put, out, size = queue.enqueue([[1.0, 2.0]]), queue.dequeue(), queue.size()
    sess.run(put)
    assert sess.run(size) == 1
    np.testing.assert_array_equal(sess.run(out), [1, 2])
    sess.run(queue.enqueue_many(np.arange(8).reshape(4, 2)))
    np.testing.assert_array_equal(sess.run(queue.dequeue_many(3)), [[0, 1], [2, 3], [4, 5]])
    assert sess.run([size, queue.is_closed()]) == [1, False]


def test_elements_of_several_components(sess):
    queue = tn.FIFOQueue(10, [tn.int32, tn.string], [[], [2]])
    sess.run(queue.enqueue((1, ["a", "b"])))
    sess.run(queue.enqueue_many([[2, 3], [["c", "d"], ["e", "f"]]]))
    number, words = sess.run(queue.dequeue())
    assert number == 1 and words.tolist() == [b"a", b"b"]
    numbers, words = sess.run(queue.dequeue_many(2))
    assert numbers.tolist() == [2, 3] and words.tolist() == [[b"c", b"d"], [b"e", b"f"]]


def test_elements_with_names(sess):
    queue = tn.PaddingFIFOQueue(10, [tn.int32, tn.float32], [[], [None]], names=["i", "f"])
    assert queue.names == ["i", "f"]
    sess.run(queue.enqueue({"f": [0.5], "i": 1}))
    sess.run(queue.enqueue({"i": 2, "f": [1.5, 2.5]}))
    batch = sess.run(queue.dequeue_many(2))
    assert batch["i"].tolist() == [1, 2] and batch["f"].tolist() == [[0.5, 0], [1.5, 2.5]]


@pytest.mark.parametrize("dtype", [
    tn.float16, tn.bfloat16, tn.float32, tn.float64, tn.int8, tn.uint8, tn.int16, tn.uint16,
    tn.int32, tn.uint32, tn.int64, tn.uint64, tn.bool, tn.complex64, tn.complex128, tn.string],
    ids=lambda dtype: dtype.name)
def test_elements_of_all_dtypes(sess, dtype):
    queue = tn.FIFOQueue(10, dtype, [3])
    values = tn.constant(["x", "", "z"]) if dtype == tn.string else tn.cast([1, 0, 1], dtype)
    sess.run([queue.enqueue([values]), queue.enqueue_many([[values, values]])])
    wanted = sess.run(values)
    np.testing.assert_array_equal(sess.run(queue.dequeue()), wanted)
    np.testing.assert_array_equal(sess.run(queue.dequeue_many(2)), [wanted, wanted])


def test_handles_are_elements(sess):
    inner = tn.FIFOQueue(10, tn.int32, [])
    outer = tn.FIFOQueue(10, tn.resource, [])
    sess.run([outer.enqueue([inner.queue_ref]), inner.enqueue([7])])
    reached = tn.QueueBase([tn.int32], [[]], None, outer.dequeue())
    assert sess.run(reached.dequeue()) == 7


def test_a_queue_of_a_list(sess):
    queues = [tn.FIFOQueue(10, tn.int32, [2, i]) for i in (3, 4)]
    for i, queue in enumerate(queues):
        sess.run(queue.enqueue([np.full((2, 3 + i), i)]))
    which = tn.placeholder(tn.int32, [])
    queue = tn.QueueBase.from_list(which, queues)
    out = queue.dequeue()
    assert out.shape.as_list() == [2, None]
    assert sess.run(out, {which: 1}).shape == (2, 4)
    assert sess.run(out, {which: 0}).shape == (2, 3)


def test_shapes_are_known_when_the_graph_is_built():
    n = tn.placeholder(tn.int32, [])
    queue = tn.FIFOQueue(10, [tn.float32, tn.int32], [[2, 3], []])
    assert [t.shape.as_list() for t in queue.dequeue()] == [[2, 3], []]
    assert [t.shape.as_list() for t in queue.dequeue_many(5)] == [[5, 2, 3], [5]]
    assert [t.shape.as_list() for t in queue.dequeue_many(n)] == [[None, 2, 3], [None]]
    assert [t.shape.as_list() for t in queue.dequeue_up_to(5)] == [[None, 2, 3], [None]]
    assert tn.PaddingFIFOQueue(3, tn.int32, [[None, 2]]).dequeue_many(4).shape.as_list() == [
        4, None, 2]
    assert tn.FIFOQueue(3, tn.int32).dequeue().shape.ndims is None
    assert [t.shape.as_list() for t in tn.PriorityQueue(3, tn.int32, [[4]]).dequeue_many(2)] == [
        [2], [2, 4]]


def test_what_follows_a_dequeue_is_planned_for_its_shape(sess):
    queue = tn.FIFOQueue(10, tn.float32, [3])
    sess.run(queue.enqueue_many(np.eye(3)))
    y = tn.reduce_sum(tn.matmul(queue.dequeue_many(3), tn.ones([3, 2])) * 2.0)
    assert sess.run(y) == 12
    sess.run(queue.enqueue_many(np.eye(3)))
    n = tn.placeholder(tn.int32, [])
    y = tn.reduce_sum(tn.matmul(queue.dequeue_many(n), tn.ones([3, 2])) * 2.0)
    assert [sess.run(y, {n: 1}), sess.run(y, {n: 2})] == [4, 8]


def test_both_ends_in_one_run(sess):
    queue = tn.FIFOQueue(1, tn.int32, [])
    out, put = queue.dequeue_many(3), queue.enqueue_many([[1, 2, 3]])
    value, _ = sess.run([out, put])
    assert value.tolist() == [1, 2, 3]


def test_what_is_in_belongs_to_the_session():
    queue = tn.FIFOQueue(10, tn.int32, [])
    put, size = queue.enqueue([1]), queue.size()
    with tn.Session() as one, tn.Session() as two:
        one.run(put)
        assert [one.run(size), two.run(size)] == [1, 0]


def test_a_shared_name_means_one_queue(sess):
    a, b = (tn.FIFOQueue(10, tn.int32, [], shared_name="both") for _ in range(2))
    sess.run(a.enqueue([5]))
    assert sess.run(b.dequeue()) == 5


def test_names_and_texts():
    with tn.name_scope("scope"):
        queue = tn.RandomShuffleQueue(10, 2, [tn.int32, tn.string], [[], []], name="mixed")
    assert queue.name == "mixed" and queue.queue_ref.op.name == "scope/mixed"
    assert repr(queue) == "<tn.RandomShuffleQueue 'mixed' of int32, string>"
    assert queue.enqueue([1, "a"]).name == "mixed_enqueue"
    assert queue.dequeue()[0].op.name == "mixed_Dequeue"
    assert queue.size().op.name == "mixed_Size"
    assert queue.dequeue_many(2, name="own")[0].op.name == "own"
    assert tn.queue.FIFOQueue is tn.FIFOQueue and tn.queue.QueueBase is tn.QueueBase


# --- Order ----------------------------------------------------------------------------------------

def test_a_seed_gives_one_order():
    def order(seed):
        queue = tn.RandomShuffleQueue(100, 0, tn.int32, [], seed=seed)
        with tn.Session() as session:
            session.run(queue.enqueue_many([np.arange(20)]))
            return session.run(queue.dequeue_many(20)).tolist()
    assert order(3) == order(3) != order(4)
    assert sorted(order(3)) == list(range(20)) != order(3)
    assert order(None) != order(None)


def test_min_after_dequeue(sess):
    queue = tn.RandomShuffleQueue(100, 3, tn.int32, [])
    sess.run(queue.enqueue_many([np.arange(5)]))
    sess.run(queue.dequeue_many(2))
    waiting = Waiting(sess, queue.dequeue())
    assert waiting.waits()
    sess.run(queue.close())
    waiting.result()
    assert sess.run(queue.size()) == 2


def test_priorities(sess):
    queue = tn.PriorityQueue(100, [tn.string], [[]], names=["at", "what"])
    sess.run(queue.enqueue_many({"at": [3, 1, 2, 1], "what": ["c", "a", "b", "a2"]}))
    sess.run(queue.enqueue({"at": -5, "what": "first"}))
    batch = sess.run(queue.dequeue_many(5))
    assert batch["what"].tolist() == [b"first", b"a", b"a2", b"b", b"c"]
    assert batch["at"].tolist() == [-5, 1, 1, 2, 3]


def test_padding(sess):
    queue = tn.PaddingFIFOQueue(10, [tn.float32, tn.string], [[None, 2], [None]])
    for rows in (1, 3, 0):
        sess.run(queue.enqueue([np.full((rows, 2), rows), ["w"] * rows]))
    one, words = sess.run(queue.dequeue())
    assert one.shape == (1, 2) and words.tolist() == [b"w"]
    blocks, words = sess.run(queue.dequeue_many(2))
    assert blocks[0].tolist() == [[3, 3]] * 3 and blocks[1].tolist() == [[0, 0]] * 3
    assert words.tolist() == [[b"w"] * 3, [b""] * 3]


class Model:
    """A queue in plain Python, of which nothing waits: can(...) says what would not."""

    def __init__(self, kind, capacity, min_after):
        self.kind, self.capacity, self.min_after = kind, capacity, min_after
        self.elements, self.closed = deque(), False

    def room(self):
        return self.capacity - len(self.elements)

    def available(self):
        return max(0, len(self.elements) - (0 if self.closed else self.min_after))

    def put(self, values):
        if self.closed:
            return tn.errors.CancelledError
        self.elements.extend(values)
        return None

    def taken(self, n, up_to):
        """How many a dequeue of n gives, an error class, or None: it would wait."""
        if self.available() >= n:
            return n
        if not self.closed:
            return None
        return self.available() if up_to and self.elements else tn.errors.OutOfRangeError

    def check(self, values):
        """Takes them out, as this kind of queue may."""
        if self.kind == "random":
            left = Counter(self.elements)
            left.subtract(values)
            assert min(left.values()) >= 0
            self.elements = deque(left.elements())
            return
        if self.kind == "priority":
            self.elements = deque(sorted(self.elements, key=lambda value: value // 1000))
        assert values == [self.elements.popleft() for _ in values]


def make(kind, capacity, min_after=0):
    if kind == "fifo":
        return tn.FIFOQueue(capacity, tn.int64, [])
    if kind == "padding":
        return tn.PaddingFIFOQueue(capacity, tn.int64, [[]])
    if kind == "random":
        return tn.RandomShuffleQueue(capacity, min_after, tn.int64, [])
    return tn.PriorityQueue(capacity, tn.int64, [[]])


@pytest.mark.parametrize("kind", ["fifo", "padding", "random", "priority"])
def test_random_programs_against_a_plain_queue(sess, kind):
    for seed in range(15):
        rng = random.Random("%s %d" % (kind, seed))
        capacity, min_after = rng.randrange(3, 9), rng.randrange(3) if kind == "random" else 0
        queue, model = make(kind, capacity, min_after), Model(kind, capacity, min_after)
        pair = kind == "priority"
        given, n = tn.placeholder(tn.int64, [None]), tn.placeholder(tn.int32, [])
        put = queue.enqueue_many([given // 1000, given] if pair else [given])
        one = queue.enqueue([given[0] // 1000, given[0]] if pair else [given[0]])
        out, rows, up_to = queue.dequeue(), queue.dequeue_many(n), queue.dequeue_up_to(n)
        close, size = queue.close(), queue.size()
        for step in range(60):
            what = rng.choice(["one", "put", "put", "out", "rows", "rows", "up_to"])
            if what in ("one", "put"):
                count = 1 if what == "one" else rng.randrange(1, 5)
                if not model.closed and count > model.room():
                    continue
                values = [rng.randrange(3) * 1000 + step * 5 + i for i in range(count)]
                error = model.put(values)
                attempt(sess, one if what == "one" else put, {given: values}, error)
            else:
                count = 1 if what == "out" else rng.randrange(1, 5)
                taken = model.taken(count, what == "up_to")
                if taken is None:
                    continue
                fetch = {"out": out, "rows": rows, "up_to": up_to}[what]
                error = taken if isinstance(taken, type) else None
                values = attempt(sess, fetch, {n: count}, error)
                if values is not None:
                    values = np.ravel(values[1] if pair else values).tolist()
                    assert len(values) == taken
                    model.check(values)
            assert sess.run(size) == len(model.elements)
            if not model.closed and rng.random() < 0.03:
                model.closed = True
                sess.run(close)


def attempt(session, fetches, feed_dict, error):
    if error is None:
        return session.run(fetches, feed_dict)
    with pytest.raises(error):
        session.run(fetches, feed_dict)
    return None


@pytest.mark.parametrize("kind", ["fifo", "padding", "random", "priority"])
@pytest.mark.parametrize("capacity", [1, 7])
def test_threads_lose_and_invent_nothing(sess, kind, capacity):
    """Each producer's elements leave in its order, and every element once."""
    rng, queue, threads = random.Random(capacity), make(kind, capacity), 3
    pair = kind == "priority"
    given, n = tn.placeholder(tn.int64, [None]), tn.placeholder(tn.int32, [])
    put = queue.enqueue_many([tn.zeros_like(given), given] if pair else [given])
    rows = queue.dequeue_up_to(n)
    taken = [[] for _ in range(threads)]

    def produce(values):
        at = 0
        while at < len(values):
            count = rng.randrange(1, 12)
            sess.run(put, {given: values[at:at + count]})
            at += count

    def consume(into):
        try:
            while True:
                got = sess.run(rows, {n: rng.randrange(1, 12)})
                into.extend((got[1] if pair else got).tolist())
        except tn.errors.OutOfRangeError:
            pass
    values = [list(range(1000 * i, 1000 * i + 150)) for i in range(threads)]
    producers = [started(produce, v) for v in values]
    consumers = [started(consume, into) for into in taken]
    for thread in producers:
        thread.join(120)
    sess.run(queue.close())
    for thread in consumers:
        thread.join(120)
        assert not thread.is_alive()
    assert sorted(sum(taken, [])) == sum(values, [])
    if kind != "random":
        for into in taken:
            for i in range(threads):
                mine = [value for value in into if value // 1000 == i]
                assert mine == sorted(mine)


# --- Waiting --------------------------------------------------------------------------------------

def test_a_dequeue_waits_for_another_thread(sess):
    queue = tn.FIFOQueue(1, tn.int32, [])
    value = tn.placeholder(tn.int32, [])
    put, out = queue.enqueue([value]), queue.dequeue() + 1
    waiting = Waiting(sess, out)
    assert waiting.waits()
    sess.run(put, {value: 41})
    assert waiting.result() == 42
    sess.run(put, {value: 1})
    blocked = Waiting(sess, put, {value: 2})
    assert blocked.waits()
    assert sess.run(out) == 2
    blocked.result()


def test_many_wait_and_are_served_in_turn(sess):
    queue = tn.FIFOQueue(100, tn.int32, [])
    out = queue.dequeue()
    waiting = []
    for _ in range(8):
        waiting.append(Waiting(sess, out))
        assert waiting[-1].waits()
    sess.run(queue.enqueue_many([np.arange(8)]))
    assert [w.result() for w in waiting] == list(range(8))


def test_a_closed_queue_wakes_who_waits(sess):
    queue = tn.FIFOQueue(1, tn.int32, [])
    many = Waiting(sess, queue.dequeue_many(3))
    sess.run(queue.enqueue([5]))
    assert many.waits()
    sess.run(queue.close())
    with pytest.raises(tn.errors.OutOfRangeError,
                       match=r"FIFOQueue 'fifo_queue' is closed and has insufficient elements "
                             r"\(requested 3, current size 1\)"):
        many.result()
    assert sess.run(queue.dequeue()) == 5


def test_a_cancelling_close_fails_pending_enqueues(sess):
    queue = tn.FIFOQueue(1, tn.int32, [])
    pending = Waiting(sess, queue.enqueue_many([[1, 2]]))
    assert pending.waits()
    gentle = Waiting(sess, queue.close())
    assert gentle.waits()
    sess.run(queue.close(cancel_pending_enqueues=True))
    for waiting in (pending, gentle):
        with pytest.raises(tn.errors.CancelledError, match="FIFOQueue 'fifo_queue' is closed"):
            waiting.result()
    assert sess.run(queue.dequeue_up_to(5)).tolist() == [1]


def test_a_session_that_is_closed_ends_what_waits():
    queue = tn.FIFOQueue(1, tn.int32, [])
    session = tn.Session()
    waiting = [Waiting(session, queue.dequeue()), Waiting(session, queue.dequeue_many(4))]
    assert all(w.waits() for w in waiting)
    session.close()
    for w in waiting:
        with pytest.raises(tn.errors.CancelledError):
            w.result()


def test_a_deadline_ends_what_waits(sess):
    queue = tn.FIFOQueue(10, tn.int32, [])
    sess.run(queue.enqueue_many([[1, 2]]))
    begin = time.monotonic()
    with pytest.raises(tn.errors.DeadlineExceededError, match="100 ms"):
        sess.run(queue.dequeue_many(3), options=tn.RunOptions(timeout_in_ms=100))
    assert time.monotonic() - begin < 30
    assert sess.run(queue.dequeue_many(2)).tolist() == [1, 2]


def test_an_error_beside_it_ends_what_waits(sess):
    queue = tn.FIFOQueue(1, tn.int32, [])
    x = tn.placeholder(tn.float32, [None])
    with pytest.raises(tn.errors.InvalidArgumentError, match="x must be positive"):
        sess.run([queue.dequeue(), tn.assert_positive(x, message="x must be positive")],
                 {x: [-1]})
    assert sess.run(queue.size()) == 0


def in_a_process(program):
    return subprocess.run([sys.executable, "-c", program], stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE, universal_newlines=True, timeout=100,
                          check=False)


INTERRUPTED = """
import os, signal, threading
import treenail as tn
queue = tn.FIFOQueue(10, tn.int32, [])
session = tn.Session()
session.run(queue.enqueue([3]))
many = queue.dequeue_many(2)
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    session.run(many)
except KeyboardInterrupt:
    print("interrupted", session.run(queue.dequeue()))
handle = tn.execute("FIFOQueueV2", component_types=["int32"])
threading.Timer(0.3, lambda: os.kill(os.getpid(), signal.SIGINT)).start()
try:
    tn.execute("QueueDequeueV2", [handle], component_types=["int32"])
except KeyboardInterrupt:
    print("interrupted")
"""


def test_control_c_ends_what_waits():
    done = in_a_process(INTERRUPTED)
    assert (done.stdout, done.stderr) == ("interrupted 3\ninterrupted\n", "")


FORKED = """
import os, signal, threading, time, warnings
import treenail as tn
warnings.simplefilter("ignore", DeprecationWarning)
queue = tn.FIFOQueue(10, tn.int32, [])
value = tn.placeholder(tn.int32, [])
put, out, pair, size = (queue.enqueue([value]), queue.dequeue(), queue.dequeue_many(2),
                        queue.size())
session = tn.Session()
session.run(put, {value: 1})
threads = [threading.Thread(target=session.run, args=(pair,)) for _ in range(3)]
for thread in threads:
    thread.start()
while session.run(size):
    time.sleep(0.01)
pid = os.fork()
if pid == 0:  # has none of the runs that wait, nor what they have taken
    signal.alarm(60)
    session.run(put, {value: 7})
    os._exit(0 if session.run(out) == 7 and session.run(size) == 0 else 1)
_, status = os.waitpid(pid, 0)
print(os.waitstatus_to_exitcode(status))
for i in range(5):
    session.run(put, {value: i})
for thread in threads:
    thread.join()
print(session.run(size))
"""


def test_a_fork_while_runs_wait():
    done = in_a_process(FORKED)
    assert (done.stdout, done.stderr) == ("0\n0\n", "")


# --- At once --------------------------------------------------------------------------------------

def test_at_once_without_a_graph():
    handle = tn.execute("FIFOQueueV2", component_types=["float32", "string"], shapes=[[2], []])
    for i in range(3):
        element = [np.full(2, i, np.float32), "e%d" % i]
        assert tn.execute("QueueEnqueueV2", [handle, element]) is None
    assert tn.execute("QueueSizeV2", [handle]).numpy() == 3
    numbers, words = tn.execute("QueueDequeueManyV2", [handle, 2],
                                component_types=["float32", "string"])
    assert numbers.numpy().tolist() == [[0, 0], [1, 1]]
    assert words.numpy().tolist() == [b"e0", b"e1"]
    tn.execute("QueueCloseV2", [handle])
    assert tn.execute("QueueIsClosedV2", [handle]).numpy()
    with pytest.raises(tn.errors.CancelledError, match="FIFOQueue '<unnamed>' is closed"):
        tn.execute("QueueEnqueueV2", [handle, [np.zeros(2, np.float32), ""]])


def test_at_once_one_thread_waits_for_another():
    handle = tn.execute("FIFOQueueV2", component_types=["int64"])
    got = []
    thread = started(lambda: got.append(
        tn.execute("QueueDequeueV2", [handle], component_types=["int64"])[0].numpy()))
    thread.join(0.1)
    assert thread.is_alive()
    tn.execute("QueueEnqueueV2", [handle, [np.int64(9)]])
    thread.join(60)
    assert got == [9]


# --- Much -----------------------------------------------------------------------------------------

def test_a_hundred_thousand_elements(sess):
    queue = tn.FIFOQueue(-1, [tn.float32, tn.int64], [[4], []])
    values = [np.arange(400_000, dtype=np.float32).reshape(-1, 4), np.arange(100_000)]
    sess.run(queue.enqueue_many(values))
    assert sess.run(queue.size()) == 100_000
    got = sess.run(queue.dequeue_many(100_000))
    np.testing.assert_array_equal(got[0], values[0])
    np.testing.assert_array_equal(got[1], values[1])


def test_memory_of_elements_goes_with_them(sess):
    queue = tn.FIFOQueue(-1, tn.float32, [1 << 20])
    value = tn.placeholder(tn.float32, [1 << 20])
    put, out = queue.enqueue([value]), queue.dequeue()
    array = np.zeros(1 << 20, np.float32)
    sess.run(put, {value: array})
    sess.run(out)

    def resident():
        with open("/proc/self/statm", encoding="ascii") as stream:
            return int(stream.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")
    before = resident()
    for _ in range(200):
        sess.run(put, {value: array})
        sess.run(out)
    assert resident() - before < 64 << 20


# --- Wrong ----------------------------------------------------------------------------------------

WRONG = [
    (lambda: tn.FIFOQueue(10, tn.int32, [[], []]),
     "Queue shapes must have the same length as dtypes, received len(shapes)=2, len(dtypes)=1"),
    (lambda: tn.FIFOQueue(10, [tn.int32, tn.int32], names="a"),
     "List of names must have the same length as the list of dtypes: 1 names, 2 dtypes"),
    (lambda: tn.FIFOQueue(10, tn.int32, [[None]]), "All shapes must be fully defined: ['(?,)']"),
    (lambda: tn.FIFOQueue(10, tn.int32, 3),
     "shapes must be a TensorShape or a list or tuple of TensorShapes, not 3"),
    (lambda: tn.PaddingFIFOQueue(10, [tn.int32, tn.int32], [[None]]),
     "Queue shapes must have the same length as dtypes"),
    (lambda: tn.PaddingFIFOQueue(10, tn.int32, None),
     "Shapes must be provided for all components, but received 1 dtypes and 0 shapes."),
    (lambda: tn.PaddingFIFOQueue(10, tn.int32, [tn.TensorShape(None)]),
     "All shapes must have a defined rank"),
    (lambda: tn.QueueBase([tn.int32], None, None, tn.constant(1)),
     "queue_ref must be a queue's handle, a tensor of dtype resource, not"),
    (lambda: tn.QueueBase.from_list(0, [3]), "A list of queues expected, not [3]"),
    (lambda: tn.QueueBase.from_list(0, [tn.FIFOQueue(1, tn.int32), tn.FIFOQueue(1, tn.bool)]),
     "Queues do not have matching component dtypes: [['int32'], ['bool']]"),
    (lambda: tn.QueueBase.from_list(0, [tn.FIFOQueue(1, tn.int32, names="a"),
                                        tn.FIFOQueue(1, tn.int32)]),
     "Queues do not have matching component names: [['a'], None]"),
    (lambda: tn.FIFOQueue(10, [tn.int32, tn.int32]).enqueue(1),
     "Wrong number of components in tuple. Expected 2, got 1"),
    (lambda: tn.FIFOQueue(10, tn.int32).enqueue({"a": 1}),
     "Queue must have names to enqueue a dictionary"),
    (lambda: tn.FIFOQueue(10, tn.int32, names="a").enqueue([1]),
     "You must enqueue a dictionary in a Queue with names"),
    (lambda: tn.FIFOQueue(10, tn.int32, names="a").enqueue({"b": 1}),
     "Keys in dictionary to enqueue do not match names of Queue.  Dictionary: ['b'], Queue: "
     "['a']"),
    (lambda: tn.FIFOQueue(10, tn.int32, [2]).enqueue([[1, 2, 3]]),
     "Shapes (3,) and (2,) are incompatible"),
    (lambda: tn.FIFOQueue(10, tn.int32, [2]).enqueue_many([[1, 2]]),
     "Shapes (2,) and (?, 2) are incompatible"),
    (lambda: tn.FIFOQueue(10, [tn.int32, tn.int32], [[], []]).enqueue_many([[1, 2], [3]]),
     "All input tensors must have the same size in the 0th dimension: they are 2 and 1"),
    (lambda: tn.FIFOQueue(10, tn.int32, [2]).dequeue_many(-1),
     "n = -1 elements are asked for; 0 or more are needed"),
    (lambda: tn.raw_ops.QueueDequeueV2(tn.FIFOQueue(10, tn.int32).queue_ref,
                                       component_types=[tn.bool]),
     "Type mismatch in tuple component 0. Expected int32, got bool"),
    (lambda: tn.raw_ops.FIFOQueueV2(component_types=[tn.bool], shapes=[[], []]),
     "shapes has 2 entries for 1 component_types: as many are needed, or none"),
]


@pytest.mark.parametrize("number", range(len(WRONG)))
def test_wrong_when_the_graph_is_built(number):
    wrong, text = WRONG[number]
    with pytest.raises((ValueError, TypeError)) as caught:
        wrong()
    assert text in str(caught.value)


WRONG_IN_A_RUN = [
    (lambda: tn.FIFOQueue(0, tn.int32).size(), "capacity = 0 has room for no element"),
    (lambda: tn.RandomShuffleQueue(4, 4, tn.int32).size(),
     "min_after_dequeue = 4 must be < capacity = 4"),
    (lambda: tn.FIFOQueue(10, tn.int32).dequeue_many(2),
     "DequeueMany and DequeueUpTo require the components to have specified shapes"),
    (lambda: tn.FIFOQueue(10, tn.int32, [2]).enqueue([tn.placeholder_with_default([1], None)]),
     "Shape mismatch in tuple component 0. Expected [2], got [1]"),
    (lambda: [q.size() for q in (tn.FIFOQueue(10, tn.int32, shared_name="q"),
                                 tn.FIFOQueue(11, tn.int32, shared_name="q"))],
     "Shared queue 'q' has capacity 10 but requested capacity was 11"),
    (lambda: [q.size() for q in (tn.FIFOQueue(10, tn.int32, shared_name="q"),
                                 tn.FIFOQueue(10, tn.bool, shared_name="q"))],
     "Shared queue 'q' has component types [int32] but requested component types was [bool]"),
    (lambda: tn.QueueBase([tn.int32], None, None, tn.Variable(1).handle).dequeue(),
     "the handle refers to a Variable; a queue's handle is needed"),
]


@pytest.mark.parametrize("number", range(len(WRONG_IN_A_RUN)))
def test_wrong_when_it_runs(sess, number):
    wrong, text = WRONG_IN_A_RUN[number]
    with pytest.raises(tn.errors.InvalidArgumentError) as caught:
        sess.run(wrong())
    assert text in str(caught.value)


def test_a_timeout_of_an_operation_is_refused(sess):
    handle = tn.FIFOQueue(10, tn.int32).queue_ref
    with pytest.raises(tn.errors.UnimplementedError, match="timeout_ms = 5: only -1"):
        sess.run(tn.raw_ops.QueueDequeueV2(handle, component_types=[tn.int32], timeout_ms=5))


def test_errors_name_the_operation_and_where_it_was_made(sess):
    queue = tn.FIFOQueue(10, tn.int32, [])
    sess.run(queue.close())
    with pytest.raises(tn.errors.CancelledError) as caught:
        sess.run(queue.enqueue([1], name="late"))
    assert str(caught.value).startswith(
        '[QueueEnqueueV2 node "late"] FIFOQueue \'fifo_queue\' is closed')
    assert "test_queues.py" in str(caught.value)
