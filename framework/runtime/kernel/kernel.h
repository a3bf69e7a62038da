// SPDX-License-Identifier: Apache-2.0
// The kernel contract, and the only header of runtime/ (with kernel_registry.h and variable.h) that
// kernels see. prepare(attributes, dtypes, shapes, host values) → immutable Kernel, shared by
// concurrent runs; run(inputs, outputs, scratch) computes. Ranks, dtypes and shapes were checked by
// the shape rule; a kernel checks values only and throws with its lowest bad index. A kernel never
// sees a node or a graph; the caller places op type and node name before the text.
#pragma once

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
#include "framework/op/op_def.h"
#include "framework/tensor/prepacked.h"
#include "framework/tensor/resource.h"
#include "framework/tensor/tensor.h"

namespace treenail {

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
  // Session (task, process) state.
  virtual ResourceManager& resources() const = 0;
  // The counter this node owns (ops declared random()).
  virtual IntrusivePtr<RandomCounter> random_counter() const = 0;

  DType input_type(int i) const { return op().input_type(i); }
  DType output_type(int i) const { return op().output_type(i); }
  int num_inputs() const { return op().num_inputs(); }
};

// Elements of an output: `rows` runs of `count` elements, `stride` elements from one to the next.
struct ElementBlock {
  int64_t begin = 0;
  int64_t count = 0;
  int64_t rows = 1;
  int64_t stride = 0;
};

// An input that no memory holds. read() computes the elements of a block, its rows one behind the
// other, into memory aligned to 64 bytes.
struct ElementSource {
  FunctionRef<void(const ElementBlock& block, void* to)> read;
  double ns;  // per element, about
};

// Receives elements of a block, its rows one behind the other, in memory of the giver's own, which
// may be overwritten.
using BlockSink = FunctionRef<void(const ElementBlock& block, void* elements)>;
// An input that no memory holds and that another kernel computes: a call runs that kernel, which
// gives its blocks in any order, from several threads at once.
using BlockStream = FunctionRef<void(const BlockSink& sink)>;

class RunContext {
 public:
  const Tensor& input(int i) const { return values_[input_slots_[i]]; }
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

  // For kernels that finish in pieces (below): these elements of output 0 are there and will not be
  // touched again by this kernel. What follows may replace them at once, on this thread.
  void finished(const ElementBlock& block) const {
    if (follow_ != nullptr) (*follow_)(block);
  }
  void finished(int64_t begin, int64_t end) const { finished({begin, end - begin, 1, 0}); }
  // For kernels that read in pieces (below): where input 0 comes from, or null where it lies in
  // memory.
  const ElementSource* source() const { return source_; }
  // For kernels that hand over (below): who takes output 0, or null where it goes to memory.
  const BlockSink* sink() const { return sink_; }
  // For kernels that take over (below): where that input comes from, or null where it lies in
  // memory.
  const BlockStream* stream() const { return stream_; }
  // For work whose results are not yet the output: nothing follows it.
  RunContext on_the_way() const {
    RunContext c = *this;
    c.follow_ = nullptr;
    return c;
  }

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
  // Of fused kernels.
  const FunctionRef<void(const ElementBlock&)>* follow_ = nullptr;
  const ElementSource* source_ = nullptr;
  const BlockSink* sink_ = nullptr;
  const BlockStream* stream_ = nullptr;
};

class Kernel {
 public:
  virtual ~Kernel();
  virtual void run(RunContext& c) const = 0;
  size_t scratch_bytes = 0;
  double cost_ns = 0;  // estimate of one run on one thread; below ~1000 it is run inline wherever
                       // it becomes ready
  // run() tells finished() of every element of output 0 exactly once, and never reads one after
  // that: element-wise ops may then go on with each piece while it is in cache (kernel_fusion.h).
  bool finishes_in_pieces = false;
  // run() takes input 0 from source() where there is one, each element once, and never from memory:
  // element-wise ops before it may then compute it piece by piece.
  bool reads_in_pieces = false;
  // run() gives each element of output 0 exactly once to sink() where there is one, and leaves the
  // output alone: the value needs no memory, and who takes it finds it in cache.
  bool hands_over = false;
  // The input that run() takes from stream() where there is one, and then never from memory; -1:
  // none.
  int takes_over = -1;
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
