// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/training.cc: one sweep over variable, slots and gradient together
// (training_sweeps.h), driven over a whole variable or over rows of it. Half types go through float
// tiles. The variables are held exclusively for the update.
#include <algorithm>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/op/index_check.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/state/variable.h"
#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/training/training_sweeps.h"
#include "kernels/host/fusion/block_kernel.h"
#include "kernels/host/state/update_variables.h"

namespace treenail::cpu {
namespace {

using host::UpdatePlaces;
using KernelPtr = std::unique_ptr<Kernel>;

constexpr int64_t kGrain = 8192;  // elements per piece of a sweep

template <class F>
Sweep<F> sweep_of(UpdateRule rule) {
  if constexpr (std::is_same_v<F, double>) {
    return double_sweep(rule);
  } else {
    return float_sweep(rule);
  }
}

// A formula with the values of this run, computed in F on variables of `dtype`: F's own or, in
// float, a 16-bit one.
template <class F>
struct BoundRule {
  Sweep<F> sweep;
  const F* scalars;
  UpdateOptions options;
  int variables;
  DType dtype;

  // Elements [offset, offset + n) of var and slots, with n gradients from the from-th on.
  [[gnu::noinline]] void apply(void* const* base, int64_t offset, const void* g, int64_t from,
                               int64_t n) const {
    F* at[host::kMaxUpdateVariables];
    if (!is_half(dtype)) {
      for (int k = 0; k < variables; ++k) at[k] = static_cast<F*>(base[k]) + offset;
      return sweep(scalars, options, at, static_cast<const F*>(g) + from, n);
    }
    if constexpr (std::is_same_v<F, float>) {
      constexpr int64_t kTile = 256;
      float tiles[host::kMaxUpdateVariables][kTile];
      float gradient[kTile];
      for (int k = 0; k < variables; ++k) at[k] = tiles[k];
      for (int64_t begin = 0; begin < n; begin += kTile) {
        const int64_t size = std::min(kTile, n - begin);
        for (int k = 0; k < variables; ++k) widen(dtype, base[k], offset + begin, size, tiles[k]);
        widen(dtype, g, from + begin, size, gradient);
        sweep(scalars, options, at, gradient, size);
        for (int k = 0; k < variables; ++k) narrow(dtype, tiles[k], size, base[k], offset + begin);
      }
    }
  }
};

template <class F>
void read_scalars(RunContext& c, const UpdatePlaces& places, F* out) {
  for (int i = 0; i < places.num_scalars; ++i) {
    const Tensor& scalar = c.input(places.scalars[i]);
    if constexpr (std::is_same_v<F, float>) {
      if (is_half(scalar.dtype())) {
        widen(scalar.dtype(), scalar.raw(), 0, 1, out + i);
        continue;
      }
    }
    out[i] = *scalar.data<F>();
  }
}

// Estimated ns per element: an update reads and writes `variables` arrays.
double element_cost(const UpdatePlaces& places) { return 0.3 * places.variables; }

template <class F>
void run_dense(RunContext& c, const UpdatePlaces& places, const Shape& gradient,
               const BoundRule<F>& rule, const host::BlockStream* stream) {
  const host::LockedVariables locked(c, places.variables, rule.dtype);
  locked.check_gradient(gradient);
  void* base[host::kMaxUpdateVariables];
  locked.pointers(base);
  if (stream != nullptr) {
    stream->push([&](const host::Block& block, const void* elements) {
      for (int64_t row = 0; row < block.rows; ++row) {
        rule.apply(base, block.begin + row * block.stride, elements, row * block.count,
                   block.count);
      }
    });
    return;
  }
  const void* const g = c.input(places.gradient).raw();
  c.parallel_for(
      gradient.num_elements(), kGrain, element_cost(places),
      [&](int64_t begin, int64_t end) { rule.apply(base, begin, g, begin, end - begin); });
}

// Calls body(first, last) for ranges of rows; who updates a row looks through all indices, so that
// repeated ones are applied in their order. The number of ranges depends on the amount of work
// alone.
void for_row_ranges(RunContext& c, int64_t rows, int64_t work, double cost,
                    FunctionRef<void(int64_t, int64_t)> body) {
  const int64_t ranges = std::clamp<int64_t>(work / (4 * kGrain), 1, 16);
  const int64_t grain = std::max<int64_t>(1, (rows + ranges - 1) / ranges);
  c.parallel_for(rows, grain, rows > 0 ? cost / static_cast<double>(rows) : 0, body);
}

struct SparseGradient {
  const Tensor* values;
  const Tensor* indices;
  int64_t rows = 0;
  int64_t row_size = 0;
};

// Checks values and shapes of a sparse gradient against the variable it updates.
SparseGradient checked_rows(RunContext& c, const UpdatePlaces& places,
                            const host::LockedVariables& locked) {
  SparseGradient g{&c.input(places.gradient), &c.input(places.indices), 0, 0};
  locked.check_row_gradient(g.values->shape(), g.indices->num_elements());
  g.rows = locked.shape().dim(0);
  g.row_size = locked.shape().removed(0).num_elements();
  check_indices("indices", *g.indices, g.rows);
  return g;
}

// Calls body(i, row) for the indices that fall into [first, last).
void for_indices_in(const Tensor& indices, int64_t first, int64_t last,
                    FunctionRef<void(int64_t, int64_t)> body) {
  dispatch<int32_t, int64_t>(indices.dtype(), [&]<class Index>() {
    const std::span<const Index> values = indices.values<Index>();
    for (size_t i = 0; i < values.size(); ++i) {
      const int64_t row = values[i];
      if (row >= first && row < last) body(static_cast<int64_t>(i), row);
    }
  });
}

template <class F>
void run_sparse(RunContext& c, const UpdatePlaces& places, const BoundRule<F>& rule) {
  const host::LockedVariables locked(c, places.variables, rule.dtype);
  const SparseGradient gradient = checked_rows(c, places, locked);
  void* base[host::kMaxUpdateVariables];
  locked.pointers(base);
  const void* const g = gradient.values->raw();
  const int64_t size = gradient.row_size;
  const int64_t work = gradient.values->num_elements();
  for_row_ranges(c, gradient.rows, work, element_cost(places) * static_cast<double>(work),
                 [&](int64_t first, int64_t last) {
                   for_indices_in(*gradient.indices, first, last, [&](int64_t i, int64_t row) {
                     rule.apply(base, row * size, g, i * size, size);
                   });
                 });
}

// Every row decays and moves; those of the gradient accumulate it in between.
template <class F>
void run_sparse_adam(RunContext& c, const UpdatePlaces& places, BoundRule<F> rule) {
  const Sweep<F> sweeps[] = {sweep_of<F>(UpdateRule::kAdamDecay),
                             sweep_of<F>(UpdateRule::kAdamAccumulate),
                             sweep_of<F>(UpdateRule::kAdamMove)};
  BoundRule<F> decay = rule;
  BoundRule<F> accumulate = rule;
  BoundRule<F> move = rule;
  decay.sweep = sweeps[0];
  accumulate.sweep = sweeps[1];
  move.sweep = sweeps[2];
  const host::LockedVariables locked(c, places.variables, rule.dtype);
  const SparseGradient gradient = checked_rows(c, places, locked);
  void* base[host::kMaxUpdateVariables];
  locked.pointers(base);
  const void* const g = gradient.values->raw();
  const int64_t size = gradient.row_size;
  const int64_t work = locked.shape().num_elements();
  for_row_ranges(c, gradient.rows, work, 1.2 * static_cast<double>(work),
                 [&](int64_t first, int64_t last) {
                   const int64_t n = (last - first) * size;
                   // Neither reads a gradient: m stands in for it.
                   decay.apply(base, first * size, base[1], first * size, n);
                   for_indices_in(*gradient.indices, first, last, [&](int64_t i, int64_t row) {
                     accumulate.apply(base, row * size, g, i * size, size);
                   });
                   move.apply(base, first * size, base[1], first * size, n);
                 });
}

// --- Registration -----------------------------------------------------------------------------

template <class F>
void run_update(RunContext& c, const UpdatePlaces& places, const Shape& gradient, UpdateRule which,
                DType dtype, const host::BlockStream* stream) {
  F scalars[host::kMaxUpdateScalars];
  read_scalars(c, places, scalars);
  if (which == UpdateRule::kFtrl && scalars[4] == F(-0.5)) which = UpdateRule::kFtrlSquareRoot;
  const BoundRule<F> rule{sweep_of<F>(which), scalars, places.options, places.variables, dtype};
  if (places.indices < 0) {
    run_dense(c, places, gradient, rule, stream);
  } else if (which == UpdateRule::kAdam) {
    run_sparse_adam(c, places, rule);
  } else {
    run_sparse(c, places, rule);
  }
}

class UpdateKernel final : public host::BlockKernel {
 public:
  UpdateKernel(const PrepareContext& p, UpdateRule rule)
      : places_(host::UpdatePlaces::of(p.op())),
        gradient_(p.input_shape(places_.gradient)),
        rule_(rule),
        dtype_(p.op().get_type("T")) {
    // By elements of the gradient: the variable's shape may not be known yet.
    cost_ns = 100 + element_cost(places_) * static_cast<double>(gradient_.num_elements());
    if (places_.indices < 0) {
      streamed_input = places_.gradient;
      takes = Stream::kPushed;
    }
  }

