// SPDX-License-Identifier: Apache-2.0
// LSTMBlockCell, BlockLSTM and BlockLSTMGrad (framework/ops/lstm.cc).
#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "kernels/cuda/recurrent/layer_host.h"

namespace treenail::cuda {
namespace {

using host::kLstmOutputs;
using host::LstmPlan;
using host::ScratchLayout;

static_assert(host::kLstmOutputs == gpu::kLstmValues);

GpuFunction step_function(const char* with, const char* without, const LstmPlan& plan,
                          DType dtype) {
  return function_for(plan.peephole ? with : without, dtype);
}

// The inputs that both directions have.
struct LstmInputs {
  const int64_t* steps;
  const void *x, *cs_prev, *h_prev, *w, *peepholes[3], *b;

  LstmInputs(RunContext& c, const LstmPlan& plan)
      : steps(plan.sequence ? c.input(0).data<int64_t>() : nullptr) {
    const auto input = [&](int i) { return elements_of(c.input(plan.first + i)); };
    x = input(0);
    cs_prev = input(1);
    h_prev = input(2);
    w = input(3);
    for (int i = 0; i < 3; ++i) peepholes[i] = input(4 + i);
    b = input(7);
  }
};

// --- Forward ------------------------------------------------------------------------------------

class LstmForward {
 public:
  LstmForward(const PrepareContext& p, const LstmPlan& plan, ScratchLayout& layout)
      : plan_(plan),
        arrays_(plan.e, p),
        step_(step_function("lstm_forward_peephole", "lstm_forward", plan, arrays_.dtype)),
        forget_bias_(p.op().get_float("forget_bias")),
        cell_clip_(p.op().get_float("cell_clip")),
        of_x_(device_of(p), arrays_.dtype,
              {plan.e.rows(), 4 * plan.e.cell, plan.e.input, false, false, true}, workspace_),
        of_h_(device_of(p), arrays_.dtype,
              {plan.e.batch, 4 * plan.e.cell, plan.e.cell, false, false, true}, workspace_),
        sums_x_(arrays_.take_computed(layout, plan.e.rows(), 4 * plan.e.cell)),
        sums_h_(arrays_.take_computed(layout, plan.e.batch, 4 * plan.e.cell)),
        kept_(arrays_.take_computed(layout, plan.e.batch, plan.e.cell)),
        scratch_(layout.take<std::byte>(static_cast<int64_t>(workspace_.bytes()))) {}

  void run(RunContext& c, CudaDevice& device, Failure failure) const {
    if (plan_.sequence) check_steps(c, device, failure, plan_.e.time);
    const LstmInputs in(c, plan_);
    std::byte* const scratch = c.scratch();
    of_x_.launch(device, in.x, in.w, scratch + sums_x_, scratch + scratch_);
    const void* const w_h = arrays_.row(in.w, plan_.e.input, 4 * plan_.e.cell);
    for (int64_t step = 0; step < plan_.e.time; ++step) {
      const void* const h = arrays_.before(in.h_prev, c.output(host::kLstmH).raw(), step);
      of_h_.launch(device, h, w_h, scratch + sums_h_, scratch + scratch_);
      step_.launch(device, arrays_.unit_grid(device), at_step(c, in, step));
    }
  }

 private:
  static CudaDevice& device_of(const PrepareContext& p) {
    return static_cast<CudaDevice&>(p.device());
  }
  gpu::LstmForwardStep at_step(RunContext& c, const LstmInputs& in, int64_t step) const {
    const int64_t row = step * plan_.e.batch;
    gpu::LstmForwardStep s;
    s.layer = arrays_.step(in.steps, step);
    s.of_x = c.scratch() + sums_x_ + row * 4 * plan_.e.cell * arrays_.computed;
    s.of_h = c.scratch() + sums_h_;
    s.cs_before = arrays_.before(in.cs_prev, c.output(host::kLstmCs).raw(), step);
    s.b = in.b;
    std::copy_n(in.peepholes, 3, s.peepholes);
    s.kept = c.scratch() + kept_;
    for (int i = 0; i < kLstmOutputs; ++i)
      s.values[i] = arrays_.row(c.output(i).raw(), row, plan_.e.cell);
    s.forget_bias = forget_bias_;
    s.cell_clip = cell_clip_;
    return s;
  }

