// SPDX-License-Identifier: Apache-2.0
// What is supported of what the vendor documents, and the plain sum: every product of a filter's
// element and an input's, added to the element that is computed.
#include <utility>
#include <vector>

#include "tests/cuda_sim/dnn/convolution.h"
#include "tests/cuda_sim/link/elements.h"

namespace treenail::cuda_sim {
namespace {

cudaDataType_t cuda_type(cudnnDataType_t type) {
  switch (type) {
    case CUDNN_DATA_DOUBLE:
      return CUDA_R_64F;
    case CUDNN_DATA_HALF:
      return CUDA_R_16F;
    case CUDNN_DATA_BFLOAT16:
      return CUDA_R_16BF;
    default:
      return CUDA_R_32F;
  }
}

// --- Checks -------------------------------------------------------------------------------------

bool shapes_fit(const Convolution& c) {
  const Windows& windows = c.windows;
  const size_t rank = windows.spatial + 2;
  if (c.x.rank != rank || c.w.rank != rank || c.y.rank != rank) return false;
  if (c.x.extents[0] != c.y.extents[0] || c.w.extents[0] != c.y.extents[1]) return false;
  if (c.x.extents[1] != c.w.extents[1] * windows.groups || c.y.extents[1] % windows.groups != 0)
    return false;
  for (size_t i = 0; i < windows.spatial; ++i) {
    const int64_t reach = (c.w.extents[i + 2] - 1) * windows.dilation[i] + 1;
    const int64_t room = c.x.extents[i + 2] + 2 * windows.pad[i] - reach;
    if (room < 0 || room / windows.stride[i] + 1 != c.y.extents[i + 2]) return false;
  }
  return true;
}

// Doubles are for channels second alone.
bool layouts_are_supported(const Convolution& c) {
  const cudnnTensorFormat_t format = c.filter_format;
  if (format == CUDNN_TENSOR_NHWC && c.x.type == CUDNN_DATA_DOUBLE) return false;
  return c.x.strides == packed(c.x, format) && c.y.strides == packed(c.y, format);
}

bool types_are_supported(const Convolution& c) {
  const cudnnDataType_t sums = c.x.type == CUDNN_DATA_DOUBLE ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT;
  return c.w.type == c.x.type && c.y.type == c.x.type && c.windows.compute == sums;
}

// --- The sum ------------------------------------------------------------------------------------

// Zeros where there is nothing to read.
template <class T>
std::vector<T> read(const Tensor& tensor, const void* at) {
  std::vector<T> values(static_cast<size_t>(tensor.elements()));
  for (size_t i = 0; at != nullptr && i < values.size(); ++i)
    values[i] = load<T>(cuda_type(tensor.type), at, static_cast<int64_t>(i));
  return values;
}

// The offsets of the three elements that meet, called for all of them.
class Meetings {
 public:
  explicit Meetings(const Convolution& c) : c_(c) {}

  template <class F>
  void for_each(F f) const {
    for (int64_t n = 0; n < c_.x.extents[0]; ++n)
      along(0, n * c_.x.strides[0], 0, n * c_.y.strides[0], f);
  }

