// SPDX-License-Identifier: Apache-2.0
// What a lookup table holds: rows of a key and a value, found by the key's hash. Rows lie side by
// side in the order in which their keys came, whatever the hashes are, so that giving all of them
// is a copy. All memory is tensors': it is counted for whoever inserts, and refused beyond the
// limit.
#pragma once

#include <cstdint>
#include <span>

#include "framework/tensor/tensor.h"

namespace treenail {

class LookupRows {
 public:
  static constexpr int64_t kAbsent = -1;

  // key: int32, int64 or string; value: plain bytes or string.
  LookupRows(DType key, DType value, const Shape& value_shape);

  int64_t size() const { return size_; }
  // Copies: [size], [size, ...].
  Tensor keys() const;
  Tensor values() const;

  // The value of element i of `keys`, or of `otherwise` where there is none, as element i of `out`,
  // for i in [begin, end).
  void find(const Tensor& keys, const Tensor& otherwise, int64_t begin, int64_t end,
            Tensor& out) const;
  // values [..., value shape] of keys; all of them, or none where it throws. Errors:
  // ResourceExhausted.
  void insert(const Tensor& keys, const Tensor& values);
  // The same; FailedPrecondition where a key has another value already, and then some are in.
  void insert_new(const Tensor& keys, const Tensor& values);
  // The last row moves to the place of one that is taken out.
  void remove(const Tensor& keys);
  // Whether these are all keys, with their values, in any order.
  bool is_same(const Tensor& keys, const Tensor& values) const;

 private:
  template <class Key>
  int64_t row_of(const Key& key, uint32_t tag) const;
  template <class Key>
  void fetch(std::span<const uint32_t> tags) const;
  template <class Key>
  void find_rows(const Key* keys, std::span<int64_t> rows) const;  // at most kBatch
  template <class Key>
  uint64_t& slot_of(const Key& key, uint32_t tag);
  template <class Key>
  int64_t count_new(const Tensor& keys) const;
  template <class Key>
  void put_all(const Tensor& keys, const Tensor& values, bool change);
  template <class Key>
  void remove_one(const Key& key);
  template <class Key>
  bool all_there(const Tensor& keys, const Tensor& values) const;
  template <class Key>
  void grow(int64_t rows);
  void vacate(uint64_t slot);
  bool equal_value(const Tensor& values, int64_t i, int64_t row) const;
  void copy_value(const Tensor& from, int64_t i, Tensor& to, int64_t at) const;
  [[noreturn]] void throw_other_value(const Tensor& keys, const Tensor& values, int64_t i,
                                      int64_t row) const;

  Shape value_shape_;
  int64_t value_elements_;  // of one value
  size_t value_bytes_;      // of one value that is plain bytes
  int64_t size_ = 0;
  Tensor keys_, values_;  // [capacity], [capacity, ...]
  // Open addressing, linear probing: the hash's upper half << 32 | row + 1; 0: free. A power of two
  // that is at least 1.5 times the capacity.
  Tensor slots_;
  uint64_t mask_ = 0;
};

}  // namespace treenail
