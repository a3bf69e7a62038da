// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/call_path.h"

#include <string>
#include <vector>

#include "framework/runtime/run/activation.h"

namespace treenail {
namespace {

// Calls that are told in full: of more the first, and the last.
constexpr size_t kMostCalls = 8, kFirstCalls = 4, kLastCalls = 2;

struct Call {
  const Node* node;
  int64_t iteration;
};

// The innermost first.
std::vector<Call> calls_around(const Frame& frame) {
  std::vector<Call> calls;
  const Activation* body = frame.activation;
  for (; body != nullptr && body->caller().activation != nullptr;
       body = body->caller().activation) {
    const Activation::Caller& caller = body->caller();
    const PlanNode& node = caller.activation->plan().nodes[static_cast<size_t>(caller.node)];
    calls.push_back({node.node, caller.iteration});
  }
  return calls;
}

std::string prefix_of(const Call& call) {
  std::string text = error_prefix(call.node->type(), call.node->original_name());
  return call.iteration < 0 ? text : concat(text, "iteration ", call.iteration, ": ");
}

}  // namespace

Error located_in_run(const Node& node, const Frame& frame, const Error& error) {
  return located_in_calls(frame, located_error(node, error));
}

Error located_in_calls(const Frame& frame, const Error& located) {
  const std::vector<Call> calls = calls_around(frame);
  if (calls.empty()) return located;
  std::string before, after, last;
  for (size_t i = calls.size(); i-- > 0;) {
    const bool told =
        calls.size() <= kMostCalls || i < kLastCalls || i >= calls.size() - kFirstCalls;
    if (told) {
      before += prefix_of(calls[i]);
      std::string created = creation_text(*calls[i].node);
      if (!created.empty() && created != last) after = concat("\n", created, after);
      last = std::move(created);
    } else if (i == kLastCalls) {
      before += concat("(", calls.size() - kFirstCalls - kLastCalls, " more calls) ");
    }
  }
  return Error(located.code(), concat(before, located.message(), after));
}

}  // namespace treenail
