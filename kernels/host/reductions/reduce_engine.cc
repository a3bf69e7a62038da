// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/reductions/reduce_engine.h"

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <map>
#include <mutex>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "kernels/host/fusion/block_kernel.h"
#include "kernels/host/reductions/merged_axes.h"

namespace treenail::host {
namespace {

struct Table {
  ForkMutex mutex;
  std::map<std::pair<std::string_view, DType>, ReduceOp> ops;
};
Table& table() {
  static Table* const instance = new Table;  // never destroyed: level libraries stay loaded
  return *instance;
}

// Stack memory of one piece of work, for widened elements and results to be finished.
constexpr int64_t kWorkBytes = 32 * 1024;
constexpr double kPieceNs = 10000;
// Elements that are computed instead of read stay in the first-level cache, beside what they are
// computed from.
constexpr int64_t kComputedBytes = 16 * 1024;
static_assert(kComputedBytes >= kRowBlock * 16);  // a block of the largest elements
// Shorter rows are measured no faster for it; parts of columns are slower: they would be computed
// row by row, each some 25 ns dearer than in a sweep.
constexpr int64_t kShortestComputedRow = 128;

// One change of type, or two in a row.
struct Widening {
  LoopFn first = nullptr;
  LoopFn second = nullptr;
  int64_t from_size = 0;
  explicit operator bool() const { return first != nullptr; }

  void operator()(const std::byte* from, int64_t n, std::byte* to, int64_t to_size) const {
    const LoopParams none;
    if (!second) return first(to, from, nullptr, nullptr, n, none);
    alignas(64) std::byte between[4096];
    constexpr int64_t kStep =
        1024;  // at most 4 bytes each: what is widened twice comes through int32
    for (int64_t i = 0; i < n; i += kStep) {
      const int64_t m = std::min(kStep, n - i);
      first(between, from + i * from_size, nullptr, nullptr, m, none);
      second(to + i * to_size, between, nullptr, nullptr, m, none);
    }
  }
};

// Directly, or by way of a compute type: int8 → int32 → int64 and back.
Widening widening(DType from, DType to) {
  Widening w;
  w.from_size = static_cast<int64_t>(dtype_size(from));
  if (from == to) return w;
  if (const Conversion* direct = find_conversion(from, to)) {
    w.first = direct->loop;
    return w;
  }
  const DType between = compute_type(from) != from ? compute_type(from) : compute_type(to);
  const Conversion* first = find_conversion(from, between);
  const Conversion* second = find_conversion(between, to);
  if (!first || !second) throw unimplemented("no conversion from ", from, " to ", to);
  w.first = first->loop;
  w.second = second->loop;
  return w;
}

// [outer][reduced][inner] → [outer][blocks][inner].
struct Pass {
  int64_t outer;
  int64_t reduced;
  int64_t inner;
  int64_t block;  // elements of the reduced axis that become one
  int64_t blocks() const { return std::max<int64_t>(1, (reduced + block - 1) / block); }
  ReduceLoops loops;
  double ns;
  bool first;
  bool last;
  int64_t source;  // offset in scratch, unless first
  int64_t target;  // offset in scratch, unless last
};

class ReduceKernel final : public BlockKernel {
 public:
  std::vector<Pass> passes;
  Widening widen;  // from the stored type, in the first pass
  LoopFn finish = nullptr;
  LoopParams finish_params;
  LoopFn narrow[2] = {};  // to the stored type, in the last pass; one or two steps
  int64_t stored_size = 0;
  int64_t size = 0;           // of the compute type
  int64_t empty_outputs = 0;  // with nothing to reduce: that many identities

  void run(RunContext& c) const override { reduce(c, nullptr); }
  void consume(RunContext& c, const BlockStream& stream) const override { reduce(c, &stream); }

  ReduceLoops empty_loops{};

 private:
  // What a pass reads: memory, or elements computed when asked for.
  struct Elements {
    const std::byte* memory;
    const BlockStream* computed;
    double ns() const { return computed != nullptr ? computed->pull_ns() : 0; }
  };

