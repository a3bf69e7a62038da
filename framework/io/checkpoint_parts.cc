// SPDX-License-Identifier: Apache-2.0
// See checkpoint_parts.h.
#include "framework/io/checkpoint_parts.h"

#include "framework/base/error.h"

namespace treenail {

void SavedParts::add(std::string_view name, DType dtype, const TensorSlice& slice) {
  const auto at = saved_.find(name);
  if (at == saved_.end()) {
    Saved& made = saved_.emplace(std::string(name), Saved{dtype, slice.full, {}}).first->second;
    if (!slice.is_whole()) made.slices.push_back(slice);
    return;
  }
  Saved& saved = at->second;
  if (saved.slices.empty() || slice.is_whole()) {
    throw invalid_argument("tensor \"", name, "\" is saved twice");
  }
  if (saved.dtype != dtype || !(saved.full == slice.full)) {
    throw invalid_argument("tensor \"", name, "\" is saved as parts of ", saved.dtype, saved.full,
                           " and of ", dtype, slice.full);
  }
  for (const TensorSlice& other : saved.slices) {
    TensorSlice common;
    if (TensorSlice::intersection(other, slice, &common)) {
      throw invalid_argument("parts of tensor \"", name, "\" overlap: \"", other.text(),
                             "\" and \"", slice.text(), "\"");
    }
  }
  saved.slices.push_back(slice);
}

}  // namespace treenail
