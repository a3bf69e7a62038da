// SPDX-License-Identifier: Apache-2.0
// A program is resolved against shapes once, when the kernel is prepared: which operands are
// arrays, single elements or need gathering, which loop variant each step takes, which registers
// need a tile. A run only walks tiles.
#include "kernels/host/elementwise/tile_engine.h"

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "framework/base/error.h"
#include "kernels/host/elementwise/tile_kernels.h"
#include "kernels/host/elementwise/tile_space.h"
#include "kernels/host/large_outputs.h"

namespace treenail::host {
namespace {

// Elements per piece of parallel work, by cost: pieces of roughly 10 µs, so that a helper is worth
// waking for a few of them.
constexpr double kPieceNs = 10000;
constexpr int64_t kMostPieces = 256;

int64_t piece_elements(int64_t elements, double ns_per_element) {
  const auto wanted = static_cast<int64_t>(kPieceNs / std::max(ns_per_element, 0.05));
  const int64_t least = (elements + kMostPieces - 1) / kMostPieces;
  const int64_t piece = std::max(wanted, least);
  return (piece + 1023) / 1024 * 1024;
}

template <int kSize>
void spread(void* y, const void* a, const void*, const void*, int64_t n, const LoopParams&) {
  auto* to = static_cast<std::byte*>(y);
  for (int64_t i = 0; i < n; ++i) std::memcpy(to + i * kSize, a, kSize);
}

LoopFn spread_loop(int element_size) {
  switch (element_size) {
    case 1:
      return spread<1>;
    case 2:
      return spread<2>;
    case 4:
      return spread<4>;
    case 8:
      return spread<8>;
    default:
      return spread<16>;
  }
}

// Does the operand depend on the innermost axis alone?
bool is_periodic(const TileSpace& space, const TileSpace::Operand& operand) {
  for (int axis = 0; axis < space.rank - 1; ++axis) {
    if (operand.stride[axis] != 0) return false;
  }
  return true;
}

bool walks_by_rows(const TileSpace& space) {
  if (space.rank == 1 || space.inner() > kLongestTiledRow) return true;
  if (space.inner() < kShortestRow) return false;
  for (const TileSpace::Operand& operand : space.operands) {
    if (!operand.contiguous && !operand.single && !is_periodic(space, operand)) return true;
  }
  return false;
}

// Decides where each input's elements come from.
void choose_sources(ProgramKernel& kernel) {
  const TileSpace& space = kernel.space;
  kernel.by_rows = walks_by_rows(space);
  for (const TileSpace::Operand& operand : space.operands) {
    Source source = Source::kGather;
    if (kernel.by_rows) {
      source = operand.stride[space.rank - 1] == 0 ? Source::kSingle : Source::kArray;
    } else if (operand.single) {
      source = Source::kSingle;
    } else if (operand.contiguous) {
      source = Source::kArray;
    } else if (is_periodic(space, operand)) {
      source = Source::kPeriodic;
    }
    kernel.sources.push_back(source);
  }
}

// Builds the resolved steps; `single` says per register whether it is one element. A register lives
// in a tile from the step that makes it (a gathered input: from the start) to its last use; then
// the tile serves another, a result also in place.
class Resolver {
 public:
  Resolver(const TileProgram& program, ProgramKernel& kernel)
      : program_(program),
        kernel_(kernel),
        last_use_(static_cast<size_t>(program.registers()), -1) {
    for (int r = 0; r < program.registers(); ++r)
      new_register(static_cast<int>(dtype_size(program.dtype(r))));
    const auto steps = program.steps();
    for (size_t i = 0; i < steps.size(); ++i) {
      for (int k = 0; k < steps[i].arity; ++k)
        last_use_[static_cast<size_t>(steps[i].operand[k])] = static_cast<int>(i);
    }
    for (size_t k = 0; k < kernel.sources.size(); ++k) {
      single_[k] = kernel.sources[k] == Source::kSingle;
      if (kernel.sources[k] == Source::kGather || kernel.sources[k] == Source::kPeriodic)
        kernel_.slot_of[k] = new_tile();
      // What a periodic tile holds is used again for the next tile.
      if (kernel.sources[k] == Source::kPeriodic) last_use_[k] = INT32_MAX;
    }
  }