 private:
  // Offsets of the first channels.
  template <class F>
  void along(size_t axis, int64_t x, int64_t w, int64_t y, F& f) const {
    const Windows& windows = c_.windows;
    if (axis == windows.spatial) return over_channels(x, w, y, f);
    const size_t i = axis + 2;
    for (int64_t window = 0; window < c_.y.extents[i]; ++window) {
      for (int64_t tap = 0; tap < c_.w.extents[i]; ++tap) {
        const int64_t at =
            window * windows.stride[axis] - windows.pad[axis] + tap * windows.dilation[axis];
        if (at < 0 || at >= c_.x.extents[i]) continue;
        const bool turned = windows.mode == CUDNN_CONVOLUTION;
        const int64_t seen = turned ? c_.w.extents[i] - 1 - tap : tap;
        along(axis + 1, x + at * c_.x.strides[i], w + seen * c_.w.strides[i],
              y + window * c_.y.strides[i], f);
      }
    }
  }
  template <class F>
  void over_channels(int64_t x, int64_t w, int64_t y, F& f) const {
    const int64_t filters = c_.y.extents[1] / c_.windows.groups, channels = c_.w.extents[1];
    for (int64_t k = 0; k < c_.y.extents[1]; ++k) {
      const int64_t first = x + k / filters * channels * c_.x.strides[1];
      const int64_t filter = w + k * c_.w.strides[0], result = y + k * c_.y.strides[1];
      for (int64_t c = 0; c < channels; ++c)
        f(first + c * c_.x.strides[1], filter + c * c_.w.strides[1], result);
    }
  }

  const Convolution& c_;
};

// What is computed, and the two that it is computed from.
template <class T>
struct Values {
  explicit Values(const Convolution& c)
      : x(read<T>(c.x, c.what == Computed::kInput ? nullptr : c.at_x)),
        w(read<T>(c.w, c.what == Computed::kFilter ? nullptr : c.at_w)),
        y(read<T>(c.y, c.what == Computed::kOutput ? nullptr : c.at_y)) {}
  std::vector<T> x, w, y;
};

template <class T>
std::vector<T> sums_of(const Convolution& c) {
  const Meetings meetings(c);
  Values<T> values(c);
  T *const xs = values.x.data(), *const ws = values.w.data(), *const ys = values.y.data();
  switch (c.what) {
    case Computed::kOutput:
      meetings.for_each([=](int64_t x, int64_t w, int64_t y) { ys[y] += xs[x] * ws[w]; });
      return std::move(values.y);
    case Computed::kInput:
      meetings.for_each([=](int64_t x, int64_t w, int64_t y) { xs[x] += ws[w] * ys[y]; });
      return std::move(values.x);
    case Computed::kFilter:
      break;
  }
  meetings.for_each([=](int64_t x, int64_t w, int64_t y) { ws[w] += xs[x] * ys[y]; });
  return std::move(values.w);
}

template <class T>
void compute_in(const Convolution& c) {
  const bool output = c.what == Computed::kOutput, input = c.what == Computed::kInput;
  const cudaDataType_t type = cuda_type(c.x.type);
  void* const to = const_cast<void*>(output ? c.at_y : input ? c.at_x : c.at_w);
  std::vector<T> sums = sums_of<T>(c);
  for (size_t i = 0; i < sums.size(); ++i) {
    const auto at = static_cast<int64_t>(i);
    T value = static_cast<T>(c.alpha) * sums[i];
    // As another order of additions would: in the last bits.
    if (c.other_order) value *= T(1) + T(c.x.type == CUDNN_DATA_DOUBLE ? 1e-15 : 2e-7);
    if (c.beta != 0) value += static_cast<T>(c.beta) * load<T>(type, to, at);
    store(type, to, at, value);
  }
}

}  // namespace

size_t type_size(cudnnDataType_t type) {
  return type == CUDNN_DATA_DOUBLE ? 8 : type == CUDNN_DATA_FLOAT ? 4 : 2;
}

size_t bytes_of(const Tensor& tensor) {
  return static_cast<size_t>(tensor.elements()) * type_size(tensor.type);
}

cudnnStatus_t check(const Convolution& c) {
  if (!shapes_fit(c)) return CUDNN_STATUS_BAD_PARAM;
  return layouts_are_supported(c) && types_are_supported(c) ? CUDNN_STATUS_SUCCESS
                                                            : CUDNN_STATUS_NOT_SUPPORTED;
}

void compute(const Convolution& c) {
  if (c.x.type == CUDNN_DATA_DOUBLE) return compute_in<double>(c);
  compute_in<float>(c);
}

}  // namespace treenail::cuda_sim
