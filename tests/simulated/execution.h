// SPDX-License-Identifier: Apache-2.0
// One execution of a kernel on a simulated device. When it is asked for, all that it names is
// checked and written down: dtypes, shapes and addresses, never a share of a buffer, for a GPU
// holds none either. When the queue gets there the host's kernel runs on the view of that memory.
#pragma once

#include <cstddef>
#include <deque>
#include <string>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/state/variable.h"
#include "tests/simulated/device.h"

namespace treenail::simulated {

// The variables behind an op's handles, held until its execution is queued: whoever reads or writes
// them afterwards comes later in the queue, too.
class HeldVariables {
 public:
  struct Image {  // of one variable
    Variable* variable = nullptr;
    bool writes = false;
    std::string name;
    DType dtype = DType::kInvalid;
    Shape shape;
    void* address = nullptr;
  };
  // Errors: FailedPrecondition where one is uninitialised or lives elsewhere; whatever making room
  // for a write throws.
  HeldVariables(SimulatedDevice& device, const OpInstance& op, const RunContext& c);
  const std::vector<Image>& images() const { return images_; }

 private:
  void hold(SimulatedDevice& device, Variable& variable, bool writes);

  std::deque<Variable::Write> writes_;
  std::vector<Tensor> reads_;
  std::vector<Image> images_;
};

class Execution {
 public:
  // Of `kernel`, the host's, which is there until the execution ends. Errors: Internal after a
  // violation.
  Execution(SimulatedDevice& device, const OpInstance& op, const Kernel& kernel,
            const RunContext& c, const HeldVariables& variables);

  // In the queue. Outputs are written where they are to lie; those of an op that allocates them
  // come back. Errors: what the kernel throws.
  std::vector<Tensor> run() const;
  const CancellationToken* token() const { return token_; }

 private:
  struct Value {
    DType dtype = DType::kInvalid;
    Shape shape;
    void* address = nullptr;  // on the device; null for the others
    bool in_place = false;    // an output where an input lies
    int variable = -1;        // the handle of this image
    Tensor host;              // an input's elements in host memory
    size_t bytes() const;
  };
  struct Range {
    const void* begin;
    size_t bytes;
    int input;  // flat; -1: no input of the op
  };

  Value input_value(const RunContext& c, int i) const;
  Value output_value(const RunContext& c, int i);
  void take_variables();
  void take_scratch(const RunContext& c);
  bool place_output(int i, const void* at, size_t bytes) const;
  bool may_overwrite(int output, const void* at, size_t bytes) const;
  [[noreturn]] void misuse(const std::string& text) const;
  void check(const char* what, Use use, const void* at, size_t bytes) const;

  std::vector<Tensor> shadow_variables() const;
  std::vector<Tensor> shadow_inputs(const std::vector<Tensor>& variables) const;
  void write_back(const std::vector<Tensor>& variables) const;
  void write_outputs(const Tensor* outputs) const;

  SimulatedDevice& device_;
  const OpInstance op_;
  const Kernel& kernel_;
  const CancellationToken* const token_;
  std::vector<HeldVariables::Image> variables_;
  std::vector<Value> inputs_, outputs_;
  std::vector<Range> ranges_;  // all that is named, to see what lies over what
  std::byte* scratch_ = nullptr;
};

}  // namespace treenail::simulated
