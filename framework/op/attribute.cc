// SPDX-License-Identifier: Apache-2.0
// Attribute values: kinds, conversion, comparison and text. Floats and tensors compare by bits, so
// that equal means "the same computation": NaN equals itself, 0.0 and -0.0 differ.
#include "framework/op/attribute.h"

#include <bit>
#include <cmath>
#include <cstring>
#include <iterator>
#include <string_view>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/base/hash.h"
#include "framework/tensor/resource.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/variant.h"

namespace treenail {
namespace {

// In the order of AttrValue's alternatives.
constexpr AttrKind kKinds[] = {AttrKind::kNone,       AttrKind::kInt,         AttrKind::kFloat,
                               AttrKind::kBool,       AttrKind::kString,      AttrKind::kType,
                               AttrKind::kShape,      AttrKind::kTensor,      AttrKind::kFunction,
                               AttrKind::kIntList,    AttrKind::kFloatList,   AttrKind::kBoolList,
                               AttrKind::kStringList, AttrKind::kTypeList,    AttrKind::kShapeList,
                               AttrKind::kTensorList, AttrKind::kFunctionList};

bool same(bool a, bool b) { return a == b; }
bool same(int64_t a, int64_t b) { return a == b; }
bool same(double a, double b) { return std::bit_cast<uint64_t>(a) == std::bit_cast<uint64_t>(b); }
bool same(const std::string& a, const std::string& b) { return a == b; }
bool same(DType a, DType b) { return a == b; }
bool same(const PartialShape& a, const PartialShape& b) { return a == b; }

bool same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.raw() == b.raw()) return true;
  const size_t n = static_cast<size_t>(a.num_elements());
  switch (a.dtype()) {
    case DType::kInvalid:
      return true;
    case DType::kString:
      for (size_t i = 0; i < n; ++i) {
        if (!(a.data<StringElement>()[i] == b.data<StringElement>()[i])) return false;
      }
      return true;
    default:  // counted objects are the same when they are one object: the pointers' bytes say so
      return n == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
  }
}

bool same(const FunctionAttr& a, const FunctionAttr& b) {
  if (a.name != b.name || a.attrs.size() != b.attrs.size()) return false;
  for (size_t i = 0; i < a.attrs.size(); ++i) {
    if (a.attrs[i].first != b.attrs[i].first || !(a.attrs[i].second == b.attrs[i].second))
      return false;
  }
  return true;
}

template <class T>
bool same(const std::vector<T>& a, const std::vector<T>& b) {
  if (a.size() != b.size()) return false;
  for (size_t i = 0; i < a.size(); ++i) {
    if (!same(static_cast<const T&>(a[i]), static_cast<const T&>(b[i]))) return false;
  }
  return true;
}

uint64_t hash_of(bool v) { return v ? 1 : 0; }
uint64_t hash_of(int64_t v) { return hash_mix(static_cast<uint64_t>(v)); }
uint64_t hash_of(double v) { return hash_mix(std::bit_cast<uint64_t>(v)); }
uint64_t hash_of(const std::string& v) { return hash_text(v); }
uint64_t hash_of(DType v) { return static_cast<uint64_t>(v); }

uint64_t hash_of(const PartialShape& v) {
  uint64_t hash = static_cast<uint64_t>(v.rank()) + 2;
  for (int64_t dim : v.dims()) hash = hash_combine(hash, static_cast<uint64_t>(dim));
  return hash;
}

uint64_t hash_of(const Tensor& v) {
  uint64_t hash = hash_combine(static_cast<uint64_t>(v.dtype()), hash_of(PartialShape(v.shape())));
  if (v.dtype() == DType::kInvalid) return hash;
  if (v.dtype() != DType::kString) return hash_bytes(v.raw(), v.bytes(), hash);
  for (const StringElement& element : v.values<StringElement>())
    hash = hash_text(element.view(), hash);
  return hash;
}

uint64_t hash_of(const FunctionAttr& v) {
  uint64_t hash = hash_text(v.name);
  for (const auto& [name, value] : v.attrs)
    hash = hash_combine(hash_text(name, hash), value.hash());
  return hash;
}

template <class T>
uint64_t hash_of(const std::vector<T>& v) {
  uint64_t hash = v.size();
  for (size_t i = 0; i < v.size(); ++i)
    hash = hash_combine(hash, hash_of(static_cast<const T&>(v[i])));
  return hash;
}

// What a message shows of a long value: the rest would bury the sentence.
constexpr size_t kShownCharacters = 200;
constexpr size_t kShownElements = 32;

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (char c : text.substr(0, kShownCharacters)) {
    if (c == '"' || c == '\\') out.push_back('\\');
    out.push_back(c);
  }
  return out + (text.size() > kShownCharacters ? "\"..." : "\"");
}

