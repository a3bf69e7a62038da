// SPDX-License-Identifier: Apache-2.0
// The table that a plugin calls, given what it cannot take: contexts that are not there, and an op
// of a plugin that misuses it. What programs call: hostile_test.cc.
#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "tests/capi/hostile.h"
#include "tests/capi/support.h"
#include "tests/support/plugin_path.h"
#include "treenail/plugin.h"

namespace capi_test {
namespace {

using treenail::test::plugin_path;

// What a plugin is given: the host's table, called with contexts that are not there.
class HostilePlugin : public Hostile {
 protected:
  void SetUp() override {
    tn_load_plugin(plugin_path("hostile").c_str(), status);
    ASSERT_EQ(status.said(), "Ok");
    tn_tensor* out = nullptr;
    tn_execute("HostTable", nullptr, 0, nullptr, nullptr, 0, &out, 1, status);
    const Tensor address(out);
    ASSERT_EQ(status.said(), "Ok");
    host = reinterpret_cast<const tn_host*>(values<int64_t>(address.get())[0]);
  }
  const tn_host* host = nullptr;
};

TEST_F(HostilePlugin, NullContextsOfShapesAndKernels) {
  host->register_op(nullptr, nullptr);
  host->register_kernel(nullptr, nullptr);
  EXPECT_EQ(host->shape_call(nullptr), nullptr);
  EXPECT_EQ(host->shape_input_rank(nullptr, 0), -1);
  EXPECT_EQ(host->shape_input_dim(nullptr, 0, 0), -1);
  EXPECT_EQ(host->shape_input_value(nullptr, 0), nullptr);
  host->shape_need_rank(nullptr, 0, 0, status);
  refused("shape_need_rank");
  host->shape_set_output(nullptr, 0, nullptr, 0, status);
  refused("shape_set_output");
  host->shape_copy_input(nullptr, 0, 0, status);
  refused("shape_copy_input");
  host->shape_broadcast(nullptr, 0, 0, 0, status);
  refused("shape_broadcast");
  host->shape_from_input(nullptr, 0, 0, status);
  refused("shape_from_input");
  EXPECT_EQ(host->prepare_call(nullptr), nullptr);
  EXPECT_EQ(host->prepare_input_shape(nullptr, 0, nullptr), -1);
  EXPECT_EQ(host->prepare_output_shape(nullptr, 0, nullptr), -1);
  EXPECT_EQ(host->prepare_host_value(nullptr, 0, status), nullptr);
  refused("prepare_host_value");
  host->prepare_set_scratch(nullptr, 1);
  host->prepare_set_cost(nullptr, 1);
  EXPECT_EQ(host->run_input(nullptr, 0), nullptr);
  EXPECT_EQ(host->run_output(nullptr, 0), nullptr);
  EXPECT_EQ(host->run_output_tensor(nullptr, 0), nullptr);
  EXPECT_EQ(host->run_scratch(nullptr), nullptr);
  EXPECT_EQ(host->run_cancelled(nullptr), 0);
  host->run_set_string(nullptr, 0, 0, "", 0, status);
  refused("run_set_string");
  EXPECT_EQ(host->run_allocate_output(nullptr, 0, nullptr, 0, status), nullptr);
  refused("run_allocate_output");
  host->run_parallel_for(nullptr, 1, 1, 1, nullptr, nullptr, status);
  refused("run_parallel_for");
}

TEST_F(HostilePlugin, NullContextsOfGradients) {
  EXPECT_EQ(host->gradient_call(nullptr), nullptr);
  EXPECT_EQ(host->gradient_exists(nullptr, 0), 0);
  EXPECT_EQ(host->gradient_needed(nullptr, 0), 0);
  EXPECT_EQ(host->value_dtype(nullptr), 0);
  EXPECT_EQ(host->value_shape(nullptr, nullptr, 0), -1);
  EXPECT_EQ(host->gradient_input(nullptr, 0, status), nullptr);
  refused("gradient_input");
  EXPECT_EQ(host->gradient_output(nullptr, 0, status), nullptr);
  refused("gradient_output");
  EXPECT_EQ(host->gradient_of(nullptr, 0, status), nullptr);
  refused("gradient_of");
  EXPECT_EQ(
      host->gradient_emit(nullptr, "Neg", nullptr, 0, nullptr, nullptr, 0, nullptr, 0, status), 0U);
  refused("gradient_emit");
  EXPECT_EQ(host->gradient_constant(nullptr, nullptr, status), nullptr);
  refused("gradient_constant");
  EXPECT_EQ(host->gradient_scalar(nullptr, TN_FLOAT32, 0, status), nullptr);
  refused("gradient_scalar");
  EXPECT_EQ(host->gradient_input_shape(nullptr, 0, TN_INT32, status), nullptr);
  refused("gradient_input_shape");
  EXPECT_EQ(host->gradient_sum_to_input(nullptr, nullptr, 0, status), nullptr);
  refused("gradient_sum_to_input");
  host->gradient_set(nullptr, 0, nullptr, status);
  refused("gradient_set");
  host->gradient_set_slices(nullptr, 0, nullptr, nullptr, nullptr, status);
  refused("gradient_set_slices");
}

TEST_F(HostilePlugin, AKernelThatGivesOtherBytesAsTruthValues) {
  const Graph g = graph();
  const Tensor rows = fetch(g, op(g, "Where", {op(g, "OddTruth", {})}), status);
  ASSERT_NE(rows, nullptr) << status.said();
  EXPECT_EQ(values<int64_t>(rows.get()), (std::vector<int64_t>{0, 1, 2, 3}));
}

TEST_F(HostilePlugin, AnOpThatMisusesTheTable) {
  const Tensor x(tn_tensor_new(TN_STRING, nullptr, 0, status));
  const std::pair<const char*, tn_code> cases[] = {{"nothing", TN_OK},
                                                   {"cost", TN_OK},
                                                   {"no cost", TN_OK},
                                                   {"scratch", TN_INVALID_ARGUMENT},
                                                   {"host value", TN_OUT_OF_RANGE},
                                                   {"string", TN_INVALID_ARGUMENT},
                                                   {"element", TN_INVALID_ARGUMENT},
                                                   {"body", TN_INVALID_ARGUMENT},
                                                   {"again", TN_FAILED_PRECONDITION}};
  for (const auto& [how, code] : cases) {
    const Attrs attrs(tn_attrs_new());
    tn_attrs_set_string(attrs.get(), "how", how, std::string(how).size());
    const tn_tensor* input = x.get();
    tn_tensor* out = nullptr;
    tn_execute("Misuse", &input, 1, attrs.get(), nullptr, 0, &out, 1, status);
    EXPECT_EQ(status.code(), code) << how << ": " << status.said();
    tn_tensor_delete(out);
    const Graph g = graph();
    const tn_output* y = op(g, "Misuse", {constant(g, x)}, attrs.get());
    const Tensor fetched = fetch(g, y, status);
    EXPECT_EQ(status.code(), code) << how << " in a session: " << status.said();
  }
}

}  // namespace
}  // namespace capi_test
