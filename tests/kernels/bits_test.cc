// SPDX-License-Identifier: Apache-2.0
// The law of bits for the heavy kernels: results depend on op, attributes, shapes and dtypes, never
// on the number of threads nor on where in memory an operand lies.
#include <gtest/gtest.h>

#include <cstring>
#include <random>
#include <string>
#include <vector>

#include "framework/base/thread_pool.h"
#include "framework/eager/execute.h"
#include "framework/tensor/tensor.h"

namespace treenail {
namespace {

struct Call {
  std::string name, op;
  std::vector<Tensor> inputs;
  NamedAttrs attrs;
};

Tensor random_tensor(const Shape& shape) {
  Tensor t(DType::kFloat32, shape);
  std::mt19937 engine(static_cast<unsigned>(shape.num_elements()));
  std::normal_distribution<float> number;
  for (int64_t i = 0; i < t.num_elements(); ++i) t.data<float>()[i] = number(engine);
  return t;
}

Tensor int32_vector(const Shape& shape) {
  Tensor t(DType::kInt32, Shape{shape.rank()});
  for (int i = 0; i < shape.rank(); ++i) {
    t.data<int32_t>()[i] = static_cast<int32_t>(shape.dim(i));
  }
  return t;
}

void add_convolutions(std::vector<Call>& calls, const std::string& name, const Shape& image,
                      const Shape& filter, int64_t stride) {
  const NamedAttrs attrs = {{"strides", std::vector<int64_t>{1, stride, stride, 1}},
                            {"padding", "SAME"}};
  const std::string op =
      filter.dim(3) == 1 && image.dim(3) > 1 ? "DepthwiseConv2dNative" : "Conv2D";
  const Tensor x = random_tensor(image), w = random_tensor(filter);
  const Tensor g = random_tensor(execute(op, std::vector<Tensor>{x, w}, attrs)[0].shape());
  calls.push_back({name, op, {x, w}, attrs});
  calls.push_back({name, op + "BackpropInput", {int32_vector(image), w, g}, attrs});
  calls.push_back({name, op + "BackpropFilter", {x, int32_vector(filter), g}, attrs});
}

// Fourier transforms each way they go: lines side by side, one by one, one on all threads, odd,
// with a large prime factor, over several axes.
void add_transforms(std::vector<Call>& calls) {
  for (const Shape& shape : {Shape{300, 100}, Shape{9, 2000}, Shape{1, 65536}, Shape{50, 101},
                             Shape{1, 33333}, Shape{1, 40009}}) {
    const Tensor x = random_tensor(shape);
    const Tensor length = Tensor::vector<int32_t>({static_cast<int32_t>(shape.dim(1))});
    const std::string name = to_text(shape);
    const Tensor half = execute("RFFT", std::vector<Tensor>{x, length})[0];
    calls.push_back({name, "RFFT", {x, length}, {}});
    calls.push_back({name, "IRFFT", {half, length}, {}});
    calls.push_back({name, "FFT", {half}, {}});
    calls.push_back({name, "IFFT2D", {half}, {}});
  }
  calls.push_back({"",
                   "AudioSpectrogram",
                   {random_tensor({30000, 2})},
                   {{"window_size", 400}, {"stride", 160}}});
}

// The loss of 40 sequences of three labels.
Call ctc_loss() {
  Tensor indices(DType::kInt64, Shape{120, 2}), labels(DType::kInt32, Shape{120});
  for (int64_t i = 0; i < 120; ++i) {
    indices.data<int64_t>()[2 * i] = i / 3;
    indices.data<int64_t>()[2 * i + 1] = i % 3;
    labels.data<int32_t>()[i] = static_cast<int32_t>(i % 5);
  }
  Tensor lengths(DType::kInt32, Shape{40});
  for (int32_t b = 0; b < 40; ++b) lengths.data<int32_t>()[b] = 20 + b;
  return {"", "CTCLoss", {random_tensor({60, 40, 6}), indices, labels, lengths}, {}};
}

std::vector<Call> all_calls() {
  std::vector<Call> calls;
  const NamedAttrs a = {{"transpose_a", true}}, b = {{"transpose_b", true}};
  calls.push_back({"tall", "MatMul", {random_tensor({900, 70}), random_tensor({70, 130})}, {}});
  calls.push_back({"wide", "MatMul", {random_tensor({64, 300}), random_tensor({300, 520})}, {}});
  calls.push_back({"left", "MatMul", {random_tensor({64, 500}), random_tensor({64, 333})}, a});
  calls.push_back({"right", "MatMul", {random_tensor({64, 500}), random_tensor({333, 500})}, b});
  calls.push_back({"row", "MatMul", {random_tensor({1, 700}), random_tensor({700, 999})}, {}});
  calls.push_back({"row", "MatMul", {random_tensor({1, 700}), random_tensor({999, 700})}, b});
  calls.push_back(
      {"many", "BatchMatMul", {random_tensor({300, 9, 17}), random_tensor({300, 17, 21})}, {}});
  calls.push_back(
      {"tiny", "BatchMatMul", {random_tensor({9999, 3, 5}), random_tensor({9999, 5, 4})}, {}});
  calls.push_back({"long", "MatMul", {random_tensor({2, 200001}), random_tensor({200001, 3})}, {}});
  calls.push_back({"long", "MatMul", {random_tensor({70001, 20}), random_tensor({70001, 30})}, a});
  add_convolutions(calls, "first", {20, 28, 28, 1}, {5, 5, 1, 32}, 1);
  add_convolutions(calls, "winograd 5", {20, 14, 14, 32}, {5, 5, 32, 64}, 1);
  add_convolutions(calls, "winograd 3", {9, 20, 20, 32}, {3, 3, 32, 32}, 1);
  add_convolutions(calls, "strided", {9, 20, 20, 24}, {3, 3, 24, 40}, 2);
  add_convolutions(calls, "narrow", {20, 14, 14, 6}, {5, 5, 6, 16}, 1);
  add_convolutions(calls, "pointwise", {9, 20, 20, 64}, {1, 1, 64, 64}, 1);
  add_convolutions(calls, "depthwise", {9, 20, 20, 24}, {3, 3, 24, 1}, 1);
  const Tensor image = random_tensor({20, 14, 14, 30}), channels = random_tensor({30});
  Tensor ones(DType::kFloat32, Shape{30});
  for (int i = 0; i < 30; ++i) ones.data<float>()[i] = 1;
  const NamedAttrs window = {{"ksize", std::vector<int64_t>{1, 3, 3, 1}},
                             {"strides", std::vector<int64_t>{1, 2, 2, 1}},
                             {"padding", "SAME"}};
  const Tensor pooled = execute("MaxPool", std::vector<Tensor>{image}, window)[0];
  calls.push_back({"", "MaxPool", {image}, window});
  calls.push_back({"", "AvgPool", {image}, window});
  calls.push_back({"", "MaxPoolGrad", {image, pooled, pooled}, window});
  calls.push_back({"", "AvgPoolGrad", {int32_vector(image.shape()), pooled}, window});
  calls.push_back({"", "BiasAdd", {image, channels}, {}});
  calls.push_back({"", "BiasAddGrad", {image}, {}});
  calls.push_back({"", "FusedBatchNorm", {image, channels, channels, channels, ones}, {}});
  calls.push_back({"", "FusedBatchNormGrad", {image, image, channels, channels, ones}, {}});
  calls.push_back({"", "LRN", {image}, {}});
  const Tensor logits = random_tensor({3000, 37});
  calls.push_back({"", "Softmax", {logits}, {}});
  calls.push_back({"", "LogSoftmax", {logits}, {}});
  calls.push_back({"", "SoftmaxCrossEntropyWithLogits", {logits, logits}, {}});
  add_transforms(calls);
  calls.push_back(ctc_loss());
  return calls;
}

bool same_bits(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (a[i].bytes() != b[i].bytes() || std::memcmp(a[i].raw(), b[i].raw(), a[i].bytes()) != 0) {
      return false;
    }
  }
  return a.size() == b.size();
}

// The same values one element behind an aligned address.
Tensor shifted(const Tensor& t) {
  const IntrusivePtr<Buffer> buffer = Buffer::allocate(t.dtype(), t.num_elements() + 1);
  const size_t element = dtype_size(t.dtype());
  Tensor copy(t.dtype(), t.shape(), buffer, element);
  std::memcpy(copy.raw(), t.raw(), t.bytes());
  return copy;
}

class PoolSize {
 public:
  ~PoolSize() { ThreadPool::instance().set_num_threads(before_); }

 private:
  int before_ = ThreadPool::instance().num_threads();
};

TEST(Bits, DoNotDependOnThreads) {
  const PoolSize restore;
  for (const Call& call : all_calls()) {
    ThreadPool::instance().set_num_threads(1);
    const std::vector<Tensor> one = execute(call.op, call.inputs, call.attrs);
    for (const int threads : {2, 3, 8}) {
      ThreadPool::instance().set_num_threads(threads);
      EXPECT_TRUE(same_bits(one, execute(call.op, call.inputs, call.attrs)))
          << call.op << " " << call.name << " with " << threads << " threads";
    }
  }
}

TEST(Bits, DoNotDependOnAlignment) {
  for (const Call& call : all_calls()) {
    std::vector<Tensor> elsewhere;
    for (const Tensor& input : call.inputs) elsewhere.push_back(shifted(input));
    EXPECT_TRUE(same_bits(execute(call.op, call.inputs, call.attrs),
                          execute(call.op, elsewhere, call.attrs)))
        << call.op << " " << call.name;
  }
}

}  // namespace
}  // namespace treenail
