# SPDX-License-Identifier: Apache-2.0
"""Metric objects: at once, in graphs and in traced functions, against NumPy."""

import numpy as np
import pytest

import treenail as tn

RNG = np.random.RandomState(7)
BATCHES = [4, 1, 6]
LABELS = [RNG.randint(0, 3, n) for n in BATCHES]
SCORES = [RNG.rand(n, 3).astype(np.float32) for n in BATCHES]
WEIGHTS = [RNG.rand(n).astype(np.float32) for n in BATCHES]


def one_hot(labels):
    return np.eye(3, dtype=np.float32)[labels]


# {name: (the object, what a call is given, which examples are right)}
OBJECTS = {
    "Mean": (lambda: tn.metrics.Mean(), lambda y, p: (p[:, 0],), lambda y, p: p[:, 0]),
    "Accuracy": (lambda: tn.metrics.Accuracy(), lambda y, p: (y, p.argmax(1)),
                 lambda y, p: y == p.argmax(1)),
    "CategoricalAccuracy": (lambda: tn.metrics.CategoricalAccuracy(),
                            lambda y, p: (one_hot(y), p), lambda y, p: y == p.argmax(1)),
    "SparseAccuracy": (lambda: tn.metrics.SparseAccuracy(), lambda y, p: (y, p),
                       lambda y, p: y == p.argmax(1)),
    "BinaryAccuracy": (lambda: tn.metrics.BinaryAccuracy(0.5), lambda y, p: (y > 0, p[:, 0]),
                       lambda y, p: (y > 0) == (p[:, 0] > 0.5)),
}


def expected(right, weighted):
    values = np.concatenate([right(y, p) for y, p in zip(LABELS, SCORES)]).astype(np.float64)
    w = np.concatenate(WEIGHTS).astype(np.float64) if weighted else np.ones(len(values))
    return (values * w).sum() / w.sum()


def batches(arguments, weighted):
    for y, p, w in zip(LABELS, SCORES, WEIGHTS):
        yield arguments(y, p) + ((w,) if weighted else ())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", OBJECTS)
def test_at_once(name, weighted):
    make, arguments, right = OBJECTS[name]
    with tn.eager():
        metric = make()
        for batch in batches(arguments, weighted):
            returned = metric(*batch)
            given = returned if isinstance(returned, tuple) else (returned,)
            assert all(a is b for a, b in zip(given, batch)) and len(given) == len(batch)
        assert metric.result().dtype == tn.float64
        np.testing.assert_allclose(metric.result(), expected(right, weighted), rtol=1e-12)
        assert metric.value() == metric.result
        metric.init_variables()
        assert np.isnan(metric.result().numpy())
        metric(*batch)
        assert np.isfinite(metric.result().numpy())


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("shapes_known", [False, True])
def test_in_a_graph(name, weighted, shapes_known):
    make, arguments, right = OBJECTS[name]
    metric = make()
    first = next(batches(arguments, weighted))
    holders = [tn.placeholder(a.dtype, [None, *a.shape[1:]] if shapes_known else None)
               for a in first]
    update = metric(*holders)
    result, begin = metric.result(), metric.init_variables()
    assert metric.value() is not metric.result and not tn.global_variables()
    assert tn.local_variables() == tn.get_collection("metric_variables") == metric.variables
    with tn.Session() as session:
        for _ in range(2):
            session.run(begin)
            assert np.isnan(session.run(result))
            for batch in batches(arguments, weighted):
                session.run(update, dict(zip(holders, batch)))
            np.testing.assert_allclose(session.run(result), expected(right, weighted), rtol=1e-12)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", OBJECTS)
@pytest.mark.parametrize("built_before", [False, True])
def test_in_a_traced_function(name, weighted, built_before):
    make, arguments, right = OBJECTS[name]
    with tn.eager():
        metric = make()
        if built_before:
            metric(*next(batches(arguments, weighted)))
            metric.init_variables()

        @tn.function
        def step(*batch):
            metric(*batch)
            return metric.result()

        @tn.function
        def anew():
            metric.init_variables()
        for _ in range(2):
            for batch in batches(arguments, weighted):
                result = step(*[tn.constant(b) for b in batch])
            np.testing.assert_allclose(result, expected(right, weighted), rtol=1e-12)
            anew()
            assert np.isnan(metric.result().numpy())


