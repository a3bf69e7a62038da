// SPDX-License-Identifier: Apache-2.0
// GRUBlockCell, BlockGRU and BlockGRUGrad (framework/ops/gru.cc). A step multiplies twice: the
// state for r and u, then r * state for c.
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cuda/recurrent/layer_host.h"

namespace treenail::cuda {
namespace {

using host::GruPlan;
using host::kGruOutputs;
using host::ScratchLayout;

struct GruInputs {
  const int64_t* steps;
  const void *x, *h_prev, *w_ru, *w_c, *b_ru, *b_c;

  GruInputs(RunContext& c, const GruPlan& plan)
      : steps(plan.sequence ? c.input(0).data<int64_t>() : nullptr) {
    const auto input = [&](int i) { return elements_of(c.input(plan.first + i)); };
    x = input(0);
    h_prev = input(1);
    w_ru = input(2);
    w_c = input(3);
    b_ru = input(4);
    b_c = input(5);
  }
};

// --- Forward ------------------------------------------------------------------------------------

class GruForward {
 public:
  GruForward(const PrepareContext& p, const GruPlan& plan, ScratchLayout& layout)
      : plan_(plan),
        arrays_(plan.e, p),
        reset_(function_for("gru_reset", arrays_.dtype)),
        state_(function_for("gru_state", arrays_.dtype)) {
    const host::LayerExtents& e = plan.e;
    auto& device = static_cast<CudaDevice&>(p.device());
    for (int i = 0; i < 2; ++i) {
      const int64_t width = (2 - i) * e.cell;
      of_x_[i].emplace(device, arrays_.dtype,
                       LayerProduct::Sizes{e.rows(), width, e.input, false, false, true},
                       workspace_);
      of_h_[i].emplace(device, arrays_.dtype,
                       LayerProduct::Sizes{e.batch, width, e.cell, false, false, true}, workspace_);
      sums_x_[i] = arrays_.take_computed(layout, e.rows(), width);
      sums_h_[i] = arrays_.take_computed(layout, e.batch, width);
    }
    kept_ = arrays_.take_computed(layout, e.batch, e.cell);
    reset_rows_ = arrays_.take_stored(layout, e.batch, e.cell);
    scratch_ = layout.take<std::byte>(static_cast<int64_t>(workspace_.bytes()));
  }

  void run(RunContext& c, CudaDevice& device, Failure failure) const {
    if (plan_.sequence) check_steps(c, device, failure, plan_.e.time);
    const GruInputs in(c, plan_);
    std::byte *const scratch = c.scratch(), *const workspace = scratch + scratch_;
    of_x_[0]->launch(device, in.x, in.w_ru, scratch + sums_x_[0], workspace);
    of_x_[1]->launch(device, in.x, in.w_c, scratch + sums_x_[1], workspace);
    for (int64_t step = 0; step < plan_.e.time; ++step) run_step(c, device, in, step);
  }

 private:
  void run_step(RunContext& c, CudaDevice& device, const GruInputs& in, int64_t step) const {
    const host::LayerExtents& e = plan_.e;
    std::byte *const scratch = c.scratch(), *const workspace = scratch + scratch_;
    const Grid grid = arrays_.unit_grid(device);
    const gpu::GruForwardStep s = at_step(c, in, step);
    of_h_[0]->launch(device, s.h_before, arrays_.row(in.w_ru, e.input, 2 * e.cell),
                     scratch + sums_h_[0], workspace);
    reset_.launch(device, grid, s);
    of_h_[1]->launch(device, s.reset, arrays_.row(in.w_c, e.input, e.cell), scratch + sums_h_[1],
                     workspace);
    state_.launch(device, grid, s);
  }

  gpu::GruForwardStep at_step(RunContext& c, const GruInputs& in, int64_t step) const {
    const int64_t row = step * plan_.e.batch;
    gpu::GruForwardStep s;
    s.layer = arrays_.step(in.steps, step);
    for (int i = 0; i < 2; ++i) {
      const int64_t width = (2 - i) * plan_.e.cell;
      s.of_x[i] = c.scratch() + sums_x_[i] + row * width * arrays_.computed;
      s.of_h[i] = c.scratch() + sums_h_[i];
      s.b[i] = i == 0 ? in.b_ru : in.b_c;
    }
    s.h_before = arrays_.before(in.h_prev, c.output(host::kGruH).raw(), step);
    s.kept = c.scratch() + kept_;
    for (int i = 0; i < kGruOutputs; ++i)
      s.values[i] = arrays_.row(c.output(i).raw(), row, plan_.e.cell);
    s.reset = c.scratch() + reset_rows_;
    return s;
  }

