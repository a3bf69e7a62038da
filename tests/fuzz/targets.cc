// SPDX-License-Identifier: Apache-2.0
#include "tests/fuzz/targets.h"

#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <memory>
#include <utility>

#include "framework/base/crc32c.h"
#include "framework/base/error.h"
#include "framework/device/device_name.h"
#include "framework/graph/function.h"
#include "framework/graph/import.h"
#include "framework/graph/serialize.h"
#include "framework/io/checkpoint.h"
#include "framework/io/tensor_proto.h"
#include "framework/io/wav.h"
#include "framework/tensor/string_element.h"
#include "framework/tensor/tensor_slice.h"
#include "tests/fuzz/image_targets.h"
#include "tests/support/graph_builder.h"
#include "tests/support/graph_file.h"

namespace treenail::test {

void fuzz_require(bool holds, const char* what) {
  if (!holds) throw FuzzContradiction{what};
}

namespace {

// --- Graph files ---------------------------------------------------------------------------------

// What was read can be written, and what that gives is read as the same.
void run_graph_file(std::string_view input) {
  const std::unique_ptr<Graph> graph = graph_from_bytes(input);
  const std::string bytes = graph_to_bytes(*graph);
  fuzz_require(graph_to_bytes(*graph_from_bytes(bytes)) == bytes,
               "a graph that was read is written otherwise the second time");
  topological_order(*graph);
}

std::string small_graph() {
  GraphBuilder b;
  const Output c = b.constant(Tensor::vector<float>({1, 2, 3}), "c");
  b.op("Neg", {c}, {}, "n");
  return graph_to_bytes(*b.graph);
}

// Ops whose shape rules reckon with attributes and constants.
std::string graph_of_windows() {
  GraphBuilder b;
  const Output x = b.placeholder(DType::kFloat32, {kUnknown, 8, 8, 3}, "x");
  const Output w = b.constant(Tensor::zeros(DType::kFloat32, Shape({3, 3, 3, 2})), "w");
  using Sizes = std::vector<int64_t>;
  const Output y = b.op("Conv2D", {x, w},
                        {{"strides", Sizes{1, 2, 2, 1}}, {"padding", std::string("SAME")}}, "conv");
  const Output p = b.op("MaxPool", {y},
                        {{"ksize", Sizes{1, 2, 2, 1}},
                         {"strides", Sizes{1, 1, 1, 1}},
                         {"padding", std::string("VALID")}},
                        "pool");
  const Output end = b.constant(Tensor::vector<int32_t>({0, -1, 3, 2}), "end");
  const Output begin = b.constant(Tensor::vector<int32_t>({0, 0, 0, 0}), "begin");
  const Output step = b.constant(Tensor::vector<int32_t>({1, 1, 2, 1}), "step");
  b.op("StridedSlice", {p, begin, end, step}, {{"begin_mask", int64_t{1}}}, "part");
  b.op("Split", {b.constant(Tensor::scalar<int32_t>(3)), y}, {{"num_split", int64_t{2}}}, "split");
  b.op("Reshape", {p, b.constant(Tensor::vector<int32_t>({-1, 3}), "shape")}, {}, "flat");
  b.op("Fill", {b.constant(Tensor::vector<int64_t>({4, 5})), b.constant(Tensor::scalar(1.0f))});
  return graph_to_bytes(*b.graph);
}

std::string graph_with_function() {
  GraphBuilder b;
  const Output v = b.variable(DType::kFloat32, {2, kUnknown}, "v");
  b.read(v, DType::kFloat32, "value");
  const Output s = b.constant(Tensor::vector({StringElement("abc"), StringElement("")}), "s");
  b.op("IdentityN", {s, v}, {}, "all");
  auto f = std::make_shared<Function>();
  f->name = "f";
  f->inputs = f->outputs = {{"x", DType::kFloat32, PartialShape({kUnknown})}};
  f->body = std::make_unique<Graph>();
  f->body->add({.op = "Placeholder",
                .name = "x",
                .inputs = {},
                .attrs = NamedAttrs{{"dtype", DType::kFloat32}, {"shape", PartialShape({2})}}});
  f->input_nodes = {"x"};
  f->output_values = {"x:0"};
  b.graph->functions()["f"] = f;
  return graph_to_bytes(*b.graph);
}

std::vector<std::string> graph_files() {
  return {small_graph(), graph_of_windows(), graph_with_function()};
}

// Every section's checksum, as far as their lengths make sense.
std::string repaired_graph(std::string input) {
  for (size_t at = kFileHead; at + 12 <= input.size();) {
    const uint64_t size = read_little(input, at + 4, 8);
    if (size > input.size() - at - 12 || input.size() - at - 12 - size < 4) break;
    const uint32_t crc = crc32c(&input[at], 12 + size);
    input.replace(at + 12 + size, 4, little(crc, 4));
    at += 12 + size + 4;
  }
  return input;
}

// --- Checkpoints ---------------------------------------------------------------------------------

// The input as a file in memory.
class MemoryFile {
 public:
  explicit MemoryFile(std::string_view bytes) : file_(::memfd_create("input", 0)) {
    fuzz_require(::write(file_, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()),
                 "no file in memory");
  }
  ~MemoryFile() { ::close(file_); }
  MemoryFile(const MemoryFile&) = delete;
  MemoryFile& operator=(const MemoryFile&) = delete;
  std::string path() const { return "/proc/self/fd/" + std::to_string(file_); }

