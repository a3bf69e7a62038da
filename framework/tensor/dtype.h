// SPDX-License-Identifier: Apache-2.0
// Element types. The numbers are TensorFlow's and never change: they stand in files, on the wire
// and in the C ABI.
#pragma once

#include <complex>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "framework/tensor/half.h"

namespace treenail {

enum class DType : uint8_t {
  kInvalid = 0,
  kFloat32 = 1,
  kFloat64 = 2,
  kInt32 = 3,
  kUInt8 = 4,
  kInt16 = 5,
  kInt8 = 6,
  kString = 7,
  kComplex64 = 8,
  kInt64 = 9,
  kBool = 10,
  kBFloat16 = 14,
  kUInt16 = 17,
  kComplex128 = 18,
  kFloat16 = 19,
  kResource = 20,
  kVariant = 21,
  kUInt32 = 22,
  kUInt64 = 23,
};

inline constexpr int kNumDTypes = 24;  // one past the largest number

class StringElement;    // string_element.h
class ResourceElement;  // resource.h
class VariantElement;   // variant.h

// Bytes of one element; string, resource and variant are one pointer. 0 for kInvalid.
size_t dtype_size(DType dtype);
// "float32", "int64", "bfloat16", ...: the name in Python, files and messages.
std::string_view dtype_name(DType dtype);
// Accepts dtype_name's names and the op declaration grammar's ("float", "double", "half"). Error:
// InvalidArgument.
DType dtype_from_name(std::string_view name);
bool dtype_is_valid(int number);
std::string to_text(DType dtype);

constexpr bool is_floating(DType t) {
  return t == DType::kFloat32 || t == DType::kFloat64 || t == DType::kFloat16 ||
         t == DType::kBFloat16;
}
constexpr bool is_complex(DType t) { return t == DType::kComplex64 || t == DType::kComplex128; }
constexpr bool is_signed_integer(DType t) {
  return t == DType::kInt8 || t == DType::kInt16 || t == DType::kInt32 || t == DType::kInt64;
}
constexpr bool is_unsigned_integer(DType t) {
  return t == DType::kUInt8 || t == DType::kUInt16 || t == DType::kUInt32 || t == DType::kUInt64;
}
constexpr bool is_integer(DType t) { return is_signed_integer(t) || is_unsigned_integer(t); }
// Elements are plain bytes (no counted pointers).
constexpr bool is_plain(DType t) {
  return t != DType::kString && t != DType::kResource && t != DType::kVariant &&
         t != DType::kInvalid;
}

template <class T>
struct DTypeOf;
#define TREENAIL_DTYPE(type, number)              \
  template <>                                     \
  struct DTypeOf<type> {                          \
    static constexpr DType value = DType::number; \
  };
TREENAIL_DTYPE(float, kFloat32)
TREENAIL_DTYPE(double, kFloat64)
TREENAIL_DTYPE(int32_t, kInt32)
TREENAIL_DTYPE(uint8_t, kUInt8)
TREENAIL_DTYPE(int16_t, kInt16)
TREENAIL_DTYPE(int8_t, kInt8)
TREENAIL_DTYPE(StringElement, kString)
TREENAIL_DTYPE(std::complex<float>, kComplex64)
TREENAIL_DTYPE(int64_t, kInt64)
TREENAIL_DTYPE(bool, kBool)
TREENAIL_DTYPE(BFloat16, kBFloat16)
TREENAIL_DTYPE(uint16_t, kUInt16)
TREENAIL_DTYPE(std::complex<double>, kComplex128)
TREENAIL_DTYPE(Float16, kFloat16)
TREENAIL_DTYPE(ResourceElement, kResource)
TREENAIL_DTYPE(VariantElement, kVariant)
TREENAIL_DTYPE(uint32_t, kUInt32)
TREENAIL_DTYPE(uint64_t, kUInt64)
#undef TREENAIL_DTYPE

template <class T>
inline constexpr DType dtype_of = DTypeOf<T>::value;

}  // namespace treenail
