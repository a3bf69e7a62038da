// SPDX-License-Identifier: Apache-2.0
// Plugins by the C++ layer (treenail/op.hpp): what tests/capi/plugin/layer*.cc declare works, and
// whatever goes wrong in user code is an error of the op.
#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "tests/capi/support.h"
#include "tests/support/plugin_path.h"

namespace capi_test {
namespace {

using treenail::test::plugin_path;

class Layer : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    Status status;
    tn_load_plugin(plugin_path("layer").c_str(), status);
    ASSERT_EQ(status.said(), "Ok");
  }
};

std::vector<Tensor> execute(const char* name, const std::vector<const tn_tensor*>& inputs,
                            Status& status, const tn_attrs* attrs = nullptr) {
  tn_tensor* out[8] = {};
  const size_t count =
      tn_execute(name, inputs.data(), inputs.size(), attrs, nullptr, 0, out, 8, status);
  std::vector<Tensor> tensors;
  for (size_t i = 0; i < count; ++i) tensors.emplace_back(out[i]);
  return tensors;
}

void set_text(const Attrs& attrs, const char* name, const std::string& text) {
  tn_attrs_set_string(attrs.get(), name, text.data(), text.size());
}

Attrs weights(std::vector<double> numbers) {
  Attrs attrs(tn_attrs_new());
  tn_attrs_set_floats(attrs.get(), "weights", numbers.data(), numbers.size());
  return attrs;
}

TEST_F(Layer, ListsOfInputsAndOutputs) {
  Status status;
  const Tensor a = floats({1, 2}), b = floats({10, 20});
  const auto out = execute("LayerWeightedSum", {a.get(), b.get()}, status, weights({2, 0.5}).get());
  ASSERT_EQ(status.said(), "Ok");
  ASSERT_EQ(out.size(), 3U);
  EXPECT_EQ(values<float>(out[0].get()), (std::vector<float>{7, 14}));
  EXPECT_EQ(values<float>(out[1].get()), (std::vector<float>{2, 4}));
  EXPECT_EQ(values<float>(out[2].get()), (std::vector<float>{5, 10}));
}

TEST_F(Layer, AKernelForEachType) {
  Status status;
  const Tensor a = doubles({0.1});
  const auto out = execute("LayerWeightedSum", {a.get()}, status, weights({3}).get());
  ASSERT_EQ(status.said(), "Ok");
  EXPECT_EQ(values<double>(out[0].get()), std::vector<double>{3 * 0.1});
  const Tensor i = tensor<int32_t>(TN_INT32, {1}, {1});
  EXPECT_TRUE(execute("LayerWeightedSum", {i.get()}, status, weights({3}).get()).empty());
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
}

TEST_F(Layer, TheGradientOfLists) {
  const Graph g = graph();
  const tn_output *a = placeholder(g, TN_FLOAT64, {2}, "a"),
                  *b = placeholder(g, TN_FLOAT64, {2}, "b");
  Status status;
  tn_builder* builder = tn_builder_new(g.get(), "LayerWeightedSum", nullptr, status);
  const tn_output* list[] = {a, b};
  tn_builder_add_input_list(builder, list, 2);
  tn_builder_set_attrs(builder, weights({2, -3}).get());
  const tn_operation* op = tn_builder_finish(builder, status);
  ASSERT_EQ(status.said(), "Ok");
  const tn_output* ys[] = {tn_operation_output(op, 0), tn_operation_output(op, 2)};
  const tn_output* slopes[2] = {};
  tn_graph_add_gradients(g.get(), ys, 2, list, 2, nullptr, slopes, status);
  ASSERT_EQ(status.said(), "Ok");
  const Session session(tn_session_new(g.get(), nullptr, status));
  const Tensor one = doubles({1, 1});
  const tn_tensor* fed[] = {one.get(), one.get()};
  tn_tensor* got[2] = {};
  tn_session_run(session.get(), nullptr, list, fed, 2, slopes, got, 2, nullptr, 0, nullptr, status);
  ASSERT_EQ(status.said(), "Ok");
  const Tensor da(got[0]), db(got[1]);
  EXPECT_EQ(values<double>(da.get()), (std::vector<double>{2, 2}));
  EXPECT_EQ(values<double>(db.get()), (std::vector<double>{-6, -6}));
}

