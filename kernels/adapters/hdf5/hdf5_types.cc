// SPDX-License-Identifier: Apache-2.0
// dtypes as HDF5 types, spelled as h5py spells them: float16 by its bit fields, bool as an
// enumeration of FALSE and TRUE, complex as a compound of r and i. bfloat16, which HDF5 has no name
// for, is uint16 with attribute treenail_dtype.
#include <algorithm>
#include <cstdint>
#include <string>

#include "framework/tensor/dtype.h"
#include "kernels/adapters/hdf5/hdf5_support.h"

namespace treenail::hdf5 {
namespace {

constexpr const char* kDoing = "make a type";

TypeId copy_of(hid_t type) { return checked<TypeId>(H5Tcopy(type), Code::kInternal, kDoing); }

TypeId half_of(hid_t single) {
  TypeId type = copy_of(single);
  check(H5Tset_fields(type.get(), 15, 10, 5, 0, 10), Code::kInternal, kDoing);
  check(H5Tset_size(type.get(), 2), Code::kInternal, kDoing);
  check(H5Tset_ebias(type.get(), 15), Code::kInternal, kDoing);
  return type;
}

TypeId bool_of(hid_t byte) {
  TypeId type = checked<TypeId>(H5Tenum_create(byte), Code::kInternal, kDoing);
  // Values are given in the base type, one byte.
  int8_t value = 0;
  check(H5Tenum_insert(type.get(), "FALSE", &value), Code::kInternal, kDoing);
  value = 1;
  check(H5Tenum_insert(type.get(), "TRUE", &value), Code::kInternal, kDoing);
  return type;
}

TypeId complex_of(hid_t part) {
  const size_t size = H5Tget_size(part);
  TypeId type = checked<TypeId>(H5Tcreate(H5T_COMPOUND, 2 * size), Code::kInternal, kDoing);
  check(H5Tinsert(type.get(), "r", 0, part), Code::kInternal, kDoing);
  check(H5Tinsert(type.get(), "i", size, part), Code::kInternal, kDoing);
  return type;
}

[[noreturn]] void no_type(DType dtype) {
  throw Failure{Code::kUnimplemented,
                "dtype number " + std::to_string(static_cast<int>(dtype)) + " has no HDF5 type"};
}

// The member of a compound is a float of `size` bytes.
bool is_part(hid_t compound, unsigned member, const char* name, size_t size) {
  char* found = H5Tget_member_name(compound, member);
  const bool named = found != nullptr && std::string(found) == name;
  if (found != nullptr) H5free_memory(found);
  const TypeId type(H5Tget_member_type(compound, member));
  return named && type.valid() && H5Tget_class(type.get()) == H5T_FLOAT &&
         H5Tget_size(type.get()) == size;
}

DType integer_dtype(hid_t type, const std::string& declared) {
  const size_t size = H5Tget_size(type);
  if (H5Tget_sign(type) == H5T_SGN_NONE) {
    if (size == 2 && declared == "bfloat16") return DType::kBFloat16;
    return size == 1   ? DType::kUInt8
           : size == 2 ? DType::kUInt16
           : size == 4 ? DType::kUInt32
           : size == 8 ? DType::kUInt64
                       : DType::kInvalid;
  }
  return size == 1   ? DType::kInt8
         : size == 2 ? DType::kInt16
         : size == 4 ? DType::kInt32
         : size == 8 ? DType::kInt64
                     : DType::kInvalid;
}

DType float_dtype(hid_t type) {
  size_t sign = 0, exponent = 0, exponent_size = 0, mantissa = 0, mantissa_size = 0;
  if (H5Tget_fields(type, &sign, &exponent, &exponent_size, &mantissa, &mantissa_size) < 0) {
    return DType::kInvalid;
  }
  const size_t size = H5Tget_size(type);
  if (size == 2 && exponent_size == 5 && mantissa_size == 10) return DType::kFloat16;
  if (size == 4 && exponent_size == 8 && mantissa_size == 23) return DType::kFloat32;
  if (size == 8 && exponent_size == 11 && mantissa_size == 52) return DType::kFloat64;
  return DType::kInvalid;
}

DType enum_dtype(hid_t type) {
  if (H5Tget_size(type) != 1 || H5Tget_nmembers(type) != 2) return DType::kInvalid;
  for (unsigned member = 0; member < 2; ++member) {
    unsigned char value = 2;
    if (H5Tget_member_value(type, member, &value) < 0 || value > 1) return DType::kInvalid;
    char* found = H5Tget_member_name(type, member);
    const std::string name = found != nullptr ? found : "";
    if (found != nullptr) H5free_memory(found);
    if (name != (value == 0 ? "FALSE" : "TRUE")) return DType::kInvalid;
  }
  return DType::kBool;
}

DType compound_dtype(hid_t type) {
  const size_t size = H5Tget_size(type);
  if ((size != 8 && size != 16) || H5Tget_nmembers(type) != 2) return DType::kInvalid;
  if (!is_part(type, 0, "r", size / 2) || !is_part(type, 1, "i", size / 2)) return DType::kInvalid;
  return size == 8 ? DType::kComplex64 : DType::kComplex128;
}

DType list_dtype(hid_t type, const std::string& declared) {
  const TypeId element(H5Tget_super(type));
  const bool bytes = element.valid() && H5Tget_class(element.get()) == H5T_INTEGER &&
                     H5Tget_size(element.get()) == 1;
  return bytes && declared == "string" ? DType::kString : DType::kInvalid;
}

}  // namespace

TypeId file_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return copy_of(H5T_IEEE_F32LE);
    case DType::kFloat64:
      return copy_of(H5T_IEEE_F64LE);
    case DType::kInt8:
      return copy_of(H5T_STD_I8LE);
    case DType::kInt16:
      return copy_of(H5T_STD_I16LE);
    case DType::kInt32:
      return copy_of(H5T_STD_I32LE);
    case DType::kInt64:
      return copy_of(H5T_STD_I64LE);
    case DType::kUInt8:
      return copy_of(H5T_STD_U8LE);
    case DType::kUInt16:
    case DType::kBFloat16:
      return copy_of(H5T_STD_U16LE);
    case DType::kUInt32:
      return copy_of(H5T_STD_U32LE);
    case DType::kUInt64:
      return copy_of(H5T_STD_U64LE);
    case DType::kFloat16:
      return half_of(H5T_IEEE_F32LE);
    case DType::kBool:
      return bool_of(H5T_STD_I8LE);
    case DType::kComplex64:
      return complex_of(H5T_IEEE_F32LE);
    case DType::kComplex128:
      return complex_of(H5T_IEEE_F64LE);
    default:
      no_type(dtype);
  }
}

