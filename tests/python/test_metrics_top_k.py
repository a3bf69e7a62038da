# SPDX-License-Identifier: Apache-2.0
"""tn.metrics of the highest predictions against Python's sets, row by row, over several batches."""

import numpy as np
import pytest

import treenail as tn

RNG = np.random.RandomState(5)
ROWS, NUMBER, DEPTH = 12, 6, 4  # of classes, of labels a row
SIZES = (5, 1, 6)
SCORES = RNG.rand(ROWS, NUMBER).astype(np.float32)
LABELS = RNG.randint(0, NUMBER, (ROWS, DEPTH)).astype(np.int64)  # some rows have one twice
WEIGHTS = {"none": None, "scalar": np.float32(0.5), "rows": RNG.rand(ROWS).astype(np.float32),
           "mask": (RNG.rand(ROWS) < 0.5).astype(np.float32)}


def top(scores, k):
    return np.argsort(-scores, axis=-1, kind="stable")[..., :k]


def row_weights(weights, count):
    return np.ones(count) if weights is None else np.broadcast_to(np.float64(weights), count)


def sums(labels, chosen, class_id, w):
    """(true positives, false positives, false negatives)"""
    found = np.zeros(3)
    for wanted, got, weight in zip(map(set, labels), map(set, chosen), w):
        if class_id is not None:
            wanted, got = wanted & {class_id}, got & {class_id}
        found += weight * np.array([len(wanted & got), len(got - wanted), len(wanted - got)])
    return found


def precision(labels, scores, k, w, class_id=None):
    hits, wrong, _ = sums(labels, top(scores, k).tolist(), class_id, w)
    return hits / (hits + wrong) if hits + wrong else np.nan


def recall(labels, scores, k, w, class_id=None):
    hits, _, missed = sums(labels, top(scores, k).tolist(), class_id, w)
    return hits / (hits + missed) if hits + missed else np.nan


def average_precision(labels, scores, k, w, number=len):
    total = 0.0
    for wanted, got, weight in zip(labels, top(scores, k).tolist(), w):
        hits, area = 0, 0.0
        for rank, choice in enumerate(got, 1):
            if choice in wanted:
                hits += 1
                area += hits / rank
        total += weight * area / min(k, number(wanted))
    return total / sum(w) if sum(w) else 0.0


def sparse(lists):
    """The rows of different lengths as a SparseTensorValue."""
    indices = [[i, j] for i, row in enumerate(lists) for j in range(len(row))]
    return tn.SparseTensorValue(np.array(indices, np.int64).reshape(-1, 2),
                                np.array([c for row in lists for c in row], np.int64),
                                np.array([len(lists), max(map(len, lists))], np.int64))


def streamed(build, labels, scores, weights, kind):
    """[the update after each batch], the value. kind: how labels come."""
    y = tn.sparse_placeholder(tn.int64) if kind == "sparse" else tn.placeholder(
        tn.int64, None if kind == "unknown" else [None, DEPTH])
    p = tn.placeholder(tn.float32, None if kind == "unknown" else [None, NUMBER])
    batched = isinstance(weights, np.ndarray) and weights.ndim > 0
    w = tn.placeholder(tn.float32, None if kind == "unknown" else [None]) if batched else weights
    value, update = build(y, p, w)
    updates, start = [], 0
    with tn.Session() as session:
        session.run(tn.local_variables_initializer())
        for size in SIZES:
            part = slice(start, start + size)
            feeds = {y: sparse(labels[part]) if kind == "sparse" else np.array(labels[part]),
                     p: scores[part], **({w: weights[part]} if batched else {})}
            updates.append(session.run(update, feeds))
            start += size
        return updates, session.run(value)


def check(build, oracle, labels, weights, kind):
    updates, value = streamed(build, labels, SCORES, weights, kind)
    for end, update in zip(np.cumsum(SIZES), updates):
        w = weights[:end] if isinstance(weights, np.ndarray) and weights.ndim else weights
        np.testing.assert_allclose(update, oracle(labels[:end], SCORES[:end],
                                                  row_weights(w, end)), rtol=1e-9)
    np.testing.assert_array_equal(value, updates[-1])


RAGGED = [list(dict.fromkeys(row))[:1 + i % DEPTH] for i, row in enumerate(LABELS.tolist())]
KINDS = {"dense": LABELS.tolist(), "unknown": LABELS.tolist(), "sparse": RAGGED}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("k", [1, 3, NUMBER])
@pytest.mark.parametrize("class_id", [None, 2])
@pytest.mark.parametrize("name", ["precision", "recall"])
def test_precision_and_recall(name, k, class_id, weights, kind):
    function = getattr(tn.metrics, name + "_at_k")
    oracle = {"precision": precision, "recall": recall}[name]
    check(lambda y, p, w: function(y, p, k, class_id, w),
          lambda y, p, w: oracle(y, p, k, w, class_id), KINDS[kind], WEIGHTS[weights], kind)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("k", [1, 3, NUMBER])
def test_average_precision(k, weights, kind):
    check(lambda y, p, w: tn.metrics.average_precision_at_k(y, p, k, w),
          lambda y, p, w: average_precision(y, p, k, w), KINDS[kind], WEIGHTS[weights], kind)


@pytest.mark.parametrize("name", ["precision", "recall"])
def test_classes_that_are_chosen_already(name, evaluate):
    function = getattr(tn.metrics, name + "_at_top_k")
    labels = [[0, 1, 1], [2, 2, 2], [3, 4, 5]]
    chosen = [[1, 1], [0, 1], [5, 3]]  # sets: 1 counts once
    expected = {"precision": 3 / 5, "recall": 3 / 6}[name]
    assert evaluate(function(labels, chosen)[1]) == pytest.approx(expected)


