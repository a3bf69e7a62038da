// SPDX-License-Identifier: Apache-2.0
// NonMaxSuppression and DrawBoundingBoxes. Random crops: image_crop.cc.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_poll.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// --- NonMaxSuppression
// ----------------------------------------------------------------------------

struct Area {
  float top, left, bottom, right, size;
  template <class T>
  explicit Area(const T* corners) {
    const float y1 = static_cast<float>(corners[0]), x1 = static_cast<float>(corners[1]);
    const float y2 = static_cast<float>(corners[2]), x2 = static_cast<float>(corners[3]);
    top = std::min(y1, y2);
    bottom = std::max(y1, y2);
    left = std::min(x1, x2);
    right = std::max(x1, x2);
    size = (bottom - top) * (right - left);
  }
};

// The shared area by the area covered together; 0 for what has none.
float overlap(const Area& a, const Area& b) {
  if (a.size <= 0 || b.size <= 0) return 0;
  const float height = std::min(a.bottom, b.bottom) - std::max(a.top, b.top);
  const float width = std::min(a.right, b.right) - std::max(a.left, b.left);
  const float shared = std::max(height, 0.0F) * std::max(width, 0.0F);
  return shared / (a.size + b.size - shared);
}

float scalar_of(const Tensor& t) {
  return t.dtype() == DType::kFloat16 ? static_cast<float>(*t.data<Float16>()) : *t.data<float>();
}

struct Scored {
  float score;
  int32_t index;
};

// Boxes above the threshold, the best first; NaN is above nothing.
template <class T>
std::vector<Scored> candidates(const T* scores, int64_t count, float threshold) {
  std::vector<Scored> list;
  for (int64_t i = 0; i < count; ++i) {
    const float score = static_cast<float>(scores[i]);
    if (score > threshold) list.push_back({score, static_cast<int32_t>(i)});
  }
  std::sort(list.begin(), list.end(), [](const Scored& a, const Scored& b) {
    return a.score != b.score ? a.score > b.score : a.index < b.index;
  });
  return list;
}

template <class T>
void suppress(RunContext& c, int64_t count) {
  const int64_t most = *c.input(2).data<int32_t>();
  const float threshold = scalar_of(c.input(3));
  if (most < 0) throw invalid_argument("max_output_size must be non-negative, got ", most);
  if (!(threshold >= 0 && threshold <= 1))
    throw invalid_argument("iou_threshold must be in [0, 1], got ", threshold);
  const T* boxes = c.input(0).data<T>();
  std::vector<Area> chosen;
  std::vector<int32_t> indices;
  for (const Scored& next : candidates(c.input(1).data<T>(), count, scalar_of(c.input(4)))) {
    if (static_cast<int64_t>(chosen.size()) >= most) break;
    poll(c);
    const Area area(boxes + int64_t{4} * next.index);
    const bool free = std::none_of(chosen.rbegin(), chosen.rend(), [&](const Area& better) {
      return overlap(area, better) > threshold;
    });
    if (!free) continue;
    chosen.push_back(area);
    indices.push_back(next.index);
  }
  Tensor out(DType::kInt32, Shape({static_cast<int64_t>(indices.size())}));
  std::copy(indices.begin(), indices.end(), out.data<int32_t>());
  c.set_output(0, std::move(out));
}

KernelPtr prepare_suppression(const PrepareContext& p) {
  const int64_t count = p.input_shape(0).dim(0);
  if (count > INT32_MAX)
    throw invalid_argument("indices of boxes are int32; there are ", count, " boxes");
  const double cost = 100 + 200.0 * static_cast<double>(count);
  if (p.input_type(0) == DType::kFloat16)
    return make_kernel([count](RunContext& c) { suppress<Float16>(c, count); }, cost);
  return make_kernel([count](RunContext& c) { suppress<float>(c, count); }, cost);
}

// --- DrawBoundingBoxes
// ----------------------------------------------------------------------------

// Rows or columns [first, last] of a box in an image of `size`, not yet cut off at its border.
struct Span {
  int64_t first = 0, last = -1, size = 0;
  bool drawn = false;

