// SPDX-License-Identifier: Apache-2.0
// cuDNN pads both sides of an axis alike, has filters in the order of [filter, channel, taps] or
// [filter, taps, channel], and few algorithms for floats with channels last: what does not lie as
// it wants is moved before and after.
#include "kernels/cuda/convolution/dnn_convolution_host.h"

#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <optional>
#include <vector>

#include "framework/base/logging.h"
#include "kernels/cuda/arrays/strided_launch_host.h"
#include "kernels/cuda/dnn/dnn_host.h"
#include "kernels/cuda/driver/precision.h"

namespace treenail::cuda {

using host::ConvGeometry;
using host::ConvPass;

#if !TN_CUDNN

std::unique_ptr<DnnConvolution> DnnConvolution::find(CudaDevice& device, ConvPass,
                                                     const ConvGeometry&, DType) {
  static_cast<void>(has_dnn(device));
  return nullptr;
}

#else

namespace {

constexpr size_t kMostWorkspace = size_t{256} << 20;
constexpr size_t kBufferAlignment = 256;
constexpr int kMostRank = 5;
constexpr int kMostAlgorithms = 16;

size_t rounded(size_t bytes) {
  return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment;
}

// Do tensor cores compute on this dtype?
bool on_tensor_cores(DType dtype) {
  if (dtype == DType::kFloat32) return takes_tf32();
  return dtype == DType::kFloat16 || dtype == DType::kBFloat16;
}

// --- Layouts ------------------------------------------------------------------------------------

// As cuDNN counts: batch, channels, extents; or filters, channels, taps.
struct Extents {
  int rank = 0;
  std::array<int64_t, kMostRank> of = {};
  void add(int64_t extent) { of[static_cast<size_t>(rank++)] = extent; }
  int64_t elements() const {
    int64_t n = 1;
    for (int i = 0; i < rank; ++i) n *= of[static_cast<size_t>(i)];
    return n;
  }
  bool fit() const {
    return elements() <= std::numeric_limits<int>::max() &&
           std::all_of(of.begin(), of.end(), [](int64_t each) { return each < 1 << 30; });
  }
};

// Strides of a dense array whose channels, the second extent, come second or last.
std::array<int64_t, kMostRank> strides_of(const Extents& e, bool channels_second) {
  std::array<int64_t, kMostRank> strides = {};
  int64_t step = 1;
  if (!channels_second) {
    strides[1] = step;
    step *= e.of[1];
  }
  for (int i = e.rank - 1; i >= 0; --i) {
    if (i == 1 && !channels_second) continue;
    strides[static_cast<size_t>(i)] = step;
    step *= e.of[static_cast<size_t>(i)];
  }
  return strides;
}

std::array<int, kMostRank> narrow(const std::array<int64_t, kMostRank>& of) {
  std::array<int, kMostRank> narrowed = {};
  std::transform(of.begin(), of.end(), narrowed.begin(),
                 [](int64_t n) { return static_cast<int>(n); });
  return narrowed;
}

// The axes that windows slide along; images have no planes.
std::vector<WindowAxis> axes_of(const ConvGeometry& g) {
  if (g.flat()) return {g.rows, g.columns};
  return {g.planes, g.rows, g.columns};
}

// More zeros on one side than the other: these lie in memory.
int64_t more_before(const WindowAxis& a) {
  return std::max<int64_t>(0, a.pad_before - a.pad_after);
}
int64_t more_after(const WindowAxis& a) { return std::max<int64_t>(0, a.pad_after - a.pad_before); }

Extents input_extents(const ConvGeometry& g, bool padded) {
  Extents e;
  e.add(g.batch);
  e.add(g.channels);
  for (const WindowAxis& a : axes_of(g))
    e.add(a.input + (padded ? more_before(a) + more_after(a) : 0));
  return e;
}

Extents output_extents(const ConvGeometry& g) {
  Extents e;
  e.add(g.batch);
  e.add(g.filters);
  for (const WindowAxis& a : axes_of(g)) e.add(a.output);
  return e;
}

Extents filter_extents(const ConvGeometry& g) {
  Extents e;
  e.add(g.filters);
  e.add(g.depthwise ? 1 : g.channels);
  for (const WindowAxis& a : axes_of(g)) e.add(a.taps);
  return e;
}

// The op's filters are [taps, channel, filter] in memory.
std::array<int64_t, kMostRank> filter_strides(const Extents& e) {
  std::array<int64_t, kMostRank> strides = {};
  strides[0] = 1;
  strides[1] = e.of[0];
  int64_t step = e.of[0] * e.of[1];
  for (int i = e.rank - 1; i >= 2; --i) {
    strides[static_cast<size_t>(i)] = step;
    step *= e.of[static_cast<size_t>(i)];
  }
  return strides;
}

// --- What is moved ------------------------------------------------------------------------------

// A tensor of the op, and where cuDNN has it.
struct Side {
  std::optional<host::StridedCopy> copy;  // to cuDNN's, or from it where it is computed
  size_t bytes = 0;                       // of cuDNN's, where that is another place
  bool zeroed = false;                    // the copy leaves some of it

