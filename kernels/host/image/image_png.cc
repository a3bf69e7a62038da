// SPDX-License-Identifier: Apache-2.0
// DecodePng and EncodePng of framework/ops/image_codecs.cc, by the PNG adapter.
#include <cstdint>
#include <memory>

#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/io/image_file.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/string_element.h"

namespace treenail::host {
namespace {

void encode(RunContext& c, const PngPixels& form, int32_t compression) {
  char why[kImageProblemBytes] = "";
  uint8_t* file = nullptr;
  uint64_t bytes = 0;
  const PngApi& png = png_adapter();
  if (png.encode(c.input(0).raw(), &form, compression, &file, &bytes, why, sizeof why) != 0)
    throw invalid_argument("the image cannot be encoded as PNG: ", quoted(why));
  const std::unique_ptr<uint8_t, void (*)(uint8_t*)> owner(file, png.release);
  *c.output(0).data<StringElement>() =
      StringElement({reinterpret_cast<const char*>(file), static_cast<size_t>(bytes)});
}

std::unique_ptr<Kernel> prepare_encode(const PrepareContext& p) {
  const Shape& image = p.input_shape(0);
  const PngPixels form = {image.dim(0), image.dim(1), static_cast<int32_t>(image.dim(2)),
                          p.input_type(0) == DType::kUInt16 ? 16 : 8};
  if (form.height < 1 || form.width < 1 || form.height > INT32_MAX || form.width > INT32_MAX)
    throw invalid_argument("an image of ", image, " cannot be a PNG file");
  const auto compression = static_cast<int32_t>(p.op().get_int("compression"));
  return make_kernel([form, compression](RunContext& c) { encode(c, form, compression); },
                     20.0 * static_cast<double>(image.num_elements()));
}

}  // namespace

void register_image_png_kernels(KernelRegistry& r) {
  r.add("EncodePng", {}, prepare_encode);
  r.add("DecodePng", {}, [](const PrepareContext& p) {
    const int64_t channels = p.op().get_int("channels");
    return make_kernel(
        [channels, dtype = p.output_type(0)](RunContext& c) {
          c.set_output(0, decode_png(c.input(0).data<StringElement>()->view(), channels, dtype));
        },
        1e6);
  });
}

}  // namespace treenail::host
