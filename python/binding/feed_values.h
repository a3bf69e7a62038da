// SPDX-License-Identifier: Apache-2.0
// What a run is fed with. As constants, and beyond them what TensorFlow 1 takes by
// numpy.asarray(value, dtype), where no value changes: bool for a number, 0 and 1 for bool, lists
// that mix numbers, and number objects such as decimal.Decimal. A float never stands for an
// integer.
#pragma once

#include <vector>

#include "framework/graph/graph.h"
#include "framework/tensor/tensor.h"
#include "python/binding/graph_type.h"
#include "python/binding/python_api.h"

namespace treenail::python {

// The value for `target`. Errors: TypeError, ValueError, InvalidArgument, naming the tensor.
Tensor feed_value(PyObject* value, Output target);

struct Feeds {
  std::vector<Output> outputs;
  std::vector<Tensor> values;
};
// What a feed_dict (a dict, what dict() takes, None or null) says. Errors: as feed_value();
// TypeError for a key that is no tensor of the graph.
void collect_feeds(PyObject* feed_dict, GraphObject* graph, Feeds& feeds);
// What a key of a feed_dict names. Errors: TypeError.
Output feed_target(PyObject* key, GraphObject* graph);

}  // namespace treenail::python
