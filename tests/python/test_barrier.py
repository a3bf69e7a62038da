# SPDX-License-Identifier: Apache-2.0
"""Barrier against a dictionary, from one thread and from several."""

import random

import numpy as np
import pytest

import treenail as tn
from waiting import Threads, check_ends_of_waiting, check_fork, started_waiting

FIRST = -2 ** 63  # the index of the first insertion


@pytest.fixture(name="sess")
def _sess():
    with tn.Session() as session:
        yield session


def filled(sess, components, keys):
    """A barrier of float32 components, some of which `keys` {key: components} have."""
    barrier = tn.Barrier([tn.float32] * components, shapes=[[]] * components, name="bar")
    for key, given in keys.items():
        for component in given:
            sess.run(barrier.insert_many(component, [key], [float(component)]))
    return barrier


def test_components_meet_under_their_keys(sess):
    barrier = tn.Barrier([tn.float32, tn.string], shapes=[[], [2]], name="B")
    assert (barrier.name, barrier.barrier_ref.dtype) == ("B", tn.resource)
    keys = tn.placeholder(tn.string, [None])
    numbers, words = tn.placeholder(tn.float32, [None]), tn.placeholder(tn.string, [None, 2])
    put = barrier.insert_many(0, keys, numbers), barrier.insert_many(1, keys, words)
    taken = barrier.take_many(2)
    assert [t.shape.as_list() for t in (taken[0], taken[1], *taken[2])] == [[2], [2], [2], [2, 2]]
    sizes = [barrier.ready_size(), barrier.incomplete_size()]
    sess.run(put[0], {keys: ["a", "b", "c"], numbers: [1, 2, 3]})
    assert sess.run(sizes) == [0, 3]
    sess.run(put[1], {keys: ["c"], words: [["x", "y"]]})
    sess.run(put[1], {keys: ["z", "a"], words: [["p", "q"], ["", "t"]]})
    assert sess.run(sizes) == [2, 2]
    indices, names, (values, texts) = sess.run(taken)
    # Of one insertion, in the order in which they got complete.
    assert (indices.tolist(), names.tolist()) == ([FIRST] * 2, [b"c", b"a"])
    assert (values.tolist(), texts.tolist()) == ([3, 1], [[b"x", b"y"], [b"", b"t"]])
    sess.run(put[0], {keys: ["z"], numbers: [9]})
    sess.run(put[1], {keys: ["b"], words: [["m", "n"]]})
    indices, names, _ = sess.run(taken)
    assert (indices.tolist(), names.tolist()) == ([FIRST, FIRST + 1], [b"b", b"z"])
    assert sess.run(sizes) == [0, 0]


def test_a_single_component_takes_a_key_as_often_as_it_comes(sess):
    barrier = tn.Barrier(tn.int64)
    sess.run(barrier.insert_many(0, ["k", "k", "k"], [1, 2, 3]))
    indices, keys, (values,) = sess.run(barrier.take_many(3))
    assert (keys.tolist(), values.tolist()) == ([b"k"] * 3, [1, 2, 3])
    assert indices.tolist() == [FIRST] * 3
    assert sess.run(barrier.take_many(0)).values[0].shape == (0,)


def test_an_insertion_is_whole_or_not_at_all(sess):
    barrier = filled(sess, 2, {"a": [0], "b": [1]})
    bad = barrier.insert_many(1, ["new", "a", "b"], [1.0, 2.0, 3.0])
    with pytest.raises(tn.errors.InvalidArgumentError,
                       match="Key b already has a value for component 1 in barrier bar"):
        sess.run(bad)
    assert sess.run([barrier.ready_size(), barrier.incomplete_size()]) == [0, 2]
    # Complete in the middle of one insertion, and begun anew.
    sess.run(barrier.insert_many(1, ["a", "a"], [1.0, 2.0]))
    assert sess.run([barrier.ready_size(), barrier.incomplete_size()]) == [1, 2]
    with pytest.raises(tn.errors.InvalidArgumentError, match="Key c already has a value"):
        sess.run(barrier.insert_many(0, ["c", "c"], [1.0, 2.0]))


