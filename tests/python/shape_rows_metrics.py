# SPDX-License-Identifier: Apache-2.0
"""Static shapes of tn.metrics (tensorflow/python/ops/metrics_impl.py)."""

import treenail as tn
from static_shapes import row, rows

SCALARS = ([], [])


def metrics(names, build, shape):
    rows(" ".join("metrics." + name for name in names.split()), build, shape)


metrics("mean", lambda f, p: f(p.f(None, 3), p.f(None, 1)), SCALARS)
metrics("mean", lambda f, p: f(p.u(2, 3), p.u(2, 3)), SCALARS)
metrics("mean_tensor", lambda f, p: f(p.f(4, 3), p.f(4, 1)), ([4, 3], [4, 3]))
metrics("percentage_below", lambda f, p: f(p.f(None, 3), 0.5), SCALARS)
PAIRS = ("accuracy mean_absolute_error mean_squared_error root_mean_squared_error true_positives "
         "true_negatives false_positives false_negatives precision recall auc")
metrics(PAIRS, lambda f, p: f(p.f(None, 3), p.f(None, 3), p.f(None, 1)), SCALARS)
metrics(PAIRS, lambda f, p: f(p.u(2, 3), p.u(2, 3), p.u(2, 3)), SCALARS)
metrics("mean_relative_error", lambda f, p: f(p.f(None, 3), p.f(None, 3), p.f(None, 3)), SCALARS)
metrics("mean_cosine_distance", lambda f, p: f(p.f(None, 3), p.f(None, 3), 1), SCALARS)
metrics("mean_iou", lambda f, p: f(p.i(None), p.i(None), 4), ([], [4, 4]))
metrics("mean_per_class_accuracy", lambda f, p: f(p.i(None), p.i(None), 4, p.f(None)), ([], [4]))
AT_THRESHOLDS = " ".join(kind + "_at_thresholds" for kind in (
    "true_positives", "true_negatives", "false_positives", "false_negatives", "precision",
    "recall"))
metrics(AT_THRESHOLDS, lambda f, p: f(p.b(None), p.f(None), [0.2, 0.5, 0.7], p.f(None)),
        ([3], [3]))
metrics(AT_THRESHOLDS, lambda f, p: f(p.u(2, 3), p.u(2, 3), [0.2, 0.5]), ([2], [2]))
metrics("sensitivity_at_specificity specificity_at_sensitivity",
        lambda f, p: f(p.b(None, 3), p.f(None, 3), 0.5, p.f(None, 1)), SCALARS)
AT_K = ("precision_at_k recall_at_k average_precision_at_k sparse_precision_at_k "
        "sparse_average_precision_at_k")
metrics(AT_K, lambda f, p: f(p.i(None, 2), p.f(None, 5), 3), SCALARS)
metrics(AT_K, lambda f, p: f(p.i(None), p.u(2, 5), 3, weights=p.f(None)), SCALARS)
metrics("precision_at_top_k recall_at_top_k", lambda f, p: f(p.i(None, 2), p.i(None, 3)), SCALARS)
row("metrics.recall_at_k", lambda p: tn.metrics.recall_at_k(
    tn.SparseTensor([[0, 0], [1, 1]], [1, 2], [2, 2]), p.f(None, 5), 3, class_id=1), SCALARS)
