// SPDX-License-Identifier: Apache-2.0
// What optimisers' updates have in common on every device: where their inputs stand, and the locks
// of variable and slots.
#pragma once

#include <array>
#include <optional>

#include "framework/op/op_def.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/state/variable.h"
#include "kernels/elementwise/update_options.h"

namespace treenail::host {

inline constexpr int kMaxUpdateVariables = 4;  // var and up to three slots
inline constexpr int kMaxUpdateScalars = 6;

// Handles first, then scalars, gradient, indices.
struct UpdatePlaces {
  int variables = 0;
  int num_scalars = 0;
  int scalars[kMaxUpdateScalars] = {};
  int gradient = 0;
  int indices = -1;
  UpdateOptions options;

  static UpdatePlaces of(const OpInstance& op);
};

// The locks of an update's variables, taken in the order of addresses: two updates that share
// variables cannot wait for each other in a circle.
class LockedVariables {
 public:
  // The first `count` inputs. Errors: InvalidArgument where one is given twice, or shapes differ;
  // as Variable::Write's.
  LockedVariables(RunContext& c, int count, DType dtype);
  const Shape& shape() const { return value(0).shape(); }
  void pointers(void** out) const;
  // Errors: InvalidArgument unless a gradient of that shape fits.
  void check_gradient(const Shape& gradient) const;
  // The same for one of `count` rows.
  void check_row_gradient(const Shape& gradient, int64_t count) const;

 private:
  Tensor& value(int i) const { return writes_[static_cast<size_t>(i)]->value(); }

  int count_;
  std::array<Variable*, kMaxUpdateVariables> variables_ = {};
  std::array<std::optional<Variable::Write>, kMaxUpdateVariables> writes_;
};

}  // namespace treenail::host
