// SPDX-License-Identifier: Apache-2.0
// Image files in memory to pixels [height, width, channels], by format. PNG and JPEG are read by
// the adapters of their libraries; who encodes takes the same adapters from here. The kernels are
// in kernels/host/image_*.cc.
#pragma once

#include <cstdint>
#include <string_view>

#include "framework/io/jpeg_api.h"
#include "framework/io/png_api.h"
#include "framework/tensor/tensor.h"

namespace treenail {

struct JpegOptions {
  int64_t ratio = 1;
  bool fancy = true;
  int dct = 0;
  bool recover = false;
  double fraction = 1;
};

// channels: 0 for the file's own. Errors: InvalidArgument, Unimplemented (no library).
Tensor decode_jpeg(std::string_view contents, int64_t channels, const JpegOptions& options);
Tensor decode_png(std::string_view contents, int64_t channels, DType dtype);
Tensor decode_bmp(std::string_view contents, int64_t channels);

// ratio: as in JpegOptions; the header's height and width are those of the scaled image.
JpegHeader read_jpeg_header(std::string_view contents, int64_t ratio);

// Errors: Unimplemented, naming the library's packages.
const JpegApi& jpeg_adapter();
const PngApi& png_adapter();
// For what an adapter says about a failure.
inline constexpr uint64_t kImageProblemBytes = 200;

// Of the readers of formats: a file's bytes as adapters take them, and InvalidArgument for one that
// its adapter refuses: "Invalid PNG data, size 7: "why"".
inline const uint8_t* image_bytes(std::string_view contents) {
  return reinterpret_cast<const uint8_t*>(contents.data());
}
[[noreturn]] void refuse_image(const char* format, std::string_view contents, const char* why);

// Fails when a file of so many bytes cannot hold an image of so many: memory is not asked for on a
// header's word. `most`: what a byte may stand for in this format.
void check_plausible(std::string_view contents, int64_t height, int64_t width, double bytes,
                     double most);

}  // namespace treenail
