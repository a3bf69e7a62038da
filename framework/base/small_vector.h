// SPDX-License-Identifier: Apache-2.0
// A vector of plain elements whose first kInline lie within it: extents, strides and axes, of which
// there are few as a rule and may be many.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

namespace treenail {

template <class T, uint32_t kInline>
class SmallVector {
  static_assert(std::is_trivially_copyable_v<T> && std::is_trivially_destructible_v<T>);

 public:
  SmallVector() {}  // NOLINT(modernize-use-equals-default): const ones need no initializer
  explicit SmallVector(size_t size) { resize(size); }  // zeros
  explicit SmallVector(std::span<const T> values) { assign(values); }
  SmallVector(const SmallVector& other) { assign(other); }
  SmallVector(SmallVector&& other) noexcept { take(other); }
  SmallVector& operator=(const SmallVector& other) {
    if (this != &other) assign(other);
    return *this;
  }
  SmallVector& operator=(SmallVector&& other) noexcept {
    if (this != &other) {
      release();
      take(other);
    }
    return *this;
  }
  ~SmallVector() { release(); }

  size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  T* data() { return on_heap() ? heap_ : inline_; }
  const T* data() const { return on_heap() ? heap_ : inline_; }
  T& operator[](size_t i) { return data()[i]; }
  const T& operator[](size_t i) const { return data()[i]; }
  T* begin() { return data(); }
  T* end() { return data() + size_; }
  const T* begin() const { return data(); }
  const T* end() const { return data() + size_; }
  T& back() { return data()[size_ - 1]; }
  const T& back() const { return data()[size_ - 1]; }

  void push_back(const T& value) {
    const T kept = value;  // it may be one of ours
    if (size_ == capacity_) grow(2 * size_t{capacity_});
    data()[size_++] = kept;
  }
  // New elements are zeros.
  void resize(size_t size) {
    if (size > capacity_) grow(size);
    if (size > size_) std::fill(data() + size_, data() + size, T{});
    size_ = static_cast<uint32_t>(size);
  }

  void assign(std::span<const T> values) {
    if (values.size() > capacity_) grow(values.size());
    size_ = static_cast<uint32_t>(values.size());
    copy(values.data(), size_, data());
  }

  friend bool operator==(const SmallVector& a, const SmallVector& b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  }

 private:
  bool on_heap() const { return capacity_ > kInline; }

  static void copy(const T* from, size_t count, T* to) {
    for (size_t i = 0; i < count; ++i) to[i] = from[i];
  }
  void assign(const SmallVector& other) {
    if (on_heap() || other.on_heap()) return assign(std::span<const T>(other.data(), other.size()));
    copy(other.inline_, kInline, inline_);
    size_ = other.size_;
  }
  // Leaves `other` empty; nothing is held here.
  void take(SmallVector& other) {
    if (other.on_heap()) {
      heap_ = other.heap_;
    } else {
      copy(other.inline_, kInline, inline_);
    }
    size_ = std::exchange(other.size_, 0);
    capacity_ = std::exchange(other.capacity_, kInline);
  }
  [[gnu::noinline]] void grow(size_t capacity) {
    T* larger = new T[capacity];
    copy(data(), size_, larger);
    release();
    heap_ = larger;
    capacity_ = static_cast<uint32_t>(capacity);
  }
  void release() {
    if (on_heap()) delete[] heap_;
    capacity_ = kInline;
  }

  union {
    T inline_[kInline] = {};  // zeros, for all of them are copied
    T* heap_;
  };
  uint32_t size_ = 0;
  uint32_t capacity_ = kInline;
};

}  // namespace treenail
