// SPDX-License-Identifier: Apache-2.0
// Helpers of shape rules, the rules many ops share, and infer_shapes, which runs a rule and holds
// it to what it says.
#include "framework/op/shape_context.h"

#include <algorithm>
#include <deque>
#include <limits>
#include <utility>

#include "framework/base/error.h"

namespace treenail {
namespace {

// Longer vectors are data, not shapes, sizes or axes: copying their elements about would cost more
// than it tells.
constexpr int64_t kMaxValueElements = 4096;

std::shared_ptr<const PartialValue> value_of(const Tensor& t, int64_t most = kMaxValueElements) {
  if ((t.dtype() != DType::kInt32 && t.dtype() != DType::kInt64) || t.rank() > 1 ||
      t.num_elements() > most) {
    return nullptr;
  }
  auto value = std::make_shared<PartialValue>();
  value->scalar = t.rank() == 0;
  value->elements.reserve(static_cast<size_t>(t.num_elements()));
  for (int64_t i = 0; i < t.num_elements(); ++i) {
    value->elements.emplace_back(t.dtype() == DType::kInt32 ? t.data<int32_t>()[i]
                                                            : t.data<int64_t>()[i]);
  }
  return value;
}

PartialShape shape_of(const PartialValue& value) {
  if (value.scalar) return Shape();
  return Shape({static_cast<int64_t>(value.elements.size())});
}

// The tensor a fully known value spells; null when an element does not fit the dtype.
std::shared_ptr<const Tensor> constant_of(const PartialValue& value, DType dtype) {
  Tensor t(dtype, shape_of(value).shape());
  for (size_t i = 0; i < value.elements.size(); ++i) {
    const int64_t element = *value.elements[i];
    if (dtype == DType::kInt64) {
      t.data<int64_t>()[i] = element;
    } else if (element == static_cast<int32_t>(element)) {
      t.data<int32_t>()[i] = static_cast<int32_t>(element);
    } else {
      return nullptr;
    }
  }
  return std::make_shared<const Tensor>(std::move(t));
}

// What the rule said of one output, completed (shape from value, constant from value, ...) and
// checked.
void complete(const OpInstance& op, int i, ValueInfo& info) {
  const auto broken = [&](std::string_view what) {
    throw internal_error("the shape rule of \"", op.name(), "\" gives output ", i, " ", what);
  };
  if (info.constant) {
    if (info.constant->dtype() != info.dtype)
      broken(concat("a constant of dtype ", info.constant->dtype()));
    if (!info.shape.compatible(info.constant->shape())) broken("a constant of another shape");
    info.shape = info.constant->shape();
    if (!info.value) info.value = value_of(*info.constant);
  } else if (info.value) {
    const PartialShape shape = shape_of(*info.value);
    if (!info.shape.compatible(shape))
      broken(concat("a value of shape ", shape, " and the shape ", info.shape));
    info.shape = shape;
    const bool integer = info.dtype == DType::kInt32 || info.dtype == DType::kInt64;
    if (!integer) broken(concat("an integer value, but its dtype is ", info.dtype));
    if (info.value->fully_known()) info.constant = constant_of(*info.value, info.dtype);
  }
}

}  // namespace

bool PartialValue::fully_known() const {
  return std::all_of(elements.begin(), elements.end(), [](const auto& e) { return e.has_value(); });
}

std::shared_ptr<const PartialValue> partial_value_of(const Tensor& constant) {
  return value_of(constant);
}

void ShapeContext::set_value(int i, PartialValue value) {
  outputs_[i].value = std::make_shared<const PartialValue>(std::move(value));
}

void ShapeContext::set_constant(int i, Tensor value) {
  outputs_[i].value = value_of(value);
  outputs_[i].constant = std::make_shared<const Tensor>(std::move(value));
}

void ShapeContext::set_handle(int i, HandleInfo handle) {
  outputs_[i].handle = std::make_shared<const HandleInfo>(std::move(handle));
}

PartialShape ShapeContext::with_rank(int i, int rank) const {
  const PartialShape& shape = input(i);
  if (!shape.rank_known()) return PartialShape::unknown_with_rank(rank);
  if (shape.rank() != rank) {
    throw invalid_argument(op_.input_name(i), " must have rank ", rank, ", got shape ", shape);
  }
  return shape;
}

PartialShape ShapeContext::with_rank_at_least(int i, int rank) const {
  const PartialShape& shape = input(i);
  if (shape.rank_known() && shape.rank() < rank) {
    throw invalid_argument(op_.input_name(i), " must have rank at least ", rank, ", got shape ",
                           shape);
  }
  return shape;
}

PartialShape ShapeContext::shape_from_value(int i) const {
  if (const PartialValue* known = value(i)) {
    if (known->scalar) {
      throw invalid_argument(op_.input_name(i), " must be a vector of extents, got a scalar");
    }
    if (known->elements.size() > static_cast<size_t>(kMaxRank)) {
      throw invalid_argument(op_.input_name(i), " has ", known->elements.size(),
                             " extents, at most ", kMaxRank, " are supported");
    }
    std::vector<int64_t> dims;
    for (const auto& element : known->elements) {
      if (element && *element < kUnknown) {
        throw invalid_argument(op_.input_name(i), " holds the extent ", *element,
                               "; extents are not negative");
      }
      dims.push_back(element.value_or(kUnknown));
    }
    return PartialShape(std::span<const int64_t>(dims));
  }
  const PartialShape& extents = input(i);
  if (extents.rank_known() && extents.rank() != 1) {
    throw invalid_argument(op_.input_name(i), " must be a vector of extents, got shape ", extents);
  }
  const int64_t rank = extents.dim(0);
  if (rank == kUnknown) return PartialShape();
  if (rank > kMaxRank) {
    throw invalid_argument(op_.input_name(i), " has ", rank, " extents, at most ", kMaxRank,
                           " are supported");
  }
  return PartialShape::unknown_with_rank(static_cast<int>(rank));
}

int64_t ShapeContext::checked_axis(int64_t axis, int rank, std::string_view what) {
  if (axis < -rank || axis >= rank) {
    throw invalid_argument(what, " = ", axis, " is not in [", -rank, ", ", rank, ")");
  }
  return axis < 0 ? axis + rank : axis;
}

PartialShape ShapeContext::merge(const PartialShape& a, const PartialShape& b,
                                 std::string_view what) {
  if (!a.rank_known()) return b;
  if (!b.rank_known()) return a;
  if (!a.compatible(b)) {
    throw invalid_argument(what, " have shapes ", a, " and ", b, ", which must agree");
  }
  PartialShape merged = a;
  for (int i = 0; i < a.rank(); ++i) {
    if (a[i] == kUnknown && b[i] != kUnknown) merged = merged.with_dim(i, b[i]);
  }
  return merged;
}

int64_t ShapeContext::merge_dim(int64_t a, int64_t b, std::string_view what) {
  if (a != kUnknown && b != kUnknown && a != b) {
    throw invalid_argument(what, " are ", a, " and ", b, ", which must agree");
  }
  return a == kUnknown ? b : a;
}

PartialShape ShapeContext::broadcast(const PartialShape& a, const PartialShape& b) {
  if (!a.rank_known() || !b.rank_known()) return PartialShape();
  const int rank = std::max(a.rank(), b.rank());
  int64_t dims[kMaxRank];
  for (int i = 0; i < rank; ++i) {
    const int ia = i - (rank - a.rank());
    const int ib = i - (rank - b.rank());
    const int64_t da = ia < 0 ? 1 : a[ia];
    const int64_t db = ib < 0 ? 1 : b[ib];
    if (da == 1 || db == 1) {
      dims[i] = da == 1 ? db : da;
    } else if (da == kUnknown || db == kUnknown) {
      dims[i] = da == kUnknown ? db : da;  // the known one is not 1, so it is the result
    } else if (da == db) {
      dims[i] = da;
    } else {
      throw invalid_argument("Incompatible shapes: ", a, " vs. ", b);
    }
  }
  return PartialShape(std::span<const int64_t>(dims, static_cast<size_t>(rank)));
}

void unchanged_shape(ShapeContext& c) { c.set_output(0, c.input(0)); }

void identity_shape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) {
    c.set_output(i, c.input(i));
    if (c.constant(i) != nullptr) {
      c.set_constant(i, *c.constant(i));
    } else if (c.value(i) != nullptr) {
      c.set_value(i, *c.value(i));
    }
    if (c.handle(i) != nullptr) c.set_handle(i, *c.handle(i));
  }
}

