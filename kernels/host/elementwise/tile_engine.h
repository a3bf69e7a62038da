// SPDX-License-Identifier: Apache-2.0
// The tile engine: runs a program of element-wise steps over the elements of a broadcast space, a
// cache-sized tile at a time. An unfused op is a program of one step, with steps that widen
// half-width operands before it and narrow the result after it. Where all operands are arrays or
// single elements and nothing is converted, the loop runs over memory directly. The loops
// themselves: tile_loops.h. Every element goes through the same loops wherever tiles and chunks are
// cut, so results do not depend on the cutting.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/op/op_def.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/tensor/dtype.h"
#include "framework/tensor/shape.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::host {

// Bytes of one tile: 1024 floats. Small enough that a program's tiles stay in the first-level
// cache, large enough that calling a step costs about 1 % of its work (performance.md section 5).
inline constexpr int64_t kTileBytes = 4096;

// Steps on registers. Registers 0 … inputs-1 are the kernel's inputs; each step defines the next
// register; the last one is the kernel's output. A register is a tile of one dtype, or a single
// element where all it depends on is broadcast.
class TileProgram {
 public:
  struct Step {
    Loops loops;
    LoopParams params;
    int arity = 0;
    int operand[kMaxOperands] = {};
    DType result = DType::kInvalid;
    float ns = 0;
  };

  // Returns the register.
  int add_input(DType dtype);
  int add_step(const Loops& loops, std::span<const int> operands, DType result, float ns,
               const LoopParams& params = {});
  // The step that turns `reg` into `to`; `reg` itself when it has that type. Longer ways: cast.h.
  // Errors: Unimplemented for a pair of types without a conversion.
  int add_conversion(int reg, DType to);

  DType dtype(int reg) const { return dtypes_[static_cast<size_t>(reg)]; }
  int inputs() const { return inputs_; }
  std::span<const Step> steps() const { return steps_; }
  int registers() const { return static_cast<int>(dtypes_.size()); }

 private:
  std::vector<DType> dtypes_;
  std::vector<Step> steps_;
  int inputs_ = 0;
};

// The steps that compute `op` by `entry` on registers of its inputs' types; returns the register of
// the result, of the op's output type.
int add_tile_op(TileProgram& program, const TileOp& entry, const OpInstance& op,
                std::span<const int> operands);

// The kernel that runs `program` (at least one step) on inputs of these shapes; output 0 has shape
// `output`. Null where the program needs more tiles than a walk has: no op alone does.
std::unique_ptr<Kernel> make_tile_kernel(const TileProgram& program,
                                         std::span<const Shape* const> inputs, const Shape& output);

// PrepareFn of every op in the table of tile_loops.h.
std::unique_ptr<Kernel> prepare_elementwise(const PrepareContext& c);

}  // namespace treenail::host
