// SPDX-License-Identifier: Apache-2.0
#include "framework/io/image_file.h"

#include "framework/base/error.h"
#include "framework/base/quoted.h"

namespace treenail {

void refuse_image(const char* format, std::string_view contents, const char* why) {
  throw invalid_argument("Invalid ", format, " data, size ", contents.size(), ": ", quoted(why));
}

void check_plausible(std::string_view contents, int64_t height, int64_t width, double bytes,
                     double most) {
  constexpr double kAlways = 1 << 26;  // 64 MiB
  if (bytes <= kAlways || bytes <= most * static_cast<double>(contents.size())) return;
  throw invalid_argument("the file says that it holds ", height, " x ", width,
                         " pixels, which do not fit into its ", contents.size(), " bytes");
}

}  // namespace treenail
