// SPDX-License-Identifier: Apache-2.0
// What the tapes of one thread that are open at the same time have seen, once for all of them: the
// ops that computed something from what one of them watches, in the order they ran, with those
// values that gradient rules read, and the shapes of the others. Which part of it a tape goes back
// through is the tape's (tape.h). Not for several threads at once.
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <span>
#include <unordered_map>
#include <vector>

#include "framework/eager/immediate_tensor.h"
#include "framework/op/op_def.h"
#include "framework/tensor/resource.h"

namespace treenail {

// A gradient that is no op's own: of a plugin's op, or of a function with one of its own.
class RecordedRule {
 public:
  virtual ~RecordedRule();
  // Whether it reads the elements of inputs and outputs.
  virtual bool reads_values() const { return true; }
  // One for each input, of which those `needed` count. The call's inputs come first in `values`,
  // its outputs after them.
  virtual std::vector<ImmediateGradient> gradients(
      const OpInstance& op, std::span<const ImmediateTensor> values,
      std::span<const ImmediateGradient> output_gradients, std::span<const bool> needed) = 0;
};

class Record {
 public:
  static constexpr int64_t kNone = -1;
  struct Step {
    OpInstance op;
    int64_t first_input = 0;   // among inputs()
    int64_t first_output = 0;  // a value; the others follow
    std::shared_ptr<RecordedRule> rule;
  };

  Record();
  Record(const Record&) = delete;
  Record& operator=(const Record&) = delete;

  // The value that a tensor is here, or the variable behind a handle; kNone: nothing.
  int64_t find(const ImmediateTensor& tensor) const;
  // The same, as one from which gradients may be asked from now on.
  int64_t watch(ImmediateTensor& tensor);

  // An op has run. Nothing is kept where none of the inputs is known here.
  void append(const OpInstance& op, std::span<const ImmediateTensor* const> inputs,
              std::span<ImmediateTensor> outputs, std::shared_ptr<RecordedRule> rule = nullptr);

  uint64_t id() const { return id_; }
  int64_t steps() const { return static_cast<int64_t>(steps_.size()); }
  const Step& step(int64_t number) const { return steps_[static_cast<size_t>(number)]; }
  // Of a value: the step that computed it, kNone of one that is watched or came from elsewhere.
  int64_t step_of(int64_t value) const { return made_by_[static_cast<size_t>(value)]; }
  int64_t input(int64_t place) const { return inputs_[static_cast<size_t>(place)]; }
  // Without its elements where no rule reads them.
  const Tensor& tensor(int64_t value) const { return values_[static_cast<size_t>(value)]; }
  ImmediateTensor immediate(int64_t value) const { return {tensor(value), id_, value, 0}; }

 private:
  int64_t add_value(const Tensor& tensor, bool whole, int64_t step);
  int64_t input_of(const ImmediateTensor& tensor, int64_t known, bool read);

  const uint64_t id_;
  std::deque<Step> steps_;
  std::vector<int64_t> inputs_;  // values
  std::deque<Tensor> values_;
  std::vector<int64_t> made_by_;                          // by value
  std::unordered_map<uint64_t, int64_t> watched_;         // by watch key
  std::unordered_map<const Resource*, int64_t> handles_;  // values hold the handles
};

}  // namespace treenail
