// SPDX-License-Identifier: Apache-2.0
// The table behind tile_loops.h: filled while kernels register, read when kernels are prepared.
#include "kernels/host/elementwise/tile_loops.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <string_view>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/op/op_registry.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/elementwise/tile_engine.h"

namespace treenail::host {
namespace {

struct Table {
  ForkMutex mutex;
  std::map<std::pair<std::string_view, DType>, TileOp> ops;
  std::map<std::pair<DType, DType>, Conversion> conversions;
};

Table& table() {
  static Table* const instance = new Table;  // never destroyed: level libraries stay loaded
  return *instance;
}

// The kernel serves every storage type that the op allows and that computes in `compute`; an op
// without attribute T (logical ones) has fixed types.
std::vector<TypeConstraint> constraints(const OpDef& op, DType compute) {
  const int position = op.attr_index("T");
  if (position < 0) return {};
  const std::vector<DType>& allowed = op.attrs[position].allowed_types;
  std::vector<DType> types;
  for (int number = 1; number < kNumDTypes; ++number) {
    const DType type = static_cast<DType>(number);
    if (!dtype_is_valid(number) || compute_type(type) != compute) continue;
    const bool is_allowed = std::find(allowed.begin(), allowed.end(), type) != allowed.end();
    if (allowed.empty() || is_allowed) types.push_back(type);
  }
  return {{"T", std::move(types)}};
}

}  // namespace

void add_tile_ops(KernelRegistry& registry, std::span<const TileOp> ops) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  for (const TileOp& op : ops) {
    const OpDef& def = OpRegistry::instance().get(op.op);
    if (def.inputs.size() > kMaxOperands)
      throw internal_error("\"", op.op, "\" has more inputs than a loop, ", kMaxOperands);
    t.ops.insert_or_assign({op.op, op.key}, op);
    registry.add(op.op, constraints(def, op.key), prepare_elementwise);
  }
}

void add_conversions(std::span<const Conversion> conversions) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  for (const Conversion& c : conversions) t.conversions.insert_or_assign({c.from, c.to}, c);
}

const TileOp* find_tile_op(std::string_view op, DType key) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  const auto hit = t.ops.find({op, key});
  return hit == t.ops.end() ? nullptr : &hit->second;
}

const TileOp* find_tile_op(const OpInstance& op) {
  const int inputs = op.num_inputs();
  return inputs == 0 ? nullptr : find_tile_op(op.name(), compute_type(op.input_type(inputs - 1)));
}

const Conversion* find_conversion(DType from, DType to) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  const auto hit = t.conversions.find({from, to});
  return hit == t.conversions.end() ? nullptr : &hit->second;
}

}  // namespace treenail::host