def test_a_call_in_a_branch_of_a_graph():
    metric, x = tn.metrics.Mean(), tn.placeholder(tn.float32, [2])
    metric(tn.zeros([2]))
    update = tn.cond(x[0] > 0.0, lambda: metric(x), lambda: tn.zeros([2]))
    with tn.Session() as session:
        session.run(metric.init_variables())
        for value in [1.0, 2.0], [-9.0, -9.0], [3.0, 6.0]:
            session.run(update, {x: value})
        assert session.run(metric.result()) == 3.0


def test_weights_of_each_form():
    values = RNG.rand(4, 3)
    with tn.eager():
        for w in 2.0, np.ones((4, 1)) * 0.5, np.arange(4.0), np.arange(12.0).reshape(4, 3):
            metric = tn.metrics.Mean()
            metric(values, w)
            spread = np.broadcast_to(w[:, None] if np.ndim(w) == 1 else w, (4, 3))
            np.testing.assert_allclose(metric.result(), (values * spread).sum() / spread.sum())


def test_dtypes():
    with tn.eager():
        metric = tn.metrics.Mean(dtype=tn.float32)
        metric([1, 2], [3, 1])
        assert metric.result().dtype == tn.float32 and float(metric.result()) == 1.25
        large = tn.metrics.Mean()
        large(np.full(4, 2**31 - 1, np.int32))  # their sum is no int32
        assert float(large.result()) == 2**31 - 1
        rate = tn.metrics.SparseAccuracy(dtype=tn.float32)
        rate([1], [[0.0, 1.0]])
        assert [v.dtype for v in rate.variables] == [tn.float32] * 2


@pytest.mark.parametrize("at_once", [False, True])
def test_names(at_once):
    with tn.eager() if at_once else tn.Graph().as_default():
        first, second, spaced = (tn.metrics.Mean(), tn.metrics.Mean(),
                                 tn.metrics.Accuracy("has space/1"))
        first(1.0), second(1.0), spaced([1], [1])
        other = "Mean" if at_once else "Mean_1"
        assert [m.name for m in (first, second, spaced)] == ["Mean", other, "has space/1"]
        assert [m.variables[0].name for m in (first, second, spaced)] == [
            "Mean/numer:0", other + "/numer:0", "has_space_1/numer:0"]
        assert repr(spaced) == "<tn.metrics.Accuracy 'has space/1'>"
        with tn.variable_scope("outer"):
            inner = tn.metrics.Mean("inner")
        inner(1.0)
        assert [v.name for v in inner.variables] == ["outer/inner/numer:0", "outer/inner/denom:0"]


def test_global_variables_are_saved_by_default(tmp_path):
    metric = tn.metrics.Mean(use_global_variables=True)
    update = metric(tn.placeholder_with_default([1.0, 4.0], [2]))
    assert tn.global_variables() == metric.variables and not tn.local_variables()
    saver = tn.train.Saver()
    with tn.Session() as session:
        session.run(tn.global_variables_initializer())
        session.run(update)
        path = saver.save(session, str(tmp_path / "metric"))
    with tn.Session() as session:
        saver.restore(session, path)
        assert session.run(metric.result()) == 2.5


def test_variables_are_saved_at_once(tmp_path):
    with tn.eager():
        metric = tn.metrics.Accuracy()
        metric([1, 2, 3, 4], [0, 2, 3, 4])
        saver = tn.train.Saver(metric.variables)
        path = saver.save(None, str(tmp_path / "metric"))
        metric.init_variables()
        saver.restore(None, path)
        assert float(metric.result()) == 0.75


def test_aggregate_at_once_and_in_a_graph():
    with tn.eager():
        parts = [tn.metrics.Mean() for _ in range(3)]
        for part, values in zip(parts, ([1.0], [2.0, 3.0], [4.0, 5.0, 6.0])):
            part(values)
        assert parts[0].aggregate(parts[1:]) is None
        assert float(parts[0].result()) == 3.5 and float(parts[1].result()) == 2.5
        assert parts[0].aggregate([]) is None
        with pytest.raises(TypeError, match="All metrics must be the same type, 'Mean' != 'Accur"):
            parts[0].aggregate([tn.metrics.Accuracy()])
        with pytest.raises(ValueError, match="All metrics must have variables in the same order"):
            parts[0].aggregate([tn.metrics.Mean()])
    a, b = tn.metrics.Mean(), tn.metrics.Mean()
    updates = a([1.0, 2.0]), b([6.0])
    add = a.aggregate([b])
    with tn.Session() as session:
        session.run([a.init_variables(), b.init_variables()])
        session.run(updates)
        session.run(add)
        assert session.run(a.result()) == 3.0


