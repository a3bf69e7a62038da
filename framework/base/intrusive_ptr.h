// SPDX-License-Identifier: Apache-2.0
// Counted objects and the one-word pointer that owns a share of one. One word matters: string,
// resource and variant elements of a tensor are such pointers, moved about by element size.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <type_traits>
#include <utility>

namespace treenail {

class RefCounted {
 public:
  RefCounted() = default;
  RefCounted(const RefCounted&) = delete;
  RefCounted& operator=(const RefCounted&) = delete;

  void ref() const { count_.fetch_add(1, std::memory_order_relaxed); }
  void unref() const {
    // The only share needs no atomic subtraction, which costs ten times the look.
    if (unique() || count_.fetch_sub(1, std::memory_order_acq_rel) == 1) delete this;
  }
  // True when the caller's share is the only one: nobody else can take another meanwhile.
  bool unique() const { return count_.load(std::memory_order_acquire) == 1; }

 protected:
  virtual ~RefCounted() = default;

 private:
  mutable std::atomic<int64_t> count_{0};
};

template <class T>
class IntrusivePtr {
 public:
  IntrusivePtr() = default;
  IntrusivePtr(std::nullptr_t) {}  // NOLINT
  explicit IntrusivePtr(T* object) : object_(object) {
    if (object_) object_->ref();
  }
  IntrusivePtr(const IntrusivePtr& other) : IntrusivePtr(other.object_) {}
  IntrusivePtr(IntrusivePtr&& other) noexcept : object_(std::exchange(other.object_, nullptr)) {}
  template <class U>
  requires std::is_convertible_v<U*, T*> IntrusivePtr(const IntrusivePtr<U>& other)
      : IntrusivePtr(other.get()) {}  // NOLINT
  IntrusivePtr& operator=(IntrusivePtr other) noexcept {
    std::swap(object_, other.object_);
    return *this;
  }
  ~IntrusivePtr() {
    if (object_) object_->unref();
  }

  T* get() const { return object_; }
  T* operator->() const { return object_; }
  T& operator*() const { return *object_; }
  explicit operator bool() const { return object_ != nullptr; }
  void reset() { IntrusivePtr().swap(*this); }
  void swap(IntrusivePtr& other) noexcept { std::swap(object_, other.object_); }
  // Gives up the share without releasing it; adopt() takes it back.
  T* release() { return std::exchange(object_, nullptr); }
  static IntrusivePtr adopt(T* object) {
    IntrusivePtr p;
    p.object_ = object;
    return p;
  }
  friend bool operator==(const IntrusivePtr& a, const IntrusivePtr& b) {
    return a.object_ == b.object_;
  }

 private:
  T* object_ = nullptr;
};

template <class T, class... Args>
IntrusivePtr<T> make_counted(Args&&... args) {
  return IntrusivePtr<T>(new T(std::forward<Args>(args)...));
}

}  // namespace treenail
