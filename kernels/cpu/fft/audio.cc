// SPDX-License-Identifier: Apache-2.0
// AudioSpectrogram and Mfcc of framework/ops/audio.cc. Some windows at a time are cut out,
// transformed and turned into magnitudes, so that the working memory does not grow with the sound.
#include <algorithm>
#include <bit>
#include <cmath>
#include <memory>
#include <numbers>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/cpu/fft/fft_real.h"

namespace treenail::cpu {
namespace {

std::vector<float> periodic_hann(int64_t length) {
  std::vector<float> window(static_cast<size_t>(length));
  for (int64_t i = 0; i < length; ++i) {
    const double turn = static_cast<double>(i) / static_cast<double>(length);
    window[i] = static_cast<float>(0.5 - 0.5 * std::cos(2 * std::numbers::pi * turn));
  }
  return window;
}

class Spectrogram final : public Kernel {
 public:
  explicit Spectrogram(const PrepareContext& p)
      : channels_(p.output_shape(0).dim(0)),
        slices_(p.output_shape(0).dim(1)),
        bins_(p.output_shape(0).dim(2)),
        stride_(p.op().get_int("stride")),
        squared_(p.op().get_bool("magnitude_squared")),
        length_(2 * (bins_ - 1)),
        lines_(channels_ * slices_) {
    if (lines_ == 0) return;
    constexpr int64_t kNumbers = 1 << 19;  // in a block of windows
    block_ = std::clamp<int64_t>(kNumbers / length_, 1, std::min<int64_t>(lines_, 1024));
    window_ = periodic_hann(p.op().get_int("window_size"));
    whole_ = std::make_unique<const RealFft<float>>(block_, length_);
    const int64_t rest = lines_ % block_;
    if (rest != 0) rest_ = std::make_unique<const RealFft<float>>(rest, length_);
    scratch_bytes = bytes(block_ * length_) + bytes(2 * block_ * bins_) +
                    std::max(whole_->scratch_bytes(), rest_ ? rest_->scratch_bytes() : 0);
    cost_ns = static_cast<double>(lines_) *
              (whole_->cost_ns() / static_cast<double>(block_) + 3 * static_cast<double>(length_));
  }

  void run(RunContext& c) const override {
    float* const frames = reinterpret_cast<float*>(c.scratch());
    float* const spectra = reinterpret_cast<float*>(c.scratch() + bytes(block_ * length_));
    std::byte* const rest = c.scratch() + bytes(block_ * length_) + bytes(2 * block_ * bins_);
    const auto* const samples = c.input(0).data<float>();
    float* const out = c.output(0).data<float>();
    const int64_t grain = std::max<int64_t>(1, (1 << 14) / std::max<int64_t>(length_, 1));
    const double cost = static_cast<double>(length_);
    for (int64_t first = 0; first < lines_; first += block_) {
      const int64_t count = std::min(block_, lines_ - first);
      c.parallel_for(count, grain, cost, [&](int64_t begin, int64_t end) {
        for (int64_t i = begin; i < end; ++i) cut(samples, first + i, frames + i * length_);
      });
      (count == block_ ? whole_ : rest_)->forward(c, frames, spectra, rest);
      c.parallel_for(count, grain, cost, [&](int64_t begin, int64_t end) {
        magnitudes(spectra + 2 * begin * bins_, (end - begin) * bins_,
                   out + (first + begin) * bins_);
      });
    }
  }

 private:
  static size_t bytes(int64_t numbers) {
    return (static_cast<size_t>(numbers) * sizeof(float) + 63) / 64 * 64;
  }
  void cut(const float* samples, int64_t line, float* to) const {
    const auto size = static_cast<int64_t>(window_.size());
    const float* from = samples + line % slices_ * stride_ * channels_ + line / slices_;
    for (int64_t i = 0; i < size; ++i) to[i] = from[i * channels_] * window_[i];
    std::fill(to + size, to + length_, 0.0F);
  }
  void magnitudes(const float* spectrum, int64_t count, float* to) const {
    for (int64_t i = 0; i < count; ++i) {
      const float re = spectrum[2 * i], im = spectrum[2 * i + 1];
      to[i] = re * re + im * im;
    }
    if (squared_) return;
    for (int64_t i = 0; i < count; ++i) to[i] = std::sqrt(to[i]);
  }

