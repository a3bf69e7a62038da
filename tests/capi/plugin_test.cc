// SPDX-License-Identifier: Apache-2.0
// The plugins of tests/capi/plugin, loaded and used. What must not load: plugin_refusal_test.cc.
#include <gtest/gtest.h>

#include <chrono>
#include <cmath>
#include <thread>

#include "tests/capi/support.h"
#include "tests/support/plugin_path.h"

namespace capi_test {
namespace {

using treenail::test::plugin_path;
using treenail::test::test_directory;

class Plugins : public ::testing::Test {
 protected:
  static void SetUpTestSuite() {
    for (const char* name : {"example", "features"}) {
      Status status;
      tn_load_plugin(plugin_path(name).c_str(), status);
      ASSERT_EQ(status.said(), "Ok");
    }
  }
};

// One op on tensors: the outputs' first, or null with what went wrong.
Tensor execute(const char* name, const std::vector<const tn_tensor*>& inputs, Status& status,
               const tn_attrs* attrs = nullptr) {
  tn_tensor* out = nullptr;
  tn_execute(name, inputs.data(), inputs.size(), attrs, nullptr, 0, &out, 1, status);
  return Tensor(out);
}

TEST_F(Plugins, OpsStandInTheRegistry) {
  Status status;
  const tn_op* cube = tn_op_find("Cube", status);
  ASSERT_NE(cube, nullptr) << status.said();
  EXPECT_STREQ(tn_op_doc(cube), "x * x * x, element by element.");
  EXPECT_EQ(tn_op_flags(cube), 0U);
}

TEST_F(Plugins, LoadingAgainChangesNothing) {
  Status status;
  const size_t before = tn_op_list(nullptr, 0, status);
  tn_load_plugin(plugin_path("example").c_str(), status);
  EXPECT_EQ(status.said(), "Ok");
  tn_load_plugin((test_directory() + "/../tests/plugins/libtreenail-example.so").c_str(), status);
  EXPECT_EQ(status.said(), "Ok");  // the same file by another path
  EXPECT_EQ(tn_op_list(nullptr, 0, status), before);
}

TEST_F(Plugins, ZeroOutInASession) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_INT32, {-1, 2});
  std::string said;
  const tn_output* y = op(g, "ZeroOut", {x}, nullptr, &said);
  ASSERT_NE(y, nullptr) << said;
  int64_t dims[2];
  EXPECT_EQ(tn_output_shape(y, dims, 2), 2);
  EXPECT_EQ(dims[1], 2);
  Status status;
  const Tensor value = tensor<int32_t>(TN_INT32, {5, 4, 3, 2}, {2, 2});
  const Tensor result = fetch(g, y, status, x, value.get());
  ASSERT_TRUE(result) << status.said();
  EXPECT_EQ(values<int32_t>(result.get()), (std::vector<int32_t>{5, 0, 0, 0}));
}

TEST_F(Plugins, CubeOfBothTypes) {
  Status status;
  const Tensor f = floats({1, -2, 0.5F});
  EXPECT_EQ(values<float>(execute("Cube", {f.get()}, status).get()),
            (std::vector<float>{1, -8, 0.125F}));
  const Tensor d = doubles({3});
  EXPECT_EQ(values<double>(execute("Cube", {d.get()}, status).get()), std::vector<double>{27});
  const Tensor none = floats({});
  EXPECT_EQ(tn_tensor_num_elements(execute("Cube", {none.get()}, status).get()), 0);
  ASSERT_EQ(status.said(), "Ok");
}

TEST_F(Plugins, ATypeOutsideTheDeclarationIsRefused) {
  Status status;
  const Tensor i = tensor<int32_t>(TN_INT32, {1}, {1});
  EXPECT_EQ(execute("Cube", {i.get()}, status), nullptr);
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
  EXPECT_EQ(status.said().rfind("InvalidArgument: [Cube] ", 0), 0U) << status.said();
}

