// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/summary.cc. Field numbers: tensorflow/core/framework/summary.proto.
#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <string_view>
#include <type_traits>
#include <unordered_set>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/io/png_stored.h"
#include "framework/io/proto_wire.h"
#include "framework/io/tensor_proto.h"
#include "framework/io/wav.h"
#include "framework/runtime/kernel/kernel_poll.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor.h"
#include "kernels/host/arrays/elements.h"
#include "kernels/host/io/summary_histogram.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

constexpr int kSummaryValue = 1;
constexpr int kTag = 1, kSimpleValue = 2, kImage = 4, kHistogram = 5, kAudio = 6, kTensor = 8,
              kMetadata = 9;
constexpr int64_t kPollEvery = 1 << 20;
constexpr double kMediaCostNs = 1e5;

std::string_view text_of(const Tensor& tensor, int64_t i = 0) {
  return tensor.data<StringElement>()[i].view();
}

void give(RunContext& c, const ProtoWriter& summary) {
  *c.output(0).data<StringElement>() = StringElement(summary.text());
}

// One value of a summary: a tag, and what `content` adds.
void add_value(ProtoWriter* summary, std::string_view tag, const ProtoWriter& content) {
  ProtoWriter value;
  value.bytes(kTag, tag);
  value.raw_bytes(content.text());
  summary->message(kSummaryValue, value);
}

// --- Numbers ----------------------------------------------------------------------------------

template <class T>
void scalar_summary(RunContext& c) {
  const T* values = c.input(1).data<T>();
  ProtoWriter summary;
  for (int64_t i = 0; i < c.input(1).num_elements(); ++i) {
    if (i % kPollEvery == 0) poll(c);
    ProtoWriter content;
    content.real(kSimpleValue, static_cast<float>(comparable(values[i])));
    add_value(&summary, text_of(c.input(0), i), content);
  }
  give(c, summary);
}

template <class T>
void histogram_summary(RunContext& c) {
  const Tensor& values = c.input(1);
  const std::string_view tag = text_of(c.input(0));
  SummaryHistogram histogram;
  for (int64_t i = 0; i < values.num_elements(); ++i) {
    if (i % kPollEvery == 0) poll(c);
    const auto value = static_cast<double>(comparable(values.data<T>()[i]));
    if (!std::isfinite(value)) {
      throw invalid_argument(std::isnan(value) ? "Nan" : "Infinity",
                             " in summary histogram for: ", quoted(tag));
    }
    histogram.add(value);
  }
  ProtoWriter content;
  content.bytes(kHistogram, histogram.encode());
  ProtoWriter summary;
  add_value(&summary, tag, content);
  give(c, summary);
}

template <class F>
KernelPtr for_numbers(const PrepareContext& p, double each, F&& make) {
  const double cost = 300 + each * static_cast<double>(p.input_shape(1).num_elements());
  return dispatch<float, double, Float16, BFloat16, int8_t, uint8_t, int16_t, uint16_t, int32_t,
                  uint32_t, int64_t, uint64_t>(
      p.input_type(1), [&]<class T>() { return make.template operator()<T>(cost); });
}

KernelPtr prepare_scalar_summary(const PrepareContext& p) {
  return for_numbers(p, 100, []<class T>(double cost) -> KernelPtr {
    return make_kernel(scalar_summary<T>, cost);
  });
}

KernelPtr prepare_histogram_summary(const PrepareContext& p) {
  return for_numbers(p, 4, []<class T>(double cost) -> KernelPtr {
    return make_kernel(histogram_summary<T>, cost);
  });
}

// --- Tensors and merging ----------------------------------------------------------------------

void tensor_summary(RunContext& c) {
  const std::string_view metadata = text_of(c.input(2));
  ProtoReader reader(metadata);
  ProtoField field;
  while (reader.next(&field)) {  // a broken one would spoil the file
  }
  ProtoWriter content;
  content.bytes(kTensor, encode_tensor_proto(c.input(1)));
  content.bytes(kMetadata, metadata);
  ProtoWriter summary;
  add_value(&summary, text_of(c.input(0)), content);
  give(c, summary);
}

