// SPDX-License-Identifier: Apache-2.0
// A lookup table: a value by key, for words and their numbers. One that is static is initialised
// once and read from then on; another can be changed at any time. Whoever reads waits only for the
// change that is under way, and whoever changes only for those who read already. Kernel-side
// header.
#pragma once

#include <memory>
#include <mutex>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/fork.h"
#include "framework/base/intrusive_ptr.h"
#include "framework/tensor/resource.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class LookupRows;
class ResourceManager;

struct LookupSpec {
  bool is_static = false;
  DType key = DType::kInvalid;  // int32, int64 or string
  DType value = DType::kInvalid;
  Shape value_shape = {};
  friend bool operator==(const LookupSpec&, const LookupSpec&) = default;
};

class LookupTable final : public Resource {
 public:
  LookupTable(std::string name, const LookupSpec& spec);
  ~LookupTable() override;
  const char* kind() const override { return spec_.is_static ? "HashTable" : "MutableHashTable"; }
  const LookupSpec& spec() const { return spec_; }

  // What all of them raise for tensors that do not fit the table: InvalidArgument.

  // What is read through one of these is the table at one moment; changes wait for its end.
  class Reading {
   public:
    // output i = the value of keys[i], or default_value, for i in [begin, end); from any thread.
    // keys and default_value were checked, output has room.
    void find(const Tensor& keys, const Tensor& default_value, int64_t begin, int64_t end,
              Tensor& output) const;
    Tensor keys() const;    // copies
    Tensor values() const;  // [n, ...]

   private:
    friend class LookupTable;
    Reading(std::shared_lock<ForkSharedMutex> lock, const LookupRows& rows)
        : lock_(std::move(lock)), rows_(rows) {}
    std::shared_lock<ForkSharedMutex> lock_;
    const LookupRows& rows_;
  };
  // Errors: FailedPrecondition before a static table is initialised.
  Reading read() const;
  int64_t size() const;  // 0 before that
  void check_keys(const Tensor& keys) const;
  void check_default(const Tensor& value) const;
  void check_export(DType keys, DType values) const;

  // values: the keys' shape, and a value's behind it. All of it is done, or nothing. Errors:
  // Unimplemented for a static table; ResourceExhausted.
  void insert(const Tensor& keys, const Tensor& values);
  void remove(const Tensor& keys);
  // Instead of what there is.
  void replace(const Tensor& keys, const Tensor& values);
  // Errors: InvalidArgument unless the table is static; FailedPrecondition where it has other
  // content already, which stays, or where one key has two values.
  void initialize(const Tensor& keys, const Tensor& values);
  // Before values are made: errors as of initialize().
  void check_static() const;

 private:
  std::shared_lock<ForkSharedMutex> reading() const;
  std::pair<std::unique_lock<ForkMutex>, std::unique_lock<ForkSharedMutex>> writing();
  void check_pairs(const Tensor& keys, const Tensor& values) const;
  void check_changes(std::string_view what) const;
  bool is_initialized_with(const Tensor& keys, const Tensor& values) const;
  [[noreturn]] void throw_other_content() const;

  const std::string name_;
  const LookupSpec spec_;
  // Held by who changes, and for a moment by who begins to read: the system's shared locks let
  // readers pass by a writer for ever.
  mutable ForkMutex turn_;
  mutable ForkSharedMutex mutex_;  // guards what follows
  std::unique_ptr<LookupRows> rows_;
  bool initialized_;
};

// Errors: InvalidArgument for another handle.
LookupTable& lookup_table_from(const Tensor& handle);

// The table of that name in a session's state, made at first use; a new one that nobody else finds
// where the name is empty. Errors: InvalidArgument when the name belongs to something else, or to a
// table of another spec.
IntrusivePtr<LookupTable> named_lookup_table(ResourceManager& resources, std::string_view container,
                                             std::string_view name, const LookupSpec& spec);

}  // namespace treenail
