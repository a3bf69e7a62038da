// SPDX-License-Identifier: Apache-2.0
// Sum, Mean, Prod, Max, Min, EuclideanNorm, All, Any and L2Loss on the reduction engine, and its
// loops for u64 and complex.
#include <algorithm>
#include <cmath>
#include <complex>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/elementwise/cast.h"
#include "kernels/host/elementwise/each_loops.h"
#include "kernels/host/reductions/reduce_engine.h"

namespace treenail::host {
namespace {

using C = std::complex<float>;
using Z = std::complex<double>;

struct Sum {
  template <class T>
  static T combine(T a, T b) {
    return a + b;
  }
  template <class T>
  static T identity() {
    return T(0);
  }
};
struct Prod {
  template <class T>
  static T combine(T a, T b) {
    return a * b;
  }
  template <class T>
  static T identity() {
    return T(1);
  }
};
struct Max {
  template <class T>
  static T combine(T a, T b) {
    return std::max(a, b);
  }
  template <class T>
  static T identity() {
    return std::numeric_limits<T>::min();
  }
};
struct Min {
  template <class T>
  static T combine(T a, T b) {
    return std::min(a, b);
  }
  template <class T>
  static T identity() {
    return std::numeric_limits<T>::max();
  }
};

// In halves down to short runs: rounding errors grow with the logarithm of the length.
template <class Op, class T>
TN_ONE_BODY T reduce_halves(const T* x, int64_t stride, int64_t n) {
  if (n > 16) {
    const int64_t half = (n + 1) / 2;
    return Op::combine(reduce_halves<Op>(x, stride, half),
                       reduce_halves<Op>(x + half * stride, stride, n - half));
  }
  T result = x[0];
  for (int64_t i = 1; i < n; ++i) result = Op::combine(result, x[i * stride]);
  return result;
}

template <class Op, class T>
void rows_loop(const void* data, int64_t rows, int64_t n, void* out) {
  for (int64_t r = 0; r < rows; ++r) {
    static_cast<T*>(out)[r] = reduce_halves<Op>(static_cast<const T*>(data) + r * n, 1, n);
  }
}
template <class Op, class T>
void columns_loop(const void* data, int64_t stride, int64_t rows, int64_t m, void* out) {
  for (int64_t j = 0; j < m; ++j) {
    static_cast<T*>(out)[j] = reduce_halves<Op>(static_cast<const T*>(data) + j, stride, rows);
  }
}
template <class Op, class T>
void fill_loop(void* out, int64_t n) {
  std::fill_n(static_cast<T*>(out), n, Op::template identity<T>());
}
template <class Op, class T>
constexpr ReduceLoops loops() {
  return {rows_loop<Op, T>, columns_loop<Op, T>, fill_loop<Op, T>};
}

constexpr ReduceOp kOps[] = {
    {"Sum", DType::kUInt64, loops<Sum, uint64_t>(), 0.5f},
    {"Prod", DType::kUInt64, loops<Prod, uint64_t>(), 0.8f},
    {"Max", DType::kUInt64, loops<Max, uint64_t>(), 0.5f},
    {"Min", DType::kUInt64, loops<Min, uint64_t>(), 0.5f},
    {"Sum", DType::kComplex64, loops<Sum, C>(), 1.0f},
    {"Sum", DType::kComplex128, loops<Sum, Z>(), 1.0f},
    {"Prod", DType::kComplex64, loops<Prod, C>(), 3.0f},
    {"Prod", DType::kComplex128, loops<Prod, Z>(), 3.0f},
};

// What results go through at the end.
template <class T>
void divide(void* y, const void* a, const void*, const void*, int64_t n, const LoopParams& params) {
  for (int64_t i = 0; i < n; ++i) {
    const T sum = static_cast<const T*>(a)[i];
    if constexpr (std::is_integral_v<T>) {
      const auto count = static_cast<T>(params.value[0]);
      static_cast<T*>(y)[i] = count == 0 ? 0 : sum / count;
    } else {
      static_cast<T*>(y)[i] = sum / static_cast<T>(params.value[0]);
    }
  }
}
LoopFn divide_loop(DType compute) {
  return dispatch<float, double, int64_t, uint64_t, C, Z>(
      compute, []<class T>() -> LoopFn { return divide<T>; });
}
template <class T>
void root(void* y, const void* a, const void*, const void*, int64_t n, const LoopParams&) {
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(y)[i] = std::sqrt(static_cast<const T*>(a)[i]);
}
template <class T>
void halve(void* y, const void* a, const void*, const void*, int64_t n, const LoopParams&) {
  for (int64_t i = 0; i < n; ++i) static_cast<T*>(y)[i] = T(0.5) * static_cast<const T*>(a)[i];
}

std::vector<bool> axes_of(const PrepareContext& c) {
  const int rank = c.input_shape(0).rank();
  int64_t storage[kMaxRank];
  std::vector<bool> reduced(static_cast<size_t>(rank));
  // The shape rule checked the axes: in range, none twice.
  for (int64_t axis : as_int64(c.host_value(1), storage)) {
    reduced[static_cast<size_t>(axis < 0 ? axis + rank : axis)] = true;
  }
  return reduced;
}

ReducePlan plan_for(const PrepareContext& c, std::string_view name) {
  const DType stored = c.input_type(0);
  return {name, name, stored, stored == DType::kBool ? stored : compute_type(stored), nullptr, {}};
}

std::unique_ptr<Kernel> prepare_plain(const PrepareContext& c) {
  const std::string& op = c.op().name();
  const std::string_view name = op == "All" ? "And" : op == "Any" ? "Or" : std::string_view(op);
  ReducePlan plan = plan_for(c, name);
  if (is_integer(plan.stored) && plan.stored != plan.compute) {
    // The extremum of nothing is the end of the wide type's range: brought to the narrow one's.
    const bool of_nothing = c.input_shape(0).num_elements() == 0 && (op == "Max" || op == "Min");
    if (of_nothing) {
      plan.finish = clamp_loop_for(plan.compute);
      plan.finish_params = clamp_params(plan.stored);
    }
  }
  return make_reduce_kernel(plan, c.input_shape(0), axes_of(c));
}

// Integers are summed in 64 bits: the sum of many may leave the type, their mean does not.
std::unique_ptr<Kernel> prepare_mean(const PrepareContext& c) {
  ReducePlan plan = plan_for(c, "Sum");
  if (is_integer(plan.stored) && plan.stored != DType::kUInt64) plan.compute = DType::kInt64;
  const std::vector<bool> reduced = axes_of(c);
  double count = 1;
  for (size_t i = 0; i < reduced.size(); ++i) {
    if (reduced[i]) count *= static_cast<double>(c.input_shape(0).dim(static_cast<int>(i)));
  }
  plan.finish = divide_loop(plan.compute);
  plan.finish_params.value[0] = count;
  return make_reduce_kernel(plan, c.input_shape(0), reduced);
}

ReducePlan square_plan(const PrepareContext& c) {
  ReducePlan plan = plan_for(c, "Sum");
  plan.first = "SumOfSquares";
  return plan;
}

std::unique_ptr<Kernel> prepare_norm(const PrepareContext& c) {
  ReducePlan plan = square_plan(c);
  plan.finish = plan.compute == DType::kFloat32 ? root<float> : root<double>;
  return make_reduce_kernel(plan, c.input_shape(0), axes_of(c));
}

std::unique_ptr<Kernel> prepare_l2_loss(const PrepareContext& c) {
  ReducePlan plan = square_plan(c);
  plan.finish = plan.compute == DType::kFloat32 ? halve<float> : halve<double>;
  const std::vector<bool> all(static_cast<size_t>(c.input_shape(0).rank()), true);
  return make_reduce_kernel(plan, c.input_shape(0), all);
}

}  // namespace

void register_reduction_kernels(KernelRegistry& registry) {
  add_reduce_ops(kOps);
  for (const char* op : {"Sum", "Prod", "Max", "Min", "All", "Any"})
    registry.add(op, {}, prepare_plain);
  registry.add("Mean", {}, prepare_mean);
  registry.add("EuclideanNorm", {}, prepare_norm);
  registry.add("L2Loss", {}, prepare_l2_loss);
}

}  // namespace treenail::host
