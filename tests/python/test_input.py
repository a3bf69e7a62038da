# SPDX-License-Identifier: Apache-2.0
"""tn.train's input pipeline: producers, batches, epochs."""

import contextlib

import numpy as np
import pytest

import treenail as tn


@contextlib.contextmanager
def running():
    """A session in which the queue runners of the graph run."""
    with tn.Session() as session:
        session.run([tn.global_variables_initializer(), tn.local_variables_initializer()])
        coord = tn.train.Coordinator()
        threads = tn.train.start_queue_runners(session, coord)
        yield session
        coord.request_stop()
        coord.join(threads)


def everything(fetches):
    """What runs give until there is no more."""
    found = []
    with running() as session:
        with pytest.raises(tn.errors.OutOfRangeError):
            while True:
                found.append(session.run(fetches))
    return found


# --- Producers ------------------------------------------------------------------------------------

def test_epochs_are_limited():
    x = tn.train.limit_epochs(tn.constant([1.0, 2.0]), 3)
    with tn.Session() as session:
        session.run(tn.local_variables_initializer())
        for _ in range(3):
            assert session.run(x).tolist() == [1, 2]
        with pytest.raises(tn.errors.OutOfRangeError, match="Reached limit of 3"):
            session.run(x)
    assert x.shape.as_list() == [2]
    assert [v.op.name for v in tn.local_variables()] == ["limit_epochs/epochs"]
    assert tn.trainable_variables() == []


def test_rows_come_epoch_after_epoch():
    queue = tn.train.input_producer([[1, 2], [3, 4]], num_epochs=2, shuffle=False)
    assert [row.tolist() for row in everything(queue.dequeue())] == [[1, 2], [3, 4]] * 2


def test_rows_are_shuffled_by_a_seed():
    def order():
        with tn.Graph().as_default():
            queue = tn.train.range_input_producer(20, num_epochs=2, seed=3)
            return [int(i) for i in everything(queue.dequeue())]
    first = order()
    assert first == order()
    assert sorted(first[:20]) == sorted(first[20:]) == list(range(20))
    assert first[:20] != first[20:] and first[:20] != list(range(20))


def test_rows_without_an_end():
    queue = tn.train.range_input_producer(3, shuffle=False, capacity=2)
    out = queue.dequeue()
    with running() as session:
        assert [int(session.run(out)) for _ in range(10)] == [0, 1, 2] * 3 + [0]


def test_strings():
    queue = tn.train.string_input_producer(["b", "a"], num_epochs=1, shuffle=False)
    assert everything(queue.dequeue()) == [b"b", b"a"]


def test_no_strings():
    none = tn.train.string_input_producer(tn.placeholder_with_default(
        tn.constant([], tn.string), [None]))
    with tn.Session() as session:
        coord = tn.train.Coordinator()
        threads = tn.train.start_queue_runners(session, coord)
        with pytest.raises(tn.errors.InvalidArgumentError, match="requires a non-null input"):
            coord.join(threads)
        assert session.run(none.size()) == 0


def test_slices_belong_together():
    x, y = np.arange(12).reshape(6, 2), np.arange(6)
    out = tn.train.slice_input_producer([x, y], num_epochs=1)
    assert [t.shape.as_list() for t in out] == [[2], []]
    found = everything(out)
    assert sorted(int(label) for _, label in found) == list(range(6))
    assert all(row.tolist() == [2 * label, 2 * label + 1] for row, label in found)


# --- Batches --------------------------------------------------------------------------------------

def numbers(epochs=1, limit=7):
    return tn.train.range_input_producer(limit, num_epochs=epochs, shuffle=False).dequeue()


def test_batches():
    n = numbers()
    pair = tn.train.batch([n, tn.cast(n, tn.float32) / 2], 3)
    assert [t.shape.as_list() for t in pair] == [[3], [3]]
    found = everything(pair)
    assert [[a.tolist(), b.tolist()] for a, b in found] == [
        [[0, 1, 2], [0, 0.5, 1]], [[3, 4, 5], [1.5, 2, 2.5]]]


def test_the_last_batch_may_be_smaller():
    out = tn.train.batch([numbers()], 3, allow_smaller_final_batch=True)
    assert out.shape.as_list() == [None]
    assert [values.tolist() for values in everything(out)] == [[0, 1, 2], [3, 4, 5], [6]]