TEST_F(Layer, AttributesOfEveryKind) {
  Status status;
  const Attrs attrs(tn_attrs_new());
  const int64_t size[] = {2, -1};
  tn_attrs_set_shape(attrs.get(), "size", size, 2);
  const tn_dtype kinds[] = {TN_FLOAT32, TN_BOOL};
  tn_attrs_set_types(attrs.get(), "kinds", kinds, 2);
  const char* names[] = {"one", "two"};
  const size_t lengths[] = {3, 3};
  tn_attrs_set_strings(attrs.get(), "names", names, lengths, 2);
  const int32_t flags[] = {1, 0};
  tn_attrs_set_bools(attrs.get(), "flags", flags, 2);
  const Tensor value = floats({1, 2, 3});
  tn_attrs_set_tensor(attrs.get(), "value", value.get());
  const Tensor before(tn_tensor_new(TN_STRING, nullptr, 0, status));
  tn_tensor_set_string(before.get(), 0, "> ", 2, status);
  const auto told = [&] {
    const auto out = execute("LayerDescribe", {before.get()}, status, attrs.get());
    if (out.empty()) return status.said();
    size_t length = 0;
    const char* bytes = tn_tensor_string(out[0].get(), 0, &length, status);
    return std::string(bytes, length);
  };
  EXPECT_EQ(told(), "> none 1 7 [2,?] float32 bool one two yes no float32[3] 0");
  tn_attrs_set_int(attrs.get(), "small", 40'000);
  EXPECT_EQ(told(),
            "InvalidArgument: [LayerDescribe] attribute \"small\" is 40000, more than the plugin "
            "can hold");
}

TEST_F(Layer, AShapeThatFollowsFromAValue) {
  Status status;
  const Tensor x = floats({1, 2});
  Tensor times = tensor<int32_t>(TN_INT32, {3}, {});
  EXPECT_EQ(values<float>(execute("LayerRepeat", {x.get(), times.get()}, status)[0].get()),
            (std::vector<float>{1, 1, 1, 2, 2, 2}));
  times = tensor<int32_t>(TN_INT32, {-3}, {});
  EXPECT_TRUE(execute("LayerRepeat", {x.get(), times.get()}, status).empty());
  EXPECT_EQ(status.said(), "InvalidArgument: [LayerRepeat] times is negative");
}

TEST_F(Layer, OutputsThatTheKernelAllocates) {
  Status status;
  const Tensor x = floats({-1, 2, 0, 4});
  EXPECT_EQ(values<float>(execute("LayerPositive", {x.get()}, status)[0].get()),
            (std::vector<float>{2, 4}));
  const Tensor none = tensor<int32_t>(TN_INT32, {}, {0});
  EXPECT_EQ(tn_tensor_num_elements(execute("LayerPositive", {none.get()}, status)[0].get()), 0);
}

// ---- What user code throws ----

struct Failure {
  const char* where;
  const char* what;
  const char* said;  // after "[LayerFails] "
};

class LayerFailure : public ::testing::TestWithParam<Failure> {
 protected:
  static void SetUpTestSuite() { tn_load_plugin(plugin_path("layer").c_str(), nullptr); }
};

TEST_P(LayerFailure, IsAnErrorOfTheOp) {
  Status status;
  const Attrs attrs(tn_attrs_new());
  set_text(attrs, "where", GetParam().where);
  set_text(attrs, "what", GetParam().what);
  const Tensor x = floats({1, 2});
  EXPECT_TRUE(execute("LayerFails", {x.get()}, status, attrs.get()).empty());
  const std::string wanted = GetParam().said;
  const size_t colon = wanted.find(": ");
  EXPECT_EQ(status.said(),
            wanted.substr(0, colon + 2) + "[LayerFails] " + wanted.substr(colon + 2));
}

constexpr Failure kFailures[] = {
    {"shape", "runtime_error", "Internal: the shape rule threw: it broke"},
    {"shape", "int", "Internal: the shape rule threw what is no std::exception"},
    {"constructor", "invalid_argument",
     "InvalidArgument: the kernel's constructor threw: that is no number"},
    {"constructor", "error", "Unavailable: the server is down"},
    {"construction", "", "FailedPrecondition: refused while constructing"},
    {"compute", "runtime_error", "Internal: the kernel threw: it broke"},
    {"compute", "out_of_range", "OutOfRange: the kernel threw: there is no row 7"},
    {"compute", "bad_alloc", "ResourceExhausted: the kernel ran out of memory"},
    {"compute", "int", "Internal: the kernel threw what is no std::exception"},
    {"compute", "error", "Unavailable: the server is down"},
    {"parallel", "runtime_error", "Internal: the parallel loop threw: it broke"},
    {"other shape", "",
     "InvalidArgument: output 0 is allocated as [3,4], but the shape rule says [2]"},
    {"other type", "",
     "InvalidArgument: the tensor is float32, its elements were asked for as float64"},
    {"other rank", "", "InvalidArgument: the tensor has shape [2], rank 2 was asked for"},
    {"other input", "", "OutOfRange: input 5 is not in [0, 1)"},
    {"other name", "", "NotFound: op \"LayerFails\" has no input \"z\""},
    {"input written", "",
     "FailedPrecondition: an input may only be read: take it as a const Tensor"},
};
INSTANTIATE_TEST_SUITE_P(Layer, LayerFailure, ::testing::ValuesIn(kFailures));

TEST_F(Layer, AGradientThatThrows) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT32, {2});
  const Attrs attrs(tn_attrs_new());
  set_text(attrs, "where", "nowhere");
  set_text(attrs, "what", "out_of_range");
  const tn_output* y = op(g, "LayerFails", {x}, attrs.get(), nullptr, "broken");
  const tn_output* dx = nullptr;
  Status status;
  tn_graph_add_gradients(g.get(), &y, 1, &x, 1, nullptr, &dx, status);
  EXPECT_EQ(status.said().rfind("OutOfRange: ", 0), 0U) << status.said();
  EXPECT_NE(status.said().find("the gradient rule threw: there is no row 7"), std::string::npos);
}