  // Where cuDNN finds it; takes its place from `scratch`.
  const void* enter(CudaDevice& device, const void* from, std::byte*& scratch) const {
    if (!copy) return from;
    std::byte* const to = scratch;
    scratch += rounded(bytes);
    if (zeroed) device.zero(to, bytes);
    launch_copy(device, *copy, from, to);
    return to;
  }
};

host::StridedCopy copy_between(DType dtype, const Extents& e,
                               const std::array<int64_t, kMostRank>& from,
                               const std::array<int64_t, kMostRank>& to, int64_t from_offset,
                               int64_t to_offset) {
  // In the order of the target, for its elements are written side by side.
  std::vector<size_t> order(static_cast<size_t>(e.rank));
  std::iota(order.begin(), order.end(), size_t{0});
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return to[a] > to[b]; });
  host::StridedCopy copy(dtype);
  for (const size_t axis : order) copy.axis(e.of[axis], from[axis], to[axis]);
  copy.offsets(from_offset, to_offset);
  copy.finish();
  return copy;
}

class Placed {
 public:
  Placed(ConvPass pass, const ConvGeometry& g, DType dtype, bool channels_second)
      : dtype_(dtype), pass_(pass), g_(g), second_(channels_second) {
    make_input();
    make_output();
    const Extents e = filter_extents(g);
    const auto theirs = strides_of(e, second_), ours = filter_strides(e);
    move(filter, e, ours, theirs, 0, pass == ConvPass::kFilter);
    filter.bytes = static_cast<size_t>(e.elements()) * dtype_size(dtype);
  }

  Side input, filter, output;

 private:
  void make_input() {
    const Extents e = input_extents(g_, false), padded = input_extents(g_, true);
    const auto theirs = strides_of(padded, second_);
    const bool pads = padded.elements() != e.elements();
    if (!pads && second_ == g_.channels_second) return;
    int64_t offset = 0;
    size_t i = 2;
    for (const WindowAxis& a : axes_of(g_)) offset += more_before(a) * theirs[i++];
    move(input, e, strides_of(e, g_.channels_second), theirs, offset, pass_ == ConvPass::kInput);
    input.bytes = static_cast<size_t>(padded.elements()) * dtype_size(dtype_);
    input.zeroed = pads;
  }
  void make_output() {
    if (second_ == g_.channels_second) return;
    const Extents e = output_extents(g_);
    move(output, e, strides_of(e, g_.channels_second), strides_of(e, second_), 0,
         pass_ == ConvPass::kForward);
    output.bytes = static_cast<size_t>(e.elements()) * dtype_size(dtype_);
  }
  void move(Side& side, const Extents& e, const std::array<int64_t, kMostRank>& ours,
            const std::array<int64_t, kMostRank>& theirs, int64_t offset, bool computed) const {
    side.copy = computed ? copy_between(dtype_, e, theirs, ours, offset, 0)
                         : copy_between(dtype_, e, ours, theirs, 0, offset);
  }

  const DType dtype_;
  const ConvPass pass_;
  const ConvGeometry& g_;
  const bool second_;
};

// --- Descriptors --------------------------------------------------------------------------------

class Descriptors {
 public:
  Descriptors(const ConvGeometry& g, DType dtype, bool channels_second)
      : x_(dnn().cudnnCreateTensorDescriptor, dnn().cudnnDestroyTensorDescriptor),
        y_(dnn().cudnnCreateTensorDescriptor, dnn().cudnnDestroyTensorDescriptor),
        w_(dnn().cudnnCreateFilterDescriptor, dnn().cudnnDestroyFilterDescriptor),
        convolution_(dnn().cudnnCreateConvolutionDescriptor,
                     dnn().cudnnDestroyConvolutionDescriptor) {
    describe(x_.get(), dtype, input_extents(g, true), channels_second);
    describe(y_.get(), dtype, output_extents(g), channels_second);
    const Extents filter = filter_extents(g);
    check(dnn().cudnnSetFilterNdDescriptor(w_.get(), dnn_type(dtype),
                                           channels_second ? CUDNN_TENSOR_NCHW : CUDNN_TENSOR_NHWC,
                                           filter.rank, narrow(filter.of).data()),
          "cudnnSetFilterNdDescriptor");
    describe_windows(g, dtype);
  }
  cudnnTensorDescriptor_t x() const { return x_.get(); }
  cudnnTensorDescriptor_t y() const { return y_.get(); }
  cudnnFilterDescriptor_t w() const { return w_.get(); }
  cudnnConvolutionDescriptor_t convolution() const { return convolution_.get(); }