  // False where the program needs more registers or tiles than there are.
  bool resolve() {
    kernel_.result = program_.registers() - 1;
    if (!resolve_registers() && !resolve_steps()) return false;
    const int widest = *std::max_element(kernel_.sizes.begin(), kernel_.sizes.end());
    kernel_.tile_stride = kTileBytes;
    while (kernel_.tile_stride > 1024 && kernel_.tile_stride * kernel_.slots > kTilesBytes)
      kernel_.tile_stride /= 2;
    kernel_.tile_elements =
        kernel_.slots > 0 || !kernel_.by_rows ? kernel_.tile_stride / widest : INT64_MAX;
    return true;
  }

 private:
  // As steps on vector registers where all have such a form, and more than one is to be done or the
  // output is streamed; what is computed of single elements alone stays a loop over one element.
  bool resolve_registers() {
    const auto steps = program_.steps();
    if (steps.size() == 1 && !kernel_.streams) return false;
    std::vector<bool> single = single_;
    std::vector<ResolvedStep> before;
    for (size_t i = 0; i < steps.size(); ++i) {
      const TileProgram::Step& step = steps[i];
      bool all = true;
      for (int k = 0; k < step.arity; ++k) all &= single[static_cast<size_t>(step.operand[k])];
      const size_t result = static_cast<size_t>(program_.inputs()) + i;
      single[result] = all;
      if (!all) continue;
      ResolvedStep resolved{step.loops.variants[0],   step.params, {}, step.arity,
                            static_cast<int>(result), true};
      std::copy_n(step.operand, step.arity, resolved.operand);
      before.push_back(resolved);
    }
    if (single.back() || before.size() > kMostFusedOperands) return false;
    kernel_.registers = make_register_program(program_, single);
    if (kernel_.registers == nullptr) return false;
    kernel_.steps = std::move(before);
    return kernel_.sizes.size() <= kMostTileValues;
  }

  bool resolve_steps() {
    const int inputs = program_.inputs();
    const auto steps = program_.steps();
    for (size_t i = 0; i < steps.size(); ++i) {
      const bool last = i + 1 == steps.size();
      resolve_step(steps[i], static_cast<int>(i), inputs + static_cast<int>(i), last);
    }
    return kernel_.sizes.size() <= kMostTileValues && kernel_.slots <= kMostTiles;
  }

  int new_register(int element_size) {
    kernel_.sizes.push_back(element_size);
    kernel_.slot_of.push_back(-1);
    single_.push_back(false);
    return static_cast<int>(kernel_.sizes.size()) - 1;
  }

  int new_tile() {
    if (free_.empty()) return kernel_.slots++;
    const int tile = free_.back();
    free_.pop_back();
    return tile;
  }

  void resolve_step(const TileProgram::Step& step, int number, int result, bool last) {
    ResolvedStep resolved{nullptr, step.params, {}, step.arity, result, true};
    unsigned mask = 0;
    for (int k = 0; k < step.arity; ++k) {
      resolved.operand[k] = step.operand[k];
      if (single_[static_cast<size_t>(step.operand[k])]) {
        mask |= 1u << k;
      } else {
        resolved.single = false;
      }
    }
    if (resolved.single) mask = 0;
    resolved.loop = step.loops.variants[mask];
    std::vector<int> spread;
    if (!resolved.loop) {
      for (int k = 0; k < step.arity; ++k) {
        if (mask & (1u << k)) {
          resolved.operand[k] = spread_register(step.operand[k]);
          spread.push_back(resolved.operand[k]);
        }
      }
      resolved.loop = step.loops.variants[0];
    }
    single_[static_cast<size_t>(result)] = resolved.single;
    place_result(step, number, result, last);
    for (const int reg : spread) free_.push_back(kernel_.slot_of[static_cast<size_t>(reg)]);
    kernel_.steps.push_back(resolved);
  }

