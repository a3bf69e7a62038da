// SPDX-License-Identifier: Apache-2.0
// Image files as tensors of pixels and back: JPEG, PNG, BMP. Computed in
// kernels/host/image/image_codecs.cc, image_jpeg.cc and image_png.cc.
#include <cstdint>
#include <initializer_list>
#include <string>

#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"
#include "framework/tensor/shape.h"

namespace treenail {
namespace {

// Which numbers of channels one may ask for, as bits.
void decode_shape(ShapeContext& c, unsigned allowed) {
  c.with_rank(0, 0);
  const int64_t channels = c.op().get_int("channels");
  if (channels < 0 || channels > 4 || ((allowed >> channels) & 1U) == 0)
    throw invalid_argument("channels = ", channels, " is not supported by ", c.op().name());
  c.set_output(0, PartialShape({kUnknown, kUnknown, channels == 0 ? kUnknown : channels}));
}

void decode_jpeg_shape(ShapeContext& c) {
  const int64_t ratio = c.op().get_int("ratio");
  if (ratio != 1 && ratio != 2 && ratio != 4 && ratio != 8)
    throw invalid_argument("ratio must be 1, 2, 4, or 8, got ", ratio);
  decode_shape(c, 0b1011);
}
void decode_any_shape(ShapeContext& c) { decode_shape(c, 0b11011); }

void jpeg_shape_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  c.set_output(0, PartialShape({3}));
}

void check_channels(const PartialShape& image, unsigned allowed) {
  const int64_t channels = image[2];
  if (channels == kUnknown) return;
  if (channels < 1 || channels > 4 || ((allowed >> channels) & 1U) == 0)
    throw invalid_argument("image must not have ", channels, " channels: it is ", image);
}

void encode_png_shape(ShapeContext& c) {
  const int64_t level = c.op().get_int("compression");
  if (level < -1 || level > 9)
    throw invalid_argument("compression must be in [-1, 9], got ", level);
  check_channels(c.with_rank(0, 3), 0b11110);
  c.set_output(0, PartialShape(std::initializer_list<int64_t>{}));
}

void check_in(const OpInstance& op, const char* name, int64_t least, int64_t most) {
  const int64_t x = op.get_int(name);
  if (x < least || x > most)
    throw invalid_argument(name, " must be in [", least, ", ", most, "], got ", x);
}

void encode_jpeg_shape(ShapeContext& c) {
  constexpr int64_t kMostDensity = 65535;
  check_in(c.op(), "quality", 0, 100);
  check_in(c.op(), "x_density", 0, kMostDensity);
  check_in(c.op(), "y_density", 0, kMostDensity);
  const std::string& format = c.op().get_string("format");
  const unsigned allowed = format.empty() ? 0b1010 : format == "rgb" ? 0b1000 : 0b0010;
  check_channels(c.with_rank(0, 3), allowed);
  c.set_output(0, PartialShape(std::initializer_list<int64_t>{}));
}

void declare_decoders(OpRegistry& r) {
  r.op("DecodeJpeg", HostAccess::kNone)
      .input("contents: string")
      .output("image: uint8")
      .attr("channels: int = 0")
      .attr("ratio: int = 1")
      .attr("fancy_upscaling: bool = true")
      .attr("try_recover_truncated: bool = false")
      .attr("acceptable_fraction: float = 1")
      .attr("dct_method: {'', 'INTEGER_FAST', 'INTEGER_ACCURATE'} = ''")
      .shape(decode_jpeg_shape)
      .data_dependent_shape()
      .not_differentiable()
      .doc(R"(Decodes a JPEG file to pixels [height, width, channels].

channels: 1 for grey, 3 for red, green and blue, 0 for what the file holds (CMYK becomes RGB). ratio: 1, 2, 4 or 8, by which
the image shrinks while it is decoded. fancy_upscaling: smooth colors where the file holds fewer of them.
try_recover_truncated: a file that ends early gives what there is, black below, when the fraction acceptable_fraction of its
rows is there. dct_method: the transform, by default the library's choice.
Errors: InvalidArgument for what is no JPEG or ends early, Unimplemented in a build without libjpeg.)");

  r.op("ExtractJpegShape", HostAccess::kNone)
      .input("contents: string")
      .output("image_shape: output_type")
      .attr("output_type: {int32, int64} = int32")
      .shape(jpeg_shape_shape)
      .not_differentiable()
      .doc(R"(Reads height, width and channels of a JPEG file without decoding it.

Errors: InvalidArgument for what is no JPEG, Unimplemented in a build without libjpeg.)");

  r.op("DecodePng", HostAccess::kNone)
      .input("contents: string")
      .output("image: dtype")
      .attr("channels: int = 0")
      .attr("dtype: {uint8, uint16} = uint8")
      .shape(decode_any_shape)
      .data_dependent_shape()
      .not_differentiable()
      .doc(R"(Decodes a PNG file to pixels [height, width, channels].

channels: 1 for grey, 3 for red, green and blue, 4 with alpha, 0 for what the file holds (palettes are looked up). dtype
uint16 keeps all of 16-bit pixels and multiplies others by 257.
Errors: InvalidArgument for what is no PNG, Unimplemented in a build without libpng.)");

  r.op("DecodeBmp", HostAccess::kNone)
      .input("contents: string")
      .output("image: uint8")
      .attr("channels: int = 0")
      .shape(decode_any_shape)
      .data_dependent_shape()
      .not_differentiable()
      .doc(
          R"(Decodes an uncompressed BMP file of 8 (grey), 24 or 32 bits to pixels [height, width, channels].

channels: 1, 3 or 4, and then the file must have as many; 0 for what the file holds.
Errors: InvalidArgument for what is no such file.)");

  r.op("DecodeImage", HostAccess::kNone)
      .input("contents: string")
      .output("image: dtype")
      .attr("channels: int = 0")
      .attr("dtype: {uint8, uint16} = uint8")
      .shape(decode_any_shape)
      .data_dependent_shape()
      .not_differentiable()
      .doc(R"(Decodes a JPEG, PNG or BMP file, whichever it is, to pixels [height, width, channels].

channels as in the decoder of the format. dtype uint16 keeps all of 16-bit PNG pixels and multiplies those of 8 bits by 257.
Errors: InvalidArgument for another format or a file that cannot be decoded, Unimplemented in a build without its library.)");
}

}  // namespace

