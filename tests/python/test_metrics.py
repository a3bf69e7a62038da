# SPDX-License-Identifier: Apache-2.0
"""tn.metrics' functions over several batches, against NumPy over all of them at once. Those of the
highest predictions: test_metrics_top_k.py; objects: test_metric_objects.py."""

import inspect

import numpy as np
import pytest

import treenail as tn

RNG = np.random.RandomState(3)
SIZES = (4, 1, 7)  # of the batches
LABELS = RNG.rand(12, 3).astype(np.float32)
PREDICTIONS = RNG.rand(12, 3).astype(np.float32)
PREDICTIONS[[0, 3, 5, 7, 9, 10], [0, 1, 2, 0, 1, 2]] = 1.0, 0.0, 0.5, 0.25, 1.0, 0.0
CLASSES = RNG.randint(0, 4, (12, 3)).astype(np.int32)
CHOSEN = np.where(RNG.rand(12, 3) < 0.6, CLASSES, RNG.randint(0, 4, (12, 3))).astype(np.int32)
TRUE = RNG.rand(12, 3) < 0.4
WEIGHTS = {"none": None, "scalar": np.float32(0.01), "rows": RNG.rand(12, 1).astype(np.float32),
           "flat rows": RNG.rand(12).astype(np.float32),
           "mask": (RNG.rand(12, 3) < 0.5).astype(np.float32),
           "nothing": np.zeros((12, 1), np.float32)}


def spread(weights, shape=(12, 3)):
    """Weights in the shape of the values, float64."""
    if weights is None:
        return np.ones(shape)
    weights = np.asarray(weights, np.float64)
    return np.broadcast_to(weights[:, None] if weights.ndim == 1 else weights, shape)


def fraction(a, b):
    return a / b if b > 0 else 0.0


def average(values, w):
    return fraction((values * w).sum(), w.sum())


def streamed(build, *arrays, shapes_known=True):
    """[update after each batch], the value in the end. build is called with a placeholder for each
    array, which has batches along its first axis; scalars and None are passed on."""
    def cut(a, start, size):
        return a[start:start + size]
    fed = [isinstance(a, np.ndarray) and a.ndim > 0 for a in arrays]
    holders = [tn.placeholder(a.dtype, [None, *a.shape[1:]] if shapes_known else None) if f else a
               for a, f in zip(arrays, fed)]
    value, update = build(*holders)
    updates, start = [], 0
    with tn.Session() as session:
        session.run(tn.local_variables_initializer())
        for size in SIZES:
            feeds = {h: cut(a, start, size) for h, a, f in zip(holders, arrays, fed) if f}
            updates.append(session.run(update, feeds))
            np.testing.assert_array_equal(session.run(value), session.run(value))
            start += size
        return updates, session.run(value)


def check(build, oracle, *arrays, **options):
    """The updates and the value are the oracle's of what was there so far."""
    updates, value = streamed(build, *arrays, **options)
    for end, update in zip(np.cumsum(SIZES), updates):
        so_far = [a[:end] if isinstance(a, np.ndarray) and a.ndim else a for a in arrays]
        np.testing.assert_allclose(update, oracle(*so_far), rtol=2e-5, atol=1e-6)
    np.testing.assert_allclose(value, updates[-1], rtol=1e-6)


def of(values, w=None):
    return spread(w, values.shape)


# --- Means ----------------------------------------------------------------------------------------

MEANS = {
    "mean": (lambda y, p, w: tn.metrics.mean(p, w), lambda y, p: p),
    "mean_absolute_error": (tn.metrics.mean_absolute_error, lambda y, p: abs(p - y)),
    "mean_squared_error": (tn.metrics.mean_squared_error, lambda y, p: (p - y) ** 2),
    "mean_relative_error": (lambda y, p, w: tn.metrics.mean_relative_error(y, p, y + 1.0, w),
                            lambda y, p: abs(p - y) / (y + 1)),
    "percentage_below": (lambda y, p, w: tn.metrics.percentage_below(p, 0.4, w),
                         lambda y, p: p < np.float32(0.4)),
}


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", MEANS)
@pytest.mark.parametrize("shapes_known", [True, False])
def test_means(name, weights, shapes_known):
    build, values = MEANS[name]
    check(build, lambda y, p, w: average(values(y.astype(np.float64), p.astype(np.float64)),
                                         of(p, w)),
          LABELS, PREDICTIONS, WEIGHTS[weights], shapes_known=shapes_known)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_root_of_the_mean_squared_error(weights):
    check(tn.metrics.root_mean_squared_error,
          lambda y, p, w: np.sqrt(average((y - p) ** 2, of(p, w))), LABELS, PREDICTIONS,
          WEIGHTS[weights])


