// SPDX-License-Identifier: Apache-2.0
#include "kernels/cpu/recurrent/recurrence.h"

#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/products/pooled_product.h"

namespace treenail::cpu {
namespace {

constexpr int64_t kDepth = 256;    // rows of a panel that stay in L1 together
constexpr int64_t kGrain = 16384;  // elements per piece of a plain sweep

}  // namespace

// --- 16-bit types
// ---------------------------------------------------------------------------------

template <class C>
ComputedArrays<C>::ComputedArrays(const PrepareContext& p, ScratchLayout& layout)
    : dtype_(p.op().get_type("T")), copied_(dtype_ != dtype_of<C>) {
  if (!copied_) return;
  for (int i = 0; i < p.num_inputs(); ++i) {
    const int64_t n = p.input_type(i) == dtype_ ? p.input_shape(i).num_elements() : 0;
    inputs_.push_back(layout.take<C>(n));
  }
  for (int i = 0; i < p.op().num_outputs(); ++i)
    outputs_.push_back(layout.take<C>(p.output_shape(i).num_elements()));
}

template <class C>
const C* ComputedArrays<C>::input(RunContext& c, int i) const {
  const Tensor& tensor = c.input(i);
  if (tensor.num_elements() == 0) return nullptr;
  if (!copied_) return tensor.data<C>();
  auto* to = reinterpret_cast<float*>(c.scratch() + inputs_[static_cast<size_t>(i)]);
  dispatch<Float16, BFloat16>(dtype_, [&]<class T>() {
    const T* from = tensor.data<T>();
    c.parallel_for(tensor.num_elements(), kGrain, 0.3, [&](int64_t begin, int64_t end) {
      widen(from + begin, to + begin, end - begin);
    });
  });
  return reinterpret_cast<const C*>(to);
}

template <class C>
C* ComputedArrays<C>::output(RunContext& c, int i) const {
  if (!copied_) return c.output(i).template data<C>();
  return reinterpret_cast<C*>(c.scratch() + outputs_[static_cast<size_t>(i)]);
}

template <class C>
void ComputedArrays<C>::finish(RunContext& c) const {
  for (size_t i = 0; i < outputs_.size(); ++i) {
    Tensor& output = c.output(static_cast<int>(i));
    const auto* from = reinterpret_cast<const float*>(c.scratch() + outputs_[i]);
    dispatch<Float16, BFloat16>(dtype_, [&]<class T>() {
      T* to = output.data<T>();
      c.parallel_for(output.num_elements(), kGrain, 0.6, [&](int64_t begin, int64_t end) {
        narrow(from + begin, to + begin, end - begin);
      });
    });
  }
}

template class ComputedArrays<float>;
template class ComputedArrays<double>;

template <class C>
std::unique_ptr<Kernel> zero_gradients(const PrepareContext& p, const ComputedArrays<C>& arrays,
                                       const ScratchLayout& layout, int64_t time) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < p.op().num_outputs(); ++i) sizes.push_back(p.output_shape(i).num_elements());
  return make_kernel(
      [=](RunContext& c) {
        steps_of(c, true, time);
        for (size_t i = 0; i < sizes.size(); ++i)
          zero_from(c, arrays.output(c, static_cast<int>(i)), 0, sizes[i]);
        arrays.finish(c);
      },
      0, layout.bytes());
}

template std::unique_ptr<Kernel> zero_gradients(const PrepareContext&, const ComputedArrays<float>&,
                                                const ScratchLayout&, int64_t);
template std::unique_ptr<Kernel> zero_gradients(const PrepareContext&,
                                                const ComputedArrays<double>&, const ScratchLayout&,
                                                int64_t);

void add_recurrent(KernelRegistry& r, std::string_view op, PrepareFn in_float,
                   PrepareFn in_double) {
  for (const DType dtype : {DType::kFloat32, DType::kFloat16, DType::kBFloat16})
    r.add(op, {{"T", {dtype}}}, in_float);
  r.add(op, {{"T", {DType::kFloat64}}}, in_double);
}

// --- Pieces and panels
// ----------------------------------------------------------------------------

BatchPieces::BatchPieces(int64_t batch) : batch(batch), rows(std::max<int64_t>(batch, 1)) {
  constexpr int64_t kRows = 16;
  if (batch >= kRows + kRows / 2) {
    rows = kRows;
  } else if (batch >= kRows / 2) {
    rows = (batch + 1) / 2;
  }
  count = (batch + rows - 1) / rows;
}

template <class C>
void StepMatrix<C>::pack(int64_t panel) const {
  C* to = panels + panel * kWidth * depth;
  const int64_t first = panel * kWidth;
  if (transposed) {
    pack_panel_transposed(from + first * ld, ld, depth, panel_columns(panel), to);
  } else {
    pack_panels(from + first, ld, depth, panel_columns(panel), to);
  }
}

