// SPDX-License-Identifier: Apache-2.0
// A staging area whose tuples have keys: they are put and taken as a whole or in parts, by key or
// whichever there is. Kernel-side header.
#pragma once

#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/runtime/state/staging_area.h"
#include "framework/runtime/state/waiting_resource.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class StagingMap final : public WaitingResource {
 public:
  struct Kind {
    StagingLimits limits;  // capacity counts complete tuples, memory the others as well
    bool ordered = false;  // whichever there is: the one of the lowest key
    friend bool operator==(const Kind&, const Kind&) = default;
  };
  // Places in a tuple, which ascend, and the dtypes there.
  struct Part {
    std::vector<int32_t> indices;
    std::vector<DType> types;
  };

  StagingMap(std::string name, const Kind& kind)
      : WaitingResource(std::move(name), kLines, kCrowds), kind_(kind) {}
  ~StagingMap() override;
  const char* kind() const override { return kind_.ordered ? "OrderedStagingMap" : "StagingMap"; }
  const Kind& description() const { return kind_; }
  // The first list that is not empty says the dtypes of all tuples. Errors: InvalidArgument for
  // others.
  void agree(std::span<const DType> types);

  // Each ends when there is room, or such a tuple. Errors: InvalidArgument (places that do not
  // ascend, are not there, are given or taken already, or have other dtypes; a key that is there
  // already), ResourceExhausted (more than ever fits).
  void put(const RunContext& context, const Done& done, int64_t key, Part part, StagedTuple values);
  // Outputs: the part, which is taken out, or stays (peek).
  void get(const RunContext& context, const Done& done, int64_t key, Part part);
  void peek(const RunContext& context, const Done& done, int64_t key, Part part);
  // Outputs: the key, and the part, which is taken out.
  void get_any(const RunContext& context, const Done& done, Part part);

  int64_t size() const;             // tuples that are complete, or were
  int64_t incomplete_size() const;  // that lack a part which was not put yet
  void clear();

 private:
  enum Line { kAny, kLines, kPut = kLines, kByKey };
  static constexpr int kCrowds = 2;
  class Put;
  class Get;
  using Tuples = std::map<int64_t, StagedTuple>;  // undefined: not there yet, or taken

  void begin_state_anew() override;
  // With the lock held.
  void check_part(const Part& part, size_t values) const;
  bool has_room(int64_t bytes, bool whole) const;
  void add(int64_t key, const Part& part, StagedTuple& values);
  void check_there(const Tuples::value_type& tuple, const Part& part) const;
  void hand_out(Tuples::iterator tuple, const Part& part, bool keep, RunContext& context,
                int first_output);

  const Kind kind_;
  std::vector<DType> types_;
  Tuples complete_, incomplete_;
  int64_t bytes_ = 0;
};

// The staging map of that name in a session's state, made at first use. types: of whole tuples,
// empty where they do not matter. Errors: InvalidArgument (no name; a name that belongs to
// something else, or to a map of another kind or other dtypes).
IntrusivePtr<StagingMap> named_staging_map(ResourceManager& resources, std::string_view container,
                                           std::string_view name, const StagingMap::Kind& kind,
                                           std::span<const DType> types);

}  // namespace treenail
