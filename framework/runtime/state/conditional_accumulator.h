// SPDX-License-Identifier: Apache-2.0
// Gradients that several threads give, and their mean or sum for whoever takes it once there are
// enough: training in step. A gradient of an older step than the accumulator's is dropped.
// Gradients are added in the order in which they come; those that have a place, of which each has
// one between two takings, after these in the order of places, so that the bits do not depend on
// arrival. Kernel-side header.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/runtime/state/waiting_resource.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class ResourceManager;

struct AccumulatorOptions {
  DType dtype = DType::kInvalid;
  PartialShape shape;  // of gradients
  bool mean = true;    // or the sum
};

class ConditionalAccumulatorBase : public WaitingResource {
 public:
  const AccumulatorOptions& options() const { return options_; }
  // Errors: InvalidArgument.
  void check_dtype(DType dtype) const;

  int64_t num_accumulated() const;
  // Gradients of earlier steps are dropped from now on. Where it is another step than before,
  // those that are there and have a place are dropped, the others stay.
  void set_global_step(int64_t step);
  // Ends with the mean or sum in the outputs of `context` once `required` gradients are there. They
  // are forgotten then, and the step goes up by one. Errors: InvalidArgument unless required > 0.
  void take(const RunContext& context, const Done& done, int64_t required);

 protected:
  ConditionalAccumulatorBase(std::string name, AccumulatorOptions options)
      : WaitingResource(std::move(name), 1), options_(std::move(options)) {}
  ~ConditionalAccumulatorBase() override;

  // All with the lock held.
  int64_t count() const { return count_; }
  // add() for a gradient that is not stale; where it gives true there is one more. One that has a
  // place is of this very step: after a step back there are some of variables that are no more.
  template <class F>
  void add_unless_stale(int64_t local_step, int64_t place, F&& add) {
    change([&] {
      if (local_step < step_ || (place >= 0 && local_step > step_)) return;
      if (add()) ++count_;
    });
  }
  // Sets the outputs, and is empty again. What it throws has changed nothing.
  virtual void hand_out(RunContext& context) = 0;
  virtual void forget() = 0;          // what there is, leaking it
  virtual int64_t drop_placed() = 0;  // how many those were
  void begin_state_anew() final;

 private:
  class Take;

  const AccumulatorOptions options_;
  int64_t count_ = 0;  // gradients since the last were taken
  int64_t step_ = 0;
};

// Outputs of take(): the mean or sum.
class ConditionalAccumulator final : public ConditionalAccumulatorBase {
 public:
  ConditionalAccumulator(std::string name, AccumulatorOptions options)
      : ConditionalAccumulatorBase(std::move(name), std::move(options)) {}
  ~ConditionalAccumulator() override;
  const char* kind() const override { return "ConditionalAccumulator"; }

  // place: of the gradient, below 0 none; a second one at a place is dropped. Errors:
  // InvalidArgument (shape), unless it is stale.
  void apply(int64_t local_step, const Tensor& gradient, int64_t place = -1);

 private:
  void hand_out(RunContext& context) override;
  void forget() override;
  int64_t drop_placed() override { return std::ssize(std::exchange(placed_, {})); }
  void check_shape(const Tensor& gradient) const;
  void add(const Tensor& gradient);

  Tensor sum_;  // of those without a place, where there are any
  std::map<int64_t, Tensor> placed_;
};

// Gradients are slices: values[i] [...] stands at indices[i] of the first axis. Those of one index
// are added; the mean of an index is over the gradients that have it. Outputs of take(): indices,
// ascending, none twice; values; shape, with -1 in front where the options leave that open.
class SparseConditionalAccumulator final : public ConditionalAccumulatorBase {
 public:
  SparseConditionalAccumulator(std::string name, AccumulatorOptions options)
      : ConditionalAccumulatorBase(std::move(name), std::move(options)) {}
  ~SparseConditionalAccumulator() override;
  const char* kind() const override { return "SparseConditionalAccumulator"; }

  // indices: int64 [n]; values: [n, ...]; shape: the whole gradient's, an int64 vector, or null
  // where it is not known; place: as of ConditionalAccumulator. Errors: InvalidArgument (shapes,
  // indices), unless it is stale.
  void apply(int64_t local_step, const Tensor& indices, const Tensor& values, const Tensor* shape,
             int64_t place = -1);

 private:
  struct Row {
    int64_t index;
    int64_t gradients;  // that have it
    int64_t last;       // number of the last that does
  };
  using Places = std::vector<int64_t>;
  struct Slices {
    Tensor indices, values;
  };

  void hand_out(RunContext& context) override;
  void forget() override;
  int64_t drop_placed() override { return std::ssize(std::exchange(placed_, {})); }
  void check(const Tensor& indices, const Tensor& values, const Tensor* shape) const;
  void check_against_options(const Tensor& values) const;
  Places make_rows(std::span<const int64_t> indices);
  void drop_rows(int64_t first, std::span<const int64_t> indices);
  void make_room(const Tensor& values);
  void add_rows(const Places& places, const Tensor& values);
  void add(const Tensor& indices, const Tensor& values);

  std::unordered_map<int64_t, int64_t> row_of_;  // by index
  std::vector<Row> rows_;
  Tensor sums_;        // [at least as many rows, ...], where added_ > 0
  int64_t added_ = 0;  // gradients in them
  std::map<int64_t, Slices> placed_;
};

// The accumulator of that name in a session's state, made at first use; a new one that nobody else
// finds where the name is empty. Errors: InvalidArgument when the name belongs to something else,
// or to an accumulator of other options.
template <class Accumulator>
IntrusivePtr<Accumulator> named_accumulator(ResourceManager& resources, std::string_view container,
                                            std::string_view name,
                                            const AccumulatorOptions& options);

}  // namespace treenail
