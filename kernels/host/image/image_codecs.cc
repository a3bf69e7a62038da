// SPDX-License-Identifier: Apache-2.0
// DecodeImage and DecodeBmp of framework/ops/image_codecs.cc. DecodeImage takes the format from the
// first bytes.
#include <cstdint>
#include <string_view>

#include "framework/base/error.h"
#include "framework/io/image_file.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/string_element.h"

namespace treenail::host {
namespace {

Tensor widened(const Tensor& image) {
  Tensor wide(DType::kUInt16, image.shape());
  const auto* from = image.data<uint8_t>();
  auto* to = wide.data<uint16_t>();
  for (int64_t i = 0; i < image.num_elements(); ++i) to[i] = static_cast<uint16_t>(from[i] * 257);
  return wide;
}

Tensor decode(std::string_view contents, int64_t channels, DType dtype) {
  if (contents.starts_with("\x89PNG")) return decode_png(contents, channels, dtype);
  Tensor image;
  if (contents.starts_with("\xff\xd8\xff")) {
    if (channels == 4) throw invalid_argument("channels = 4 is not supported by JPEG files");
    image = decode_jpeg(contents, channels, {});
  } else if (contents.starts_with("BM")) {
    image = decode_bmp(contents, channels);
  } else if (contents.starts_with("GIF8")) {
    throw unimplemented("GIF files are not decoded");
  } else {
    throw invalid_argument("Unknown image file format. One of JPEG, PNG, BMP required, not the ",
                           contents.size(), " bytes given");
  }
  return dtype == DType::kUInt16 ? widened(image) : image;
}

}  // namespace

void register_image_codecs_kernels(KernelRegistry& r) {
  r.add("DecodeImage", {}, [](const PrepareContext& p) {
    const int64_t channels = p.op().get_int("channels");
    return make_kernel(
        [channels, dtype = p.output_type(0)](RunContext& c) {
          c.set_output(0, decode(c.input(0).data<StringElement>()->view(), channels, dtype));
        },
        1e6);
  });
  r.add("DecodeBmp", {}, [](const PrepareContext& p) {
    const int64_t channels = p.op().get_int("channels");
    return make_kernel(
        [channels](RunContext& c) {
          c.set_output(0, decode_bmp(c.input(0).data<StringElement>()->view(), channels));
        },
        1e5);
  });
}

}  // namespace treenail::host
