// SPDX-License-Identifier: Apache-2.0
// FusedBatchNorm and its gradient, in three steps each: what pieces of the channels give, what all
// of a channel's pieces mean for its elements, and the elements themselves. So each image is read
// twice. Mean and squared deviations come from one reading: those of a few elements at a time are
// joined by Chan's formula, so that a large mean costs no digits.
#include "kernels/cuda/language/math.h"
#include "kernels/cuda/normalization/batch_norm_options.h"
#include "kernels/cuda/normalization/columns.h"

namespace treenail::gpu {

// Of some elements: how many there are, their mean, and the squares of what they deviate by.
template <class C>
struct Sample {
  C count, mean, squares;
};
template <class C>
TN_DEVICE Sample<C> joined(const Sample<C>& a, const Sample<C>& b) {
  if (a.count == C(0)) return b;
  if (b.count == C(0)) return a;
  const C count = a.count + b.count, share = b.count / count, delta = b.mean - a.mean;
  return {count, a.mean + delta * share, a.squares + b.squares + delta * delta * (a.count * share)};
}
// Of the first `count`; the others are 0.
template <class C>
TN_DEVICE Sample<C> sample_of(const C (&values)[kTogether], int count) {
  C sum = 0, squares = 0;
  for (int k = 0; k < kTogether; ++k) sum += values[k];
  const C mean = sum / static_cast<C>(count);
  for (int k = 0; k < kTogether; ++k) {
    const C deviation = k < count ? values[k] - mean : C(0);
    squares += deviation * deviation;
  }
  return {static_cast<C>(count), mean, squares};
}

struct Join {
  template <class C>
  TN_DEVICE Sample<C> operator()(const Sample<C>& a, const Sample<C>& b) const {
    return joined(a, b);
  }
};

// Of each piece the mean and the squares.
template <class S, class C = Computed<S>>
TN_DEVICE void batch_statistics(const ColumnSpace& s, const S* x, Sums<C>* pieces) {
  TN_SHARED(Sample<C>, part, kMostThreads);
  for_pieces(s, [&](const Piece& piece) {
    Sample<C> all = {};
    for_elements(s, piece, [&](const Elements& e) {
      C values[kTogether];
      read_elements(x, e, values);
      all = joined(all, sample_of(values, e.count));
    });
    all = over_lanes(s, part, all, Join());
    if (leads(s, piece)) pieces[piece.result(s)] = {all.mean, all.squares};
  });
}

// y = (x - mean) * factor + offset
template <class C>
struct Normal {
  C mean, factor, offset;
};

template <class C>
TN_DEVICE C averaged(C factor, const C* old, int64_t channel, C value) {
  return factor == C(1) ? value : (C(1) - factor) * old[channel] + factor * value;
}

// The four statistics of each channel, and what they mean for its elements. Without training there
// are no pieces.
template <class C>
TN_DEVICE void batch_estimates(const ColumnSpace& s, int lanes, const BatchNormOptions& o,
                               const Sums<C>* pieces, const C* scale, const C* offset,
                               const C* mean, const C* variance, C* new_mean, C* new_variance,
                               C* used_mean, C* used_variance, Normal<C>* normals) {
  TN_SHARED(Sample<C>, part, kMostThreads);
  const auto take = [&](const Sums<C>& piece, int64_t number) {
    return Sample<C>{static_cast<C>(piece_size(s, number)), piece.first, piece.second};
  };
  const auto factor = static_cast<C>(o.average_factor), epsilon = static_cast<C>(o.epsilon);
  const C count = static_cast<C>(s.count), unbias = s.count > 1 ? count / (count - C(1)) : C(1);
  for_columns(s, lanes, part, pieces, take, Join(), [&](int64_t i, const Sample<C>& all) {
    if (lane_of(lanes) != 0) return;
    C m = 0, v = 0;
    if (o.training != 0) {
      v = all.squares / all.count;  // NaN of nothing
      m = all.count == C(0) ? v : all.mean;
      new_mean[i] = averaged(factor, mean, i, m);
      new_variance[i] = averaged(factor, variance, i, v * unbias);
    } else {
      m = new_mean[i] = mean[i];
      v = new_variance[i] = variance[i];
    }
    used_mean[i] = m;
    used_variance[i] = v;
    normals[i] = {m, scale[i] / square_root(v + epsilon), offset[i]};
  });
}

// y may be x.
template <class S, class C = Computed<S>>
TN_DEVICE void batch_normalize(const ColumnSpace& s, const Normal<C>* normals, const S* x, S* y) {
  for_pieces(s, [&](const Piece& piece) {
    if (piece.begin >= piece.end) return;
    const Normal<C> normal = normals[piece.column];
    for_elements(s, piece, [&](const Elements& e) {
      C values[kTogether];
      read_elements(x, e, values);
      for (int k = 0; k < kTogether; ++k)
        values[k] = (values[k] - normal.mean) * normal.factor + normal.offset;
      write_elements(y, e, values);
    });
  });
}

// Of each piece the sums of dy and of dy (x - mean).
template <class S, class C = Computed<S>>
TN_DEVICE void batch_gradient_sums(const ColumnSpace& s, const S* dy, const S* x, const C* mean,
                                   Sums<C>* pieces) {
  TN_SHARED(Sums<C>, part, kMostThreads);
  for_pieces(s, [&](const Piece& piece) {
    Sums<C> all = {};
    const C m = piece.begin < piece.end ? mean[piece.column] : C(0);
    for_elements(s, piece, [&](const Elements& e) {
      C gradients[kTogether], values[kTogether];
      read_elements(dy, e, gradients);
      read_elements(x, e, values);
      for (int k = 0; k < kTogether; ++k) {
        if (k < e.count) all = add(all, {gradients[k], gradients[k] * (values[k] - m)});
      }
    });
    all = over_lanes(s, part, all, Add());
    if (leads(s, piece)) pieces[piece.result(s)] = all;
  });
}

// dx = factor (dy - shift - (x - mean) slope)
template <class C>
struct GradientTerms {
  C factor, shift, mean, slope;
};

// The gradients of scale and offset, and what the sums mean for a channel's elements:
// dx = scale r (dy - mean(dy) - (x - mean) r^2 mean(dy (x - mean))).
template <class C>
TN_DEVICE void batch_gradient_terms(const ColumnSpace& s, int lanes, const BatchNormOptions& o,
                                    const Sums<C>* pieces, const C* scale, const C* mean,
                                    const C* variance, C* dscale, C* doffset,
                                    GradientTerms<C>* terms) {
  TN_SHARED(Sums<C>, part, kMostThreads);
  const auto take = [](const Sums<C>& piece, int64_t) { return piece; };
  const auto count = static_cast<C>(s.count), epsilon = static_cast<C>(o.epsilon);
  for_columns(s, lanes, part, pieces, take, Add(), [&](int64_t i, const Sums<C>& all) {
    if (lane_of(lanes) != 0) return;
    const C deviation = square_root(variance[i] + epsilon), inverse = C(1) / deviation;
    const C gradient = all.second / deviation;
    doffset[i] = all.first;
    dscale[i] = gradient;
    terms[i] = {scale[i] * inverse, all.first / count, mean[i], inverse * gradient / count};
  });
}

// dx may be dy.
template <class S, class C = Computed<S>>
TN_DEVICE void batch_gradient(const ColumnSpace& s, const BatchNormOptions& o,
                              const GradientTerms<C>* terms, const S* dy, const S* x, S* dx) {
  for_pieces(s, [&](const Piece& piece) {
    if (piece.begin >= piece.end) return;
    const GradientTerms<C> t = terms[piece.column];
    for_elements(s, piece, [&](const Elements& e) {
      C gradients[kTogether], values[kTogether];
      read_elements(dy, e, gradients);
      if (o.training != 0) {
        read_elements(x, e, values);
        for (int k = 0; k < kTogether; ++k)
          gradients[k] = gradients[k] - t.shift - (values[k] - t.mean) * t.slope;
      }
      for (int k = 0; k < kTogether; ++k) gradients[k] = t.factor * gradients[k];
      write_elements(dx, e, gradients);
    });
  });
}

#define TN_BATCH_NORM_CHANNELS(C, type)                                                         \
  TN_KERNEL(batch_estimates_##type, ColumnSpace s, int lanes, BatchNormOptions o,               \
            const Sums<C>* pieces, const C* scale, const C* offset, const C* mean,              \
            const C* variance, C* new_mean, C* new_variance, C* used_mean, C* used_variance,    \
            Normal<C>* normals) {                                                               \
    batch_estimates(s, lanes, o, pieces, scale, offset, mean, variance, new_mean, new_variance, \
                    used_mean, used_variance, normals);                                         \
  }                                                                                             \
  TN_KERNEL(batch_gradient_terms_##type, ColumnSpace s, int lanes, BatchNormOptions o,          \
            const Sums<C>* pieces, const C* scale, const C* mean, const C* variance, C* dscale, \
            C* doffset, GradientTerms<C>* terms) {                                              \
    batch_gradient_terms(s, lanes, o, pieces, scale, mean, variance, dscale, doffset, terms);   \
  }
TN_BATCH_NORM_CHANNELS(float, float32)
TN_BATCH_NORM_CHANNELS(double, float64)

#define TN_BATCH_NORM(S, type)                                                                     \
  TN_KERNEL(batch_statistics_##type, ColumnSpace s, const S* x, Sums<Computed<S>>* pieces) {       \
    batch_statistics(s, x, pieces);                                                                \
  }                                                                                                \
  TN_KERNEL(batch_normalize_##type, ColumnSpace s, const Normal<Computed<S>>* normals, const S* x, \
            S* y) {                                                                                \
    batch_normalize(s, normals, x, y);                                                             \
  }                                                                                                \
  TN_KERNEL(batch_gradient_sums_##type, ColumnSpace s, const S* dy, const S* x,                    \
            const Computed<S>* mean, Sums<Computed<S>>* pieces) {                                  \
    batch_gradient_sums(s, dy, x, mean, pieces);                                                   \
  }                                                                                                \
  TN_KERNEL(batch_gradient_##type, ColumnSpace s, BatchNormOptions o,                              \
            const GradientTerms<Computed<S>>* terms, const S* dy, const S* x, S* dx) {             \
    batch_gradient(s, o, terms, dy, x, dx);                                                        \
  }
TN_BATCH_NORM(float, float32)
TN_BATCH_NORM(double, float64)
TN_BATCH_NORM(Float16, float16)
TN_BATCH_NORM(BFloat16, bfloat16)

}  // namespace treenail::gpu
