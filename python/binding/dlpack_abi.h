// SPDX-License-Identifier: Apache-2.0
// DLPack's binary interface, versions 0 and 1: how libraries hand tensors to each other. Source:
// https://dmlc.github.io/dlpack/latest/c_api.html and python_spec.html.
#pragma once

#include <cstdint>

namespace treenail::python::dlpack_abi {

struct Device {
  int32_t type;
  int32_t id;
};
inline constexpr int32_t kCpu = 1;
inline constexpr int32_t kCudaHost = 3;  // memory of the host that a GPU can reach
inline constexpr int32_t kRocmHost = 11;

struct DataType {
  uint8_t code;
  uint8_t bits;
  uint16_t lanes;
};
enum TypeCode : uint8_t {
  kInt = 0,
  kUInt = 1,
  kFloat = 2,
  kOpaque = 3,
  kBfloat = 4,
  kComplex = 5,
  kBool = 6
};

struct TensorView {
  void* data;
  Device device;
  int32_t ndim;
  DataType dtype;
  int64_t* shape;
  int64_t* strides;  // in elements; null: compact and row-major
  uint64_t byte_offset;
};

struct Managed {
  TensorView tensor;
  void* context;
  void (*deleter)(Managed* self);
};

struct Version {
  uint32_t major;
  uint32_t minor;
};

struct ManagedVersioned {
  Version version;
  void* context;
  void (*deleter)(ManagedVersioned* self);
  uint64_t flags;
  TensorView tensor;
};
inline constexpr uint64_t kReadOnly = 1;
inline constexpr uint64_t kIsCopied = 2;

// Names of capsules; who has taken what is in one gives it the other.
inline constexpr char kName[] = "dltensor";
inline constexpr char kUsedName[] = "used_dltensor";
inline constexpr char kVersionedName[] = "dltensor_versioned";
inline constexpr char kUsedVersionedName[] = "used_dltensor_versioned";

}  // namespace treenail::python::dlpack_abi
