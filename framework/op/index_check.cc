// SPDX-License-Identifier: Apache-2.0
#include "framework/op/index_check.h"

#include <span>
#include <string>

#include "framework/base/error.h"

namespace treenail {

void throw_bad_index(std::string_view name, const Shape& shape, int64_t flat, int64_t index, int64_t limit) {
  std::string place;
  for (int axis = shape.rank(); axis-- > 0;) {
    const std::string coordinate = std::to_string(flat % shape.dim(axis));
    place = place.empty() ? coordinate : concat(coordinate, ",", place);
    flat /= shape.dim(axis);
  }
  if (!place.empty()) place = concat("[", place, "]");
  throw invalid_argument(name, place, " = ", index, " is not in [0, ", limit, ")");
}

void check_indices(std::string_view name, const Tensor& indices, int64_t limit) {
  dispatch<int32_t, int64_t>(indices.dtype(), [&]<class Index>() {
    const std::span<const Index> values = indices.values<Index>();
    const uint64_t bound = static_cast<uint64_t>(limit);
    bool bad = false;
    for (Index index : values) bad |= static_cast<uint64_t>(static_cast<int64_t>(index)) >= bound;
    if (!bad) return;
    for (size_t i = 0; i < values.size(); ++i) {
      if (static_cast<uint64_t>(static_cast<int64_t>(values[i])) >= bound) {
        throw_bad_index(name, indices.shape(), static_cast<int64_t>(i), static_cast<int64_t>(values[i]), limit);
      }
    }
  });
}

void check_row_updates(const Shape& target, const Shape& indices, const Shape& updates) {
  if (target.rank() < 1) throw invalid_argument("a scalar has no rows to update");
  if (updates.rank() == 0) return;
  if (indices.rank() + target.rank() - 1 == updates.rank() &&
      updates == indices.concatenated(target.removed(0))) {
    return;
  }
  throw invalid_argument("Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
                         "updates.shape ", updates, ", indices.shape ", indices, ", params.shape ", target);
}

}  // namespace treenail