  void reduce(RunContext& c, const BlockStream* stream) const {
    if (passes.empty()) {
      if (empty_outputs > 0) run_empty(c);
      return;
    }
    for (const Pass& pass : passes) {
      Elements source{nullptr, pass.first ? stream : nullptr};
      if (source.computed == nullptr) {
        source.memory = pass.first ? static_cast<const std::byte*>(c.input(0).raw())
                                   : c.scratch() + pass.source;
      }
      auto* target =
          pass.last ? static_cast<std::byte*>(c.output(0).raw()) : c.scratch() + pass.target;
      if (pass.inner == 1) {
        run_rows(c, pass, source, target);
      } else {
        run_columns(c, pass, source.memory, target);
      }
    }
  }

  bool finishes(const Pass& pass) const { return pass.last && (finish || narrow[0]); }
  int64_t source_size(const Pass& pass) const { return pass.first ? stored_size : size; }

  void run_empty(RunContext& c) const {
    alignas(64) std::byte work[kWorkBytes];
    auto* target = static_cast<std::byte*>(c.output(0).raw());
    const int64_t step = kWorkBytes / size;
    for (int64_t i = 0; i < empty_outputs; i += step) {
      const int64_t n = std::min(step, empty_outputs - i);
      empty_loops.fill(work, n);
      store(work, n, target + i * stored_size, true);
    }
  }

  // n results from `work` to where they belong, finished and narrowed if they are the last.
  void store(std::byte* work, int64_t n, std::byte* target, bool last) const {
    const LoopParams none;
    if (last && finish) finish(work, work, nullptr, nullptr, n, finish_params);
    if (!last || !narrow[0]) {
      std::memcpy(target, work, static_cast<size_t>(n * size));
    } else if (!narrow[1]) {
      narrow[0](target, work, nullptr, nullptr, n, none);
    } else {
      alignas(64) std::byte between[kWorkBytes];
      narrow[0](between, work, nullptr, nullptr, n, none);
      narrow[1](target, between, nullptr, nullptr, n, none);
    }
  }

  static void over(RunContext& c, int64_t items, double ns_per_item,
                   FunctionRef<void(int64_t, int64_t)> body) {
    const auto grain =
        std::max<int64_t>(1, static_cast<int64_t>(kPieceNs / std::max(ns_per_item, 0.5)));
    if (items <= grain) return body(0, items);
    c.parallel_for(items, grain, ns_per_item, body);
  }

  // Rows of `reduced` contiguous elements; item: one block of one row.
  void run_rows(RunContext& c, const Pass& pass, const Elements& source, std::byte* target) const {
    const int64_t blocks = pass.blocks();
    const double ns =
        (pass.ns + source.ns()) * static_cast<double>(std::min(pass.reduced, pass.block)) + 2;
    over(c, pass.outer * blocks, ns, [&](int64_t begin, int64_t end) {
      while (begin < end) {
        const int64_t row = begin / blocks, block = begin % blocks;
        // Blocks of one length, one after the other in memory: whole rows if a row is one block,
        // else full blocks of one row.
        int64_t count, length;
        if (blocks == 1) {
          count = end - begin, length = pass.reduced;
        } else {
          const int64_t full = pass.reduced / pass.block;
          const bool is_full = block < full;
          count = is_full ? std::min(end - begin, full - block) : 1;
          length = is_full ? pass.block : pass.reduced - full * pass.block;
        }
        const int64_t at = row * pass.reduced + block * pass.block;
        reduce_rows(pass, source, at, count, length, begin, target);
        begin += count;
      }
    });
  }

