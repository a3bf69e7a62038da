// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/staging_map.h"

#include <algorithm>
#include <memory>

#include "framework/base/error.h"
#include "framework/runtime/state/resource_manager.h"

namespace treenail {

// --- What waits ---------------------------------------------------------------------------------

class StagingMap::Put final : public Request {
 public:
  Put(const RunContext& context, const Done& done, StagingMap& map, int64_t key, Part part,
      StagedTuple values)
      : Request(context, done),
        map_(map),
        key_(key),
        part_(std::move(part)),
        values_(std::move(values)),
        bytes_(staged_bytes(values_)) {}

 private:
  void admit() override {
    map_.check_part(part_, values_.size());
    check_memory_limit(map_, map_.kind_.limits, bytes_);
  }
  Progress attempt() override {
    if (!map_.has_room(bytes_, part_.indices.size() == map_.types_.size())) return Progress::kNone;
    map_.add(key_, part_, values_);
    map_.bytes_ += bytes_;
    return Progress::kEnded;
  }

  StagingMap& map_;  // the request is in its line
  const int64_t key_;
  const Part part_;
  StagedTuple values_;
  const int64_t bytes_;
};

class StagingMap::Get final : public Request {
 public:
  enum class Which { kByKey, kPeek, kAny };
  Get(const RunContext& context, const Done& done, StagingMap& map, Which which, int64_t key,
      Part part)
      : Request(context, done), map_(map), which_(which), key_(key), part_(std::move(part)) {}

 private:
  void admit() override { map_.check_part(part_, part_.types.size()); }
  Progress attempt() override {
    const bool any = which_ == Which::kAny;
    const auto at = any ? map_.complete_.begin() : map_.complete_.find(key_);
    if (at == map_.complete_.end()) return Progress::kNone;
    map_.check_there(*at, part_);
    if (any) context().set_output(0, Tensor::scalar<int64_t>(at->first));
    map_.hand_out(at, part_, which_ == Which::kPeek, context(), any ? 1 : 0);
    return Progress::kEnded;
  }

