// SPDX-License-Identifier: Apache-2.0
// Element types of tensors and the C++ types of their elements.
#ifndef TREENAIL_OP_TYPES_HPP_
#define TREENAIL_OP_TYPES_HPP_

#include <complex>
#include <cstdint>
#include <ostream>
#include <type_traits>

#include "treenail/op/status.hpp"

namespace tn {
namespace op {

enum DataType : tn_dtype {
  DT_INVALID = 0,
  DT_FLOAT = TN_FLOAT32,
  DT_DOUBLE = TN_FLOAT64,
  DT_INT32 = TN_INT32,
  DT_UINT8 = TN_UINT8,
  DT_INT16 = TN_INT16,
  DT_INT8 = TN_INT8,
  DT_STRING = TN_STRING,
  DT_COMPLEX64 = TN_COMPLEX64,
  DT_INT64 = TN_INT64,
  DT_BOOL = TN_BOOL,
  DT_BFLOAT16 = TN_BFLOAT16,
  DT_UINT16 = TN_UINT16,
  DT_COMPLEX128 = TN_COMPLEX128,
  DT_HALF = TN_FLOAT16,
  DT_UINT32 = TN_UINT32,
  DT_UINT64 = TN_UINT64
};

inline const char* DataTypeString(DataType dtype) { return host()->dtype_name(dtype); }
inline std::ostream& operator<<(std::ostream& out, DataType dtype) {
  return out << DataTypeString(dtype);
}

// The bits of 16-bit floating-point numbers, for kernels that know how to compute with them.
struct half {
  uint16_t bits;
};
struct bfloat16 {
  uint16_t bits;
};

// DataTypeToEnum<float>::value is DT_FLOAT.
template <class T>
struct DataTypeToEnum {
  static_assert(!sizeof(T), "no dtype has elements of this type");
};
#define TREENAIL_OP_TYPE_(type, number)         \
  template <>                                   \
  struct DataTypeToEnum<type> {                 \
    static constexpr DataType value = (number); \
  };                                            \
  static_assert(sizeof(type) <= 16, "")
TREENAIL_OP_TYPE_(float, DT_FLOAT);
TREENAIL_OP_TYPE_(double, DT_DOUBLE);
TREENAIL_OP_TYPE_(int8_t, DT_INT8);
TREENAIL_OP_TYPE_(int16_t, DT_INT16);
TREENAIL_OP_TYPE_(int32_t, DT_INT32);
TREENAIL_OP_TYPE_(int64_t, DT_INT64);
TREENAIL_OP_TYPE_(uint8_t, DT_UINT8);
TREENAIL_OP_TYPE_(uint16_t, DT_UINT16);
TREENAIL_OP_TYPE_(uint32_t, DT_UINT32);
TREENAIL_OP_TYPE_(uint64_t, DT_UINT64);
TREENAIL_OP_TYPE_(bool, DT_BOOL);
TREENAIL_OP_TYPE_(std::complex<float>, DT_COMPLEX64);
TREENAIL_OP_TYPE_(std::complex<double>, DT_COMPLEX128);
TREENAIL_OP_TYPE_(half, DT_HALF);
TREENAIL_OP_TYPE_(bfloat16, DT_BFLOAT16);
#undef TREENAIL_OP_TYPE_

}  // namespace op
}  // namespace tn

#endif  // TREENAIL_OP_TYPES_HPP_
