// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/state/update_variables.h"

#include <functional>

#include "framework/base/error.h"

namespace treenail::host {

UpdatePlaces UpdatePlaces::of(const OpInstance& op) {
  UpdatePlaces places;
  const int delta = op.def().input_index("delta");
  places.gradient = delta >= 0 ? delta : op.def().input_index("grad");
  places.indices = op.def().input_index("indices");
  for (int i = 0; i < op.num_inputs(); ++i) {
    if (op.input_type(i) == DType::kResource) {
      ++places.variables;
    } else if (i != places.gradient && i != places.indices) {
      if (places.num_scalars == kMaxUpdateScalars)
        throw internal_error("an update of too many scalars");
      places.scalars[places.num_scalars++] = i;
    }
  }
  if (places.variables > kMaxUpdateVariables)
    throw internal_error("an update of too many variables");
  if (op.def().attr_index("use_nesterov") >= 0)
    places.options.nesterov = op.get_bool("use_nesterov");
  if (op.def().attr_index("update_slots") >= 0)
    places.options.update_slots = op.get_bool("update_slots");
  return places;
}

// Selection in the order of addresses; counts are small.
LockedVariables::LockedVariables(RunContext& c, int count, DType dtype) : count_(count) {
  for (int i = 0; i < count; ++i) variables_[i] = &variable_of_dtype(c.input(i), dtype);
  Variable* last = nullptr;
  for (int taken = 0; taken < count; ++taken) {
    int next = -1;
    for (int i = 0; i < count; ++i) {
      const bool later = last == nullptr || std::less<>()(last, variables_[i]);
      if (later && (next < 0 || std::less<>()(variables_[i], variables_[next]))) next = i;
    }
    if (next < 0) {
      throw invalid_argument("variable ", last->name(),
                             " is given twice; var and slots must be different variables");
    }
    last = variables_[next];
    writes_[next].emplace(*last);
  }
  for (int i = 0; i < count; ++i) {
    if (value(i).shape() == shape()) continue;
    throw invalid_argument("var and slot do not have the same shape: ", shape(), " ",
                           value(i).shape());
  }
}

void LockedVariables::pointers(void** out) const {
  for (int i = 0; i < count_; ++i) out[i] = value(i).raw();
}

void LockedVariables::check_gradient(const Shape& gradient) const {
  if (gradient == shape()) return;
  throw invalid_argument("the gradient has shape ", gradient, ", needed is ", shape(),
                         " (the shape of var)");
}

void LockedVariables::check_row_gradient(const Shape& gradient, int64_t count) const {
  if (shape().rank() < 1)
    throw invalid_argument("var must be at least 1 dimensional, it is a scalar");
  const Shape wanted = shape().with_dim(0, count);
  if (gradient == wanted) return;
  throw invalid_argument("the gradient has shape ", gradient, ", needed is ", wanted,
                         " (indices.shape + var.shape[1:])");
}

}  // namespace treenail::host
