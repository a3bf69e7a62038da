// SPDX-License-Identifier: Apache-2.0
// What the PNG adapter offers its users (framework/io/png.cc, and the encoder in kernels/host):
// files in memory to pixels [height, width, channels] of 8 or 16 bits (the machine's byte order)
// and back, each call on the calling thread alone. Every function returns 0 on success; else `why`
// (of `size` bytes) says what is wrong.
#pragma once

#include <stdint.h>

#include "framework/base/adapter.h"

namespace treenail {

struct PngHeader {
  int64_t height, width;
  int32_t channels;    // of the pixels; palettes are looked up
  uint64_t raw_bytes;  // of all rows as the file holds them, before compression
};

// channels: 1 grey, 2 with alpha, 3 RGB, 4 with alpha; depth: 8 or 16 bits.
struct PngPixels {
  int64_t height, width;
  int32_t channels, depth;
};

struct PngApi {
  AdapterHeader header;
  const char* (*version)(void);
  int32_t (*read_header)(const uint8_t* data, uint64_t bytes, PngHeader* header, char* why,
                         uint64_t size);
  // Height and width as read_header said.
  int32_t (*decode)(const uint8_t* data, uint64_t bytes, const PngPixels* form, void* pixels,
                    char* why, uint64_t size);
  // compression: 0 to 9, or -1 for zlib's choice. *file is released by `release`.
  int32_t (*encode)(const void* pixels, const PngPixels* form, int32_t compression, uint8_t** file,
                    uint64_t* bytes, char* why, uint64_t size);
  void (*release)(uint8_t* file);
};

}  // namespace treenail
