// SPDX-License-Identifier: Apache-2.0
// A program is resolved against shapes once, when the kernel is prepared: which operands are
// arrays, single elements or need gathering, which loop variant each step takes, which registers
// need a tile. A run only walks tiles.
#include "kernels/host/tile_engine.h"

#include <algorithm>
#include <cassert>
#include <cstddef>
#include <cstring>

#include "framework/base/error.h"
#include "kernels/host/tile_kernels.h"
#include "kernels/host/tile_space.h"

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

// Builds the resolved steps; `single` says per register whether it is one element.
class Resolver {
 public:
  Resolver(const TileProgram& program, ProgramKernel& kernel) : program_(program), kernel_(kernel) {
    for (int r = 0; r < program.registers(); ++r)
      new_register(static_cast<int>(dtype_size(program.dtype(r))));
    for (size_t k = 0; k < kernel.sources.size(); ++k) {
      single_[k] = kernel.sources[k] == Source::kSingle;
      if (kernel.sources[k] == Source::kGather || kernel.sources[k] == Source::kPeriodic) {
        give_slot(static_cast<int>(k));
      }
    }
  }

  void resolve() {
    const int inputs = program_.inputs();
    const auto steps = program_.steps();
    for (size_t i = 0; i < steps.size(); ++i) {
      const bool last = i + 1 == steps.size();
      resolve_step(steps[i], inputs + static_cast<int>(i), last);
    }
    const int widest = *std::max_element(kernel_.sizes.begin(), kernel_.sizes.end());
    kernel_.tile_elements = kernel_.slots > 0 || !kernel_.by_rows ? kTileBytes / widest : INT64_MAX;
  }

 private:
  int new_register(int element_size) {
    kernel_.sizes.push_back(element_size);
    kernel_.slot_of.push_back(-1);
    single_.push_back(false);
    if (kernel_.sizes.size() > kMaxRegisters)
      throw internal_error("a tile program needs too many registers");
    return static_cast<int>(kernel_.sizes.size()) - 1;
  }

  void give_slot(int reg) { kernel_.slot_of[static_cast<size_t>(reg)] = kernel_.slots++; }

  void resolve_step(const TileProgram::Step& step, int result, bool last) {
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
    if (!resolved.loop) {
      for (int k = 0; k < step.arity; ++k) {
        if (mask & (1u << k)) resolved.operand[k] = spread_register(step.operand[k]);
      }
      resolved.loop = step.loops.variants[0];
    }
    single_[static_cast<size_t>(result)] = resolved.single;
    if (!last) give_slot(result);
    kernel_.steps.push_back(resolved);
  }

  // The register's one element, repeated over a tile.
  int spread_register(int reg) {
    const int size = kernel_.sizes[static_cast<size_t>(reg)];
    const int wide = new_register(size);
    give_slot(wide);
    kernel_.steps.push_back({spread_loop(size), {}, {reg}, 1, wide, false});
    return wide;
  }

  const TileProgram& program_;
  ProgramKernel& kernel_;
  std::vector<bool> single_;
};

double memory_ns(const ProgramKernel& kernel) {
  int bytes = kernel.sizes[static_cast<size_t>(kernel.steps.back().result)];
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
  kernel->ns = program.ns;
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
  kernel->ns = program.ns;
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
  assert(steps_.empty());
  dtypes_.push_back(dtype);
  return inputs_++;
}

int TileProgram::add_step(const Loops& loops, std::span<const int> operands, DType result, float ns,
                          const LoopParams& params) {
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
  const int operands[] = {reg};
  return add_step(loops, operands, to, conversion->ns);
}

std::unique_ptr<Kernel> make_tile_kernel(const TileProgram& program,
                                         std::span<const Shape* const> inputs,
                                         const Shape& output) {
  // No space to walk: its positions would have no extent to count by.
  if (output.num_elements() == 0) return make_kernel([](RunContext&) {});
  auto kernel = std::make_unique<ProgramKernel>();
  kernel->space = make_tile_space(output, inputs);
  choose_sources(*kernel);
  Resolver(program, *kernel).resolve();
  for (const TileProgram::Step& step : program.steps()) kernel->ns += step.ns;
  kernel->ns += memory_ns(*kernel);
  kernel->piece = piece_elements(kernel->space.elements, kernel->ns);
  kernel->cost_ns = kernel->ns * static_cast<double>(kernel->space.elements);
  if (kernel->steps.size() == 1 && kernel->by_rows && kernel->slots == 0) {
    auto simple = kernel->space.rank == 1 ? make_direct_kernel(*kernel) : make_rows_kernel(*kernel);
    simple->cost_ns = kernel->cost_ns;
    return simple;
  }
  return kernel;
}

std::unique_ptr<Kernel> prepare_elementwise(const PrepareContext& c) {
  const OpInstance& op = c.op();
  const int arity = c.num_inputs();
  const TileOp* entry = find_tile_op(op.name(), compute_type(c.input_type(arity - 1)));
  if (!entry) throw unimplemented("no loops for ", op.name(), " on ", c.input_type(arity - 1));
  TileProgram program;
  const Shape* shapes[kMaxOperands];
  int operands[kMaxOperands];
  for (int k = 0; k < arity; ++k) {
    shapes[k] = &c.input_shape(k);
    operands[k] = program.add_input(c.input_type(k));
  }
  for (int k = 0; k < arity; ++k)
    operands[k] = program.add_conversion(operands[k], compute_type(c.input_type(k)));
  LoopParams params;
  if (entry->read_params) entry->read_params(op, params);
  const int result = program.add_step(entry->loops, {operands, static_cast<size_t>(arity)},
                                      compute_type(c.output_type(0)), entry->ns, params);
  program.add_conversion(result, c.output_type(0));
  return make_tile_kernel(program, {shapes, static_cast<size_t>(arity)}, c.output_shape(0));
}

}  // namespace treenail::host
