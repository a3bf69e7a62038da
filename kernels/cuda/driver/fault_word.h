// SPDX-License-Identifier: Apache-2.0
// How a kernel tells that it was given what it may not take: it lowers a word in the device's
// memory to the place of the first such element, and goes on as if that were harmless. When the
// queue is past it the host reads the word. The device's side: language/fault.h.
#pragma once

#include <array>
#include <cstdint>
#include <exception>
#include <memory>
#include <utility>

#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"
#include "kernels/cuda/driver/device.h"

namespace treenail::cuda {

class FaultWord {
 public:
  // Queued: no fault yet.
  explicit FaultWord(CudaDevice& device);
  ~FaultWord();
  FaultWord(const FaultWord&) = delete;
  FaultWord& operator=(const FaultWord&) = delete;

  // For the kernel.
  unsigned long long* word() const { return words_; }
  // Queued, after the kernel: should it have found a fault, `error(place, value)` throws what has
  // happened, and `failure(std::exception_ptr)` is called. `values`: what was looked at, int32 or
  // int64, as it is then.
  template <class Fail, class F>
  void report(const void* values, DType dtype, const Fail& failure, F error) const {
    report_row(
        values, dtype, 1, failure,
        [error = std::move(error)](int64_t place, const int64_t* row) { error(place, row[0]); });
  }
  // Where places are of rows, `width` values each: error(place, values of the row).
  template <class Fail, class F>
  void report_row(const void* values, DType dtype, int width, const Fail& failure, F error) const {
    device_.when_done([found = read(values, dtype, width), failure,
                       error = std::move(error)](const std::exception_ptr& lost) {
      if (lost != nullptr || (*found)[0] == kNone) return;
      try {
        int64_t row[kMaxRank] = {};
        for (size_t i = 0; i < kMaxRank; ++i) row[i] = static_cast<int64_t>((*found)[1 + i]);
        error(static_cast<int64_t>((*found)[0]), row);
      } catch (...) {
        failure(std::current_exception());
      }
    });
  }

 private:
  static constexpr unsigned long long kNone = ~0ull;
  // The place, and the values that lay there.
  using Words = std::array<unsigned long long, 1 + kMaxRank>;

  // Queued: the words' copy in host memory.
  std::shared_ptr<Words> read(const void* values, DType dtype, int width) const;

  CudaDevice& device_;
  unsigned long long* const words_;
};

}  // namespace treenail::cuda
