// SPDX-License-Identifier: Apache-2.0
// The files of tests/io/data, and whole files as bytes.
#pragma once

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace treenail {

// A file of tests/io/data. The test runner says where the sources are; by hand, run the program in
// the build directory.
inline std::string test_data(const std::string& name) {
  const char* sources = std::getenv("TREENAIL_SOURCE_DIR");
  return std::string(sources != nullptr ? sources : "..") + "/tests/io/data/" + name;
}

inline std::string file_bytes(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

inline void write_bytes(const std::string& path, const std::string& bytes) {
  std::filesystem::remove(
      path);  // some file systems flush a file that is overwritten, for milliseconds
  std::ofstream(path, std::ios::binary) << bytes;
}

}  // namespace treenail