def test_a_take_waits_for_enough(sess):
    barrier = tn.Barrier([tn.int32, tn.int32])
    thread, results = started_waiting(sess, barrier.take_many(2))
    sess.run(barrier.insert_many(0, ["a", "b"], [1, 2]))
    sess.run(barrier.insert_many(1, ["b"], [20]))
    assert not results
    sess.run(barrier.insert_many(1, ["a"], [10]))
    thread.join(60)
    assert [v.tolist() for v in results[0].values] == [[2, 1], [20, 10]]


# --- Closing --------------------------------------------------------------------------------------

def test_a_closed_barrier_completes_what_has_begun(sess):
    barrier = filled(sess, 2, {"a": [0, 1], "b": [0], "c": [0]})
    sess.run(barrier.close())
    with pytest.raises(tn.errors.CancelledError, match="brand new key: d"):
        sess.run(barrier.insert_many(0, ["d"], [1.0]))
    thread, results = started_waiting(sess, barrier.take_many(3))
    sess.run(barrier.insert_many(1, ["c", "b"], [1.0, 1.0]))
    thread.join(60)
    assert results[0].keys.tolist() == [b"a", b"b", b"c"]
    with pytest.raises(tn.errors.OutOfRangeError, match=(
            r"Barrier 'bar' is closed and has insufficient elements \(requested 1, total size 0")):
        sess.run(barrier.take_many(1))
    with pytest.raises(tn.errors.CancelledError, match="Barrier bar is closed"):
        sess.run(barrier.insert_many(0, ["b"], [1.0]))
    sess.run(barrier.insert_many(0, tn.constant([], tn.string), tn.zeros([0])))


def test_closing_twice(sess):
    barrier = filled(sess, 2, {"a": [0]})
    close, cancel = barrier.close(), barrier.close(cancel_pending_enqueues=True)
    sess.run(close)
    with pytest.raises(tn.errors.CancelledError, match="Barrier 'bar' is already closed"):
        sess.run(close)
    sess.run(cancel)
    assert sess.run(barrier.incomplete_size()) == 0
    for operation in close, cancel:
        with pytest.raises(tn.errors.CancelledError, match="already closed"):
            sess.run(operation)
    with pytest.raises(tn.errors.CancelledError, match="Pending enqueues cancelled: true"):
        sess.run(barrier.insert_many(1, ["a"], [1.0]))


def test_small_batches_of_a_closed_barrier(sess):
    barrier = filled(sess, 2, {"a": [0, 1], "b": [0]})
    small = barrier.take_many(5, allow_small_batch=True)
    assert small.keys.shape.as_list() == [None]
    sess.run(barrier.close())
    assert sess.run(small).keys.tolist() == [b"a"]
    with pytest.raises(tn.errors.OutOfRangeError, match="requested 5, total size 0"):
        sess.run(small)
    patient = tn.raw_ops.BarrierTakeMany(barrier.barrier_ref, 5, component_types=[tn.float32] * 2,
                                         allow_small_batch=True, wait_for_incomplete=True)
    thread, results = started_waiting(sess, patient)
    sess.run(barrier.insert_many(1, ["b"], [1.0]))
    thread.join(60)
    assert results[0].keys.tolist() == [b"b"]


@pytest.mark.parametrize("cancel", [False, True])
def test_closing_ends_those_who_wait_for_too_many(sess, cancel):
    barrier = filled(sess, 2, {"a": [0, 1], "b": [0]})
    many, small = barrier.take_many(3), barrier.take_many(3, allow_small_batch=True)
    first, told = started_waiting(sess, many)
    second, given = started_waiting(sess, small)
    sess.run(barrier.close(cancel_pending_enqueues=cancel))
    first.join(60)
    assert isinstance(told[0], tn.errors.OutOfRangeError)
    if not cancel:  # "b" may get complete
        assert not given
        sess.run(barrier.insert_many(1, ["b"], [1.0]))
    second.join(60)
    assert given[0].keys.tolist() == ([b"a"] if cancel else [b"a", b"b"])