 private:
  int file_;
};

void run_checkpoint(std::string_view input) {
  const MemoryFile file(input);
  const CheckpointReader reader(file.path());
  for (const CheckpointReader::Entry& entry : reader.entries()) {
    const Tensor tensor = reader.read(entry.name);
    fuzz_require(tensor.shape() == entry.shape, "a tensor of another shape than announced");
  }
}

std::vector<std::string> checkpoints() {
  const std::string path = "/tmp/treenail-fuzz-" + std::to_string(::getpid()) + ".ckpt";
  try {
    write_checkpoint(path, std::vector<std::pair<std::string, Tensor>>{
                               {"w", Tensor::vector<float>({1, 2, 3})},
                               {"w/slot", Tensor::scalar<int64_t>(5)},
                               {"s", Tensor::vector({StringElement("abc")})}});
  } catch (const Error& error) {
    if (error.code() != Code::kUnimplemented) throw;
    return {};  // without HDF5 nothing is read either
  }
  std::string bytes(size_t{1} << 16, '\0');
  std::FILE* stream = std::fopen(path.c_str(), "rb");
  bytes.resize(std::fread(bytes.data(), 1, bytes.size(), stream));
  std::fclose(stream);
  ::unlink(path.c_str());
  return {bytes};
}

// The checksum of the leading block only: that of the contents keeps changed ones from libhdf5.
std::string repaired_frame(std::string input) {
  if (input.size() >= 512) input.replace(508, 4, little(crc32c(input.data(), 508), 4));
  return input;
}

// --- Messages and texts --------------------------------------------------------------------------

bool same(const Tensor& a, const Tensor& b) {
  if (a.dtype() != b.dtype() || !(a.shape() == b.shape())) return false;
  if (a.dtype() == DType::kString) {
    const auto* x = a.data<StringElement>();
    const auto* y = b.data<StringElement>();
    return std::equal(x, x + a.num_elements(), y,
                      [](const auto& l, const auto& r) { return l.view() == r.view(); });
  }
  return a.bytes() == 0 || std::memcmp(a.raw(), b.raw(), a.bytes()) == 0;
}

void run_tensor_proto(std::string_view input) {
  const Tensor tensor = decode_tensor_proto(input);
  if (tensor.bytes() > size_t{1} << 24) return;
  fuzz_require(same(tensor, decode_tensor_proto(encode_tensor_proto(tensor))),
               "a tensor that was read is read otherwise the second time");
}

std::vector<std::string> tensor_protos() {
  const auto bits = [](std::initializer_list<unsigned char> bytes) {
    return std::string(bytes.begin(), bytes.end());
  };
  return {
      encode_tensor_proto(Tensor::vector<float>({1, 2, 3})),
      encode_tensor_proto(Tensor::vector({StringElement("abc"), StringElement("")})),
      encode_tensor_proto(Tensor::scalar<int64_t>(-1)),
      encode_tensor_proto(Tensor::zeros(DType::kBool, Shape({2, 0, 3}))),
      // dtype int32, shape [2, 3], int_val 7 (continued) and, packed, 1 2 3 4 5 6
      bits({8, 3, 18, 8, 18, 2, 8, 2, 18, 2, 8, 3, 56, 7}),
      bits({8, 3, 18, 8, 18, 2, 8, 2, 18, 2, 8, 3, 58, 6, 1, 2, 3, 4, 5, 6}),
      // dtype half, half_val; double_val; bool_val; scomplex_val
      bits({8, 19, 18, 4, 18, 2, 8, 4, 106, 3, 128, 120, 1}),
      bits({8, 2, 18, 4, 18, 2, 8, 1, 49, 0, 0, 0, 0, 0, 0, 240, 63}),
      bits({8, 10, 18, 4, 18, 2, 8, 5, 90, 2, 1, 0}),
      bits({8, 8, 18, 4, 18, 2, 8, 1, 74, 8, 0, 0, 128, 63, 0, 0, 0, 64}),
  };
}

void run_wav(std::string_view input) {
  const WavSound sound = decode_wav(input);
  fuzz_require(sound.channels > 0 && sound.frames >= 0 &&
                   static_cast<size_t>(sound.frames) <= input.size() / 2 && sound.channels <= 65535,
               "more samples than bytes");
  float loudest = 0;
  for (int64_t i = 0; i < sound.frames * sound.channels; ++i)
    loudest = std::max(loudest, std::abs(sound.at(i)));
  fuzz_require(loudest <= 1, "a sample beyond full scale");
}

std::vector<std::string> wavs() {
  const std::vector<float> samples = {0, 0.5f, -0.5f, 1, -1, 0.25f};
  std::string mono = encode_wav(samples.data(), 6, 1, 8000);
  // An unknown chunk before the sound.
  std::string with_list = mono;
  with_list.insert(12, std::string("LIST\x04\0\0\0abcd", 12));
  return {std::move(mono), encode_wav(samples.data(), 3, 2, 44100), std::move(with_list)};
}

void run_slice(std::string_view input) {
  const TensorSlice slice = TensorSlice::parse(input);
  const TensorSlice again = TensorSlice::parse(slice.text());
  fuzz_require(
      again.text() == slice.text() && again.full == slice.full && again.extent == slice.extent,
      "a slice that was read is read otherwise the second time");
}

std::vector<std::string> slices() { return {"3 4 0,2:1,3", "5 -", "2 2 2 -:0,1:-"}; }

void run_device_name(std::string_view input) {
  const DeviceName name = parse_device_name(input);
  fuzz_require(parse_device_name(to_text(name)) == name,
               "a name that was read is read otherwise the second time");
}

std::vector<std::string> device_names() {
  return {"/job:worker/task:2/device:GPU:1", "/cpu:0", "/device:CPU:*"};
}

constexpr FuzzTarget kTargets[] = {
    {"graph-file", run_graph_file, graph_files, repaired_graph},
    {"checkpoint", run_checkpoint, checkpoints, repaired_frame},
    {"tensor-proto", run_tensor_proto, tensor_protos},
    {"wav", run_wav, wavs},
    {"png", run_png, pngs, repaired_png},
    {"jpeg", run_jpeg, jpegs},
    {"bmp", run_bmp, bmps},
    {"slice", run_slice, slices},
    {"device-name", run_device_name, device_names},
};

}  // namespace

std::span<const FuzzTarget> fuzz_targets() { return kTargets; }

}  // namespace treenail::test