  // Frees the tiles of operands used last; the result takes one of them where the elements are of
  // one size and the loop reads a whole tile of it: then it is exactly in place.
  void place_result(const TileProgram::Step& step, int number, int result, bool last) {
    const auto out = static_cast<size_t>(result);
    for (int k = 0; k < step.arity; ++k) {
      const auto operand = static_cast<size_t>(step.operand[k]);
      const bool again =
          std::find(step.operand, step.operand + k, step.operand[k]) != step.operand + k;
      if (again || last_use_[operand] != number || kernel_.slot_of[operand] < 0) continue;
      const bool in_place = !last && kernel_.slot_of[out] < 0 && !single_[operand] &&
                            kernel_.sizes[operand] == kernel_.sizes[out];
      if (in_place) {
        kernel_.slot_of[out] = kernel_.slot_of[operand];
      } else {
        freed_.push_back(kernel_.slot_of[operand]);
      }
    }
    if (!last && kernel_.slot_of[out] < 0) kernel_.slot_of[out] = new_tile();
    free_.insert(free_.end(), freed_.begin(), freed_.end());
    freed_.clear();
  }

  // The register's one element, repeated over a tile.
  int spread_register(int reg) {
    const int size = kernel_.sizes[static_cast<size_t>(reg)];
    const int wide = new_register(size);
    kernel_.slot_of[static_cast<size_t>(wide)] = new_tile();
    kernel_.steps.push_back({spread_loop(size), {}, {reg}, 1, wide, false});
    return wide;
  }

