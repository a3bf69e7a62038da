// SPDX-License-Identifier: Apache-2.0
// Which tensors, and which parts of them, a checkpoint holds: no tensor twice, and parts that have
// one dtype and full shape and do not overlap, in whichever of its files they lie.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"
#include "framework/tensor/tensor_slice.h"

namespace treenail {

class SavedParts {
 public:
  // Errors: InvalidArgument (the tensor is there already; another dtype or shape than its other
  // parts; parts that overlap).
  void add(std::string_view name, DType dtype, const TensorSlice& slice);

 private:
  struct Saved {
    DType dtype;
    Shape full;
    std::vector<TensorSlice> slices;  // empty: whole
  };
  std::map<std::string, Saved, std::less<>> saved_;
};

}  // namespace treenail
