// SPDX-License-Identifier: Apache-2.0
// Resizing by interpolation and by area, and the adjoints: each is a sum over a few rows and
// columns with weights that depend on the position along one axis alone. The weights of an axis are
// listed once per run, by result or, for the adjoint, by source; one loop then serves all.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_poll.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/elementwise/float_elements.h"
#include "kernels/cpu/simd/workspaces.h"

namespace treenail::cpu {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

enum class Method : uint8_t { kBilinear, kBicubic, kArea };

// One axis: from `old` pixels to `made` ones.
struct ResizedAxis {
  Method method = Method::kBilinear;
  bool centers = false;
  int64_t old = 0, made = 0;
  float scale = 1;

  ResizedAxis() = default;
  ResizedAxis(Method method, bool align_corners, bool centers, int64_t old, int64_t made)
      : method(method), centers(centers), old(old), made(made) {
    scale = align_corners && made > 1 ? static_cast<float>(old - 1) / static_cast<float>(made - 1)
                                      : static_cast<float>(old) / static_cast<float>(made);
  }
  // No result takes part of more pixels.
  int64_t most_taps() const {
    if (method == Method::kBilinear) return 2;
    return method == Method::kBicubic ? 4 : static_cast<int64_t>(scale) + 3;
  }
  int64_t most_entries() const { return checked_product(made, most_taps()); }

  int64_t clamped(float position) const {
    return static_cast<int64_t>(std::clamp(position, 0.0F, static_cast<float>(old - 1)));
  }
  float position(int64_t i) const {
    const float x = static_cast<float>(i);
    return centers ? (x + 0.5F) * scale - 0.5F : x * scale;
  }

  // f(pixel, weight) for the pixels that result i is made of.
  template <class F>
  void taps(int64_t i, F f) const {
    if (method == Method::kArea) return area(i, f);
    const float at = position(i), below = std::floor(at), part = at - below;
    if (method == Method::kBicubic) return bicubic(below, part, f);
    f(limited(clamped(below)), 1.0F - part);
    f(limited(clamped(std::ceil(at))), part);
  }

 private:
  // The float of old - 1 may have been rounded up.
  int64_t limited(int64_t pixel) const { return std::min(pixel, old - 1); }

  template <class F>
  void bicubic(float below, float part, F f) const {
    const float a = centers ? -0.5F : -0.75F;
    const auto near = [a](float x) { return ((a + 2) * x - (a + 3)) * x * x + 1; };
    const auto far = [a](float x) { return ((a * x - 5 * a) * x + 8 * a) * x - 4 * a; };
    float weights[4] = {far(part + 1), near(part), near(1 - part), far(2 - part)};
    float total = 1;
    if (centers) {
      total = 0;
      for (int k = 0; k < 4; ++k) {
        const float pixel = below + static_cast<float>(k - 1);
        if (pixel < 0 || pixel > static_cast<float>(old - 1)) weights[k] = 0;
        total += weights[k];
      }
      if (std::abs(total) < 1000 * 1.17549435e-38F) total = 1;
    }
    for (int k = 0; k < 4; ++k)
      f(limited(clamped(below + static_cast<float>(k - 1))), weights[k] / total);
  }

  template <class F>
  void area(int64_t i, F f) const {
    const float begin = static_cast<float>(i) * scale, end = static_cast<float>(i + 1) * scale;
    const auto first = static_cast<int64_t>(std::floor(begin));
    const int64_t count = std::min(most_taps(), static_cast<int64_t>(std::ceil(end)) - first);
    for (int64_t k = 0; k < count; ++k) {
      const float left = static_cast<float>(first + k), right = left + 1;
      const float covered = std::min(right, end) - std::max(left, begin);
      f(limited(clamped(left)), covered / scale);
    }
  }
};

// The taps of all places of an axis, in scratch memory: place i takes entries [begin[i],
// begin[i + 1]).
struct TapTable {
  int64_t places = 0, sources = 0;
  int64_t* begin = nullptr;
  int64_t* source = nullptr;
  float* weight = nullptr;

  static int64_t bytes(const ResizedAxis& a) {
    const int64_t entries = a.most_entries();
    return checked_product(entries + std::max(a.made, a.old) + 2, 16);
  }