# --- Several threads ------------------------------------------------------------------------------

@pytest.mark.parametrize("seed", range(4))
def test_random_insertions_of_threads_against_a_dictionary(seed):
    rng, components, n = random.Random(seed), 3, 60
    barrier = tn.Barrier([tn.int64] * components, shapes=[[]] * components)
    keys, values = tn.placeholder(tn.string, [None]), tn.placeholder(tn.int64, [None])
    puts = [barrier.insert_many(i, keys, values) for i in range(components)]
    wanted = {b"%d" % i: tuple(i * 10 + c for c in range(components)) for i in range(n)}
    taken = {}
    with tn.Session() as sess:
        def give(component):
            order = list(wanted)
            random.Random(seed + component).shuffle(order)
            while order:
                some = [order.pop() for _ in range(min(len(order), rng.randint(1, 5)))]
                sess.run(puts[component], {keys: some,
                                           values: [wanted[k][component] for k in some]})

        def pick():
            take = takes[rng.randint(0, 2)]
            while True:
                try:
                    got = sess.run(take)
                except tn.errors.OutOfRangeError:
                    return
                assert sorted(got.indices.tolist()) == got.indices.tolist()
                for key, *parts in zip(got.keys.tolist(), *[v.tolist() for v in got.values]):
                    assert key not in taken
                    taken[key] = tuple(parts)
        takes = [barrier.take_many(k, allow_small_batch=True) for k in (1, 2, 7)]
        with Threads() as threads:
            for _ in range(3):
                threads.start(pick)
            with Threads() as givers:
                for component in range(components):
                    givers.start(give, component)
            sess.run(barrier.close())
        assert sess.run([barrier.ready_size(), barrier.incomplete_size()]) == [0, 0]
    assert taken == wanted


@pytest.mark.parametrize("n", [2_000, 20_000])
def test_many_elements(sess, n):
    barrier = tn.Barrier([tn.float32, tn.float32], shapes=[[4], []])
    keys = tn.placeholder(tn.string, [None])
    values = tn.placeholder(tn.float32, [None])
    first = barrier.insert_many(0, keys, tn.tile(values[:, None], [1, 4]))
    second, order = barrier.insert_many(1, keys, values), np.random.RandomState(0).permutation(n)
    sess.run(first, {keys: [b"%d" % i for i in range(n)], values: np.arange(n)})
    sess.run(second, {keys: [b"%d" % i for i in order], values: order})
    got = sess.run(barrier.take_many(n))
    assert got.keys.tolist() == [b"%d" % i for i in order]
    assert (got.values[0] == order[:, None]).all() and (got.values[1] == order).all()


# --- Ends of waiting, and mistakes ----------------------------------------------------------------

def test_deadlines_and_closed_sessions():
    def make():
        barrier = tn.Barrier(tn.float32)
        return barrier.take_many(2), [barrier.insert_many(0, ["a", "b"], [1.0, 2.0])]
    check_ends_of_waiting(make)


def test_a_fork_while_a_thread_waits():
    check_fork("""
barrier = tn.Barrier([tn.float32, tn.float32])
puts = [barrier.insert_many(i, ["a", "b"], [1.0, 2.0]) for i in range(2)]
take, size = barrier.take_many(2), barrier.incomplete_size()
session.run(puts[0])
def give():
    session.run(puts[1])
def child():
    assert session.run(size) == 2
    session.run(puts[1])
    assert session.run(take).keys.tolist() == [b"a", b"b"]
""")


