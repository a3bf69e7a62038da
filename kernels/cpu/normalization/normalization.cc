// SPDX-License-Identifier: Apache-2.0
// FusedBatchNorm and its gradient, on [pixels, channels] in float or double. Mean and variance come
// from one pass over memory: each piece takes its own mean and squared deviations while it is in
// cache, and pieces are combined by Chan's formula, so that a large mean costs no digits.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <memory>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/image/layout.h"
#include "kernels/cpu/reductions/row_sums.h"
#include "kernels/cpu/simd/aligned.h"
#include "kernels/cpu/simd/registers.h"

namespace treenail::cpu {
namespace {

struct Images {
  int64_t batch, pixels, channels;
  bool channels_second;
  Images(const OpInstance& op, const Shape& x) {
    channels_second = op.get_string("data_format") == "NCHW";
    batch = x.dim(0);
    channels = x.dim(channels_second ? 1 : 3);
    pixels = x.dim(channels_second ? 2 : 1) * x.dim(channels_second ? 3 : 2);
  }
  int64_t rows() const { return batch * pixels; }
  int64_t elements() const { return rows() * channels; }
  template <class C>
  ImageLayout<C> layout(DType stored) const {
    return {batch, pixels, channels, channels_second, is_half(stored)};
  }
  double cost() const { return 200 + 0.4 * static_cast<double>(elements()); }
};

// Count, mean and sum of squared deviations; + combines two samples.
template <class C>
struct Sample {
  C count = 0, mean = 0, squares = 0;
  void add(C n, C m, C s) {
    const C total = count + n;
    if (total == 0) return;
    const C delta = m - mean;
    mean += delta * (n / total);
    squares += s + delta * delta * (count * (n / total));
    count = total;
  }
};

// Mean and biased variance per channel. Partials: per piece a group's width of means, then of
// squared deviations.
template <class C>
void batch_statistics(const RunContext& c, const RowGroups<C>& s, const C* x, C* partials,
                      double cost, C* mean, C* variance) {
  c.run_chunks(s.pieces, cost, [&](int64_t piece) {
    const C* from = x + s.piece_begin(piece) * s.width;
    const int64_t count = s.piece_groups(piece);
    C* const means = partials + piece * 2 * s.width;
    C* const squares = means + s.width;
    add_rows(from, count, s.width, means, [](Vec<C> v, int64_t, int64_t) { return v; });
    for (int64_t j = 0; j < s.width; ++j) means[j] /= static_cast<C>(count);
    for (int64_t j = 0; j < s.width; j += kLanes<C>) {
      const Vec<C> m = load<Vec<C>>(means + j);
      Vec<C> sum{};
      for (int64_t i = 0; i < count; ++i) {
        const Vec<C> d = load<Vec<C>>(from + i * s.width + j) - m;
        sum += d * d;
      }
      store(squares + j, sum);
    }
  });
  for (int64_t channel = 0; channel < s.channels; ++channel) {
    Sample<C> all;
    s.for_partials(channel, 2 * s.width, [&](int64_t at, int64_t count) {
      all.add(static_cast<C>(count), partials[at], partials[at + s.width]);
    });
    for (int64_t row = s.rest_begin(); row < s.rows; ++row)
      all.add(1, x[row * s.channels + channel], 0);
    mean[channel] = all.mean;
    variance[channel] = all.squares / all.count;
  }
}

// Per-channel factors repeated over a group, so that whole vectors run over rows.
template <class C>
struct Pattern {
  int64_t period;  // elements
  explicit Pattern(const RowGroups<C>& s) : period(s.width * std::max<int64_t>(1, 64 / s.width)) {}
  template <class F>
  void fill(C* to, int64_t channels, F f) const {
    for (int64_t i = 0; i < period; ++i) to[i] = f(i % channels);
  }
  // body(begin, count) over [0, elements): at most a period each, beginning where the pattern does.
  template <class F>
  void sweep(const RunContext& c, int64_t elements, F body) const {
    const int64_t periods = (elements + period - 1) / period;
    c.parallel_for(periods, std::max<int64_t>(1, 32768 / period), 0.2 * static_cast<double>(period),
                   [&](int64_t i, int64_t end) {
                     for (; i < end; ++i) body(i * period, std::min(period, elements - i * period));
                   });
  }
};

template <class C>
struct BatchNorm {
  Images images;
  RowGroups<C> groups;
  Pattern<C> pattern;
  C epsilon, factor;
  bool training;
  double cost;