  TapTable(const ResizedAxis& a, bool adjoint, std::byte* memory)
      : places(adjoint ? a.old : a.made), sources(adjoint ? a.made : a.old) {
    begin = reinterpret_cast<int64_t*>(memory);
    source = begin + places + 1;
    weight = reinterpret_cast<float*>(source + a.most_entries());
    std::fill_n(begin, places + 1, 0);
    for (int64_t i = 0; i < a.made; ++i)
      a.taps(i, [&](int64_t pixel, float) { ++begin[(adjoint ? pixel : i) + 1]; });
    for (int64_t i = 0; i < places; ++i) begin[i + 1] += begin[i];
    // begin[i] moves to the end of place i while it is filled, and is moved back afterwards.
    for (int64_t i = 0; i < a.made; ++i) {
      a.taps(i, [&](int64_t pixel, float w) {
        const int64_t at = begin[adjoint ? pixel : i]++;
        source[at] = adjoint ? i : pixel;
        weight[at] = w;
      });
    }
    for (int64_t i = places; i > 0; --i) begin[i] = begin[i - 1];
    begin[0] = 0;
  }
};

// One line of results from a line of sources; kChannels 0: any number.
template <int kChannels>
void gather_line(const TapTable& t, const float* from, int64_t channels, float factor, bool add,
                 float* to) {
  const int64_t n = kChannels > 0 ? kChannels : channels;
  for (int64_t x = 0; x < t.places; ++x, to += n) {
    if constexpr (kChannels > 0) {
      float sums[kChannels];
      for (int k = 0; k < kChannels; ++k) sums[k] = add ? to[k] : 0;
      for (int64_t i = t.begin[x]; i < t.begin[x + 1]; ++i) {
        const float w = factor * t.weight[i];
        const float* pixel = from + t.source[i] * kChannels;
        for (int k = 0; k < kChannels; ++k) sums[k] += w * pixel[k];
      }
      for (int k = 0; k < kChannels; ++k) to[k] = sums[k];
    } else {
      if (!add) std::fill_n(to, n, 0.0F);
      for (int64_t i = t.begin[x]; i < t.begin[x + 1]; ++i) {
        const float w = factor * t.weight[i];
        const float* pixel = from + t.source[i] * n;
        for (int64_t k = 0; k < n; ++k) to[k] += w * pixel[k];
      }
    }
  }
}

void gather(const TapTable& t, const float* from, int64_t channels, float factor, bool add,
            float* to) {
  switch (channels) {
    case 1:
      return gather_line<1>(t, from, channels, factor, add, to);
    case 3:
      return gather_line<3>(t, from, channels, factor, add, to);
    case 4:
      return gather_line<4>(t, from, channels, factor, add, to);
    default:
      return gather_line<0>(t, from, channels, factor, add, to);
  }
}

class ResizeKernel final : public Kernel {
 public:
  // `adjoint`: from results back to images. reader and writer: null for float.
  ResizeKernel(const ResizedAxis& rows, const ResizedAxis& columns, const Shape& from,
               const Shape& to, bool adjoint, FloatReader reader, FloatWriter writer)
      : rows_(rows),
        columns_(columns),
        adjoint_(adjoint),
        reader_(reader),
        writer_(writer),
        channels_(from.dim(3)),
        in_height_(from.dim(1)),
        out_height_(to.dim(1)),
        in_line_(from.dim(2) * channels_),
        out_line_(to.dim(2) * channels_),
        lines_(from.dim(0) * out_height_) {
    const double down = taps_per_place(rows), across = taps_per_place(columns);
    const double in = static_cast<double>(in_line_), out = static_cast<double>(out_line_);
    rows_first_ = down * in + across * out < down * across * out;
    const double cost = rows_first_ ? down * in + across * out : down * (across * out + in);
    cost_ns = 100 + cost * static_cast<double>(lines_);
    constexpr int64_t kMostElements = int64_t{1} << 24;
    const int64_t workspace = workspace_elements();
    const int64_t most =
        std::clamp<int64_t>(kMostElements / std::max<int64_t>(workspace, 1), 1, Workspaces::kMost);
    const auto wanted = static_cast<int64_t>(cost_ns / 50000) + 1;
    chunks_ = std::min({lines_, wanted, most});
    tables_bytes_ = TapTable::bytes(rows_) + TapTable::bytes(columns_);
    scratch_bytes = static_cast<size_t>(
        tables_bytes_ + checked_product(chunks_ * workspace, static_cast<int64_t>(sizeof(float))));
  }

  void run(RunContext& c) const override {
    const TapTable rows(rows_, adjoint_, c.scratch());
    const TapTable columns(columns_, adjoint_, c.scratch() + TapTable::bytes(rows_));
    auto* const spaces = reinterpret_cast<float*>(c.scratch() + tables_bytes_);
    const void* const from = c.input(0).raw();
    void* const to = c.output(0).raw();
    Workspaces workspaces;
    c.run_chunks(chunks_, cost_ns, [&](int64_t chunk) {
      const Workspaces::Use use(workspaces);
      float* const space = spaces + use.index() * workspace_elements();
      for (int64_t i = lines_ * chunk / chunks_; i < lines_ * (chunk + 1) / chunks_; ++i) {
        if (i % 16 == 0) poll(c);
        line(rows, columns, from, i, space, to);
      }
    });
  }