  StagingMap& map_;
  const Which which_;
  const int64_t key_;
  const Part part_;
};

// --- Parts --------------------------------------------------------------------------------------

StagingMap::~StagingMap() = default;

// Where no operation has said the dtypes of whole tuples yet, check_there() holds a part to them.
void StagingMap::check_part(const Part& part, size_t values) const {
  const std::vector<int32_t>& indices = part.indices;
  if (indices.size() != values || indices.size() != part.types.size()) {
    throw invalid_argument("there are ", indices.size(), " indices and ", values,
                           " values for staging area ", name());
  }
  for (size_t i = 0; i < indices.size(); ++i) {
    if (i > 0 && indices[i] <= indices[i - 1]) {
      throw invalid_argument("Indices are not strictly ordered: indices[", i, "] = ", indices[i],
                             " comes after ", indices[i - 1]);
    }
    if (types_.empty()) continue;
    if (indices[i] < 0 || indices[i] >= std::ssize(types_)) {
      throw invalid_argument("indices[", i, "] = ", indices[i], " is not in [0, ", types_.size(),
                             "), the tuples of staging area ", name());
    }
    const DType wanted = types_[static_cast<size_t>(indices[i])];
    if (part.types[i] != wanted) {
      throw invalid_argument("tensors at index ", indices[i], " in staging area ", name(),
                             " have dtype ", wanted, ", the operation has ", part.types[i]);
    }
  }
}

bool StagingMap::has_room(int64_t bytes, bool whole) const {
  const StagingLimits& limits = kind_.limits;
  if (whole && limits.capacity > 0 && std::ssize(complete_) >= limits.capacity) return false;
  return limits.memory == 0 || bytes_ <= limits.memory - bytes;
}

void StagingMap::add(int64_t key, const Part& part, StagedTuple& values) {
  if (complete_.contains(key))
    throw invalid_argument("key ", key, " is in staging area ", name(), " already");
  const auto there = incomplete_.find(key);
  for (const int32_t index : part.indices) {
    if (there == incomplete_.end() || !there->second[static_cast<size_t>(index)].defined())
      continue;
    throw invalid_argument("the tensor at index ", index, " for key ", key, " in staging area ",
                           name(), " was put already");
  }
  const auto at = incomplete_.try_emplace(key, types_.size()).first;
  for (size_t i = 0; i < values.size(); ++i)
    at->second[static_cast<size_t>(part.indices[i])] = std::move(values[i]);
  if (std::ranges::all_of(at->second, &Tensor::defined)) complete_.insert(incomplete_.extract(at));
}

void StagingMap::check_there(const Tuples::value_type& tuple, const Part& part) const {
  check_part(part, part.types.size());
  for (const int32_t index : part.indices) {
    if (tuple.second[static_cast<size_t>(index)].defined()) continue;
    throw invalid_argument("the tensor at index ", index, " for key ", tuple.first,
                           " has been taken out of staging area ", name(), " already");
  }
}

void StagingMap::hand_out(Tuples::iterator tuple, const Part& part, bool keep, RunContext& context,
                          int first_output) {
  for (size_t i = 0; i < part.indices.size(); ++i) {
    Tensor& value = tuple->second[static_cast<size_t>(part.indices[i])];
    context.set_output(first_output + static_cast<int>(i), value);
    if (keep) continue;
    bytes_ -= staged_bytes({&value, 1});
    value = Tensor();
  }
  if (std::ranges::none_of(tuple->second, &Tensor::defined)) complete_.erase(tuple);
}

// --- The map ------------------------------------------------------------------------------------

void StagingMap::agree(std::span<const DType> types) {
  if (types.empty()) return;
  look([&] {
    if (types_.empty()) types_.assign(types.begin(), types.end());
    if (std::ranges::equal(types, types_)) return;
    throw invalid_argument("staging area ", name(), " has dtypes ", types_text(types_),
                           ", the operation has ", types_text(types));
  });
}

void StagingMap::put(const RunContext& context, const Done& done, int64_t key, Part part,
                     StagedTuple values) {
  submit(kPut,
         std::make_unique<Put>(context, done, *this, key, std::move(part), std::move(values)));
}

void StagingMap::get(const RunContext& context, const Done& done, int64_t key, Part part) {
  submit(kByKey,
         std::make_unique<Get>(context, done, *this, Get::Which::kByKey, key, std::move(part)));
}

void StagingMap::peek(const RunContext& context, const Done& done, int64_t key, Part part) {
  submit(kByKey,
         std::make_unique<Get>(context, done, *this, Get::Which::kPeek, key, std::move(part)));
}

void StagingMap::get_any(const RunContext& context, const Done& done, Part part) {
  submit(kAny, std::make_unique<Get>(context, done, *this, Get::Which::kAny, 0, std::move(part)));
}

int64_t StagingMap::size() const {
  return look([&] { return std::ssize(complete_); });
}

int64_t StagingMap::incomplete_size() const {
  return look([&] { return std::ssize(incomplete_); });
}

void StagingMap::clear() {
  Tuples last, begun;  // released after the lock
  change([&] {
    last.swap(complete_);
    begun.swap(incomplete_);
    bytes_ = 0;
  });
}

void StagingMap::begin_state_anew() {
  begin_anew(complete_);
  begin_anew(incomplete_);
  bytes_ = 0;
}

IntrusivePtr<StagingMap> named_staging_map(ResourceManager& resources, std::string_view container,
                                           std::string_view name, const StagingMap::Kind& kind,
                                           std::span<const DType> types) {
  check_staging_name(name);
  auto map = resources.lookup_or_create<StagingMap>(
      container, name, [&] { return make_counted<StagingMap>(std::string(name), kind); });
  const StagingMap::Kind& there = map->description();
  if (there.ordered != kind.ordered) {
    throw invalid_argument("staging area ", name, " is an ", there.ordered ? "" : "un",
                           "ordered map; it is asked for as an ", kind.ordered ? "" : "un",
                           "ordered one");
  }
  if (there.limits != kind.limits) throw_other_limits(*map, there.limits, kind.limits);
  map->agree(types);
  return map;
}

}  // namespace treenail
