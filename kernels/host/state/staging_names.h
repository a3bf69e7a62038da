// SPDX-License-Identifier: Apache-2.0
// What operations on staging areas have in common: which area is meant, and what is put.
#pragma once

#include <string>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/state/staging_area.h"
#include "framework/runtime/state/stored_value.h"

namespace treenail::host {

inline std::string staging_name(const PrepareContext& p) {
  const std::string& shared = p.op().get_string("shared_name");
  return shared.empty() ? std::string(p.node_name()) : shared;
}

inline StagingLimits staging_limits(const OpInstance& op) {
  return {op.get_int("capacity"), op.get_int("memory_limit")};
}

// Inputs [begin, end).
inline StagedTuple staged_inputs(const RunContext& c, int begin, int end) {
  StagedTuple tuple;
  for (int i = begin; i < end; ++i) tuple.push_back(stored_value(c.input(i)));
  return tuple;
}

}  // namespace treenail::host
