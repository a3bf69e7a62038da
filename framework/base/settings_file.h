// SPDX-License-Identifier: Apache-2.0
// Files of lines "name = value", with comments from "#" at the beginning of a line.
#pragma once

#include <string>
#include <vector>

namespace treenail {

struct Setting {
  std::string name, value;
  std::string where;  // "in line 3 of /etc/treenail/ps.conf", for errors
};

// In the order of the lines. Errors: NotFound where the file cannot be read, InvalidArgument for a
// line that is none.
std::vector<Setting> read_settings(const std::string& path);

}  // namespace treenail
