// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/run/functions.h"

#include <algorithm>
#include <mutex>
#include <utility>

#include "framework/base/error.h"
#include "framework/runtime/run/function_body.h"

namespace treenail {
namespace {

bool any_queue(const std::vector<Device*>& devices) {
  return std::ranges::any_of(devices, [](const Device* device) { return !device->is_host(); });
}

}  // namespace

Session::Functions::Functions(Impl& session, FunctionFacts::Library library)
    : session_(session), facts_(std::move(library), any_queue(session.devices)) {}
Session::Functions::Functions(Impl& session, std::shared_ptr<const Graph> graph)
    : session_(session), facts_(std::move(graph), any_queue(session.devices)) {}
Session::Functions::~Functions() = default;

std::shared_ptr<FunctionCaller> Session::functions(std::shared_ptr<const Graph> library) {
  return std::make_shared<Functions>(*impl_, std::move(library));
}

FunctionBody& Session::Functions::body(const FunctionAttr& function, std::string_view call_site,
                                       const std::vector<bool>& wanted) {
  return body_within(nullptr, function, call_site, wanted);
}

Session::Functions::Body& Session::Functions::body_within(Body* caller, const FunctionAttr& attr,
                                                          std::string_view call_site,
                                                          const std::vector<bool>& wanted) {
  const Function& called = facts_.function(attr.name);
  if (called.output_values.size() != wanted.size()) {
    throw invalid_argument("function \"", attr.name, "\" gives ", called.output_values.size(),
                           " results, not ", wanted.size());
  }
  Body* const outer = caller != nullptr ? caller->innermost(called, wanted) : nullptr;
  if (outer != nullptr) return *outer;
  std::string path = concat(caller != nullptr ? caller->path() : "", call_site, "/");
  // Gradients give a place another function to call.
  std::string key = concat(path, attr.name, "/");
  for (const bool each : wanted) key += each ? '1' : '0';
  const std::lock_guard lock(mutex_);
  if (mutex_.abandoned()) begin_anew(bodies_);
  std::unique_ptr<Body>& body = bodies_[key];
  if (body == nullptr)
    body = std::make_unique<Body>(*this, caller, called, std::move(path), wanted);
  return *body;
}

}  // namespace treenail
