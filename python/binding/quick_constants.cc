// SPDX-License-Identifier: Apache-2.0
#include "python/binding/quick_constants.h"

#include <algorithm>
#include <array>
#include <bit>
#include <limits>
#include <memory>
#include <utility>

#include "framework/base/hash.h"

namespace treenail::python {
namespace {

bool fits(int64_t value, DType dtype) {
  return dtype == DType::kInt64 ||
         (dtype == DType::kInt32 && value >= std::numeric_limits<int32_t>::min() &&
          value <= std::numeric_limits<int32_t>::max());
}

// Numbers of programs come again: a tensor is kept for each of the last ones.
class Scalars {
 public:
  // Null where the number does not become that dtype here.
  QuickConstant of(PyObject* number, DType dtype) {
    uint64_t bits = 0;
    if (PyFloat_CheckExact(number)) {
      if (dtype != DType::kFloat32 && dtype != DType::kFloat64) return nullptr;
      bits = std::bit_cast<uint64_t>(PyFloat_AS_DOUBLE(number));
    } else if (!integer_bits(number, dtype, bits)) {
      return nullptr;
    }
    Place& place = places_[(bits * 0x9e3779b97f4a7c15ULL ^ static_cast<uint64_t>(dtype)) >> 57];
    if (place.value == nullptr || place.bits != bits || place.value->tensor.dtype() != dtype)
      place = {bits, std::make_shared<const ImmediateTensor>(ImmediateTensor{made(bits, dtype)})};
    return place.value;
  }

 private:
  struct Place {
    uint64_t bits = 0;  // of a double, or an int64
    QuickConstant value;
  };

  static bool integer_bits(PyObject* number, DType dtype, uint64_t& bits) {
    if (!PyLong_CheckExact(number)) return false;
    int overflow = 0;
    const int64_t value = PyLong_AsLongLongAndOverflow(number, &overflow);
    if (overflow != 0) return false;
    if (dtype == DType::kFloat32 || dtype == DType::kFloat64) {
      // Larger ones may not be what the program wrote.
      constexpr int64_t kExact = int64_t{1} << 24;
      if (value < -kExact || value > kExact) return false;
      bits = std::bit_cast<uint64_t>(static_cast<double>(value));
      return true;
    }
    bits = std::bit_cast<uint64_t>(value);
    return fits(value, dtype);
  }

  static Tensor made(uint64_t bits, DType dtype) {
    switch (dtype) {
      case DType::kFloat32:
        return Tensor::scalar(static_cast<float>(std::bit_cast<double>(bits)));
      case DType::kFloat64:
        return Tensor::scalar(std::bit_cast<double>(bits));
      case DType::kInt32:
        return Tensor::scalar(static_cast<int32_t>(std::bit_cast<int64_t>(bits)));
      default:
        return Tensor::scalar(std::bit_cast<int64_t>(bits));
    }
  }

  std::array<Place, 128> places_;
};

class Vectors {
 public:
  static constexpr size_t kMost = 8;

  QuickConstant of(std::span<const int64_t> values, DType dtype) {
    const uint64_t hash =
        hash_bytes(values.data(), values.size_bytes(), static_cast<uint64_t>(dtype));
    Place& place = places_[hash >> 57];
    if (!place.is(values, dtype)) place.take(values, dtype);
    return place.value;
  }

 private:
  struct Place {
    size_t size = 0;
    std::array<int64_t, kMost> elements;
    QuickConstant value;

    bool is(std::span<const int64_t> values, DType dtype) const {
      return value != nullptr && value->tensor.dtype() == dtype && size == values.size() &&
             std::equal(values.begin(), values.end(), elements.begin());
    }
    void take(std::span<const int64_t> values, DType dtype) {
      size = values.size();
      std::ranges::copy(values, elements.begin());
      Tensor tensor(dtype, Shape({static_cast<int64_t>(size)}));
      for (size_t i = 0; i < size; ++i) {
        if (dtype == DType::kInt64) {
          tensor.data<int64_t>()[i] = values[i];
        } else {
          tensor.data<int32_t>()[i] = static_cast<int32_t>(values[i]);
        }
      }
      value = std::make_shared<const ImmediateTensor>(ImmediateTensor{std::move(tensor)});
    }
  };
  std::array<Place, 128> places_;
};

Vectors& vectors() {
  static auto* const instance = new Vectors();
  return *instance;
}

}  // namespace

QuickConstant quick_number(PyObject* number, DType dtype) {
  static auto* const scalars = new Scalars();
  return scalars->of(number, dtype);
}

QuickConstant quick_integers(PyObject* sequence, DType dtype) {
  if (!PyList_CheckExact(sequence) && !PyTuple_CheckExact(sequence)) return nullptr;
  const auto size = static_cast<size_t>(PySequence_Fast_GET_SIZE(sequence));
  if (size > Vectors::kMost) return nullptr;
  std::array<int64_t, Vectors::kMost> values;
  for (size_t i = 0; i < size; ++i) {
    PyObject* const item = PySequence_Fast_GET_ITEM(sequence, static_cast<Py_ssize_t>(i));
    int overflow = 0;
    if (!PyLong_CheckExact(item)) return nullptr;
    values[i] = PyLong_AsLongLongAndOverflow(item, &overflow);
    if (overflow != 0 || !fits(values[i], dtype)) return nullptr;
  }
  return vectors().of({values.data(), size}, dtype);
}

QuickConstant quick_integers(std::span<const int32_t> values) {
  if (values.size() > Vectors::kMost) return nullptr;
  std::array<int64_t, Vectors::kMost> wide;
  std::ranges::copy(values, wide.begin());
  return vectors().of({wide.data(), values.size()}, DType::kInt32);
}

}  // namespace treenail::python
