// SPDX-License-Identifier: Apache-2.0
// Convolution by oneDNN, where the adapter is there and faster than our own algorithms at this
// level. The batch is cut into pieces of images by shape alone; each is one oneDNN primitive on one
// thread. Gradients of the filter are summed piece by piece, in order.
#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>

#include "framework/base/adapter.h"
#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "kernels/adapters/onednn/onednn_api.h"
#include "kernels/cpu/convolution/convolution.h"
#include "kernels/cpu/products/gemm.h"
#include "kernels/cpu/simd/registers.h"
#include "kernels/cpu/simd/workspaces.h"

namespace treenail::cpu {
namespace {

const OneDnnApi* open_onednn() {
  const AdapterRequest request = {"onednn", sizeof(OneDnnApi), "convolutions by oneDNN",
                                  "oneDNN (Debian: libdnnl2 or libdnnl3, Fedora: onednn)"};
  const auto* api = static_cast<const OneDnnApi*>(try_open_adapter(request));
  return api != nullptr && api->usable() != 0 ? api : nullptr;
}

const OneDnnApi* onednn() {
  struct Opened {
    const OneDnnApi* api;  // null: none
  };
  static std::atomic<const Opened*> opened{nullptr};
  return made_once(opened, [] { return new const Opened{open_onednn()}; }).api;
}

constexpr int64_t kMaxPieces = 16;

// One primitive, owned.
class Prepared {
 public:
  Prepared(const OneDnnApi& api, const OneDnnConvolution& convolution) : api_(api) {
    handle_ = api.create(&convolution, &sizes, why_, sizeof why_);
  }
  ~Prepared() {
    if (handle_ != nullptr) api_.destroy(handle_);
  }
  Prepared(const Prepared&) = delete;
  Prepared& operator=(const Prepared&) = delete;
  bool made() const { return handle_ != nullptr; }

  void pack(const float* filter, void* packed) const {
    call([&](char* why) { return api_.pack(handle_, filter, packed, why, kText); });
  }
  void unpack(const void* packed, float* filter) const {
    call([&](char* why) { return api_.unpack(handle_, packed, filter, why, kText); });
  }
  void run(const float* images, const float* results, const void* filter, void* workspace) const {
    call([&](char* why) {
      return api_.run(handle_, images, results, filter, workspace, why, kText);
    });
  }

  OneDnnSizes sizes = {};

 private:
  static constexpr uint64_t kText = 200;
  template <class F>
  void call(F f) const {
    char why[kText] = "";
    if (f(why) != 0) throw internal_error(why);
  }

  const OneDnnApi& api_;
  void* handle_ = nullptr;
  char why_[kText] = "";
};

int64_t aligned(int64_t bytes) { return (bytes + 63) / 64 * 64; }

class OneDnnPasses final : public ConvAlgorithm<float> {
 public:
  OneDnnPasses(const OneDnnApi& api, const ConvGeometry& g, ConvPass pass) : g_(g), pass_(pass) {
    constexpr double kPieceWork = 4 << 20;  // multiply-adds
    int64_t most = std::min(kMaxPieces, g.batch);
    if (pass == ConvPass::kFilter) {
      constexpr int64_t kPartialElements = 1 << 22;
      most = std::clamp<int64_t>(kPartialElements / g.filter_elements(), 1, most);
    }
    const int64_t wanted = static_cast<int64_t>(
        std::clamp(g.multiply_adds() / kPieceWork, 1.0, static_cast<double>(most)));
    piece_ = (g.batch + wanted - 1) / wanted;
    pieces_ = (g.batch + piece_ - 1) / piece_;
    whole_ = std::make_unique<Prepared>(api, describe(piece_));
    const int64_t rest = g.batch - (pieces_ - 1) * piece_;
    if (rest != piece_) rest_ = std::make_unique<Prepared>(api, describe(rest));
    if (!made()) return;
    // Primitives for another number of images may want another layout of the filter.
    filter_bytes_ = aligned(static_cast<int64_t>(whole_->sizes.filter));
    rest_filter_bytes_ = rest_ ? aligned(static_cast<int64_t>(rest_->sizes.filter)) : 0;
    workspace_bytes_ = aligned(static_cast<int64_t>(
        std::max(whole_->sizes.workspace, rest_ ? rest_->sizes.workspace : 0)));
    const int64_t filters =
        pass == ConvPass::kFilter ? pieces_ * per_partial() : filter_bytes_ + rest_filter_bytes_;
    scratch_bytes = static_cast<size_t>(filters + pieces_ * workspace_bytes_);
    cost_ns = g.multiply_adds() / 48.0;
  }

  bool made() const { return whole_->made() && (!rest_ || rest_->made()); }

