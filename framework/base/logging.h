// SPDX-License-Identifier: Apache-2.0
// Diagnostics for whoever asks: the library prints nothing unless TREENAIL_LOG is debug, info,
// warning or error; then lines of that level and above go to standard error. Failures are Errors,
// never log lines.
#pragma once

#include <string>
#include <string_view>

#include "framework/base/text.h"

namespace treenail {

enum class LogLevel : int { kDebug = 0, kInfo = 1, kWarning = 2, kError = 3 };

bool log_enabled(LogLevel level);
// One line "treenail <level>: <text>", written by one call so that lines of several threads do not
// mix.
void write_log(LogLevel level, std::string_view text);

// The text is built only when somebody reads it.
template <class... Parts>
void log(LogLevel level, const Parts&... parts) {
  if (log_enabled(level)) write_log(level, concat(parts...));
}

}  // namespace treenail
