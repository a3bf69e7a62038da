// SPDX-License-Identifier: Apache-2.0
// BMP files: bitmaps that are not compressed. Source: Microsoft's BITMAPFILEHEADER and
// BITMAPINFOHEADER. Rows lie from the bottom up unless the height is negative,
// each padded to four bytes.
#include <cstdint>
#include <cstring>
#include <string_view>

#include "framework/base/error.h"
#include "framework/io/image_file.h"

namespace treenail {
namespace {

// A little-endian number of `bytes` bytes, which the caller knows to be there.
uint32_t number_at(std::string_view file, size_t at, int bytes) {
  uint32_t x = 0;
  for (int i = 0; i < bytes; ++i)
    x |= uint32_t{static_cast<uint8_t>(file[at + static_cast<size_t>(i)])} << (8 * i);
  return x;
}

struct Bitmap {
  int64_t height = 0, width = 0, channels = 0, line = 0;
  bool downwards = false;
  const uint8_t* pixels = nullptr;
  const uint8_t* palette = nullptr;  // grey values of 8-bit pixels, four bytes each
  int64_t colors = 0;
};

constexpr size_t kFileHeader = 14, kInfoHeader = 40;

// The palette of an 8-bit image; only grey ones are known.
void read_palette(std::string_view file, int64_t offset, Bitmap& b) {
  const int64_t at = static_cast<int64_t>(kFileHeader) + number_at(file, 14, 4);
  const uint32_t used = number_at(file, 46, 4);
  b.colors = used == 0 ? 256 : used;
  if (b.colors > 256 || at + 4 * b.colors > offset) {
    b.colors = 0;  // no palette: pixels are grey values
    return;
  }
  b.palette = reinterpret_cast<const uint8_t*>(file.data()) + at;
  for (int64_t i = 0; i < b.colors; ++i) {
    const uint8_t* color = b.palette + 4 * i;
    if (color[0] != color[1] || color[1] != color[2])
      throw unimplemented("BMP files with a palette of colors are not decoded");
  }
}

Bitmap read_header(std::string_view file) {
  if (file.size() < kFileHeader + kInfoHeader || !file.starts_with("BM"))
    throw invalid_argument("Incomplete bmp content, got ", file.size(),
                           " bytes that are no BMP file");
  const int64_t offset = number_at(file, 10, 4), size = static_cast<int64_t>(file.size());
  const auto width = static_cast<int32_t>(number_at(file, 18, 4));
  const auto height = static_cast<int32_t>(number_at(file, 22, 4));
  const uint32_t bits = number_at(file, 28, 2), compression = number_at(file, 30, 4);
  constexpr uint32_t kPlain = 0, kMasks = 3;
  Bitmap b;
  b.width = width;
  b.downwards = height < 0;
  b.height = height < 0 ? -int64_t{height} : int64_t{height};
  if (width < 1 || b.height < 1)
    throw invalid_argument("a BMP image of ", height, " rows of ", width, " pixels");
  if (bits != 8 && bits != 24 && bits != 32)
    throw invalid_argument("Number of channels must be 1, 3 or 4: the BMP image has ", bits,
                           " bits per pixel");
  if (compression != kPlain && (compression != kMasks || bits != 32))
    throw unimplemented("BMP files of compression ", compression, " are not decoded");
  b.channels = bits / 8;
  b.line = (b.width * b.channels + 3) / 4 * 4;
  // In double: the product of what a header says may exceed int64.
  const double needed = static_cast<double>(offset + b.width * b.channels) +
                        static_cast<double>(b.height - 1) * static_cast<double>(b.line);
  if (offset < static_cast<int64_t>(kFileHeader + kInfoHeader) ||
      needed > static_cast<double>(size)) {
    throw invalid_argument("Incomplete bmp content, requires at least ", needed, " bytes, got ",
                           size, " bytes");
  }
  if (bits == 8) read_palette(file, offset, b);
  b.pixels = reinterpret_cast<const uint8_t*>(file.data()) + offset;
  return b;
}

// Blue, green, red, and alpha where there is one.
void copy_line(const Bitmap& b, const uint8_t* from, uint8_t* to) {
  if (b.channels == 1) {
    for (int64_t x = 0; x < b.width; ++x)
      to[x] = from[x] < b.colors ? b.palette[4 * from[x]] : from[x];
    return;
  }
  for (int64_t x = 0; x < b.width; ++x, from += b.channels, to += b.channels) {
    for (int i = 0; i < 3; ++i) to[i] = from[2 - i];
    if (b.channels == 4) to[3] = from[3];
  }
}

}  // namespace

Tensor decode_bmp(std::string_view contents, int64_t channels) {
  const Bitmap b = read_header(contents);
  if (channels != 0 && channels != b.channels) {
    throw invalid_argument("channels attribute ", channels,
                           " does not match bits per pixel from file ", 8 * b.channels);
  }
  Tensor image(DType::kUInt8, Shape({b.height, b.width, b.channels}));
  auto* to = image.data<uint8_t>();
  for (int64_t y = 0; y < b.height; ++y, to += b.width * b.channels)
    copy_line(b, b.pixels + (b.downwards ? y : b.height - 1 - y) * b.line, to);
  return image;
}

}  // namespace treenail
