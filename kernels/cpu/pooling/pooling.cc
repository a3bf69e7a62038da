// SPDX-License-Identifier: Apache-2.0
// Maximum and average pooling of images and volumes and their gradients as kernels: layouts and
// 16-bit dtypes around the passes of pool_passes.h.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/elementwise/half_tiles.h"
#include "kernels/cpu/image/layout.h"
#include "kernels/cpu/pooling/pool_passes.h"

namespace treenail::cpu {
namespace {

// The kernels: images of up to three inputs brought into computed form, one pass, the result
// brought back.
template <class C>
class Images {
 public:
  Images(const Pool& p, DType stored)
      : in_{p.batch, p.input_pixels(), p.channels, p.channels_second, is_half(stored)},
        out_{p.batch, p.output_pixels(), p.channels, p.channels_second, is_half(stored)} {}
  // Scratch for `inputs` images of the input's size and `outputs` of the output's, results
  // included.
  size_t bytes(int64_t inputs, int64_t outputs) const {
    return static_cast<size_t>(inputs * in_.scratch() + outputs * out_.scratch()) * sizeof(C);
  }

  // The steps of one run; scratch is handed out in their order.
  class Run {
   public:
    Run(const Images& images, RunContext& c)
        : i_(images), c_(c), free_(reinterpret_cast<C*>(c.scratch())) {}
    const C* read(int input, bool pooled) {
      const ImageLayout<C>& layout = pooled ? i_.out_ : i_.in_;
      return layout.read(c_, c_.input(input), take(layout));
    }
    C* result(bool pooled) {
      layout_ = pooled ? &i_.out_ : &i_.in_;
      scratch_ = take(*layout_);
      computed_ = layout_->target(c_.output(0), scratch_);
      return computed_;
    }
    void finish() { layout_->write(c_, computed_, c_.output(0), scratch_); }

   private:
    C* take(const ImageLayout<C>& layout) {
      C* const at = free_;
      free_ += layout.scratch();
      return at;
    }
    const Images& i_;
    RunContext& c_;
    C* free_;
    const ImageLayout<C>* layout_ = nullptr;
    C* scratch_ = nullptr;
    C* computed_ = nullptr;
  };