@pytest.mark.parametrize("labels", [[3, 0, 2], [[3], [0], [2]]])
def test_one_label_a_row(labels, evaluate):
    scores = np.float32([[0, 0, 1, 2], [0, 0, 1, 2], [0, 3, 2, 1]])
    fetches = [tn.metrics.precision_at_k(labels, scores, 2)[1],
               tn.metrics.recall_at_k(labels, scores, 2)[1],
               tn.metrics.average_precision_at_k(labels, scores, 2)[1]]
    np.testing.assert_allclose(evaluate(fetches), [2 / 6, 2 / 3, (1 + 0 + 1 / 2) / 3])


def test_sparse_labels_of_one_a_row(evaluate):
    labels = tn.SparseTensor([[0], [2]], [3, 2], [3])  # the second row has none
    scores = np.float32([[0, 0, 1, 2], [0, 0, 1, 2], [0, 3, 2, 1]])
    assert evaluate(tn.metrics.recall_at_k(labels, scores, 1)[1]) == 0.5


def test_more_than_one_leading_axis(evaluate):
    labels, scores = LABELS.reshape(3, 4, DEPTH), SCORES.reshape(3, 4, NUMBER)
    w = RNG.rand(3, 1).astype(np.float32)
    each = np.broadcast_to(np.float64(w), (3, 4)).ravel()
    fetches = [f(labels, scores, 2, weights=w)[1] for f in (
        tn.metrics.precision_at_k, tn.metrics.recall_at_k, tn.metrics.average_precision_at_k)]
    np.testing.assert_allclose(evaluate(fetches), [f(LABELS.tolist(), SCORES, 2, each) for f in (
        precision, recall, average_precision)])


def test_labels_that_are_no_class(evaluate):
    labels, scores = [[0, -1, -1], [9, 1, 2]], np.float32([[3, 2, 1], [3, 2, 1]])
    hits = evaluate([tn.metrics.precision_at_k(labels, scores, 2)[1],
                     tn.metrics.recall_at_k(labels, scores, 2)[1],
                     tn.metrics.average_precision_at_k(labels, scores, 2)[1]])
    # Recall misses -1 and 9; they are not among the relevant ones of average precision.
    np.testing.assert_allclose(hits, [2 / 4, 2 / 5, (1 / 1 + (1 / 2) / 2) / 2])
    few = tn.SparseTensor([[0, 0], [0, 1], [0, 2], [1, 0], [1, 1]], [0, 8, 9, 1, 9], [2, 3])
    got = evaluate(tn.metrics.average_precision_at_k(few, scores, 3)[1])
    assert got == pytest.approx((1 / 2 + (1 / 2) / 2) / 2)


def test_without_anything_to_count(evaluate):
    values = [f(LABELS, SCORES, 2)[0] for f in (
        tn.metrics.precision_at_k, tn.metrics.recall_at_k, tn.metrics.average_precision_at_k)]
    np.testing.assert_array_equal(evaluate(values), [np.nan, np.nan, 0.0])
    updates = [tn.metrics.recall_at_k(LABELS, SCORES, 2, class_id=77)[1],
               tn.metrics.average_precision_at_k(LABELS, SCORES, 2, 0.0)[1]]
    np.testing.assert_array_equal(evaluate(updates), [np.nan, 0.0])


def test_older_names(evaluate):
    np.testing.assert_array_equal(*evaluate([tn.metrics.sparse_precision_at_k(LABELS, SCORES, 2),
                                             tn.metrics.precision_at_k(LABELS, SCORES, 2)]))
    np.testing.assert_array_equal(*evaluate([
        tn.metrics.sparse_average_precision_at_k(LABELS, SCORES, 2),
        tn.metrics.average_precision_at_k(LABELS, SCORES, 2)]))


REFUSED = [
    (lambda m: m.precision_at_k(LABELS, SCORES, 0), "Invalid k=0"),
    (lambda m: m.recall_at_k(LABELS, SCORES, -1), "Invalid k=-1"),
    (lambda m: m.average_precision_at_k(LABELS, SCORES, 0), "Invalid k=0"),
    (lambda m: m.recall_at_k(LABELS, SCORES, 1.5), "k must be an int, not 1.5"),
    (lambda m: m.recall_at_k(LABELS, SCORES, 7), "7"),
    (lambda m: m.precision_at_k(LABELS, SCORES, 2, "a"), "class_id must be an int or None, not"),
    (lambda m: m.precision_at_k(LABELS[:3], SCORES, 2), r"rows of predictions, \(12,\), not \(3,"),
    (lambda m: m.recall_at_top_k(LABELS, 3), r"the predicted classes must have an axis"),
    (lambda m: m.recall_at_k(LABELS, SCORES[0], 2), "their rank must be the same, or one less"),
    (lambda m: m.recall_at_k(LABELS, SCORES, 2, weights=[1.0, 2.0]), "weights can not be broad"),
    (lambda m: m.average_precision_at_k(LABELS, SCORES, 2, [1.0, 2.0]), "weights can not be broad"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number):
    call, text = REFUSED[number]
    with pytest.raises((ValueError, TypeError), match=text):
        call(tn.metrics)
    assert not tn.local_variables()


def test_rows_that_a_run_refuses():
    y, p = tn.placeholder(tn.int64, [None, 2]), tn.placeholder(tn.float32, [None, 4])
    _, update = tn.metrics.precision_at_k(y, p, 2)
    with tn.Session() as session:
        session.run(tn.local_variables_initializer())
        with pytest.raises(tn.errors.InvalidArgumentError, match="rows of predictions"):
            session.run(update, {y: [[0, 1]], p: np.ones((3, 4))})