 private:
  double taps_per_place(const ResizedAxis& a) const {
    const double taps = a.method == Method::kArea ? static_cast<double>(a.scale) + 1
                                                  : static_cast<double>(a.most_taps());
    return adjoint_ ? taps * static_cast<double>(a.made) / static_cast<double>(a.old) : taps;
  }
  int64_t read_elements() const { return reader_ != nullptr ? in_line_ : 0; }
  int64_t sum_elements() const { return rows_first_ ? in_line_ : 0; }
  int64_t workspace_elements() const {
    return read_elements() + sum_elements() + (writer_ != nullptr ? out_line_ : 0);
  }

  void line(const TapTable& rows, const TapTable& columns, const void* from, int64_t i,
            float* space, void* to) const {
    float* const sum = space + read_elements();
    float* const out =
        writer_ != nullptr ? sum + sum_elements() : static_cast<float*>(to) + i * out_line_;
    const int64_t image = i / out_height_, row = i % out_height_;
    const int64_t begin = rows.begin[row], end = rows.begin[row + 1];
    if (begin == end) std::fill_n(out, out_line_, 0.0F);  // nothing was made of this row
    for (int64_t k = begin; k < end; ++k) {
      const int64_t at = (image * in_height_ + rows.source[k]) * in_line_;
      const float* source = static_cast<const float*>(from) + at;
      if (reader_ != nullptr) {
        reader_(from, at, in_line_, space);
        source = space;
      }
      const float w = rows.weight[k];
      if (!rows_first_) {
        gather(columns, source, channels_, w, k > begin, out);
      } else if (k == begin) {
        for (int64_t x = 0; x < in_line_; ++x) sum[x] = w * source[x];
      } else {
        for (int64_t x = 0; x < in_line_; ++x) sum[x] += w * source[x];
      }
    }
    if (rows_first_ && begin < end) gather(columns, sum, channels_, 1.0F, false, out);
    if (writer_ != nullptr) writer_(out, out_line_, to, i * out_line_);
  }

  ResizedAxis rows_, columns_;
  bool adjoint_, rows_first_ = false;
  FloatReader reader_;
  FloatWriter writer_;
  int64_t channels_, in_height_, out_height_, in_line_, out_line_, lines_, chunks_ = 1,
                                                                           tables_bytes_ = 0;
};

ResizedAxis axis_of(const PrepareContext& c, Method method, int axis, const Shape& old,
                    const Shape& made) {
  const bool centers = method != Method::kArea && c.op().get_bool("half_pixel_centers");
  return {method, c.op().get_bool("align_corners"), centers, old.dim(axis), made.dim(axis)};
}

template <Method kMethod>
KernelPtr prepare_resize(const PrepareContext& c) {
  const Shape &from = c.input_shape(0), &to = c.output_shape(0);
  if (to.num_elements() == 0) return make_kernel([](RunContext&) {});
  const DType type = c.input_type(0);
  return std::make_unique<ResizeKernel>(
      axis_of(c, kMethod, 1, from, to), axis_of(c, kMethod, 2, from, to), from, to, false,
      type == DType::kFloat32 ? nullptr : float_reader(type), nullptr);
}

template <Method kMethod>
KernelPtr prepare_gradient(const PrepareContext& c) {
  const Shape &from = c.input_shape(0), &to = c.output_shape(0);
  if (to.num_elements() == 0) return make_kernel([](RunContext&) {});
  const DType type = c.output_type(0);
  return std::make_unique<ResizeKernel>(axis_of(c, kMethod, 1, to, from),
                                        axis_of(c, kMethod, 2, to, from), from, to, true, nullptr,
                                        type == DType::kFloat32 ? nullptr : float_writer(type));
}

}  // namespace

void register_image_resize_kernels(KernelRegistry& r) {
  const std::vector<DType> floating = {DType::kFloat16, DType::kBFloat16, DType::kFloat32,
                                       DType::kFloat64};
  std::vector<DType> real = {DType::kInt8,   DType::kUInt8, DType::kInt16,
                             DType::kUInt16, DType::kInt32, DType::kInt64};
  real.insert(real.end(), floating.begin(), floating.end());
  r.add("ResizeBilinear", {{"T", real}}, prepare_resize<Method::kBilinear>);
  r.add("ResizeBicubic", {{"T", real}}, prepare_resize<Method::kBicubic>);
  r.add("ResizeArea", {{"T", real}}, prepare_resize<Method::kArea>);
  r.add("ResizeBilinearGrad", {{"T", floating}}, prepare_gradient<Method::kBilinear>);
  r.add("ResizeBicubicGrad", {{"T", floating}}, prepare_gradient<Method::kBicubic>);
  r.add("ResizeAreaGrad", {{"T", floating}}, prepare_gradient<Method::kArea>);
}

}  // namespace treenail::cpu
