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

class Session::Functions::Call final : public FunctionCall, private CallEnd {
 public:
  Call(Body& body, const RunContext& c);

  void run(std::span<Tensor> arguments, std::span<Tensor> results) override;
  bool start(std::span<Tensor> arguments, std::span<Tensor> results, CallEnd& end) override;

 private:
  void ended(std::exception_ptr error) noexcept override;

  bool fits(std::span<const Tensor> arguments) const;
  void choose_plan(std::span<const Tensor> arguments);
  void begin(std::span<Tensor> arguments);
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
};

}  // namespace treenail