TEST_F(Plugins, CubeInParallelGivesTheSameBits) {
  std::vector<float> numbers(300'001);
  for (size_t i = 0; i < numbers.size(); ++i) numbers[i] = static_cast<float>(i) * 0.001F - 150;
  const Tensor x = floats(numbers);
  const int32_t threads = tn_num_threads();
  Status status;
  for (const int32_t n : {1, 2, 3}) {
    tn_set_num_threads(n, status);
    const std::vector<float> y = values<float>(execute("Cube", {x.get()}, status).get());
    ASSERT_EQ(y.size(), numbers.size());
    for (size_t i = 0; i < y.size(); ++i) {
      const float cubed = numbers[i] * numbers[i] * numbers[i];  // rounded where that is wider
      ASSERT_EQ(y[i], cubed);
    }
  }
  tn_set_num_threads(threads, status);
}

// d Cube / dx against central differences, and the second derivative 6x, for the rule emits ops
// that have gradients.
TEST_F(Plugins, CubeHasGradientsOfAnyOrder) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT64, {3});
  const tn_output* y = op(g, "Cube", {x});
  const tn_output *first = nullptr, *second = nullptr;
  Status status;
  tn_graph_add_gradients(g.get(), &y, 1, &x, 1, nullptr, &first, status);
  ASSERT_EQ(status.said(), "Ok");
  tn_graph_add_gradients(g.get(), &first, 1, &x, 1, nullptr, &second, status);
  ASSERT_EQ(status.said(), "Ok");
  const std::vector<double> at = {-1.5, 0.25, 2};
  const Tensor value = doubles(at);
  const std::vector<double> slope = values<double>(fetch(g, first, status, x, value.get()).get());
  const std::vector<double> bend = values<double>(fetch(g, second, status, x, value.get()).get());
  constexpr double h = 1e-4;
  for (size_t i = 0; i < at.size(); ++i) {
    std::vector<double> up = at, down = at;
    up[i] += h;
    down[i] -= h;
    const Tensor above = doubles(up), below = doubles(down);
    const double high = values<double>(fetch(g, y, status, x, above.get()).get())[i];
    const double low = values<double>(fetch(g, y, status, x, below.get()).get())[i];
    EXPECT_NEAR(slope[i], (high - low) / (2 * h), 1e-6);
    EXPECT_DOUBLE_EQ(bend[i], 6 * at[i]);
  }
}

TEST_F(Plugins, GradientsMixWithThoseOfOtherOps) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT32, {3});
  const tn_output* y = op(g, "Square", {op(g, "ZeroOut", {op(g, "Cube", {x})})});
  const tn_output* dx = nullptr;
  Status status;
  tn_graph_add_gradients(g.get(), &y, 1, &x, 1, nullptr, &dx, status);
  ASSERT_EQ(status.said(), "Ok");
  const Tensor value = floats({2, 3, 4});
  // d(x^6)/dx = 6 x^5 for the first element, 0 for the others.
  EXPECT_EQ(values<float>(fetch(g, dx, status, x, value.get()).get()),
            (std::vector<float>{192, 0, 0}));
}

TEST_F(Plugins, AttributesStateAndScratch) {
  const Attrs attrs(tn_attrs_new());
  tn_attrs_set_float(attrs.get(), "scale", 2);
  const double shifts[] = {1, 0.5};
  tn_attrs_set_floats(attrs.get(), "shifts", shifts, 2);
  tn_attrs_set_string(attrs.get(), "mode", "negate", 6);
  Status status;
  const Tensor x = floats({1, 2});
  EXPECT_EQ(values<float>(execute("Affine", {x.get()}, status, attrs.get()).get()),
            (std::vector<float>{-3.5F, -5.5F}))
      << status.said();
  EXPECT_EQ(values<float>(execute("Affine", {x.get()}, status).get()), (std::vector<float>{1, 2}));
}

TEST_F(Plugins, PrepareMayRefuseAndItsStateIsDestroyed) {
  Status status;
  const auto live = [&] {
    return values<int32_t>(execute("AffineStates", {}, status).get()).at(0);
  };
  const int32_t before = live();
  const Attrs attrs(tn_attrs_new());
  tn_attrs_set_bool(attrs.get(), "refuse", 1);
  const Tensor x = floats({1, 2});
  EXPECT_EQ(execute("Affine", {x.get()}, status, attrs.get()), nullptr);
  EXPECT_EQ(status.said(), "FailedPrecondition: [Affine] refused while preparing");
  EXPECT_EQ(live(), before);
  const Attrs many(tn_attrs_new());
  const double shifts[5] = {};
  tn_attrs_set_floats(many.get(), "shifts", shifts, 5);
  EXPECT_EQ(execute("Affine", {x.get()}, status, many.get()), nullptr);
  EXPECT_EQ(status.said(), "InvalidArgument: [Affine] 5 shifts are given, at most 4 are possible");
}