// ---- Asynchronous kernels ----

std::string later(const char* how) {
  Status status;
  const Attrs attrs(tn_attrs_new());
  set_text(attrs, "how", how);
  const Tensor x = floats({1, 2});
  const auto out = execute("LayerLater", {x.get()}, status, attrs.get());
  if (out.empty()) return status.said();
  return values<float>(out[0].get()) == std::vector<float>{2, 3} ? "right" : "wrong";
}

TEST_F(Layer, AnAsynchronousOpIsFlagged) {
  Status status;
  EXPECT_EQ(tn_op_flags(tn_op_find("LayerLater", status)),
            static_cast<uint32_t>(TN_OP_ASYNCHRONOUS | TN_OP_STATEFUL | TN_OP_NOT_DIFFERENTIABLE |
                                  TN_OP_ALLOCATES_OUTPUTS));
}

TEST_F(Layer, WhoWaitsEndsOnAnyThread) {
  EXPECT_EQ(later("later"), "right");
  EXPECT_EQ(later("at once"), "right");
  EXPECT_EQ(later("twice"), "right");
}

TEST_F(Layer, WhatGoesWrongWhileWaiting) {
  EXPECT_EQ(later("refuse"), "Unavailable: [LayerLater] not today");
  EXPECT_EQ(later("throw"), "Internal: [LayerLater] ComputeAsync threw: it broke while it began");
  EXPECT_EQ(later("forget"),
            "Internal: [LayerLater] the kernel let its `done` go without calling it");
  EXPECT_EQ(later("nothing"), "Internal: [LayerLater] the kernel did not allocate output 0");
}

class LayerInASession : public Layer {
 protected:
  // A run of several of them side by side, one of which waits as `how` says.
  std::string run(const char* how, const tn_run_options* options) {
    const Graph g = graph();
    const tn_output* x = placeholder(g, TN_FLOAT32, {2});
    const Attrs plain(tn_attrs_new()), attrs(tn_attrs_new());
    set_text(attrs, "how", how);
    std::vector<const tn_output*> wanted{op(g, "LayerLater", {x}, attrs.get(), nullptr, "slow")};
    for (int i = 0; i < 20; ++i)
      wanted.push_back(op(g, "LayerLater", {i < 2 ? x : wanted.back()}, plain.get()));
    const Session session(tn_session_new(g.get(), nullptr, status_));
    const Tensor value = floats({0, 1});
    const tn_tensor* fed = value.get();
    std::vector<tn_tensor*> results(wanted.size());
    tn_session_run(session.get(), options, &x, &fed, 1, wanted.data(), results.data(),
                   results.size(), nullptr, 0, nullptr, status_);
    for (tn_tensor* result : results) owned_.emplace_back(result);
    return status_.said();
  }
  Status status_;
  std::vector<Tensor> owned_;
};