void scalar_shape(ShapeContext& c) {
  for (int i = 0; i < c.num_outputs(); ++i) c.set_output(i, Shape());
}

void broadcast_binary_shape(ShapeContext& c) {
  c.set_output(0, ShapeContext::broadcast(c.input(0), c.input(1)));
}

void no_outputs_shape(ShapeContext&) {}

void unknown_shape(ShapeContext&) {}

void infer_shapes(const OpInstance& op, std::span<const ValueInfo* const> inputs,
                  std::span<ValueInfo> outputs) {
  if (static_cast<int>(inputs.size()) != op.num_inputs() ||
      static_cast<int>(outputs.size()) != op.num_outputs()) {
    throw internal_error("\"", op.name(), "\" has ", op.num_inputs(), " inputs and ",
                         op.num_outputs(), " outputs, shapes are asked for ", inputs.size(),
                         " and ", outputs.size());
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    outputs[i] = ValueInfo();
    outputs[i].dtype = op.output_type(static_cast<int>(i));
  }
  // Kernels rely on what the rule has checked of a host input, however long that is.
  std::deque<ValueInfo> long_values;
  std::vector<const ValueInfo*> completed;
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (inputs[i]->constant == nullptr || inputs[i]->value != nullptr ||
        !op.input_def(static_cast<int>(i)).host) {
      continue;
    }
    auto value = value_of(*inputs[i]->constant, std::numeric_limits<int64_t>::max());
    if (value == nullptr) continue;
    if (completed.empty()) completed.assign(inputs.begin(), inputs.end());
    completed[i] = &long_values.emplace_back(*inputs[i]);
    long_values.back().value = std::move(value);
  }
  ShapeContext context(op, completed.empty() ? inputs : completed, outputs);
  op.def().shape_fn(context);
  for (size_t i = 0; i < outputs.size(); ++i) complete(op, static_cast<int>(i), outputs[i]);
}

}  // namespace treenail