  GruPlan plan_;
  LayerArrays arrays_;
  GpuFunction reset_, state_;
  Workspace workspace_;
  std::optional<LayerProduct> of_x_[2], of_h_[2];
  size_t sums_x_[2] = {}, sums_h_[2] = {}, kept_ = 0, reset_rows_ = 0, scratch_ = 0;
};

// --- Backward -----------------------------------------------------------------------------------

class GruBackward {
 public:
  GruBackward(const PrepareContext& p, const GruPlan& plan, ScratchLayout& layout)
      : plan_(plan),
        arrays_(plan.e, p),
        candidate_(function_for("gru_candidate_gradients", arrays_.dtype)),
        reset_gradients_(function_for("gru_reset_gradients", arrays_.dtype)),
        sum_(function_for("layer_sum", arrays_.dtype)),
        outputs_(plan.first + 6),
        gates_given_(p.num_inputs() > outputs_ + kGruOutputs + 1),
        input_gradient_(p.op().get_bool("input_gradient")) {
    prepare_products(static_cast<CudaDevice&>(p.device()));
    take_scratch(layout);
  }

  void run(RunContext& c, CudaDevice& device, Failure failure) const {
    check_steps(c, device, failure, plan_.e.time);
    const GruInputs in(c, plan_);
    for (int64_t step = plan_.e.time; step-- > 0;) run_step(c, device, in, step);
    sum(device, plan_.e.batch * plan_.e.cell, in.steps, c.scratch() + d_h_,
        c.scratch() + through_ru_, c.output(host::kGruHPrevGrad));
    weights(c, device, in);
    if (input_gradient_) input(c, device, in);
  }

 private:
  void prepare_products(CudaDevice& device) {
    const host::LayerExtents& e = plan_.e;
    const auto product = [&](std::optional<LayerProduct>& to, const LayerProduct::Sizes& sizes) {
      to.emplace(device, arrays_.dtype, sizes, workspace_);
    };
    for (int i = 0; i < 2; ++i) {
      const int64_t width = (2 - i) * e.cell;
      product(to_h_[i], {e.batch, e.cell, width, false, true, true});
      product(to_w_[i], {e.input + e.cell, width, e.rows(), true});
      if (input_gradient_) product(to_x_[i], {e.rows(), e.input, width, false, true, true});
      sums_.push_back(column_sums(arrays_.dtype, e.rows(), width, workspace_));
    }
  }

  void take_scratch(ScratchLayout& layout) {
    const host::LayerExtents& e = plan_.e;
    for (int i = 0; i < 2; ++i) {
      d_[i] = arrays_.take_stored(layout, e.rows(), (2 - i) * e.cell);
      beside_[i] = arrays_.take_stored(layout, e.rows(), e.input + e.cell);
      d_x_[i] = arrays_.take_computed(layout, input_gradient_ ? e.rows() : 0, e.input);
    }
    d_reset_ = arrays_.take_computed(layout, e.batch, e.cell);
    through_ru_ = arrays_.take_computed(layout, e.batch, e.cell);
    d_h_ = arrays_.take_computed(layout, e.batch, e.cell);
    scratch_ = layout.take<std::byte>(static_cast<int64_t>(workspace_.bytes()));
  }

  void run_step(RunContext& c, CudaDevice& device, const GruInputs& in, int64_t step) const {
    const host::LayerExtents& e = plan_.e;
    std::byte *const scratch = c.scratch(), *const workspace = scratch + scratch_;
    const Grid grid = arrays_.unit_grid(device);
    const gpu::GruGradientStep s = at_step(c, in, step);
    candidate_.launch(device, grid, s);
    to_h_[1]->launch(device, s.d_c, arrays_.row(in.w_c, e.input, e.cell), scratch + d_reset_,
                     workspace);
    reset_gradients_.launch(device, grid, s);
    to_h_[0]->launch(device, s.d_ru, arrays_.row(in.w_ru, e.input, 2 * e.cell),
                     scratch + through_ru_, workspace);
  }