  LstmPlan plan_;
  LayerArrays arrays_;
  GpuFunction step_;
  double forget_bias_, cell_clip_;
  Workspace workspace_;
  LayerProduct of_x_, of_h_;
  size_t sums_x_, sums_h_, kept_, scratch_;  // places in scratch memory
};

// --- Backward -----------------------------------------------------------------------------------

class LstmBackward {
 public:
  LstmBackward(const PrepareContext& p, const LstmPlan& plan, ScratchLayout& layout)
      : plan_(plan),
        arrays_(plan.e, p),
        step_(step_function("lstm_backward_peephole", "lstm_backward", plan, arrays_.dtype)),
        cell_clip_(p.op().get_float("cell_clip")),
        outputs_(plan.first + 8),
        gates_given_(p.num_inputs() > outputs_ + kLstmOutputs + 2),
        input_gradient_(p.op().get_bool("input_gradient")) {
    const host::LayerExtents& e = plan.e;
    prepare_products(static_cast<CudaDevice&>(p.device()));
    gates_ = arrays_.take_stored(layout, e.rows(), 4 * e.cell);
    d_h_ = arrays_.take_computed(layout, e.batch, e.cell);
    d_cs_ = arrays_.take_computed(layout, e.batch, e.cell);
    beside_ = arrays_.take_stored(layout, e.rows(), e.input + e.cell);
    for (size_t& at : peepholes_)
      at = arrays_.take_stored(layout, plan.peephole ? e.rows() : 0, e.cell);
    scratch_ = layout.take<std::byte>(static_cast<int64_t>(workspace_.bytes()));
  }

  void run(RunContext& c, CudaDevice& device, Failure failure) const {
    check_steps(c, device, failure, plan_.e.time);
    const LstmInputs in(c, plan_);
    const void* const w_h = arrays_.row(in.w, plan_.e.input, 4 * plan_.e.cell);
    for (int64_t step = plan_.e.time; step-- > 0;) {
      step_.launch(device, arrays_.unit_grid(device), at_step(c, in, step));
      const std::byte* const d =
          arrays_.row(c.scratch() + gates_, step * plan_.e.batch, 4 * plan_.e.cell);
      if (step > 0) {
        to_h_->launch(device, d, w_h, c.scratch() + d_h_, c.scratch() + scratch_);
      } else {
        to_h_prev_->launch(device, d, w_h, c.output(host::kLstmHPrevGrad).raw(),
                           c.scratch() + scratch_);
      }
    }
    weights(c, device, in);
  }

 private:
  void prepare_products(CudaDevice& device) {
    const host::LayerExtents& e = plan_.e;
    const int64_t width = 4 * e.cell;
    const auto product = [&](std::optional<LayerProduct>& to, const LayerProduct::Sizes& sizes) {
      to.emplace(device, arrays_.dtype, sizes, workspace_);
    };
    product(to_h_, {e.batch, e.cell, width, false, true, true});
    product(to_h_prev_, {e.batch, e.cell, width, false, true});
    product(to_w_, {e.input + e.cell, width, e.rows(), true});
    if (input_gradient_) product(to_x_, {e.rows(), e.input, width, false, true});
    sums_.push_back(column_sums(arrays_.dtype, e.rows(), width, workspace_));
    if (plan_.peephole) sums_.push_back(column_sums(arrays_.dtype, e.rows(), e.cell, workspace_));
  }

