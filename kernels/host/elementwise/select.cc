// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/elementwise/select.h"

#include <cstdint>
#include <memory>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"
#include "kernels/host/elementwise/fusion.h"
#include "kernels/host/elementwise/tile_engine.h"
#include "kernels/host/elementwise/tile_space.h"

namespace treenail::host {
namespace {

SelectLoops& level_loops() {
  static SelectLoops loops;  // written while kernels register, read when they are prepared
  return loops;
}

void select16(void* y, const void* condition, const void* a, const void* b, int64_t n,
              const LoopParams&) {
  const auto* c = static_cast<const bool*>(condition);
  const auto* p = static_cast<const Bits128*>(a);
  const auto* q = static_cast<const Bits128*>(b);
  auto* r = static_cast<Bits128*>(y);
  for (int64_t i = 0; i < n; ++i) r[i] = c[i] ? p[i] : q[i];
}

Loops loops_for(size_t element_size) {
  switch (element_size) {
    case 1:
      return level_loops().bytes1;
    case 2:
      return level_loops().bytes2;
    case 4:
      return level_loops().bytes4;
    case 8:
      return level_loops().bytes8;
    default:
      return {{select16}};
  }
}

template <class T>
void select_counted(RunContext& c, const TileSpace& space) {
  const bool* condition = c.input(0).data<bool>();
  const T* p = elements<T>(c.input(1));
  const T* q = elements<T>(c.input(2));
  T* y = elements<T>(c.output(0));
  const int64_t inner = space.inner();
  const auto stride = [&](int operand) { return space.operands[operand].stride[space.rank - 1]; };
  OuterPosition position(space, 0);
  for (int64_t begin = 0; begin < space.elements; begin += inner, position.advance()) {
    for (int64_t i = 0; i < inner; ++i) {
      const bool first = condition[position.offset(0) + i * stride(0)];
      y[begin + i] =
          first ? p[position.offset(1) + i * stride(1)] : q[position.offset(2) + i * stride(2)];
    }
  }
}

int add_select(TileProgram& program, const OpInstance& op, std::span<const int> operands) {
  const DType dtype = op.output_type(0);
  return program.add_step(loops_for(dtype_size(dtype)), operands, dtype, 0.1f);
}

bool selects_plain_elements(const OpInstance& op) { return is_plain(op.output_type(0)); }

std::unique_ptr<Kernel> prepare_select(const PrepareContext& c) {
  const Shape* shapes[] = {&c.input_shape(0), &c.input_shape(1), &c.input_shape(2)};
  const DType dtype = c.output_type(0);
  if (is_plain(dtype)) {
    TileProgram program;
    const int operands[] = {program.add_input(DType::kBool), program.add_input(dtype),
                            program.add_input(dtype)};
    add_select(program, c.op(), operands);
    return make_tile_kernel(program, shapes, c.output_shape(0));
  }
  TileSpace space = make_tile_space(c.output_shape(0), shapes);
  const double cost = 10.0 * static_cast<double>(space.elements);
  return make_kernel(
      [space = std::move(space), dtype](RunContext& run) {
        if (space.elements == 0) return;
        if (dtype == DType::kString) {
          select_counted<StringElement>(run, space);
        } else if (dtype == DType::kResource) {
          select_counted<ResourceElement>(run, space);
        } else {
          select_counted<VariantElement>(run, space);
        }
      },
      cost);
}

}  // namespace

void add_select_kernels(KernelRegistry& registry, const SelectLoops& loops) {
  level_loops() = loops;
  registry.add("Select", {}, prepare_select);
  add_fusible_op("Select", selects_plain_elements, add_select);
}

}  // namespace treenail::host
