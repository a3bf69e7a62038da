// SPDX-License-Identifier: Apache-2.0
// A tape: while it is open on a thread it sees the ops of immediate execution there, those of tapes
// opened within it too, and computes gradients from them. Tapes that are open together share one
// record; a tape goes back through its own part of it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <unordered_set>
#include <utility>
#include <vector>

#include "framework/base/function_ref.h"
#include "framework/eager/record.h"

namespace treenail {

// Runs an op now: its outputs, and in `op` what was run.
using RunOp = FunctionRef<std::vector<Tensor>(const OpDef& def, std::span<const Tensor> inputs,
                                              const NamedAttrs& attrs,
                                              std::span<const int> arg_sizes, OpInstance& op)>;

class Tape {
 public:
  // `watches_variables`: trainable variables that are read are watched.
  explicit Tape(bool watches_variables) : watches_variables_(watches_variables) {}
  ~Tape() = default;  // of one that is not open
  Tape(const Tape&) = delete;
  Tape& operator=(const Tape&) = delete;

  // On the calling thread, and closed there. A tape opened again goes on where it was. Errors:
  // FailedPrecondition where it is open, or was closed while the tapes around it were others.
  void open();
  void close();
  bool is_open() const { return open_; }
  // An open tape sees nothing in between.
  void pause();
  void resume();
  // Forgets what it has seen and what it watches.
  void reset();

  // From now on gradients with respect to this tensor, or the variable behind this handle, may be
  // asked for.
  void watch(ImmediateTensor& tensor);
  // Handles of the variables watched, in the order of their first use.
  std::vector<Tensor> watched_variables() const;

  // d(sum of targets)/d(source) for each source: a tensor watched or computed from one, or a
  // variable's handle; none where no path leads. `output_gradients`: empty, or one per target, of
  // which undefined ones stand for ones. Errors: as backpropagate() in op/backprop.h.
  std::vector<ImmediateGradient> gradients(std::span<const ImmediateTensor> targets,
                                           std::span<const ImmediateTensor> sources,
                                           std::span<const ImmediateTensor> output_gradients,
                                           RunOp run) const;

 private:
  friend class TapeProgram;
  friend class OpenTapes;
  bool sees(int64_t step) const;
  // Whether gradients with respect to this value may be asked for.
  bool has_source(int64_t value) const;

  const bool watches_variables_;
  bool open_ = false;
  bool paused_ = false;
  std::shared_ptr<Record> record_;  // null before it was opened
  // Steps [first, second) that it has seen; what it sees now begins with the last.
  std::vector<std::pair<int64_t, int64_t>> seen_;
  std::unordered_set<int64_t> watched_;  // values
  std::vector<int64_t> variables_;
  const Resource* last_handle_ = nullptr;  // of a variable that is watched, the last that was read
};

// Whether a tape is open on this thread, and sees what happens.
bool tapes_record();
// To be called where that is so, when an op has run: its outputs become known to the record.
void record_op(const OpInstance& op, std::span<const ImmediateTensor* const> inputs,
               std::span<ImmediateTensor> outputs, std::shared_ptr<RecordedRule> rule = nullptr);
// Stands for a function in a record, whose gradient is a rule.
OpInstance function_op(std::span<const DType> inputs, std::span<const DType> outputs);
// A variable is read where an op is not run: in a function that is traced.
void note_read(const ImmediateTensor& handle);
// Whether the tapes open on this thread know one of these.
bool any_recorded(std::span<const ImmediateTensor* const> tensors);

}  // namespace treenail
