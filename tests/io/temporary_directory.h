// SPDX-License-Identifier: Apache-2.0
// A directory of a test's own, removed with everything in it, and small help with files.
#pragma once

#include <gtest/gtest.h>
#include <stdlib.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace treenail {

class TemporaryDirectory {
 public:
  TemporaryDirectory() {
    path_ = (std::filesystem::temp_directory_path() / "treenail-io-XXXXXX").string();
    EXPECT_NE(::mkdtemp(path_.data()), nullptr);
  }
  ~TemporaryDirectory() { std::filesystem::remove_all(path_); }
  TemporaryDirectory(const TemporaryDirectory&) = delete;
  TemporaryDirectory& operator=(const TemporaryDirectory&) = delete;

  std::string file(const std::string& name) const { return path_ + "/" + name; }
  const std::string& path() const { return path_; }
  int entries() const {
    return static_cast<int>(std::distance(std::filesystem::directory_iterator(path_), {}));
  }

 private:
  std::string path_;
};

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
