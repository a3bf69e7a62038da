// SPDX-License-Identifier: Apache-2.0
// Numbers, texts and element bytes as they stand in graph files: little-endian, lengths of 64 bits.
// What the sections of a file are: serialize_write.cc and serialize_read.cc.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <type_traits>

#include "framework/base/error.h"

namespace treenail::wire {

inline constexpr unsigned char kMagic[8] = {0x89, 'T', 'N', 'G', '\r', '\n', 0x1a, '\n'};

// Section tags, as four letters in file order. A small first letter: a reader that does not know
// the section skips it.
constexpr uint32_t tag(const char (&letters)[5]) {
  uint32_t value = 0;
  for (int i = 3; i >= 0; --i) value = value << 8 | static_cast<unsigned char>(letters[i]);
  return value;
}
inline constexpr uint32_t kMeta = tag("META");
inline constexpr uint32_t kTensor = tag("TENS");
inline constexpr uint32_t kNodes = tag("NODE");
inline constexpr uint32_t kColocated = tag("COLO");
inline constexpr uint32_t kFunction = tag("FUNC");
inline constexpr uint32_t kEndOfFunction = tag("FEND");
inline constexpr uint32_t kEnd = tag("ENDG");

inline constexpr uint8_t kUnknownRank = 0xff;
inline constexpr int kMaxFunctionDepth = 16;

class Writer {
 public:
  template <class T>
  requires std::is_integral_v<T>
  void number(T value) {
    auto bits = static_cast<uint64_t>(static_cast<std::make_unsigned_t<T>>(value));
    for (size_t i = 0; i < sizeof(T); ++i, bits >>= 8)
      bytes_.push_back(static_cast<char>(bits & 0xff));
  }
  void real(double value) { number(std::bit_cast<uint64_t>(value)); }
  void text(std::string_view value) {
    number(static_cast<uint64_t>(value.size()));
    bytes_.append(value);
  }
  std::string& bytes() { return bytes_; }

 private:
  std::string bytes_;
};

class Reader {
 public:
  explicit Reader(std::string_view bytes) : bytes_(bytes) {}

  template <class T>
  requires std::is_integral_v<T> T number() {
    need(sizeof(T));
    uint64_t bits = 0;
    for (size_t i = sizeof(T); i-- > 0;)
      bits = bits << 8 | static_cast<unsigned char>(bytes_[at_ + i]);
    at_ += sizeof(T);
    return static_cast<T>(static_cast<std::make_unsigned_t<T>>(bits));
  }
  double real() { return std::bit_cast<double>(number<uint64_t>()); }
  bool boolean() {
    const auto value = number<uint8_t>();
    if (value > 1) throw data_loss("a truth value is ", static_cast<int>(value));
    return value == 1;
  }
  std::string_view text() {
    const auto size = number<uint64_t>();
    need(size);
    const std::string_view value = bytes_.substr(at_, size);
    at_ += size;
    return value;
  }
  // A count of things that take at least `least` bytes each: never more than the rest can hold.
  size_t count(size_t least) {
    const auto value = number<uint64_t>();
    if (value > left() / least) {
      throw data_loss("a list of ", value, " entries does not fit in the ", left(),
                      " bytes left of its section");
    }
    return static_cast<size_t>(value);
  }
  size_t left() const { return bytes_.size() - at_; }
  void expect_end() const {
    if (left() != 0) throw data_loss(left(), " bytes are left over at the end of a section");
  }

 private:
  void need(uint64_t bytes) const {
    if (bytes > left())
      throw data_loss("a section ends within a value (", bytes, " bytes needed, ", left(),
                      " left)");
  }
  std::string_view bytes_;
  size_t at_ = 0;
};

}  // namespace treenail::wire
