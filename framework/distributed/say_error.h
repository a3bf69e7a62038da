// SPDX-License-Identifier: Apache-2.0
// An error on its way to another process or a log: a code and a text, whatever was thrown.
#pragma once

#include <exception>
#include <new>
#include <string>
#include <string_view>

#include "framework/base/error.h"

namespace treenail {

// say(Code, std::string_view), once; takes no memory for itself.
template <class Say>
void say_error(const std::exception_ptr& error, Say say) {
  try {
    std::rethrow_exception(error);
  } catch (const Error& found) {
    say(found.code(), std::string_view(found.message()));
  } catch (const std::bad_alloc&) {
    say(Code::kResourceExhausted, std::string_view("out of memory"));
  } catch (const std::exception& found) {
    say(Code::kInternal, std::string_view(found.what()));
  } catch (...) {
    say(Code::kUnknown, std::string_view("an unknown error"));
  }
}

inline std::string text_of(const std::exception_ptr& error) {
  std::string text;
  say_error(error, [&](Code, std::string_view said) { text = said; });
  return text;
}

}  // namespace treenail
