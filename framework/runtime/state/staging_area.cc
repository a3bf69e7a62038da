// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/staging_area.h"

#include <algorithm>
#include <memory>

#include "framework/base/error.h"
#include "framework/runtime/state/resource_manager.h"
#include "framework/tensor/string_element.h"

namespace treenail {

int64_t staged_bytes(std::span<const Tensor> tuple) {
  int64_t bytes = 0;
  for (const Tensor& tensor : tuple) {
    bytes += static_cast<int64_t>(tensor.bytes());
    if (tensor.dtype() != DType::kString) continue;
    for (const StringElement& text : tensor.values<StringElement>())
      bytes += std::ssize(text.view());
  }
  return bytes;
}

std::string types_text(std::span<const DType> types) {
  std::string text = "[";
  for (const DType type : types) text += concat(text.size() > 1 ? ", " : "", type);
  return text + "]";
}

void check_memory_limit(const WaitingResource& area, const StagingLimits& limits, int64_t bytes) {
  if (limits.memory == 0 || bytes <= limits.memory) return;
  throw resource_exhausted("Attempted to insert tensors with combined size of ", bytes,
                           " bytes into staging area ", area.name(), " with a memory limit of ",
                           limits.memory);
}

void throw_other_limits(const WaitingResource& area, const StagingLimits& there,
                        const StagingLimits& wanted) {
  throw invalid_argument("staging area ", area.name(), " has capacity ", there.capacity,
                         " and memory_limit ", there.memory, "; it is asked for with capacity ",
                         wanted.capacity, " and memory_limit ", wanted.memory);
}

void check_staging_name(std::string_view name) {
  if (!name.empty()) return;
  throw invalid_argument(
      "shared_name is empty: outside of a graph it says which staging area is meant");
}

// --- What waits ---------------------------------------------------------------------------------

class StagingArea::Put final : public Request {
 public:
  Put(const RunContext& context, const Done& done, StagingArea& area, StagedTuple tuple)
      : Request(context, done),
        area_(area),
        tuple_(std::move(tuple)),
        bytes_(staged_bytes(tuple_)) {}

 private:
  void admit() override { check_memory_limit(area_, area_.limits_, bytes_); }
  Progress attempt() override {
    const StagingLimits& limits = area_.limits_;
    if ((limits.capacity > 0 && std::ssize(area_.tuples_) >= limits.capacity) ||
        (limits.memory > 0 && area_.bytes_ > limits.memory - bytes_))
      return Progress::kNone;
    area_.tuples_.push_back(std::move(tuple_));
    area_.bytes_ += bytes_;
    return Progress::kEnded;
  }

  StagingArea& area_;  // the request is in its line
  StagedTuple tuple_;
  const int64_t bytes_;
};

class StagingArea::Get final : public Request {
 public:
  Get(const RunContext& context, const Done& done, StagingArea& area)
      : Request(context, done), area_(area) {}

 private:
  Progress attempt() override {
    if (area_.tuples_.empty()) return Progress::kNone;
    StagedTuple tuple = std::move(area_.tuples_.front());
    area_.tuples_.pop_front();
    area_.bytes_ -= staged_bytes(tuple);
    for (size_t i = 0; i < tuple.size(); ++i)
      context().set_output(static_cast<int>(i), std::move(tuple[i]));
    return Progress::kEnded;
  }

  StagingArea& area_;
};

class StagingArea::Peek final : public Request {
 public:
  Peek(const RunContext& context, const Done& done, StagingArea& area, int64_t index)
      : Request(context, done), area_(area), index_(index) {}

 private:
  void admit() override {
    if (index_ >= 0) return;
    throw invalid_argument("index must not be negative, it is ", index_, " for staging area ",
                           area_.name());
  }
  Progress attempt() override {
    if (index_ >= std::ssize(area_.tuples_)) return Progress::kNone;
    const StagedTuple& tuple = area_.tuples_[static_cast<size_t>(index_)];
    for (size_t i = 0; i < tuple.size(); ++i) context().set_output(static_cast<int>(i), tuple[i]);
    return Progress::kEnded;
  }

  StagingArea& area_;
  const int64_t index_;
};

// --- The area -----------------------------------------------------------------------------------

StagingArea::~StagingArea() = default;

void StagingArea::agree(std::span<const DType> types) {
  if (types.empty()) return;
  look([&] {
    if (types_.empty()) types_.assign(types.begin(), types.end());
    if (std::ranges::equal(types, types_)) return;
    throw invalid_argument("Mismatch stage/unstage: staging area ", name(), " has dtypes ",
                           types_text(types_), ", the operation has ", types_text(types));
  });
}

void StagingArea::put(const RunContext& context, const Done& done, StagedTuple tuple) {
  submit(kPut, std::make_unique<Put>(context, done, *this, std::move(tuple)));
}

void StagingArea::get(const RunContext& context, const Done& done) {
  submit(kGet, std::make_unique<Get>(context, done, *this));
}

void StagingArea::peek(const RunContext& context, const Done& done, int64_t index) {
  submit(kPeek, std::make_unique<Peek>(context, done, *this, index));
}

int64_t StagingArea::size() const {
  return look([&] { return std::ssize(tuples_); });
}

void StagingArea::clear() {
  std::deque<StagedTuple> last;  // released after the lock
  change([&] {
    last.swap(tuples_);
    bytes_ = 0;
  });
}

void StagingArea::begin_state_anew() {
  begin_anew(tuples_);
  bytes_ = 0;
}

IntrusivePtr<StagingArea> named_staging_area(ResourceManager& resources, std::string_view container,
                                             std::string_view name, const StagingLimits& limits,
                                             std::span<const DType> types) {
  check_staging_name(name);
  auto area = resources.lookup_or_create<StagingArea>(
      container, name, [&] { return make_counted<StagingArea>(std::string(name), limits); });
  if (area->limits() != limits) throw_other_limits(*area, area->limits(), limits);
  area->agree(types);
  return area;
}

}  // namespace treenail
