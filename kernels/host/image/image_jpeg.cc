// SPDX-License-Identifier: Apache-2.0
// DecodeJpeg, ExtractJpegShape and EncodeJpeg of framework/ops/image_codecs.cc, by the JPEG
// adapter.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/io/image_file.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/string_element.h"

namespace treenail::host {
namespace {

template <class T>
std::unique_ptr<Kernel> shape_kernel() {
  return make_kernel(
      [](RunContext& c) {
        const JpegHeader h = read_jpeg_header(c.input(0).data<StringElement>()->view(), 1);
        const T shape[] = {static_cast<T>(h.height), static_cast<T>(h.width),
                           static_cast<T>(h.components)};
        std::copy_n(shape, 3, c.output(0).data<T>());
      },
      1e4);
}

std::unique_ptr<Kernel> prepare_decode(const PrepareContext& p) {
  JpegOptions o;
  const std::string& dct = p.op().get_string("dct_method");
  o.ratio = p.op().get_int("ratio");
  o.fancy = p.op().get_bool("fancy_upscaling");
  o.dct = dct == "INTEGER_FAST" ? 1 : dct == "INTEGER_ACCURATE" ? 2 : 0;
  o.recover = p.op().get_bool("try_recover_truncated");
  o.fraction = p.op().get_float("acceptable_fraction");
  const int64_t channels = p.op().get_int("channels");
  return make_kernel(
      [o, channels](RunContext& c) {
        c.set_output(0, decode_jpeg(c.input(0).data<StringElement>()->view(), channels, o));
      },
      1e6);
}

void encode(RunContext& c, const JpegEncoding& form, const std::string& xmp) {
  JpegEncoding e = form;
  e.xmp = xmp.data();
  e.xmp_size = xmp.size();
  char why[kImageProblemBytes] = "";
  uint8_t* file = nullptr;
  uint64_t bytes = 0;
  const JpegApi& jpeg = jpeg_adapter();
  if (jpeg.encode(c.input(0).data<uint8_t>(), &e, &file, &bytes, why, sizeof why) != 0)
    throw invalid_argument("JPEG encoding failed: ", quoted(why));
  const std::unique_ptr<uint8_t, void (*)(uint8_t*)> owner(file, jpeg.release);
  *c.output(0).data<StringElement>() =
      StringElement({reinterpret_cast<const char*>(file), static_cast<size_t>(bytes)});
}

std::unique_ptr<Kernel> prepare_encode(const PrepareContext& p) {
  const Shape& image = p.input_shape(0);
  const OpInstance& op = p.op();
  constexpr int64_t kMost = 65500;
  if (std::min(image.dim(0), image.dim(1)) < 1 || std::max(image.dim(0), image.dim(1)) > kMost)
    throw invalid_argument("an image of ", image, " cannot be a JPEG file");
  JpegEncoding e = {};
  e.height = image.dim(0);
  e.width = image.dim(1);
  e.channels = static_cast<int32_t>(image.dim(2));
  e.quality = static_cast<int32_t>(op.get_int("quality"));
  e.progressive = op.get_bool("progressive") ? 1 : 0;
  e.optimize = op.get_bool("optimize_size") ? 1 : 0;
  e.downsample = op.get_bool("chroma_downsampling") ? 1 : 0;
  e.density_unit = op.get_string("density_unit") == "in" ? 1 : 2;
  e.x_density = static_cast<int32_t>(op.get_int("x_density"));
  e.y_density = static_cast<int32_t>(op.get_int("y_density"));
  std::string xmp = op.get_string("xmp_metadata");
  if (!xmp.empty()) xmp = std::string("http://ns.adobe.com/xap/1.0/") + '\0' + xmp;
  constexpr size_t kMostMarker = 65533;
  if (xmp.size() > kMostMarker)
    throw invalid_argument("xmp_metadata is too long for a JPEG file: ", xmp.size(), " bytes");
  return make_kernel([e, xmp](RunContext& c) { encode(c, e, xmp); },
                     10.0 * static_cast<double>(image.num_elements()));
}

}  // namespace

void register_image_jpeg_kernels(KernelRegistry& r) {
  r.add("DecodeJpeg", {}, prepare_decode);
  r.add("EncodeJpeg", {}, prepare_encode);
  r.add("ExtractJpegShape", {}, [](const PrepareContext& p) {
    return p.output_type(0) == DType::kInt32 ? shape_kernel<int32_t>() : shape_kernel<int64_t>();
  });
}

}  // namespace treenail::host
