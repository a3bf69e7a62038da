// SPDX-License-Identifier: Apache-2.0
// Kernels of the border ops in framework/ops/layout.cc: Pad, MirrorPad and its adjoint. Rows run
// along the last axis.
#include <algorithm>
#include <complex>

#include "framework/base/small_vector.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

struct PaddedAxis {
  int64_t inner = 1;   // extent without borders
  int64_t before = 0;  // elements of the borders
  int64_t after = 0;
  int64_t outer() const { return before + inner + after; }
};

struct PaddedSpace {
  int rank = 1;
  SmallVector<PaddedAxis, 4> axes;
  const PaddedAxis& row() const { return axes.back(); }
  int64_t inner_rows() const {
    int64_t rows = 1;
    for (int i = 0; i + 1 < rank; ++i) rows *= axes[i].inner;
    return rows;
  }
  int64_t outer_rows() const {
    int64_t rows = 1;
    for (int i = 0; i + 1 < rank; ++i) rows *= axes[i].outer();
    return rows;
  }
};

// `inner`: the shape without borders. With `merge`, an axis without borders is taken into the one
// before it.
PaddedSpace space_of(const Shape& inner, const Tensor& paddings, bool merge) {
  PaddedSpace space;
  for (int i = 0; i < inner.rank(); ++i) {
    const auto at = [&](int64_t k) -> int64_t {
      return paddings.dtype() == DType::kInt32 ? paddings.data<int32_t>()[2 * i + k]
                                               : paddings.data<int64_t>()[2 * i + k];
    };
    const PaddedAxis axis{inner.dim(i), at(0), at(1)};
    if (merge && !space.axes.empty() && axis.before == 0 && axis.after == 0) {
      PaddedAxis& last = space.axes.back();
      last = {last.inner * axis.inner, last.before * axis.inner, last.after * axis.inner};
    } else {
      space.axes.push_back(axis);
    }
  }
  if (space.axes.empty()) space.axes.push_back({});
  space.rank = static_cast<int>(space.axes.size());
  return space;
}

template <class T>
double row_cost(int64_t row) {
  return 5 + kMoveCost<T> * static_cast<double>(row);
}
template <class T>
int64_t row_grain(int64_t row) {
  return std::max<int64_t>(1, kMoveGrain<T> / std::max<int64_t>(row, 1));
}

// --- Pad --------------------------------------------------------------------------------------

// The inner row that lies at outer row `flat`, or -1 when it is all border.
int64_t inner_row_of(const PaddedSpace& s, int64_t flat) {
  int64_t row = 0;
  int64_t stride = 1;
  for (int i = s.rank - 1; i-- > 0;) {
    const int64_t at = flat % s.axes[i].outer() - s.axes[i].before;
    flat /= s.axes[i].outer();
    if (at < 0 || at >= s.axes[i].inner) return -1;
    row += at * stride;
    stride *= s.axes[i].inner;
  }
  return row;
}

template <class T>
KernelPtr pad_kernel(const PaddedSpace& s) {
  const int64_t width = s.row().outer();
  const int64_t rows = s.outer_rows();
  return make_kernel(
      [s, width, rows](RunContext& c) {
        const T* from = elements<T>(c.input(0));
        const T value = *elements<T>(c.input(2));
        T* to = elements<T>(c.output(0));
        const PaddedAxis& row = s.row();
        c.parallel_for(rows, row_grain<T>(width), row_cost<T>(width),
                       [&](int64_t begin, int64_t end) {
                         for (int64_t i = begin; i < end; ++i) {
                           const int64_t source = inner_row_of(s, i);
                           T* out = to + i * width;
                           if (source < 0) {
                             fill_elements(out, value, width);
                             continue;
                           }
                           fill_elements(out, value, row.before);
                           copy_elements(out + row.before, from + source * row.inner, row.inner);
                           fill_elements(out + row.before + row.inner, value, row.after);
                         }
                       });
      },
      row_cost<T>(width) * static_cast<double>(rows));
}

KernelPtr prepare_pad(const PrepareContext& p) {
  const PaddedSpace space = space_of(p.input_shape(0), p.host_value(1), true);
  return dispatch_element(p.output_type(0), [&]<class T>() { return pad_kernel<T>(space); });
}

// --- MirrorPad --------------------------------------------------------------------------------

// Where the element at place `at` of the padded axis comes from. offset 1: the edge is not repeated
// (REFLECT).
int64_t mirrored(const PaddedAxis& axis, int64_t offset, int64_t at) {
  const int64_t inside = at - axis.before;
  if (inside < 0) return -inside - 1 + offset;
  if (inside >= axis.inner) return 2 * axis.inner - 1 - offset - inside;
  return inside;
}

template <class T>
KernelPtr mirror_pad_kernel(const PaddedSpace& s, int64_t offset) {
  const int64_t width = s.row().outer();
  const int64_t rows = s.outer_rows();
  return make_kernel(
      [s, offset, width, rows](RunContext& c) {
        const T* from = elements<T>(c.input(0));
        T* to = elements<T>(c.output(0));
        const PaddedAxis& row = s.row();
        c.parallel_for(
            rows, row_grain<T>(width), row_cost<T>(width), [&](int64_t begin, int64_t end) {
              for (int64_t i = begin; i < end; ++i) {
                int64_t source = 0;
                int64_t stride = 1;
                int64_t rest = i;
                for (int k = s.rank - 1; k-- > 0;) {
                  source += mirrored(s.axes[k], offset, rest % s.axes[k].outer()) * stride;
                  rest /= s.axes[k].outer();
                  stride *= s.axes[k].inner;
                }
                const T* in = from + source * row.inner;
                T* out = to + i * width;
                for (int64_t j = 0; j < row.before; ++j) out[j] = in[mirrored(row, offset, j)];
                copy_elements(out + row.before, in, row.inner);
                for (int64_t j = row.before + row.inner; j < width; ++j)
                  out[j] = in[mirrored(row, offset, j)];
              }
            });
      },
      row_cost<T>(width) * static_cast<double>(rows));
}

