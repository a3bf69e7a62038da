// SPDX-License-Identifier: Apache-2.0
// Building message text without <iostream>: concat("a is ", shape, ", needed ", 3).
// A type joins in by offering `std::string to_text(const T&)` in its own namespace.
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>

namespace treenail {

// Shortest decimal form that reads back as the same value; "nan", "inf" and "-inf" as Python spells
// them.
std::string number_text(double value);
std::string number_text(float value);

// One part of a text, by reference. What turns it into characters is compiled once, in text.cc: a
// sentence costs its callers, of which there are thousands, no more than an array of these.
class TextPart {
 public:
  // NOLINTBEGIN(google-explicit-constructor): conversions are meant
  TextPart(const char* text) : kind_(Kind::kTerminated), data_(text) {}
  TextPart(std::string_view text) : kind_(Kind::kText), data_(text.data()), size_(text.size()) {}
  TextPart(const std::string& text) : kind_(Kind::kText), data_(text.data()), size_(text.size()) {}
  TextPart(char value) : kind_(Kind::kCharacter), signed_(value) {}
  TextPart(bool value) : kind_(Kind::kBool), signed_(value ? 1 : 0) {}
  TextPart(float value) : kind_(Kind::kFloat), double_(static_cast<double>(value)) {}
  TextPart(double value) : kind_(Kind::kDouble), double_(value) {}
  template <std::signed_integral T>
  TextPart(T value) : kind_(Kind::kSigned), signed_(value) {}
  template <std::unsigned_integral T>
  TextPart(T value) : kind_(Kind::kUnsigned), unsigned_(value) {}
  // Characters are never an object: a type that is made of them would change what a char* says.
  template <class T>
  requires(!std::is_arithmetic_v<T> && !std::is_convertible_v<const T&, std::string_view>) &&
      requires(const T& value) {
    { to_text(value) } -> std::convertible_to<std::string>;
  }
  TextPart(const T& value) : kind_(Kind::kObject), data_(&value), object_text_(text_of<T>) {}
  // NOLINTEND(google-explicit-constructor)

  void append_to(std::string& out) const;

 private:
  enum class Kind : uint8_t {
    kTerminated,
    kText,
    kCharacter,
    kBool,
    kFloat,
    kDouble,
    kSigned,
    kUnsigned,
    kObject,
  };
  template <class T>
  static std::string text_of(const void* value) {
    return to_text(*static_cast<const T*>(value));
  }

  Kind kind_;
  union {
    const void* data_;
    int64_t signed_;
    uint64_t unsigned_;
    double double_;
  };
  union {
    size_t size_ = 0;
    std::string (*object_text_)(const void*);
  };
};

inline void append_text(std::string& out, const TextPart& part) { part.append_to(out); }

std::string join_text(std::initializer_list<TextPart> parts);

template <class... Parts>
std::string concat(const Parts&... parts) {
  return join_text({TextPart(parts)...});
}

}  // namespace treenail
