// SPDX-License-Identifier: Apache-2.0
#include "framework/op/index_check.h"

#include <algorithm>
#include <span>
#include <string>

#include "framework/base/error.h"

namespace treenail {
namespace {

// "[1,0]": the coordinates of element `flat` of an array of that shape; "" for a scalar.
std::string place_text(const Shape& shape, int64_t flat) {
  std::string place;
  for (int axis = shape.rank(); axis-- > 0;) {
    const std::string coordinate = std::to_string(flat % shape.dim(axis));
    place = place.empty() ? coordinate : concat(coordinate, ",", place);
    flat /= shape.dim(axis);
  }
  return place.empty() ? place : concat("[", place, "]");
}

template <class Index>
void flatten(const Tensor& indices, const Shape& params, int64_t* rows) {
  const int64_t count = indices.shape().sub(0, indices.rank() - 1).num_elements();
  const int depth = static_cast<int>(indices.dim(indices.rank() - 1));
  const Index* at = indices.data<Index>();
  for (int64_t i = 0; i < count; ++i, at += depth) {
    int64_t row = 0;
    bool bad = false;
    for (int k = 0; k < depth; ++k) {
      const int64_t index = at[k];
      bad = bad || index < 0 || index >= params.dim(k);
      row = row * params.dim(k) + (bad ? 0 : index);
    }
    rows[i] = row;
    if (!bad) continue;
    int64_t given[kMaxRank];
    std::copy(at, at + depth, given);
    throw_bad_place(indices.shape(), i, {given, static_cast<size_t>(depth)}, params);
  }
}

}  // namespace

void throw_bad_index(std::string_view name, const Shape& shape, int64_t flat, int64_t index,
                     int64_t limit) {
  throw invalid_argument(name, place_text(shape, flat), " = ", index, " is not in [0, ", limit,
                         ")");
}

void throw_bad_place(const Shape& indices, int64_t flat, std::span<const int64_t> index,
                     const Shape& params) {
  std::string given;
  for (const int64_t each : index) given += concat(given.empty() ? "" : ", ", each);
  throw invalid_argument("indices", place_text(indices.sub(0, indices.rank() - 1), flat), " = [",
                         given, "] does not index into param shape ", params);
}

void flatten_indices(const Tensor& indices, const Shape& params, int64_t* rows) {
  dispatch<int32_t, int64_t>(indices.dtype(),
                             [&]<class Index>() { flatten<Index>(indices, params, rows); });
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
        throw_bad_index(name, indices.shape(), static_cast<int64_t>(i),
                        static_cast<int64_t>(values[i]), limit);
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
  throw invalid_argument(
      "Must have updates.shape = indices.shape + params.shape[1:] or updates.shape = [], got "
      "updates.shape ",
      updates, ", indices.shape ", indices, ", params.shape ", target);
}

void check_nd_updates(const Shape& target, const Shape& indices, const Shape& updates) {
  if (indices.rank() < 1) throw invalid_argument("indices must be at least a vector, got a scalar");
  const int64_t depth = indices.dim(indices.rank() - 1);
  if (depth > target.rank()) {
    throw invalid_argument("index innermost dimension length must be <= shape rank; saw: ", depth,
                           " vs. ", target.rank());
  }
  const Shape outer = indices.sub(0, indices.rank() - 1);
  const Shape inner = target.sub(static_cast<int>(depth), target.rank());
  if (outer.rank() + inner.rank() == updates.rank() && updates == outer.concatenated(inner)) return;
  throw invalid_argument(
      "Must have updates.shape = indices.shape[:-1] + shape[indices.shape[-1]:], got "
      "updates.shape ",
      updates, ", indices.shape ", indices, ", shape ", target);
}

}  // namespace treenail
