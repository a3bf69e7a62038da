// SPDX-License-Identifier: Apache-2.0
// Calls of immediate execution that come again: the same op with the same attributes on inputs of
// the same dtypes and shapes has its kernel kept, for resolving, inferring and preparing take
// longer than a small kernel runs. A table per thread; an entry gives way to another of its place.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/runtime/run/immediate.h"

namespace treenail {

struct ImmediateCall {
  const OpDef& op;
  std::span<const Tensor> inputs;
  const NamedAttrs& attrs;
  std::span<const int> arg_sizes;
};

class RepeatedCalls {
 public:
  struct Entry {
    OpInstance op;  // the kernel may refer to it
    PreparedKernel prepared;
    std::vector<Shape> shapes;
    NamedAttrs attrs;
    std::vector<int> arg_sizes;

    bool answers(const ImmediateCall& call) const;
  };

  static RepeatedCalls& of_this_thread();

  // Not where an attribute holds tensors: they would be read at every call, and stay.
  static bool may_keep(const ImmediateCall& call);
  static uint64_t hash(const ImmediateCall& call);
  // Shared: a kernel may itself call and replace the entry that runs.
  std::shared_ptr<const Entry> find(const ImmediateCall& call, uint64_t hash) const;
  // `entry` holds op and kernel.
  void keep(const ImmediateCall& call, uint64_t hash, std::shared_ptr<Entry> entry);

 private:
  static constexpr size_t kPlaces = 256;
  std::array<std::shared_ptr<const Entry>, kPlaces> places_;
};

}  // namespace treenail