  gpu::LstmGradientStep at_step(RunContext& c, const LstmInputs& in, int64_t step) const {
    const int64_t row = step * plan_.e.batch, cell = plan_.e.cell;
    gpu::LstmGradientStep s;
    s.layer = arrays_.step(in.steps, step);
    for (int i = 0; i < kLstmOutputs; ++i)
      s.values[i] = arrays_.row(c.input(outputs_ + i).raw(), row, cell);
    set_arriving(c, row, s);
    s.cs_before = arrays_.before(in.cs_prev, c.input(outputs_ + host::kLstmCs).raw(), step);
    std::copy_n(in.peepholes, 3, s.peepholes);
    s.d_h = c.scratch() + d_h_;
    s.d_cs = c.scratch() + d_cs_;
    s.d_cs_prev = step == 0 ? c.output(host::kLstmCsPrevGrad).raw() : nullptr;
    s.d = arrays_.row(c.scratch() + gates_, row, 4 * cell);
    for (int i = 0; i < 3; ++i)
      s.d_peepholes[i] = arrays_.row(c.scratch() + peepholes_[i], row, cell);
    s.cell_clip = cell_clip_;
    return s;
  }

  void set_arriving(RunContext& c, int64_t row, gpu::LstmGradientStep& s) const {
    const int first = outputs_ + kLstmOutputs;
    const auto given = [&](int i) {
      return arrays_.row(elements_of(c.input(first + i)), row, plan_.e.cell);
    };
    s.arriving[host::kLstmCs] = given(0);
    s.arriving[host::kLstmH] = given(1);
    for (int i = 0; i < 5 && gates_given_; ++i)
      s.arriving[host::kLstmGateGradients[i]] = given(2 + i);
  }

  // What is left when all gates have their gradients.
  void weights(RunContext& c, CudaDevice& device, const LstmInputs& in) const {
    const host::LayerExtents& e = plan_.e;
    std::byte *const gates = c.scratch() + gates_, *const workspace = c.scratch() + scratch_,
                     *const beside = c.scratch() + beside_;
    const void* const h = c.input(outputs_ + host::kLstmH).raw();
    launch_beside(device, arrays_,
                  {e.time, e.batch, e.input, e.cell, in.steps, in.x, in.h_prev, h, beside});
    to_w_->launch(device, beside, gates, c.output(host::kLstmWGrad).raw(), workspace);
    if (to_x_) to_x_->launch(device, gates, in.w, c.output(host::kLstmXGrad).raw(), workspace);
    sums_[0].launch(device, gates, c.output(host::kLstmBGrad).raw(), workspace);
    for (int i = 0; i < 3; ++i) {
      Tensor& to = c.output(host::kLstmWciGrad + i);
      if (plan_.peephole) {
        sums_[1].launch(device, c.scratch() + peepholes_[i], to.raw(), workspace);
      } else if (to.bytes() > 0) {
        device.zero(to.raw(), to.bytes());
      }
    }
  }

  LstmPlan plan_;
  LayerArrays arrays_;
  GpuFunction step_;
  double cell_clip_;
  int outputs_;  // the number of the first input that is an output of the forward op
  bool gates_given_, input_gradient_;
  Workspace workspace_;
  std::optional<LayerProduct> to_h_, to_h_prev_, to_w_, to_x_;
  std::vector<ArrayReduction> sums_;  // of gates' columns and of peepholes'
  size_t gates_ = 0, d_h_ = 0, d_cs_ = 0, beside_ = 0, peepholes_[3] = {}, scratch_ = 0;
};

}  // namespace

void register_lstm_kernels(KernelRegistrations& r) {
  add_recurrent(r, "LSTMBlockCell", prepare_layer<LstmPlan, LstmForward>);
  add_recurrent(r, "BlockLSTM", prepare_layer<LstmPlan, LstmForward>);
  add_recurrent(r, "BlockLSTMGrad", prepare_layer<LstmPlan, LstmBackward>);
}

}  // namespace treenail::cuda
