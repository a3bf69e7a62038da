// SPDX-License-Identifier: Apache-2.0
// Conv2D, Conv3D, depthwise convolution and their gradients: which algorithm a shape gets, and
// layouts and 16-bit dtypes around it. The choice looks at shape, level and libraries, and at what
// TREENAIL_CONVOLUTION asks for, only.
// Algorithms: winograd*.cc (3 x 3 and 5 x 5, stride 1), conv_fold.cc (gradients of few channels),
// depthwise.cc, conv_direct*.cc (any convolution), conv_taps.cc (windows that see little but
// padding).
#include "kernels/cpu/convolution/convolution.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>
#include <type_traits>

#include "framework/base/environment.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/image/layout.h"

namespace treenail::cpu {
namespace {

// Planes that no window joins are images of their own.
ConvGeometry planes_apart(ConvGeometry g) {
  if (g.planes.taps == 1 && g.planes.stride == 1 && g.planes.output == g.planes.input) {
    g.batch *= g.planes.input;
    g.planes = {.input = 1, .output = 1};
  }
  return g;
}

bool asked_for_direct_sums() {
  constexpr std::array<std::string_view, 2> kChoices = {"fast", "direct"};
  return env_choice("TREENAIL_CONVOLUTION", kChoices) == 1;
}

template <class T>
ConvPtr<T> choose(ConvPass pass, const ConvGeometry& g) {
  const bool padding = padding_dominates(g);
  if (g.depthwise) return padding ? taps_pass<T>(pass, g) : depthwise_pass<T>(pass, g);
  if constexpr (std::is_same_v<T, float>) {
    const bool direct = asked_for_direct_sums();  // first: a wrong value is refused at any level
    if (padding) return taps_pass<T>(pass, g);
    if (ConvPtr<float> theirs = g.flat() ? onednn_pass(pass, g) : nullptr) return theirs;
    if (!direct && prefer_winograd(g, pass)) {
      return pass == ConvPass::kFilter ? winograd_filter(g)
                                       : winograd_forward(g, pass == ConvPass::kInput);
    }
  }
  if (padding) return taps_pass<T>(pass, g);
  switch (pass) {
    case ConvPass::kForward:
      return direct_forward<T>(g);
    case ConvPass::kInput:
      return g.flat() && prefer_fold<T>(g) ? fold_input<T>(g) : direct_input<T>(g);
    case ConvPass::kFilter:
      return direct_filter<T>(g);
  }
  return nullptr;
}

// Zero has the same bytes in every dtype.
std::unique_ptr<Kernel> zero_output() {
  return make_kernel([](RunContext& c) {
    std::fill_n(static_cast<std::byte*>(c.output(0).raw()), c.output(0).bytes(), std::byte{0});
  });
}

template <class C>
class ConvKernel final : public Kernel {
 public:
  ConvKernel(ConvPass pass, const ConvGeometry& g, bool half)
      : pass_(pass),
        algorithm_(choose<C>(pass, planes_apart(g))),
        filter_elements_(g.filter_elements()),
        images_{g.batch, g.input_pixels(), g.channels, g.channels_second, half},
        results_{g.batch, g.output_pixels(), g.filters, g.channels_second, half},
        filter_scratch_(half ? (filter_elements_ + 15) / 16 * 16 : 0) {
    scratch_bytes =
        algorithm_->scratch_bytes +
        static_cast<size_t>(images_.scratch() + results_.scratch() + filter_scratch_) * sizeof(C);
    cost_ns = algorithm_->cost_ns + 100;
  }

  void run(RunContext& c) const override {
    C* const for_images = reinterpret_cast<C*>(c.scratch());
    C* const for_results = for_images + images_.scratch();
    C* const for_filter = for_results + results_.scratch();
    std::byte* const rest = reinterpret_cast<std::byte*>(for_filter + filter_scratch_);
    switch (pass_) {
      case ConvPass::kForward: {
        Tensor& out = c.output(0);
        C* const to = results_.target(out, for_results);
        const C* images = images_.read(c, c.input(0), for_images);
        algorithm_->run(c, images, read_filter(c.input(1), for_filter), to, rest);
        results_.write(c, to, out, for_results);
        return;
      }
      case ConvPass::kInput: {
        Tensor& out = c.output(0);
        C* const to = images_.target(out, for_images);
        const C* gradient = results_.read(c, c.input(2), for_results);
        algorithm_->run(c, read_filter(c.input(1), for_filter), gradient, to, rest);
        images_.write(c, to, out, for_images);
        return;
      }
      case ConvPass::kFilter: {
        const C* images = images_.read(c, c.input(0), for_images);
        const C* gradient = results_.read(c, c.input(2), for_results);
        Tensor& out = c.output(0);
        C* const to = filter_scratch_ > 0 ? for_filter : out.data<C>();
        algorithm_->run(c, images, gradient, to, rest);
        if constexpr (std::is_same_v<C, float>) {
          if (filter_scratch_ > 0) narrow(out.dtype(), to, filter_elements_, out.raw(), 0);
        }
        return;
      }
    }
  }

 private:
  const C* read_filter(const Tensor& filter, C* scratch) const {
    if constexpr (std::is_same_v<C, float>) {
      if (filter_scratch_ > 0) {
        widen(filter.dtype(), filter.raw(), 0, filter_elements_, scratch);
        return scratch;
      }
    }
    return filter.data<C>();
  }

  ConvPass pass_;
  ConvPtr<C> algorithm_;
  int64_t filter_elements_;
  ImageLayout<C> images_, results_;
  int64_t filter_scratch_;  // of 16-bit filters
};

template <class C, ConvPass kPass>
std::unique_ptr<Kernel> prepare(const PrepareContext& c) {
  const ConvGeometry g = ConvGeometry::of(kPass, c);
  if (g.empty()) return zero_output();
  return std::make_unique<ConvKernel<C>>(kPass, g, is_half(c.output_type(0)));
}

template <class C>
void register_types(KernelRegistry& r) {
  const TypeConstraint type = {"T", stored_types<C>()};
  for (const char* op : {"Conv2D", "Conv3D", "DepthwiseConv2dNative"})
    r.add(op, {type}, prepare<C, ConvPass::kForward>);
  for (const char* op :
       {"Conv2DBackpropInput", "Conv3DBackpropInput", "DepthwiseConv2dNativeBackpropInput"})
    r.add(op, {type}, prepare<C, ConvPass::kInput>);
  for (const char* op :
       {"Conv2DBackpropFilter", "Conv3DBackpropFilter", "DepthwiseConv2dNativeBackpropFilter"})
    r.add(op, {type}, prepare<C, ConvPass::kFilter>);
}

}  // namespace

void register_convolution_kernels(KernelRegistry& r) {
  register_types<float>(r);
  register_types<double>(r);
}

}  // namespace treenail::cpu
