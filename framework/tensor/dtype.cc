// SPDX-License-Identifier: Apache-2.0
// Names and sizes of element types: one table.
#include "framework/tensor/dtype.h"

#include <array>
#include <string>
#include <string_view>

#include "framework/base/error.h"

namespace treenail {
namespace {

struct Entry {
  std::string_view name;   // empty: no such number
  std::string_view alias;  // in op declarations, where it differs
  size_t size = 0;
};

constexpr std::array<Entry, kNumDTypes> make_table() {
  std::array<Entry, kNumDTypes> table{};
  const auto set = [&table](DType dtype, std::string_view name, size_t size,
                            std::string_view alias = "") {
    table[static_cast<size_t>(dtype)] = {name, alias, size};
  };
  set(DType::kFloat32, "float32", 4, "float");
  set(DType::kFloat64, "float64", 8, "double");
  set(DType::kInt32, "int32", 4);
  set(DType::kUInt8, "uint8", 1);
  set(DType::kInt16, "int16", 2);
  set(DType::kInt8, "int8", 1);
  set(DType::kString, "string", sizeof(void*));
  set(DType::kComplex64, "complex64", 8);
  set(DType::kInt64, "int64", 8);
  set(DType::kBool, "bool", 1);
  set(DType::kBFloat16, "bfloat16", 2);
  set(DType::kUInt16, "uint16", 2);
  set(DType::kComplex128, "complex128", 16);
  set(DType::kFloat16, "float16", 2, "half");
  set(DType::kResource, "resource", sizeof(void*));
  set(DType::kVariant, "variant", sizeof(void*));
  set(DType::kUInt32, "uint32", 4);
  set(DType::kUInt64, "uint64", 8);
  return table;
}

constexpr std::array<Entry, kNumDTypes> kTable = make_table();

const Entry& entry_of(DType dtype) {
  const auto number = static_cast<size_t>(dtype);
  return kTable[number < kTable.size() ? number : 0];
}

}  // namespace

size_t dtype_size(DType dtype) { return entry_of(dtype).size; }

std::string_view dtype_name(DType dtype) {
  const std::string_view name = entry_of(dtype).name;
  return name.empty() ? "invalid" : name;
}

DType dtype_from_name(std::string_view name) {
  std::string known;
  for (size_t number = 0; number < kTable.size(); ++number) {
    const Entry& entry = kTable[number];
    if (entry.name.empty()) continue;
    if (name == entry.name || (!entry.alias.empty() && name == entry.alias)) {
      return static_cast<DType>(number);
    }
    if (!known.empty()) known += ", ";
    known += entry.name;
  }
  throw invalid_argument("\"", name, "\" is no dtype; they are ", known);
}

bool dtype_is_valid(int number) {
  return number > 0 && number < kNumDTypes && !kTable[static_cast<size_t>(number)].name.empty();
}

std::string to_text(DType dtype) { return std::string(dtype_name(dtype)); }

}  // namespace treenail
