// SPDX-License-Identifier: Apache-2.0
// In HDF5 a path names one thing, a group or a dataset; and "", "." are no names. Whatever collides
// gets a "+".
#include "framework/io/checkpoint_names.h"

#include <string>
#include <string_view>

#include "framework/base/error.h"

namespace treenail {

std::string CheckpointNames::place(std::string_view name) {
  if (name.empty() || name.find('\0') != std::string_view::npos || name.size() > kMaxBytes) {
    throw invalid_argument("a tensor of ", name.size(), " bytes of name, \"", name.substr(0, 60),
                           "\", cannot be saved; needed are 1 to ", kMaxBytes,
                           " bytes, none of them zero");
  }
  std::string path;
  for (size_t begin = 0;;) {
    const size_t slash = name.find('/', begin);
    const std::string_view part = name.substr(begin, slash - begin);
    path += part;
    if (part.empty() || part == ".") path += '+';
    if (slash == std::string_view::npos) break;
    while (datasets_.count(path) > 0) path += '+';
    groups_.insert(path);
    path += '/';
    begin = slash + 1;
  }
  while (datasets_.count(path) > 0 || groups_.count(path) > 0) path += '+';
  datasets_.insert(path);
  return path;
}

}  // namespace treenail
