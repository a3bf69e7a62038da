// SPDX-License-Identifier: Apache-2.0
// BiasAdd and BiasAddGrad. With channels last the bias is repeated to a pattern of at least a few
// vectors, so that few channels cost no more than many; the sum over rows works on as many rows
// together as fill whole vectors.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <type_traits>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/reductions/row_sums.h"
#include "kernels/cpu/simd/registers.h"
#include "kernels/host/elementwise/fusion.h"

namespace treenail::cpu {
namespace {

// value seen as [outer, channels, inner]; inner is 1 when channels come last.
struct Extents {
  int64_t outer = 1, channels, inner = 1;
  Extents(const Shape& value, bool channels_second) {
    const int axis = channels_second ? 1 : value.rank() - 1;
    channels = value.dim(axis);
    for (int i = 0; i < axis; ++i) outer *= value.dim(i);
    for (int i = axis + 1; i < value.rank(); ++i) inner *= value.dim(i);
  }
  bool empty() const { return outer == 0 || channels == 0 || inner == 0; }
};

constexpr int64_t kTile = 512;

// y = x + bias, or + bias[0] when kOne.
template <bool kOne, class C>
void add_bias(const C* x, const C* bias, C* y, int64_t n) {
  for (int64_t i = 0; i < n; ++i) y[i] = x[i] + (kOne ? bias[0] : bias[i]);
}

// The same for n 16-bit elements from `at` on, by way of a tile.
template <bool kOne>
void add_bias_to_half(const Tensor& x, const float* bias, Tensor& y, int64_t at, int64_t n) {
  float tile[kTile];
  for (int64_t i = 0; i < n; i += kTile) {
    const int64_t count = std::min(kTile, n - i);
    widen(x.dtype(), x.raw(), at + i, count, tile);
    for (int64_t j = 0; j < count; ++j) tile[j] += kOne ? bias[0] : bias[i + j];
    narrow(y.dtype(), tile, count, y.raw(), at + i);
  }
}

// add(at, bias, n): what adds to the elements [at, at + n) of x, for as many calls as body makes.
template <bool kOne, class C, class F>
void with_addition(const Tensor& x, Tensor& y, F body) {
  if constexpr (std::is_same_v<C, float>) {
    if (is_half(x.dtype())) {
      return body([&](int64_t at, const float* bias, int64_t n) {
        add_bias_to_half<kOne>(x, bias, y, at, n);
      });
    }
  }
  body([from = x.data<C>(), to = y.data<C>()](int64_t at, const C* bias, int64_t n) {
    add_bias<kOne>(from + at, bias, to + at, n);
  });
}

template <class C>
void to_computed(const Tensor& from, int64_t at, int64_t n, C* to) {
  if constexpr (std::is_same_v<C, float>) {
    if (is_half(from.dtype())) return widen(from.dtype(), from.raw(), at, n, to);
  }
  std::copy_n(from.data<C>() + at, n, to);
}

template <class C>
void from_computed(C from, Tensor& to, int64_t at) {
  if constexpr (std::is_same_v<C, float>) {
    if (is_half(to.dtype())) return narrow(to.dtype(), &from, 1, to.raw(), at);
  }
  to.data<C>()[at] = from;
}

template <class C>
std::unique_ptr<Kernel> prepare_add(const PrepareContext& c) {
  const Extents e(c.output_shape(0), c.op().get_string("data_format") == "NCHW");
  if (e.empty()) return make_kernel([](RunContext&) {});
  const int64_t total = c.output_shape(0).num_elements();
  const double cost = 20 + 0.15 * static_cast<double>(total);
  if (e.inner > 1) {
    const int64_t grain = std::max<int64_t>(1, 32768 / e.inner);
    return make_kernel(
        [e, grain](RunContext& c) {
          c.parallel_for(e.outer * e.channels, grain, 0.15 * static_cast<double>(e.inner),
                         [&](int64_t i, int64_t end) {
                           with_addition<true, C>(c.input(0), c.output(0), [&](auto add) {
                             for (; i < end; ++i) {
                               C b;
                               to_computed(c.input(1), i % e.channels, 1, &b);
                               add(i * e.inner, &b, e.inner);
                             }
                           });
                         });
        },
        cost);
  }
  // The pattern: the bias, repeated while it is short, for `repeat` rows at a time.
  const int64_t repeat = std::max<int64_t>(1, 256 / e.channels), period = repeat * e.channels;
  const int64_t grain = std::max<int64_t>(1, 32768 / period);
  const int64_t periods = (total + period - 1) / period;
  return make_kernel(
      [=](RunContext& c) {
        C* const pattern = reinterpret_cast<C*>(c.scratch());
        for (int64_t i = 0; i < repeat; ++i)
          to_computed(c.input(1), 0, e.channels, pattern + i * e.channels);
        c.parallel_for(periods, grain, 0.15 * static_cast<double>(period),
                       [&](int64_t i, int64_t end) {
                         with_addition<false, C>(c.input(0), c.output(0), [&](auto add) {
                           for (; i < end; ++i) {
                             const int64_t at = i * period;
                             add(at, pattern, std::min(period, total - at));
                           }
                         });
                       });
      },
      cost, static_cast<size_t>(period) * sizeof(C));
}

template <class C>
void add_plain_rows(const C* x, int64_t count, int64_t width, C* sum) {
  add_rows(x, count, width, sum, [](Vec<C> v, int64_t, int64_t) { return v; });
}

template <class C>
std::unique_ptr<Kernel> prepare_grad_last(const Extents& e, bool half) {
  const RowGroups<C> s(e.outer, e.channels);
  constexpr int64_t kMicroRows = 8;
  // Scratch: a partial sum per piece, and for 16-bit elements a few widened groups per piece.
  const int64_t per_piece = s.width * (half ? 1 + kMicroRows : 1);
  const double cost = 20 + 0.15 * static_cast<double>(e.outer * e.channels);
  return make_kernel(
      [=](RunContext& c) {
        const Tensor& x = c.input(0);
        C* const partial = reinterpret_cast<C*>(c.scratch());
        c.run_chunks(s.pieces, cost, [&](int64_t piece) {
          C* const sum = partial + piece * per_piece;
          const int64_t count = s.piece_groups(piece);
          const int64_t from = s.piece_begin(piece) * s.width;
          if (!half) return add_plain_rows(x.data<C>() + from, count, s.width, sum);
          C* const tile = sum + s.width;
          std::fill_n(sum, s.width, C(0));
          for (int64_t i = 0; i < count; i += kMicroRows - 1) {
            // The sum so far is the tile's first row.
            const int64_t some = std::min(kMicroRows - 1, count - i);
            std::copy_n(sum, s.width, tile);
            to_computed(x, from + i * s.width, some * s.width, tile + s.width);
            add_plain_rows(tile, some + 1, s.width, sum);
          }
        });
        for (int64_t channel = 0; channel < s.channels; ++channel) {
          C total = 0;
          s.for_partials(channel, per_piece, [&](int64_t at, int64_t) { total += partial[at]; });
          for (int64_t row = s.rest_begin(); row < s.rows; ++row) {
            C one;
            to_computed(x, row * s.channels + channel, 1, &one);
            total += one;
          }
          from_computed(total, c.output(0), channel);
        }
      },
      cost, static_cast<size_t>(s.pieces * per_piece) * sizeof(C));
}

// The sum of a contiguous run: whole vectors in two chains, then the rest on a padded vector.
template <class C>
C sum_run(const Tensor& x, int64_t at, int64_t n) {
  constexpr int lanes = kLanes<C>;
  C tile[kTile];
  C total = 0;
  for (int64_t begin = 0; begin < n; begin += kTile) {
    const int64_t count = std::min(kTile, n - begin);
    const C* from = tile;
    if (is_half(x.dtype())) {
      to_computed(x, at + begin, count, tile);
    } else {
      from = x.data<C>() + at + begin;
    }
    Vec<C> s[2] = {};
    int64_t i = 0;
    for (; i + 2 * lanes <= count; i += 2 * lanes) {
      s[0] += load<Vec<C>>(from + i);
      s[1] += load<Vec<C>>(from + i + lanes);
    }
    for (; i + lanes <= count; i += lanes) s[0] += load<Vec<C>>(from + i);
    if (i < count) s[1] += load_part<Vec<C>>(from + i, count - i);
    total += sum_lanes<C>(s[0] + s[1]);
  }
  return total;
}

template <class C>
std::unique_ptr<Kernel> prepare_grad_second(const Extents& e) {
  const double cost_per_channel = 0.15 * static_cast<double>(e.outer * e.inner);
  const int64_t grain = std::max<int64_t>(1, 32768 / std::max<int64_t>(1, e.outer * e.inner));
  return make_kernel(
      [=](RunContext& c) {
        c.parallel_for(e.channels, grain, cost_per_channel, [&](int64_t channel, int64_t end) {
          for (; channel < end; ++channel) {
            C total = 0;
            for (int64_t i = 0; i < e.outer; ++i)
              total += sum_run<C>(c.input(0), (i * e.channels + channel) * e.inner, e.inner);
            from_computed(total, c.output(0), channel);
          }
        });
      },
      20 + cost_per_channel * static_cast<double>(e.channels));
}

template <class C>
std::unique_ptr<Kernel> prepare_grad(const PrepareContext& c) {
  const Extents e(c.input_shape(0), c.op().get_string("data_format") == "NCHW");
  if (e.empty()) {
    return make_kernel([](RunContext& c) {  // zero has the same bytes in every dtype
      std::fill_n(static_cast<std::byte*>(c.output(0).raw()), c.output(0).bytes(), std::byte{0});
    });
  }
  return e.inner > 1 ? prepare_grad_second<C>(e)
                     : prepare_grad_last<C>(e, is_half(c.input_type(0)));
}

// With channels last the bias is broadcast as Add's operand would be.
bool adds_last(const OpInstance& op) { return op.get_string("data_format") == "NHWC"; }

int add_steps(host::TileProgram& program, const OpInstance& op, std::span<const int> operands) {
  const host::TileOp* add = host::find_tile_op("Add", host::compute_type(op.output_type(0)));
  return host::add_tile_op(program, *add, op, operands);
}

template <class C>
void register_types(KernelRegistry& r) {
  const TypeConstraint type = {"T", stored_types<C>()};
  r.add("BiasAdd", {type}, prepare_add<C>);
  r.add("BiasAddGrad", {type}, prepare_grad<C>);
}

}  // namespace

void register_bias_kernels(KernelRegistry& r) {
  register_types<float>(r);
  register_types<double>(r);
  host::add_fusible_op("BiasAdd", adds_last, add_steps);
}

}  // namespace treenail::cpu