  void run(RunContext& c) const override { update(c, nullptr); }
  void consume(RunContext& c, const host::BlockStream& stream) const override {
    update(c, &stream);
  }

 private:
  void update(RunContext& c, const host::BlockStream* stream) const {
    if (dtype_ == DType::kFloat64)
      return run_update<double>(c, places_, gradient_, rule_, dtype_, stream);
    run_update<float>(c, places_, gradient_, rule_, dtype_, stream);
  }

  UpdatePlaces places_;
  Shape gradient_;
  UpdateRule rule_;
  DType dtype_;
};

template <UpdateRule kRule>
KernelPtr prepare_update(const PrepareContext& p) {
  return std::make_unique<UpdateKernel>(p, kRule);
}

}  // namespace

void register_training_kernels(KernelRegistry& r) {
  const struct {
    const char* name;
    PrepareFn prepare;
    bool sparse;
  } updates[] = {
      {"GradientDescent", prepare_update<UpdateRule::kGradientDescent>, false},
      {"ProximalGradientDescent", prepare_update<UpdateRule::kProximalGradientDescent>, true},
      {"Momentum", prepare_update<UpdateRule::kMomentum>, true},
      {"Adagrad", prepare_update<UpdateRule::kAdagrad>, true},
      {"ProximalAdagrad", prepare_update<UpdateRule::kProximalAdagrad>, true},
      {"Adadelta", prepare_update<UpdateRule::kAdadelta>, true},
      {"Adam", prepare_update<UpdateRule::kAdam>, true},
      {"AdaMax", prepare_update<UpdateRule::kAdaMax>, false},
      {"RMSProp", prepare_update<UpdateRule::kRMSProp>, true},
      {"CenteredRMSProp", prepare_update<UpdateRule::kCenteredRMSProp>, true},
      {"Ftrl", prepare_update<UpdateRule::kFtrl>, true},
  };
  for (const auto& update : updates) {
    r.add(concat("ResourceApply", update.name), {}, update.prepare);
    if (update.sparse) r.add(concat("ResourceSparseApply", update.name), {}, update.prepare);
  }
}

}  // namespace treenail::cpu
