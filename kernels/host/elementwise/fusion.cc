// SPDX-License-Identifier: Apache-2.0
// A group of element-wise ops as one tile program: each op's own loops on tiles, its result rounded
// to its own dtype before the next reads it, so that bits are those of the ops one by one.
#include "kernels/host/elementwise/fusion.h"

#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "framework/base/fork.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/elementwise/tile_kernels.h"
#include "kernels/host/fusion/block_kernel.h"

namespace treenail::host {
namespace {

struct FusibleOp {
  bool (*accepts)(const OpInstance& op);
  AddStepsFn steps;
};

struct Table {
  ForkMutex mutex;
  std::map<std::string_view, FusibleOp> ops;
};

Table& table() {
  static Table* const instance = new Table;  // never destroyed, as the kernels' tables
  return *instance;
}

int add_table_op(TileProgram& program, const OpInstance& op, std::span<const int> operands) {
  return add_tile_op(program, *find_tile_op(op), op, operands);
}

// Null where the op cannot be a step.
AddStepsFn find_steps(const OpInstance& op) {
  if (find_tile_op(op) != nullptr) return add_table_op;
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto at = t.ops.find(op.name());
  return at != t.ops.end() && at->second.accepts(op) ? at->second.steps : nullptr;
}

bool accepts(const OpInstance& op) { return find_steps(op) != nullptr; }

TileProgram program_of(const ElementwiseGroup& group) {
  TileProgram program;
  std::vector<int> registers;  // by operand number
  for (const DType type : group.input_types) registers.push_back(program.add_input(type));
  for (const ElementwiseGroup::Step& step : group.steps) {
    std::vector<int> operands;
    for (const int operand : step.operands)
      operands.push_back(registers[static_cast<size_t>(operand)]);
    registers.push_back(find_steps(*step.op)(program, *step.op, operands));
  }
  return program;
}

std::vector<const Shape*> shapes_of(const ElementwiseGroup& group) {
  std::vector<const Shape*> shapes;
  for (const Shape& shape : group.input_shapes) shapes.push_back(&shape);
  return shapes;
}

std::unique_ptr<Kernel> prepare(const ElementwiseGroup& group) {
  size_t operands = 0;
  for (const ElementwiseGroup::Step& step : group.steps) operands += step.operands.size();
  if (!fits_one_kernel(group.steps.size(), operands, group.input_types.size())) return nullptr;
  // No space to walk: its positions would have no extent to count by.
  if (group.output_shape.num_elements() == 0) return make_kernel([](RunContext&) {});
  return resolve_program(program_of(group), shapes_of(group), group.output_shape, group.parts);
}

}  // namespace

void add_fusible_op(std::string_view op, bool (*accepts)(const OpInstance& op), AddStepsFn steps) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  t.ops.insert_or_assign(op, FusibleOp{accepts, steps});
}

void register_fusion_kernels(KernelRegistry& registry) {
  registry.set_fuser({accepts, prepare, streamed_input, compose});
}

}  // namespace treenail::host