  // `rows` rows of n elements, the first from element `at` on.
  void reduce_rows(const Pass& pass, const Elements& source, int64_t at, int64_t rows, int64_t n,
                   int64_t index, std::byte* target) const {
    const bool converts = pass.first && widen;
    if (source.computed == nullptr && !converts && !finishes(pass)) {
      pass.loops.rows(source.memory + at * size, rows, n, target + index * size);
      return;
    }
    alignas(64) std::byte computed[kComputedBytes];
    alignas(64) std::byte wide[kWorkBytes];
    alignas(64) std::byte results[4096];
    const int64_t bytes = source.computed != nullptr ? kComputedBytes : kWorkBytes;
    const int64_t fit = std::max<int64_t>(1, bytes / (size * std::max<int64_t>(n, 1)));
    const int64_t step = std::min(fit, static_cast<int64_t>(sizeof results) / size);
    for (int64_t r = 0; r < rows; r += step) {
      const int64_t m = std::min(step, rows - r);
      const std::byte* from = computed;
      if (source.computed != nullptr) {
        source.computed->pull(at + r * n, at + (r + m) * n, computed);
      } else {
        from = source.memory + (at + r * n) * source_size(pass);
      }
      if (converts) {
        widen(from, m * n, wide, size);
        from = wide;
      }
      pass.loops.rows(from, m, n, results);
      store(results, m, target + (index + r) * (pass.last ? stored_size : size), pass.last);
    }
  }

  // Columns over `reduced` rows of `inner` elements; item: one strip of one block.
  void run_columns(RunContext& c, const Pass& pass, const std::byte* source,
                   std::byte* target) const {
    const int64_t blocks = pass.blocks();
    const int64_t strip = strip_width(pass), strips = (pass.inner + strip - 1) / strip;
    const double ns = pass.ns * static_cast<double>(std::min(pass.reduced, pass.block) * strip) + 5;
    over(c, pass.outer * blocks * strips, ns, [&](int64_t begin, int64_t end) {
      for (int64_t item = begin; item < end; ++item) {
        const int64_t at = item / strips, left = item % strips * strip;
        const int64_t outer = at / blocks, block = at % blocks;
        const int64_t first_row = block * pass.block,
                      rows = std::min(pass.block, pass.reduced - first_row);
        const std::byte* x =
            source + ((outer * pass.reduced + first_row) * pass.inner + left) * source_size(pass);
        reduce_columns(pass, x, rows, std::min(strip, pass.inner - left), at * pass.inner + left,
                       target);
      }
    });
  }

  int64_t strip_width(const Pass& pass) const {
    const bool converts = pass.first && widen;
    const int64_t rows = std::min(pass.reduced, pass.block);
    if (converts) return std::clamp<int64_t>(kWorkBytes / (size * rows), 1, pass.inner);
    const int64_t most = finishes(pass) ? 4096 / size : 4096;
    return std::min(pass.inner, most);
  }

  void reduce_columns(const Pass& pass, const std::byte* x, int64_t rows, int64_t m, int64_t index,
                      std::byte* target) const {
    const bool converts = pass.first && widen;
    if (!converts && !finishes(pass)) {
      pass.loops.columns(x, pass.inner, rows, m, target + index * size);
      return;
    }
    alignas(64) std::byte wide[kWorkBytes];
    alignas(64) std::byte results[kWorkBytes];
    int64_t stride = pass.inner;
    if (converts) {
      for (int64_t r = 0; r < rows; ++r)
        widen(x + r * stride * stored_size, m, wide + r * m * size, size);
      x = wide, stride = m;
    }
    pass.loops.columns(x, stride, rows, m, results);
    store(results, m, target + index * (pass.last ? stored_size : size), pass.last);
  }
};

using Axis = MergedAxis;

int64_t column_block(int64_t inner) { return std::max(kColumnBlock, kRowBlock / inner / 16 * 16); }

class Planner {
 public:
  Planner(ReduceKernel& kernel, const ReduceOp& first, const ReduceOp& then)
      : kernel_(kernel), first_(first), then_(then) {}

  void plan(std::vector<Axis> axes) {
    if (axes.empty() ||
        (axes.size() == 1 && !axes[0].reduced)) {  // nothing to reduce: one row of everything
      add(1, 1, axes.empty() ? 1 : axes[0].extent);
    }
    while (true) {
      const auto innermost =
          std::find_if(axes.rbegin(), axes.rend(), [](const Axis& a) { return a.reduced; });
      if (innermost == axes.rend()) break;
      const auto at = static_cast<size_t>(axes.rend() - innermost) - 1;
      int64_t outer = 1, inner = 1;
      for (size_t i = 0; i < axes.size(); ++i) {
        if (i < at) outer *= axes[i].extent;
        if (i > at) inner *= axes[i].extent;
      }
      int64_t extent = axes[at].extent;
      do {
        add(outer, extent, inner);
        extent = kernel_.passes.back().blocks();
      } while (extent > 1);
      axes.erase(axes.begin() + static_cast<std::ptrdiff_t>(at));
    }
    kernel_.passes.back().last = true;
    place();
  }

