// SPDX-License-Identifier: Apache-2.0
// What the JPEG adapter offers its users (framework/io/jpeg.cc, and the encoder in kernels/host):
// files in memory to 8-bit pixels [height, width, channels] and back, each call on the calling
// thread alone. Every function returns 0 on success; else `why` (of `size` bytes) says what is
// wrong.
#pragma once

#include <stdint.h>

#include "framework/base/adapter.h"

namespace treenail {

struct JpegHeader {
  int64_t height, width;  // of the pixels, after scaling
  int32_t components;     // in the file: 1 grey, 3 YCbCr or RGB, 4 CMYK
  int32_t arithmetic;     // arithmetic coding: a pixel may take next to no bytes
};

struct JpegDecoding {
  int32_t channels;       // 1 or 3
  int32_t ratio;          // 1, 2, 4 or 8: pixels become fewer by this factor
  int32_t fancy;          // smooth upsampling of colors
  int32_t dct;            // 0: the library's choice, 1: fast, 2: accurate
  int32_t recover;        // a file that ends early gives what there is, black below
  double fraction;        // of the rows that must be there then
  int64_t height, width;  // as read_header said
};

struct JpegEncoding {
  int64_t height, width;
  int32_t channels;  // 1 or 3
  int32_t quality;   // 0 to 100
  int32_t progressive, optimize, downsample;
  int32_t density_unit;  // 1: per inch, 2: per centimetre
  int32_t x_density, y_density;
  const char* xmp;  // not null-terminated
  uint64_t xmp_size;
};

struct JpegApi {
  AdapterHeader header;
  const char* (*version)(void);
  int32_t (*read_header)(const uint8_t* data, uint64_t bytes, int32_t ratio, JpegHeader* header,
                         char* why, uint64_t size);
  int32_t (*decode)(const uint8_t* data, uint64_t bytes, const JpegDecoding* decoding,
                    uint8_t* pixels, char* why, uint64_t size);
  // *file is released by `release`.
  int32_t (*encode)(const uint8_t* pixels, const JpegEncoding* encoding, uint8_t** file,
                    uint64_t* bytes, char* why, uint64_t size);
  void (*release)(uint8_t* file);
};

}  // namespace treenail
