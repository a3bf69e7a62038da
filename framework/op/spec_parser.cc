// SPDX-License-Identifier: Apache-2.0
// Recursive descent over one line of text. A mistake is ours (or a plugin's): Internal, at
// registration.
#include "framework/op/spec_parser.h"

#include <array>
#include <charconv>
#include <cstdlib>
#include <utility>
#include <vector>

#include "framework/base/error.h"

namespace treenail {
namespace {

constexpr std::array<std::pair<std::string_view, DType>, 21> kTypeWords = {{
    {"float", DType::kFloat32},
    {"double", DType::kFloat64},
    {"half", DType::kFloat16},
    {"bfloat16", DType::kBFloat16},
    {"int8", DType::kInt8},
    {"int16", DType::kInt16},
    {"int32", DType::kInt32},
    {"int64", DType::kInt64},
    {"uint8", DType::kUInt8},
    {"uint16", DType::kUInt16},
    {"uint32", DType::kUInt32},
    {"uint64", DType::kUInt64},
    {"bool", DType::kBool},
    {"complex64", DType::kComplex64},
    {"complex128", DType::kComplex128},
    {"string", DType::kString},
    {"resource", DType::kResource},
    {"variant", DType::kVariant},
    {"float16", DType::kFloat16},
    {"float32", DType::kFloat32},
    {"float64", DType::kFloat64},
}};

const std::vector<DType> kRealNumbers = {DType::kFloat32, DType::kFloat64, DType::kInt32,
                                         DType::kInt64,   DType::kUInt8,   DType::kInt16,
                                         DType::kInt8,    DType::kUInt16,  DType::kUInt32,
                                         DType::kUInt64,  DType::kFloat16, DType::kBFloat16};

std::vector<DType> all_numbers() {
  std::vector<DType> types = kRealNumbers;
  types.push_back(DType::kComplex64);
  types.push_back(DType::kComplex128);
  return types;
}

bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool is_digit(char c) { return c >= '0' && c <= '9'; }

class Parser {
 public:
  explicit Parser(std::string_view text) : text_(text) {}

  ArgSpec arg();
  AttrDef attr();

 private:
  void skip_space() {
    while (at_ < text_.size() && (text_[at_] == ' ' || text_[at_] == '\t' || text_[at_] == '\n'))
      ++at_;
  }
  bool accept(std::string_view token) {
    skip_space();
    if (text_.substr(at_, token.size()) != token) return false;
    at_ += token.size();
    return true;
  }
  void expect(std::string_view token) {
    if (!accept(token)) fail(concat("'", token, "'"));
  }
  char peek() {
    skip_space();
    return at_ < text_.size() ? text_[at_] : '\0';
  }
  void expect_end() {
    if (peek() != '\0') fail("the end");
  }
  [[noreturn]] void fail(std::string_view expected) {
    skip_space();
    const std::string_view rest = text_.substr(at_, 16);
    throw internal_error("expected ", expected, ", met ",
                         rest.empty() ? std::string("the end") : concat("'", rest, "'"));
  }

  std::string word(std::string_view what);
  std::string quoted();
  int64_t integer();
  double real();
  bool boolean();
  DType type();
  PartialShape shape();
  // kind of "int", "func", ...; fills allowed values for type words and sets.
  AttrKind element_kind_of(AttrDef& def);
  AttrKind set_of_allowed(AttrDef& def);
  AttrValue value(AttrKind kind);
  AttrValue list_value(AttrKind kind);
  template <class T, class F>
  std::vector<T> elements(F element);