  void run(const RunContext& c, const float* a, const float* b, float* out,
           std::byte* scratch) const override {
    if (pass_ == ConvPass::kFilter) {
      run_filter(c, a, b, out, scratch);
      return;
    }
    const bool forward = pass_ == ConvPass::kForward;
    const float* filter = forward ? b : a;
    whole_->pack(filter, scratch);
    if (rest_) rest_->pack(filter, scratch + filter_bytes_);
    const float* images = forward ? a : out;
    const float* results = forward ? out : b;
    std::byte* const spaces = scratch + filter_bytes_ + rest_filter_bytes_;
    Workspaces workspaces;
    c.run_chunks(pieces_, cost_ns, [&](int64_t piece) {
      const Workspaces::Use use(workspaces);
      const bool last = rest_ && piece + 1 == pieces_;
      (last ? *rest_ : *whole_)
          .run(images + piece * piece_ * g_.input_pixels() * g_.channels,
               results + piece * piece_ * g_.output_pixels() * g_.filters,
               scratch + (last ? filter_bytes_ : 0), spaces + use.index() * workspace_bytes_);
    });
  }

 private:
  // A partial gradient: in oneDNN's layout, then as it belongs.
  int64_t per_partial() const {
    return std::max(filter_bytes_, rest_filter_bytes_) +
           aligned(g_.filter_elements() * static_cast<int64_t>(sizeof(float)));
  }

  void run_filter(const RunContext& c, const float* a, const float* b, float* out,
                  std::byte* scratch) const {
    const int64_t plain = std::max(filter_bytes_, rest_filter_bytes_);
    std::byte* const spaces = scratch + pieces_ * per_partial();
    Workspaces workspaces;
    c.run_chunks(pieces_, cost_ns, [&](int64_t piece) {
      const Workspaces::Use use(workspaces);
      std::byte* const partial = scratch + piece * per_partial();
      const Prepared& prepared = rest_ && piece + 1 == pieces_ ? *rest_ : *whole_;
      prepared.run(a + piece * piece_ * g_.input_pixels() * g_.channels,
                   b + piece * piece_ * g_.output_pixels() * g_.filters, partial,
                   spaces + use.index() * workspace_bytes_);
      prepared.unpack(partial, pieces_ == 1 ? out : reinterpret_cast<float*>(partial + plain));
    });
    if (pieces_ == 1) return;
    constexpr int64_t kGrain = 4096;
    const double cost = 0.1 * static_cast<double>(pieces_);
    c.parallel_for(g_.filter_elements(), kGrain, cost, [&](int64_t begin, int64_t end) {
      for (int64_t piece = 0; piece < pieces_; ++piece) {
        const auto* from = reinterpret_cast<const float*>(scratch + piece * per_partial() + plain);
        for (int64_t i = begin; i < end; ++i) out[i] = piece == 0 ? from[i] : out[i] + from[i];
      }
    });
  }

  OneDnnConvolution describe(int64_t batch) const {
    const WindowAxis *rows = &g_.rows, *columns = &g_.columns;
    OneDnnConvolution c = {};
    c.pass = pass_ == ConvPass::kForward ? kOneDnnForward
             : pass_ == ConvPass::kInput ? kOneDnnInput
                                         : kOneDnnFilter;
    c.batch = batch;
    c.channels = g_.channels;
    c.filters = g_.filters;
    for (int i = 0; i < 2; ++i) {
      const WindowAxis& axis = i == 0 ? *rows : *columns;
      c.input[i] = axis.input;
      c.output[i] = axis.output;
      c.taps[i] = axis.taps;
      c.stride[i] = axis.stride;
      c.dilation[i] = axis.dilation;
      c.pad_before[i] = axis.pad_before;
      c.pad_after[i] = (axis.output - 1) * axis.stride + axis.extent() - axis.input -
                       axis.pad_before;  // negative: the last elements are left out
    }
    return c;
  }

  ConvGeometry g_;
  ConvPass pass_;
  int64_t piece_, pieces_;
  std::unique_ptr<Prepared> whole_, rest_;
  int64_t filter_bytes_ = 0, rest_filter_bytes_ = 0, workspace_bytes_ = 0;
};

// Whether oneDNN beats our algorithms. It uses the CPU's own instructions at every level, so at the
// lowest ones it mostly does; ours at a fused level tie with it or win, but for 1 x 1 filters,
// where there is no tap to save.
bool faster(ConvPass pass, const ConvGeometry& g) {
  if (g.batch == 1 || g.multiply_adds() < 1 << 20) return false;
  if (kFused) return g.taps() == 1 && g.plain_stride() && pass != ConvPass::kFilter;
  return pass != ConvPass::kInput || g.channels >= 8;
}

}  // namespace

ConvPtr<float> onednn_pass(ConvPass pass, const ConvGeometry& g) {
  if (g.depthwise || !faster(pass, g) || onednn() == nullptr) return nullptr;
  auto made = std::make_unique<OneDnnPasses>(*onednn(), g, pass);
  return made->made() ? ConvPtr<float>(std::move(made)) : nullptr;
}

}  // namespace treenail::cpu
