# SPDX-License-Identifier: Apache-2.0
"""StagingArea and MapStagingArea against a deque and a dictionary."""

import collections
import random

import numpy as np
import pytest

import treenail as tn
from waiting import Threads, check_ends_of_waiting, check_fork, started_waiting


@pytest.fixture(name="sess")
def _sess():
    with tn.Session() as session:
        yield session


# --- A queue --------------------------------------------------------------------------------------

def test_tuples_come_in_order(sess):
    area = tn.StagingArea([tn.float32, tn.string], shapes=[[None], []])
    x = tn.placeholder(tn.float32, [None])
    put, (numbers, word), size = area.put([x, tn.as_string(x[0])]), area.get(), area.size()
    assert numbers.shape.as_list() == [None] and word.shape.as_list() == []
    fed = np.float32([1, 2])
    sess.run(put, {x: fed})
    fed[:] = 9  # what is kept is a copy
    sess.run(put, {x: [3]})
    assert sess.run(size) == 2
    there = sess.run(area.peek(1))
    assert there[0].tolist() == [3]
    got = sess.run([numbers, word])
    assert got[0].tolist() == [1, 2] and got[1].startswith(b"1")
    sess.run(area.clear())
    assert sess.run(size) == 0


def test_names_make_dictionaries(sess):
    area = tn.StagingArea([tn.int32, tn.int32], names=["a", "b"], shared_name="here")
    assert (area.name, area.names, area.dtypes) == ("here", ["a", "b"], [tn.int32] * 2)
    sess.run(area.put({"b": 2, "a": 1}))
    assert sess.run(area.peek(0)) == {"a": 1, "b": 2}
    assert sess.run(area.get()) == {"a": 1, "b": 2}


def test_areas_are_apart_unless_a_name_is_shared(sess):
    first, second = tn.StagingArea([tn.int32]), tn.StagingArea([tn.int32])
    assert (first.name, second.name) == ("StagingArea", "StagingArea_1")
    sess.run(first.put(1))
    assert sess.run(second.size()) == 0
    assert sess.run(tn.StagingArea([tn.int32], shared_name="StagingArea").get())[0] == 1


@pytest.mark.parametrize("limits", [{"capacity": 2}, {"memory_limit": 8}])
def test_put_waits_for_room_and_get_for_a_tuple(sess, limits):
    area = tn.StagingArea([tn.float32], shapes=[[]], **limits)
    x = tn.placeholder(tn.float32, [])
    put, get = area.put([x]), area.get()[0]
    for i in range(2):
        sess.run(put, {x: i})
    thread, results = started_waiting(sess, put, {x: 2})
    assert sess.run(area.size()) == 2 and sess.run(get) == 0
    thread.join(60)
    assert results == [None] and [sess.run(get), sess.run(get)] == [1, 2]
    thread, results = started_waiting(sess, get)
    sess.run(put, {x: 7})
    thread.join(60)
    assert results == [7]


def test_peeks_wait_each_for_its_own(sess):
    area = tn.StagingArea([tn.int32])
    far, seen_far = started_waiting(sess, area.peek(2)[0])
    near, seen_near = started_waiting(sess, area.peek(0)[0])
    sess.run(area.put(5))
    near.join(60)
    assert seen_near == [5] and not seen_far and sess.run(area.size()) == 1
    sess.run([area.put(6), area.put(6)])
    far.join(60)
    assert seen_far == [6]


def test_one_step_ahead(sess):
    """What it is for: the next batch is put while this one is used."""
    area = tn.StagingArea([tn.float32], shapes=[[3]])
    x = tn.placeholder(tn.float32, [3])
    put, total = area.put([x]), tn.reduce_sum(area.get()[0])
    sess.run(put, {x: [0, 0, 0]})
    for i in range(1, 20):
        assert sess.run([total, put], {x: [i] * 3})[0] == 3 * (i - 1)