std::string text_of(bool v) { return v ? "true" : "false"; }
std::string text_of(int64_t v) { return std::to_string(v); }
std::string text_of(double v) { return number_text(v); }
std::string text_of(const std::string& v) { return quoted(v); }
std::string text_of(DType v) { return to_text(v); }
std::string text_of(const PartialShape& v) { return to_text(v); }
std::string text_of(const Tensor& v) { return v.defined() ? tensor_values(v) : "no tensor"; }

std::string text_of(const FunctionAttr& v) {
  std::string out = v.name;
  for (size_t i = 0; i < v.attrs.size(); ++i) {
    out += concat(i == 0 ? "[" : ", ", v.attrs[i].first, "=", v.attrs[i].second);
  }
  return v.attrs.empty() ? out : out + "]";
}

template <class T>
std::string text_of(const std::vector<T>& v) {
  std::string out = "[";
  for (size_t i = 0; i < v.size(); ++i) {
    if (i > 0) out += ",";
    if (i == kShownElements) return concat(out, "... of ", v.size(), "]");
    out += text_of(static_cast<const T&>(v[i]));
  }
  return out + "]";
}

template <class T>
AttrValue empty_list() {
  return AttrValue(std::vector<T>());
}

AttrValue empty_list_of(AttrKind kind) {
  switch (kind) {
    case AttrKind::kIntList:
      return empty_list<int64_t>();
    case AttrKind::kFloatList:
      return empty_list<double>();
    case AttrKind::kBoolList:
      return empty_list<bool>();
    case AttrKind::kStringList:
      return empty_list<std::string>();
    case AttrKind::kTypeList:
      return empty_list<DType>();
    case AttrKind::kShapeList:
      return empty_list<PartialShape>();
    case AttrKind::kTensorList:
      return empty_list<Tensor>();
    case AttrKind::kFunctionList:
      return empty_list<FunctionAttr>();
    default:
      return AttrValue();
  }
}

}  // namespace

std::string_view attr_kind_name(AttrKind kind) {
  switch (kind) {
    case AttrKind::kNone:
      return "nothing";
    case AttrKind::kInt:
      return "int";
    case AttrKind::kFloat:
      return "float";
    case AttrKind::kBool:
      return "bool";
    case AttrKind::kString:
      return "string";
    case AttrKind::kType:
      return "type";
    case AttrKind::kShape:
      return "shape";
    case AttrKind::kTensor:
      return "tensor";
    case AttrKind::kFunction:
      return "func";
    case AttrKind::kIntList:
      return "list(int)";
    case AttrKind::kFloatList:
      return "list(float)";
    case AttrKind::kBoolList:
      return "list(bool)";
    case AttrKind::kStringList:
      return "list(string)";
    case AttrKind::kTypeList:
      return "list(type)";
    case AttrKind::kShapeList:
      return "list(shape)";
    case AttrKind::kTensorList:
      return "list(tensor)";
    case AttrKind::kFunctionList:
      return "list(func)";
  }
  return "an unknown kind";
}

AttrValue::AttrValue() = default;
AttrValue::AttrValue(const AttrValue& other) = default;
AttrValue::AttrValue(AttrValue&& other) noexcept = default;
AttrValue& AttrValue::operator=(const AttrValue& other) = default;
AttrValue& AttrValue::operator=(AttrValue&& other) noexcept = default;
AttrValue::~AttrValue() = default;

AttrValue::AttrValue(int value) : data_(static_cast<int64_t>(value)) {}
AttrValue::AttrValue(int64_t value) : data_(value) {}
AttrValue::AttrValue(double value) : data_(value) {}
AttrValue::AttrValue(float value) : data_(static_cast<double>(value)) {}
AttrValue::AttrValue(bool value) : data_(value) {}
AttrValue::AttrValue(const char* value) : data_(std::string(value)) {}
AttrValue::AttrValue(std::string value) : data_(std::move(value)) {}
AttrValue::AttrValue(DType value) : data_(value) {}
AttrValue::AttrValue(PartialShape value) : data_(std::move(value)) {}
AttrValue::AttrValue(const Shape& value) : data_(PartialShape(value)) {}
AttrValue::AttrValue(Tensor value) : data_(std::move(value)) {}
AttrValue::AttrValue(FunctionAttr value) : data_(std::move(value)) {}
AttrValue::AttrValue(std::vector<int64_t> value) : data_(std::move(value)) {}
AttrValue::AttrValue(std::vector<double> value) : data_(std::move(value)) {}
AttrValue::AttrValue(std::vector<bool> value) : data_(std::move(value)) {}
AttrValue::AttrValue(std::vector<std::string> value) : data_(std::move(value)) {}
AttrValue::AttrValue(std::vector<DType> value) : data_(std::move(value)) {}
AttrValue::AttrValue(std::vector<PartialShape> value) : data_(std::move(value)) {}
AttrValue::AttrValue(std::vector<Tensor> value) : data_(std::move(value)) {}
AttrValue::AttrValue(std::vector<FunctionAttr> value) : data_(std::move(value)) {}

