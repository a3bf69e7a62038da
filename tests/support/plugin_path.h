// SPDX-License-Identifier: Apache-2.0
// Where plugins of the tests lie: beside the test program.
#pragma once

#include <unistd.h>

#include <climits>
#include <string>

namespace treenail::test {

inline std::string test_directory() {
  char path[PATH_MAX];
  const ssize_t length = ::readlink("/proc/self/exe", path, sizeof(path));
  const std::string program(path, length > 0 ? static_cast<size_t>(length) : 0);
  return program.substr(0, program.rfind('/'));
}

inline std::string plugin_path(const std::string& name) {
  return test_directory() + "/plugins/libtreenail-" + name + ".so";
}

}  // namespace treenail::test