TEST_F(Plugins, StateLivesAsLongAsTheSessionsPlan) {
  Status status;
  const auto live = [&] {
    return values<int32_t>(execute("AffineStates", {}, status).get()).at(0);
  };
  const int32_t before = live();
  {
    const Graph g = graph();
    const tn_output* x = placeholder(g, TN_FLOAT32, {-1});
    const tn_output* y = op(g, "Affine", {x});
    const Session session(tn_session_new(g.get(), nullptr, status));
    for (int i = 0; i < 3; ++i) {
      const Tensor value = floats({1, 2});
      const tn_tensor* fed = value.get();
      tn_tensor* result = nullptr;
      tn_session_run(session.get(), nullptr, &x, &fed, 1, &y, &result, 1, nullptr, 0, nullptr,
                     status);
      ASSERT_EQ(status.said(), "Ok");
      tn_tensor_delete(result);
    }
    EXPECT_EQ(live(), before + 1);  // prepared once for three runs
  }
  EXPECT_EQ(live(), before);
}

TEST_F(Plugins, AHostInputDecidesTheShape) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT32, {-1, 2});
  const tn_output* times = constant(g, tensor<int32_t>(TN_INT32, {2}, {}));
  const tn_output* y = op(g, "RepeatRows", {x, times});
  Status status;
  const Tensor value = tensor<float>(TN_FLOAT32, {1, 2, 3, 4}, {2, 2});
  const Tensor result = fetch(g, y, status, x, value.get());
  ASSERT_TRUE(result) << status.said();
  EXPECT_EQ(tn_tensor_dims(result.get())[0], 4);
  EXPECT_EQ(values<float>(result.get()), (std::vector<float>{1, 2, 1, 2, 3, 4, 3, 4}));

  std::string said;
  const tn_output* negative = constant(g, tensor<int32_t>(TN_INT32, {-1}, {}));
  const tn_output* fixed = placeholder(g, TN_FLOAT32, {2, 2}, "fixed");
  EXPECT_EQ(op(g, "RepeatRows", {fixed, negative}, nullptr, &said), nullptr);
  EXPECT_EQ(said, "InvalidArgument: [RepeatRows node \"RepeatRows\"] times = -1 is negative");
}

TEST_F(Plugins, AHostInputMayBeKnownOnlyWhenRunning) {
  const Graph g = graph();
  const tn_output* x = constant(g, tensor<float>(TN_FLOAT32, {1, 2}, {2}));
  const tn_output* times = placeholder(g, TN_INT32, {}, "times");
  const tn_output* y = op(g, "RepeatRows", {x, times});
  int64_t dims[1];
  EXPECT_EQ(tn_output_shape(y, dims, 1), 1);
  EXPECT_EQ(dims[0], -1);
  Status status;
  for (const int32_t n : {3, 1, 0}) {
    const Tensor value = tensor<int32_t>(TN_INT32, {n}, {});
    const Tensor result = fetch(g, y, status, times, value.get());
    ASSERT_TRUE(result) << status.said();
    EXPECT_EQ(tn_tensor_dims(result.get())[0], 2 * n);
  }
}

TEST_F(Plugins, AnOutputMayHaveAShapeThatOnlyValuesTell) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT32, {-1});
  const tn_output* y = op(g, "Neg", {op(g, "Positive", {x})});
  Status status;
  const Tensor value = floats({1, -2, 3});
  EXPECT_EQ(values<float>(fetch(g, y, status, x, value.get()).get()), (std::vector<float>{-1, -3}))
      << status.said();
}

TEST_F(Plugins, Strings) {
  Status status;
  const int64_t dims[] = {2};
  const Tensor x(tn_tensor_new(TN_STRING, dims, 1, status));
  tn_tensor_set_string(x.get(), 0, "oak", 3, status);
  const Tensor y = execute("Shout", {x.get()}, status);
  ASSERT_TRUE(y) << status.said();
  size_t length = 0;
  const char* bytes = tn_tensor_string(y.get(), 0, &length, status);
  EXPECT_EQ(std::string(bytes, length), "OAK");
  EXPECT_NE(tn_tensor_string(y.get(), 1, &length, status), nullptr);
  EXPECT_EQ(length, 0U);
  tn_tensor_set_string(x.get(), 1, std::string(65, 'a').c_str(), 65, status);
  EXPECT_EQ(execute("Shout", {x.get()}, status), nullptr);
  EXPECT_EQ(status.said(), "OutOfRange: [Shout] x[1] has 65 bytes, at most 64 are possible");
}

