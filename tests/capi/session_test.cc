// SPDX-License-Identifier: Apache-2.0
// Gradients, sessions, immediate execution and the op registry by the C ABI.
#include <gtest/gtest.h>

#include <algorithm>
#include <thread>

#include "tests/capi/support.h"

namespace capi_test {
namespace {

struct Doubler {
  Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT32, {-1});
  const tn_output* y = op(g, "Add", {x, x}, nullptr, nullptr, "y");
};

TEST(CSession, RunsFeedsFetchesAndTargets) {
  const Doubler d;
  Status status;
  const Session session(tn_session_new(d.g.get(), nullptr, status));
  ASSERT_TRUE(session) << status.said();
  const Tensor value = floats({1, 2, 3});
  const tn_tensor* fed = value.get();
  const tn_output* fetches[] = {d.y, d.x};
  tn_tensor* results[2] = {};
  const tn_operation* target = tn_output_operation(d.y);
  tn_run_metadata did = TN_RUN_METADATA_INIT;
  tn_session_run(session.get(), nullptr, &d.x, &fed, 1, fetches, results, 2, &target, 1, &did,
                 status);
  ASSERT_EQ(status.said(), "Ok");
  EXPECT_EQ(values<float>(Tensor(results[0]).get()), (std::vector<float>{2, 4, 6}));
  EXPECT_EQ(values<float>(Tensor(results[1]).get()), (std::vector<float>{1, 2, 3}));
  EXPECT_EQ(did.specialized, 1);
  EXPECT_EQ(did.struct_size, sizeof(did));
  EXPECT_EQ(did.peak_bytes, 3 * 4);  // y; x is the caller's
}

TEST(CSession, MetadataOfAnOlderCallerIsNotOverrun) {
  const Doubler d;
  Status status;
  const Session session(tn_session_new(d.g.get(), nullptr, status));
  const Tensor value = floats({1});
  const tn_tensor* fed = value.get();
  tn_tensor* result = nullptr;
  tn_run_metadata did = TN_RUN_METADATA_INIT;
  did.struct_size = offsetof(tn_run_metadata, arena_bytes);
  did.nodes_executed = -1;
  did.arena_bytes = -1;
  tn_session_run(session.get(), nullptr, &d.x, &fed, 1, &d.y, &result, 1, nullptr, 0, &did, status);
  tn_tensor_delete(result);
  EXPECT_GE(did.nodes_executed, 1);
  EXPECT_EQ(did.arena_bytes, -1);
}

TEST(CSession, OptionsSayWhichFieldsThereAre) {
  const Doubler d;
  Status status;
  tn_session_options options = TN_SESSION_OPTIONS_INIT;
  options.struct_size = 0;
  EXPECT_EQ(tn_session_new(d.g.get(), &options, status), nullptr);
  EXPECT_EQ(
      status.said(),
      "InvalidArgument: tn_session_options.struct_size is 0; set it to sizeof(tn_session_options)");
  options.struct_size = sizeof(size_t);  // no field given
  const Session session(tn_session_new(d.g.get(), &options, status));
  EXPECT_EQ(status.said(), "Ok");
}

TEST(CSession, TargetsAreServersOrRefused) {
  const Doubler d;
  Status status;
  tn_session_options options = TN_SESSION_OPTIONS_INIT;
  options.target = "localhost:2222";
  EXPECT_EQ(tn_session_new(d.g.get(), &options, status), nullptr);
  EXPECT_EQ(status.said(),
            "InvalidArgument: a session's target is \"\" (this process) or \"grpc://host:port\", "
            "not \"localhost:2222\"");
  const Session own(tn_session_new(d.g.get(), nullptr, status));
  options.target = "grpc://localhost:2222";
  options.share_state_with = own.get();
  EXPECT_EQ(tn_session_new(d.g.get(), &options, status), nullptr);
  EXPECT_EQ(status.said(),
            "InvalidArgument: share_state_with and target exclude each other: at a server all "
            "sessions share state");
}

TEST(CSession, ErrorsLeaveNoResult) {
  const Doubler d;
  Status status;
  const Session session(tn_session_new(d.g.get(), nullptr, status));
  tn_tensor* result = reinterpret_cast<tn_tensor*>(8);
  tn_session_run(session.get(), nullptr, nullptr, nullptr, 0, &d.y, &result, 1, nullptr, 0, nullptr,
                 status);
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
  EXPECT_NE(status.said().find("\"x\""), std::string::npos) << status.said();
  EXPECT_EQ(result, nullptr);
  const Tensor wrong = doubles({1});
  const tn_tensor* fed = wrong.get();
  tn_session_run(session.get(), nullptr, &d.x, &fed, 1, &d.y, &result, 1, nullptr, 0, nullptr,
                 status);
  EXPECT_EQ(status.said(),
            "InvalidArgument: Cannot feed float64[1] for tensor \"x:0\", which has dtype float32");
  const tn_tensor* none = nullptr;
  tn_session_run(session.get(), nullptr, &d.x, &none, 1, &d.y, &result, 1, nullptr, 0, nullptr,
                 status);
  EXPECT_EQ(status.said(), "InvalidArgument: values[0] is NULL");
  const tn_output* nothing = nullptr;
  tn_session_run(session.get(), nullptr, nullptr, nullptr, 0, &nothing, &result, 1, nullptr, 0,
                 nullptr, status);
  EXPECT_EQ(status.said(), "InvalidArgument: fetches[0] is NULL");
}

TEST(CSession, RefusesAfterClose) {
  const Doubler d;
  Status status;
  const Session session(tn_session_new(d.g.get(), nullptr, status));
  tn_session_close(session.get(), status);
  const Tensor value = floats({1});
  const tn_tensor* fed = value.get();
  tn_tensor* result = nullptr;
  tn_session_run(session.get(), nullptr, &d.x, &fed, 1, &d.y, &result, 1, nullptr, 0, nullptr,
                 status);
  EXPECT_EQ(status.code(), TN_FAILED_PRECONDITION);
}

TEST(CSession, ACancelledRunSaysWhy) {
  const Doubler d;
  Status status;
  const Session session(tn_session_new(d.g.get(), nullptr, status));
  tn_cancellation* cancellation = tn_cancellation_new(status);
  tn_cancellation_cancel(cancellation, "enough");
  tn_run_options options = TN_RUN_OPTIONS_INIT;
  options.cancellation = cancellation;
  const Tensor value = floats({1});
  const tn_tensor* fed = value.get();
  tn_tensor* result = nullptr;
  tn_session_run(session.get(), &options, &d.x, &fed, 1, &d.y, &result, 1, nullptr, 0, nullptr,
                 status);
  EXPECT_EQ(status.code(), TN_CANCELLED);
  EXPECT_NE(status.said().find("enough"), std::string::npos) << status.said();
  tn_cancellation_delete(cancellation);
}

TEST(CSession, ACallableRunsManyTimesFromManyThreads) {
  const Doubler d;
  Status status;
  const Session session(tn_session_new(d.g.get(), nullptr, status));
  tn_callable* callable = tn_callable_new(session.get(), &d.x, 1, &d.y, 1, nullptr, 0, status);
  ASSERT_NE(callable, nullptr) << status.said();
  int wrong[4] = {};
  std::vector<std::thread> threads;
  for (int k = 0; k < 4; ++k) {
    threads.emplace_back([&, k] {
      Status mine;
      for (int i = 0; i < 200; ++i) {
        const Tensor value = floats({static_cast<float>(i), static_cast<float>(k)});
        const tn_tensor* fed = value.get();
        tn_tensor* result = nullptr;
        tn_callable_run(callable, nullptr, &fed, &result, nullptr, mine);
        const Tensor got(result);
        const std::vector<float> wanted = {2.0F * static_cast<float>(i),
                                           2.0F * static_cast<float>(k)};
        if (mine.code() != TN_OK || values<float>(got.get()) != wanted) ++wrong[k];
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong[0] + wrong[1] + wrong[2] + wrong[3], 0);
  tn_callable_delete(callable);
}

TEST(CSession, StateIsSharedWhereAsked) {
  const Graph g = graph();
  const Attrs attrs(tn_attrs_new());
  tn_attrs_set_type(attrs.get(), "dtype", TN_FLOAT32);
  tn_attrs_set_shape(attrs.get(), "shape", nullptr, 0);
  const tn_output* handle = op(g, "VarHandleOp", {}, attrs.get(), nullptr, "v");
  const float five = 5;
  const tn_output* value = constant(g, tensor<float>(TN_FLOAT32, {five}, {}));
  Status status;
  tn_builder* builder = tn_builder_new(g.get(), "AssignVariableOp", "assign", status);
  tn_builder_add_input(builder, handle);
  tn_builder_add_input(builder, value);
  const tn_operation* assign = tn_builder_finish(builder, status);
  ASSERT_NE(assign, nullptr) << status.said();
  const Attrs read_attrs(tn_attrs_new());
  tn_attrs_set_type(read_attrs.get(), "dtype", TN_FLOAT32);
  const tn_output* read = op(g, "ReadVariableOp", {handle}, read_attrs.get());

  const Session first(tn_session_new(g.get(), nullptr, status));
  tn_session_options options = TN_SESSION_OPTIONS_INIT;
  options.share_state_with = first.get();
  const Session sharing(tn_session_new(g.get(), &options, status));
  const Session apart(tn_session_new(g.get(), nullptr, status));
  tn_session_run(first.get(), nullptr, nullptr, nullptr, 0, nullptr, nullptr, 0, &assign, 1,
                 nullptr, status);
  ASSERT_EQ(status.said(), "Ok");
  tn_tensor* result = nullptr;
  tn_session_run(sharing.get(), nullptr, nullptr, nullptr, 0, &read, &result, 1, nullptr, 0,
                 nullptr, status);
  ASSERT_EQ(status.said(), "Ok");
  EXPECT_EQ(values<float>(Tensor(result).get()), std::vector<float>{5});
  tn_session_run(apart.get(), nullptr, nullptr, nullptr, 0, &read, &result, 1, nullptr, 0, nullptr,
                 status);
  EXPECT_EQ(status.code(), TN_FAILED_PRECONDITION);
}

TEST(CGradients, AreAddedToTheGraph) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT64, {-1});
  const tn_output* apart = placeholder(g, TN_FLOAT64, {2}, "apart");
  const tn_output* y = op(g, "Square", {x});
  const tn_output* xs[] = {x, apart};
  const tn_output* found[2] = {};
  Status status;
  tn_graph_add_gradients(g.get(), &y, 1, xs, 2, nullptr, found, status);
  ASSERT_EQ(status.said(), "Ok");
  EXPECT_EQ(found[1], nullptr);
  const Tensor value = doubles({3, -0.5});
  const Tensor result = fetch(g, found[0], status, x, value.get());
  ASSERT_TRUE(result) << status.said();
  EXPECT_EQ(values<double>(result.get()), (std::vector<double>{6, -1}));
}

TEST(CGradients, TakeIncomingGradients) {
  const Graph g = graph();
  const tn_output* x = placeholder(g, TN_FLOAT64, {2});
  const tn_output* y = op(g, "Square", {x});
  const tn_output* incoming = constant(g, doubles({10, 100}));
  const tn_output* found = nullptr;
  Status status;
  tn_graph_add_gradients(g.get(), &y, 1, &x, 1, &incoming, &found, status);
  const Tensor value = doubles({3, 4});
  const Tensor result = fetch(g, found, status, x, value.get());
  ASSERT_TRUE(result) << status.said();
  EXPECT_EQ(values<double>(result.get()), (std::vector<double>{60, 800}));
}

TEST(CExecute, RunsOneOp) {
  const Tensor a = floats({1, 2}), b = floats({10, 20});
  const tn_tensor* inputs[] = {a.get(), b.get()};
  tn_tensor* out = nullptr;
  Status status;
  EXPECT_EQ(tn_execute("Add", inputs, 2, nullptr, nullptr, 0, &out, 1, status), 1U);
  ASSERT_EQ(status.said(), "Ok");
  EXPECT_EQ(values<float>(Tensor(out).get()), (std::vector<float>{11, 22}));
}

TEST(CExecute, TakesListsAndAttributes) {
  const Tensor a = floats({1, 2}), b = floats({3, 4});
  const tn_tensor* inputs[] = {a.get(), b.get()};
  const Attrs attrs(tn_attrs_new());
  tn_attrs_set_int(attrs.get(), "axis", 1);
  tn_tensor* out = nullptr;
  Status status;
  EXPECT_EQ(tn_execute("Pack", inputs, 2, attrs.get(), nullptr, 0, &out, 1, status), 1U);
  ASSERT_EQ(status.said(), "Ok");
  EXPECT_EQ(values<float>(Tensor(out).get()), (std::vector<float>{1, 3, 2, 4}));
}

TEST(CExecute, RefusesBeforeItExecutes) {
  const Tensor a = floats({1, 2});
  const tn_tensor* inputs[] = {a.get()};
  Status status;
  EXPECT_EQ(tn_execute("Neg", inputs, 1, nullptr, nullptr, 0, nullptr, 0, status), 0U);
  EXPECT_EQ(status.said(), "OutOfRange: [Neg] there are 1 outputs and room for 0");
  tn_tensor* out = nullptr;
  EXPECT_EQ(tn_execute("Nge", inputs, 1, nullptr, nullptr, 0, &out, 1, status), 0U);
  EXPECT_EQ(status.code(), TN_NOT_FOUND);
  EXPECT_EQ(tn_execute("Neg", inputs, 0, nullptr, nullptr, 0, &out, 1, status), 0U);
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
  EXPECT_EQ(status.said().rfind("InvalidArgument: [Neg] ", 0), 0U) << status.said();
}

TEST(CExecute, ACallIsResolvedOnce) {
  Status status;
  const tn_dtype dtypes[] = {TN_FLOAT32, TN_FLOAT32};
  tn_call* call = tn_call_new("Mul", dtypes, 2, nullptr, nullptr, 0, status);
  ASSERT_NE(call, nullptr) << status.said();
  EXPECT_EQ(tn_call_attr_type(call, "T", 0, status), TN_FLOAT32);
  for (int i = 1; i < 4; ++i) {
    const Tensor a = floats({static_cast<float>(i)}),
                 b = floats(std::vector<float>(static_cast<size_t>(i), 2));
    const tn_tensor* inputs[] = {a.get(), b.get()};
    tn_tensor* out = nullptr;
    tn_call_execute(call, inputs, 2, &out, status);
    ASSERT_EQ(status.said(), "Ok");
    EXPECT_EQ(values<float>(Tensor(out).get()),
              std::vector<float>(static_cast<size_t>(i), 2.0F * static_cast<float>(i)));
  }
  const Tensor wrong = doubles({1});
  const tn_tensor* inputs[] = {wrong.get(), wrong.get()};
  tn_tensor* out = nullptr;
  tn_call_execute(call, inputs, 2, &out, status);
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
  tn_call_delete(call);
}

TEST(CExecute, AViewOfBorrowedMemoryIsCopied) {
  float memory[2] = {1, 2};
  const int64_t dims[] = {2};
  Status status;
  const Tensor lent(tn_tensor_borrow(TN_FLOAT32, dims, 1, memory, 8, nullptr, nullptr, status));
  const tn_tensor* input = lent.get();
  tn_tensor* out = nullptr;
  ASSERT_EQ(tn_execute("Identity", &input, 1, nullptr, nullptr, 0, &out, 1, status), 1U)
      << status.said();
  const Tensor result(out);
  memory[0] = 9;
  EXPECT_EQ(values<float>(result.get()), (std::vector<float>{1, 2}));
}

TEST(COps, AreListedByName) {
  Status status;
  const size_t count = tn_op_list(nullptr, 0, status);
  ASSERT_GT(count, 50U);
  std::vector<const tn_op*> ops(count);
  EXPECT_EQ(tn_op_list(ops.data(), count, status), count);
  EXPECT_TRUE(std::is_sorted(ops.begin(), ops.end(), [](const tn_op* a, const tn_op* b) {
    return std::string_view(tn_op_name(a)) < tn_op_name(b);
  }));
  const tn_op* matmul = tn_op_find("MatMul", status);
  ASSERT_NE(matmul, nullptr);
  EXPECT_NE(std::find(ops.begin(), ops.end(), matmul), ops.end());
  EXPECT_EQ(tn_op_num_inputs(matmul), 2);
  EXPECT_STREQ(tn_op_input_name(matmul, 0), "a");
  EXPECT_EQ(tn_op_input_name(matmul, 2), nullptr);
  EXPECT_EQ(tn_op_num_outputs(matmul), 1);
  EXPECT_STREQ(tn_op_output_name(matmul, 0), "product");
  EXPECT_EQ(tn_op_flags(matmul) & TN_OP_STATEFUL, 0U);
  EXPECT_GE(tn_op_version(matmul), 1);
  EXPECT_GT(std::string_view(tn_op_doc(matmul)).size(), 10U);
  bool transpose = false;
  for (int i = 0; i < tn_op_num_attrs(matmul); ++i) {
    if (std::string_view(tn_op_attr_name(matmul, i)) != "transpose_a") continue;
    transpose = true;
    EXPECT_EQ(tn_op_attr_kind(matmul, i), TN_ATTR_BOOL);
    EXPECT_EQ(tn_op_attr_has_default(matmul, i), 1);
  }
  EXPECT_TRUE(transpose);
  EXPECT_EQ(tn_op_find("MatMull", status), nullptr);
  EXPECT_EQ(status.code(), TN_NOT_FOUND);
}

TEST(CLibrary, SaysWhatItIs) {
  tn_build_info info = TN_BUILD_INFO_INIT;
  tn_get_build_info(&info);
  EXPECT_STREQ(info.version, tn_version());
  EXPECT_GT(std::string_view(info.isa_baseline).size(), 0U);
  Status status;
  const char* level = tn_kernel_level(status);
  ASSERT_NE(level, nullptr) << status.said();
  EXPECT_NE(std::string_view(info.kernel_levels).find(level), std::string_view::npos);
  tn_build_info old = TN_BUILD_INFO_INIT;
  old.struct_size = offsetof(tn_build_info, machine);
  tn_get_build_info(&old);
  EXPECT_NE(old.version, nullptr);
  EXPECT_EQ(old.machine, nullptr);
}

TEST(CLibrary, TakesANumberOfThreads) {
  Status status;
  const int32_t before = tn_num_threads();
  EXPECT_GE(before, 1);
  tn_set_num_threads(3, status);
  EXPECT_EQ(tn_num_threads(), 3);
  tn_set_num_threads(0, status);
  EXPECT_EQ(status.code(), TN_INVALID_ARGUMENT);
  EXPECT_EQ(tn_num_threads(), 3);
  tn_set_num_threads(before, status);
}

}  // namespace
}  // namespace capi_test
