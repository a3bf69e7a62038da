// SPDX-License-Identifier: Apache-2.0
// Sound: WAV files, spectrograms, and mel-frequency cepstral coefficients as one op. How they are
// computed: kernels/host/io/audio.cc (files), kernels/cpu/fft/audio.cc.
#include <bit>

#include "framework/base/error.h"
#include "framework/op/op_registry.h"
#include "framework/op/shape_context.h"

namespace treenail {
namespace {

// An attribute that is an extent, or -1 for whatever the file has.
int64_t desired(const ShapeContext& c, const char* name) {
  const int64_t extent = c.op().get_int(name);
  if (extent < -1) throw invalid_argument(name, " must be -1 or more, got ", extent);
  return extent == -1 ? kUnknown : extent;
}

void decode_wav_shape(ShapeContext& c) {
  c.with_rank(0, 0);
  c.set_output(0, PartialShape({desired(c, "desired_samples"), desired(c, "desired_channels")}));
  c.set_output(1, PartialShape(Shape()));
}

void encode_wav_shape(ShapeContext& c) {
  c.with_rank(0, 2);
  c.with_rank(1, 0);
  c.set_output(0, PartialShape(Shape()));
}

void spectrogram_shape(ShapeContext& c) {
  const PartialShape input = c.with_rank(0, 2);
  const int64_t window = c.op().get_int("window_size"), stride = c.op().get_int("stride");
  constexpr int64_t kLongest = int64_t{1} << 30;
  if (window < 2 || window > kLongest) {
    throw invalid_argument("window_size must be in [2, 2^30], got ", window);
  }
  if (stride < 1) throw invalid_argument("stride must be positive, got ", stride);
  const int64_t length = static_cast<int64_t>(std::bit_ceil(static_cast<uint64_t>(window)));
  int64_t slices = kUnknown;
  if (input[0] != kUnknown) slices = input[0] < window ? 0 : 1 + (input[0] - window) / stride;
  c.set_output(0, PartialShape({input[1], slices, length / 2 + 1}));
}

void mfcc_shape(ShapeContext& c) {
  const PartialShape spectrogram = c.with_rank(0, 3);
  c.with_rank(1, 0);
  const int64_t channels = c.op().get_int("filterbank_channel_count");
  const int64_t coefficients = c.op().get_int("dct_coefficient_count");
  const double lower = c.op().get_float("lower_frequency_limit");
  const double upper = c.op().get_float("upper_frequency_limit");
  constexpr int64_t kMost = 1 << 12;
  if (channels < 1 || channels > kMost) {
    throw invalid_argument("filterbank_channel_count must be in [1, 4096], got ", channels);
  }
  if (coefficients < 1 || coefficients > channels) {
    throw invalid_argument("dct_coefficient_count must be in [1, filterbank_channel_count = ",
                           channels, "], got ", coefficients);
  }
  if (!(lower >= 0 && upper > lower && upper <= 1e12)) {
    throw invalid_argument("0 <= lower_frequency_limit < upper_frequency_limit is needed, got ",
                           lower, " and ", upper);
  }
  if (spectrogram[2] != kUnknown && spectrogram[2] < 2) {
    throw invalid_argument("spectrogram needs two frequencies or more, got ", spectrogram);
  }
  c.set_output(0, spectrogram.with_dim(2, coefficients));
}

}  // namespace

void register_audio_ops(OpRegistry& r) {
  r.op("DecodeWav", HostAccess::kNone)
      .input("contents: string")
      .output("audio: float")
      .output("sample_rate: int32")
      .attr("desired_channels: int = -1")
      .attr("desired_samples: int = -1")
      .data_dependent_shape()
      .shape(decode_wav_shape)
      .not_differentiable()
      .doc(
          "The sound in the bytes of a 16-bit PCM WAV file: [samples, channels], in [-1, 1), and "
          "the samples per second.\n\n"
          "desired_channels: so many of the file's channels, the last one repeated where it has "
          "fewer; desired_samples: the sound cropped, or silence at its end; -1: as in the "
          "file.\n\nErrors: InvalidArgument for bytes that are no WAV file, end early or hold "
          "another coding.");
  r.op("EncodeWav", HostAccess::kNone)
      .input("audio: float")
      .input("sample_rate: int32")
      .output("contents: string")
      .shape(encode_wav_shape)
      .not_differentiable()
      .doc(
          "Sound [samples, channels] as the bytes of a 16-bit PCM WAV file.\n\n"
          "1.0 is full scale; what is louder is clipped, NaN is silence. Errors: InvalidArgument "
          "for a rate, a number of channels or a length that the format does not hold.");
  r.op("AudioSpectrogram", HostAccess::kNone)
      .input("input: float")
      .output("spectrogram: float")
      .attr("window_size: int")
      .attr("stride: int")
      .attr("magnitude_squared: bool = false")
      .shape(spectrogram_shape)
      .not_differentiable()
      .doc(
          "How loud each frequency is over time: the magnitudes of Fourier transforms of "
          "windows.\n\n"
          "input: [samples, channels]. Windows of window_size samples, `stride` apart, are "
          "multiplied by a periodic Hann window and filled up with zeros to a power of two, n. "
          "The result is [channels, windows, n / 2 + 1]; magnitude_squared: the squares. "
          "tn.signal.stft is differentiable and has more choices.\n\nErrors: InvalidArgument for "
          "a window_size outside [2, 2^30] or a stride below 1.");
  r.op("Mfcc", HostAccess::kNone)
      .input("spectrogram: float")
      .input("sample_rate: int32")
      .output("output: float")
      .attr("upper_frequency_limit: float = 4000")
      .attr("lower_frequency_limit: float = 20")
      .attr("filterbank_channel_count: int = 40")
      .attr("dct_coefficient_count: int = 13")
      .host("sample_rate")
      .shape(mfcc_shape)
      .not_differentiable()
      .doc(
          "Mel-frequency cepstral coefficients of a spectrogram of squared magnitudes: [channels, "
          "windows, frequencies] to [channels, windows, dct_coefficient_count].\n\n"
          "Magnitudes (the roots) are summed under filterbank_channel_count triangles, evenly "
          "spaced on the mel scale 1127 ln(1 + f / 700) between the frequency limits, in Hz; of "
          "the logarithms (of 1e-12 where a sum is smaller) comes a cosine transform of type 2, "
          "scaled by sqrt(2 / filterbank_channel_count).\n\nErrors: InvalidArgument for limits, "
          "counts or a sample_rate (per second) out of range. Source: Davis and Mermelstein, "
          "Comparison of Parametric Representations for Monosyllabic Word Recognition, 1980.");
  r.finish("audio");
}

}  // namespace treenail