@pytest.mark.parametrize("seed", range(3))
def test_threads_against_a_deque(seed):
    rng, n = random.Random(seed), 150
    area = tn.StagingArea([tn.int64], capacity=rng.randint(1, 5))
    x = tn.placeholder(tn.int64, [])
    put, get, taken = area.put([x]), area.get()[0], collections.deque()
    with tn.Session() as sess:
        def give(start):
            for i in range(start, n, 3):
                sess.run(put, {x: i})

        def pick():
            for _ in range(n // 3):
                taken.append(int(sess.run(get)))
        with Threads() as threads:
            for i in range(3):
                threads.start(give, i)
                threads.start(pick)
        assert sess.run(area.size()) == 0
    assert sorted(taken) == list(range(n))


@pytest.mark.parametrize("n", [20_000, 200_000])
def test_large_tuples(sess, n):
    area = tn.StagingArea([tn.float32] * 3)
    put, get = area.put([tn.ones([n]), tn.zeros([n]), tn.range(float(n))]), area.get()
    for _ in range(10):
        sess.run(put)
    for _ in range(10):
        assert sess.run(get)[2][-1] == n - 1


# --- A map ----------------------------------------------------------------------------------------

def test_parts_meet_under_their_key(sess):
    area = tn.MapStagingArea([tn.float32, tn.int32], shapes=[[2], []], names=["x", "y"])
    key = tn.placeholder(tn.int64, [])
    sizes = [area.size(), area.incomplete_size()]
    sess.run(area.put(key, {"y": 7}), {key: 3})
    assert sess.run(sizes) == [0, 1]
    sess.run(area.put(key, {"x": [1.0, 2.0]}), {key: 3})
    assert sess.run(sizes) == [1, 0]
    seen = area.peek(3, ["y"])
    assert list(seen) == ["y"] and sess.run(seen) == {"y": 7}
    asked, part = area.get(3, [0])
    assert sess.run(asked) == 3 and sess.run(part)["x"].tolist() == [1, 2]
    with pytest.raises(tn.errors.InvalidArgumentError,
                       match="tensor at index 0 for key 3 has been taken out of staging area"):
        sess.run(area.peek(3))
    assert sess.run(area.get(3, ["y"])[1]) == {"y": 7} and sess.run(sizes) == [0, 0]


def test_the_lowest_key_comes_first(sess):
    area = tn.MapStagingArea([tn.int32], ordered=True)
    key = tn.placeholder(tn.int64, [])
    put, (first, (value,)) = area.put(key, [tn.cast(key, tn.int32) * 10], [0]), area.get()
    assert first.shape.as_list() == []
    for k in [5, -2, 9]:
        sess.run(put, {key: k})
    assert [sess.run([first, value]) for _ in range(3)] == [[-2, -20], [5, 50], [9, 90]]
    sess.run(put, {key: 1})
    sess.run(area.clear())
    assert sess.run(area.size()) == 0


def test_keys_wait_each_for_its_own(sess):
    area = tn.MapStagingArea([tn.int32], capacity=1)
    key = tn.placeholder(tn.int64, [])
    put = area.put(key, [tn.cast(key, tn.int32)], [0])
    waits = [(k, *started_waiting(sess, area.get(key)[1][0], {key: k})) for k in (1, 2)]
    for k, thread, results in reversed(waits):
        sess.run(put, {key: k})
        thread.join(60)
        assert results == [k]
    sess.run(put, {key: 3})
    thread, _ = started_waiting(sess, put, {key: 4})
    assert sess.run(area.get(key)[1][0], {key: 3}) == 3
    thread.join(60)
    assert sess.run(area.size()) == 1


@pytest.mark.parametrize("seed", range(3))
def test_threads_against_a_dictionary(seed):
    rng, n = random.Random(seed), 40
    area = tn.MapStagingArea([tn.int64] * 3, ordered=bool(seed % 2))
    key, x = tn.placeholder(tn.int64, []), tn.placeholder(tn.int64, [])
    puts = [area.put(key, [x], [i]) for i in range(3)]
    any_key, values = area.get()
    by_key, taken = area.get(key)[1], {}
    with tn.Session() as sess:
        def give(i):
            for k in random.Random(seed + i).sample(range(n), n):
                sess.run(puts[i], {key: k, x: 10 * k + i})

        def pick():
            for _ in range(n // 4):
                k, tuple_ = sess.run([any_key, values])
                taken[int(k)] = tuple_
        with Threads() as threads:
            for i in range(3):
                threads.start(give, i)
            for _ in range(2):
                threads.start(pick)
        for k in sorted(set(range(n)) - set(taken), key=lambda k: rng.random()):
            taken[k] = sess.run(by_key, {key: k})
        assert sess.run([area.size(), area.incomplete_size()]) == [0, 0]
    assert taken == {k: [10 * k + i for i in range(3)] for k in range(n)}


# --- Ends of waiting, and mistakes ----------------------------------------------------------------

def test_deadlines_and_closed_sessions():
    def get():
        area = tn.StagingArea([tn.float32])
        return area.get()[0], [area.put(1.0)]

    def get_key():
        area = tn.MapStagingArea([tn.float32])
        return area.get(4)[1][0], [area.put(4, [1.0], [0])]
    check_ends_of_waiting(get)
    check_ends_of_waiting(get_key)


def test_a_put_that_waited_in_vain_puts_nothing(sess):
    area = tn.StagingArea([tn.float32], capacity=1)
    x = tn.placeholder(tn.float32, [])
    put = area.put(x)
    sess.run(put, {x: 1})
    with pytest.raises(tn.errors.DeadlineExceededError):
        sess.run(put, {x: 2}, options=tn.RunOptions(timeout_in_ms=50))
    assert sess.run(area.get())[0] == 1 and sess.run(area.size()) == 0


def test_a_fork_while_a_thread_waits():
    check_fork("""
area = tn.StagingArea([tn.float32], capacity=1)
put, get = area.put(1.0), area.get()[0]
take = get
def give():
    session.run(put)
def child():
    session.run(put)
    assert session.run(get) == 1
""")


def test_mistakes_when_the_graph_is_built():
    with pytest.raises(ValueError, match="shapes must be the same length as dtypes, 1, not 2"):
        tn.StagingArea([tn.float32], shapes=[[], []])
    with pytest.raises(ValueError, match="shared_name must be a string, not 3"):
        tn.StagingArea([tn.float32], shared_name=3)
    area, named = tn.StagingArea([tn.float32]), tn.StagingArea([tn.float32], names=["a"])
    with pytest.raises(ValueError, match="Unexpected number of values, 2"):
        area.put([1.0, 2.0])
    with pytest.raises(ValueError, match="Received int32, the staging area has float32"):
        area.put(tn.constant(1))
    with pytest.raises(ValueError, match="must have names to put a dictionary"):
        area.put({"a": 1.0})
    with pytest.raises(ValueError, match=r"do not match names.*\['b'\]"):
        named.put({"b": 1.0})
    with pytest.raises(ValueError, match="must put a dictionary"):
        named.put([1.0])
    with pytest.raises(ValueError, match="capacity"):
        tn.StagingArea([tn.float32], capacity=-1).size()
    keyed = tn.MapStagingArea([tn.float32], names=["a"])
    with pytest.raises(ValueError, match="Named index 'z' is not in the names"):
        keyed.get(1, ["z"])
    with pytest.raises(ValueError, match="Empty indices"):
        keyed.peek(1, [])
    with pytest.raises(TypeError, match="indices must be a list, not 3"):
        keyed.get(indices=3)
    with pytest.raises(ValueError, match="numbers of indices and of tensors"):
        tn.raw_ops.MapPeek(tn.constant(1, tn.int64), [0, 1], dtypes=[tn.float32])


MISTAKES = [
    (lambda a, m: tn.StagingArea([tn.int32], shared_name="area", memory_limit=4).get()[0],
     r"staging area area has dtypes \[float32\], the operation has \[int32\]"),
    (lambda a, m: tn.StagingArea([tn.float32], shared_name="area", capacity=2).size(),
     "area has capacity 0 and memory_limit 4; it is asked for with capacity 2 and memory_limit 0"),
    (lambda a, m: tn.MapStagingArea([tn.float32], shared_name="area").size(),
     'resource "area" is a StagingArea'),
    (lambda a, m: tn.MapStagingArea([tn.float32], shared_name="map", ordered=True).size(),
     "staging area map is an unordered map; it is asked for as an ordered one"),
    (lambda a, m: a.peek(-1)[0], "index must not be negative, it is -1 for staging area area"),
    (lambda a, m: m.put(1, [2, 1.0], [1, 0]),
     r"not strictly ordered: indices\[1\] = 0 comes after 1"),
    (lambda a, m: tn.raw_ops.MapStage(tn.constant(1, tn.int64), [2], [1.0], shared_name="map",
                                      dtypes=[tn.float32, tn.int32]),
     r"indices\[0\] = 2 is not in \[0, 2\), the tuples of staging area map"),
    (lambda a, m: tn.raw_ops.MapPeek(tn.constant(1, tn.int64), [0], shared_name="map",
                                     dtypes=[tn.string])[0],
     r"index 0 in staging area map have dtype float32, the operation has string"),
]


@pytest.mark.parametrize("build, text", MISTAKES)
def test_mistakes_of_a_run(sess, build, text):
    area = tn.StagingArea([tn.float32], shared_name="area", memory_limit=4)
    keyed = tn.MapStagingArea([tn.float32, tn.int32], shared_name="map")
    sizes = [area.size(), keyed.size(), keyed.incomplete_size()]
    sess.run(sizes)
    with pytest.raises(tn.errors.InvalidArgumentError, match=text):
        sess.run(build(area, keyed))
    assert sess.run(sizes) == [0, 0, 0]


def test_what_never_fits_and_what_is_there_already(sess):
    area = tn.StagingArea([tn.float32], memory_limit=7)
    with pytest.raises(tn.errors.ResourceExhaustedError, match=(
            "combined size of 8 bytes into staging area StagingArea with a memory limit of 7")):
        sess.run(area.put([tn.ones([2])]))
    keyed = tn.MapStagingArea([tn.int32, tn.int32])
    sess.run(keyed.put(1, [1], [0]))
    with pytest.raises(tn.errors.InvalidArgumentError, match="index 0 for key 1 .* put already"):
        sess.run(keyed.put(1, [1], [0]))
    sess.run(keyed.put(1, [1], [1]))
    with pytest.raises(tn.errors.InvalidArgumentError, match="key 1 is in staging area .* already"):
        sess.run(keyed.put(1, [1, 2], [0, 1]))


def test_immediate_execution():
    area = {"shared_name": "immediate staging", "dtypes": [tn.float32]}
    tn.execute("StageClear", **area)
    with Threads() as threads:
        threads.start(lambda: tn.execute("Stage", [[np.float32(3)]], **area))
        assert tn.execute("Unstage", **area)[0].numpy() == 3
    assert tn.execute("StageSize", **area).numpy() == 0
    with pytest.raises(tn.errors.InvalidArgumentError, match="shared_name is empty"):
        tn.execute("Unstage", dtypes=[tn.float32])
