// SPDX-License-Identifier: Apache-2.0
// Walking: which elements each call of a loop gets. Cutting is free to differ from run to run and
// machine to machine, for an element's bits do not depend on its neighbours.
#include "kernels/host/elementwise/tile_kernels.h"

#include <algorithm>
#include <cstring>

namespace treenail::host {

void DirectKernel::run(RunContext& c) const {
  const void* operand[kMaxOperands] = {};
  for (int k = 0; k < arity; ++k) operand[k] = c.input(input[k]).raw();
  void* const y = c.output(0).raw();
  if (elements <= piece) {
    loop(y, operand[0], operand[1], operand[2], elements, params);
    return;
  }
  c.parallel_for(elements, piece, ns, [&](int64_t begin, int64_t end) {
    const auto at = [&](int k) {
      const auto* base = static_cast<const std::byte*>(operand[k]);
      return base ? base + begin * step[k] : nullptr;
    };
    loop(static_cast<std::byte*>(y) + begin * output_step, at(0), at(1), at(2), end - begin,
         params);
  });
}

void RowsKernel::run(RunContext& c) const {
  if (space.elements <= piece) return walk(c, 0, space.elements);
  c.parallel_for(space.elements, piece, ns,
                 [&](int64_t begin, int64_t end) { walk(c, begin, end); });
}

void RowsKernel::walk(RunContext& c, int64_t begin, int64_t end) const {
  const std::byte* base[kMaxOperands] = {};
  for (int k = 0; k < arity; ++k) base[k] = static_cast<const std::byte*>(c.input(input[k]).raw());
  auto* y = static_cast<std::byte*>(c.output(0).raw()) + begin * output_size;
  const int64_t inner = space.inner();
  OuterPosition position(space, begin / inner);
  int64_t at = begin % inner;
  while (begin < end) {
    const int64_t n = std::min(inner - at, end - begin);
    const std::byte* operand[kMaxOperands] = {};
    for (int k = 0; k < arity; ++k) {
      operand[k] = base[k] + position.offset(input[k]) * size[k] + at * column[k];
    }
    loop(y, operand[0], operand[1], operand[2], n, params);
    y += n * output_size;
    begin += n;
    at = 0;
    position.advance();
  }
}

// One piece of work under way: where inputs and the output lie, and where each register is now.
struct ProgramKernel::Walk {
  alignas(64) std::byte slots[kMostTiles * kTileBytes];
  const std::byte* base[kMostTileValues];
  void* pointer[kMostTileValues];
  std::byte* output;  // of element `first`
  int64_t first;
  bool streaming;  // only of a register program
  RegisterContext registers;
  alignas(16) std::byte singles[kMostFusedOperands][16];  // what steps on single elements compute
};

void ProgramKernel::run(RunContext& c) const {
  auto* const output = static_cast<std::byte*>(c.output(0).raw());
  const int64_t size = sizes[static_cast<size_t>(result)];
  const auto body = [&](int64_t begin, int64_t end) {
    walk(c, begin, end, output + begin * size, streams);
  };
  if (space.elements <= piece) return body(0, space.elements);
  c.parallel_for(space.elements, piece, pull_ns, body);
}

void ProgramKernel::pull(RunContext& c, int64_t begin, int64_t end, void* to) const {
  walk(c, begin, end, to, false);
}

void ProgramKernel::walk(RunContext& c, int64_t begin, int64_t end, void* to,
                         bool streaming) const {
  Walk w;
  w.output = static_cast<std::byte*>(to);
  w.first = begin;
  w.streaming = streaming && registers != nullptr;
  for (size_t r = 0; r < slot_of.size(); ++r) {
    w.pointer[r] = slot_of[r] < 0 ? nullptr : w.slots + slot_of[r] * tile_stride;
  }
  if (registers != nullptr) {
    registers->begin(w.registers);
    for (size_t k = 0; k < steps.size(); ++k) w.pointer[steps[k].result] = w.singles[k];
  }
  for (size_t k = 0; k < sources.size(); ++k)
    w.base[k] = static_cast<const std::byte*>(c.input(static_cast<int>(k)).raw());
  if (by_rows) {
    walk_rows(w, begin, end);
  } else {
    fill_periodic(w, begin, end - begin);
    walk_tiles(w, begin, end);
  }
  if (w.streaming) registers->machine->fence();
}

void ProgramKernel::point_inputs(Walk& w, const OuterPosition& position, int64_t column) const {
  for (size_t k = 0; k < sources.size(); ++k) {
    const int64_t within = sources[k] == Source::kArray ? column : 0;
    const int64_t element = position.offset(static_cast<int>(k)) + within;
    // Loops only read operands; one table of pointers serves operands and results.
    w.pointer[k] = const_cast<std::byte*>(w.base[k] + element * sizes[k]);
  }
}

void ProgramKernel::walk_rows(Walk& w, int64_t begin, int64_t end) const {
  const int64_t inner = space.inner();
  OuterPosition position(space, begin / inner);
  int64_t column = begin % inner;
  while (begin < end) {
    const int64_t n = std::min({inner - column, end - begin, tile_elements});
    point_inputs(w, position, column);
    run_tile(w, begin, n);
    begin += n;
    column += n;
    if (column == inner) {
      column = 0;
      position.advance();
    }
  }
}

namespace {

// Fills `bytes` with the first `period` of them again and again.
void repeat(std::byte* tile, int64_t period, int64_t bytes) {
  for (int64_t done = period; done < bytes; done *= 2) {
    std::memcpy(tile + done, tile, static_cast<size_t>(std::min(done, bytes - done)));
  }
}

}  // namespace

void ProgramKernel::fill_periodic(Walk& w, int64_t begin, int64_t count) const {
  const int64_t inner = space.inner();
  for (size_t k = 0; k < sources.size(); ++k) {
    const int input = static_cast<int>(k);
    if (sources[k] == Source::kPeriodic) {
      const int64_t n = std::min(count, tile_elements / inner * inner);
      const int64_t first = std::min(n, inner);
      gather_tile(space, input, w.base[k], sizes[k], begin, first, w.pointer[k]);
      repeat(static_cast<std::byte*>(w.pointer[k]), first * sizes[k], n * sizes[k]);
    } else if (sources[k] == Source::kSingle) {
      w.pointer[k] = const_cast<std::byte*>(w.base[k]);
    }
  }
}

void ProgramKernel::walk_tiles(Walk& w, int64_t begin, int64_t end) const {
  const int64_t inner = space.inner();
  // Whole rows per tile keep a periodic operand's tile valid from one tile to the next.
  const int64_t step = tile_elements / inner * inner;
  for (; begin < end; begin += step) {
    const int64_t n = std::min(end - begin, step);
    for (size_t k = 0; k < sources.size(); ++k) {
      const int input = static_cast<int>(k);
      if (sources[k] == Source::kGather) {
        gather_tile(space, input, w.base[k], sizes[k], begin, n, w.pointer[k]);
      } else if (sources[k] == Source::kArray) {
        w.pointer[k] = const_cast<std::byte*>(w.base[k] + begin * sizes[k]);
      }
    }
    run_tile(w, begin, n);
  }
}

void ProgramKernel::run_tile(Walk& w, int64_t begin, int64_t n) const {
  const auto output = static_cast<size_t>(result);
  w.pointer[output] = w.output + (begin - w.first) * sizes[output];
  for (const ResolvedStep& s : steps) {
    const void* operand[kMaxOperands] = {};
    for (int k = 0; k < s.arity; ++k) operand[k] = w.pointer[s.operand[k]];
    s.loop(w.pointer[s.result], operand[0], operand[1], operand[2], s.single ? 1 : n, s.params);
  }
  if (registers != nullptr) {
    registers->run(w.registers, w.pointer, static_cast<std::byte*>(w.pointer[output]), n,
                   w.streaming);
  }
}

}  // namespace treenail::host
