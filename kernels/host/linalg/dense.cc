// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/linalg/dense.h"

#include <string>

namespace treenail::host {

Error unsuitable_matrix(const char* words, const Shape& batch, int64_t index) {
  if (batch.rank() == 0) return invalid_argument(words);
  std::string place;
  for (int axis = batch.rank() - 1; axis >= 0; --axis) {
    const int64_t extent = batch.dim(axis);
    place = concat(index % extent, place.empty() ? "" : ",", place);
    index /= extent;
  }
  return invalid_argument(words, " The first such matrix is [", place, "] of the batch ", batch);
}

}  // namespace treenail::host
