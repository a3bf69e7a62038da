// SPDX-License-Identifier: Apache-2.0
// SampleDistortedBoundingBox of framework/ops/image_boxes.cc: random parts of an image, tried until
// one covers enough of a box. Attempt i takes block i of the stream.
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/philox.h"
#include "framework/runtime/kernel/kernel_poll.h"
#include "framework/runtime/kernel/kernel_random.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

struct Part {
  int64_t top = 0, left = 0, bottom = 0, right = 0;
  double area() const {
    return static_cast<double>(bottom - top) * static_cast<double>(right - left);
  }
  double shared(const Part& other) const {
    const Part p = {std::max(top, other.top), std::max(left, other.left),
                    std::min(bottom, other.bottom), std::min(right, other.right)};
    return p.bottom > p.top && p.right > p.left ? p.area() : 0;
  }
};

struct Sampling {
  double least_ratio, most_ratio, least_area, most_area;
  int64_t attempts;
  bool whole_if_none;
};

// Of n, n <= 2^32; the bias is n / 2^32 at most.
int64_t below(uint32_t word, int64_t n) {
  return static_cast<int64_t>((uint64_t{word} * static_cast<uint64_t>(n)) >> 32);
}

// A part of the image with this ratio of width to height and an area within bounds; false when
// there is none, or none was met.
bool random_part(const Philox::Block& words, double ratio, const Sampling& s, int64_t height,
                 int64_t width, Part& part) {
  const double image = static_cast<double>(height) * static_cast<double>(width);
  const double least = s.least_area * image, most = s.most_area * image;
  const auto rounded = [](double x) { return static_cast<int64_t>(std::nearbyint(x)); };
  double tallest = std::min(std::nearbyint(std::sqrt(most / ratio)), static_cast<double>(height));
  if (std::nearbyint(tallest * ratio) > static_cast<double>(width))
    tallest = std::floor((static_cast<double>(width) + 0.5 - 1e-7) / ratio);
  const auto highest = static_cast<int64_t>(std::min(tallest, static_cast<double>(height)));
  int64_t tall = std::min(rounded(std::min(std::sqrt(least / ratio), 1e15)), highest);
  tall += below(words[1], highest - tall + 1);
  const auto wide_for = [&](int64_t h) { return rounded(static_cast<double>(h) * ratio); };
  const auto area_of = [&](int64_t h) {
    return static_cast<double>(h) * static_cast<double>(wide_for(h));
  };
  if (area_of(tall) < least) ++tall;  // rounding may have gone out of bounds
  if (area_of(tall) > most) --tall;
  const int64_t wide = wide_for(tall);
  const double area = area_of(tall);
  if (area < least || area > most || tall < 1 || wide < 1 || tall > height || wide > width)
    return false;
  part.top = below(words[2], height - tall + 1);
  part.left = below(words[3], width - wide + 1);
  part.bottom = part.top + tall;
  part.right = part.left + wide;
  return true;
}

std::vector<Part> boxes_of(const Tensor& boxes, int64_t height, int64_t width) {
  const float* data = boxes.data<float>();
  std::vector<Part> list;
  for (int64_t i = 0; i < boxes.num_elements() / 4; ++i) {
    float b[4];
    std::copy_n(data + 4 * i, 4, b);
    for (const float x : b) {
      if (!(x >= 0 && x <= 1))
        throw invalid_argument("bounding_boxes must be in [0, 1]: box ", i, " holds ", x);
    }
    if (!(b[0] < b[2] && b[1] < b[3])) {
      throw invalid_argument("the minimum of a bounding box must be below its maximum: box ", i,
                             " is [", b[0], ", ", b[1], ", ", b[2], ", ", b[3], "]");
    }
    const auto at = [](float x, int64_t n) {
      return static_cast<int64_t>(static_cast<double>(x) * static_cast<double>(n));
    };
    list.push_back({at(b[0], height), at(b[1], width), at(b[2], height), at(b[3], width)});
  }
  return list;
}

// Whether a part keeps enough of some box that has a pixel at all.
bool covers(const Part& part, const std::vector<Part>& boxes, double wanted) {
  return std::any_of(boxes.begin(), boxes.end(), [&](const Part& box) {
    return box.area() >= 1 && part.shared(box) >= wanted * box.area();
  });
}

