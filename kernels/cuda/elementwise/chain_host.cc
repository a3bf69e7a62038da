// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/chain_host.h"

#include <cstdint>
#include <optional>
#include <utility>

#include "kernels/cuda/driver/kernels.h"

namespace treenail::cuda {
namespace {

// Where a group of elements of that type may be read or written at once.
bool is_aligned(const void* at, gpu::ChainType type) {
  using gpu::ChainType;
  const size_t size = type == ChainType::kFloat32 ? 4 : type == ChainType::kBool ? 1 : 2;
  return reinterpret_cast<uintptr_t>(at) % (size * gpu::kChainGroup) == 0;
}

void launch(const GpuFunction& function, const ChainProgram& program, RunContext& c,
            CudaDevice& device) {
  gpu::Chain chain = program.chain;
  for (size_t i = 0; i < program.inputs.size(); ++i) {
    gpu::ChainInput& input = chain.input[i];
    input.at = c.input(program.inputs[i]).raw();
    const bool is_one = chain.how.stride[i][0] == 0;
    input.together = input.together && (is_one || is_aligned(input.at, input.type));
  }
  void* const y = c.output(0).raw();
  chain.output_together = is_aligned(y, chain.step[chain.steps - 1].type);
  const int64_t n = c.output(0).num_elements();
  Grid grid = grid_for(device, n, gpu::kChainGroup);
  grid.shared_bytes = static_cast<size_t>(program.slots) * static_cast<size_t>(grid.threads) *
                      sizeof(float) * gpu::kChainGroup;
  function.launch(device, grid, n, y, chain);
}

}  // namespace

std::unique_ptr<Kernel> prepare_chain(const ElementwiseGroup& group) {
  Device& device = *group.device;
  if (group.output_shape.num_elements() == 0)
    return make_launching_kernel(device, [](RunContext&, CudaDevice&) {});
  std::optional<ChainProgram> program = chain_program(group);
  if (!program) return nullptr;
  return make_launching_kernel(
      device, [function = GpuFunction("chain"), program = *std::move(program)](
                  RunContext& c, CudaDevice& to) { launch(function, program, c, to); });
}

}  // namespace treenail::cuda
