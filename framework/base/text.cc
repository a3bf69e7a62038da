// SPDX-License-Identifier: Apache-2.0
// Numbers as message text, independent of the process's locale.
#include "framework/base/text.h"

#include <charconv>
#include <cmath>
#include <string>

namespace treenail {
namespace {

template <class T>
std::string shortest(T value) {
  if (std::isnan(value)) return "nan";
  if (std::isinf(value)) return value < 0 ? "-inf" : "inf";
  char digits[64];
  const auto end = std::to_chars(digits, digits + sizeof digits, value).ptr;
  return std::string(digits, end);
}

}  // namespace

std::string number_text(double value) { return shortest(value); }
std::string number_text(float value) { return shortest(value); }

void TextPart::append_to(std::string& out) const {
  switch (kind_) {
    case Kind::kTerminated:
      out.append(static_cast<const char*>(data_));
      return;
    case Kind::kText:
      out.append(static_cast<const char*>(data_), size_);
      return;
    case Kind::kCharacter:
      out.push_back(static_cast<char>(signed_));
      return;
    case Kind::kBool:
      out.append(signed_ != 0 ? "true" : "false");
      return;
    case Kind::kFloat:
      out.append(number_text(static_cast<float>(double_)));
      return;
    case Kind::kDouble:
      out.append(number_text(double_));
      return;
    case Kind::kSigned:
      out.append(std::to_string(signed_));
      return;
    case Kind::kUnsigned:
      out.append(std::to_string(unsigned_));
      return;
    case Kind::kObject:
      out.append(object_text_(data_));
      return;
  }
}

std::string join_text(std::initializer_list<TextPart> parts) {
  std::string out;
  for (const TextPart& part : parts) part.append_to(out);
  return out;
}

}  // namespace treenail
