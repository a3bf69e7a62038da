// SPDX-License-Identifier: Apache-2.0
// Crops of images and their gradients. A chunk of work owns a box, or an image of the batch where
// boxes add to it, in the order of the boxes. What the user can change meanwhile (box_ind, boxes)
// is read once per box.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <type_traits>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_poll.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/tensor.h"
#include "kernels/cpu/elementwise/float_elements.h"
#include "kernels/cpu/elementwise/half_tiles.h"

namespace treenail::cpu {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// One axis of a box over an image of `size` pixels, in `count` places.
struct BoxAxis {
  float first, step, last;  // of the places, and the last pixel
  int64_t count;
  bool single;

  BoxAxis(float from, float to, int64_t size, int64_t count)
      : last(static_cast<float>(size - 1)), count(count), single(count == 1) {
    first = single ? 0.5F * (from + to) * last : from * last;
    step = single ? 0 : (to - from) * last / static_cast<float>(count - 1);
  }
  float place(int64_t i) const { return first + static_cast<float>(i) * step; }
  // False for NaN too.
  bool inside(float at) const { return at >= 0 && at <= last; }
};

// Two pixels around a place; `below` takes 1 - part, `above` part.
struct Pair {
  int64_t below, above;
  float part;
  Pair(float at, int64_t size, bool nearest) {
    below = std::min(size - 1, static_cast<int64_t>(nearest ? std::round(at) : std::floor(at)));
    above = nearest ? below : std::min(size - 1, static_cast<int64_t>(std::ceil(at)));
    part = nearest ? 0 : at - std::floor(at);
  }
};

struct Crops {
  int64_t boxes, height, width, channels;  // of the crops
  int64_t batch, image_height, image_width;
  bool nearest;

  int64_t crop() const { return height * width * channels; }
  int64_t image() const { return image_height * image_width * channels; }
  double cost() const {
    return 20 + static_cast<double>(height) * static_cast<double>(width) *
                    (10 + 1.5 * static_cast<double>(channels));
  }
};

// One box with its index, as it was when it was read.
struct Box {
  int64_t image;
  BoxAxis rows, columns;

  static Box read(const Crops& crops, const float* boxes, const int32_t* index, int64_t i) {
    return {*(static_cast<const volatile int32_t*>(index) + i),
            BoxAxis(boxes[4 * i], boxes[4 * i + 2], crops.image_height, crops.height),
            BoxAxis(boxes[4 * i + 1], boxes[4 * i + 3], crops.image_width, crops.width)};
  }
  void check(const Crops& crops, int64_t i) const {
    if (image < 0 || image >= crops.batch)
      throw invalid_argument("box_ind[", i, "] = ", image, " is not in [0, ", crops.batch, ")");
  }
};

// The lowest bad index is reported whatever order the boxes are computed in.
void check_indices(const Crops& crops, const float* boxes, const int32_t* index) {
  for (int64_t i = 0; i < crops.boxes; ++i) Box::read(crops, boxes, index, i).check(crops, i);
}

template <class F>
void for_boxes(const RunContext& c, const Crops& crops, double cost, F body) {
  c.parallel_for(crops.boxes, std::max<int64_t>(1, static_cast<int64_t>(50000 / cost)), cost,
                 [&](int64_t i, int64_t end) {
                   for (; i < end; ++i) body(i);
                 });
}

// f(y, x, pairs, whether inside) for each place of a crop.
template <class F>
void for_places(const RunContext& c, const Crops& crops, const Box& box, F f) {
  for (int64_t y = 0; y < crops.height; ++y) {
    if (y % 64 == 63) poll(c);
    const float row = box.rows.place(y);
    const bool row_inside = box.rows.inside(row);
    const Pair rows(row_inside ? row : 0, crops.image_height, crops.nearest);
    for (int64_t x = 0; x < crops.width; ++x) {
      const float column = box.columns.place(x);
      const bool inside = row_inside && box.columns.inside(column);
      f(y, x, rows, Pair(inside ? column : 0, crops.image_width, crops.nearest), inside);
    }
  }
}

// Where the four pixels around a place begin.
struct Corners {
  int64_t top_left, top_right, bottom_left, bottom_right;
  Corners(const Crops& c, const Pair& rows, const Pair& columns) {
    const int64_t top = rows.below * c.image_width, bottom = rows.above * c.image_width;
    top_left = (top + columns.below) * c.channels;
    top_right = (top + columns.above) * c.channels;
    bottom_left = (bottom + columns.below) * c.channels;
    bottom_right = (bottom + columns.above) * c.channels;
  }
};

Crops crops_of(const PrepareContext& c, const Shape& crops, const Shape& images) {
  return {crops.dim(0),  crops.dim(1),  crops.dim(2),  crops.dim(3),
          images.dim(0), images.dim(1), images.dim(2), c.op().get_string("method") == "nearest"};
}

// The four pixels around a place: where they lie in images of T or, where T is void, read as float
// into room of their own, some channels at a time.
template <class T>
class Around {
 public:
  Around(const Tensor& images, int64_t image) : images_(images), image_(image) {}