double unit(uint32_t word) { return static_cast<double>(word) * 0x1p-32; }

Part choose(const RunContext& c, const Philox& stream, const Sampling& s, int64_t height,
            int64_t width, const std::vector<Part>& boxes, double wanted) {
  for (int64_t i = 0; i < s.attempts; ++i) {
    if (i % 64 == 63) poll(c);
    const Philox::Block words = stream(static_cast<uint64_t>(i));
    const double ratio = s.least_ratio + unit(words[0]) * (s.most_ratio - s.least_ratio);
    Part part;
    if (random_part(words, ratio, s, height, width, part) && covers(part, boxes, wanted))
      return part;
  }
  return {0, 0, height, width};
}

template <class T>
void sample(RunContext& c, const Philox& stream, const Sampling& s) {
  T size[3];
  std::copy_n(c.input(0).data<T>(), 3, size);
  const auto height = static_cast<int64_t>(size[0]), width = static_cast<int64_t>(size[1]);
  constexpr int64_t kMost = int64_t{1} << 31;
  if (height < 1 || width < 1 || size[2] < 1 || height > kMost || width > kMost) {
    throw invalid_argument("image_size must be positive and at most ", kMost, ", got [", height,
                           ", ", width, ", ", static_cast<int64_t>(size[2]), "]");
  }
  const float wanted = *c.input(2).data<float>();
  if (!(wanted >= 0 && wanted <= 1))
    throw invalid_argument("min_object_covered must be in [0, 1], got ", wanted);
  std::vector<Part> boxes = boxes_of(c.input(1), height, width);
  if (boxes.empty()) {
    if (!s.whole_if_none) {
      throw invalid_argument(
          "No bounding boxes provided as input. One must enable use_image_if_no_bounding_boxes if "
          "you wish to not provide any bounding boxes.");
    }
    boxes.push_back({0, 0, height, width});
  }
  const Part p = choose(c, stream, s, height, width, boxes, static_cast<double>(wanted));
  const T begin[] = {static_cast<T>(p.top), static_cast<T>(p.left), T{0}};
  const T extent[] = {static_cast<T>(p.bottom - p.top), static_cast<T>(p.right - p.left),
                      static_cast<T>(-1)};
  std::copy_n(begin, 3, c.output(0).data<T>());
  std::copy_n(extent, 3, c.output(1).data<T>());
  const auto fraction = [](int64_t x, int64_t n) {
    return static_cast<float>(static_cast<double>(x) / static_cast<double>(n));
  };
  const float box[] = {fraction(p.top, height), fraction(p.left, width), fraction(p.bottom, height),
                       fraction(p.right, width)};
  std::copy_n(box, 4, c.output(2).data<float>());
}

template <class T>
std::unique_ptr<Kernel> prepare_sample(const PrepareContext& p) {
  const auto& ratios = p.op().get<std::vector<double>>("aspect_ratio_range");
  const auto& areas = p.op().get<std::vector<double>>("area_range");
  const Sampling s = {ratios[0],
                      ratios[1],
                      areas[0],
                      areas[1],
                      p.op().get_int("max_attempts"),
                      p.op().get_bool("use_image_if_no_bounding_boxes")};
  return make_kernel(
      [s, stream = CountedStream(p)](RunContext& c) {
        sample<T>(c, stream.next(static_cast<uint64_t>(s.attempts)), s);
      },
      2000);
}

}  // namespace

void register_image_crop_kernels(KernelRegistry& r) {
  const auto sampling = [&](DType type, PrepareFn prepare) {
    r.add("SampleDistortedBoundingBox", {{"T", {type}}}, prepare);
  };
  sampling(DType::kUInt8, prepare_sample<uint8_t>);
  sampling(DType::kInt8, prepare_sample<int8_t>);
  sampling(DType::kInt16, prepare_sample<int16_t>);
  sampling(DType::kInt32, prepare_sample<int32_t>);
  sampling(DType::kInt64, prepare_sample<int64_t>);
}

}  // namespace treenail::host
