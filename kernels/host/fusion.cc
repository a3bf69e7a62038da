// SPDX-License-Identifier: Apache-2.0
// A group of element-wise ops as one tile program: each op's own loops on tiles, its result rounded
// to its own dtype before the next reads it, so that bits are those of the ops one by one.
#include <memory>
#include <vector>

#include "framework/runtime/kernel_registry.h"
#include "kernels/host/cast.h"
#include "kernels/host/tile_engine.h"

namespace treenail::host {
namespace {

bool is_cast(const OpInstance& op) {
  return op.name() == "Cast" && op.input_type(0) != op.output_type(0);
}

bool accepts(const OpInstance& op) { return is_cast(op) || find_tile_op(op) != nullptr; }

std::unique_ptr<Kernel> prepare(const ElementwiseGroup& group) {
  TileProgram program;
  std::vector<int> registers;  // by operand number
  for (const DType type : group.input_types) registers.push_back(program.add_input(type));
  for (const ElementwiseGroup::Step& step : group.steps) {
    std::vector<int> operands;
    for (const int operand : step.operands)
      operands.push_back(registers[static_cast<size_t>(operand)]);
    registers.push_back(is_cast(*step.op)
                            ? add_cast(program, operands[0], step.op->output_type(0))
                            : add_tile_op(program, *find_tile_op(*step.op), *step.op, operands));
  }
  std::vector<const Shape*> shapes;
  for (const Shape& shape : group.input_shapes) shapes.push_back(&shape);
  return make_tile_kernel(program, shapes, group.output_shape);
}

}  // namespace

void register_fusion_kernels(KernelRegistry& registry) { registry.set_fuser({accepts, prepare}); }

}  // namespace treenail::host
