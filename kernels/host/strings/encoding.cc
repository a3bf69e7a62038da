// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/encoding.cc.
#include <array>
#include <cstring>
#include <memory>
#include <string>
#include <string_view>

#include "framework/base/byte_order.h"
#include "framework/base/error.h"
#include "framework/base/quoted.h"
#include "framework/io/tensor_proto.h"
#include "framework/runtime/kernel/kernel_poll.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor.h"
#include "framework/tensor/truth_values.h"
#include "kernels/host/strings/string_loops.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

// --- DecodeRaw --------------------------------------------------------------------------------

int64_t common_length(const Tensor& bytes) {
  const auto length = static_cast<int64_t>(string_at(bytes, 0).size());
  for (int64_t i = 1; i < bytes.num_elements(); ++i) {
    const auto other = static_cast<int64_t>(string_at(bytes, i).size());
    if (other != length) {
      throw invalid_argument(
          "DecodeRaw requires input strings to all be the same size, but element ", i, " has size ",
          other, " != ", length);
    }
  }
  return length;
}

void decode_raw(RunContext& c, DType dtype, bool reversed) {
  const Tensor& bytes = c.input(0);
  const auto size = static_cast<int64_t>(dtype_size(dtype));
  const int64_t length = bytes.num_elements() == 0 ? 0 : common_length(bytes);
  if (length % size != 0) {
    throw invalid_argument("Input to DecodeRaw has length ", length, " that is not a multiple of ",
                           size, ", the size of ", dtype);
  }
  Tensor output(dtype, bytes.shape().concatenated(Shape{length / size}));
  auto* to = static_cast<unsigned char*>(output.raw());
  const auto unit = static_cast<int64_t>(dtype_size(dtype)) / (is_complex(dtype) ? 2 : 1);
  for (int64_t i = 0; i < bytes.num_elements() && length > 0; ++i, to += length) {
    if (i % kStringGrain == 0) poll(c);
    std::memcpy(to, string_at(bytes, i).data(), static_cast<size_t>(length));
    if (reversed) reverse_units(to, static_cast<size_t>(length / unit), static_cast<size_t>(unit));
    if (dtype == DType::kBool) make_truth_values(to, static_cast<size_t>(length));
  }
  c.set_output(0, std::move(output));
}

KernelPtr prepare_decode_raw(const PrepareContext& p) {
  const bool reversed =
      p.op().get_bool("little_endian") != (std::endian::native == std::endian::little);
  return make_kernel(
      [dtype = p.output_type(0), reversed](RunContext& c) { decode_raw(c, dtype, reversed); },
      200.0 + 100.0 * static_cast<double>(p.input_shape(0).num_elements()));
}

// --- Base64 -----------------------------------------------------------------------------------

constexpr char kAlphabet[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";

constexpr std::array<int8_t, 256> make_digits() {
  std::array<int8_t, 256> digits{};
  for (int8_t& digit : digits) digit = -1;
  for (int i = 0; i < 64; ++i)
    digits[static_cast<unsigned char>(kAlphabet[i])] = static_cast<int8_t>(i);
  return digits;
}

std::string encode(std::string_view bytes, bool pad) {
  std::string out;
  out.reserve(bytes.size() / 3 * 4 + 4);
  for (size_t at = 0; at < bytes.size(); at += 3) {
    const std::string_view group = bytes.substr(at, 3);
    uint32_t bits = 0;
    for (size_t k = 0; k < 3; ++k)
      bits = bits << 8 | (k < group.size() ? static_cast<unsigned char>(group[k]) : 0u);
    for (size_t k = 0; k <= group.size(); ++k) out += kAlphabet[(bits >> (18 - 6 * k)) & 63];
    if (pad) out.append(3 - group.size(), '=');
  }
  return out;
}

std::string decode(std::string_view text, int64_t element) {
  static constexpr std::array<int8_t, 256> kDigits = make_digits();
  const std::string_view whole = text;
  for (int i = 0; i < 2 && whole.size() % 4 == 0 && !text.empty() && text.back() == '='; ++i)
    text.remove_suffix(1);
  const auto bad = [&](std::string_view why) {
    throw invalid_argument("Invalid base64 in element ", element, ", ", quoted(whole), ": ", why);
  };
  if (text.size() % 4 == 1) bad("its length cannot be");
  std::string out;
  out.reserve(text.size() / 4 * 3 + 2);
  uint32_t bits = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    const int digit = kDigits[static_cast<unsigned char>(text[i])];
    if (digit < 0) bad(concat("character ", i, " is not of the web-safe alphabet"));
    bits = bits << 6 | static_cast<uint32_t>(digit);
    // A byte is complete with the second, third and fourth digit of a group.
    if (i % 4 != 0) out += static_cast<char>(bits >> (6 - 2 * (i % 4)));
  }
  return out;
}

KernelPtr prepare_encode_base64(const PrepareContext& p) {
  return map_strings(p, 100, [pad = p.op().get_bool("pad")](std::string_view bytes, int64_t) {
    return encode(bytes, pad);
  });
}

KernelPtr prepare_decode_base64(const PrepareContext& p) { return map_strings(p, 100, decode); }

// --- Serialized tensors -----------------------------------------------------------------------

void parse_tensor(RunContext& c, DType dtype) {
  Tensor tensor = decode_tensor_proto(string_at(c.input(0), 0));
  if (tensor.dtype() != dtype) {
    throw invalid_argument("Type mismatch between parsed tensor (", tensor.dtype(),
                           ") and out_type (", dtype, ")");
  }
  c.set_output(0, std::move(tensor));
}

KernelPtr prepare_serialize_tensor(const PrepareContext& p) {
  return make_kernel(
      [](RunContext& c) {
        *c.output(0).data<StringElement>() = StringElement(encode_tensor_proto(c.input(0)));
      },
      500.0 + 2.0 * static_cast<double>(p.input_shape(0).num_elements()));
}

KernelPtr prepare_parse_tensor(const PrepareContext& p) {
  return make_kernel([dtype = p.output_type(0)](RunContext& c) { parse_tensor(c, dtype); }, 2000);
}

}  // namespace

void register_encoding_kernels(KernelRegistry& r) {
  r.add("DecodeRaw", {}, prepare_decode_raw);
  r.add("EncodeBase64", {}, prepare_encode_base64);
  r.add("DecodeBase64", {}, prepare_decode_base64);
  r.add("SerializeTensor", {}, prepare_serialize_tensor);
  r.add("ParseTensor", {}, prepare_parse_tensor);
}

}  // namespace treenail::host
