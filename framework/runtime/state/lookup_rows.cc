// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/lookup_rows.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <limits>
#include <span>
#include <type_traits>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/base/hash.h"
#include "framework/base/system_seed.h"
#include "framework/tensor/string_element.h"

namespace treenail {
namespace {

constexpr uint64_t kRowMask = std::numeric_limits<uint32_t>::max();
constexpr int64_t kMostRows = int64_t{1} << 31;
constexpr int64_t kFewestRows = 8;
constexpr int64_t kBatch = 256;  // keys that are looked up before their values are copied

// Nobody who sends keys can know which of them meet.
uint64_t secret() {
  static std::atomic<const uint64_t*> made{nullptr};
  return made_once(made, [] { return new const uint64_t(system_seed()); });
}

template <class Key>
uint32_t tag_of(const Key& key, uint64_t seed) {
  if constexpr (std::is_same_v<Key, StringElement>) {
    return static_cast<uint32_t>(hash_text(key.view(), seed) >> 32);
  } else {
    return static_cast<uint32_t>(hash_combine(seed, static_cast<uint64_t>(key)) >> 32);
  }
}

template <class F>
decltype(auto) with_key_type(DType dtype, F&& f) {
  return dispatch<int32_t, int64_t, StringElement>(dtype, std::forward<F>(f));
}

uint64_t slot(uint32_t tag, int64_t row) {
  return uint64_t{tag} << 32 | (static_cast<uint64_t>(row) + 1);
}
int64_t row_in(uint64_t slot) { return static_cast<int64_t>(slot & kRowMask) - 1; }
uint32_t tag_in(uint64_t slot) { return static_cast<uint32_t>(slot >> 32); }

// Elements [0, count) to the front of memory that nobody else has.
void move_elements(Tensor& from, int64_t count, Tensor& to) {
  if (from.dtype() == DType::kString) {
    std::move(from.data<StringElement>(), from.data<StringElement>() + count,
              to.data<StringElement>());
  } else if (count > 0) {
    std::memcpy(to.raw(), from.raw(), static_cast<size_t>(count) * dtype_size(from.dtype()));
  }
}

}  // namespace

LookupRows::LookupRows(DType key, DType value, const Shape& value_shape)
    : value_shape_(value_shape),
      value_elements_(value_shape.num_elements()),
      value_bytes_(static_cast<size_t>(value_elements_) * dtype_size(value)),
      keys_(key, Shape({0})),
      values_(value, value_shape.inserted(0, 0)) {}

Tensor LookupRows::keys() const { return keys_.rows(0, size_).deep_copy(); }
Tensor LookupRows::values() const { return values_.rows(0, size_).deep_copy(); }

// --- Finding ------------------------------------------------------------------------------------

template <class Key>
int64_t LookupRows::row_of(const Key& key, uint32_t tag) const {
  if (size_ == 0) return kAbsent;
  const auto* const slots = slots_.data<uint64_t>();
  const Key* const keys = keys_.data<Key>();
  for (uint64_t at = tag & mask_; slots[at] != 0; at = (at + 1) & mask_) {
    if (tag_in(slots[at]) == tag && keys[row_in(slots[at])] == key) return row_in(slots[at]);
  }
  return kAbsent;
}

void LookupRows::copy_value(const Tensor& from, int64_t i, Tensor& to, int64_t at) const {
  if (from.dtype() == DType::kString) {
    const auto* const begin = from.data<StringElement>() + i * value_elements_;
    std::copy_n(begin, value_elements_, to.data<StringElement>() + at * value_elements_);
  } else if (value_bytes_ > 0) {
    std::memcpy(static_cast<std::byte*>(to.raw()) + static_cast<size_t>(at) * value_bytes_,
                static_cast<const std::byte*>(from.raw()) + static_cast<size_t>(i) * value_bytes_,
                value_bytes_);
  }
}

// What lies far away comes for all of a batch at once.
template <class Key>
void LookupRows::fetch(std::span<const uint32_t> tags) const {
  if (size_ == 0) return;
  const auto* const slots = slots_.data<uint64_t>();
  for (const uint32_t tag : tags) __builtin_prefetch(slots + (tag & mask_));
  for (const uint32_t tag : tags) {
    const uint64_t first = slots[tag & mask_];
    if (first != 0) __builtin_prefetch(keys_.data<Key>() + row_in(first));
  }
}

template <class Key>
void LookupRows::find_rows(const Key* keys, std::span<int64_t> rows) const {
  const uint64_t seed = secret();
  std::array<uint32_t, kBatch> tags;
  for (size_t i = 0; i < rows.size(); ++i) tags[i] = tag_of(keys[i], seed);
  fetch<Key>({tags.data(), rows.size()});
  for (size_t i = 0; i < rows.size(); ++i) rows[i] = row_of(keys[i], tags[i]);
}

void LookupRows::find(const Tensor& keys, const Tensor& otherwise, int64_t begin, int64_t end,
                      Tensor& out) const {
  std::array<int64_t, kBatch> all;
  for (; begin < end; begin += kBatch) {
    const std::span rows(all.data(), static_cast<size_t>(std::min(kBatch, end - begin)));
    with_key_type(keys_.dtype(), [&]<class Key>() { find_rows(keys.data<Key>() + begin, rows); });
    for (size_t i = 0; i < rows.size(); ++i) {
      const bool there = rows[i] != kAbsent;
      copy_value(there ? values_ : otherwise, there ? rows[i] : 0, out,
                 begin + static_cast<int64_t>(i));
    }
  }
}

bool LookupRows::equal_value(const Tensor& values, int64_t i, int64_t row) const {
  if (values_.dtype() == DType::kString) {
    const auto* const theirs = values.data<StringElement>() + i * value_elements_;
    return std::equal(theirs, theirs + value_elements_,
                      values_.data<StringElement>() + row * value_elements_);
  }
  return value_bytes_ == 0 ||
         std::memcmp(
             static_cast<const std::byte*>(values.raw()) + static_cast<size_t>(i) * value_bytes_,
             static_cast<const std::byte*>(values_.raw()) + static_cast<size_t>(row) * value_bytes_,
             value_bytes_) == 0;
}

template <class Key>
bool LookupRows::all_there(const Tensor& keys, const Tensor& values) const {
  const uint64_t seed = secret();
  Tensor seen = Tensor::zeros(DType::kBool, Shape({size_}));
  int64_t distinct = 0;
  const std::span<const Key> given = keys.values<Key>();
  for (size_t i = 0; i < given.size(); ++i) {
    const int64_t row = row_of(given[i], tag_of(given[i], seed));
    if (row == kAbsent || !equal_value(values, static_cast<int64_t>(i), row)) return false;
    distinct += seen.data<bool>()[row] ? 0 : 1;
    seen.data<bool>()[row] = true;
  }
  return distinct == size_;
}

bool LookupRows::is_same(const Tensor& keys, const Tensor& values) const {
  return with_key_type(keys_.dtype(),
                       [&]<class Key>() -> bool { return all_there<Key>(keys, values); });
}

// --- Inserting ----------------------------------------------------------------------------------

template <class Key>
int64_t LookupRows::count_new(const Tensor& keys) const {
  const uint64_t seed = secret();
  const std::span<const Key> given = keys.values<Key>();
  return std::ranges::count_if(
      given, [&](const Key& key) { return row_of(key, tag_of(key, seed)) == kAbsent; });
}

// Room for so many rows. What it throws has changed nothing.
template <class Key>
void LookupRows::grow(int64_t rows) {
  if (rows <= keys_.num_elements()) return;
  if (rows > kMostRows) {
    throw resource_exhausted("a lookup table of ", rows, " keys is asked for; it may have ",
                             kMostRows);
  }
  const int64_t capacity = std::min(kMostRows, std::max({rows, size_ + size_ / 2, kFewestRows}));
  const auto slots = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(capacity) * 3 / 2));
  Tensor keys(keys_.dtype(), Shape({capacity}));
  Tensor values(values_.dtype(), value_shape_.inserted(0, capacity));
  slots_ = Tensor::zeros(DType::kUInt64, Shape({slots}));
  mask_ = static_cast<uint64_t>(slots) - 1;
  move_elements(keys_, size_, keys);
  move_elements(values_, size_ * value_elements_, values);
  keys_ = std::move(keys);
  values_ = std::move(values);
  const uint64_t seed = secret();
  for (int64_t row = 0; row < size_; ++row) {
    const uint32_t tag = tag_of(keys_.data<Key>()[row], seed);
    uint64_t at = tag & mask_;
    while (slots_.data<uint64_t>()[at] != 0) at = (at + 1) & mask_;
    slots_.data<uint64_t>()[at] = slot(tag, row);
  }
}

