// SPDX-License-Identifier: Apache-2.0
// Keys and values of a lookup table from the lines of a text file.
#pragma once

#include <cstdint>
#include <string>

#include "framework/base/function_ref.h"
#include "framework/tensor/tensor.h"

namespace treenail::host {

struct LookupColumns {
  static constexpr int64_t kLineNumber = -1;  // from 0, as int64
  static constexpr int64_t kWholeLine = -2;
  int64_t key = 0, value = 0;  // columns from 0, or one of these
  int64_t lines = -1;          // so many are read, and must be there; -1: all
  char delimiter = '\t';
};

struct LookupPairs {
  Tensor keys, values;  // [n]
};

// As in TensorFlow a carriage return is no part of a line. poll: from time to time; what it raises
// passes. Errors: InvalidArgument (dtypes that no column has, lines), those of opening a file,
// ResourceExhausted.
LookupPairs read_lookup_file(const std::string& path, const LookupColumns& columns, DType key,
                             DType value, FunctionRef<void()> poll);

}  // namespace treenail::host