  // f(channel, count, top left, top right, bottom left, bottom right) for all channels.
  template <class F>
  void each(const Corners& at, int64_t channels, F f) {
    const T* image = images_.data<T>() + image_;
    f(int64_t{0}, channels, image + at.top_left, image + at.top_right, image + at.bottom_left,
      image + at.bottom_right);
  }

 private:
  const Tensor& images_;
  int64_t image_;
};

template <>
class Around<void> {
 public:
  Around(const Tensor& images, int64_t image)
      : raw_(images.raw()), image_(image), read_(float_reader(images.dtype())) {}

  template <class F>
  void each(const Corners& at, int64_t channels, F f) {
    for (int64_t k = 0; k < channels; k += kMost) {
      const int64_t n = std::min(kMost, channels - k);
      const float* top_right = pair(at.top_left + k, at.top_right + k, n, room_);
      const float* right = pair(at.bottom_left + k, at.bottom_right + k, n, room_ + 2 * kMost);
      f(k, n, room_, top_right, room_ + 2 * kMost, right);
    }
  }

 private:
  static constexpr int64_t kMost = 64;

  // Pixels side by side are read together. Returns the right one; the left one is at `to`.
  const float* pair(int64_t left, int64_t right, int64_t n, float* to) const {
    if (right == left + n) {
      read_(raw_, image_ + left, 2 * n, to);
      return to + n;
    }
    read_(raw_, image_ + left, n, to);
    if (right == left) return to;
    read_(raw_, image_ + right, n, to + n);
    return to + n;
  }