@pytest.mark.parametrize("weights", ["none", "scalar", "rows", "nothing"])
def test_cosine_distance(weights):
    check(lambda y, p, w: tn.metrics.mean_cosine_distance(y, p, 1, w),
          lambda y, p, w: 1 - average((y * p).sum(1, keepdims=True), spread(w, (len(y), 1))),
          LABELS, PREDICTIONS, WEIGHTS[weights])


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("shapes_known", [True, False])
def test_accuracy(weights, shapes_known):
    check(tn.metrics.accuracy, lambda y, p, w: average(y == p, of(p, w)), CLASSES, CHOSEN,
          WEIGHTS[weights], shapes_known=shapes_known)


def test_accuracy_of_strings_and_across_dtypes(evaluate):
    words = tn.metrics.accuracy(tn.constant(["a", "b"]), tn.constant(["a", "c"]))
    assert evaluate(words[1]) == 0.5
    # As in TensorFlow predictions become what labels are: 1.9 is 1.
    assert evaluate(tn.metrics.accuracy([1, 2], [1.9, 3.0])[1]) == 0.5


def test_mean_of_each_element():
    batches = RNG.rand(3, 4, 2).astype(np.float32)
    weights = (RNG.rand(3, 4, 1) < 0.6).astype(np.float32)
    x, w = tn.placeholder(tn.float32, [4, 2]), tn.placeholder(tn.float32, [4, 1])
    value, update = tn.metrics.mean_tensor(x, w)
    with tn.Session() as session:
        session.run(tn.local_variables_initializer())
        for i in range(3):
            got = session.run(update, {x: batches[i], w: weights[i]})
        np.testing.assert_array_equal(session.run(value), got)
    total = np.broadcast_to(weights.sum(0), (4, 2))
    expected = np.divide((batches * weights).sum(0), total, out=np.zeros((4, 2)), where=total > 0)
    np.testing.assert_allclose(got, expected, rtol=1e-5)


def test_a_normalizer_of_zero_counts_as_no_error(evaluate):
    _, update = tn.metrics.mean_relative_error([1.0, 2.0], [2.0, 8.0], [0.0, 2.0])
    assert evaluate(update) == 1.5


# --- Counts ---------------------------------------------------------------------------------------

def counts(y, p, w):
    """tp, fn, tn, fp"""
    y, p, w = y.astype(bool), p.astype(bool), of(p, w)
    return ((y & p) * w).sum(), ((y & ~p) * w).sum(), ((~y & ~p) * w).sum(), ((~y & p) * w).sum()


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name,of_counts", [
    ("true_positives", lambda tp, fn, tn, fp: tp), ("false_negatives", lambda tp, fn, tn, fp: fn),
    ("true_negatives", lambda tp, fn, tn, fp: tn), ("false_positives", lambda tp, fn, tn, fp: fp),
    ("precision", lambda tp, fn, tn, fp: fraction(tp, tp + fp)),
    ("recall", lambda tp, fn, tn, fp: fraction(tp, tp + fn))])
def test_counts(name, of_counts, weights):
    check(getattr(tn.metrics, name), lambda y, p, w: of_counts(*counts(y, p, w)), TRUE, CHOSEN,
          WEIGHTS[weights])


THRESHOLDS = [0.0, 0.25, 0.5, 1.0]


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name,of_counts", [
    ("true_positives", lambda tp, fn, tn, fp: tp), ("false_negatives", lambda tp, fn, tn, fp: fn),
    ("true_negatives", lambda tp, fn, tn, fp: tn), ("false_positives", lambda tp, fn, tn, fp: fp),
    ("precision", lambda tp, fn, tn, fp: tp / (tp + fp + 1e-7)),
    ("recall", lambda tp, fn, tn, fp: tp / (tp + fn + 1e-7))])
def test_counts_at_thresholds(name, of_counts, weights):
    function = getattr(tn.metrics, name + "_at_thresholds")
    check(lambda y, p, w: function(y, p, THRESHOLDS, w),
          lambda y, p, w: [of_counts(*counts(y, p > t, w)) for t in np.float32(THRESHOLDS)],
          TRUE, PREDICTIONS, WEIGHTS[weights])


