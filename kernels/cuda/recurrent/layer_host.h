// SPDX-License-Identifier: Apache-2.0
// What the kernels of recurrent layers (lstm.cc, gru.cc) share. A layer is computed step by step:
// a product with the state before the step, then one launch for all gates of all units. What does
// not hang on the step before is one product over all rows of all steps. Half types are multiplied
// as they are, summed and kept between products as floats.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/products/blas_host.h"
#include "kernels/cuda/recurrent/steps.h"
#include "kernels/cuda/reductions/reduction_host.h"
#include "kernels/host/recurrent/layers.h"
#include "kernels/host/scratch_layout.h"

namespace treenail::cuda {

// float32 for half types.
DType computed_type(DType dtype);

// Scratch memory that what is queued one after the other shares.
class Workspace {
 public:
  void need(size_t bytes) { bytes_ = std::max(bytes_, bytes); }
  size_t bytes() const { return bytes_; }

 private:
  size_t bytes_ = 0;
};

// C = op(A) op(B), of the layer's dtype or (`wide`) as it is computed. Where the sum has no terms,
// C is zero; where C has no elements, nothing is done.
class LayerProduct {
 public:
  struct Sizes {
    int64_t m, n, k;
    bool trans_a = false, trans_b = false, wide = false;
  };
  LayerProduct(CudaDevice& device, DType dtype, const Sizes& sizes, Workspace& workspace);
  // Queued.
  void launch(CudaDevice& device, const void* a, const void* b, void* c,
              std::byte* workspace) const;

 private:
  std::unique_ptr<const BlasProduct> product_;
  size_t bytes_;  // of C
};

// The sums of columns of matrices [rows, columns].
ArrayReduction column_sums(DType dtype, int64_t rows, int64_t columns, Workspace& workspace);

// The sizes of a layer's dtypes, and its arrays.
struct LayerArrays {
  host::LayerExtents e;
  DType dtype;
  int64_t stored, computed;  // bytes of an element

  LayerArrays(const host::LayerExtents& extents, const PrepareContext& p);
  // Row of matrices with so many columns; null stays null.
  const std::byte* row(const void* from, int64_t number, int64_t columns) const {
    return from == nullptr ? nullptr
                           : static_cast<const std::byte*>(from) + number * columns * stored;
  }
  std::byte* row(void* from, int64_t number, int64_t columns) const {
    return static_cast<std::byte*>(from) + number * columns * stored;
  }
  // h or cs before a step, of the layer's initial state and its outputs.
  const void* before(const void* initial, const void* output, int64_t step) const {
    return step == 0 ? initial : row(output, (step - 1) * e.batch, e.cell);
  }
  gpu::LayerStep step(const int64_t* steps, int64_t number) const {
    return {e.batch, e.cell, number, steps};
  }
  Grid unit_grid(const CudaDevice& device) const { return grid_for(device, e.batch * e.cell); }
  size_t take_stored(host::ScratchLayout& layout, int64_t rows, int64_t columns) const {
    return layout.take_bytes(rows, columns, static_cast<size_t>(stored));
  }
  size_t take_computed(host::ScratchLayout& layout, int64_t rows, int64_t columns) const {
    return layout.take_bytes(rows, columns, static_cast<size_t>(computed));
  }
};

// Null where the input has no elements.
const void* elements_of(const Tensor& tensor);

// Queued: fails the run where seq_len_max, input 0, is not in [0, time].
void check_steps(RunContext& c, CudaDevice& device, Failure failure, int64_t time);

// [x, h_prev or h] for the steps that are computed, else zeros.
void launch_beside(CudaDevice& device, const LayerArrays& arrays, const gpu::BesideRows& rows);

// The kernel of a layer with nothing to compute: all outputs are zero.
std::unique_ptr<Kernel> empty_layer(const PrepareContext& p, bool sequence, int64_t time);

// A layer of Plan's sizes: Layer(p, plan, layout) with run(c, device, failure).
template <class Plan, class Layer>
std::unique_ptr<Kernel> prepare_layer(const PrepareContext& p) {
  const Plan plan(p);
  if (plan.e.empty()) return empty_layer(p, plan.sequence, plan.e.time);
  host::ScratchLayout layout;
  auto layer = std::make_unique<const Layer>(p, plan, layout);
  auto kernel = make_launching_kernel(
      p, [layer = std::move(layer)](RunContext& c, CudaDevice& device, Failure failure) {
        layer->run(c, device, failure);
      });
  kernel->scratch_bytes = layout.bytes();
  return kernel;
}

void add_recurrent(KernelRegistrations& r, const char* op, PrepareFn prepare);

}  // namespace treenail::cuda
