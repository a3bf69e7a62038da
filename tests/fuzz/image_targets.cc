// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/image_targets.h"

#include <cstdint>

#include "framework/base/error.h"
#include "framework/io/image_file.h"
#include "framework/io/png_stored.h"
#include "tests/fuzz/targets.h"

namespace treenail::test {
namespace {

void require_image(const Tensor& image) {
  fuzz_require(image.rank() == 3 && image.dim(2) >= 1 && image.dim(2) <= 4,
               "an image of another rank or number of channels");
}

// Nothing without the library that decodes.
std::vector<std::string> if_decoded(void (*run)(std::string_view), std::vector<std::string> files) {
  try {
    run(files.front());
  } catch (const Error& error) {
    if (error.code() == Code::kUnimplemented) return {};
    throw;
  }
  return files;
}

std::string from_hex(std::string_view text) {
  std::string bytes;
  const auto digit = [](char c) { return c <= '9' ? c - '0' : c - 'a' + 10; };
  for (size_t i = 0; i + 1 < text.size(); i += 2)
    bytes.push_back(static_cast<char>(digit(text[i]) * 16 + digit(text[i + 1])));
  return bytes;
}

std::string big(uint32_t value) {
  std::string bytes;
  for (int shift = 24; shift >= 0; shift -= 8) bytes.push_back(static_cast<char>(value >> shift));
  return bytes;
}

// ISO 3309's CRC-32, which PNG takes.
uint32_t crc32(std::string_view bytes) {
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) {
    crc ^= static_cast<unsigned char>(byte);
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (0xedb88320u & (0 - (crc & 1)));
  }
  return ~crc;
}

// A grey or colour JPEG of mean values only: tables of one code each, all coefficients zero
// (ITU T.81, baseline).
std::string jpeg(bool colour) {
  std::string file = from_hex("ffd8ffdb004300") + std::string(64, 3);
  file +=
      from_hex(colour ? "ffc00011080010001003012200021100031100" : "ffc0000b080008000801011100");
  for (const char table : {'\x00', '\x10'})
    file += from_hex("ffc40014") + table + '\1' + std::string(15, '\0') + '\0';
  file += from_hex(colour ? "ffda000c03010002000300003f00" : "ffda0008010100003f00");
  return file + from_hex(colour ? "000fffd9" : "3fffd9");
}

}  // namespace

void run_png(std::string_view input) {
  require_image(decode_png(input, 0, DType::kUInt8));
  require_image(decode_png(input, 4, DType::kUInt16));
}

std::vector<std::string> pngs() {
  const uint8_t pixels[] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12};
  return if_decoded(
      run_png,
      {encode_png_stored(pixels, 2, 2, 3),
       // 4 x 2, palette of four colours, one transparent, 4 bits each
       from_hex("89504e470d0a1a0a0000000d49484452000000040000000204030000008d8660500000000c504c5445"
                "000102030405060708090a0bdc4c389c0000000174524e5380ad5e5b460000000e49444154789c6360"
                "546630120000010b00675ae4c0bd0000000049454e44ae426082"),
       // 2 x 2, 16 bits, filtered by Paeth's rule
       from_hex("89504e470d0a1a0a0000000d4948445200000002000000021002000000ad4446300000001849444154"
                "789c636060646266616563e7e0e4e26641e6000005e400896bb133dc0000000049454e44ae426082"),
       // 3 x 3, one bit, interlaced
       from_hex("89504e470d0a1a0a0000000d49484452000000030000000301000000010954b8840000001249444154"
                "789c636860686070605800c40f00108c03018d43e8300000000049454e44ae426082")});
}

std::string repaired_png(std::string input) {
  const auto number = [&](size_t at) {
    uint32_t value = 0;
    for (size_t i = 0; i < 4; ++i) value = value << 8 | static_cast<unsigned char>(input[at + i]);
    return value;
  };
  for (size_t at = 8; at + 12 <= input.size();) {
    const size_t size = number(at);
    if (size > input.size() - at - 12) break;
    input.replace(at + 8 + size, 4, big(crc32(std::string_view(input).substr(at + 4, 4 + size))));
    at += 12 + size;
  }
  return input;
}

void run_jpeg(std::string_view input) {
  JpegOptions options;
  require_image(decode_jpeg(input, 0, options));
  options.ratio = 2;
  options.fancy = false;
  options.recover = true;
  options.fraction = 0.1;
  require_image(decode_jpeg(input, 3, options));
}

std::vector<std::string> jpegs() { return if_decoded(run_jpeg, {jpeg(false), jpeg(true)}); }

void run_bmp(std::string_view input) {
  require_image(decode_bmp(input, 0));
  require_image(decode_bmp(input, 3));
}

std::vector<std::string> bmps() {
  // 2 x 2 of 24 bits, rows of 8 bytes, the last row first.
  const std::string head = from_hex(
      "424d460000000000000036000000280000000200000002000000010018000000000010000000"
      "00000000000000000000000000000000");
  return {head + from_hex("01020304050600000708090a0b0c0000")};
}

}  // namespace treenail::test
