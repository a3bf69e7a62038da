// SPDX-License-Identifier: Apache-2.0
// Numbers in text that stands in a tensor or a file. The C library's own functions read real
// numbers, in the C locale whatever the program's is.
#pragma once

#include <locale.h>
#include <stdlib.h>

#include <charconv>
#include <string>
#include <string_view>
#include <type_traits>

namespace treenail::host {

inline locale_t c_locale() {
  static const locale_t made = ::newlocale(LC_ALL_MASK, "C", nullptr);
  return made;
}

// Whether the text is one number of that type, with white space before and behind it.
template <class T>
bool read_number(std::string_view text, T* value) {
  constexpr std::string_view kSpaces = " \t\n\v\f\r";
  const size_t begin = text.find_first_not_of(kSpaces);
  if (begin == std::string_view::npos) return false;
  text = text.substr(begin, text.find_last_not_of(kSpaces) + 1 - begin);
  if constexpr (std::is_integral_v<T>) {
    // from_chars knows no plus sign, and must not see "+-1".
    if (text.size() > 1 && text[0] == '+' && text[1] != '-') text.remove_prefix(1);
    const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), *value);
    return error == std::errc() && end == text.data() + text.size();
  } else {
    // The C library's "nan(...)" is nobody else's.
    if (text.find('(') != std::string_view::npos) return false;
    const std::string terminated(text);
    char* end = nullptr;
    if constexpr (std::is_same_v<T, float>) {
      *value = ::strtof_l(terminated.c_str(), &end, c_locale());
    } else {
      *value = ::strtod_l(terminated.c_str(), &end, c_locale());
    }
    return end == terminated.c_str() + terminated.size();
  }
}

}  // namespace treenail::host
