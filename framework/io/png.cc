// SPDX-License-Identifier: Apache-2.0
// PNG files, read by the PNG adapter.
#include <cstdint>
#include <string_view>

#include "framework/base/adapter.h"
#include "framework/io/image_file.h"

namespace treenail {
const PngApi& png_adapter() {
  const AdapterRequest request = {"png", sizeof(PngApi), "PNG images",
                                  "libpng (Debian: libpng16-16 or libpng16-16t64, Fedora: libpng)"};
  return *static_cast<const PngApi*>(open_adapter(request));
}

Tensor decode_png(std::string_view contents, int64_t channels, DType dtype) {
  char why[kImageProblemBytes] = "";
  PngHeader header = {};
  const PngApi& png = png_adapter();
  if (png.read_header(image_bytes(contents), contents.size(), &header, why, sizeof why) != 0)
    refuse_image("PNG", contents, why);
  constexpr double kMostDeflated = 1032;  // of one byte, by zlib's own bound
  check_plausible(contents, header.height, header.width, static_cast<double>(header.raw_bytes),
                  kMostDeflated);
  const PngPixels form = {header.height, header.width,
                          channels == 0 ? header.channels : static_cast<int32_t>(channels),
                          dtype == DType::kUInt16 ? 16 : 8};
  Tensor image(dtype, Shape({form.height, form.width, form.channels}));
  if (png.decode(image_bytes(contents), contents.size(), &form, image.raw(), why, sizeof why) != 0)
    refuse_image("PNG", contents, why);
  return image;
}

}  // namespace treenail