 private:
  static void describe(cudnnTensorDescriptor_t tensor, DType dtype, const Extents& e,
                       bool channels_second) {
    check(dnn().cudnnSetTensorNdDescriptor(tensor, dnn_type(dtype), e.rank, narrow(e.of).data(),
                                           narrow(strides_of(e, channels_second)).data()),
          "cudnnSetTensorNdDescriptor");
  }
  // Sums in float, for doubles in double.
  void describe_windows(const ConvGeometry& g, DType dtype) {
    std::array<int, 3> pad = {}, stride = {}, dilation = {};
    size_t n = 0;
    for (const WindowAxis& a : axes_of(g)) {
      pad[n] = static_cast<int>(std::min(a.pad_before, a.pad_after));
      stride[n] = static_cast<int>(a.stride);
      dilation[n++] = static_cast<int>(a.dilation);
    }
    const bool is_double = dtype == DType::kFloat64;
    check(dnn().cudnnSetConvolutionNdDescriptor(
              convolution_.get(), static_cast<int>(n), pad.data(), stride.data(), dilation.data(),
              CUDNN_CROSS_CORRELATION, is_double ? CUDNN_DATA_DOUBLE : CUDNN_DATA_FLOAT),
          "cudnnSetConvolutionNdDescriptor");
    check(dnn().cudnnSetConvolutionMathType(
              convolution_.get(), on_tensor_cores(dtype) ? CUDNN_TENSOR_OP_MATH : CUDNN_FMA_MATH),
          "cudnnSetConvolutionMathType");
    if (g.depthwise) {
      check(dnn().cudnnSetConvolutionGroupCount(convolution_.get(), static_cast<int>(g.channels)),
            "cudnnSetConvolutionGroupCount");
    }
  }

  DnnDescriptor<cudnnTensorDescriptor_t> x_, y_;
  DnnDescriptor<cudnnFilterDescriptor_t> w_;
  DnnDescriptor<cudnnConvolutionDescriptor_t> convolution_;
};

// --- Algorithms ---------------------------------------------------------------------------------

struct Algorithm {
  int number = 0;  // of the pass's enumeration
  size_t workspace_bytes = 0;
  cudnnMathType_t math = CUDNN_DEFAULT_MATH;
};

// cuDNN lists the quickest first. `ask`: its question with (most, found, results).
template <class Result, class Ask>
std::optional<Algorithm> first_repeatable(Ask ask) {
  std::array<Result, kMostAlgorithms> results = {};
  int found = 0;
  if (ask(kMostAlgorithms, &found, results.data()) != CUDNN_STATUS_SUCCESS) return std::nullopt;
  for (int i = 0; i < found; ++i) {
    const Result& r = results[static_cast<size_t>(i)];
    if (r.status == CUDNN_STATUS_SUCCESS && r.determinism == CUDNN_DETERMINISTIC &&
        r.memory <= kMostWorkspace)
      return Algorithm{r.algo, r.memory, r.mathType};
  }
  return std::nullopt;
}

std::optional<Algorithm> choose(cudnnHandle_t handle, ConvPass pass, const Descriptors& d) {
  switch (pass) {
    case ConvPass::kForward:
      return first_repeatable<cudnnConvolutionFwdAlgoPerf_t>([&](auto... rest) {
        return dnn().cudnnGetConvolutionForwardAlgorithm_v7(handle, d.x(), d.w(), d.convolution(),
                                                            d.y(), rest...);
      });
    case ConvPass::kInput:
      return first_repeatable<cudnnConvolutionBwdDataAlgoPerf_t>([&](auto... rest) {
        return dnn().cudnnGetConvolutionBackwardDataAlgorithm_v7(handle, d.w(), d.y(),
                                                                 d.convolution(), d.x(), rest...);
      });
    case ConvPass::kFilter:
      return first_repeatable<cudnnConvolutionBwdFilterAlgoPerf_t>([&](auto... rest) {
        return dnn().cudnnGetConvolutionBackwardFilterAlgorithm_v7(handle, d.x(), d.y(),
                                                                   d.convolution(), d.w(), rest...);
      });
  }
  return std::nullopt;
}

// --- A convolution ------------------------------------------------------------------------------

class Found final : public DnnConvolution {
 public:
  Found(CudaDevice& device, ConvPass pass, const ConvGeometry& g, DType dtype, bool channels_second)
      : device_(device),
        pass_(pass),
        is_double_(dtype == DType::kFloat64),
        descriptors_(g, dtype, channels_second),
        placed_(pass, g, dtype, channels_second) {}

