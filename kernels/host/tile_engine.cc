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
#include "kernels/host/tile_space.h"

namespace treenail::host {
namespace {

// Below this inner extent operands are gathered into tiles over several rows instead of running
// loops row by row.
constexpr int64_t kShortestRow = 64;
// Elements per piece of parallel work, by cost: pieces of roughly 10 µs, so that a helper is worth
// waking for a few of them.
constexpr double kPieceNs = 10000;
constexpr int64_t kMostPieces = 256;
constexpr int kMaxRegisters = 24;

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

// One loop over memory: all operands are whole arrays or single elements.
class DirectKernel final : public Kernel {
 public:
  LoopFn loop = nullptr;
  LoopParams params;
  int64_t elements = 0;
  int64_t piece = 0;
  double ns = 0;
  int arity = 0;
  int input[kMaxOperands] = {};
  int64_t step[kMaxOperands] = {};  // bytes from element to element: 0 for a single element
  int64_t output_step = 0;

  void run(RunContext& c) const override {
    const void* operand[kMaxOperands] = {};
    for (int k = 0; k < arity; ++k) operand[k] = c.input(input[k]).raw();
    void* const y = c.output(0).raw();
    if (elements <= piece) {
      loop(y, operand[0], operand[1], operand[2], elements, params);
      return;
    }
    c.parallel_for(elements, piece, ns, [&](int64_t begin, int64_t end) {
      const auto at = [&](int k) {
        return operand[k] ? static_cast<const std::byte*>(operand[k]) + begin * step[k] : nullptr;
      };
      loop(static_cast<std::byte*>(y) + begin * output_step, at(0), at(1), at(2), end - begin,
           params);
    });
  }
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

// Where an input's elements come from.
enum class Source : uint8_t { kRow, kGather, kSingle };

class ProgramKernel final : public Kernel {
 public:
  TileSpace space;
  std::vector<ResolvedStep> steps;
  std::vector<Source> sources;  // per input
  std::vector<int> sizes;       // bytes of an element, per register
  std::vector<int> tile_of;     // per register: number of its tile, -1 for none
  int64_t tile_elements = 0;
  int64_t piece = 0;
  double ns = 0;
  int tiles = 0;
  bool by_rows = false;
  bool has_tiles = false;

  void run(RunContext& c) const override {
    if (space.elements == 0) return;
    if (space.elements <= piece) {
      walk(c, 0, space.elements);
      return;
    }
    c.parallel_for(space.elements, piece, ns,
                   [&](int64_t begin, int64_t end) { walk(c, begin, end); });
  }

 private:
  void walk(RunContext& c, int64_t begin, int64_t end) const {
    alignas(64) std::byte memory[kMaxRegisters * kTileBytes];
    void* pointer[kMaxRegisters];
    for (size_t r = 0; r < tile_of.size(); ++r) {
      pointer[r] = tile_of[r] < 0 ? nullptr : memory + tile_of[r] * kTileBytes;
    }
    if (by_rows) {
      walk_rows(c, begin, end, pointer);
    } else {
      walk_gathered(c, begin, end, pointer);
    }
  }

  void walk_rows(RunContext& c, int64_t begin, int64_t end, void** pointer) const {
    const int64_t inner = space.inner();
    OuterPosition position(space, begin / inner);
    int64_t column = begin % inner;
    while (begin < end) {
      const int64_t n = std::min({inner - column, end - begin, tile_elements});
      for (size_t k = 0; k < sources.size(); ++k) {
        const int64_t element =
            position.offset(static_cast<int>(k)) + (sources[k] == Source::kRow ? column : 0);
        pointer[k] = input_element(c, static_cast<int>(k), element);
      }
      run_tile(c, begin, n, pointer);
      begin += n;
      column += n;
      if (column == inner) {
        column = 0;
        position.advance();
      }
    }
  }

  void walk_gathered(RunContext& c, int64_t begin, int64_t end, void** pointer) const {
    for (; begin < end; begin += tile_elements) {
      const int64_t n = std::min(end - begin, tile_elements);
      for (size_t k = 0; k < sources.size(); ++k) {
        const int input = static_cast<int>(k);
        if (sources[k] == Source::kGather) {
          gather_tile(space, input, c.input(input).raw(), sizes[k], begin, n, pointer[k]);
        } else {
          pointer[k] = input_element(c, input, sources[k] == Source::kRow ? begin : 0);
        }
      }
      run_tile(c, begin, n, pointer);
    }
  }