TEST_F(Plugins, AGradientOfSlices) {
  const Graph g = graph();
  const tn_output* params = placeholder(g, TN_FLOAT32, {4, 2});
  const tn_output* indices = constant(g, tensor<int32_t>(TN_INT32, {3, 1, 3}, {3}));
  const tn_output* y = op(g, "Square", {op(g, "PickRows", {params, indices})});
  const tn_output* dx = nullptr;
  Status status;
  tn_graph_add_gradients(g.get(), &y, 1, &params, 1, nullptr, &dx, status);
  ASSERT_EQ(status.said(), "Ok");
  const Tensor value = tensor<float>(TN_FLOAT32, {1, 2, 3, 4, 5, 6, 7, 8}, {4, 2});
  const Tensor result = fetch(g, dx, status, params, value.get());
  ASSERT_TRUE(result) << status.said();
  EXPECT_EQ(values<float>(result.get()), (std::vector<float>{0, 0, 6, 8, 0, 0, 28, 32}));
}

TEST_F(Plugins, AGradientIsSummedOverBroadcastAxes) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT64, {2, 2});
  const tn_output* factor = constant(g, doubles({10, 100}));
  const tn_output* y = op(g, "Scaled", {x, factor});
  const tn_output* wanted[] = {x, factor};
  const tn_output* found[2] = {};
  Status status;
  tn_graph_add_gradients(g.get(), &y, 1, wanted, 2, nullptr, found, status);
  ASSERT_EQ(status.said(), "Ok");
  const Tensor value = tensor<double>(TN_FLOAT64, {1, 2, 3, 4}, {2, 2});
  EXPECT_EQ(values<double>(fetch(g, found[0], status, x, value.get()).get()),
            (std::vector<double>{10, 100, 10, 100}));
  EXPECT_EQ(values<double>(fetch(g, found[1], status, x, value.get()).get()),
            (std::vector<double>{4, 6}));
}

TEST_F(Plugins, EveryCallbackCanFail) {
  const auto failing = [](const char* stage) {
    const Attrs attrs(tn_attrs_new());
    tn_attrs_set_string(attrs.get(), "stage", stage, std::string_view(stage).size());
    const Tensor x = floats({1});
    Status status;
    execute("Fail", {x.get()}, status, attrs.get());
    return status.said();
  };
  EXPECT_EQ(failing("shape"), "InvalidArgument: [Fail] failed in the shape rule");
  EXPECT_EQ(failing("prepare"), "Unimplemented: [Fail] failed in prepare");
  // The lowest failing piece is reported, although the kernel says all is well.
  EXPECT_EQ(failing("parallel"), "DataLoss: [Fail] failed in piece 3");
  EXPECT_EQ(failing("none"), "Ok");
}

TEST_F(Plugins, AGradientRuleCanFail) {
  for (const char* stage : {"gradient", "other"}) {
    const Graph g = graph();
    const tn_output* x = placeholder(g, TN_FLOAT32, {2});
    const Attrs attrs(tn_attrs_new());
    tn_attrs_set_string(attrs.get(), "stage", stage, std::string_view(stage).size());
    const tn_output* y = op(g, "Fail", {x}, attrs.get());
    const tn_output* dx = nullptr;
    Status status;
    tn_graph_add_gradients(g.get(), &y, 1, &x, 1, nullptr, &dx, status);
    EXPECT_EQ(dx, nullptr);
    if (std::string_view(stage) == "gradient") {
      EXPECT_EQ(status.code(), TN_UNIMPLEMENTED);
      EXPECT_NE(status.said().find("failed in the gradient rule"), std::string::npos)
          << status.said();
    } else {
      EXPECT_NE(status.said().find("reads input \"x\""), std::string::npos) << status.said();
    }
  }
}

TEST_F(Plugins, AKernelSeesThatItsRunIsCancelled) {
  const Graph g = graph();
  const tn_output* y = op(g, "Wait", {});
  Status status;
  const Session session(tn_session_new(g.get(), nullptr, status));
  tn_cancellation* cancellation = tn_cancellation_new(status);
  tn_run_options options = TN_RUN_OPTIONS_INIT;
  options.cancellation = cancellation;
  std::thread other([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    tn_cancellation_cancel(cancellation, "changed my mind");
  });
  tn_tensor* result = nullptr;
  tn_session_run(session.get(), &options, nullptr, nullptr, 0, &y, &result, 1, nullptr, 0, nullptr,
                 status);
  other.join();
  EXPECT_EQ(status.code(), TN_CANCELLED);
  tn_cancellation_delete(cancellation);

  tn_run_options timed = TN_RUN_OPTIONS_INIT;
  timed.timeout_ms = 20;
  tn_session_run(session.get(), &timed, nullptr, nullptr, 0, &y, &result, 1, nullptr, 0, nullptr,
                 status);
  EXPECT_EQ(status.code(), TN_DEADLINE_EXCEEDED) << status.said();
}

}  // namespace
}  // namespace capi_test