# --- Classes --------------------------------------------------------------------------------------

def iou(y, p, w):
    w = of(p, w)
    shares = []
    for c in range(5):
        either = (((y == c) | (p == c)) * w).sum()
        if either > 0:
            shares.append((((y == c) & (p == c)) * w).sum() / either)
    return np.mean(shares) if shares else 0.0


def matrix(y, p, w):
    result = np.zeros((5, 5))
    np.add.at(result, (y.ravel(), p.ravel()), of(p, w).ravel())
    return result


@pytest.mark.parametrize("weights", WEIGHTS)
def test_intersection_over_union(weights):
    arrays = (CLASSES, CHOSEN, WEIGHTS[weights])
    updates, value = streamed(lambda y, p, w: tn.metrics.mean_iou(y, p, 5, w), *arrays)
    np.testing.assert_allclose(updates[-1], matrix(*arrays), rtol=1e-6)
    np.testing.assert_allclose(value, iou(*arrays), rtol=1e-6)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_accuracy_per_class(weights):
    arrays = (CLASSES, CHOSEN, WEIGHTS[weights])
    updates, value = streamed(lambda y, p, w: tn.metrics.mean_per_class_accuracy(y, p, 5, w),
                              *arrays)
    seen = matrix(*arrays)
    shares = [fraction(seen[c, c], seen[c].sum()) for c in range(5)]
    np.testing.assert_allclose(updates[-1], shares, rtol=1e-5)
    np.testing.assert_allclose(value, np.mean(shares), rtol=1e-5)


def test_classes_out_of_range(evaluate):
    for function in tn.metrics.mean_iou, tn.metrics.mean_per_class_accuracy:
        for wrong in 3, -1:
            with pytest.raises(tn.errors.InvalidArgumentError, match="indices|out of range"):
                evaluate(function([0, wrong], [0, 1], 3)[1])


# --- Areas ----------------------------------------------------------------------------------------

LEVELS = np.float32([-1e-7, *[(i + 1) / 19 for i in range(18)], 1 + 1e-7])


def points(y, p, w, levels=LEVELS):
    """tp, fn, tn, fp at each threshold"""
    return np.array([counts(y, p > t, w) for t in levels]).T


def area(curve, height):
    def oracle(y, p, w):
        tp, fn, tn_, fp = points(y, p, w)
        recall = (tp + 1e-6) / (tp + fn + 1e-6)
        x, h = (fp / (fp + tn_ + 1e-6), recall) if curve == "ROC" else (
            recall, (tp + 1e-6) / (tp + fp + 1e-6))
        return sum((x[i] - x[i + 1]) * height(h[i], h[i + 1]) for i in range(len(x) - 1))
    return oracle


def interpolated(y, p, w):
    """Precision over recall, both counts changing linearly within a step, summed in small parts."""
    tp, fn, _, fp = points(y, p, w)
    total = 0.0
    for i in range(len(tp) - 1):
        if tp[i] == tp[i + 1] or tp[i + 1] + fn[i + 1] == 0:
            continue
        where = (np.arange(20000) + 0.5) / 20000
        hits = tp[i + 1] + where * (tp[i] - tp[i + 1])
        missed = fp[i + 1] + where * (fp[i] - fp[i + 1])
        total += (hits / (hits + missed)).mean() * (tp[i] - tp[i + 1]) / (tp[i + 1] + fn[i + 1])
    return total


AREAS = {
    ("ROC", "trapezoidal"): area("ROC", lambda a, b: (a + b) / 2),
    ("ROC", "careful_interpolation"): area("ROC", lambda a, b: (a + b) / 2),
    ("ROC", "minoring"): area("ROC", min), ("ROC", "majoring"): area("ROC", max),
    ("PR", "trapezoidal"): area("PR", lambda a, b: (a + b) / 2),
    ("PR", "careful_interpolation"): interpolated,
    ("PR", "minoring"): area("PR", min), ("PR", "majoring"): area("PR", max),
}


@pytest.mark.parametrize("curve,method", AREAS)
@pytest.mark.parametrize("weights", WEIGHTS)
def test_areas(curve, method, weights):
    check(lambda y, p, w: tn.metrics.auc(y, p, w, 20, curve=curve, summation_method=method),
          AREAS[curve, method], TRUE, PREDICTIONS, WEIGHTS[weights])


