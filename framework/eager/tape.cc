// SPDX-License-Identifier: Apache-2.0
#include "framework/eager/tape.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/state/variable.h"

namespace treenail {
namespace {

constexpr int64_t kUntilNow = std::numeric_limits<int64_t>::max();

}  // namespace

// Of one thread.
class OpenTapes {
 public:
  static OpenTapes& here() {
    static thread_local OpenTapes tapes;
    return tapes;
  }

  bool record() const { return recording_ > 0; }
  Record& the_record() { return *record_; }

  void add(Tape& tape) {
    if (tapes_.empty())
      record_ = tape.record_ != nullptr ? tape.record_ : std::make_shared<Record>();
    if (tape.record_ == nullptr) tape.record_ = record_;
    if (tape.record_ != record_) {
      throw failed_precondition(
          "a tape that was closed cannot be opened again within another tape: open it first, or "
          "make a new one");
    }
    tapes_.push_back(&tape);
    begin(tape);
  }
  void remove(Tape& tape) {
    const auto found = std::ranges::find(tapes_, &tape);
    if (found == tapes_.end())
      throw failed_precondition("a tape is closed on the thread that opened it");
    if (!tape.paused_) end(tape);
    tapes_.erase(found);
    if (tapes_.empty()) record_.reset();
  }
  void begin(Tape& tape) {
    tape.seen_.emplace_back(record_->steps(), kUntilNow);
    ++recording_;
  }
  void end(Tape& tape) {
    tape.seen_.back().second = record_->steps();
    if (tape.seen_.back().first == tape.seen_.back().second) tape.seen_.pop_back();
    --recording_;
  }
  // The tape begins anew: alone, with an empty record.
  void renew(Tape& tape) {
    if (tapes_.size() == 1) tape.record_ = record_ = std::make_shared<Record>();
    if (!tape.paused_) tape.seen_.emplace_back(record_->steps(), kUntilNow);
  }
  void require(const Tape& tape) const {
    if (std::ranges::find(tapes_, &tape) == tapes_.end())
      throw failed_precondition("the tape is not open on this thread");
  }

  // A variable is read: the tapes that watch variables watch it.
  void note_access(const ImmediateTensor& handle) {
    if (handle.tensor.rank() != 0) return;
    const auto* variable =
        dynamic_cast<const Variable*>(handle.tensor.data<ResourceElement>()->object.get());
    if (variable == nullptr || !variable->trainable()) return;
    for (Tape* tape : tapes_) {
      if (!tape->watches_variables_ || tape->paused_ || tape->last_handle_ == variable) continue;
      tape->last_handle_ = variable;
      ImmediateTensor same = handle;
      tape->watch(same);
    }
  }

 private:
  std::vector<Tape*> tapes_;  // the innermost last
  std::shared_ptr<Record> record_;
  int recording_ = 0;  // those that are not paused
};

bool tapes_record() { return OpenTapes::here().record(); }

void record_op(const OpInstance& op, std::span<const ImmediateTensor* const> inputs,
               std::span<ImmediateTensor> outputs, std::shared_ptr<RecordedRule> rule) {
  OpenTapes& tapes = OpenTapes::here();
  for (const ImmediateTensor* input : inputs)
    if (input->tensor.dtype() == DType::kResource) tapes.note_access(*input);
  tapes.the_record().append(op, inputs, outputs, std::move(rule));
}

OpInstance function_op(std::span<const DType> inputs, std::span<const DType> outputs) {
  static const OpDef& def = []() -> const OpDef& {
    static OpDef made;
    made.name = "Function";
    OpDeclaration(made)
        .input("args: Tin")
        .output("results: Tout")
        .attr("Tin: list(type) >= 0")
        .attr("Tout: list(type) >= 0");
    return made;
  }();
  const NamedAttr attrs[] = {{"Tout", std::vector<DType>(outputs.begin(), outputs.end())}};
  const int sizes[] = {static_cast<int>(inputs.size())};
  return resolve_op(def, inputs, attrs, sizes);
}

void note_read(const ImmediateTensor& handle) {
  OpenTapes& tapes = OpenTapes::here();
  if (tapes.record()) tapes.note_access(handle);
}

bool any_recorded(std::span<const ImmediateTensor* const> tensors) {
  OpenTapes& tapes = OpenTapes::here();
  if (!tapes.record()) return false;
  for (const ImmediateTensor* tensor : tensors)
    if (tensor->tensor.dtype() == DType::kResource) tapes.note_access(*tensor);
  return std::ranges::any_of(tensors, [&](const ImmediateTensor* tensor) {
    return tapes.the_record().find(*tensor) != Record::kNone;
  });
}

void Tape::open() {
  if (open_) throw failed_precondition("the tape is open already");
  OpenTapes::here().add(*this);
  open_ = true;
}

void Tape::close() {
  if (!open_) throw failed_precondition("the tape is not open");
  OpenTapes::here().remove(*this);
  open_ = paused_ = false;
}

void Tape::pause() {
  OpenTapes& tapes = OpenTapes::here();
  tapes.require(*this);
  if (paused_) throw failed_precondition("the tape is paused already");
  tapes.end(*this);
  paused_ = true;
}

void Tape::resume() {
  OpenTapes& tapes = OpenTapes::here();
  tapes.require(*this);
  if (!paused_) throw failed_precondition("the tape is not paused");
  tapes.begin(*this);
  paused_ = false;
}

void Tape::reset() {
  watched_.clear();
  variables_.clear();
  seen_.clear();
  if (!open_) {
    record_.reset();
  } else {
    OpenTapes& tapes = OpenTapes::here();
    tapes.require(*this);
    tapes.renew(*this);
  }
  last_handle_ = nullptr;
}

void Tape::watch(ImmediateTensor& tensor) {
  if (record_ == nullptr) throw failed_precondition("the tape has not been opened yet");
  const int64_t value = record_->watch(tensor);
  if (watched_.insert(value).second && tensor.tensor.dtype() == DType::kResource)
    variables_.push_back(value);
}

std::vector<Tensor> Tape::watched_variables() const {
  std::vector<Tensor> handles;
  for (const int64_t value : variables_) handles.push_back(record_->tensor(value));
  return handles;
}

bool Tape::sees(int64_t step) const {
  const auto after =
      std::ranges::upper_bound(seen_, step, {}, [](const auto& s) { return s.first; });
  return after != seen_.begin() && step < std::prev(after)->second;
}

bool Tape::has_source(int64_t value) const {
  if (value == Record::kNone) return false;
  const int64_t step = record_->step_of(value);
  return watched_.contains(value) || (step != Record::kNone && sees(step));
}

}  // namespace treenail