 private:
  ImageLayout<C> in_, out_;
};

template <class C, void (*kPass)(const RunContext&, const Pool&, const C*, C*)>
std::unique_ptr<Kernel> prepare_forward(const PrepareContext& c) {
  const Pool p(c.op(), c.input_shape(0));
  if (p.empty()) return make_kernel([](RunContext&) {});
  const Images<C> images(p, c.output_type(0));
  return make_kernel(
      [=](RunContext& c) {
        typename Images<C>::Run run(images, c);
        const auto* x = run.read(0, false);
        kPass(c, p, x, run.result(true));
        run.finish();
      },
      p.cost(), images.bytes(1, 1));
}

// From the numbers of taps to positions in the image, or in the batch.
template <class Index>
[[gnu::noinline]] void write_positions(const Pool& p, bool with_batch, const int32_t* taps,
                                       Index* to) {
  const int64_t pixels = p.output_pixels();
  for (int64_t i = 0; i < p.batch * pixels; ++i) {
    const int64_t y = i % pixels / p.columns.output, x = i % p.columns.output;
    const WindowRange rows(p.rows, y), columns(p.columns, x);
    const int64_t width = columns.end - columns.begin;
    const int64_t image = with_batch ? i / pixels * p.rows.input : 0;
    for (int64_t channel = 0; channel < p.channels; ++channel) {
      const int32_t tap = taps[i * p.channels + channel];
      const int64_t row = image + rows.begin + tap / width, column = columns.begin + tap % width;
      to[i * p.channels + channel] =
          static_cast<Index>((row * p.columns.input + column) * p.channels + channel);
    }
  }
}

template <class C>
std::unique_ptr<Kernel> prepare_argmax(const PrepareContext& c) {
  const Pool p(c.op(), c.input_shape(0));
  if (p.empty()) return make_kernel([](RunContext&) {});
  const bool with_batch = c.op().get_bool("include_batch_in_index");
  const bool wide = c.output_type(1) == DType::kInt64;
  host::check_positions(p, with_batch, c.output_type(1));
  const Images<C> images(p, c.output_type(0));
  const size_t bytes = images.bytes(1, 1);
  return make_kernel(
      [=](RunContext& c) {
        typename Images<C>::Run run(images, c);
        int32_t* const taps = reinterpret_cast<int32_t*>(c.scratch() + bytes);
        const auto* x = run.read(0, false);
        max_pool_taps(c, p, x, run.result(true), taps);
        run.finish();
        if (wide) {
          write_positions(p, with_batch, taps, c.output(1).data<int64_t>());
        } else {
          write_positions(p, with_batch, taps, c.output(1).data<int32_t>());
        }
      },
      3 * p.cost(),
      bytes + static_cast<size_t>(p.batch * p.output_pixels() * p.channels) * sizeof(int32_t));
}

// Zero has the same bytes in every dtype.
std::unique_ptr<Kernel> zeros() {
  return make_kernel([](RunContext& c) {
    std::fill_n(static_cast<std::byte*>(c.output(0).raw()), c.output(0).bytes(), std::byte{0});
  });
}

template <class C>
std::unique_ptr<Kernel> prepare_max_grad(const PrepareContext& c) {
  const Pool p(c.op(), c.input_shape(0));
  if (p.empty()) return zeros();
  const Images<C> images(p, c.output_type(0));
  return make_kernel(
      [=](RunContext& c) {
        typename Images<C>::Run run(images, c);
        const auto* x = run.read(0, false);
        const auto* y = run.read(1, true);
        const auto* dy = run.read(2, true);
        max_pool_gradient(c, p, x, y, dy, run.result(false));
        run.finish();
      },
      2 * p.cost(), images.bytes(2, 2));
}

template <class C>
std::unique_ptr<Kernel> prepare_max_grad_grad(const PrepareContext& c) {
  const Pool p(c.op(), c.input_shape(0));
  if (p.empty()) return make_kernel([](RunContext&) {});
  const Images<C> images(p, c.output_type(0));
  return make_kernel(
      [=](RunContext& c) {
        typename Images<C>::Run run(images, c);
        const auto* x = run.read(0, false);
        const auto* y = run.read(1, true);
        const auto* g = run.read(2, false);
        max_pool_second_gradient(c, p, x, y, g, run.result(true));
        run.finish();
      },
      2 * p.cost(), images.bytes(2, 2));
}

template <class C>
std::unique_ptr<Kernel> prepare_average_grad(const PrepareContext& c) {
  const Pool p(c.op(), c.output_shape(0));
  if (p.empty()) return zeros();
  const Images<C> images(p, c.output_type(0));
  return make_kernel(
      [=](RunContext& c) {
        typename Images<C>::Run run(images, c);
        const auto* dy = run.read(1, true);
        average_pool_gradient(c, p, dy, run.result(false));
        run.finish();
      },
      p.cost(), images.bytes(1, 1));
}

template <class C>
void register_types(KernelRegistry& r) {
  const TypeConstraint type = {"T", stored_types<C>()};
  for (const char* op : {"MaxPool", "MaxPool3D"})
    r.add(op, {type}, prepare_forward<C, max_pool<C>>);
  for (const char* op : {"AvgPool", "AvgPool3D"})
    r.add(op, {type}, prepare_forward<C, average_pool<C>>);
  for (const char* op : {"MaxPoolGrad", "MaxPool3DGrad"}) r.add(op, {type}, prepare_max_grad<C>);
  for (const char* op : {"MaxPoolGradGrad", "MaxPool3DGradGrad"})
    r.add(op, {type}, prepare_max_grad_grad<C>);
  for (const char* op : {"AvgPoolGrad", "AvgPool3DGrad"})
    r.add(op, {type}, prepare_average_grad<C>);
  r.add("MaxPoolWithArgmax", {type, {"Targmax", {DType::kInt32, DType::kInt64}}},
        prepare_argmax<C>);
}

}  // namespace

void register_pooling_kernels(KernelRegistry& r) {
  register_types<float>(r);
  register_types<double>(r);
}

}  // namespace treenail::cpu
