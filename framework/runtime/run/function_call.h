// SPDX-License-Identifier: Apache-2.0
// Calls of a body in one run: its plan for the arguments, and a frame, kept from call to call. The
// nodes run on the thread that calls, or, where they may wait, among the run's (activation.h).
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "framework/runtime/run/activation.h"
#include "framework/runtime/run/function_body.h"

namespace treenail {

class Session::Functions::Call final : public FunctionCall, private PartsEnd {
 public:
  Call(Body& body, const RunContext& c);

  void run(std::span<Tensor> arguments, std::span<Tensor> results) override;
  bool start(std::span<Tensor> arguments, std::span<Tensor> results, CallEnd& end) override;

  // Of iterations that overlap (overlapping_call.cc).
  int64_t overlaps(std::span<const Tensor> arguments, const std::vector<bool>& checked,
                   const std::vector<bool>& decide, int64_t most) override;
  std::unique_ptr<FunctionCall> another() const override;
  int num_states() const override { return plan_->num_states; }
  bool hands_on(int argument) const override;
  void open(PartsEnd& end) override;
  void give(int argument, Tensor value) override;
  Tensor take(int result) override;
  void give_up() override;
  void cancel_waits() override;
  void work(FunctionRef<void()> begin, FunctionRef<void(std::exception_ptr)> interrupted) override;

 private:
  Call(const Call& other);
  void arrived(std::span<const int32_t> fetches) noexcept override;
  bool keeps_shapes(std::span<const Tensor> arguments, const std::vector<bool>& checked) const;
  bool pays(const std::vector<bool>& decide, int64_t most) const;
  bool something_long_may_overlap(const std::vector<bool>& decide) const;
  bool is_started() const { return caller_ != nullptr && caller_->activation != nullptr; }
  // By result, the number of the fetch; -1: it is not wanted.
  std::vector<int32_t> fetch_numbers() const;

  void ended(std::exception_ptr error) noexcept override;

  bool fits(std::span<const Tensor> arguments) const;
  void choose_plan(std::span<const Tensor> arguments, Args args = Args::kAtOnce);
  void begin(std::span<Tensor> arguments);
  void begin_trace();
  void check_depth(const Activation& caller) const;
  void finish(std::span<Tensor> results);
  void end_trace() noexcept;

  Body& body_;
  Frame* const caller_;  // null: the kernel runs by itself
  const int32_t node_;
  std::optional<RunScope> own_scope_;  // where it does
  std::optional<TokenLink> own_link_;
  RunScope& scope_;
  std::vector<Shape> shapes_;
  std::vector<const Resource*> states_;
  std::shared_ptr<const Plan> plan_;
  std::optional<FrameLease> lease_;
  std::unique_ptr<NodeTrace> trace_;
  std::optional<Activation> activation_;
  std::span<Tensor> results_;  // of the call that was started
  CallEnd* end_ = nullptr;
  PartsEnd* parts_end_ = nullptr;  // of the call that was opened
  std::vector<int32_t> fetches_;   // fetch_numbers(), of such calls
  RunQueue* queue_ = nullptr;      // theirs, where the body does not wait
};

}  // namespace treenail