  void* input_element(RunContext& c, int input, int64_t element) const {
    // Loops read operands only; one table of pointers serves operands and results.
    return const_cast<std::byte*>(static_cast<const std::byte*>(c.input(input).raw())) +
           element * sizes[static_cast<size_t>(input)];
  }

  void run_tile(RunContext& c, int64_t begin, int64_t n, void** pointer) const {
    const size_t output = static_cast<size_t>(steps.back().result);
    pointer[output] = static_cast<std::byte*>(c.output(0).raw()) + begin * sizes[output];
    for (const ResolvedStep& s : steps) {
      const void* operand[kMaxOperands] = {};
      for (int k = 0; k < s.arity; ++k) operand[k] = pointer[s.operand[k]];
      s.loop(pointer[s.result], operand[0], operand[1], operand[2], s.single ? 1 : n, s.params);
    }
  }
};

// Decides where each input's elements come from.
void choose_sources(ProgramKernel& kernel) {
  const TileSpace& space = kernel.space;
  kernel.by_rows = space.rank == 1 || space.inner() >= kShortestRow;
  for (const TileSpace::Operand& operand : space.operands) {
    Source source;
    if (kernel.by_rows) {
      source = operand.stride[space.rank - 1] == 0 ? Source::kSingle : Source::kRow;
    } else if (operand.single) {
      source = Source::kSingle;
    } else {
      source = operand.contiguous ? Source::kRow : Source::kGather;
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
      if (kernel.sources[k] == Source::kGather) give_tile(static_cast<int>(k));
    }
  }

  void resolve() {
    const int inputs = program_.inputs();
    const auto steps = program_.steps();
    for (size_t i = 0; i < steps.size(); ++i) {
      const bool last = i + 1 == steps.size();
      resolve_step(steps[i], inputs + static_cast<int>(i), last);
    }
    kernel_.has_tiles = kernel_.tiles > 0;
    const int widest = *std::max_element(kernel_.sizes.begin(), kernel_.sizes.end());
    kernel_.tile_elements = kernel_.has_tiles ? kTileBytes / widest : INT64_MAX;
  }

 private:
  int new_register(int element_size) {
    kernel_.sizes.push_back(element_size);
    kernel_.tile_of.push_back(-1);
    single_.push_back(false);
    if (kernel_.sizes.size() > kMaxRegisters)
      throw internal_error("a tile program needs too many registers");
    return static_cast<int>(kernel_.sizes.size()) - 1;
  }

  void give_tile(int reg) { kernel_.tile_of[static_cast<size_t>(reg)] = kernel_.tiles++; }

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
    if (!last) give_tile(result);
    kernel_.steps.push_back(resolved);
  }

  // The register's one element, repeated over a tile.
  int spread_register(int reg) {
    const int size = kernel_.sizes[static_cast<size_t>(reg)];
    const int wide = new_register(size);
    give_tile(wide);
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
    const size_t input = static_cast<size_t>(step.operand[k]);
    kernel->input[k] = step.operand[k];
    kernel->step[k] = program.sources[input] == Source::kSingle ? 0 : program.sizes[input];
  }
  kernel->output_step = program.sizes[static_cast<size_t>(step.result)];
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
  auto kernel = std::make_unique<ProgramKernel>();
  kernel->space = make_tile_space(output, inputs);
  choose_sources(*kernel);
  Resolver(program, *kernel).resolve();
  for (const TileProgram::Step& step : program.steps()) kernel->ns += step.ns;
  kernel->ns += memory_ns(*kernel);
  kernel->piece = piece_elements(kernel->space.elements, kernel->ns);
  kernel->cost_ns = kernel->ns * static_cast<double>(kernel->space.elements);
  if (kernel->steps.size() == 1 && kernel->space.rank == 1 && !kernel->has_tiles) {
    auto direct = make_direct_kernel(*kernel);
    direct->cost_ns = kernel->cost_ns;
    return direct;
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
