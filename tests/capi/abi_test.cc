// SPDX-License-Identifier: Apache-2.0
// The shape of the ABI: what programs and plugins that are compiled already rely on. A new field
// goes to the end of its struct, and its line to the end here; nothing that stands here may change
// within TN_PLUGIN_ABI_VERSION 1.
#include <gtest/gtest.h>

#include "treenail/plugin.h"

namespace {

constexpr size_t kWord = sizeof(void*);

// Where the n-th word of a struct of words lies.
constexpr size_t word(size_t n) { return n * kWord; }

TEST(Abi, StructsOfPrograms) {
  EXPECT_EQ(offsetof(tn_build_info, version), word(1));
  EXPECT_EQ(offsetof(tn_build_info, build_type), word(6));
  EXPECT_EQ(offsetof(tn_session_options, fold_constants), kWord);
  EXPECT_EQ(offsetof(tn_session_options, allow_soft_placement), kWord + 8);
  EXPECT_EQ(offsetof(tn_session_options, share_state_with), kWord + 16);
  EXPECT_EQ(offsetof(tn_run_options, cancellation), kWord + 8);
  EXPECT_EQ(offsetof(tn_run_metadata, cost_ns), kWord + 16);
  EXPECT_EQ(offsetof(tn_run_metadata, specialized), kWord + 24);
  EXPECT_EQ(offsetof(tn_run_metadata, peak_bytes), kWord + 32);
}

TEST(Abi, StructsOfPlugins) {
  EXPECT_EQ(TN_PLUGIN_ABI_VERSION, 1U);
  EXPECT_EQ(offsetof(tn_plugin, abi_version), kWord);
  EXPECT_EQ(offsetof(tn_plugin, host_size), kWord + 8);
  EXPECT_EQ(offsetof(tn_plugin, registration), 5 * kWord + 8);
  EXPECT_EQ(offsetof(tn_op_spec, name), word(1));
  EXPECT_EQ(offsetof(tn_op_spec, flags), word(6));
  EXPECT_EQ(offsetof(tn_op_spec, host_inputs), word(6) + 8);
  EXPECT_EQ(offsetof(tn_op_spec, data), word(11) + 8);
  EXPECT_EQ(offsetof(tn_kernel_spec, op), word(1));
  EXPECT_EQ(offsetof(tn_kernel_spec, data), word(6));
  EXPECT_EQ(offsetof(tn_kernel_spec, start), word(7));
}

TEST(Abi, TheHostsTable) {
  constexpr size_t kFirst = 2 * kWord + 8;  // struct_size, abi_version and reserved, version
  const auto entry = [](size_t n) { return kFirst + n * kWord; };
  EXPECT_EQ(offsetof(tn_host, abi_version), kWord);
  EXPECT_EQ(offsetof(tn_host, register_op), entry(0));
  EXPECT_EQ(offsetof(tn_host, status_code), entry(2));
  EXPECT_EQ(offsetof(tn_host, tensor_new), entry(7));
  EXPECT_EQ(offsetof(tn_host, call_op), entry(19));
  EXPECT_EQ(offsetof(tn_host, attrs_new), entry(34));
  EXPECT_EQ(offsetof(tn_host, shape_call), entry(46));
  EXPECT_EQ(offsetof(tn_host, gradient_call), entry(55));
  EXPECT_EQ(offsetof(tn_host, prepare_call), entry(70));
  EXPECT_EQ(offsetof(tn_host, run_input), entry(76));
  EXPECT_EQ(offsetof(tn_host, run_cancelled), entry(83));
  EXPECT_EQ(offsetof(tn_host, attrs_set_bools), entry(84));
  EXPECT_EQ(offsetof(tn_host, call_input_range), entry(87));
  EXPECT_EQ(offsetof(tn_host, status_new), entry(89));
  EXPECT_EQ(offsetof(tn_host, run_call), entry(91));
  EXPECT_EQ(offsetof(tn_host, run_on_cancel), entry(93));
  EXPECT_EQ(sizeof(tn_host), entry(94));
}

}  // namespace