  gpu::GruGradientStep at_step(RunContext& c, const GruInputs& in, int64_t step) const {
    const int64_t row = step * plan_.e.batch, cell = plan_.e.cell, input = plan_.e.input;
    std::byte* const scratch = c.scratch();
    gpu::GruGradientStep s;
    s.layer = arrays_.step(in.steps, step);
    s.input = input;
    for (int i = 0; i < 3; ++i) s.values[i] = arrays_.row(c.input(outputs_ + i).raw(), row, cell);
    set_arriving(c, row, s);
    s.h_before = arrays_.before(in.h_prev, c.input(outputs_ + host::kGruH).raw(), step);
    s.through_ru = scratch + through_ru_;
    s.d_reset = scratch + d_reset_;
    s.d_h = scratch + d_h_;
    s.d_ru = arrays_.row(scratch + d_[0], row, 2 * cell);
    s.d_c = arrays_.row(scratch + d_[1], row, cell);
    s.reset = arrays_.row(scratch + beside_[1], row, input + cell);
    return s;
  }

  void set_arriving(RunContext& c, int64_t row, gpu::GruGradientStep& s) const {
    const int first = outputs_ + kGruOutputs;
    const auto given = [&](int i) {
      return arrays_.row(elements_of(c.input(first + i)), row, plan_.e.cell);
    };
    s.arriving[host::kGruH] = given(0);
    for (int i = 0; i < 3 && gates_given_; ++i) s.arriving[host::kGruR + i] = given(1 + i);
  }

  void weights(RunContext& c, CudaDevice& device, const GruInputs& in) const {
    const host::LayerExtents& e = plan_.e;
    const void* const h = c.input(outputs_ + host::kGruH).raw();
    for (int i = 0; i < 2; ++i) {
      std::byte *const d = c.scratch() + d_[i], *const beside = c.scratch() + beside_[i],
                       *const workspace = c.scratch() + scratch_;
      // Beside x lies the state for r and u; for c, r times it, is there.
      launch_beside(device, arrays_,
                    {e.time, e.batch, e.input, e.cell, in.steps, in.x, i == 0 ? in.h_prev : nullptr,
                     h, beside});
      to_w_[i]->launch(device, beside, d, c.output(host::kGruWRuGrad + i).raw(), workspace);
      sums_[i].launch(device, d, c.output(host::kGruBRuGrad + i).raw(), workspace);
    }
  }

  void input(RunContext& c, CudaDevice& device, const GruInputs& in) const {
    const void* const weights[] = {in.w_ru, in.w_c};
    for (int i = 0; i < 2; ++i) {
      to_x_[i]->launch(device, c.scratch() + d_[i], weights[i], c.scratch() + d_x_[i],
                       c.scratch() + scratch_);
    }
    sum(device, plan_.e.rows() * plan_.e.input, nullptr, c.scratch() + d_x_[0],
        c.scratch() + d_x_[1], c.output(host::kGruXGrad));
  }

  void sum(CudaDevice& device, int64_t n, const int64_t* steps, const void* a, const void* b,
           Tensor& to) const {
    sum_.launch(device, grid_for(device, n), n, steps, a, b, static_cast<void*>(to.raw()));
  }

  GruPlan plan_;
  LayerArrays arrays_;
  GpuFunction candidate_, reset_gradients_, sum_;
  int outputs_;  // the number of the first input that is an output of the forward op
  bool gates_given_, input_gradient_;
  Workspace workspace_;
  // Each for r and u, and for c.
  std::optional<LayerProduct> to_h_[2], to_w_[2], to_x_[2];
  std::vector<ArrayReduction> sums_;
  size_t d_[2] = {}, beside_[2] = {}, d_x_[2] = {};
  size_t d_reset_ = 0, through_ru_ = 0, d_h_ = 0, scratch_ = 0;
};

}  // namespace

void register_gru_kernels(KernelRegistrations& r) {
  add_recurrent(r, "GRUBlockCell", prepare_layer<GruPlan, GruForward>);
  add_recurrent(r, "BlockGRU", prepare_layer<GruPlan, GruForward>);
  add_recurrent(r, "BlockGRUGrad", prepare_layer<GruPlan, GruBackward>);
}

}  // namespace treenail::cuda
