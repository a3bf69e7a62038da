// SPDX-License-Identifier: Apache-2.0
// What the tile engine prepares: one loop over memory, one loop row by row, or a program over
// tiles. Everything that depends on shapes is decided here already; how: tile_engine.cc.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_fusion.h"
#include "kernels/host/elementwise/register_program.h"
#include "kernels/host/elementwise/tile_engine.h"
#include "kernels/host/elementwise/tile_loops.h"
#include "kernels/host/elementwise/tile_space.h"
#include "kernels/host/fusion/block_kernel.h"

namespace treenail::host {

// Below this inner extent rows are too short for a call of a loop each: several are put together in
// a tile. Up to kLongestTiledRow also longer ones are, where no operand needs gathering for it.
inline constexpr int64_t kShortestRow = 64;
inline constexpr int64_t kLongestTiledRow = 256;
// What all tiles together may take of the first-level cache.
inline constexpr int64_t kTilesBytes = 24 << 10;

// One loop over memory: all operands are whole arrays or single elements.
class DirectKernel final : public Kernel {
 public:
  void run(RunContext& c) const override;

  LoopFn loop = nullptr;
  LoopParams params;
  int64_t elements = 0;
  int64_t piece = 0;
  double ns = 0;
  int arity = 0;
  int input[kMaxOperands] = {};
  int64_t step[kMaxOperands] = {};  // bytes from element to element: 0 for a single element
  int64_t output_step = 0;
};

// One loop, row by row: an operand is an array or a single element within each row.
class RowsKernel final : public Kernel {
 public:
  void run(RunContext& c) const override;

  TileSpace space;
  LoopFn loop = nullptr;
  LoopParams params;
  int64_t piece = 0;
  double ns = 0;
  int arity = 0;
  int input[kMaxOperands] = {};
  int64_t size[kMaxOperands] = {};    // bytes of an element
  int64_t column[kMaxOperands] = {};  // bytes from column to column, 0 for a single element
  int64_t output_size = 0;

 private:
  void walk(RunContext& c, int64_t begin, int64_t end) const;
};

// A step with everything about shapes decided.
struct ResolvedStep {
  LoopFn loop;
  LoopParams params;
  int operand[kMaxOperands];
  int arity;
  int result;
  bool single;  // computes one element
};

// Where an input's elements come from: an array, one element, the same row again and again, or
// gathered.
enum class Source : uint8_t { kArray, kSingle, kPeriodic, kGather };

class ProgramKernel final : public BlockKernel {
 public:
  ProgramKernel() { produces = Stream::kPulled; }
  void run(RunContext& c) const override;
  void pull(RunContext& c, int64_t begin, int64_t end, void* to) const override;

  TileSpace space;
  // With `registers` these are the steps on single elements alone, the others are there.
  std::vector<ResolvedStep> steps;
  std::unique_ptr<const RegisterProgram> registers;
  std::vector<Source> sources;  // per input
  std::vector<int> sizes;       // bytes of an element, per register
  std::vector<int> slot_of;     // per register: number of its tile, -1 for none
  int64_t tile_elements = 0;
  int64_t tile_stride = 0;  // bytes from tile to tile
  int64_t piece = 0;
  int slots = 0;
  int result = 0;  // the output's register
  bool by_rows = false;
  bool streams = false;  // the output is far larger than the caches

 private:
  struct Walk;
  // Elements [begin, end) on the calling thread, the first of them at `to`.
  void walk(RunContext& c, int64_t begin, int64_t end, void* to, bool streaming) const;
  void point_inputs(Walk& w, const OuterPosition& position, int64_t column) const;
  void walk_rows(Walk& w, int64_t begin, int64_t end) const;
  void fill_periodic(Walk& w, int64_t begin, int64_t count) const;
  void walk_tiles(Walk& w, int64_t begin, int64_t end) const;
  void run_tile(Walk& w, int64_t begin, int64_t n) const;
};

// `program` on inputs of these shapes, over an output with elements, one of so many parts of a
// value. Null where it needs more tiles than a walk has.
std::unique_ptr<ProgramKernel> resolve_program(const TileProgram& program,
                                               std::span<const Shape* const> inputs,
                                               const Shape& output, int64_t parts = 1);

}  // namespace treenail::host