bool AttrValue::defined() const { return data_.index() != 0; }

template <class T>
const T& AttrValue::get() const {
  if (const T* value = std::get_if<T>(&data_)) return *value;
  throw_kind_mismatch(AttrValue(T{}).kind());
}
template const int64_t& AttrValue::get() const;
template const double& AttrValue::get() const;
template const bool& AttrValue::get() const;
template const std::string& AttrValue::get() const;
template const DType& AttrValue::get() const;
template const PartialShape& AttrValue::get() const;
template const Tensor& AttrValue::get() const;
template const FunctionAttr& AttrValue::get() const;
template const std::vector<int64_t>& AttrValue::get() const;
template const std::vector<double>& AttrValue::get() const;
template const std::vector<bool>& AttrValue::get() const;
template const std::vector<std::string>& AttrValue::get() const;
template const std::vector<DType>& AttrValue::get() const;
template const std::vector<PartialShape>& AttrValue::get() const;
template const std::vector<Tensor>& AttrValue::get() const;
template const std::vector<FunctionAttr>& AttrValue::get() const;

AttrKind AttrValue::kind() const {
  static_assert(std::size(kKinds) == std::variant_size_v<decltype(data_)>);
  return kKinds[data_.index()];
}

void AttrValue::throw_kind_mismatch(AttrKind wanted) const {
  throw invalid_argument(to_text(*this), " is of kind ", attr_kind_name(kind()), ", needed is ",
                         attr_kind_name(wanted));
}

AttrValue AttrValue::converted(AttrKind wanted) const {
  const AttrKind own = kind();
  if (own == wanted) return *this;
  if (own == AttrKind::kInt && wanted == AttrKind::kFloat) {
    const int64_t value = get<int64_t>();
    const double as_double = static_cast<double>(value);
    // 2^63 itself is a double that no int64 equals: comparing back would overflow.
    if (as_double < 9223372036854775808.0 && static_cast<int64_t>(as_double) == value)
      return as_double;
  }
  if (is_list(own) && is_list(wanted)) {
    const bool empty = std::visit(
        [](const auto& v) {
          if constexpr (requires { v.empty(); }) {
            return v.empty();
          } else {
            return false;
          }
        },
        data_);
    if (empty) return empty_list_of(wanted);
    if (own == AttrKind::kIntList && wanted == AttrKind::kFloatList) {
      std::vector<double> values;
      for (int64_t value : get<std::vector<int64_t>>()) {
        values.push_back(AttrValue(value).converted(AttrKind::kFloat).get<double>());
      }
      return values;
    }
  }
  throw_kind_mismatch(wanted);
}

bool operator==(const AttrValue& a, const AttrValue& b) {
  if (a.data_.index() != b.data_.index()) return false;
  return std::visit(
      [&b](const auto& value) {
        using T = std::decay_t<decltype(value)>;
        if constexpr (std::is_same_v<T, std::monostate>) {
          return true;
        } else {
          return same(value, std::get<T>(b.data_));
        }
      },
      a.data_);
}

uint64_t AttrValue::hash() const {
  return hash_combine(data_.index(), std::visit(
                                         [](const auto& value) -> uint64_t {
                                           using T = std::decay_t<decltype(value)>;
                                           if constexpr (std::is_same_v<T, std::monostate>) {
                                             return 0;
                                           } else {
                                             return hash_of(value);
                                           }
                                         },
                                         data_));
}

std::string to_text(const AttrValue& value) {
  switch (value.kind()) {
    case AttrKind::kNone:
      return "nothing";
    case AttrKind::kInt:
      return text_of(value.get<int64_t>());
    case AttrKind::kFloat:
      return text_of(value.get<double>());
    case AttrKind::kBool:
      return text_of(value.get<bool>());
    case AttrKind::kString:
      return text_of(value.get<std::string>());
    case AttrKind::kType:
      return text_of(value.get<DType>());
    case AttrKind::kShape:
      return text_of(value.get<PartialShape>());
    case AttrKind::kTensor:
      return text_of(value.get<Tensor>());
    case AttrKind::kFunction:
      return text_of(value.get<FunctionAttr>());
    case AttrKind::kIntList:
      return text_of(value.get<std::vector<int64_t>>());
    case AttrKind::kFloatList:
      return text_of(value.get<std::vector<double>>());
    case AttrKind::kBoolList:
      return text_of(value.get<std::vector<bool>>());
    case AttrKind::kStringList:
      return text_of(value.get<std::vector<std::string>>());
    case AttrKind::kTypeList:
      return text_of(value.get<std::vector<DType>>());
    case AttrKind::kShapeList:
      return text_of(value.get<std::vector<PartialShape>>());
    case AttrKind::kTensorList:
      return text_of(value.get<std::vector<Tensor>>());
    case AttrKind::kFunctionList:
      return text_of(value.get<std::vector<FunctionAttr>>());
  }
  return "";
}

}  // namespace treenail