  std::string_view text_;
  size_t at_ = 0;
};

std::string Parser::word(std::string_view what) {
  if (!is_letter(peek())) fail(what);
  const size_t begin = at_;
  while (at_ < text_.size() && (is_letter(text_[at_]) || is_digit(text_[at_]))) ++at_;
  return std::string(text_.substr(begin, at_ - begin));
}

std::string Parser::quoted() {
  const char quote = peek();
  if (quote != '\'' && quote != '"') fail("a quoted string");
  std::string out;
  for (++at_; at_ < text_.size() && text_[at_] != quote; ++at_) {
    if (text_[at_] == '\\' && at_ + 1 < text_.size()) ++at_;
    out.push_back(text_[at_]);
  }
  if (at_ == text_.size()) fail(concat("a closing ", quote));
  ++at_;
  return out;
}

int64_t Parser::integer() {
  skip_space();
  int64_t number = 0;
  const char* begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
  if (error != std::errc()) fail("an integer");
  at_ += static_cast<size_t>(end - begin);
  return number;
}

double Parser::real() {
  skip_space();
  double number = 0;
  const char* begin = text_.data() + at_;
  const auto [end, error] = std::from_chars(begin, text_.data() + text_.size(), number);
  if (error != std::errc()) fail("a number");
  at_ += static_cast<size_t>(end - begin);
  return number;
}

bool Parser::boolean() {
  if (accept("true")) return true;
  if (accept("false")) return false;
  fail("true or false");
}

DType Parser::type() {
  const size_t begin = at_;
  const DType dtype = grammar_dtype(word("a type"));
  if (dtype == DType::kInvalid) {
    at_ = begin;
    fail("a type");
  }
  return dtype;
}

// "[2,3]", "[2,?]", "[]"; "{}" as TensorFlow writes a scalar; "?" or "{unknown_rank: true}" for an
// unknown rank.
PartialShape Parser::shape() {
  if (accept("?")) return PartialShape();
  if (accept("{")) {
    if (accept("}")) return PartialShape(Shape());
    expect("unknown_rank");
    expect(":");
    expect("true");
    expect("}");
    return PartialShape();
  }
  expect("[");
  std::vector<int64_t> dims;
  if (!accept("]")) {
    do {
      dims.push_back(accept("?") ? kUnknown : integer());
    } while (accept(","));
    expect("]");
  }
  return PartialShape(std::span<const int64_t>(dims));
}

template <class T, class F>
std::vector<T> Parser::elements(F element) {
  std::vector<T> out;
  expect("[");
  if (accept("]")) return out;
  do {
    out.push_back(element());
  } while (accept(","));
  expect("]");
  return out;
}

AttrValue Parser::list_value(AttrKind kind) {
  switch (element_kind(kind)) {
    case AttrKind::kInt:
      return elements<int64_t>([this] { return integer(); });
    case AttrKind::kFloat:
      return elements<double>([this] { return real(); });
    case AttrKind::kBool:
      return elements<bool>([this] { return boolean(); });
    case AttrKind::kString:
      return elements<std::string>([this] { return quoted(); });
    case AttrKind::kType:
      return elements<DType>([this] { return type(); });
    case AttrKind::kShape:
      return elements<PartialShape>([this] { return shape(); });
    case AttrKind::kTensor:
    case AttrKind::kFunction:
      expect("[");
      expect("]");
      return element_kind(kind) == AttrKind::kTensor ? AttrValue(std::vector<Tensor>())
                                                     : AttrValue(std::vector<FunctionAttr>());
    default:
      fail("a list");
  }
}

AttrValue Parser::value(AttrKind kind) {
  if (is_list(kind)) return list_value(kind);
  switch (kind) {
    case AttrKind::kInt:
      return integer();
    case AttrKind::kFloat:
      return real();
    case AttrKind::kBool:
      return boolean();
    case AttrKind::kString:
      return quoted();
    case AttrKind::kType:
      return type();
    case AttrKind::kShape:
      return shape();
    default:
      fail(concat("no default: one of kind ", attr_kind_name(kind), " cannot be written here"));
  }
}

AttrKind Parser::set_of_allowed(AttrDef& def) {
  if (peek() == '\'' || peek() == '"') {
    do {
      def.allowed_strings.push_back(quoted());
    } while (accept(","));
    expect("}");
    return AttrKind::kString;
  }
  do {
    const size_t begin = at_;
    const std::string name = word("a type");
    const DType dtype = grammar_dtype(name);
    if (dtype != DType::kInvalid) {
      def.allowed_types.push_back(dtype);
    } else if (name == "numbertype" || name == "realnumbertype") {
      const std::vector<DType> types = name == "numbertype" ? all_numbers() : kRealNumbers;
      def.allowed_types.insert(def.allowed_types.end(), types.begin(), types.end());
    } else {
      at_ = begin;
      fail("a type");
    }
  } while (accept(","));
  expect("}");
  return AttrKind::kType;
}

AttrKind Parser::element_kind_of(AttrDef& def) {
  if (accept("{")) return set_of_allowed(def);
  const size_t begin = at_;
  const std::string kind = word("a kind of attribute");
  if (kind == "int") return AttrKind::kInt;
  if (kind == "float") return AttrKind::kFloat;
  if (kind == "bool") return AttrKind::kBool;
  if (kind == "string") return AttrKind::kString;
  if (kind == "shape") return AttrKind::kShape;
  if (kind == "tensor") return AttrKind::kTensor;
  if (kind == "func") return AttrKind::kFunction;
  if (kind == "type") return AttrKind::kType;
  if (kind == "numbertype") {
    def.allowed_types = all_numbers();
    return AttrKind::kType;
  }
  if (kind == "realnumbertype") {
    def.allowed_types = kRealNumbers;
    return AttrKind::kType;
  }
  at_ = begin;
  fail(
      "a kind of attribute (int, float, bool, string, type, shape, tensor, func, list(...), "
      "{...})");
}

ArgSpec Parser::arg() {
  ArgSpec spec;
  spec.name = word("a name");
  expect(":");
  spec.type = word("a type or an attribute's name");
  if (accept("*")) {
    spec.number = std::move(spec.type);
    spec.type = word("a type or an attribute's name");
  }
  expect_end();
  return spec;
}

AttrDef Parser::attr() {
  AttrDef def;
  def.name = word("a name");
  expect(":");
  if (accept("list(")) {
    def.kind = static_cast<AttrKind>(static_cast<uint8_t>(element_kind_of(def)) | kListBit);
    expect(")");
  } else {
    def.kind = element_kind_of(def);
  }
  if (accept(">=")) {
    if (def.kind != AttrKind::kInt && !is_list(def.kind))
      fail("no minimum: only int and lists have one");
    def.minimum = integer();
  }
  if (accept("=")) {
    def.has_default = true;
    def.default_value = value(def.kind);
  }
  expect_end();
  return def;
}

}  // namespace

DType grammar_dtype(std::string_view word) {
  for (const auto& [name, dtype] : kTypeWords) {
    if (name == word) return dtype;
  }
  return DType::kInvalid;
}

ArgSpec parse_arg_spec(std::string_view spec) { return Parser(spec).arg(); }
AttrDef parse_attr_spec(std::string_view spec) { return Parser(spec).attr(); }

}  // namespace treenail