def test_the_area_is_how_often_a_true_example_ranks_higher(evaluate):
    labels = RNG.rand(400) < 0.3
    scores = np.clip(RNG.rand(400) * 0.7 + labels * 0.3, 0, 1).astype(np.float32)
    pairs = scores[labels][:, None] - scores[~labels]
    ranked = (pairs > 0).mean() + (pairs == 0).mean() / 2
    got = evaluate(tn.metrics.auc(labels, scores, num_thresholds=2000)[1])
    np.testing.assert_allclose(got, ranked, atol=1e-3)
    by_hand = evaluate(tn.metrics.auc(labels, scores, thresholds=list(map(float, scores)))[1])
    np.testing.assert_allclose(by_hand, ranked, atol=2e-5)


def test_against_scikit_learn(evaluate):
    measures = pytest.importorskip("sklearn.metrics", reason="scikit-learn is not installed")
    y, p = TRUE.ravel(), PREDICTIONS.ravel()
    got = evaluate([tn.metrics.auc(y, p, thresholds=list(map(float, p)))[1],
                    tn.metrics.precision(y, p > 0.5)[1], tn.metrics.recall(y, p > 0.5)[1]])
    np.testing.assert_allclose(got, [measures.roc_auc_score(y, p),
                                     measures.precision_score(y, p > 0.5),
                                     measures.recall_score(y, p > 0.5)], atol=1e-5)


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("wanted", [0.0, 0.3, 0.9, 1.0])
def test_sensitivity_at_specificity(weights, wanted):
    def oracle(y, p, w):
        tp, fn, tn_, fp = points(y, p, w).astype(np.float32)
        i = np.argmin(abs(tn_ / (tn_ + fp + np.float32(1e-7)) - np.float32(wanted)))
        return tp[i] / (tp[i] + fn[i] + 1e-7)
    check(lambda y, p, w: tn.metrics.sensitivity_at_specificity(y, p, wanted, w, 20), oracle, TRUE,
          PREDICTIONS, WEIGHTS[weights])


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("wanted", [0.0, 0.3, 0.9, 1.0])
def test_specificity_at_sensitivity(weights, wanted):
    def oracle(y, p, w):
        levels = np.concatenate([LEVELS[:-1], np.float32([1 - 1e-7])])
        tp, fn, tn_, fp = points(y, p, w, levels).astype(np.float32)
        off = abs(tp / (tp + fn + np.float32(1e-7)) - np.float32(wanted))
        i = np.flatnonzero(off == off.min())[-1]
        return tn_[i] / (tn_[i] + fp[i] + 1e-7)
    check(lambda y, p, w: tn.metrics.specificity_at_sensitivity(y, p, wanted, w, 20), oracle, TRUE,
          PREDICTIONS, WEIGHTS[weights])


# --- Variables, names, collections ----------------------------------------------------------------

def calls():
    """{name: a call of each function}"""
    def call(name):
        function = getattr(tn.metrics, name)
        named = {"labels": TRUE, "predictions": PREDICTIONS, "values": PREDICTIONS, "dim": 1,
                 "normalizer": LABELS, "threshold": 0.5, "thresholds": [0.2, 0.7], "k": 2,
                 "specificity": 0.5, "sensitivity": 0.5, "num_classes": 4,
                 "predictions_idx": CHOSEN}
        if name in ("mean_iou", "mean_per_class_accuracy"):
            named.update(labels=CLASSES, predictions=CHOSEN)
        elif name.endswith("_k"):
            named["labels"] = CLASSES
        elif "mean_" in name:
            named["labels"] = LABELS
        parameters = inspect.signature(function).parameters
        given = {k: v for k, v in named.items() if k in parameters
                 and parameters[k].default is parameters[k].empty}
        return lambda **more: function(**given, **more)
    return {name: call(name) for name in tn.metrics.__all__ if name[0].islower()}


