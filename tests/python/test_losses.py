# SPDX-License-Identifier: Apache-2.0
"""tn.losses against NumPy."""

import numpy as np
import pytest

import treenail as tn

A = np.random.RandomState(1).rand(4, 3).astype(np.float32)
B = np.random.RandomState(2).rand(4, 3).astype(np.float32)
W = np.array([[1.0], [0.0], [2.0], [0.5]], np.float32)
SOFT = np.exp(A) / np.exp(A).sum(1, keepdims=True)


def xent(labels):
    return -(labels * np.log(SOFT)).sum(1)


CASES = [
    (lambda: tn.losses.mean_squared_error(B, A), ((A - B) ** 2).mean()),
    (lambda: tn.losses.mean_squared_error(B, A, W), ((A - B) ** 2 * W).sum() / 9),
    (lambda: tn.losses.mean_squared_error(B, A, 2.0), 2 * ((A - B) ** 2).mean()),
    (lambda: tn.losses.mean_squared_error(B, A, 0.0), 0),
    (lambda: tn.losses.mean_squared_error(B, A, W, reduction="weighted_sum"),
     ((A - B) ** 2 * W).sum()),
    (lambda: tn.losses.mean_squared_error(B, A, W, reduction="weighted_mean"),
     ((A - B) ** 2 * W).sum() / (3 * W.sum())),
    (lambda: tn.losses.mean_squared_error(B, A, W, reduction="weighted_sum_over_batch_size"),
     ((A - B) ** 2 * W).sum() / 12),
    (lambda: tn.losses.mean_squared_error(B, A, W, reduction="none"), (A - B) ** 2 * W),
    (lambda: tn.losses.absolute_difference(B, A), abs(A - B).mean()),
    (lambda: tn.losses.huber_loss(B, A, delta=0.3), np.where(
        abs(A - B) < 0.3, (A - B) ** 2 / 2, 0.3 * abs(A - B) - 0.045).mean()),
    (lambda: tn.losses.log_loss(B, A), (-B * np.log(A + 1e-7)
                                        - (1 - B) * np.log(1 - A + 1e-7)).mean()),
    (lambda: tn.losses.hinge_loss(np.round(B), A), np.maximum(
        0, 1 - (2 * np.round(B) - 1) * A).mean()),
    (lambda: tn.losses.cosine_distance(B, A, axis=1), (1 - (A * B).sum(1)).mean()),
    (lambda: tn.losses.sigmoid_cross_entropy(B, A), (np.log1p(np.exp(A)) - A * B).mean()),
    (lambda: tn.losses.softmax_cross_entropy(np.eye(3)[[0, 1, 2, 0]], A),
     xent(np.eye(3)[[0, 1, 2, 0]]).mean()),
    (lambda: tn.losses.softmax_cross_entropy(np.eye(3)[[0, 1, 2, 0]], A, W[:, 0]),
     (xent(np.eye(3)[[0, 1, 2, 0]]) * W[:, 0]).sum() / 3),
    (lambda: tn.losses.softmax_cross_entropy(np.eye(3)[[0, 1, 2, 0]], A, label_smoothing=0.3),
     xent(np.eye(3)[[0, 1, 2, 0]] * 0.7 + 0.1).mean()),
    (lambda: tn.losses.sparse_softmax_cross_entropy([0, 1, 2, 0], A),
     xent(np.eye(3)[[0, 1, 2, 0]]).mean()),
    (lambda: tn.losses.sparse_softmax_cross_entropy([[0], [1], [2], [0]], A, W),
     (xent(np.eye(3)[[0, 1, 2, 0]]) * W[:, 0]).sum() / 3),
    (lambda: tn.losses.mean_pairwise_squared_error(B, A), np.mean([
        np.mean([((d[i] - d[j]) ** 2) for i in range(3) for j in range(3) if i != j])
        for d in A - B])),
]


@pytest.mark.parametrize("number", range(len(CASES)))
def test_against_numpy(number, evaluate):
    build, expected = CASES[number]
    loss = build()
    np.testing.assert_allclose(evaluate(loss), expected, rtol=1e-5, atol=1e-7)
    assert tn.losses.get_losses() == [loss]


def test_the_total_loss(evaluate):
    tn.losses.absolute_difference([1.0], [3.0])
    tn.losses.add_loss(tn.constant(10.0))
    tn.get_variable("v", [2], initializer=tn.ones_initializer(),
                    regularizer=tn.regularizers.l1(0.5))
    assert evaluate(tn.losses.get_total_loss()) == 13
    assert evaluate(tn.losses.get_total_loss(add_regularization_losses=False)) == 12


@pytest.mark.parametrize("call,text", [
    (lambda: tn.losses.mean_squared_error(None, A), "labels must not be None"),
    (lambda: tn.losses.mean_squared_error(A, None), "predictions must not be None"),
    (lambda: tn.losses.mean_squared_error(A[:2], A), "are incompatible"),
    (lambda: tn.losses.mean_squared_error(A, A, [1.0, 2.0]), "weights can not be broadcast"),
    (lambda: tn.losses.mean_pairwise_squared_error(A, A, [1.0] * 4), "weights can not be broad"),
    (lambda: tn.losses.mean_squared_error(A, A, reduction="max"), "Invalid ReductionKey max"),
    (lambda: tn.losses.cosine_distance(A, A), "You must specify 'axis'"),
    (lambda: tn.losses.get_total_loss(), "no losses to sum")])
def test_what_is_refused(call, text):
    with pytest.raises(ValueError, match=text):
        call()
