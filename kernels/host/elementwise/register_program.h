// SPDX-License-Identifier: Apache-2.0
// A tile program (tile_engine.h) as a program whose values stay in vector registers, for the
// level's machine (register_machine.h). Bits are those of the tile program's loops: the steps are
// made from the same definitions, and the last elements, fewer than a block, go through a padded
// block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "framework/tensor/dtype.h"
#include "kernels/host/elementwise/register_machine.h"
#include "kernels/host/elementwise/tile_engine.h"

namespace treenail::host {

class RegisterProgram {
 public:
  // Where an operand's elements come from on each run.
  struct Source {
    int reg;      // of the tile program
    int operand;  // of the context
    DType dtype;
    bool single;  // one element, copied over a vector
  };

  // Once per context, before run().
  void begin(RegisterContext& context) const;
  // Computes n elements. `pointer`: by the tile program's registers, where inputs and computed
  // single elements lie. `streaming`: the output is not wanted in the caches.
  void run(RegisterContext& context, void* const* pointer, std::byte* output, int64_t n,
           bool streaming) const;

  const RegisterMachine* machine = nullptr;
  const RegisterMoves* moves = nullptr;
  int lane = 4;  // bytes
  int output_bytes = 0;
  std::vector<RegisterInstruction> code;
  std::vector<Source> sources;
  std::vector<RegisterOperand> operands;  // base is null: filled on each run
  std::vector<int> waiting;               // operands that are places for waiting values

 private:
  void run_rest(RegisterContext& context, std::byte* output, int64_t done, int64_t rest) const;
};

// `single`: by the program's registers, which are one element and computed by themselves; not the
// last. Null where a step has no form for registers, or lanes would be of two widths, or the
// program is too long.
std::unique_ptr<const RegisterProgram> make_register_program(const TileProgram& program,
                                                             const std::vector<bool>& single);

}  // namespace treenail::host