class Largest(tn.metrics.Metric):
    """Python's own control flow, and a call that gives nothing."""

    def build(self, values):
        self.largest = self.add_variable("largest", [], tn.float32, tn.constant_initializer(-1.0))

    def call(self, values):
        found = tn.reduce_max(values)
        if found > self.largest:
            self.largest.assign(found)

    def result(self):
        return self.largest.read_value()


def test_a_metric_of_ones_own():
    stream, wanted = [[1.0, 3.0], [2.0, 0.0], [5.0, 4.0]], 5.0
    with tn.eager():
        metric = Largest()
        for values in stream:
            assert metric(tn.constant(values)) is None
        assert float(metric.result()) == wanted
        metric.init_variables()
        assert float(metric.result()) == -1.0
        traced = Largest("traced")
        step = tn.function(lambda x: traced(x))
        for values in stream:
            step(tn.constant(values))
        assert float(traced.result()) == wanted
        with pytest.raises(RuntimeError, match=r"Can't call add_variable\(\) except in build"):
            metric.add_variable("late", [])
    metric, x = Largest(), tn.placeholder(tn.float32, [None])
    update = metric(x)
    assert isinstance(update, tn.Operation)
    with tn.Session() as session:
        session.run(metric.init_variables())
        for values in stream[::-1]:
            session.run(update, {x: values})
        assert session.run(metric.result()) == wanted


def test_what_a_subclass_must_define():
    class Nothing(tn.metrics.Metric):
        pass

    class Built(Nothing):
        def build(self, *args):
            pass
    with tn.eager():
        with pytest.raises(NotImplementedError, match=r"must define a build\(\)"):
            Nothing()(1.0)
        with pytest.raises(NotImplementedError, match=r"must define a call\(\)"):
            Built()(1.0)
        with pytest.raises(NotImplementedError, match=r"must define a result\(\)"):
            Built().result()


def test_objects_end_with_their_holders():
    import gc
    import weakref
    with tn.eager():
        metric = tn.metrics.Mean()
        metric([1.0])
        variable, held = weakref.ref(metric.variables[0]), weakref.ref(metric)
        del metric
        gc.collect()
        assert variable() is None and held() is None


REFUSED = [
    (lambda: tn.metrics.Accuracy()([1, 2], [1, 2, 3]), "Shapes of labels and predictions are une"),
    (lambda: tn.metrics.BinaryAccuracy(0.5)([1, 0], [[0.1, 0.9]]), "Shapes of labels and predicti"),
    (lambda: tn.metrics.CategoricalAccuracy()([1], [[0.1, 0.9]]), "Shapes of labels and predictio"),
    (lambda: tn.metrics.SparseAccuracy()([1, 0], [[0.1, 0.9]]), r"\(2,\).*needed is \(1,\)"),
    (lambda: tn.metrics.Mean()([1.0, 2.0], [1.0, 2.0, 3.0]), "weights can not be broadcast to val"),
    (lambda: tn.metrics.Mean().result(), "'Mean'> has no variables yet: call the object itself fi"),
    (lambda: tn.metrics.Mean().call(1.0), "'Mean'> has no variables yet: call the object itself f"),
]


@pytest.mark.parametrize("number", range(len(REFUSED)))
@pytest.mark.parametrize("at_once", [False, True])
def test_refused(number, at_once):
    call, text = REFUSED[number]
    with tn.eager() if at_once else tn.Graph().as_default():
        with pytest.raises(ValueError, match=text):
            call()


def test_shapes_that_a_run_refuses():
    y, p = tn.placeholder(tn.int64), tn.placeholder(tn.int64)
    metric = tn.metrics.Accuracy()
    update = metric(y, p)
    with tn.Session() as session:
        session.run(metric.init_variables())
        with pytest.raises(tn.errors.InvalidArgumentError, match="Shapes of labels and predict"):
            session.run(update, {y: [1], p: [1, 1, 1]})  # they would broadcast
        assert np.isnan(session.run(metric.result()))
