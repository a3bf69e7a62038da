// SPDX-License-Identifier: Apache-2.0
// DecodeWav and EncodeWav of framework/ops/audio.cc; the format: framework/io/wav.h.
#include <algorithm>
#include <memory>

#include "framework/io/wav.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/string_element.h"

namespace treenail::host {
namespace {

void decode(RunContext& c, int64_t desired_channels, int64_t desired_samples) {
  // Held, for the sound lies in these bytes.
  const StringElement contents = *c.input(0).data<StringElement>();
  const WavSound sound = decode_wav(contents.view());
  const int64_t channels = desired_channels < 0 ? sound.channels : desired_channels;
  const int64_t samples = desired_samples < 0 ? sound.frames : desired_samples;
  Tensor audio(DType::kFloat32, Shape({samples, channels}));
  float* const out = audio.data<float>();
  const int64_t heard = channels == 0 ? 0 : std::min(samples, sound.frames);
  constexpr int64_t kGrain = 1 << 14;
  c.parallel_for(heard, kGrain, 2.0 * static_cast<double>(channels),
                 [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     for (int64_t k = 0; k < channels; ++k) {
                       const int64_t source = std::min(k, sound.channels - 1);
                       out[i * channels + k] = sound.at(i * sound.channels + source);
                     }
                   }
                 });
  std::fill(out + heard * channels, out + audio.num_elements(), 0.0F);
  c.set_output(0, std::move(audio));
  c.set_output(1, Tensor::scalar(static_cast<int32_t>(sound.sample_rate)));
}

std::unique_ptr<Kernel> prepare_decode(const PrepareContext& p) {
  const int64_t channels = p.op().get_int("desired_channels");
  const int64_t samples = p.op().get_int("desired_samples");
  constexpr double kCost = 5000;  // how much there is to decode only the bytes say
  return make_kernel([=](RunContext& c) { decode(c, channels, samples); }, kCost);
}

std::unique_ptr<Kernel> prepare_encode(const PrepareContext& p) {
  const double cost = 1000 + 5 * static_cast<double>(p.input_shape(0).num_elements());
  return make_kernel(
      [](RunContext& c) {
        const Tensor& audio = c.input(0);
        const int32_t rate = *c.input(1).data<int32_t>();
        *c.output(0).data<StringElement>() =
            StringElement(encode_wav(audio.data<float>(), audio.dim(0), audio.dim(1), rate));
      },
      cost);
}

}  // namespace

void register_audio_kernels(KernelRegistry& r) {
  r.add("DecodeWav", {}, prepare_decode);
  r.add("EncodeWav", {}, prepare_encode);
}

}  // namespace treenail::host
