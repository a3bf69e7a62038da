# SPDX-License-Identifier: Apache-2.0
"""tn.train.QueueRunner and start_queue_runners: threads that keep queues filled."""

import threading

import pytest

import treenail as tn


@pytest.fixture(name="sess")
def _sess():
    with tn.Session() as session:
        yield session


def counted(limit):
    """A queue, and an operation that enqueues 1, 2, ... limit and then finds the end."""
    queue = tn.FIFOQueue(5, tn.int64, [])
    number = tn.Variable(tn.constant(0, tn.int64), trainable=False, collections=["variables"])
    return queue, queue.enqueue([tn.count_up_to(number, limit) + 1])


def everything(session, queue):
    out, values = queue.dequeue(), []
    with pytest.raises(tn.errors.OutOfRangeError, match="is closed and has insufficient elements"):
        while True:
            values.append(int(session.run(out)))
    return values


def joined(threads):
    for thread in threads:
        thread.join(60)
        assert not thread.is_alive()


def test_a_queue_is_filled_and_closed_at_the_end(sess):
    queue, put = counted(20)
    runner = tn.train.QueueRunner(queue, [put])
    sess.run(tn.global_variables_initializer())
    threads = runner.create_threads(sess)
    assert [t.name for t in threads] == ["QueueRunnerThread-fifo_queue-fifo_queue_enqueue"]
    assert not threads[0].daemon and not threads[0].is_alive()
    threads[0].start()
    assert everything(sess, queue) == list(range(1, 21))
    joined(threads)
    assert runner.exceptions_raised == []


def test_the_last_of_several_threads_closes(sess):
    queue, put = counted(50)
    runner = tn.train.QueueRunner(queue, [put] * 3)
    sess.run(tn.global_variables_initializer())
    threads = runner.create_threads(sess, start=True)
    assert len(threads) == 3
    assert sorted(everything(sess, queue)) == list(range(1, 51))
    joined(threads)


def test_a_coordinator_stops_threads_that_wait(sess):
    queue = tn.FIFOQueue(2, tn.int64, [])
    runner = tn.train.QueueRunner(queue, [queue.enqueue([1])] * 2)
    coord = tn.train.Coordinator()
    threads = runner.create_threads(sess, coord, daemon=True, start=True)
    assert len(threads) == 3 and all(thread.daemon for thread in threads)
    sess.run(queue.dequeue_many(5))
    coord.request_stop()
    coord.join(threads)
    joined(threads)
    assert sess.run(queue.is_closed())


def test_a_coordinator_is_told_of_errors(sess):
    queue = tn.FIFOQueue(2, tn.float32, [])
    x = tn.placeholder_with_default(-1.0, [])
    with tn.control_dependencies([tn.assert_positive(x, message="never positive")]):
        put = queue.enqueue([tn.identity(x)])
    coord = tn.train.Coordinator()
    threads = tn.train.QueueRunner(queue, [put]).create_threads(sess, coord, start=True)
    with pytest.raises(tn.errors.InvalidArgumentError, match="never positive"):
        coord.join(threads)


def test_errors_without_a_coordinator_are_kept_and_raised(sess, monkeypatch):
    queue = tn.FIFOQueue(2, tn.float32, [])
    with tn.control_dependencies([tn.Assert(tn.placeholder_with_default(False, []), ["wrong"])]):
        put = queue.enqueue([tn.constant(1.0) + 0.0])
    runner = tn.train.QueueRunner(queue, [put])
    told = []
    monkeypatch.setattr(threading, "excepthook", told.append)
    joined(runner.create_threads(sess, start=True))
    assert [type(e) for e in runner.exceptions_raised] == [tn.errors.InvalidArgumentError]
    assert told[0].exc_value is runner.exceptions_raised[0]


def test_other_errors_may_mean_the_end(sess):
    source, queue = tn.FIFOQueue(5, tn.int32, []), tn.FIFOQueue(5, tn.int32, [])
    runner = tn.train.QueueRunner(
        queue, [queue.enqueue([source.dequeue()])],
        queue_closed_exception_types=(tn.errors.OutOfRangeError, tn.errors.CancelledError))
    sess.run([source.enqueue_many([[1, 2]])])
    sess.run(source.close())
    threads = runner.create_threads(sess, start=True)
    assert everything(sess, queue) == [1, 2]
    joined(threads)


