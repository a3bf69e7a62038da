// SPDX-License-Identifier: Apache-2.0
// A barrier: elements of several components, which are inserted one component at a time under a
// key. Complete elements can be taken, in the order in which their first components came. Kernel-
// side header.
#pragma once

#include <cstdint>
#include <limits>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "framework/runtime/state/waiting_resource.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class ResourceManager;
struct QueueElement;

struct BarrierOptions {
  std::vector<DType> types;          // of the components, at least one
  std::vector<PartialShape> shapes;  // as many
  friend bool operator==(const BarrierOptions&, const BarrierOptions&) = default;
};

class Barrier final : public WaitingResource {
 public:
  struct Demand {
    int64_t count = 0;
    bool allow_small_batch = false;    // fewer, but at least one, once the barrier is closed
    bool wait_for_incomplete = false;  // before a small batch: for elements that may get complete
  };

  Barrier(std::string name, BarrierOptions options)
      : WaitingResource(std::move(name), 1), options_(std::move(options)) {}
  ~Barrier() override;
  const char* kind() const override { return "Barrier"; }
  const BarrierOptions& options() const { return options_; }
  // Errors: InvalidArgument unless they are the components' dtypes.
  void check_types(std::span<const DType> types) const;

  // values[i] [...] becomes that component of the element keys[i]: all of them, or none where it
  // throws. Errors: InvalidArgument (component, dtype, shape, a component that is there already),
  // Cancelled (closed: unless every key is that of an incomplete element).
  void insert(int64_t component, const Tensor& keys, const Tensor& values);
  // Ends with the outputs set: indices, int64 [n], which tell insertions apart; keys, string [n];
  // one [n, ...] per component. Errors: InvalidArgument (count; elements of different shapes),
  // OutOfRange where it is closed and has too few.
  void take(const RunContext& context, const Done& done, const Demand& demand);
  // No element begins any more; `cancel_pending`: nor gets complete. Errors: Cancelled where it is
  // closed already, unless pending insertions are only now cancelled.
  void close(bool cancel_pending);

  int64_t ready_size() const;
  int64_t incomplete_size() const;

 private:
  class Take;
  struct Incomplete {
    int64_t index = 0;
    size_t missing = 0;
    std::vector<Tensor> components;  // undefined: missing
  };
  struct Ready {
    std::string key;
    std::vector<Tensor> components;
  };
  // Of a key, on the way through the keys of one insertion.
  struct Left {
    size_t missing = 0;  // 0: there is no such element
    bool given = false;  // the component that is being inserted
  };

  void begin_state_anew() override;
  void check_values(int64_t component, const Tensor& keys, const Tensor& values) const;
  // All with the lock held.
  void check_open(int64_t insertions) const;
  Left left_of(std::string_view key, size_t component) const;
  void check_keys(std::span<const StringElement> keys, size_t component) const;
  bool put(std::string_view key, size_t component, Tensor value);
  void give(RunContext& context, int64_t count);
  Tensor component_batch(std::span<const QueueElement> elements, size_t component) const;
  [[noreturn]] void throw_too_few(int64_t wanted, int64_t available) const;

  const BarrierOptions options_;
  std::unordered_map<std::string, Incomplete> incomplete_;  // by key
  // By number of the insertion that began it, and how many were complete before.
  std::map<std::pair<int64_t, int64_t>, Ready> ready_;
  int64_t next_index_ = std::numeric_limits<int64_t>::min();
  int64_t completed_ = 0;
  bool closed_ = false;
  bool cancelled_ = false;  // pending insertions
};

// The barrier of that name in a session's state, made at first use; a new one that nobody else
// finds where the name is empty. Errors: InvalidArgument when the name belongs to something else,
// or to a barrier of other components.
IntrusivePtr<Barrier> named_barrier(ResourceManager& resources, std::string_view container,
                                    std::string_view name, const BarrierOptions& options);

}  // namespace treenail