// The slot that has this key, or the free one for it.
template <class Key>
uint64_t& LookupRows::slot_of(const Key& key, uint32_t tag) {
  auto* const slots = slots_.data<uint64_t>();
  const Key* const keys = keys_.data<Key>();
  uint64_t at = tag & mask_;
  while (slots[at] != 0 && (tag_in(slots[at]) != tag || !(keys[row_in(slots[at])] == key)))
    at = (at + 1) & mask_;
  return slots[at];
}

template <class Key>
void LookupRows::put_all(const Tensor& keys, const Tensor& values, bool change) {
  const int64_t more = count_new<Key>(keys);
  grow<Key>(size_ + more);
  const uint64_t seed = secret();
  const std::span<const Key> given = keys.values<Key>();
  for (size_t i = 0; i < given.size(); ++i) {
    const uint32_t tag = tag_of(given[i], seed);
    uint64_t& place = slot_of(given[i], tag);
    const auto from = static_cast<int64_t>(i);
    if (place == 0) {
      keys_.data<Key>()[size_] = given[i];
      place = slot(tag, size_++);
    } else if (!change) {
      if (!equal_value(values, from, row_in(place)))
        throw_other_value(keys, values, from, row_in(place));
      continue;
    }
    copy_value(values, from, values_, row_in(place));
  }
}

