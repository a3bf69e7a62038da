// SPDX-License-Identifier: Apache-2.0
#include "framework/base/random_token.h"

#include <cstdint>

#include "framework/base/system_seed.h"

namespace treenail {

std::string random_token() {
  constexpr char kDigits[] = "0123456789abcdef";
  std::string token;
  for (int word = 0; word < 2; ++word) {
    uint64_t bits = system_seed();
    for (int i = 0; i < 16; ++i, bits >>= 4) token += kDigits[bits & 15];
  }
  return token;
}

bool are_equal_secrets(std::string_view a, std::string_view b) {
  if (a.size() != b.size()) return false;
  unsigned difference = 0;
  for (size_t i = 0; i < a.size(); ++i)
    difference |= static_cast<unsigned char>(a[i]) ^ static_cast<unsigned char>(b[i]);
  return difference == 0;
}

}  // namespace treenail
