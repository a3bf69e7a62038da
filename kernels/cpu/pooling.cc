// SPDX-License-Identifier: Apache-2.0
// Maximum and average pooling and their gradients, on images with channels last: plain loops over the channels of a pixel,
// which the compiler turns into vector code; every operation is exact or element by element, so their cutting leaves the bits.
#include <algorithm>
#include <cstdint>
#include <limits>
#include <memory>
#include <type_traits>

#include "framework/base/error.h"
#include "framework/op/window.h"
#include "framework/runtime/kernel.h"
#include "framework/runtime/kernel_registry.h"
#include "kernels/cpu/layout.h"

namespace treenail::cpu {
namespace {

struct Pool {
  int64_t batch, channels;
  WindowAxis rows, columns;
  bool channels_second;

  Pool(const OpInstance& op, const Shape& input) {
    const WindowAttrs w = WindowAttrs::of(op);
    batch = input.dim(0);
    channels = input.dim(w.channel_axis());
    rows = w.axis(0, input.dim(w.spatial_axis(0)), w.size[0]);
    columns = w.axis(1, input.dim(w.spatial_axis(1)), w.size[1]);
    channels_second = w.channels_second;
  }
  int64_t input_pixels() const { return rows.input * columns.input; }
  int64_t output_pixels() const { return rows.output * columns.output; }
  bool empty() const { return batch == 0 || channels == 0 || input_pixels() == 0 || output_pixels() == 0; }
  template <class T>
  ImageLayout<T> input_layout() const {
    return {batch, input_pixels(), channels, channels_second};
  }
  template <class T>
  ImageLayout<T> output_layout() const {
    return {batch, output_pixels(), channels, channels_second};
  }
  double cost() const {
    return 50 + 0.2 * static_cast<double>(batch * output_pixels() * channels) *
                    static_cast<double>(rows.taps * columns.taps);
  }
};

// The part of window `at` inside the image.
struct Range {
  int64_t begin, end;
  Range(const WindowAxis& a, int64_t at) {
    const int64_t first = at * a.stride - a.pad_before;
    begin = std::max<int64_t>(0, first);
    end = std::min(a.input, first + a.taps);
  }
};

// f(pixel) for the input pixels of output pixel (y, x), rows first.
template <class F>
void for_window(const Pool& p, int64_t y, int64_t x, F f) {
  const Range r(p.rows, y), s(p.columns, x);
  for (int64_t i = r.begin; i < r.end; ++i) {
    for (int64_t j = s.begin; j < s.end; ++j) f(i * p.columns.input + j);
  }
}

// body(image, y) for every output row of every image.
template <class F>
void for_output_rows(const RunContext& c, const Pool& p, double cost, F body) {
  const int64_t rows = p.batch * p.rows.output;
  const double row = cost / static_cast<double>(rows);
  c.parallel_for(rows, std::max<int64_t>(1, static_cast<int64_t>(20000 / row)), row, [&](int64_t i, int64_t end) {
    for (; i < end; ++i) body(i / p.rows.output, i % p.rows.output);
  });
}

// NaN wins, and the first of several.
template <class C>
void max_row(const Pool& p, const C* image, int64_t y, C* __restrict out) {
  const int64_t n = p.channels;
  for (int64_t x = 0; x < p.columns.output; ++x, out += n) {
    bool first = true;
    for_window(p, y, x, [&](int64_t pixel) {
      const C* __restrict v = image + pixel * n;
      if (first) {
        std::copy_n(v, n, out);
        first = false;
        return;
      }
      for (int64_t i = 0; i < n; ++i) out[i] = (v[i] > out[i]) | (v[i] != v[i]) ? v[i] : out[i];
    });
  }
}

template <class C>
void average_row(const Pool& p, const C* image, int64_t y, C* __restrict out) {
  const int64_t n = p.channels;
  for (int64_t x = 0; x < p.columns.output; ++x, out += n) {
    std::fill_n(out, n, C(0));
    C count = 0;
    for_window(p, y, x, [&](int64_t pixel) {
      const C* __restrict v = image + pixel * n;
      for (int64_t i = 0; i < n; ++i) out[i] += v[i];
      count += 1;
    });
    for (int64_t i = 0; i < n; ++i) out[i] /= count;
  }
}

// The passes on computed images. Each is instantiated for float and double alone; the kernels of all dtypes below call them.

enum class Kind { kMax, kAverage };

template <class C>
[[gnu::noinline]] void pool(const RunContext& c, const Pool& p, Kind kind, double cost, const C* images, C* out) {
  for_output_rows(c, p, cost, [&](int64_t image, int64_t y) {
    const C* from = images + image * p.input_pixels() * p.channels;
    C* const to = out + (image * p.rows.output + y) * p.columns.output * p.channels;
    if (kind == Kind::kMax) {
      max_row(p, from, y, to);
    } else {
      average_row(p, from, y, to);
    }
  });
}

template <class C, class Index>
void argmax_row(const Pool& p, const C* image, int64_t offset, int64_t y, C* __restrict out, Index* __restrict at) {
  const int64_t n = p.channels;
  for (int64_t x = 0; x < p.columns.output; ++x, out += n, at += n) {
    bool first = true;
    for_window(p, y, x, [&](int64_t pixel) {
      const C* __restrict v = image + pixel * n;
      const int64_t base = offset + pixel * n;
      for (int64_t i = 0; i < n; ++i) {
        const bool better = first | (v[i] > out[i]) | ((v[i] != v[i]) & (out[i] == out[i]));
        out[i] = better ? v[i] : out[i];
        at[i] = better ? static_cast<Index>(base + i) : at[i];
      }
      first = false;
    });
  }
}

template <class C, class Index>
[[gnu::noinline]] void argmax_pool(const RunContext& c, const Pool& p, bool with_batch, double cost, const C* images, C* out,
                                   Index* at) {
  const int64_t image_elements = p.input_pixels() * p.channels;
  for_output_rows(c, p, cost, [&](int64_t image, int64_t y) {
    const int64_t row = (image * p.rows.output + y) * p.columns.output * p.channels;
    argmax_row(p, images + image * image_elements, with_batch ? image * image_elements : 0, y, out + row, at + row);
  });
}

// Channels of one image that one chunk of a gradient works on.
constexpr int64_t kBlock = 64;

// body(image, first channel, channels): windows may overlap, so nobody else may write the same pixels.
template <class F>
void for_blocks(const RunContext& c, const Pool& p, double cost, F body) {
  const int64_t blocks = (p.channels + kBlock - 1) / kBlock;
  const double one = cost / static_cast<double>(p.batch * blocks);
  c.parallel_for(p.batch * blocks, std::max<int64_t>(1, static_cast<int64_t>(20000 / one)), one,
                 [&](int64_t i, int64_t end) {
                   for (; i < end; ++i) {
                     const int64_t first = i % blocks * kBlock;
                     body(i / blocks, first, std::min(kBlock, p.channels - first));
                   }
                 });
}

// Whether every pixel of an axis lies in exactly one window: then gradients are stored, not added up.
bool tiled(const WindowAxis& a) { return a.stride == a.taps && a.pad_before == 0 && a.output * a.stride >= a.input; }

template <class C>
using Mask = std::conditional_t<sizeof(C) == 8, int64_t, int32_t>;

// f(pixel, channel, is the window's first maximum) over windows and their pixels; y is the pooled image.
template <class C, class F>
void for_maxima(const Pool& p, const C* image, const C* pooled, int64_t n, F f) {
  Mask<C> taken[kBlock];
  for (int64_t y = 0; y < p.rows.output; ++y) {
    for (int64_t x = 0; x < p.columns.output; ++x) {
      const int64_t at = (y * p.columns.output + x) * p.channels;
      const C* __restrict largest = pooled + at;
      std::fill_n(taken, n, Mask<C>(0));
      for_window(p, y, x, [&](int64_t pixel) {
        const C* __restrict v = image + pixel * p.channels;
        f(at, pixel * p.channels, [&](int64_t i) {
          const Mask<C> here = (v[i] == largest[i]) | ((v[i] != v[i]) & (largest[i] != largest[i]));
          const Mask<C> first = here & (taken[i] ^ 1);
          taken[i] |= here;
          return first != 0;
        });
      });
    }
  }
}

template <class C>
[[gnu::noinline]] void max_gradient(const RunContext& c, const Pool& p, double cost, const C* x, const C* y, const C* dy,
                                    C* dx) {
  const bool stored = tiled(p.rows) && tiled(p.columns);
  for_blocks(c, p, cost, [&](int64_t image, int64_t first, int64_t n) {
    const int64_t in_at = image * p.input_pixels() * p.channels + first;
    const int64_t out_at = image * p.output_pixels() * p.channels + first;
    C* const to = dx + in_at;
    const C* const gradient = dy + out_at;
    if (!stored) {
      for (int64_t i = 0; i < p.input_pixels(); ++i) std::fill_n(to + i * p.channels, n, C(0));
    }
    for_maxima(p, x + in_at, y + out_at, n, [&](int64_t at, int64_t pixel, auto is_first) {
      C* __restrict d = to + pixel;
      const C* __restrict g = gradient + at;
      if (stored) {
        for (int64_t i = 0; i < n; ++i) d[i] = is_first(i) ? g[i] : C(0);
      } else {
        for (int64_t i = 0; i < n; ++i) d[i] += is_first(i) ? g[i] : C(0);
      }
    });
  });
}

// Picks from `g`, of the input's size, what lies at each window's first maximum.
template <class C>
[[gnu::noinline]] void max_second_gradient(const RunContext& c, const Pool& p, double cost, const C* x, const C* y,
                                           const C* g, C* out) {
  for_blocks(c, p, cost, [&](int64_t image, int64_t first, int64_t n) {
    const int64_t in_at = image * p.input_pixels() * p.channels + first;
    const int64_t out_at = image * p.output_pixels() * p.channels + first;
    for (int64_t i = 0; i < p.output_pixels(); ++i) std::fill_n(out + out_at + i * p.channels, n, C(0));
    for_maxima(p, x + in_at, y + out_at, n, [&](int64_t at, int64_t pixel, auto is_first) {
      C* __restrict d = out + out_at + at;
      const C* __restrict from = g + in_at + pixel;
      for (int64_t i = 0; i < n; ++i) d[i] = is_first(i) ? from[i] : d[i];
    });
  });
}

template <class C>
[[gnu::noinline]] void average_gradient(const RunContext& c, const Pool& p, double cost, const C* dy, C* dx) {
  for_blocks(c, p, cost, [&](int64_t image, int64_t first, int64_t n) {
    C* const to = dx + image * p.input_pixels() * p.channels + first;
    const C* const gradient = dy + image * p.output_pixels() * p.channels + first;
    for (int64_t i = 0; i < p.input_pixels(); ++i) std::fill_n(to + i * p.channels, n, C(0));
    for (int64_t y = 0; y < p.rows.output; ++y) {
      const Range r(p.rows, y);
      for (int64_t x = 0; x < p.columns.output; ++x) {
        const Range s(p.columns, x);
        const C count = static_cast<C>((r.end - r.begin) * (s.end - s.begin));
        const C* __restrict g = gradient + (y * p.columns.output + x) * p.channels;
        for_window(p, y, x, [&](int64_t pixel) {
          C* __restrict d = to + pixel * p.channels;
          for (int64_t i = 0; i < n; ++i) d[i] += g[i] / count;
        });
      }
    }
  });
}

// The kernels: images of up to three inputs brought into computed form, one pass, the result brought back.
template <class T>
class Images {
 public:
  using C = ComputedIn<T>;
  explicit Images(const Pool& p) : in_(p.input_layout<T>()), out_(p.output_layout<T>()) {}
  // Scratch for `inputs` images of the input's size and `outputs` of the output's, results included.
  size_t bytes(int64_t inputs, int64_t outputs) const {
    return static_cast<size_t>(inputs * in_.scratch() + outputs * out_.scratch()) * sizeof(C);
  }

