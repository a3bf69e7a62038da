// SPDX-License-Identifier: Apache-2.0
// A staging area: a queue of tuples of tensors that operations of one name share without a handle,
// bounded by their number and by their bytes. Kernel-side header.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/runtime/state/waiting_resource.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class ResourceManager;

// 0: none.
struct StagingLimits {
  int64_t capacity = 0;  // tuples
  int64_t memory = 0;    // bytes
  friend bool operator==(const StagingLimits&, const StagingLimits&) = default;
};

using StagedTuple = std::vector<Tensor>;  // in memory of their own

// What a tuple counts for a limit of memory: strings with their characters.
int64_t staged_bytes(std::span<const Tensor> tuple);
std::string types_text(std::span<const DType> types);
// Errors: ResourceExhausted where a tuple of so many bytes never fits.
void check_memory_limit(const WaitingResource& area, const StagingLimits& limits, int64_t bytes);

class StagingArea final : public WaitingResource {
 public:
  StagingArea(std::string name, StagingLimits limits)
      : WaitingResource(std::move(name), kLines, kPeeks), limits_(limits) {}
  ~StagingArea() override;
  const char* kind() const override { return "StagingArea"; }
  const StagingLimits& limits() const { return limits_; }
  // The first list that is not empty says the dtypes of all tuples. Errors: InvalidArgument for
  // others.
  void agree(std::span<const DType> types);

  // Each ends when there is room, or a tuple, as the limits allow: in the order of the calls.
  void put(const RunContext& context, const Done& done, StagedTuple tuple);
  // Outputs: the first tuple, which is taken out.
  void get(const RunContext& context, const Done& done);
  // Outputs: tuple number `index`, which stays, once there is one. Errors: InvalidArgument below 0.
  void peek(const RunContext& context, const Done& done, int64_t index);

  int64_t size() const;
  void clear();

 private:
  enum Line { kPut, kGet, kLines };
  static constexpr int kPeeks = 1;
  static constexpr int kPeek = kLines;
  class Put;
  class Get;
  class Peek;

  void begin_state_anew() override;

  const StagingLimits limits_;
  std::vector<DType> types_;
  std::deque<StagedTuple> tuples_;
  int64_t bytes_ = 0;
};

// The staging area of that name in a session's state, made at first use. types: of the tuples,
// empty where they do not matter. Errors: InvalidArgument (no name; a name that belongs to
// something else, or to an area of other dtypes or limits).
IntrusivePtr<StagingArea> named_staging_area(ResourceManager& resources, std::string_view container,
                                             std::string_view name, const StagingLimits& limits,
                                             std::span<const DType> types);
// What that says of limits, and of a name that is missing.
[[noreturn]] void throw_other_limits(const WaitingResource& area, const StagingLimits& there,
                                     const StagingLimits& wanted);
void check_staging_name(std::string_view name);

}  // namespace treenail
