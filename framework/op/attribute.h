// SPDX-License-Identifier: Apache-2.0
// Attribute values: int, float, bool, string, type, shape, tensor, function, and lists of them;
// alike in C++, the C ABI and files.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor.h"

namespace treenail {

// The numbers stand in files and the C ABI. A list has the number of its element kind plus
// kListBit.
enum class AttrKind : uint8_t {
  kNone = 0,
  kInt = 1,
  kFloat = 2,
  kBool = 3,
  kString = 4,
  kType = 5,
  kShape = 6,
  kTensor = 7,
  kFunction = 8,
  kIntList = 17,
  kFloatList = 18,
  kBoolList = 19,
  kStringList = 20,
  kTypeList = 21,
  kShapeList = 22,
  kTensorList = 23,
  kFunctionList = 24,
};
inline constexpr uint8_t kListBit = 16;
constexpr bool is_list(AttrKind kind) { return (static_cast<uint8_t>(kind) & kListBit) != 0; }
constexpr AttrKind element_kind(AttrKind kind) {
  return static_cast<AttrKind>(static_cast<uint8_t>(kind) & ~kListBit);
}
// "int", "list(type)", "func", ...: the declaration grammar's words.
std::string_view attr_kind_name(AttrKind kind);

class AttrValue;

// A function by name, with the attributes that instantiate it.
struct FunctionAttr {
  std::string name;
  std::vector<std::pair<std::string, AttrValue>> attrs;
};

class AttrValue {
 public:
  // Every member that touches the variant is defined in attribute.cc: instantiated in each file
  // that includes this, they would cost a fifth of a second of its compilation.
  AttrValue();
  AttrValue(const AttrValue& other);
  AttrValue(AttrValue&& other) noexcept;
  AttrValue& operator=(const AttrValue& other);
  AttrValue& operator=(AttrValue&& other) noexcept;
  ~AttrValue();

  // NOLINTBEGIN(google-explicit-constructor): conversions are meant
  AttrValue(int value);
  AttrValue(int64_t value);
  AttrValue(double value);
  AttrValue(float value);
  AttrValue(bool value);
  AttrValue(const char* value);
  AttrValue(std::string value);
  AttrValue(DType value);
  AttrValue(PartialShape value);
  AttrValue(const Shape& value);
  AttrValue(Tensor value);
  AttrValue(FunctionAttr value);
  AttrValue(std::vector<int64_t> value);
  AttrValue(std::vector<double> value);
  AttrValue(std::vector<bool> value);
  AttrValue(std::vector<std::string> value);
  AttrValue(std::vector<DType> value);
  AttrValue(std::vector<PartialShape> value);
  AttrValue(std::vector<Tensor> value);
  AttrValue(std::vector<FunctionAttr> value);
  // NOLINTEND(google-explicit-constructor)

  AttrKind kind() const;
  bool defined() const;

  // The value as T (int64_t, double, bool, std::string, DType, PartialShape, Tensor, FunctionAttr
  // or a std::vector of these). Errors: InvalidArgument naming both kinds.
  template <class T>
  const T& get() const;

  // An empty list literal has no element kind of its own; this is the value as `kind` where that is
  // lossless (int → float, empty list → any list, int list → float list). Errors: InvalidArgument.
  AttrValue converted(AttrKind kind) const;

  friend bool operator==(const AttrValue& a, const AttrValue& b);
  uint64_t hash() const;

 private:
  [[noreturn]] void throw_kind_mismatch(AttrKind wanted) const;
  std::variant<std::monostate, int64_t, double, bool, std::string, DType, PartialShape, Tensor,
               FunctionAttr, std::vector<int64_t>, std::vector<double>, std::vector<bool>,
               std::vector<std::string>, std::vector<DType>, std::vector<PartialShape>,
               std::vector<Tensor>, std::vector<FunctionAttr>>
      data_;
};

// As a person would write it: `true`, `[1,2]`, `float32`, `"SAME"`.
std::string to_text(const AttrValue& value);

using NamedAttr = std::pair<std::string, AttrValue>;
using NamedAttrs = std::vector<NamedAttr>;

}  // namespace treenail
