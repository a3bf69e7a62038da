// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/conditional_accumulator.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <limits>
#include <numeric>

#include "framework/base/error.h"
#include "framework/base/fp_environment.h"
#include "framework/op/index_check.h"
#include "framework/runtime/state/accumulate.h"
#include "framework/runtime/state/resource_manager.h"
#include "framework/runtime/state/stored_value.h"

namespace treenail {

// --- What both have in common -------------------------------------------------------------------

class ConditionalAccumulatorBase::Take final : public Request {
 public:
  Take(const RunContext& context, const Done& done, ConditionalAccumulatorBase& accumulator,
       int64_t required)
      : Request(context, done), accumulator_(accumulator), required_(required) {}

 private:
  void admit() override {
    if (required_ > 0) return;
    throw invalid_argument("num_required must be positive, it is ", required_, " for accumulator ",
                           accumulator_.name());
  }
  Progress attempt() override {
    if (accumulator_.count_ < required_) return Progress::kNone;
    const FpEnvironment ieee;
    accumulator_.hand_out(context());
    accumulator_.count_ = 0;
    if (accumulator_.step_ < std::numeric_limits<int64_t>::max()) ++accumulator_.step_;
    return Progress::kEnded;
  }

  ConditionalAccumulatorBase& accumulator_;  // the request is in its line
  const int64_t required_;
};

ConditionalAccumulatorBase::~ConditionalAccumulatorBase() = default;

void ConditionalAccumulatorBase::check_dtype(DType dtype) const {
  if (dtype == options_.dtype) return;
  throw invalid_argument("accumulator ", name(), " has dtype ", options_.dtype,
                         ", the operation works on ", dtype);
}

int64_t ConditionalAccumulatorBase::num_accumulated() const {
  return look([&] { return count_; });
}

void ConditionalAccumulatorBase::set_global_step(int64_t step) {
  change([&] {
    if (step != step_) count_ -= drop_placed();
    step_ = step;
  });
}

void ConditionalAccumulatorBase::take(const RunContext& context, const Done& done,
                                      int64_t required) {
  submit(0, std::make_unique<Take>(context, done, *this, required));
}

void ConditionalAccumulatorBase::begin_state_anew() {
  forget();
  count_ = 0;
}

// --- Dense --------------------------------------------------------------------------------------

ConditionalAccumulator::~ConditionalAccumulator() = default;

void ConditionalAccumulator::check_shape(const Tensor& gradient) const {
  if (!options().shape.compatible(gradient.shape())) {
    throw invalid_argument("Shape mismatch: accumulator ", name(), " has shape ", options().shape,
                           ", the gradient is ", gradient);
  }
  if (count() == 0) return;
  const Shape& there = sum_.defined() ? sum_.shape() : placed_.begin()->second.shape();
  if (there == gradient.shape()) return;
  throw invalid_argument("Shape mismatch: the gradients in accumulator ", name(), " have shape ",
                         there, ", the one to add is ", gradient);
}

void ConditionalAccumulator::add(const Tensor& gradient) {
  if (!sum_.defined()) {
    sum_ = stored_value(gradient);
    return;
  }
  if (!sum_.exclusive()) sum_ = sum_.deep_copy();
  add_elements(sum_.dtype(), sum_.raw(), gradient.raw(), sum_.num_elements());
}

void ConditionalAccumulator::apply(int64_t local_step, const Tensor& gradient, int64_t place) {
  check_dtype(gradient.dtype());
  add_unless_stale(local_step, place, [&] {
    check_shape(gradient);
    if (place >= 0) {
      if (placed_.contains(place)) return false;
      return placed_.emplace(place, stored_value(gradient)).second;
    }
    add(gradient);
    return true;
  });
}

void ConditionalAccumulator::hand_out(RunContext& context) {
  while (!placed_.empty()) {  // what has been added is there no more, should memory run out
    add(placed_.begin()->second);
    placed_.erase(placed_.begin());
  }
  if (options().mean && count() > 1) {
    if (!sum_.exclusive()) sum_ = sum_.deep_copy();
    divide_elements(sum_.dtype(), sum_.raw(), sum_.num_elements(), count());
  }
  context.set_output(0, std::move(sum_));
  sum_ = Tensor();
}

void ConditionalAccumulator::forget() {
  begin_anew(sum_);
  begin_anew(placed_);
}

// --- Sparse -------------------------------------------------------------------------------------

namespace {

int64_t row_elements(const Shape& shape) { return shape.removed(0).num_elements(); }

void* row(Tensor& tensor, int64_t i, int64_t elements) {
  return static_cast<std::byte*>(tensor.raw()) +
         static_cast<size_t>(i * elements) * dtype_size(tensor.dtype());
}
const void* row(const Tensor& tensor, int64_t i, int64_t elements) {
  return row(const_cast<Tensor&>(tensor), i, elements);
}

}  // namespace

SparseConditionalAccumulator::~SparseConditionalAccumulator() = default;

void SparseConditionalAccumulator::check_against_options(const Tensor& values) const {
  const PartialShape& wanted = options().shape;
  bool agrees = wanted.rank() <= values.rank();
  for (int i = 1; agrees && i < wanted.rank(); ++i)
    agrees = wanted.dim(i) == kUnknown || wanted.dim(i) == values.dim(i);
  if (agrees) return;
  throw invalid_argument("Shape mismatch: accumulator ", name(), " has shape ", wanted,
                         ", the values of the gradient are ", values);
}

void SparseConditionalAccumulator::check(const Tensor& indices, const Tensor& values,
                                         const Tensor* shape) const {
  const PartialShape& wanted = options().shape;
  int64_t limit = wanted.rank() > 0 ? wanted.dim(0) : kUnknown;
  if (shape != nullptr) {
    const std::span<const int64_t> dims = shape->values<int64_t>();
    bool agrees = std::ssize(dims) >= std::max(wanted.rank(), 1);
    for (int i = 0; agrees && i < wanted.rank(); ++i)
      agrees = wanted.dim(i) == kUnknown || wanted.dim(i) == dims[static_cast<size_t>(i)];
    if (!agrees) {
      throw invalid_argument("Shape mismatch: accumulator ", name(), " has shape ", wanted,
                             ", the gradient's shape is ", tensor_values(*shape));
    }
    if (limit == kUnknown) limit = dims[0];
  }
  check_indices("gradient_indices", indices,
                limit < 0 ? std::numeric_limits<int64_t>::max() : limit);
  if (count() == 0) return check_against_options(values);
  const Tensor& there = added_ > 0 ? sums_ : placed_.begin()->second.values;
  if (there.shape().removed(0) == values.shape().removed(0)) return;
  throw invalid_argument("Shape mismatch: slices in accumulator ", name(), " have shape ",
                         there.shape().removed(0), ", the values of the gradient are ", values);
}

// Where each slice goes.
SparseConditionalAccumulator::Places SparseConditionalAccumulator::make_rows(
    std::span<const int64_t> indices) {
  Places places;
  places.reserve(indices.size());
  for (const int64_t index : indices) {
    const auto [at, made] = row_of_.try_emplace(index, std::ssize(rows_));
    places.push_back(at->second);
    if (made) rows_.push_back({index, 0, -1});
  }
  return places;
}

// Rows from `first` on, whose indices are among these, are no longer there.
void SparseConditionalAccumulator::drop_rows(int64_t first, std::span<const int64_t> indices) {
  for (const int64_t index : indices) {
    const auto at = row_of_.find(index);
    if (at != row_of_.end() && at->second >= first) row_of_.erase(at);
  }
  while (std::ssize(rows_) > first) rows_.pop_back();
}

// Twice as much whenever it is full: linear in the rows.
void SparseConditionalAccumulator::make_room(const Tensor& values) {
  const auto needed = static_cast<int64_t>(rows_.size());
  if (added_ > 0 && sums_.dim(0) >= needed) return;
  const int64_t capacity = added_ > 0 ? std::max(2 * sums_.dim(0), needed) : needed;
  Tensor grown(values.dtype(), values.shape().with_dim(0, capacity));
  if (added_ > 0 && sums_.bytes() > 0) std::memcpy(grown.raw(), sums_.raw(), sums_.bytes());
  sums_ = std::move(grown);
}

void SparseConditionalAccumulator::add_rows(const Places& places, const Tensor& values) {
  const int64_t n = row_elements(values.shape());
  const size_t bytes = static_cast<size_t>(n) * dtype_size(values.dtype());
  for (size_t i = 0; i < places.size(); ++i) {
    Row& to = rows_[static_cast<size_t>(places[i])];
    void* const at = row(sums_, places[i], n);
    const void* const from = row(values, static_cast<int64_t>(i), n);
    if (to.last < 0) {
      if (bytes > 0) std::memcpy(at, from, bytes);
    } else {
      add_elements(values.dtype(), at, from, n);
    }
    if (to.last != added_) ++to.gradients;
    to.last = added_;
  }
}

void SparseConditionalAccumulator::add(const Tensor& indices, const Tensor& values) {
  const int64_t before = std::ssize(rows_);
  Places places;
  try {
    places = make_rows(indices.values<int64_t>());
    make_room(values);
  } catch (...) {
    drop_rows(before, indices.values<int64_t>());
    throw;
  }
  add_rows(places, values);
  ++added_;
}

void SparseConditionalAccumulator::apply(int64_t local_step, const Tensor& indices,
                                         const Tensor& values, const Tensor* shape, int64_t place) {
  check_dtype(values.dtype());
  add_unless_stale(local_step, place, [&] {
    check(indices, values, shape);
    if (place >= 0) {
      if (placed_.contains(place)) return false;
      return placed_.emplace(place, Slices{stored_value(indices), stored_value(values)}).second;
    }
    add(indices, values);
    return true;
  });
}

void SparseConditionalAccumulator::hand_out(RunContext& context) {
  while (!placed_.empty()) {  // as of dense ones
    add(placed_.begin()->second.indices, placed_.begin()->second.values);
    placed_.erase(placed_.begin());
  }
  const int64_t n = row_elements(sums_.shape());
  const auto rows = static_cast<int64_t>(rows_.size());
  std::vector<int64_t> order(rows_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::sort(order, {}, [&](int64_t i) { return rows_[static_cast<size_t>(i)].index; });
  Tensor indices(DType::kInt64, Shape({rows}));
  Tensor values(sums_.dtype(), sums_.shape().with_dim(0, rows));
  Tensor shape = Tensor::vector(values.shape().dims());
  shape.data<int64_t>()[0] = options().shape.rank() > 0 ? options().shape.dim(0) : kUnknown;
  const size_t bytes = static_cast<size_t>(n) * dtype_size(values.dtype());
  for (int64_t i = 0; i < rows; ++i) {
    const Row& from = rows_[static_cast<size_t>(order[static_cast<size_t>(i)])];
    indices.data<int64_t>()[i] = from.index;
    void* const to = row(values, i, n);
    if (bytes > 0) std::memcpy(to, row(sums_, order[static_cast<size_t>(i)], n), bytes);
    if (options().mean && from.gradients > 1)
      divide_elements(values.dtype(), to, n, from.gradients);
  }
  context.set_output(0, std::move(indices));
  context.set_output(1, std::move(values));
  context.set_output(2, std::move(shape));
  row_of_.clear();
  rows_.clear();
  sums_ = Tensor();
  added_ = 0;
}

void SparseConditionalAccumulator::forget() {
  begin_anew(row_of_);
  begin_anew(rows_);
  begin_anew(sums_);
  begin_anew(placed_);
  added_ = 0;
}

// --- By name ------------------------------------------------------------------------------------

template <class Accumulator>
IntrusivePtr<Accumulator> named_accumulator(ResourceManager& resources, std::string_view container,
                                            std::string_view name,
                                            const AccumulatorOptions& options) {
  const auto make = [&] { return make_counted<Accumulator>(std::string(name), options); };
  if (name.empty()) return make();
  auto found = resources.lookup_or_create<Accumulator>(container, name, make);
  const AccumulatorOptions& there = found->options();
  if (there.dtype == options.dtype && there.shape == options.shape && there.mean == options.mean)
    return found;
  const auto reduction = [](bool mean) { return mean ? "MEAN" : "SUM"; };
  throw invalid_argument("Shared conditional accumulator ", name, " has dtype ", there.dtype,
                         ", shape ", there.shape, " and reduction ", reduction(there.mean),
                         "; it is asked for with dtype ", options.dtype, ", shape ", options.shape,
                         " and reduction ", reduction(options.mean));
}

template IntrusivePtr<ConditionalAccumulator> named_accumulator(ResourceManager&, std::string_view,
                                                                std::string_view,
                                                                const AccumulatorOptions&);
template IntrusivePtr<SparseConditionalAccumulator> named_accumulator(ResourceManager&,
                                                                      std::string_view,
                                                                      std::string_view,
                                                                      const AccumulatorOptions&);

}  // namespace treenail