CALLS = calls()
VARIABLES = {
    "mean": "mean/total mean/count", "accuracy": "accuracy/total accuracy/count",
    "auc": "auc/true_positives auc/false_negatives auc/true_negatives auc/false_positives",
    "mean_tensor": "mean/total_tensor mean/count_tensor",
    "mean_iou": "mean_iou/total_confusion_matrix",
    "mean_per_class_accuracy": "mean_accuracy/total mean_accuracy/count",
    "percentage_below": "percentage_below_threshold/total percentage_below_threshold/count",
    "precision": "precision/true_positives/count precision/false_positives/count",
    "recall": "recall/true_positives/count recall/false_negatives/count",
    "true_positives": "true_positives/count",
    "true_positives_at_thresholds": "true_positives/true_positives",
    "precision_at_thresholds": "precision_at_thresholds/true_positives "
                               "precision_at_thresholds/false_positives",
    "precision_at_k": "precision_at_2/true_positive_at_2 precision_at_2/false_positive_at_2",
    "recall_at_top_k": "recall_at_k/true_positive_at_k recall_at_k/false_negative_at_k",
    "average_precision_at_k": "average_precision_at_2/max average_precision_at_2/total",
}


@pytest.mark.parametrize("name", VARIABLES)
def test_names_of_variables(name):
    CALLS[name]()
    names = [v.name for v in tn.local_variables()]
    assert names == [n + ":0" for n in VARIABLES[name].split()]


@pytest.mark.parametrize("name", CALLS)
def test_collections_and_a_second_metric(name):
    value, update = CALLS[name](metrics_collections=["values", "all"], updates_collections=["all"])
    assert tn.get_collection("values") == [value]
    assert set(tn.get_collection("all")) == {value, update}
    variables = tn.local_variables()
    assert variables and variables == tn.get_collection(tn.GraphKeys.METRIC_VARIABLES)
    assert not tn.global_variables() and not tn.trainable_variables()
    assert all(not np.any(v.initial_value.eval(session=tn.Session())) for v in variables)
    CALLS[name]()
    names = [v.name for v in tn.local_variables()]
    assert len(set(names)) == len(names) == 2 * len(variables)


@pytest.mark.parametrize("name", CALLS)
def test_a_name_is_the_scope(name):
    value, update = CALLS[name](name="mine")
    assert all(v.name.startswith("mine/") for v in tn.local_variables())
    assert value.name.startswith("mine") or name in ("root_mean_squared_error",
                                                     "mean_cosine_distance")


@pytest.mark.parametrize("name", CALLS)
def test_the_initializer_begins_anew(name):
    value, update = CALLS[name]()
    with tn.Session() as session:
        session.run(tn.local_variables_initializer())
        first = session.run(value)
        once = session.run(update), session.run(value)
        session.run(update)
        session.run(tn.local_variables_initializer())
        np.testing.assert_array_equal(session.run(value), first)
        again = session.run(update), session.run(value)
    for a, b in zip(once, again):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("name", CALLS)
def test_not_with_immediate_execution(name):
    with tn.eager():
        with pytest.raises(RuntimeError) as caught:
            CALLS[name]()
    assert str(caught.value) == ("tn.metrics.%s is not supported when eager execution is enabled."
                                 % name)


def test_a_run_of_both_has_the_value_before_the_update():
    x = tn.placeholder(tn.float32, [None])
    both = tn.metrics.mean(x)
    with tn.Session() as session:
        session.run(tn.local_variables_initializer())
        seen = [session.run(both, {x: [i, i + 1.0]}) for i in range(20)]
    assert [value for value, _ in seen[1:]] == [update for _, update in seen[:-1]]


def test_in_a_traced_function():
    with tn.eager():
        @tn.function
        def so_far(x):
            return tn.metrics.mean(x)[1]
        assert [float(so_far(tn.constant(x))) for x in ([1.0, 2.0], [3.0, 6.0])] == [1.5, 3.0]
        assert not tn.get_collection(tn.GraphKeys.METRIC_VARIABLES)


def test_a_batch_that_fails_changes_nothing():
    x = tn.placeholder(tn.float32, [None])
    value, update = tn.metrics.mean(tn.check_numerics(x, "no number"))
    with tn.Session() as session:
        session.run(tn.local_variables_initializer())
        session.run(update, {x: [1.0, 3.0]})
        with pytest.raises(tn.errors.InvalidArgumentError, match="no number"):
            session.run(update, {x: [1.0, np.nan]})
        assert session.run(value) == 2.0


# --- What is refused ------------------------------------------------------------------------------

