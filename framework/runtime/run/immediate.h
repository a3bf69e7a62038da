// SPDX-License-Identifier: Apache-2.0
// One op instance on concrete tensors, start to end: infer, prepare, allocate, run. Immediate
// execution, constant folding and the plan's nodes whose shapes are known only at run time all go
// this way; planned nodes go through executor.h.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "framework/base/cancellation.h"
#include "framework/op/op_def.h"
#include "framework/op/shape_context.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class Node;

// What a node may reach beside its inputs.
struct NodeServices {
  ResourceManager* resources = nullptr;
  std::string_view node_name;           // empty in immediate execution
  std::string_view counter_name;        // of a random op's counter, where it is not the node's
  Device* device = nullptr;             // that runs it, in whose memory inputs lie; null: a CPU
  FunctionCaller* functions = nullptr;  // of the graph
  const Node* node = nullptr;           // of a plan
  bool awaited = false;                 // all that the node does is asked for
  Frame* frame = nullptr;               // of a plan's node that calls functions, and its position
  int32_t position = 0;
};

// A PrepareContext over plain arrays. host_values: one pointer per input, null where the op
// declares no `host`.
class ArrayPrepareContext final : public PrepareContext {
 public:
  ArrayPrepareContext(const OpInstance& op, std::span<const Shape> inputs,
                      std::span<const Shape> outputs, std::span<const Tensor* const> host_values,
                      const NodeServices& services)
      : op_(op),
        inputs_(inputs),
        outputs_(outputs),
        host_values_(host_values),
        services_(services) {}

  const OpInstance& op() const override { return op_; }
  const Shape& input_shape(int i) const override { return inputs_[i]; }
  const Shape& output_shape(int i) const override;
  const Tensor& host_value(int i) const override;
  std::string_view node_name() const override { return services_.node_name; }
  Device& device() const override;
  ResourceManager& resources() const override { return *services_.resources; }
  FunctionCaller& functions() const override;
  bool output_used(int i) const override;
  IntrusivePtr<RandomCounter> random_counter() const override;

 private:
  const OpInstance& op_;
  std::span<const Shape> inputs_;
  std::span<const Shape> outputs_;  // empty when an output shape is known only after the run
  std::span<const Tensor* const> host_values_;
  const NodeServices& services_;
};

// The bytes of `tensor` as another dtype of the same size and another shape of as many elements.
Tensor view_as(const Tensor& tensor, DType dtype, const Shape& shape);

// What can run again on inputs of the same dtypes and shapes, and values where these are read in
// preparing, on any thread.
struct PreparedKernel {
  std::unique_ptr<Kernel> kernel;
  std::vector<Shape> output_shapes;  // none where only a run tells
  Device* device = nullptr;          // that runs it
};

// Scratch of one run, in a device's memory; freed at scope's end.
class Scratch {
 public:
  Scratch(size_t bytes, Device& device) : device_(device), bytes_(bytes) {
    if (bytes_ != 0) data_ = static_cast<std::byte*>(device_.allocate(bytes_));
  }
  ~Scratch() {
    if (data_ != nullptr) device_.deallocate(data_, bytes_);
  }
  Scratch(const Scratch&) = delete;
  Scratch& operator=(const Scratch&) = delete;
  std::byte* data() const { return data_; }

 private:
  Device& device_;
  size_t bytes_;
  std::byte* data_ = nullptr;
};

// Of such inputs; without a kernel where the output is a view. Errors as below.
PreparedKernel prepare_immediately(const OpInstance& op, std::span<const Tensor> inputs,
                                   const NodeServices& services);
// Output tensors of `op` on `inputs`. Errors carry no op or node prefix: the caller knows what to
// name.
std::vector<Tensor> run_immediately(const OpInstance& op, std::span<const Tensor> inputs,
                                    const NodeServices& services, const CancellationToken* token);
// The same of inputs that the op may take.
std::vector<Tensor> run_taking(const OpInstance& op, std::vector<Tensor> inputs,
                               const NodeServices& services, const CancellationToken* token);

// Who is told, once and from any thread, how an op that was started has ended.
class ImmediateEnd {
 public:
  virtual ~ImmediateEnd();
  // `error`: null where there are outputs.
  virtual void ended(std::vector<Tensor> outputs, std::exception_ptr error) noexcept = 0;
};
// As run_taking(), without waiting: an asynchronous op, and any on a device with a queue. What is
// thrown here is thrown instead of telling `end`.
void start_taking(const OpInstance& op, std::vector<Tensor> inputs, const NodeServices& services,
                  const CancellationToken& token, std::unique_ptr<ImmediateEnd> end);

// The outputs as constants where `op` is free of state, every input is a constant and no output
// exceeds 1 MiB; else empty. An op that fails is left to fail at run time.
std::vector<Tensor> fold_constant(const OpInstance& op, std::span<const ValueInfo* const> inputs,
                                  std::span<const ValueInfo> outputs);
inline constexpr int64_t kMaxFoldedBytes = int64_t{1} << 20;

}  // namespace treenail