template <class C>
void StepMatrix<C>::multiply(int64_t panel, int64_t rows, const C* a, int64_t lda, C* c,
                             int64_t ldc, bool add) const {
  const int64_t first = panel * kWidth, count = panel_columns(panel);
  if (panels == nullptr) {
    const C* b = transposed ? from + first * ld : from + first;
    multiply_block(
        Product<C>{rows, count, depth, false, transposed, a, lda, b, ld, c + first, ldc, add}, 0,
        rows, 0, count);
    return;
  }
  // Tiles of even height: a low one would wait for its few sums.
  const int64_t tiles = (rows + kMicroRows - 1) / kMicroRows, height = (rows + tiles - 1) / tiles;
  MicroKernelCall<C> call{};
  call.a_row = lda;
  call.a_step = 1;
  call.ldb = kWidth;
  call.ldc = ldc;
  for (int64_t k = 0; k < depth; k += kDepth) {
    call.depth = std::min(kDepth, depth - k);
    call.b = panels + (panel * depth + k) * kWidth;
    call.add = add || k > 0;
    for (int64_t i = 0; i < rows; i += height) {
      call.a = a + i * lda + k;
      call.c = c + i * ldc + first;
      run_micro_kernel(std::min(height, rows - i), count, call);
    }
  }
}

template struct StepMatrix<float>;
template struct StepMatrix<double>;

template <class C>
void pack_matrices(const RunContext& c, std::span<const StepMatrix<C>> matrices) {
  if (matrices.front().panels == nullptr) return;
  int64_t total = 0;
  double elements = 0;
  for (const StepMatrix<C>& m : matrices) {
    total += m.num_panels();
    elements +=
        static_cast<double>(m.num_panels()) * static_cast<double>(m.depth) * StepMatrix<C>::kWidth;
  }
  const int64_t grain = std::clamp<int64_t>(
      static_cast<int64_t>(static_cast<double>(total) * 65536 / (elements + 1)), 1, total);
  c.parallel_for(total, grain, 0.3 * elements / static_cast<double>(total),
                 [&](int64_t panel, int64_t end) {
                   for (; panel < end; ++panel) {
                     int64_t at = panel;
                     const StepMatrix<C>* m = matrices.data();
                     for (; at >= m->num_panels(); ++m) at -= m->num_panels();
                     m->pack(at);
                   }
                 });
}

template void pack_matrices(const RunContext&, std::span<const StepMatrix<float>>);
template void pack_matrices(const RunContext&, std::span<const StepMatrix<double>>);

// --- Over all rows
// --------------------------------------------------------------------------------

template <class C>
void sum_columns(RunContext& c, const ColumnSum<C>& s) {
  // Blocks of rows are summed from zero: the error grows with their size plus their number.
  constexpr int64_t kBlock = 64, kColumns = 4 * kLanes<C>;
  const int64_t chunks = (s.columns + kColumns - 1) / kColumns;
  const double cost = 0.2 * static_cast<double>(s.rows) * static_cast<double>(s.columns);
  c.run_chunks(chunks, cost, [&](int64_t chunk) {
    const int64_t first = chunk * kColumns;
    for_units<C>(first, std::min(s.columns, first + kColumns), [&](int64_t j, auto n) {
      Vec<C> total = s.add ? load_some(s.out + j, n) : Vec<C>{};
      for (int64_t begin = 0; begin < s.rows; begin += kBlock) {
        Vec<C> part{};
        for (int64_t i = begin; i < std::min(s.rows, begin + kBlock); ++i) {
          const Vec<C> a = load_some(s.a + i * s.lda + j, n);
          part += s.b != nullptr ? a * load_some(s.b + i * s.ldb + j, n) : a;
        }
        total += part;
      }
      store_some(s.out + j, total, n);
    });
  });
}

template void sum_columns(RunContext&, const ColumnSum<float>&);
template void sum_columns(RunContext&, const ColumnSum<double>&);

template <class C>
void weights_gradient(RunContext& c, const LayerExtents& e, int64_t steps, int64_t n, const C* x,
                      const C* h_prev, const C* h, const C* d, C* gradient) {
  Product<C> first;
  first.m = e.cell;
  first.n = first.ldb = first.ldc = n;
  first.trans_a = true;
  first.k = std::min<int64_t>(steps, 1) * e.batch;
  first.a = h_prev;
  first.lda = e.cell;
  first.b = d;
  first.c = gradient + e.input * n;
  Product<C> rest = first;
  rest.k = std::max<int64_t>(steps - 1, 0) * e.batch;
  rest.a = h;
  rest.b = d + first.k * n;
  rest.add_to_c = true;
  Product<C> of_x = first;
  of_x.m = of_x.lda = e.input;
  of_x.k = steps * e.batch;
  of_x.a = x;
  of_x.c = gradient;
  multiply_on_pool(c, std::span<const Product<C>>(&first, 1));
  const Product<C> both[] = {of_x, rest};
  multiply_on_pool(c, std::span<const Product<C>>(both));
}

template void weights_gradient(RunContext&, const LayerExtents&, int64_t, int64_t, const float*,
                               const float*, const float*, const float*, float*);
template void weights_gradient(RunContext&, const LayerExtents&, int64_t, int64_t, const double*,
                               const double*, const double*, const double*, double*);

int64_t steps_of(RunContext& c, bool sequence, int64_t time) {
  if (!sequence) return time;
  const int64_t steps = *c.input(0).data<int64_t>();
  host::check_steps(steps, time);
  return steps;
}

template <class C>
void zero_from(RunContext& c, C* array, int64_t begin, int64_t end) {
  c.parallel_for(std::max<int64_t>(end - begin, 0), kGrain, 0.1, [&](int64_t i, int64_t last) {
    std::fill(array + begin + i, array + begin + last, C(0));
  });
}

template void zero_from(RunContext&, float*, int64_t, int64_t);
template void zero_from(RunContext&, double*, int64_t, int64_t);

}  // namespace treenail::cpu
