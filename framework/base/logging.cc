// SPDX-License-Identifier: Apache-2.0
// Reading TREENAIL_LOG once and writing lines to standard error.
#include "framework/base/logging.h"

#include <unistd.h>

#include <cerrno>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/environment.h"
#include "framework/base/error.h"

namespace treenail {
namespace {

constexpr std::string_view kNames[] = {"debug", "info", "warning", "error"};
constexpr int kSilent = 4;

void write_line(std::string_view name, std::string_view text) {
  const std::string line = concat("treenail ", name, ": ", text, "\n");
  std::string_view rest = line;
  while (!rest.empty()) {
    const ssize_t written = ::write(STDERR_FILENO, rest.data(), rest.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return;  // nobody reads standard error: there is no better place to say so
    rest.remove_prefix(static_cast<size_t>(written));
  }
}

// Log calls stand in places that must not throw. Whoever set the variable wants to read lines, so a
// value that is no level is answered by a line, and by warnings.
int threshold_from_environment() {
  try {
    return env_choice("TREENAIL_LOG", kNames).value_or(kSilent);
  } catch (const Error& error) {
    write_line("warning", error.message());
    return static_cast<int>(LogLevel::kWarning);
  }
}

}  // namespace

bool log_enabled(LogLevel level) {
  static const int threshold = threshold_from_environment();
  return static_cast<int>(level) >= threshold;
}

void write_log(LogLevel level, std::string_view text) {
  write_line(kNames[static_cast<int>(level)], text);
}

}  // namespace treenail