A, B = np.zeros((4, 3), np.float32), np.zeros((4, 2), np.float32)
REFUSED = [
    (lambda m: m.accuracy(A, B), r"labels must have the shape of predictions, \(4, 2\), not \(4"),
    (lambda m: m.mean_squared_error(A, B), "labels must have the shape of predictions"),
    (lambda m: m.precision(A, B), "labels must have the shape of predictions"),
    (lambda m: m.auc(A, B), "labels must have the shape of predictions"),
    (lambda m: m.mean_iou(A, B, 3), "labels must have the shape of predictions"),
    (lambda m: m.mean_per_class_accuracy(A, B, 3), "labels must have the shape of predictions"),
    (lambda m: m.mean_relative_error(A, A, B), "normalizer must have the shape of predictions"),
    (lambda m: m.mean(A, [1.0, 2.0]), "weights can not be broadcast to values"),
    (lambda m: m.mean(A, B), "weights can not be broadcast to values"),
    (lambda m: m.mean(A, np.ones((2, 4, 3, 1))), "weights can not be broadcast to values"),
    (lambda m: m.accuracy(A, A, B), "weights can not be broadcast to values"),
    (lambda m: m.recall(A, A, B), "weights can not be broadcast to values"),
    (lambda m: m.auc(A, A, B), "weights can not be broadcast to values"),
    (lambda m: m.mean_iou(A, A, 3, B), "weights can not be broadcast to values"),
    (lambda m: m.mean_tensor(tn.placeholder(tn.float32, [None, 2])), r"fully known.*\(\?, 2\)"),
    (lambda m: m.auc(A, A, curve="LIFT"), "curve must be either ROC or PR, 'LIFT' unknown"),
    (lambda m: m.auc(A, A, summation_method="simpson"), "Invalid summation_method: 'simpson'"),
    (lambda m: m.auc(A, A, num_thresholds=1), "num_thresholds must be an int of at least 2, not 1"),
    (lambda m: m.auc(A, A, thresholds=["a"]), r"thresholds must be a list of floats.*\['a'\]"),
    (lambda m: m.recall_at_thresholds(A, A, 0.5), "thresholds must be a list of floats.*0.5"),
    (lambda m: m.sensitivity_at_specificity(A, A, 1.5),
     r"`specificity` must be in the range \[0, 1\], not 1.5"),
    (lambda m: m.specificity_at_sensitivity(A, A, -0.1),
     r"`sensitivity` must be in the range \[0, 1\], not -0.1"),
    (lambda m: m.mean_iou(A, A, 0), "num_classes must be an int of at least 1, not 0"),
    (lambda m: m.mean_cosine_distance(A, A, 2), "2"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
def test_refused(number):
    call, text = REFUSED[number]
    with pytest.raises((ValueError, TypeError), match=text):
        call(tn.metrics)
    assert not tn.local_variables(), "variables were made, though the metric was not"


def test_predictions_out_of_range():
    x = tn.placeholder(tn.float32, [2])
    for function in (tn.metrics.auc, lambda y, p: tn.metrics.precision_at_thresholds(y, p, [0.5]),
                     lambda y, p: tn.metrics.sensitivity_at_specificity(y, p, 0.5)):
        _, update = function([True, False], x)
        with tn.Session() as session:
            session.run(tn.local_variables_initializer())
            for wrong in [-0.1, 0.5], [0.5, 1.1], [np.nan, 0.5]:
                with pytest.raises(tn.errors.InvalidArgumentError,
                                   match=r"predictions must be in \[0, 1\]"):
                    session.run(update, {x: wrong})
            session.run(update, {x: [0.0, 1.0]})


def test_an_axis_that_only_a_run_knows_to_be_superfluous():
    one, two = [[1.0], [4.0]], [1.0, 2.0]
    for labels, predictions in (one, two), (two, one), (one, one), (two, two):
        y, p = tn.placeholder(tn.float32), tn.placeholder(tn.float32)
        _, update = tn.metrics.mean_squared_error(y, p)
        with tn.Session() as session:
            session.run(tn.local_variables_initializer())
            assert session.run(update, {y: labels, p: predictions}) == (
                2.0 if labels is not predictions else 0.0)


def test_weights_that_a_run_refuses():
    x, w = tn.placeholder(tn.float32), tn.placeholder(tn.float32)
    _, update = tn.metrics.mean(x, w)
    with tn.Session() as session:
        session.run(tn.local_variables_initializer())
        with pytest.raises(tn.errors.InvalidArgumentError):
            session.run(update, {x: np.ones((4, 3)), w: np.ones((4, 2))})
        assert session.run(update, {x: [[1.0], [2.0]], w: [1.0, 3.0]}) == 1.75