 private:
  void add(int64_t outer, int64_t reduced, int64_t inner) {
    const bool first = kernel_.passes.empty();
    const ReduceOp& op = first ? first_ : then_;
    const int64_t block = inner == 1 ? kRowBlock : column_block(inner);
    kernel_.passes.push_back({outer, reduced, inner, block, op.loops, op.ns, first, false, 0, 0});
  }

  // Partial results alternate between two areas of scratch: the first pass leaves the most.
  void place() {
    int64_t largest[2] = {0, 0};
    for (size_t i = 0; i < kernel_.passes.size(); ++i) {
      const Pass& pass = kernel_.passes[i];
      if (!pass.last)
        largest[i % 2] =
            std::max(largest[i % 2], pass.outer * pass.blocks() * pass.inner * kernel_.size);
    }
    const int64_t second = (largest[0] + 63) / 64 * 64;
    for (size_t i = 0; i < kernel_.passes.size(); ++i) {
      kernel_.passes[i].target = i % 2 == 0 ? 0 : second;
      kernel_.passes[i].source = i % 2 == 0 ? second : 0;
    }
    kernel_.scratch_bytes = static_cast<size_t>(second + largest[1]);
  }

  ReduceKernel& kernel_;
  const ReduceOp& first_;
  const ReduceOp& then_;
};

}  // namespace

void add_reduce_ops(std::span<const ReduceOp> ops) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  for (const ReduceOp& op : ops) t.ops.insert_or_assign({op.name, op.dtype}, op);
}

const ReduceOp* find_reduce_op(std::string_view name, DType dtype) {
  Table& t = table();
  std::lock_guard lock(t.mutex);
  const auto hit = t.ops.find({name, dtype});
  return hit == t.ops.end() ? nullptr : &hit->second;
}

std::unique_ptr<Kernel> make_reduce_kernel(const ReducePlan& plan, const Shape& shape,
                                           const std::vector<bool>& reduced) {
  const ReduceOp* first = find_reduce_op(plan.first, plan.compute);
  const ReduceOp* then = find_reduce_op(plan.then, plan.compute);
  if (!first || !then) throw unimplemented("no reduction loops for ", plan.compute);
  auto kernel = std::make_unique<ReduceKernel>();
  kernel->size = static_cast<int64_t>(dtype_size(plan.compute));
  kernel->stored_size = static_cast<int64_t>(dtype_size(plan.stored));
  kernel->widen = widening(plan.stored, plan.compute);
  const Widening back = widening(plan.compute, plan.stored);
  kernel->narrow[0] = back.first;
  kernel->narrow[1] = back.second;
  kernel->finish = plan.finish;
  kernel->finish_params = plan.finish_params;
  kernel->cost_ns = (first->ns + 0.02 * static_cast<double>(kernel->stored_size)) *
                    static_cast<double>(shape.num_elements());
  if (shape.num_elements() > 0) {
    Planner(*kernel, *first, *then).plan(merged_axes(shape, reduced));
    const Pass& reads = kernel->passes.front();
    if (reads.inner == 1 && reads.reduced >= kShortestComputedRow) {
      kernel->streamed_input = 0;
      kernel->takes = BlockKernel::Stream::kPulled;
    }
    return kernel;
  }
  kernel->empty_outputs = 1;
  for (int i = 0; i < shape.rank(); ++i) {
    if (!reduced[static_cast<size_t>(i)]) kernel->empty_outputs *= shape.dim(i);
  }
  kernel->empty_loops = then->loops;
  return kernel;
}

}  // namespace treenail::host