def test_own_operations_close_and_cancel(sess):
    queue, source = tn.FIFOQueue(5, tn.int32, []), tn.FIFOQueue(5, tn.int32, [])
    closed, cancelled = tn.Variable(0), tn.Variable(0)
    sess.run([closed.initializer, cancelled.initializer, source.close()])
    runner = tn.train.QueueRunner(queue, [source.dequeue().op], close_op=closed.assign_add(1).op,
                                  cancel_op=cancelled.assign_add(1).op)
    joined(runner.create_threads(sess, start=True))
    assert sess.run([closed, cancelled]) == [1, 0]
    coord = tn.train.Coordinator()
    threads = runner.create_threads(sess, coord, start=True)
    coord.request_stop()  # before or after the thread that fills has found the end
    coord.join(threads)
    assert sess.run(cancelled) == 1 and sess.run(closed) in (1, 2)


def test_threads_are_made_once_per_session(sess):
    queue = tn.FIFOQueue(2, tn.int64, [])
    runner = tn.train.QueueRunner(queue, [queue.enqueue([1])])
    coord = tn.train.Coordinator()
    threads = runner.create_threads(sess, coord, start=True)
    assert runner.create_threads(sess, coord) == []
    with tn.Session() as other:
        more = runner.create_threads(other, coord, start=True)
        assert len(more) == 2
        assert other.run(queue.dequeue()) == 1 == sess.run(queue.dequeue())
        coord.request_stop()
        coord.join(threads + more)
    coord.clear_stop()
    again = runner.create_threads(sess, coord)
    assert len(again) == 2


def test_a_session_that_is_closed_ends_its_threads():
    queue = tn.FIFOQueue(2, tn.int64, [])
    runner = tn.train.QueueRunner(queue, [queue.enqueue([1])])
    session, coord = tn.Session(), tn.train.Coordinator()
    threads = runner.create_threads(session, coord, start=True)
    session.run(queue.dequeue())
    session.close()
    with pytest.raises((tn.errors.CancelledError, tn.errors.FailedPreconditionError)):
        coord.join(threads)
    joined(threads)


def test_all_runners_of_a_graph_start_together():
    queues = [tn.FIFOQueue(2, tn.int64, []) for _ in range(3)]
    for i, queue in enumerate(queues):
        tn.train.add_queue_runner(tn.train.QueueRunner(queue, [queue.enqueue([i])]),
                                  "own" if i == 2 else tn.GraphKeys.QUEUE_RUNNERS)
    with pytest.raises(ValueError, match="Cannot start queue runners: No default session"):
        tn.train.start_queue_runners()
    coord = tn.train.Coordinator()
    with tn.Session() as session:
        threads = tn.train.start_queue_runners(coord=coord)
        assert len(threads) == 4 and all(thread.daemon for thread in threads)
        assert session.run([queue.dequeue() for queue in queues[:2]]) == [0, 1]
        more = tn.train.start_queue_runners(session, start=False, collection="own")
        assert len(more) == 1 and not more[0].is_alive()
        coord.request_stop()
        coord.join(threads)


@pytest.mark.parametrize("wrong, text", [
    (lambda q: tn.train.QueueRunner(), "Must provide queue and enqueue_ops."),
    (lambda q: tn.train.QueueRunner(q, []), "Must provide queue and enqueue_ops."),
    (lambda q: tn.train.QueueRunner(queue_runner_def=q), "queue_runner_def must be None"),
    (lambda q: tn.train.QueueRunner(3, [q.close()]), "queue must be a queue, such as a tn.FIFOQ"),
    (lambda q: tn.train.QueueRunner(q, [q.close()], queue_closed_exception_types=[ValueError]),
     "must be a tuple of tn.errors classes, but saw: "),
    (lambda q: tn.train.QueueRunner(q, [q.close()]).create_threads(3), "sess must be a Session"),
    (lambda q: tn.train.add_queue_runner(3), "qr must be a QueueRunner, not 3"),
    (lambda q: tn.train.start_queue_runners(3), "sess must be a Session, not 3"),
])
def test_wrong(wrong, text):
    with pytest.raises((ValueError, TypeError)) as caught:
        wrong(tn.FIFOQueue(2, tn.int64, []))
    assert text in str(caught.value)