  BatchNorm(const OpInstance& op, const Shape& x)
      : images(op, x),
        groups(images.rows(), std::max<int64_t>(1, images.channels)),
        pattern(groups),
        epsilon(static_cast<C>(op.get_float("epsilon"))),
        training(op.get_bool("is_training")),
        cost(images.cost()) {
    const bool has_factor = op.def().attr_index("exponential_avg_factor") >= 0;
    factor = has_factor ? static_cast<C>(op.get_float("exponential_avg_factor")) : C(1);
  }
  int64_t partials() const { return aligned(groups.pieces * 2 * groups.width); }
  int64_t patterns() const { return aligned(4 * pattern.period); }
};

template <class C>
struct Channels {
  const C *scale, *offset, *mean, *variance;  // inputs; mean and variance may be empty when unused
  C *new_mean, *new_variance, *used_mean, *used_variance;  // outputs
};

// Fills the four statistics outputs.
template <class C>
[[gnu::noinline]] void statistics(const RunContext& c, const BatchNorm<C>& b, const C* x,
                                  const Channels<C>& ch, C* partials) {
  const int64_t n = b.images.channels, count = b.images.rows();
  if (!b.training) {
    std::copy_n(ch.mean, n, ch.used_mean);
    std::copy_n(ch.variance, n, ch.used_variance);
    std::copy_n(ch.mean, n, ch.new_mean);
    std::copy_n(ch.variance, n, ch.new_variance);
    return;
  }
  if (count == 0) {
    // No sample: the mean and variance of nothing.
    const C none = std::numeric_limits<C>::quiet_NaN();
    std::fill_n(ch.used_mean, n, none);
    std::fill_n(ch.used_variance, n, none);
  } else {
    batch_statistics(c, b.groups, x, partials, b.cost, ch.used_mean, ch.used_variance);
  }
  const C unbias = count > 1 ? static_cast<C>(count) / static_cast<C>(count - 1) : C(1);
  for (int64_t i = 0; i < n; ++i) {
    const C mean = ch.used_mean[i], variance = ch.used_variance[i] * unbias;
    const bool replace = b.factor == 1;
    ch.new_mean[i] = replace ? mean : (1 - b.factor) * ch.mean[i] + b.factor * mean;
    ch.new_variance[i] = replace ? variance : (1 - b.factor) * ch.variance[i] + b.factor * variance;
  }
}

template <class C>
[[gnu::noinline]] void normalize(const RunContext& c, const BatchNorm<C>& b, const C* x,
                                 const Channels<C>& ch, C* patterns, C* y) {
  const int64_t n = b.images.channels;
  C *const mean = patterns, *const factor = mean + b.pattern.period,
           *const offset = factor + b.pattern.period;
  b.pattern.fill(mean, n, [&](int64_t i) { return ch.used_mean[i]; });
  b.pattern.fill(factor, n, [&](int64_t i) {
    return ch.scale[i] / std::sqrt(ch.used_variance[i] + b.epsilon);
  });
  b.pattern.fill(offset, n, [&](int64_t i) { return ch.offset[i]; });
  b.pattern.sweep(c, b.images.elements(), [&](int64_t at, int64_t count) {
    const C* from = x + at;
    C* to = y + at;
    for (int64_t i = 0; i < count; ++i) to[i] = (from[i] - mean[i]) * factor[i] + offset[i];
  });
}

template <class C>
std::unique_ptr<Kernel> prepare_batch_norm(const PrepareContext& c) {
  const BatchNorm<C> b(c.op(), c.input_shape(0));
  const ImageLayout<C> layout = b.images.template layout<C>(c.input_type(0));
  const int64_t conversion = layout.scratch();
  return make_kernel(
      [=](RunContext& c) {
        C* const for_x = reinterpret_cast<C*>(c.scratch());
        C* const for_y = for_x + conversion;
        C* const partials = for_y + conversion;
        const Channels<C> ch = {c.input(1).data<C>(),  c.input(2).data<C>(),  c.input(3).data<C>(),
                                c.input(4).data<C>(),  c.output(1).data<C>(), c.output(2).data<C>(),
                                c.output(3).data<C>(), c.output(4).data<C>()};
        const C* x = layout.read(c, c.input(0), for_x);
        statistics(c, b, x, ch, partials);
        if (b.images.elements() == 0) return;
        Tensor& out = c.output(0);
        C* const y = layout.target(out, for_y);
        normalize(c, b, x, ch, partials + b.partials(), y);
        layout.write(c, y, out, for_y);
      },
      b.cost, static_cast<size_t>(2 * conversion + b.partials() + b.patterns()) * sizeof(C));
}

// The gradients; sums over a channel's elements: of dy, and of dy * (x - mean).
template <class C>
[[gnu::noinline]] void gradient(const RunContext& c, const BatchNorm<C>& b, const C* dy, const C* x,
                                const C* scale, const C* mean, const C* variance, C* scratch, C* dx,
                                C* dscale, C* doffset) {
  const RowGroups<C>& s = b.groups;
  const int64_t n = b.images.channels;
  C *const partials = scratch, *const a = scratch + b.partials(), *const m = a + b.pattern.period,
           *const k = m + b.pattern.period;
  b.pattern.fill(m, n, [&](int64_t i) { return mean[i]; });
  c.run_chunks(s.pieces, b.cost, [&](int64_t piece) {
    const int64_t at = s.piece_begin(piece) * s.width;
    C* const sums = partials + piece * 2 * s.width;
    add_rows(dy + at, s.piece_groups(piece), s.width, sums,
             [](Vec<C> g, int64_t, int64_t) { return g; });
    add_rows(dy + at, s.piece_groups(piece), s.width, sums + s.width,
             [&](Vec<C> g, int64_t i, int64_t column) {
               return g * (load<Vec<C>>(x + at + i) - load<Vec<C>>(m + column));
             });
  });
  for (int64_t channel = 0; channel < n; ++channel) {
    C sum = 0, product = 0;
    s.for_partials(channel, 2 * s.width, [&](int64_t at, int64_t) {
      sum += partials[at];
      product += partials[at + s.width];
    });
    for (int64_t row = s.rest_begin(); row < s.rows; ++row) {
      const int64_t at = row * n + channel;
      sum += dy[at];
      product += dy[at] * (x[at] - mean[channel]);
    }
    doffset[channel] = sum;
    dscale[channel] = product / std::sqrt(variance[channel] + b.epsilon);
  }
  // dx = scale r (dy - mean(dy) - (x - mean) r^2 mean(dy (x - mean))): dscale is r times that sum.
  const C count = static_cast<C>(b.images.rows());
  const auto inverse = [&](int64_t i) { return 1 / std::sqrt(variance[i] + b.epsilon); };
  b.pattern.fill(k, n, [&](int64_t i) { return scale[i] * inverse(i); });
  if (!b.training) {
    b.pattern.sweep(c, b.images.elements(), [&](int64_t at, int64_t some) {
      for (int64_t i = 0; i < some; ++i) dx[at + i] = dy[at + i] * k[i];
    });
    return;
  }
  C* const per_deviation = a;
  C* const shift = k + b.pattern.period;
  b.pattern.fill(per_deviation, n, [&](int64_t i) { return inverse(i) * dscale[i] / count; });
  b.pattern.fill(shift, n, [&](int64_t i) { return doffset[i] / count; });
  b.pattern.sweep(c, b.images.elements(), [&](int64_t at, int64_t some) {
    const C *g = dy + at, *from = x + at;
    C* to = dx + at;
    for (int64_t i = 0; i < some; ++i)
      to[i] = k[i] * (g[i] - shift[i] - (from[i] - m[i]) * per_deviation[i]);
  });
}

template <class C>
std::unique_ptr<Kernel> prepare_batch_norm_grad(const PrepareContext& c) {
  const BatchNorm<C> b(c.op(), c.input_shape(0));
  const ImageLayout<C> layout = b.images.template layout<C>(c.input_type(0));
  const int64_t conversion = layout.scratch();
  return make_kernel(
      [=](RunContext& c) {
        C *dscale = c.output(1).data<C>(), *doffset = c.output(2).data<C>();
        if (b.images.elements() == 0) {
          std::fill_n(dscale, b.images.channels, C(0));
          std::fill_n(doffset, b.images.channels, C(0));
          return;
        }
        C* const for_dy = reinterpret_cast<C*>(c.scratch());
        C* const for_x = for_dy + conversion;
        C* const for_dx = for_x + conversion;
        const C* dy = layout.read(c, c.input(0), for_dy);
        const C* x = layout.read(c, c.input(1), for_x);
        Tensor& out = c.output(0);
        C* const dx = layout.target(out, for_dx);
        gradient(c, b, dy, x, c.input(2).data<C>(), c.input(3).data<C>(), c.input(4).data<C>(),
                 for_dx + conversion, dx, dscale, doffset);
        layout.write(c, dx, out, for_dx);
      },
      2 * b.cost, static_cast<size_t>(3 * conversion + b.partials() + b.patterns()) * sizeof(C));
}

template <class C>
void register_types(KernelRegistry& r) {
  const std::vector<TypeConstraint> types = {{"T", stored_types<C>()}, {"U", {dtype_of<C>}}};
  r.add("FusedBatchNorm", types, prepare_batch_norm<C>);
  r.add("FusedBatchNormGrad", types, prepare_batch_norm_grad<C>);
}

}  // namespace

void register_normalization_kernels(KernelRegistry& r) {
  register_types<float>(r);
  register_types<double>(r);
}

}  // namespace treenail::cpu