KernelPtr prepare_tensor_summary(const PrepareContext& p) {
  return make_kernel(tensor_summary, 500 + static_cast<double>(p.input_shape(1).num_elements()));
}

void merge_one(std::string_view input, std::unordered_set<std::string_view>* tags) {
  ProtoReader reader(input);
  ProtoField field;
  while (reader.next(&field)) {
    if (field.number != kSummaryValue || field.type != WireType::kBytes) continue;
    ProtoReader value(field.bytes);
    ProtoField part;
    std::string_view tag;
    while (value.next(&part)) {
      if (part.number == kTag) tag = part.bytes;
    }
    if (!tag.empty() && !tags->insert(tag).second)
      throw invalid_argument("Duplicate tag ", quoted(tag), " found in summary inputs");
  }
}

// A message with the fields of two is their bytes one after the other.
void merge_summary(RunContext& c, int inputs) {
  ProtoWriter summary;
  std::unordered_set<std::string_view> tags;
  for (int input = 0; input < inputs; ++input) {
    for (int64_t i = 0; i < c.input(input).num_elements(); ++i) {
      const std::string_view text = text_of(c.input(input), i);
      try {
        merge_one(text, &tags);
      } catch (const Error& error) {
        throw error.with_prefix(concat("Could not merge the summary inputs[", input, "]: "));
      }
      summary.raw_bytes(text);
    }
  }
  give(c, summary);
}

KernelPtr prepare_merge_summary(const PrepareContext& p) {
  return make_kernel([inputs = p.num_inputs()](RunContext& c) { merge_summary(c, inputs); },
                     1000.0 * p.num_inputs());
}

// --- Images -----------------------------------------------------------------------------------

// "tag/image", or "tag/image/2" where there may be more than one.
std::string media_tag(std::string_view tag, const char* kind, int64_t most, int64_t i) {
  return most == 1 ? concat(tag, "/", kind) : concat(tag, "/", kind, "/", i);
}

template <class T>
bool finite_pixel(const T* pixel, int64_t channels) {
  return std::all_of(pixel, pixel + channels, [](T x) { return std::isfinite(comparable(x)); });
}

// Halves are computed in float.
template <class T>
std::vector<uint8_t> scaled_image(const T* image, int64_t pixels, int64_t channels,
                                  const std::vector<int64_t>& bad_color) {
  using Real = std::conditional_t<std::is_same_v<T, double>, double, float>;
  constexpr Real kZero = Real(1e-6);
  Real low = 0, high = 0;
  bool any = false;
  for (int64_t i = 0; i < pixels; ++i) {
    const T* pixel = image + i * channels;
    if (!finite_pixel(pixel, channels)) continue;
    for (int64_t j = 0; j < channels; ++j) {
      const auto x = static_cast<Real>(comparable(pixel[j]));
      low = any ? std::min(low, x) : x;
      high = any ? std::max(high, x) : x;
      any = true;
    }
  }
  const bool has_negative = low < 0;
  const Real most = has_negative ? std::max(std::abs(low), std::abs(high)) : high;
  const Real scale = most < kZero ? Real(0) : Real(has_negative ? 127 : 255) / most;
  const Real offset = Real(has_negative ? 128 : 0);
  std::vector<uint8_t> bytes(static_cast<size_t>(pixels * channels));
  for (int64_t i = 0; i < pixels; ++i) {
    const T* pixel = image + i * channels;
    const bool good = finite_pixel(pixel, channels);
    for (int64_t j = 0; j < channels; ++j) {
      // Rounding may carry the largest a little beyond.
      const Real x = good ? static_cast<Real>(comparable(pixel[j])) * scale + offset : Real(0);
      bytes[static_cast<size_t>(i * channels + j)] =
          good ? static_cast<uint8_t>(std::clamp(x, Real(0), Real(255)))
               : static_cast<uint8_t>(bad_color[static_cast<size_t>(j)]);
    }
  }
  return bytes;
}

