// SPDX-License-Identifier: Apache-2.0
#include "framework/base/settings_file.h"

#include <fstream>
#include <string_view>

#include "framework/base/error.h"

namespace treenail {
namespace {

std::string_view trimmed(std::string_view text) {
  constexpr std::string_view kBlank = " \t\r";
  const size_t begin = text.find_first_not_of(kBlank);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(kBlank) - begin + 1);
}

}  // namespace

std::vector<Setting> read_settings(const std::string& path) {
  std::ifstream file(path);
  if (!file) throw not_found("cannot read the file \"", path, "\"");
  std::vector<Setting> settings;
  std::string line;
  for (int n = 1; std::getline(file, line); ++n) {
    const std::string_view text = trimmed(line);
    if (text.empty() || text.front() == '#') continue;
    const std::string where = concat("in line ", n, " of ", path);
    const size_t equals = text.find('=');
    if (equals == std::string_view::npos) throw invalid_argument(where, " stands no \"=\": ", text);
    settings.push_back({std::string(trimmed(text.substr(0, equals))),
                        std::string(trimmed(text.substr(equals + 1))), where});
  }
  if (file.bad()) throw not_found("cannot read the file \"", path, "\"");
  return settings;
}

}  // namespace treenail
