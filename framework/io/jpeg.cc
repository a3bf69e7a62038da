// SPDX-License-Identifier: Apache-2.0
// JPEG files, read by the JPEG adapter.
#include <cstdint>
#include <string_view>

#include "framework/base/adapter.h"
#include "framework/io/image_file.h"

namespace treenail {
const JpegApi& jpeg_adapter() {
  const AdapterRequest request = {"jpeg", sizeof(JpegApi), "JPEG images",
                                  "libjpeg-turbo (Debian: libjpeg62-turbo, Fedora: libjpeg-turbo)"};
  return *static_cast<const JpegApi*>(open_adapter(request));
}

JpegHeader read_jpeg_header(std::string_view contents, int64_t ratio) {
  char why[kImageProblemBytes] = "";
  JpegHeader header = {};
  if (jpeg_adapter().read_header(image_bytes(contents), contents.size(),
                                 static_cast<int32_t>(ratio), &header, why, sizeof why) != 0)
    refuse_image("JPEG", contents, why);
  return header;
}

Tensor decode_jpeg(std::string_view contents, int64_t channels, const JpegOptions& o) {
  const JpegHeader header = read_jpeg_header(contents, o.ratio);
  // A block of 8 x 8 samples takes a bit at least, but for arithmetic coding.
  constexpr double kMostSamples = 512;
  const double shrunk = static_cast<double>(o.ratio) * static_cast<double>(o.ratio);
  const double samples =
      static_cast<double>(header.height) * static_cast<double>(header.width) * shrunk;
  check_plausible(contents, header.height, header.width, samples,
                  header.arithmetic != 0 ? 64 * kMostSamples : kMostSamples);
  JpegDecoding d = {};
  d.channels = static_cast<int32_t>(channels != 0 ? channels : header.components == 1 ? 1 : 3);
  d.ratio = static_cast<int32_t>(o.ratio);
  d.fancy = o.fancy ? 1 : 0;
  d.dct = o.dct;
  d.recover = o.recover ? 1 : 0;
  d.fraction = o.fraction;
  d.height = header.height;
  d.width = header.width;
  Tensor image(DType::kUInt8, Shape({d.height, d.width, d.channels}));
  char why[kImageProblemBytes] = "";
  if (jpeg_adapter().decode(image_bytes(contents), contents.size(), &d, image.data<uint8_t>(), why,
                            sizeof why) != 0)
    refuse_image("JPEG", contents, why);
  return image;
}

}  // namespace treenail
