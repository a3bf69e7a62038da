# SPDX-License-Identifier: Apache-2.0
"""How good a model is, over a stream of batches: TensorFlow 1's tf.metrics, and the metric objects
of its contrib.eager.

    value, update = tn.metrics.accuracy(labels, tn.argmax(logits, 1))
    session.run(tn.local_variables_initializer())
    for batch in batches:
        session.run(update, feed(batch))
    print(session.run(value))

A function keeps its sums in local variables (collections LOCAL_VARIABLES and METRIC_VARIABLES) and
gives (value, update): `value` is that of all batches since these were initialised, `update` adds a
batch and is the value with it. With immediate execution functions raise RuntimeError; objects
(Mean, Accuracy, ...) work there, in graphs and in tn.function.

What most of them take:
- labels, predictions: of one shape. Where one has one axis more, of extent 1 and last, it goes.
- weights: how much each element counts, 1 by default, 0 masks it. A scalar, or of the shape of the
  values where each extent may be 1 instead; a last axis of extent 1 may be there or not.
- metrics_collections, updates_collections: names of collections that `value` and `update` join.
- name: the variable scope, by default the function's name, made unique.

ValueError: shapes of labels, predictions or weights that do not belong together; where only a run
knows them, InvalidArgumentError.
"""

from treenail._names import no_attribute as _no_attribute
from treenail._refusals import name_in_refusals as _name_in_refusals
from treenail.metrics._auc import auc
from treenail.metrics._classes import mean_iou, mean_per_class_accuracy
from treenail.metrics._counts import (false_negatives, false_positives, precision, recall,
                                      true_negatives, true_positives)
from treenail.metrics._means import (accuracy, mean, mean_absolute_error, mean_cosine_distance,
                                     mean_relative_error, mean_squared_error, mean_tensor,
                                     percentage_below, root_mean_squared_error)
from treenail.metrics._objects import (Accuracy, BinaryAccuracy, CategoricalAccuracy, Mean, Metric,
                                       SparseAccuracy)
from treenail.metrics._thresholds import (false_negatives_at_thresholds,
                                          false_positives_at_thresholds, precision_at_thresholds,
                                          recall_at_thresholds, sensitivity_at_specificity,
                                          specificity_at_sensitivity,
                                          true_negatives_at_thresholds,
                                          true_positives_at_thresholds)
from treenail.metrics._top_k import (average_precision_at_k, precision_at_k, precision_at_top_k,
                                     recall_at_k, recall_at_top_k, sparse_average_precision_at_k,
                                     sparse_precision_at_k)

__all__ = ["Accuracy", "BinaryAccuracy", "CategoricalAccuracy", "Mean", "Metric", "SparseAccuracy",
           "accuracy", "auc", "average_precision_at_k", "false_negatives",
           "false_negatives_at_thresholds", "false_positives", "false_positives_at_thresholds",
           "mean", "mean_absolute_error", "mean_cosine_distance", "mean_iou",
           "mean_per_class_accuracy", "mean_relative_error", "mean_squared_error", "mean_tensor",
           "percentage_below", "precision", "precision_at_k", "precision_at_thresholds",
           "precision_at_top_k", "recall", "recall_at_k", "recall_at_thresholds", "recall_at_top_k",
           "root_mean_squared_error", "sensitivity_at_specificity", "sparse_average_precision_at_k",
           "sparse_precision_at_k", "specificity_at_sensitivity", "true_negatives",
           "true_negatives_at_thresholds", "true_positives", "true_positives_at_thresholds"]


def __getattr__(name: str):
    raise _no_attribute(__name__, name, __all__)


def __dir__() -> list:
    return sorted(__all__)


_name_in_refusals(globals())