void register_image_codecs_ops(OpRegistry& r) {
  declare_decoders(r);

  r.op("EncodeJpeg", HostAccess::kNone)
      .input("image: uint8")
      .output("contents: string")
      .attr("format: {'', 'grayscale', 'rgb'} = ''")
      .attr("quality: int = 95")
      .attr("progressive: bool = false")
      .attr("optimize_size: bool = false")
      .attr("chroma_downsampling: bool = true")
      .attr("density_unit: {'in', 'cm'} = 'in'")
      .attr("x_density: int = 300")
      .attr("y_density: int = 300")
      .attr("xmp_metadata: string = ''")
      .shape(encode_jpeg_shape)
      .not_differentiable()
      .doc(R"(Encodes pixels [height, width, channels] as a JPEG file.

format: 'grayscale' for 1 channel, 'rgb' for 3, by default what the channels say. quality is in [0, 100]. progressive and
optimize_size make smaller files in more time; chroma_downsampling keeps a quarter of the colors. x_density and y_density
count pixels per density_unit. xmp_metadata goes into the file's header.
Errors: InvalidArgument for other channels, an empty image or one of more than 65500 rows or columns, Unimplemented in a build
without libjpeg.)");

  r.op("EncodePng", HostAccess::kNone)
      .input("image: T")
      .output("contents: string")
      .attr("compression: int = -1")
      .attr("T: {uint8, uint16} = uint8")
      .shape(encode_png_shape)
      .not_differentiable()
      .doc(R"(Encodes pixels [height, width, channels] as a PNG file of 8 or 16 bits.

1 channel is grey, 2 grey with alpha, 3 red, green and blue, 4 with alpha. compression: 0 (none) to 9 (most), -1 for zlib's
choice.
Errors: InvalidArgument for other channels or an empty image, Unimplemented in a build without libpng.)");

  r.finish("image_codecs");
}

}  // namespace treenail