template <class T>
std::string png_of(const T* image, int64_t height, int64_t width, int64_t channels,
                   const std::vector<int64_t>& bad_color) {
  if constexpr (std::is_same_v<T, uint8_t>) {
    return encode_png_stored(image, height, width, channels);
  } else {
    const std::vector<uint8_t> bytes = scaled_image(image, height * width, channels, bad_color);
    return encode_png_stored(bytes.data(), height, width, channels);
  }
}

template <class T>
void image_summary(RunContext& c, int64_t max_images, const std::vector<int64_t>& bad_color) {
  const Tensor& images = c.input(1);
  const int64_t height = images.dim(1), width = images.dim(2), channels = images.dim(3);
  const int64_t count = std::min(max_images, images.dim(0));
  if (count > 0 && (height < 1 || width < 1))
    throw invalid_argument("images of shape ", images.shape(), " have no pixels");
  ProtoWriter summary;
  for (int64_t i = 0; i < count; ++i) {
    poll(c);
    const T* image = images.data<T>() + i * height * width * channels;
    ProtoWriter png;
    png.signed_number(1, height);
    png.signed_number(2, width);
    png.signed_number(3, channels);
    png.bytes(4, png_of(image, height, width, channels, bad_color));
    ProtoWriter content;
    content.message(kImage, png);
    add_value(&summary, media_tag(text_of(c.input(0)), "image", max_images, i), content);
  }
  give(c, summary);
}

KernelPtr prepare_image_summary(const PrepareContext& p) {
  return dispatch<uint8_t, float, Float16, double>(p.input_type(1), [&]<class T>() -> KernelPtr {
    return make_kernel(
        [most = p.op().get_int("max_images"), bad_color = p.op().get_ints("bad_color")](
            RunContext& c) { image_summary<T>(c, most, bad_color); },
        kMediaCostNs);
  });
}

// --- Sounds -----------------------------------------------------------------------------------

void audio_summary(RunContext& c, int64_t max_outputs) {
  const Tensor& sounds = c.input(1);
  const float rate = *c.input(2).data<float>();
  if (!(rate >= 1.0f && rate < 4294967296.0f))
    throw invalid_argument("sample_rate must be a positive number of Hz, got ", rate);
  const int64_t frames = sounds.dim(1), channels = sounds.rank() == 3 ? sounds.dim(2) : 1;
  const int64_t count = std::min(max_outputs, sounds.dim(0));
  ProtoWriter summary;
  for (int64_t i = 0; i < count; ++i) {
    poll(c);
    ProtoWriter wav;
    wav.real(1, rate);
    wav.signed_number(2, channels);
    wav.signed_number(3, frames);
    wav.bytes(4, encode_wav(sounds.data<float>() + i * frames * channels, frames, channels,
                            static_cast<int64_t>(rate)));
    wav.bytes(5, "audio/wav");
    ProtoWriter content;
    content.message(kAudio, wav);
    add_value(&summary, media_tag(text_of(c.input(0)), "audio", max_outputs, i), content);
  }
  give(c, summary);
}

KernelPtr prepare_audio_summary(const PrepareContext& p) {
  return make_kernel(
      [most = p.op().get_int("max_outputs")](RunContext& c) { audio_summary(c, most); },
      kMediaCostNs);
}

}  // namespace

void register_summary_kernels(KernelRegistry& r) {
  r.add("ScalarSummary", {}, prepare_scalar_summary);
  r.add("HistogramSummary", {}, prepare_histogram_summary);
  r.add("TensorSummary", {}, prepare_tensor_summary);
  r.add("MergeSummary", {}, prepare_merge_summary);
  r.add("ImageSummary", {}, prepare_image_summary);
  r.add("AudioSummary", {}, prepare_audio_summary);
}

}  // namespace treenail::host