  Span(float from, float to, int64_t size) : size(size) {
    const float scale = static_cast<float>(size - 1);
    if (!(from * scale <= to * scale)) return;  // nor when one is no number
    first = pixel(from * scale);
    last = pixel(to * scale);
    drawn = first < size && last >= 0;
  }
  static int64_t pixel(float at) {
    constexpr float kFar = 1e12F;
    return static_cast<int64_t>(std::clamp(at, -kFar, kFar));
  }
  int64_t begin() const { return std::max<int64_t>(first, 0); }
  int64_t end() const { return std::min(last + 1, size); }
};

template <class T>
struct Drawing {
  T* image;
  int64_t width, channels;
  const T* color;

  void rectangle(int64_t top, int64_t bottom, int64_t left, int64_t right) const {
    for (int64_t y = top; y < bottom; ++y) {
      for (int64_t x = left; x < right; ++x)
        std::copy_n(color, channels, image + (y * width + x) * channels);
    }
  }
  void outline(const Span& rows, const Span& columns) const {
    if (rows.first >= 0) rectangle(rows.first, rows.first + 1, columns.begin(), columns.end());
    if (rows.last < rows.size) rectangle(rows.last, rows.last + 1, columns.begin(), columns.end());
    if (columns.first >= 0) rectangle(rows.begin(), rows.end(), columns.first, columns.first + 1);
    if (columns.last < columns.size)
      rectangle(rows.begin(), rows.end(), columns.last, columns.last + 1);
  }
};

template <class T>
KernelPtr prepare_drawing(const PrepareContext& p) {
  const Shape images = p.input_shape(0);
  const int64_t boxes = p.input_shape(1).dim(1);
  const int64_t colors = p.input_shape(2).dim(0), depth = p.input_shape(2).dim(1);
  if (images.num_elements() == 0) return make_kernel([](RunContext&) {});
  const int64_t channels = images.dim(3), image = images.num_elements() / images.dim(0);
  const double cost = 0.3 * static_cast<double>(image) + 1000.0 * static_cast<double>(boxes);
  return make_kernel(
      [=](RunContext& c) {
        auto* const palette = reinterpret_cast<T*>(c.scratch());
        const float* color = c.input(2).data<float>();
        for (int64_t i = 0; i < colors; ++i) {
          for (int64_t k = 0; k < channels; ++k)
            palette[i * channels + k] = static_cast<T>(color[i * depth + k]);
        }
        const T* from = c.input(0).data<T>();
        T* const out = c.output(0).data<T>();
        const float* corners = c.input(1).data<float>();
        c.run_chunks(images.dim(0), cost * static_cast<double>(images.dim(0)), [&](int64_t i) {
          T* const to = out + i * image;
          copy_elements(to, from + i * image, image);
          for (int64_t b = 0; b < boxes; ++b) {
            if (b % 64 == 63) poll(c);
            const float* box = corners + (i * boxes + b) * 4;
            const Span rows(box[0], box[2], images.dim(1)), columns(box[1], box[3], images.dim(2));
            const Drawing<T> drawing = {to, images.dim(2), channels,
                                        palette + b % colors * channels};
            if (rows.drawn && columns.drawn) drawing.outline(rows, columns);
          }
        });
      },
      cost * static_cast<double>(images.dim(0)),
      static_cast<size_t>(checked_product(colors, channels)) * sizeof(T));
}

}  // namespace

void register_image_boxes_kernels(KernelRegistry& r) {
  r.add("NonMaxSuppression", {}, prepare_suppression);
  const auto drawing = [&](DType type, PrepareFn prepare) {
    r.add("DrawBoundingBoxes", {{"T", {type}}}, prepare);
  };
  drawing(DType::kFloat32, prepare_drawing<float>);
  drawing(DType::kFloat64, prepare_drawing<double>);
  drawing(DType::kFloat16, prepare_drawing<Float16>);
  drawing(DType::kBFloat16, prepare_drawing<BFloat16>);
}

}  // namespace treenail::host
