// SPDX-License-Identifier: Apache-2.0
// The kernel contract, and the only header of runtime/ (with kernel_registry.h and variable.h) that
// kernels see. prepare(attributes, dtypes, shapes, host values, device) → immutable Kernel, shared
// by concurrent runs; run(inputs, outputs, scratch) computes. Ranks, dtypes and shapes were checked
// by the shape rule; a kernel checks values only and throws with its lowest bad index. A kernel
// never sees a node or a graph; the caller places op type and node name before the text.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>

#include "framework/base/cancellation.h"
#include "framework/base/function_ref.h"
#include "framework/device/device.h"
#include "framework/op/op_def.h"
#include "framework/tensor/prepacked.h"
#include "framework/tensor/resource.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class FunctionCaller;  // kernel_functions.h
struct Frame;          // plan/plan.h
class ResourceManager;

// Counter of a stateful random op: each execution takes the next block of Philox blocks (128 bits
// each).
class RandomCounter : public Resource {
 public:
  const char* kind() const override { return "RandomCounter"; }
  // First block of `blocks` reserved ones.
  virtual uint64_t reserve(uint64_t blocks) = 0;

 protected:
  ~RandomCounter() override;
};

class PrepareContext {
 public:
  virtual ~PrepareContext();
  virtual const OpInstance& op() const = 0;
  virtual const Shape& input_shape(int i) const = 0;
  virtual const Shape& output_shape(int i) const = 0;  // not for data-dependent outputs
  // The value of an input declared `host`; always there.
  virtual const Tensor& host_value(int i) const = 0;
  // The original node's name ("" in immediate execution).
  virtual std::string_view node_name() const = 0;
  // What runs the kernel, in whose memory inputs, outputs and scratch lie but for those that are
  // declared `host` and those that are no plain bytes.
  virtual Device& device() const = 0;
  // Session (task, process) state.
  virtual ResourceManager& resources() const = 0;
  // Errors: Unimplemented where an op runs by itself, outside of a graph.
  virtual FunctionCaller& functions() const = 0;
  // Whether anything reads output i: of an op that calls functions.
  virtual bool output_used(int i) const = 0;
  // The counter this node owns (ops declared random()).
  virtual IntrusivePtr<RandomCounter> random_counter() const = 0;

  DType input_type(int i) const { return op().input_type(i); }
  DType output_type(int i) const { return op().output_type(i); }
  int num_inputs() const { return op().num_inputs(); }
};

class RunContext {
 public:
  const Tensor& input(int i) const { return values_[input_slots_[i]]; }
  // Input i for keeps, which is not there afterwards: the value itself where nothing else reads it
  // any more, not even as another input, so that nobody else may hold it; else a share.
  Tensor take_input(int i);
  // Memory is provided (uninitialised; or an input's, where the op declares in_place) unless the op
  // allocates its outputs.
  Tensor& output(int i) { return values_[output_slot_ + i]; }
  // For ops declared allocates_outputs; the tensor may share a buffer that lives longer than the
  // run.
  void set_output(int i, Tensor value) { values_[output_slot_ + i] = std::move(value); }
  // Kernel::scratch_bytes of 64-byte aligned memory, private to this run.
  std::byte* scratch() { return scratch_; }
  const CancellationToken* token() const { return token_; }
  // Another form of input i, made of its bytes alone; null where none is kept: bytes that may
  // change before the next run, and the first use (prepacked.h).
  const std::byte* prepacked(int i, const PackKey& key, size_t bytes,
                             FunctionRef<void(std::byte*)> make) const;

  // Runs body(begin, end) over pieces of [0, total): `grain` items each, the last one shorter.
  // Pieces depend on total and grain alone, never on threads. cost_ns_per_item: estimate, to keep
  // small work on one thread. Polls cancellation per piece.
  void parallel_for(int64_t total, int64_t grain, double cost_ns_per_item,
                    FunctionRef<void(int64_t, int64_t)> body) const;
  // body(chunk) for each chunk in [0, chunks).
  void run_chunks(int64_t chunks, double cost_ns, FunctionRef<void(int64_t)> body) const;

  // Set by the executor.
  Tensor* values_ = nullptr;
  const int32_t* input_slots_ = nullptr;
  int32_t output_slot_ = 0;
  std::byte* scratch_ = nullptr;
  const CancellationToken* token_ = nullptr;
  const std::atomic<int32_t>* uses_ = nullptr;  // by slot, what is left; null: not counted
  // Of a node that calls functions: whose frame it runs on, and its position there.
  Frame* frame_ = nullptr;
  int32_t node_ = 0;
};

class Kernel {
 public:
  virtual ~Kernel();
  virtual void run(RunContext& c) const = 0;
  size_t scratch_bytes = 0;
  double cost_ns = 0;  // estimate of one run on one thread; below ~1000 it is run inline wherever
                       // it becomes ready
};

// A kernel from a callable: return make_kernel([n](RunContext& c) { ... });
template <class F>
class LambdaKernel final : public Kernel {
 public:
  explicit LambdaKernel(F f) : f_(std::move(f)) {}
  void run(RunContext& c) const override { f_(c); }

 private:
  F f_;
};

template <class F>
std::unique_ptr<Kernel> make_kernel(F&& f, double cost_ns = 0, size_t scratch_bytes = 0) {
  auto kernel = std::make_unique<LambdaKernel<std::decay_t<F>>>(std::forward<F>(f));
  kernel->cost_ns = cost_ns;
  kernel->scratch_bytes = scratch_bytes;
  return kernel;
}

using PrepareFn = std::unique_ptr<Kernel> (*)(const PrepareContext&);

}  // namespace treenail