TEST_F(LayerInASession, SideBySideAndOneAfterAnother) {
  ASSERT_EQ(run("later", nullptr), "Ok");
  EXPECT_EQ(values<float>(owned_[0].get()), (std::vector<float>{1, 2}));
  EXPECT_EQ(values<float>(owned_[20].get()), (std::vector<float>{19, 20}));
}

TEST_F(LayerInASession, ATimeoutEndsTheWait) {
  tn_run_options options = TN_RUN_OPTIONS_INIT;
  options.timeout_ms = 30;
  EXPECT_EQ(run("until cancelled", &options).rfind("DeadlineExceeded: ", 0), 0U) << status_.said();
}

TEST_F(LayerInASession, ACancelledRunEndsTheWait) {
  const std::unique_ptr<tn_cancellation, Deleter<tn_cancellation_delete>> cancellation(
      tn_cancellation_new(status_));
  tn_run_options options = TN_RUN_OPTIONS_INIT;
  options.cancellation = cancellation.get();
  std::thread canceller([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(30));
    tn_cancellation_cancel(cancellation.get(), "enough");
  });
  EXPECT_EQ(run("until cancelled", &options).rfind("Cancelled: ", 0), 0U) << status_.said();
  canceller.join();
}

TEST_F(LayerInASession, AnErrorOfAnotherEndsTheWait) {
  EXPECT_EQ(run("refuse", nullptr), "Unavailable: [LayerLater node \"slow\"] not today");
}

// ---- What does not load ----

struct Breakage {
  const char* how;
  const char* said;  // after "plugin <path>: "
};

class LayerBroken : public ::testing::TestWithParam<Breakage> {};

// The library's static constructors tell what is wrong with it, so each case is a process.
TEST_P(LayerBroken, LeavesNothingBehind) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const std::string path = plugin_path("layer-broken");
  const auto load = [&] {
    ::setenv("BROKEN_LAYER", GetParam().how, 1);
    Status status;
    tn_load_plugin(path.c_str(), status);
    std::fprintf(stderr, "%s%s", status.said().c_str(),
                 tn_op_find("LayerRight", nullptr) == nullptr ? "" : " (LayerRight stays)");
    std::exit(0);
  };
  const std::string wanted = GetParam().said;
  const size_t colon = wanted.find(": ");
  const std::string text =
      wanted.substr(0, colon + 2) + "plugin " + path + ": " + wanted.substr(colon + 2);
  std::string pattern = "^";
  for (const char c : text) {
    if (std::string("()[]{}.*+?|^$\\").find(c) != std::string::npos) pattern += '\\';
    pattern += c;
  }
  EXPECT_EXIT(load(), ::testing::ExitedWithCode(0), pattern + "$");
}

constexpr Breakage kBreakages[] = {
    {"grammar",
     "InvalidArgument: op \"LayerWrong\": attr \"T: {float\": expected '}', met the end"},
    {"reads what is not there",
     "InvalidArgument: op \"LayerWrong\": the gradient reads \"z\", which is no input or output"},
    {"unknown op", "NotFound: no op \"LayerNowhere\" is registered; did you mean \"LayerNorm\"?"},
    {"not declared",
     "InvalidArgument: a kernel for op \"LayerWrong\": expected a type, met 'invalid}'"},
    {"op twice", "AlreadyExists: op \"LayerRight\" is registered already"},
    {"no shape rule", "InvalidArgument: op \"LayerWrong\": it has no shape rule"},
    {"no gradient",
     "InvalidArgument: op \"LayerWrong\": it has no gradient rule; if it has no gradient by "
     "nature, flag TN_OP_NOT_DIFFERENTIABLE"},
    {"constrains no type",
     "InvalidArgument: a kernel for op \"LayerWrong\" constrains \"S\", which is no type attribute "
     "of it"},
    {"waits and computes",
     "InvalidArgument: op \"LayerRight\" is asynchronous, but a kernel for it has no start "
     "function"},
};
INSTANTIATE_TEST_SUITE_P(Layer, LayerBroken, ::testing::ValuesIn(kBreakages));

}  // namespace
}  // namespace capi_test