void LookupRows::insert(const Tensor& keys, const Tensor& values) {
  if (keys.num_elements() == 0) return;
  with_key_type(keys_.dtype(), [&]<class Key>() { put_all<Key>(keys, values, true); });
}

void LookupRows::insert_new(const Tensor& keys, const Tensor& values) {
  if (keys.num_elements() == 0) return;
  with_key_type(keys_.dtype(), [&]<class Key>() { put_all<Key>(keys, values, false); });
}

void LookupRows::throw_other_value(const Tensor& keys, const Tensor& values, int64_t i,
                                   int64_t row) const {
  const auto shown = [](const Tensor& all, int64_t count, int64_t at) {
    const Tensor flat = all.reshaped(Shape({count, all.num_elements() / count}));
    return tensor_values(flat.rows(at, at + 1).reshaped(Shape({all.num_elements() / count})));
  };
  const int64_t given = keys.num_elements();
  throw failed_precondition("HashTable has different value for same key. Key ",
                            shown(keys, given, i), " has ", shown(values_, values_.dim(0), row),
                            " and trying to add value ", shown(values, given, i));
}

// --- Removing -----------------------------------------------------------------------------------

// Those behind it that would not be found beyond a free slot move up.
void LookupRows::vacate(uint64_t hole) {
  auto* const slots = slots_.data<uint64_t>();
  for (uint64_t at = (hole + 1) & mask_; slots[at] != 0; at = (at + 1) & mask_) {
    const uint64_t home = tag_in(slots[at]) & mask_;
    if (((at - home) & mask_) < ((at - hole) & mask_)) continue;
    slots[hole] = slots[at];
    hole = at;
  }
  slots[hole] = 0;
}

template <class Key>
void LookupRows::remove_one(const Key& key) {
  const uint64_t seed = secret();
  if (size_ == 0) return;
  uint64_t& place = slot_of(key, tag_of(key, seed));
  if (place == 0) return;
  Key* const keys = keys_.data<Key>();
  const int64_t row = row_in(place), last = size_ - 1;
  if (row != last) {
    uint64_t& moved = slot_of(keys[last], tag_of(keys[last], seed));
    moved = slot(tag_in(moved), row);
    std::swap(keys[row], keys[last]);
    copy_value(values_, last, values_, row);
  }
  vacate(static_cast<uint64_t>(&place - slots_.data<uint64_t>()));
  keys[last] = Key();
  if (values_.dtype() == DType::kString) {
    std::fill_n(values_.data<StringElement>() + last * value_elements_, value_elements_,
                StringElement());
  }
  --size_;
}

void LookupRows::remove(const Tensor& keys) {
  with_key_type(keys_.dtype(), [&]<class Key>() {
    for (const Key& key : keys.values<Key>()) remove_one(key);
  });
  if (size_ == 0) *this = LookupRows(keys_.dtype(), values_.dtype(), value_shape_);
}

}  // namespace treenail