int64_t mirror_offset(const PrepareContext& p) {
  return p.op().get_string("mode") == "REFLECT" ? 1 : 0;
}

KernelPtr prepare_mirror_pad(const PrepareContext& p) {
  const PaddedSpace space = space_of(p.input_shape(0), p.host_value(1), false);
  return dispatch_element(p.output_type(0),
                          [&]<class T>() { return mirror_pad_kernel<T>(space, mirror_offset(p)); });
}

// --- MirrorPadGrad ----------------------------------------------------------------------------

template <class T>
T sum(T a, T b) {
  if constexpr (std::is_same_v<T, Float16> || std::is_same_v<T, BFloat16>) {
    return T(static_cast<float>(a) + static_cast<float>(b));
  } else {
    return static_cast<T>(a + b);
  }
}

// The places of the padded axis that mirror inner place `at`: itself and up to two in the borders.
int sources_of(const PaddedAxis& axis, int64_t offset, int64_t at, int64_t* out) {
  int count = 0;
  out[count++] = axis.before + at;
  const int64_t left = axis.before - 1 - at + offset;
  if (left >= 0 && left < axis.before) out[count++] = left;
  const int64_t right = axis.before + 2 * axis.inner - 1 - offset - at;
  if (right >= axis.before + axis.inner && right < axis.outer()) out[count++] = right;
  return count;
}

// Adds what folds onto one inner row: the rows of the border that mirror it, axis by axis, then
// along the row itself.
template <class T>
struct Folder {
  const PaddedSpace& s;
  int64_t offset;
  const T* from;
  T* out;
  const int64_t* inner_place;  // per outer axis

  void rows(int axis, int64_t row) const {
    if (axis == s.rank - 1) {
      add_row(from + row * s.row().outer());
      return;
    }
    int64_t places[3];
    const int count = sources_of(s.axes[axis], offset, inner_place[axis], places);
    for (int k = 0; k < count; ++k) rows(axis + 1, row * s.axes[axis].outer() + places[k]);
  }
  void add_row(const T* in) const {
    const PaddedAxis& row = s.row();
    for (int64_t j = 0; j < row.inner; ++j) out[j] = sum(out[j], in[row.before + j]);
    for (int64_t j = 0; j < row.before; ++j) add_border(in, j);
    for (int64_t j = row.before + row.inner; j < row.outer(); ++j) add_border(in, j);
  }
  void add_border(const T* in, int64_t j) const {
    T& target = out[mirrored(s.row(), offset, j)];
    target = sum(target, in[j]);
  }
};

template <class T>
KernelPtr mirror_pad_grad_kernel(const PaddedSpace& s, int64_t offset) {
  const int64_t rows = s.inner_rows();
  const double cost = 20 + 2.0 * static_cast<double>(s.row().outer());
  return make_kernel(
      [s, offset, rows, cost](RunContext& c) {
        const T* from = static_cast<const T*>(c.input(0).raw());
        T* to = static_cast<T*>(c.output(0).raw());
        c.parallel_for(rows, row_grain<T>(s.row().inner), cost, [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            int64_t place[kMaxRank] = {};
            int64_t rest = i;
            for (int k = s.rank - 1; k-- > 0;) {
              place[k] = rest % s.axes[k].inner;
              rest /= s.axes[k].inner;
            }
            T* out = to + i * s.row().inner;
            fill_elements(out, T(), s.row().inner);
            Folder<T>{s, offset, from, out, place}.rows(0, 0);
          }
        });
      },
      cost * static_cast<double>(rows));
}

// Sums of integers wrap, so the signed types share the unsigned code.
KernelPtr prepare_mirror_pad_grad(const PrepareContext& p) {
  const PaddedSpace s = space_of(p.output_shape(0), p.host_value(1), false);
  const int64_t offset = mirror_offset(p);
  switch (p.output_type(0)) {
    case DType::kInt8:
    case DType::kUInt8:
      return mirror_pad_grad_kernel<uint8_t>(s, offset);
    case DType::kInt16:
    case DType::kUInt16:
      return mirror_pad_grad_kernel<uint16_t>(s, offset);
    case DType::kInt32:
    case DType::kUInt32:
      return mirror_pad_grad_kernel<uint32_t>(s, offset);
    case DType::kInt64:
    case DType::kUInt64:
      return mirror_pad_grad_kernel<uint64_t>(s, offset);
    default:
      break;
  }
  return dispatch<float, double, Float16, BFloat16, std::complex<float>, std::complex<double>>(
      p.output_type(0), [&]<class T>() { return mirror_pad_grad_kernel<T>(s, offset); });
}

}  // namespace

void register_padding_kernels(KernelRegistry& r) {
  r.add("Pad", {}, prepare_pad);
  r.add("MirrorPad", {}, prepare_mirror_pad);
  r.add("MirrorPadGrad", {}, prepare_mirror_pad_grad);
}

}  // namespace treenail::host