  const TileProgram& program_;
  ProgramKernel& kernel_;
  std::vector<bool> single_;
  std::vector<int> last_use_;  // by the program's register: number of the step
  std::vector<int> free_;      // tiles
  std::vector<int> freed_;     // tiles, from the next step on
};

double memory_ns(const ProgramKernel& kernel) {
  int bytes = kernel.sizes[static_cast<size_t>(kernel.result)];
  for (size_t k = 0; k < kernel.sources.size(); ++k) {
    if (kernel.sources[k] != Source::kSingle) bytes += kernel.sizes[k];
  }
  return 0.02 * bytes;
}

std::unique_ptr<Kernel> make_direct_kernel(const ProgramKernel& program) {
  const ResolvedStep& step = program.steps.front();
  auto kernel = std::make_unique<DirectKernel>();
  kernel->loop = step.loop;
  kernel->params = step.params;
  kernel->elements = program.space.elements;
  kernel->piece = program.piece;
  kernel->ns = program.pull_ns;
  kernel->arity = step.arity;
  for (int k = 0; k < step.arity; ++k) {
    const auto input = static_cast<size_t>(step.operand[k]);
    kernel->input[k] = step.operand[k];
    kernel->step[k] = program.sources[input] == Source::kSingle ? 0 : program.sizes[input];
  }
  kernel->output_step = program.sizes[static_cast<size_t>(step.result)];
  return kernel;
}

std::unique_ptr<Kernel> make_rows_kernel(const ProgramKernel& program) {
  const ResolvedStep& step = program.steps.front();
  auto kernel = std::make_unique<RowsKernel>();
  kernel->space = program.space;
  kernel->loop = step.loop;
  kernel->params = step.params;
  kernel->piece = program.piece;
  kernel->ns = program.pull_ns;
  kernel->arity = step.arity;
  for (int k = 0; k < step.arity; ++k) {
    const auto input = static_cast<size_t>(step.operand[k]);
    kernel->input[k] = step.operand[k];
    kernel->size[k] = program.sizes[input];
    kernel->column[k] = program.sources[input] == Source::kSingle ? 0 : program.sizes[input];
  }
  kernel->output_size = program.sizes[static_cast<size_t>(step.result)];
  return kernel;
}

}  // namespace

int TileProgram::add_input(DType dtype) {
  if (!steps_.empty()) throw internal_error("an input behind the first step of a program");
  dtypes_.push_back(dtype);
  return inputs_++;
}

int TileProgram::add_step(const Loops& loops, std::span<const int> operands, DType result, float ns,
                          const LoopParams& params) {
  if (operands.size() > kMaxOperands)
    throw internal_error("a step of ", operands.size(), " operands, at most ", kMaxOperands);
  Step step{loops, params, static_cast<int>(operands.size()), {}, result, ns};
  std::copy(operands.begin(), operands.end(), step.operand);
  steps_.push_back(step);
  dtypes_.push_back(result);
  return registers() - 1;
}

int TileProgram::add_conversion(int reg, DType to) {
  const DType from = dtype(reg);
  if (from == to) return reg;
  const Conversion* conversion = find_conversion(from, to);
  if (!conversion) throw unimplemented("no conversion from ", from, " to ", to);
  Loops loops;
  loops.variants[0] = conversion->loop;
  loops.registers = conversion->registers;
  const int operands[] = {reg};
  return add_step(loops, operands, to, conversion->ns);
}

std::unique_ptr<ProgramKernel> resolve_program(const TileProgram& program,
                                               std::span<const Shape* const> inputs,
                                               const Shape& output, int64_t parts) {
  auto kernel = std::make_unique<ProgramKernel>();
  kernel->space = make_tile_space(output, inputs);
  choose_sources(*kernel);
  kernel->streams = output.num_elements() * parts *
                        static_cast<int64_t>(dtype_size(program.dtype(program.registers() - 1))) >=
                    kLeastStreamedBytes;
  if (!Resolver(program, *kernel).resolve()) return nullptr;
  for (const TileProgram::Step& step : program.steps()) kernel->pull_ns += step.ns;
  kernel->pull_ns += memory_ns(*kernel);
  kernel->piece = piece_elements(kernel->space.elements, kernel->pull_ns);
  kernel->cost_ns = kernel->pull_ns * static_cast<double>(kernel->space.elements);
  return kernel;
}

std::unique_ptr<Kernel> make_tile_kernel(const TileProgram& program,
                                         std::span<const Shape* const> inputs,
                                         const Shape& output) {
  // No space to walk: its positions would have no extent to count by.
  if (output.num_elements() == 0) return make_kernel([](RunContext&) {});
  auto kernel = resolve_program(program, inputs, output);
  if (kernel == nullptr) return nullptr;
  if (kernel->registers == nullptr && kernel->steps.size() == 1 && kernel->by_rows &&
      kernel->slots == 0) {
    auto simple = kernel->space.rank == 1 ? make_direct_kernel(*kernel) : make_rows_kernel(*kernel);
    simple->cost_ns = kernel->cost_ns;
    return simple;
  }
  return kernel;
}

int add_tile_op(TileProgram& program, const TileOp& entry, const OpInstance& op,
                std::span<const int> operands) {
  int converted[kMaxOperands];
  for (size_t k = 0; k < operands.size(); ++k) {
    converted[k] = program.add_conversion(operands[k], compute_type(program.dtype(operands[k])));
  }
  LoopParams params;
  if (entry.read_params) entry.read_params(op, params);
  const int result = program.add_step(entry.loops, {converted, operands.size()},
                                      compute_type(op.output_type(0)), entry.ns, params);
  return program.add_conversion(result, op.output_type(0));
}

std::unique_ptr<Kernel> prepare_elementwise(const PrepareContext& c) {
  const OpInstance& op = c.op();
  const int arity = c.num_inputs();
  const TileOp* entry = find_tile_op(op);
  if (!entry) throw unimplemented("no loops for ", op.name(), " on ", c.input_type(arity - 1));
  TileProgram program;
  const Shape* shapes[kMaxOperands];
  int operands[kMaxOperands];
  for (int k = 0; k < arity; ++k) {
    shapes[k] = &c.input_shape(k);
    operands[k] = program.add_input(c.input_type(k));
  }
  const auto n = static_cast<size_t>(arity);
  add_tile_op(program, *entry, op, {operands, n});
  return make_tile_kernel(program, {shapes, n}, c.output_shape(0));
}

}  // namespace treenail::host