def test_batches_of_a_dict_and_of_rows():
    n = numbers()
    rows = tn.stack([n, n + 100])
    out = tn.train.batch({"rows": rows, "twice": rows * 2}, 4, enqueue_many=True)
    assert sorted(out) == ["rows", "twice"] and out["rows"].shape.as_list() == [4]
    found = everything(out)
    assert [values["rows"].tolist() for values in found] == [[0, 100, 1, 101], [2, 102, 3, 103],
                                                             [4, 104, 5, 105]]
    assert found[2]["twice"].tolist() == [8, 208, 10, 210]


def test_elements_of_different_sizes_are_filled_up():
    n = numbers()
    out = tn.train.batch([tn.fill([n], n)], 4, dynamic_pad=True)
    assert out.shape.as_list() == [4, None]
    assert everything(out)[0].tolist() == [[0, 0, 0], [1, 0, 0], [2, 2, 0], [3, 3, 3]]


def test_several_sources():
    out = tn.train.batch_join([[numbers(), tn.constant("a")], [numbers(), tn.constant("b")]], 1,
                              allow_smaller_final_batch=True)
    found = everything(out)
    assert sorted((s[0].decode(), int(i[0])) for i, s in found) == [
        (s, i) for s in "ab" for i in range(7)]


def test_shuffled_batches():
    out = tn.train.shuffle_batch([numbers(limit=50)], 10, 40, 20, seed=1)
    found = np.concatenate(everything(out)).tolist()
    assert sorted(found) == list(range(50)) != found
    assert max(found[:10]) < 45  # no more than the capacity was there
    join = tn.train.shuffle_batch_join([{"n": numbers()}, {"n": numbers()}], 7, 40, 2)
    found = np.concatenate([values["n"] for values in everything(join)])
    assert sorted(found.tolist()) == sorted(list(range(7)) * 2)


@pytest.mark.parametrize("function", ["maybe_batch", "maybe_shuffle_batch", "maybe_batch_join",
                                      "maybe_shuffle_batch_join"])
def test_some_elements_are_left_out(function):
    n = numbers(limit=10)
    source = [[n]] if "join" in function else [n]
    named = {"capacity": 8, "min_after_dequeue": 1} if "shuffle" in function else {}
    out = getattr(tn.train, function)(source, keep_input=tn.equal(n % 2, 0), batch_size=5, **named)
    found, = everything(out)
    assert sorted(found.tolist()) == [0, 2, 4, 6, 8]


def test_some_rows_are_left_out():
    n = numbers(limit=3)
    rows = tn.stack([n, n + 10, n + 20])
    out = tn.train.maybe_batch([rows], [True, False, True], 6, enqueue_many=True)
    found, = everything(out)
    assert found.tolist() == [0, 20, 1, 21, 2, 22]


def test_how_full_a_queue_is_can_be_seen():
    tn.train.batch([numbers()], 3, capacity=40)
    tags = [op.op.name for op in tn.get_collection(tn.GraphKeys.SUMMARIES)]
    assert len(tags) == 2 and tags[1].endswith("batch/fraction_of_40_full")


@pytest.mark.parametrize("wrong, text", [
    (lambda: tn.train.limit_epochs(1.0, 0), "num_epochs must be > 0 not 0."),
    (lambda: tn.train.input_producer(tn.placeholder(tn.float32)),
     "Either `input_tensor` must have a fully defined shape or `element_shape` must be"),
    (lambda: tn.train.string_input_producer([]), "string_input_producer requires a non-null"),
    (lambda: tn.train.slice_input_producer([]), "Expected at least one tensor in slice_input_pro"),
    (lambda: tn.train.batch([], 3), "Expected at least one tensor in batch()."),
    (lambda: tn.train.batch_join([], 3), "Expected at least one set of tensors in batch_join()"),
    (lambda: tn.train.batch([tn.placeholder(tn.float32)], 3), "Cannot infer Tensor's rank"),
    (lambda: tn.train.batch([tn.placeholder(tn.float32, [None])], 3),
     "All shapes must be fully defined"),
    (lambda: tn.train.batch_join([[1.0], [1]], 3),
     "Expected types to be consistent: ['float32'] vs. ['int32']."),
    (lambda: tn.train.batch_join([{"a": 1.0}, {"b": 1.0}], 3), "must have the same keys"),
    (lambda: tn.train.shuffle_batch([1.0], 3, 5, 5),
     "capacity 5 must be bigger than min_after_dequeue 5."),
    (lambda: tn.train.maybe_batch([1.0], [True], 3), "`keep_input` cannot be a vector when"),
    (lambda: tn.train.maybe_batch([[1.0]], [[True]], 3, enqueue_many=True),
     "`keep_input` must be 0 or 1 dimensions."),
])
def test_wrong(wrong, text):
    with pytest.raises((ValueError, TypeError)) as caught:
        wrong()
    assert text in str(caught.value)
