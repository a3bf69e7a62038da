// SPDX-License-Identifier: Apache-2.0
// Places in one block of scratch memory, each on a cache line of its own.
#pragma once

#include <cstddef>
#include <cstdint>

#include "framework/base/error.h"

namespace treenail::host {

class ScratchLayout {
 public:
  // The offset of rows * columns elements. Errors: ResourceExhausted when they cannot be counted.
  template <class C>
  size_t take(int64_t rows, int64_t columns = 1) {
    return take_bytes(rows, columns, sizeof(C));
  }
  size_t take_bytes(int64_t rows, int64_t columns, size_t size) {
    constexpr int64_t kMost = int64_t{1} << 60, kUnit = 64;
    int64_t bytes = 0;
    if (__builtin_mul_overflow(rows, columns, &bytes) ||
        __builtin_mul_overflow(bytes, static_cast<int64_t>(size), &bytes) ||
        bytes > kMost - bytes_) {
      throw resource_exhausted("scratch memory of ", rows, " by ", columns,
                               " elements cannot be addressed");
    }
    const int64_t offset = bytes_;
    bytes_ += (bytes + kUnit - 1) / kUnit * kUnit;
    return static_cast<size_t>(offset);
  }
  size_t bytes() const { return static_cast<size_t>(bytes_); }

 private:
  int64_t bytes_ = 0;
};

}  // namespace treenail::host