TypeId memory_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return copy_of(H5T_NATIVE_FLOAT);
    case DType::kFloat64:
      return copy_of(H5T_NATIVE_DOUBLE);
    case DType::kInt8:
      return copy_of(H5T_NATIVE_INT8);
    case DType::kInt16:
      return copy_of(H5T_NATIVE_INT16);
    case DType::kInt32:
      return copy_of(H5T_NATIVE_INT32);
    case DType::kInt64:
      return copy_of(H5T_NATIVE_INT64);
    case DType::kUInt8:
      return copy_of(H5T_NATIVE_UINT8);
    case DType::kUInt16:
    case DType::kBFloat16:
      return copy_of(H5T_NATIVE_UINT16);
    case DType::kUInt32:
      return copy_of(H5T_NATIVE_UINT32);
    case DType::kUInt64:
      return copy_of(H5T_NATIVE_UINT64);
    case DType::kFloat16:
      return half_of(H5T_NATIVE_FLOAT);
    case DType::kBool:
      return bool_of(H5T_NATIVE_INT8);
    case DType::kComplex64:
      return complex_of(H5T_NATIVE_FLOAT);
    case DType::kComplex128:
      return complex_of(H5T_NATIVE_DOUBLE);
    default:
      no_type(dtype);
  }
}

TypeId text_type() {
  TypeId type = copy_of(H5T_C_S1);
  check(H5Tset_size(type.get(), H5T_VARIABLE), Code::kInternal, kDoing);
  check(H5Tset_cset(type.get(), H5T_CSET_UTF8), Code::kInternal, kDoing);
  return type;
}

TypeId bytes_type() {
  return checked<TypeId>(H5Tvlen_create(H5T_STD_U8LE), Code::kInternal, kDoing);
}

DType dtype_of_type(hid_t type, const std::string& declared, std::string* text) {
  const H5T_class_t kind = H5Tget_class(type);
  DType dtype = DType::kInvalid;
  const char* name = "unknown";
  switch (kind) {
    case H5T_INTEGER:
      dtype = integer_dtype(type, declared);
      name = "integer";
      break;
    case H5T_FLOAT:
      dtype = float_dtype(type);
      name = "float";
      break;
    case H5T_ENUM:
      dtype = enum_dtype(type);
      name = "enumeration";
      break;
    case H5T_COMPOUND:
      dtype = compound_dtype(type);
      name = "compound";
      break;
    case H5T_STRING:
      dtype = DType::kString;
      break;
    case H5T_VLEN:
      dtype = list_dtype(type, declared);
      name = "variable-length list";
      break;
    case H5T_BITFIELD:
      name = "bit field";
      break;
    case H5T_OPAQUE:
      name = "opaque";
      break;
    case H5T_REFERENCE:
      name = "reference";
      break;
    case H5T_ARRAY:
      name = "array";
      break;
    case H5T_TIME:
      name = "time";
      break;
    default:
      break;
  }
  if (dtype == DType::kInvalid) {
    *text = std::string(name) + " of " + std::to_string(H5Tget_size(type)) + " bytes";
  }
  return dtype;
}

}  // namespace treenail::hdf5
