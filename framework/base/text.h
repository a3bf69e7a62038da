// SPDX-License-Identifier: Apache-2.0
// Building message text without <iostream>: concat("a is ", shape, ", needed ", 3).
// A type joins in by offering `std::string to_text(const T&)` in its own namespace.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>

namespace treenail {

// Shortest decimal form that reads back as the same value; "nan", "inf" and "-inf" as Python spells
// them.
std::string number_text(double value);
std::string number_text(float value);

inline void append_text(std::string& out, std::string_view text) { out.append(text); }
inline void append_text(std::string& out, const char* text) { out.append(text); }
inline void append_text(std::string& out, const std::string& text) { out.append(text); }
inline void append_text(std::string& out, char value) { out.push_back(value); }
inline void append_text(std::string& out, bool value) { out.append(value ? "true" : "false"); }

template <class T>
requires(std::integral<T> && !std::same_as<T, bool> &&
         !std::same_as<T, char>) void append_text(std::string& out, T value) {
  out.append(std::to_string(value));
}

template <std::floating_point T>
void append_text(std::string& out, T value) {
  out.append(number_text(value));
}

template <class T>
requires(!std::is_arithmetic_v<T>) && requires(const T& value) {
  { to_text(value) } -> std::convertible_to<std::string>;
}
void append_text(std::string& out, const T& value) { out.append(to_text(value)); }

template <class... Parts>
std::string concat(const Parts&... parts) {
  std::string out;
  (append_text(out, parts), ...);
  return out;
}

}  // namespace treenail
