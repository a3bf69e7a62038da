// SPDX-License-Identifier: Apache-2.0
// The tensors that checkpoint tests save: every dtype, with values that need every bit; names that
// collide.
#pragma once

#include <algorithm>
#include <complex>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor.h"

namespace treenail {

using NamedTensors = std::vector<std::pair<std::string, Tensor>>;

template <class T>
Tensor limits_of() {
  return Tensor::vector<T>(
      {std::numeric_limits<T>::lowest(), T(0), T(1), std::numeric_limits<T>::max()});
}

inline Tensor half_bits(DType dtype, std::initializer_list<uint16_t> bits) {
  Tensor tensor(dtype, Shape({static_cast<int64_t>(bits.size())}));
  std::copy(bits.begin(), bits.end(), static_cast<uint16_t*>(tensor.raw()));
  return tensor;
}

inline NamedTensors sample_tensors() {
  using C64 = std::complex<float>;
  using C128 = std::complex<double>;
  Tensor kernel(DType::kFloat32, Shape({3, 4}));
  for (int i = 0; i < 12; ++i) kernel.data<float>()[i] = static_cast<float>(i) / 3;
  return {
      {"float32", limits_of<float>()},
      {"float64", Tensor::vector<double>({0.1, -1e308, 5e-324})},
      {"float16", half_bits(DType::kFloat16, {0x0001, 0x3c00, 0x7bff, 0xfc00, 0x8000})},
      {"bfloat16", half_bits(DType::kBFloat16, {0x3f80, 0xc000, 0x0001, 0x7f80})},
      {"int8", limits_of<int8_t>()},
      {"int16", limits_of<int16_t>()},
      {"int32", limits_of<int32_t>()},
      {"int64", limits_of<int64_t>()},
      {"uint8", limits_of<uint8_t>()},
      {"uint16", limits_of<uint16_t>()},
      {"uint32", limits_of<uint32_t>()},
      {"uint64", limits_of<uint64_t>()},
      {"bool", Tensor::vector<bool>({true, false, true})},
      {"complex64", Tensor::vector<C64>({{1.5f, -2}, {0, 1e30f}})},
      {"complex128", Tensor::vector<C128>({{0.1, -0.2}})},
      {"text", Tensor::vector<StringElement>(
                   {StringElement("gr\xc3\xbc\xc3\x9f"), StringElement(), StringElement("b")})},
      {"bytes", Tensor::vector<StringElement>(
                    {StringElement({"a\0b", 3}), StringElement("\xff\xfe"), StringElement()})},
      {"scalar", Tensor::scalar<float>(2.5f)},
      {"scalar_text", Tensor::scalar(StringElement("one"))},
      {"empty", Tensor(DType::kFloat32, Shape({0, 5}))},
      {"empty_text", Tensor(DType::kString, Shape({2, 0}))},
      // A variable and its slots: "w" is both a dataset and a group.
      {"layer/w", kernel},
      {"layer/w/Momentum", kernel.deep_copy()},
      {"layer/w/Momentum/more", Tensor::scalar<int32_t>(1)},
      // Names that are no HDF5 paths.
      {"/leading", Tensor::scalar<int32_t>(2)},
      {"trailing/", Tensor::scalar<int32_t>(3)},
      {"a//b", Tensor::scalar<int32_t>(4)},
      {"a/./b", Tensor::scalar<int32_t>(5)},
      {"a/+/b", Tensor::scalar<int32_t>(6)},
      {".", Tensor::scalar<int32_t>(7)},
      {"sp ace:0 \xc3\xa9", Tensor::scalar<int32_t>(8)},
  };
}

// Bit for bit.
inline bool same_tensor(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() == DType::kString) {
    for (int64_t i = 0; i < a.num_elements(); ++i) {
      if (!(a.data<StringElement>()[i] == b.data<StringElement>()[i])) return false;
    }
    return true;
  }
  return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

}  // namespace treenail
