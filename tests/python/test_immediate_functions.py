# SPDX-License-Identifier: Apache-2.0
"""Every public function with immediate execution: the rows of the tables of static shapes, at once
and in a session, must give the same bits."""

import numpy as np
import pytest
import treenail as tn
from static_shapes import ROWS, Placeholders, flattened

import shape_rows_array  # noqa: F401
import shape_rows_image  # noqa: F401
import shape_rows_linalg  # noqa: F401
import shape_rows_math  # noqa: F401
import shape_rows_nn  # noqa: F401
import shape_rows_signal  # noqa: F401


GRAPHS_ONLY = {"gradients", "hessians", "jacobian", "batch_jacobian", "hessian_vector_product",
               "jacobian_vector_product",  # tapes: test_tape.py
               "losses.get_total_loss"}  # nothing joins the collection of losses
UNSEEDED = {"image.sample_distorted_bounding_box"}


class Values(Placeholders):
    """The concrete tensors that the placeholders of a row are fed with."""

    def of(self, dtype, shape, fed=None, value=None):
        with tn.Graph().as_default():
            there = super().of(dtype, shape, fed, value)
        return tn.constant(self.feeds[there], dtype)


class Numbering(tn.Graph):
    """A graph that gives operations without a seed those of immediate execution."""

    def _op_seed(self):
        self._seeds = getattr(self, "_seeds", 0) + 1
        return self._seeds


def in_a_session(build):
    with Numbering().as_default():
        tn.set_random_seed(1)
        placeholders = Placeholders()
        results = flattened(build(placeholders))
        with tn.Session() as session:
            session.run([tn.global_variables_initializer(), tn.local_variables_initializer()])
            return session.run(results, placeholders.feeds)


def at_once(build):
    with tn.eager():
        tn.set_random_seed(1)
        tn.get_default_graph().clear_collection(tn.GraphKeys.GLOBAL_STEP)
        return [tn.convert_to_tensor(r).numpy() for r in flattened(build(Values()))]


@pytest.mark.parametrize("number", [
    n for n in range(len(ROWS)) if ROWS[n][3] and ROWS[n][0] not in GRAPHS_ONLY
    and not ROWS[n][0].startswith("metrics.")],  # they refuse it: test_metrics.py
                         ids=lambda n: "%s-%d" % (ROWS[n][0], n))
def test_row_at_once(number):
    name, build, _, _ = ROWS[number]
    for value, wanted in zip(at_once(build), in_a_session(build)):
        if name in UNSEEDED:
            assert np.shape(value) == np.shape(wanted)
        else:
            np.testing.assert_array_equal(value, wanted, err_msg=name)


BODIES = [lambda x: tn.cond(tn.reduce_sum(x) > 0.0, lambda: x * x, lambda: tn.sin(x)),
          lambda x: tn.while_loop(lambda i, _: i < 3, lambda i, y: (i + 1, y * x),
                                  (tn.constant(0), x))[1],
          lambda x: tn.function(lambda y: y * x, autograph=False)(tn.sin(x))]


@pytest.mark.parametrize("body", BODIES)
def test_a_call_without_a_tape_after_one_under_a_tape(body):
    """The gradient has put other functions in the trace, which the library got afterwards."""
    with tn.eager():
        f = tn.function(body, autograph=False)
        x = tn.constant([1.0, 2.0])
        with tn.GradientTape() as tape:
            tape.watch(x)
            y = f(x)
        np.testing.assert_array_equal(f(x), y)
        assert tape.gradient(y, x) is not None
        np.testing.assert_array_equal(f(x), y)


def test_functions_of_one_name_get_names_of_their_own():
    with tn.Graph().as_default() as graph, tn.Session() as session:
        traced = [tn.function(lambda x, k=k: x + k, autograph=False)(tn.constant(1)) for k in
                  range(20)]
        assert session.run(traced) == list(range(1, 21))
        calls = [op for op in graph.get_operations() if op.type == "PartitionedCall"]
        assert len({str(op.get_attr("f")) for op in calls}) == len(calls) == 20
