// SPDX-License-Identifier: Apache-2.0
// Add, Equal and NotEqual on strings: the operators among framework/ops/arithmetic.cc and
// comparison.cc that strings have. Both operands broadcast.
#include <cstdint>
#include <cstring>
#include <limits>
#include <memory>
#include <string_view>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/elementwise/tile_space.h"
#include "kernels/host/strings/string_loops.h"

namespace treenail::host {
namespace {

// body(i, x, y) for each element i of the output, with the strings that belong to it.
template <class F>
void each_pair(RunContext& c, const TileSpace& space, double each_ns, F&& body) {
  const int64_t inner = space.inner();
  const auto step = [&](int operand) { return space.operands[operand].stride[space.rank - 1]; };
  c.parallel_for(space.elements, kStringGrain, each_ns, [&](int64_t begin, int64_t end) {
    OuterPosition position(space, begin / inner);
    int64_t column = begin % inner;
    for (int64_t i = begin; i < end; ++i) {
      body(i, string_at(c.input(0), position.offset(0) + column * step(0)),
           string_at(c.input(1), position.offset(1) + column * step(1)));
      if (++column < inner) continue;
      column = 0;
      position.advance();
    }
  });
}

TileSpace space_of(const PrepareContext& p) {
  const Shape* shapes[] = {&p.input_shape(0), &p.input_shape(1)};
  return make_tile_space(p.output_shape(0), shapes);
}

StringElement put_together(std::string_view x, std::string_view y) {
  uint64_t bytes;
  if (__builtin_add_overflow(x.size(), y.size(), &bytes) ||
      bytes > static_cast<uint64_t>(std::numeric_limits<int64_t>::max()) / 2)
    throw resource_exhausted("a string of ", x.size(), " + ", y.size(), " bytes");
  if (bytes == 0) return StringElement();
  char* to = nullptr;
  StringElement element = StringElement::of_size(bytes, &to);
  if (!x.empty()) std::memcpy(to, x.data(), x.size());
  if (!y.empty()) std::memcpy(to + x.size(), y.data(), y.size());
  return element;
}

// out[i] = compute(x, y), of all pairs. `each_ns`: what one takes.
template <class T, class Compute>
std::unique_ptr<Kernel> prepare_pairs(const PrepareContext& p, double each_ns, Compute compute) {
  TileSpace space = space_of(p);
  const double cost = 50 + each_ns * static_cast<double>(space.elements);
  return make_kernel(
      [space = std::move(space), each_ns, compute](RunContext& c) {
        if (space.elements == 0) return;
        T* out = c.output(0).data<T>();
        each_pair(c, space, each_ns, [&](int64_t i, std::string_view x, std::string_view y) {
          out[i] = compute(x, y);
        });
      },
      cost);
}

std::unique_ptr<Kernel> prepare_add(const PrepareContext& p) {
  return prepare_pairs<StringElement>(p, 60, put_together);
}

template <bool kEqual>
std::unique_ptr<Kernel> prepare_compare(const PrepareContext& p) {
  return prepare_pairs<bool>(
      p, 10, [](std::string_view x, std::string_view y) { return (x == y) == kEqual; });
}

}  // namespace

void register_string_operators_kernels(KernelRegistry& r) {
  const TypeConstraint strings = {"T", {DType::kString}};
  r.add("Add", {strings}, prepare_add);
  r.add("Equal", {strings}, prepare_compare<true>);
  r.add("NotEqual", {strings}, prepare_compare<false>);
}

}  // namespace treenail::host