def test_mistakes_when_the_graph_is_built():
    with pytest.raises(ValueError, match=r"Empty tensors are not supported.*\(0,\).* at index 1"):
        tn.Barrier([tn.float32, tn.float32], shapes=[[], [0]])
    with pytest.raises(ValueError, match="shapes must be as many as the types, 2, not 1"):
        tn.Barrier([tn.float32, tn.float32], shapes=[[2]])
    with pytest.raises(TypeError, match="shapes must be a TensorShape or a list"):
        tn.Barrier(tn.float32, shapes=3)
    barrier = tn.Barrier([tn.float32, tn.int32])
    with pytest.raises(ValueError, match="timeout must be None, not 5"):
        barrier.take_many(1, timeout=5)
    with pytest.raises(ValueError, match="timeout_ms must be -1, got 5"):
        tn.raw_ops.BarrierTakeMany(barrier.barrier_ref, 1, component_types=[tn.float32],
                                   timeout_ms=5)
    with pytest.raises(ValueError, match="only accepts capacity=-1, got 3"):
        tn.raw_ops.Barrier(component_types=[tn.float32], capacity=3)
    with pytest.raises(ValueError, match="keys and values"):
        barrier.insert_many(0, ["a", "b"], [1.0])


MISTAKES = [
    (lambda b: b.take_many(-1), "num_elements must not be negative, it is -1 for barrier bar"),
    (lambda b: b.insert_many(2, ["a"], [1.0]),
     r"component_index = 2 is not in \[0, 2\), the components of barrier bar"),
    (lambda b: b.insert_many(0, ["a"], tn.placeholder_with_default([[1.0]], None)),
     r"component 0 of barrier bar has shape \[\], the values are float32\[1,1\]"),
    (lambda b: b.insert_many(1, ["a"], tn.zeros([1, 0])), "Tensors with no elements are not"),
    (lambda b: tn.raw_ops.BarrierInsertMany(b.barrier_ref, ["a"], ["x"], component_index=0),
     r"component 0 of barrier bar has dtype float32, the values are string\[1\]"),
    (lambda b: tn.raw_ops.BarrierTakeMany(b.barrier_ref, 1, component_types=[tn.string])[0],
     r"barrier bar has component types \[float32, float32\], the operation has \[string\]"),
    (lambda b: tn.Barrier(tn.int32, shared_name="bar").ready_size(),
     r"Shared barrier bar has component types \[float32, float32\] and shapes \[\[\], \?\]; it is "
     r"asked for with types \[int32\] and shapes \[\?\]"),
    (lambda b: tn.raw_ops.BarrierClose(tn.Variable(1.0).handle),
     "the handle refers to a Variable; a barrier's handle is needed"),
]


@pytest.mark.parametrize("build, text", MISTAKES)
def test_mistakes_of_a_run(sess, build, text):
    barrier = tn.Barrier([tn.float32, tn.float32], shapes=[[], None], name="bar")
    sess.run(barrier.ready_size())
    with pytest.raises(tn.errors.InvalidArgumentError, match=text):
        sess.run(build(barrier))
    assert sess.run([barrier.ready_size(), barrier.incomplete_size()]) == [0, 0]


def test_elements_of_different_shapes_make_no_batch(sess):
    barrier = tn.Barrier(tn.float32)
    sess.run(barrier.insert_many(0, ["a"], [[1.0]]))
    sess.run(barrier.insert_many(0, ["b"], [[1.0, 2.0]]))
    with pytest.raises(tn.errors.InvalidArgumentError, match=(
            r"component 0 of barrier barrier is float32\[1\] in one element and float32\[2\] in "
            "another of the 2")):
        sess.run(barrier.take_many(2))
    assert [sess.run(barrier.take_many(1)).keys.tolist() for _ in range(2)] == [[b"a"], [b"b"]]


def test_immediate_execution():
    handle = tn.execute("Barrier", component_types=[tn.float32], shapes=[tn.TensorShape([])])
    with Threads() as threads:
        threads.start(lambda: tn.execute("BarrierInsertMany", [handle, ["a"], np.float32([2])],
                                         component_index=0))
        taken = tn.execute("BarrierTakeMany", [handle, 1], component_types=[tn.float32])
    assert taken.keys.numpy().tolist() == [b"a"] and taken.values[0].numpy().tolist() == [2]
    tn.execute("BarrierClose", [handle])
    with pytest.raises(tn.errors.OutOfRangeError, match="Barrier '' is closed"):
        tn.execute("BarrierTakeMany", [handle, 1], component_types=[tn.float32])