  const void* raw_;
  int64_t image_;
  FloatReader read_;
  float room_[4 * kMost];
};

template <class T>
KernelPtr prepare_crop(const PrepareContext& c) {
  const Crops crops = crops_of(c, c.output_shape(0), c.input_shape(0));
  const auto outside = static_cast<float>(c.op().get_float("extrapolation_value"));
  return make_kernel(
      [crops, outside](RunContext& c) {
        const float* boxes = c.input(1).data<float>();
        const int32_t* index = c.input(2).data<int32_t>();
        float* const out = c.output(0).data<float>();
        check_indices(crops, boxes, index);
        if (crops.channels == 0) return;
        for_boxes(c, crops, crops.cost(), [&](int64_t i) {
          const Box box = Box::read(crops, boxes, index, i);
          box.check(crops, i);
          Around<T> around(c.input(0), box.image * crops.image());
          float* to = out + i * crops.crop();
          for_places(c, crops, box,
                     [&](int64_t, int64_t, const Pair& rows, const Pair& columns, bool inside) {
                       if (!inside) {
                         std::fill_n(to, crops.channels, outside);
                         to += crops.channels;
                         return;
                       }
                       around.each(
                           Corners(crops, rows, columns), crops.channels,
                           [&](int64_t, int64_t n, const auto* top_left, const auto* top_right,
                               const auto* bottom_left, const auto* bottom_right) {
                             for (int64_t k = 0; k < n; ++k) {
                               const auto first = static_cast<float>(top_left[k]);
                               const auto second = static_cast<float>(top_right[k]);
                               const auto left = static_cast<float>(bottom_left[k]);
                               const auto right = static_cast<float>(bottom_right[k]);
                               const float top = first + (second - first) * columns.part;
                               const float bottom = left + (right - left) * columns.part;
                               to[k] = crops.nearest ? first : top + (bottom - top) * rows.part;
                             }
                             to += n;
                           });
                     });
        });
      },
      crops.cost() * static_cast<double>(crops.boxes));
}

// Adds a crop's gradient to its image.
template <class Sum>
void add_crop(const RunContext& c, const Crops& crops, const Box& box, const float* from,
              Sum* image) {
  for_places(c, crops, box,
             [&](int64_t, int64_t, const Pair& rows, const Pair& columns, bool inside) {
               if (inside) {
                 const Corners at(crops, rows, columns);
                 for (int64_t k = 0; crops.nearest && k < crops.channels; ++k)
                   image[at.top_left + k] += from[k];
                 for (int64_t k = 0; !crops.nearest && k < crops.channels; ++k) {
                   const float top = (1 - rows.part) * from[k], bottom = rows.part * from[k];
                   image[at.top_left + k] += (1 - columns.part) * top;
                   image[at.top_right + k] += columns.part * top;
                   image[at.bottom_left + k] += (1 - columns.part) * bottom;
                   image[at.bottom_right + k] += columns.part * bottom;
                 }
               }
               from += crops.channels;
             });
}

// Sum: float, also where the output is float16, or double.
template <class Sum>
KernelPtr prepare_image_gradient(const PrepareContext& c) {
  const Crops crops = crops_of(c, c.input_shape(0), c.output_shape(0));
  const int64_t elements = c.output_shape(0).num_elements();
  const bool half = is_half(c.output_type(0));
  return make_kernel(
      [crops, elements, half](RunContext& c) {
        const float* grads = c.input(0).data<float>();
        const float* boxes = c.input(1).data<float>();
        const int32_t* index = c.input(2).data<int32_t>();
        Tensor& out = c.output(0);
        check_indices(crops, boxes, index);
        if (elements == 0) return;
        const double cost = crops.cost() * static_cast<double>(crops.boxes);
        Sum* const all = half ? reinterpret_cast<Sum*>(c.scratch()) : static_cast<Sum*>(out.raw());
        c.run_chunks(crops.batch, cost, [&](int64_t image) {
          Sum* const sums = all + image * crops.image();
          std::fill_n(sums, crops.image(), Sum(0));
          for (int64_t i = 0; i < crops.boxes; ++i) {
            const Box box = Box::read(crops, boxes, index, i);
            if (box.image == image) add_crop(c, crops, box, grads + i * crops.crop(), sums);
          }
          if constexpr (std::is_same_v<Sum, float>) {
            if (half) narrow(out.dtype(), sums, crops.image(), out.raw(), image * crops.image());
          }
        });
      },
      crops.cost() * static_cast<double>(crops.boxes),
      half ? static_cast<size_t>(elements) * sizeof(Sum) : 0);
}

// What a change of a place does, shared out to where the box begins and where it ends.
struct EdgeSums {
  float begin = 0, end = 0;
  void add(const BoxAxis& a, int64_t i, float change) {
    if (a.single) {
      begin += 0.5F * a.last * change;
      end += 0.5F * a.last * change;
      return;
    }
    const float share = static_cast<float>(i) * a.last / static_cast<float>(a.count - 1);
    begin += (a.last - share) * change;
    end += share * change;
  }
};

template <class T>
KernelPtr prepare_boxes_gradient(const PrepareContext& c) {
  const Crops crops = crops_of(c, c.input_shape(0), c.input_shape(1));
  return make_kernel(
      [crops](RunContext& c) {
        const float* grads = c.input(0).data<float>();
        const float* boxes = c.input(2).data<float>();
        const int32_t* index = c.input(3).data<int32_t>();
        float* const out = c.output(0).data<float>();
        check_indices(crops, boxes, index);
        if (crops.channels == 0) {
          std::fill_n(out, 4 * crops.boxes, 0.0F);
          return;
        }
        for_boxes(c, crops, 2 * crops.cost(), [&](int64_t i) {
          const Box box = Box::read(crops, boxes, index, i);
          box.check(crops, i);
          Around<T> around(c.input(1), box.image * crops.image());
          const float* from = grads + i * crops.crop();
          EdgeSums down, across;
          for_places(
              c, crops, box,
              [&](int64_t y, int64_t x, const Pair& rows, const Pair& columns, bool inside) {
                float dy = 0, dx = 0;
                if (inside) {
                  around.each(
                      Corners(crops, rows, columns), crops.channels,
                      [&](int64_t begin, int64_t n, const float* top_left, const float* top_right,
                          const float* left, const float* right) {
                        for (int64_t k = 0; k < n; ++k) {
                          dy += from[begin + k] * ((1 - columns.part) * (left[k] - top_left[k]) +
                                                   columns.part * (right[k] - top_right[k]));
                          dx += from[begin + k] * ((1 - rows.part) * (top_right[k] - top_left[k]) +
                                                   rows.part * (right[k] - left[k]));
                        }
                      });
                }
                from += crops.channels;
                down.add(box.rows, y, dy);
                across.add(box.columns, x, dx);
              });
          const float result[] = {down.begin, across.begin, down.end, across.end};
          std::copy_n(result, 4, out + 4 * i);
        });
      },
      2 * crops.cost() * static_cast<double>(crops.boxes));
}

}  // namespace

void register_crop_and_resize_kernels(KernelRegistry& r) {
  const TypeConstraint byte = {"T", {DType::kUInt8}}, single = {"T", {DType::kFloat32}};
  const std::vector<DType> rest = {DType::kUInt16, DType::kInt8,    DType::kInt16,  DType::kInt32,
                                   DType::kInt64,  DType::kFloat16, DType::kFloat64};
  r.add("CropAndResize", {byte}, prepare_crop<uint8_t>);
  r.add("CropAndResize", {single}, prepare_crop<float>);
  r.add("CropAndResize", {{"T", rest}}, prepare_crop<void>);
  r.add("CropAndResizeGradBoxes", {byte}, prepare_boxes_gradient<void>);
  r.add("CropAndResizeGradBoxes", {single}, prepare_boxes_gradient<float>);
  r.add("CropAndResizeGradBoxes", {{"T", rest}}, prepare_boxes_gradient<void>);
  r.add("CropAndResizeGradImage", {{"T", {DType::kFloat16, DType::kFloat32}}},
        prepare_image_gradient<float>);
  r.add("CropAndResizeGradImage", {{"T", {DType::kFloat64}}}, prepare_image_gradient<double>);
}

}  // namespace treenail::cpu