  // False where there is no algorithm.
  bool choose() {
    const DnnHandle handle(device_);
    const std::optional<Algorithm> algorithm = cuda::choose(handle.get(), pass_, descriptors_);
    if (!algorithm) return false;
    algorithm_ = *algorithm;
    check(dnn().cudnnSetConvolutionMathType(descriptors_.convolution(), algorithm_.math),
          "cudnnSetConvolutionMathType");
    scratch_bytes = kBufferAlignment + rounded(algorithm_.workspace_bytes);
    for (const Side* side : {&placed_.input, &placed_.filter, &placed_.output})
      scratch_bytes += rounded(side->bytes);
    return true;
  }

  bool launch(const void* a, const void* b, void* out, std::byte* scratch) const override {
    scratch += kBufferAlignment - reinterpret_cast<uintptr_t>(scratch) % kBufferAlignment;
    const Side& computed = side_of(0);
    const void* const first = side_of(1).enter(device_, a, scratch);
    const void* const second = side_of(2).enter(device_, b, scratch);
    void* const result = computed.copy ? scratch : out;
    if (computed.copy) scratch += rounded(computed.bytes);
    if (!call(first, second, result, scratch)) return false;
    if (computed.copy) launch_copy(device_, *computed.copy, result, out);
    return true;
  }

 private:
  // What is computed, and the two operands in the op's order.
  const Side& side_of(int i) const {
    const Side* const order[3][3] = {{&placed_.output, &placed_.input, &placed_.filter},
                                     {&placed_.input, &placed_.filter, &placed_.output},
                                     {&placed_.filter, &placed_.input, &placed_.output}};
    return *order[static_cast<int>(pass_)][i];
  }

  bool call(const void* a, const void* b, void* out, void* workspace) const {
    const DnnHandle handle(device_);
    const cudnnStatus_t status = call_with(handle.get(), a, b, out, workspace);
    if (status == CUDNN_STATUS_NOT_SUPPORTED) return false;
    check(status, "cudnnConvolution");
    return true;
  }

  cudnnStatus_t call_with(cudnnHandle_t handle, const void* a, const void* b, void* out,
                          void* workspace) const {
    const double one[] = {1, 0};
    const float one_float[] = {1, 0};
    const void* const alpha = is_double_ ? static_cast<const void*>(&one[0]) : &one_float[0];
    const void* const beta = is_double_ ? static_cast<const void*>(&one[1]) : &one_float[1];
    const Descriptors& d = descriptors_;
    const size_t bytes = algorithm_.workspace_bytes;
    switch (pass_) {
      case ConvPass::kForward:
        return dnn().cudnnConvolutionForward(
            handle, alpha, d.x(), a, d.w(), b, d.convolution(),
            static_cast<cudnnConvolutionFwdAlgo_t>(algorithm_.number), workspace, bytes, beta,
            d.y(), out);
      case ConvPass::kInput:
        return dnn().cudnnConvolutionBackwardData(
            handle, alpha, d.w(), a, d.y(), b, d.convolution(),
            static_cast<cudnnConvolutionBwdDataAlgo_t>(algorithm_.number), workspace, bytes, beta,
            d.x(), out);
      case ConvPass::kFilter:
        break;
    }
    return dnn().cudnnConvolutionBackwardFilter(
        handle, alpha, d.x(), a, d.y(), b, d.convolution(),
        static_cast<cudnnConvolutionBwdFilterAlgo_t>(algorithm_.number), workspace, bytes, beta,
        d.w(), out);
  }

  CudaDevice& device_;
  const ConvPass pass_;
  const bool is_double_;
  const Descriptors descriptors_;
  const Placed placed_;
  Algorithm algorithm_;
};

bool all_fit(const ConvGeometry& g) {
  return input_extents(g, true).fit() && output_extents(g).fit() && filter_extents(g).fit();
}

}  // namespace

// Tensor cores want channels last, sums in float or double are quicker with channels second.
std::unique_ptr<DnnConvolution> DnnConvolution::find(CudaDevice& device, ConvPass pass,
                                                     const ConvGeometry& g, DType dtype) {
  if (!has_dnn(device) || !all_fit(g)) return nullptr;
  const bool tensor_cores = on_tensor_cores(dtype);
  for (const bool channels_second : {!tensor_cores, tensor_cores}) {
    auto found = std::make_unique<Found>(device, pass, g, dtype, channels_second);
    if (found->choose()) return found;
  }
  log(LogLevel::kInfo, "cuDNN has no algorithm for a convolution of ", g.channels, " by ",
      g.filters, " channels in ", dtype_name(dtype), ": it is computed as the plain sum");
  return nullptr;
}

#endif

}  // namespace treenail::cuda