  int64_t channels_, slices_, bins_, stride_;
  bool squared_;
  int64_t length_, lines_, block_ = 0;
  std::vector<float> window_;
  std::unique_ptr<const RealFft<float>> whole_, rest_;
};

// --- Mfcc -------------------------------------------------------------------------------------

double mel(double hertz) { return 1127.0 * std::log1p(hertz / 700.0); }

// Which two triangles a frequency falls under: the one that ends, `channel`, and the next, which
// begins; weight: its share of the former. Channel -1: only the first one begins.
struct Band {
  int64_t bin, channel;
  double weight;
};

class Cepstrum {
 public:
  explicit Cepstrum(const PrepareContext& p)
      : bins_(p.input_shape(0).dim(2)),
        channels_(p.op().get_int("filterbank_channel_count")),
        coefficients_(p.op().get_int("dct_coefficient_count")) {
    const int32_t rate = *p.host_value(1).data<int32_t>();
    if (rate < 1) throw invalid_argument("sample_rate must be positive, got ", rate);
    plan_bands(rate, p.op().get_float("lower_frequency_limit"),
               p.op().get_float("upper_frequency_limit"));
    // cos(pi k (j + 1/2) / n) is one of the cosines of a circle cut into 4 n.
    const double scale = std::sqrt(2.0 / static_cast<double>(channels_));
    for (int64_t i = 0; i < 4 * channels_; ++i) {
      cosines_.push_back(scale * std::cos(std::numbers::pi / 2 * static_cast<double>(i) /
                                          static_cast<double>(channels_)));
    }
  }

  int64_t bins() const { return bins_; }
  int64_t coefficients() const { return coefficients_; }
  double cost_ns() const {
    return 5 * static_cast<double>(bins_) + 20 * static_cast<double>(channels_) +
           static_cast<double>(channels_ * coefficients_);
  }

  void compute(const float* squares, std::vector<double>& sums, float* to) const {
    sums.assign(static_cast<size_t>(channels_), 0.0);
    for (const Band& band : bands_) {
      const double magnitude = std::sqrt(static_cast<double>(squares[band.bin]));
      const double share = magnitude * band.weight;
      if (band.channel >= 0) sums[band.channel] += share;
      if (band.channel + 1 < channels_) sums[band.channel + 1] += magnitude - share;
    }
    constexpr double kFloor = 1e-12;
    for (double& sum : sums) sum = std::log(sum < kFloor ? kFloor : sum);
    for (int64_t k = 0; k < coefficients_; ++k) {
      double total = 0;
      for (int64_t j = 0; j < channels_; ++j) {
        total += cosines_[k * (2 * j + 1) % (4 * channels_)] * sums[j];
      }
      to[k] = static_cast<float>(total);
    }
  }

 private:
  void plan_bands(int32_t rate, double lower, double upper) {
    const double low = mel(lower),
                 spacing = (mel(upper) - low) / static_cast<double>(channels_ + 1);
    const double per_bin = 0.5 * rate / static_cast<double>(bins_ - 1);
    // Frequency 0 and what is not above the lower limit by half a bin count for nothing.
    const double start = std::floor(1.5 + lower / per_bin);
    const double end = std::floor(upper / per_bin);
    int64_t next = 0;
    for (int64_t bin = 0; bin < bins_; ++bin) {
      if (static_cast<double>(bin) < start || static_cast<double>(bin) > end) continue;
      const double at = mel(static_cast<double>(bin) * per_bin);
      while (next < channels_ && low + spacing * static_cast<double>(next + 1) < at) ++next;
      const double centre = low + spacing * static_cast<double>(next + 1);
      bands_.push_back({bin, next - 1, (centre - at) / spacing});
    }
  }

  int64_t bins_, channels_, coefficients_;
  std::vector<Band> bands_;
  std::vector<double> cosines_;
};

std::unique_ptr<Kernel> prepare_spectrogram(const PrepareContext& p) {
  return std::make_unique<Spectrogram>(p);
}

std::unique_ptr<Kernel> prepare_mfcc(const PrepareContext& p) {
  const int64_t lines = p.input_shape(0).dim(0) * p.input_shape(0).dim(1);
  auto cepstrum = std::make_shared<const Cepstrum>(p);
  return make_kernel(
      [=](RunContext& c) {
        constexpr int64_t kGrain = 16;
        c.parallel_for(lines, kGrain, cepstrum->cost_ns(), [&](int64_t begin, int64_t end) {
          std::vector<double> sums;
          for (int64_t i = begin; i < end; ++i) {
            cepstrum->compute(c.input(0).data<float>() + i * cepstrum->bins(), sums,
                              c.output(0).data<float>() + i * cepstrum->coefficients());
          }
        });
      },
      1000 + cepstrum->cost_ns() * static_cast<double>(lines));
}

}  // namespace

void register_audio_kernels(KernelRegistry& r) {
  r.add("AudioSpectrogram", {}, prepare_spectrogram);
  r.add("Mfcc", {}, prepare_mfcc);
}

}  // namespace treenail::cpu
