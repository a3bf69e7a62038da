// SPDX-License-Identifier: Apache-2.0
// Division of integers and toward whole numbers, remainders, powers of integers. Kernels of
// integers take one parameter more, int32_t* error, into which an element without a result writes
// what is wrong (division_errors.h); it gets 0.
#include "kernels/cuda/elementwise/division_errors.h"
#include "kernels/cuda/elementwise/kernels.h"
#include "kernels/elementwise/division.h"

namespace treenail::gpu {

#define TN_FUNCTION(function)             \
  struct function {                       \
    template <class T>                    \
    TN_DEVICE static T apply(T a, T b) {  \
      return elementwise::function(a, b); \
    }                                     \
  };
TN_FUNCTION(truncate_div)
TN_FUNCTION(floor_div)
TN_FUNCTION(floor_mod)
TN_FUNCTION(truncate_mod)
TN_FUNCTION(integer_power)

#define TN_DIVISION_KERNEL(op, function, T, ns) TN_STORED_##T(TN_SAME_BINARY, op, function)

TN_FLOAT_DIVISION_OPS(TN_DIVISION_KERNEL)

template <class Op, class S, int32_t kError>
struct Checked {
  int32_t* error;
  TN_DEVICE S operator()(S a, S b) const {
    const Computed<S> x = Stored<S>::widen(a), by = Stored<S>::widen(b);
    const bool wrong = kError == kNegativePower ? by < 0 : by == 0;
    if (wrong) {
      atomic_max(error, kError);
      return 0;
    }
    return Stored<S>::narrow(Op::apply(x, by));
  }
};
#define TN_DEFINE_CHECKED(S, dtype, op, function, kError)                                 \
  TN_KERNEL(op##_##dtype, int64_t n, const S* a, const S* b, S* y, double, Broadcast how, \
            int32_t* error) {                                                             \
    map(n, how, Checked<function, S, kError>{error}, y, a, b);                            \
  }
#define TN_CHECKED_DIVISION(op, function, T, ns) \
  TN_STORED_##T(TN_DEFINE_CHECKED, op, function, kDivisionByZero)
#define TN_CHECKED_POWER(op, function, T, ns) \
  TN_STORED_##T(TN_DEFINE_CHECKED, op, function, kNegativePower)

TN_INTEGER_DIVISION_OPS(TN_CHECKED_DIVISION)
TN_INTEGER_POWER_OPS(TN_CHECKED_POWER)

}  // namespace treenail::gpu
