// SPDX-License-Identifier: Apache-2.0
// PNG files, read by the PNG adapter.
#include <cstdint>
#include <string_view>

#include "framework/base/adapter.h"
#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/io/image_file.h"

namespace treenail {
namespace {

const uint8_t* bytes_of(std::string_view contents) {
  return reinterpret_cast<const uint8_t*>(contents.data());
}

[[noreturn]] void refuse(std::string_view contents, const char* why) {
  throw invalid_argument("Invalid PNG data, size ", contents.size(), ": ", quoted(why));
}

}  // namespace

const PngApi& png_adapter() {
  const AdapterRequest request = {"png", kPngAbi, sizeof(PngApi), "PNG images",
                                  "libpng (Debian: libpng16-16 or libpng16-16t64, Fedora: libpng)"};
  return *static_cast<const PngApi*>(open_adapter(request));
}

Tensor decode_png(std::string_view contents, int64_t channels, DType dtype) {
  char why[kImageProblemBytes] = "";
  PngHeader header = {};
  const PngApi& png = png_adapter();
  if (png.read_header(bytes_of(contents), contents.size(), &header, why, sizeof why) != 0)
    refuse(contents, why);
  constexpr double kMostDeflated = 1032;  // of one byte, by zlib's own bound
  check_plausible(contents, header.height, header.width, static_cast<double>(header.raw_bytes),
                  kMostDeflated);
  const PngPixels form = {header.height, header.width,
                          channels == 0 ? header.channels : static_cast<int32_t>(channels),
                          dtype == DType::kUInt16 ? 16 : 8};
  Tensor image(dtype, Shape({form.height, form.width, form.channels}));
  if (png.decode(bytes_of(contents), contents.size(), &form, image.raw(), why, sizeof why) != 0)
    refuse(contents, why);
  return image;
}

}  // namespace treenail