  // The steps of one run; scratch is handed out in their order.
  class Run {
   public:
    Run(const Images& images, RunContext& c) : i_(images), c_(c), free_(reinterpret_cast<C*>(c.scratch())) {}
    const C* read(int input, bool pooled) {
      const ImageLayout<T>& layout = pooled ? i_.out_ : i_.in_;
      return layout.read(c_, c_.input(input).data<T>(), take(layout));
    }
    C* result(bool pooled) {
      layout_ = pooled ? &i_.out_ : &i_.in_;
      scratch_ = take(*layout_);
      computed_ = layout_->target(c_.output(0).data<T>(), scratch_);
      return computed_;
    }
    void finish() { layout_->write(c_, computed_, c_.output(0).data<T>(), scratch_); }

   private:
    C* take(const ImageLayout<T>& layout) {
      C* const at = free_;
      free_ += layout.scratch();
      return at;
    }
    const Images& i_;
    RunContext& c_;
    C* free_;
    const ImageLayout<T>* layout_ = nullptr;
    C* scratch_ = nullptr;
    C* computed_ = nullptr;
  };

 private:
  ImageLayout<T> in_, out_;
};

template <class T, Kind kKind>
std::unique_ptr<Kernel> prepare_forward(const PrepareContext& c) {
  const Pool p(c.op(), c.input_shape(0));
  if (p.empty()) return make_kernel([](RunContext&) {});
  const Images<T> images(p);
  const double cost = p.cost();
  return make_kernel(
      [=](RunContext& c) {
        typename Images<T>::Run run(images, c);
        const auto* x = run.read(0, false);
        pool(c, p, kKind, cost, x, run.result(true));
        run.finish();
      },
      cost, images.bytes(1, 1));
}

template <class T, class Index>
std::unique_ptr<Kernel> prepare_argmax(const PrepareContext& c) {
  const Pool p(c.op(), c.input_shape(0));
  if (p.empty()) return make_kernel([](RunContext&) {});
  const bool with_batch = c.op().get_bool("include_batch_in_index");
  const int64_t positions = (with_batch ? p.batch : 1) * p.input_pixels() * p.channels;
  if (positions - 1 > std::numeric_limits<Index>::max()) {
    throw invalid_argument("argmax of ", positions, " positions does not fit into ", dtype_of<Index>,
                           "; use Targmax = int64");
  }
  const Images<T> images(p);
  const double cost = 2 * p.cost();
  return make_kernel(
      [=](RunContext& c) {
        typename Images<T>::Run run(images, c);
        const auto* x = run.read(0, false);
        argmax_pool(c, p, with_batch, cost, x, run.result(true), c.output(1).data<Index>());
        run.finish();
      },
      cost, images.bytes(1, 1));
}

template <class T>
std::unique_ptr<Kernel> zeros() {
  return make_kernel(
      [](RunContext& c) { std::fill_n(c.output(0).data<T>(), c.output(0).num_elements(), T(0.0F)); });
}

template <class T>
std::unique_ptr<Kernel> prepare_max_grad(const PrepareContext& c) {
  const Pool p(c.op(), c.input_shape(0));
  if (p.empty()) return zeros<T>();
  const Images<T> images(p);
  const double cost = 2 * p.cost();
  return make_kernel(
      [=](RunContext& c) {
        typename Images<T>::Run run(images, c);
        const auto* x = run.read(0, false);
        const auto* y = run.read(1, true);
        const auto* dy = run.read(2, true);
        max_gradient(c, p, cost, x, y, dy, run.result(false));
        run.finish();
      },
      cost, images.bytes(2, 2));
}

template <class T>
std::unique_ptr<Kernel> prepare_max_grad_grad(const PrepareContext& c) {
  const Pool p(c.op(), c.input_shape(0));
  if (p.empty()) return make_kernel([](RunContext&) {});
  const Images<T> images(p);
  const double cost = 2 * p.cost();
  return make_kernel(
      [=](RunContext& c) {
        typename Images<T>::Run run(images, c);
        const auto* x = run.read(0, false);
        const auto* y = run.read(1, true);
        const auto* g = run.read(2, false);
        max_second_gradient(c, p, cost, x, y, g, run.result(true));
        run.finish();
      },
      cost, images.bytes(2, 2));
}

template <class T>
std::unique_ptr<Kernel> prepare_average_grad(const PrepareContext& c) {
  const Pool p(c.op(), c.output_shape(0));
  if (p.empty()) return zeros<T>();
  const Images<T> images(p);
  const double cost = p.cost();
  return make_kernel(
      [=](RunContext& c) {
        typename Images<T>::Run run(images, c);
        const auto* dy = run.read(1, true);
        average_gradient(c, p, cost, dy, run.result(false));
        run.finish();
      },
      cost, images.bytes(1, 1));
}

template <class T>
void register_type(KernelRegistry& r) {
  const TypeConstraint type = {"T", {dtype_of<T>}};
  r.add("MaxPool", {type}, prepare_forward<T, Kind::kMax>);
  r.add("AvgPool", {type}, prepare_forward<T, Kind::kAverage>);
  r.add("MaxPoolGrad", {type}, prepare_max_grad<T>);
  r.add("MaxPoolGradGrad", {type}, prepare_max_grad_grad<T>);
  r.add("AvgPoolGrad", {type}, prepare_average_grad<T>);
  r.add("MaxPoolWithArgmax", {type, {"Targmax", {DType::kInt32}}}, prepare_argmax<T, int32_t>);
  r.add("MaxPoolWithArgmax", {type, {"Targmax", {DType::kInt64}}}, prepare_argmax<T, int64_t>);
}

}  // namespace

void register_pooling_kernels(KernelRegistry& r) {
  register_type<float>(r);
  register_type<double>(r);
  register_type<Float16>(r);
  register_type<BFloat16>(r);
}

}  // namespace treenail::cpu
