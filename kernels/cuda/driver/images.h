// SPDX-License-Identifier: Apache-2.0
// Device code that the build embeds into the plugin: a fat binary per .cu file.
#pragma once

#include <cstddef>

// In the table `treenail_cuda_images`, which the build generates and a null name ends.
struct treenail_cuda_image {
  const char* name;  // the file's, without .cu
  const unsigned char* begin;
  size_t bytes;
};

extern "C" const treenail_cuda_image treenail_cuda_images[];
