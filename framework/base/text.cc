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

}  // namespace treenail
