// SPDX-License-Identifier: Apache-2.0
// AddN: the sum of many tensors, a tile at a time, so that each is read once and the sum stays in
// cache. Added in the order given, in the compute type, and narrowed at the end. Of lists, element
// by element.
#include <algorithm>
#include <compare>
#include <cstddef>
#include <cstring>
#include <memory>
#include <numeric>
#include <span>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/runtime/kernel/kernel.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/tensor/tensor_list.h"
#include "kernels/host/elementwise/fusion.h"
#include "kernels/host/elementwise/sum.h"
#include "kernels/host/elementwise/tile_engine.h"
#include "kernels/host/elementwise/tile_loops.h"

namespace treenail::host {
namespace {

class AddNKernel final : public Kernel {
 public:
  int inputs = 0;
  int64_t elements = 0;
  int64_t size = 0;          // bytes of an element as stored
  int64_t compute_size = 0;  // and as added
  LoopFn add = nullptr;
  LoopFn widen = nullptr;  // absent when stored types are added as they are
  LoopFn narrow = nullptr;

  void run(RunContext& c) const override {
    constexpr int64_t kPiece = 64 * 1024;
    if (elements == 0) return;
    c.parallel_for(elements, kPiece, 0.1 * inputs, [&](int64_t begin, int64_t end) {
      const int64_t tile = kTileBytes / compute_size;
      for (; begin < end; begin += tile) sum_tile(c, begin, std::min(tile, end - begin));
    });
  }

 private:
  void sum_tile(RunContext& c, int64_t begin, int64_t n) const {
    alignas(64) std::byte sum[kTileBytes];
    alignas(64) std::byte wide[kTileBytes];
    const LoopParams none;
    auto* const output = static_cast<std::byte*>(c.output(0).raw()) + begin * size;
    const auto input = [&](int i, std::byte* into) -> const std::byte* {
      const auto* stored = static_cast<const std::byte*>(c.input(i).raw()) + begin * size;
      if (!widen) return stored;
      widen(into, stored, nullptr, nullptr, n, none);
      return into;
    };
    const std::byte* first = input(0, sum);
    if (inputs == 1) {
      std::memmove(output, static_cast<const std::byte*>(c.input(0).raw()) + begin * size,
                   static_cast<size_t>(n * size));
      return;
    }
    std::byte* const total = narrow ? sum : output;
    for (int i = 1; i < inputs; ++i) {
      add(total, i == 1 ? first : total, input(i, wide), nullptr, n, none);
    }
    if (narrow) narrow(output, sum, nullptr, nullptr, n, none);
  }
};

std::unique_ptr<AddNKernel> adding(DType stored, int64_t elements, int inputs) {
  const DType compute = compute_type(stored);
  const TileOp* add = find_tile_op("Add", compute);
  if (!add) throw unimplemented("no loops to add ", stored);
  auto kernel = std::make_unique<AddNKernel>();
  kernel->inputs = inputs;
  kernel->elements = elements;
  kernel->size = static_cast<int64_t>(dtype_size(stored));
  kernel->compute_size = static_cast<int64_t>(dtype_size(compute));
  kernel->add = add->loops.variants[0];
  if (stored != compute) {
    kernel->widen = find_conversion(stored, compute)->loop;
    kernel->narrow = find_conversion(compute, stored)->loop;
  }
  kernel->cost_ns = 0.1 * static_cast<double>(elements) * inputs;
  return kernel;
}

// --- Lists ------------------------------------------------------------------------------------

Tensor sum_of_lists(const RunContext& c, std::vector<Tensor> handles);

}  // namespace

Tensor sum_of_values(const RunContext& c, std::span<const Tensor> set) {
  if (set.empty()) return Tensor();
  if (set.size() == 1) return set[0];
  if (set[0].dtype() == DType::kVariant) return sum_of_lists(c, {set.begin(), set.end()});
  for (const Tensor& element : set) {
    if (element.shape() == set[0].shape()) continue;
    throw invalid_argument("values to add have shapes ", set[0].shape(), " and ", element.shape(),
                           ", which must agree");
  }
  std::vector<Tensor> values(set.begin(), set.end());
  values.emplace_back(set[0].dtype(), set[0].shape());
  std::vector<int32_t> slots(values.size());
  std::iota(slots.begin(), slots.end(), 0);
  RunContext inner = c;
  inner.values_ = values.data();
  inner.input_slots_ = slots.data();
  inner.output_slot_ = slots.back();
  adding(set[0].dtype(), set[0].num_elements(), static_cast<int>(set.size()))->run(inner);
  return values.back();
}

namespace {

// That into which the others are added: the longest one that nobody else holds, else the longest.
size_t base_of(std::span<const Tensor> handles) {
  size_t base = 0;
  const auto rank = [&](size_t i) {
    const TensorList& list = TensorList::in(handles[i]);
    return std::pair(handles[i].exclusive() && list.unique(), list.end_set() - list.first_set());
  };
  for (size_t i = 1; i < handles.size(); ++i)
    if (rank(base) < rank(i)) base = i;
  return base;
}

// An element that is set: number i of list n.
struct SetElement {
  int64_t i;
  size_t n;
  auto operator<=>(const SetElement&) const = default;
};

// Of all lists but the base, by their numbers, then by list.
std::vector<SetElement> set_elements(std::span<const TensorList* const> lists, size_t base) {
  std::vector<SetElement> found;
  for (size_t n = 0; n < lists.size(); ++n) {
    if (n == base) continue;
    for (int64_t i = lists[n]->first_set(); i < lists[n]->end_set(); ++i)
      if (lists[n]->at(i).defined()) found.push_back({i, n});
  }
  std::sort(found.begin(), found.end());
  return found;
}

// A list that is shorter has elements that are not set. What is added to what is the same whichever
// list is the base: elements are summed in the order of the lists.
Tensor sum_of_lists(const RunContext& c, std::vector<Tensor> handles) {
  const DType dtype = TensorList::in(handles[0]).element_dtype;
  std::vector<const TensorList*> lists;
  for (const Tensor& handle : handles) lists.push_back(&TensorList::in(handle, dtype));
  const size_t base = base_of(handles);
  const OwnList own = own_list(std::move(handles[base]));
  lists[base] = own.list;
  for (const TensorList* list : lists) {
    if (list->size() > own.list->size()) own.list->resize(list->size());
    if (!(list->element_shape == own.list->element_shape)) own.list->element_shape = PartialShape();
  }
  const std::vector<SetElement> found = set_elements(lists, base);
  for (auto at = found.begin(); at != found.end();) {
    const int64_t i = at->i;
    std::vector<Tensor> set;
    Tensor own_element = own.list->at(i);
    const auto add_own = [&] {
      if (own_element.defined()) set.push_back(std::exchange(own_element, Tensor()));
    };
    for (; at != found.end() && at->i == i; ++at) {
      if (at->n > base) add_own();
      set.push_back(lists[at->n]->at(i));
    }
    add_own();
    own.list->set(i, sum_of_values(c, set));
  }
  return own.handle;
}

std::unique_ptr<Kernel> prepare_add_lists(const PrepareContext& p) {
  return make_kernel([inputs = p.num_inputs()](RunContext& c) {
    std::vector<Tensor> handles;
    for (int i = 0; i < inputs; ++i) handles.push_back(c.take_input(i));
    c.set_output(0, sum_of_lists(c, std::move(handles)));
  });
}

// --- As part of a group -----------------------------------------------------------------------

int add_sum(TileProgram& program, const OpInstance& op, std::span<const int> operands) {
  const DType stored = op.output_type(0), compute = compute_type(stored);
  const TileOp& add = *find_tile_op("Add", compute);
  int sum = program.add_conversion(operands[0], compute);
  for (const int operand : operands.subspan(1)) {
    const int both[] = {sum, program.add_conversion(operand, compute)};
    sum = program.add_step(add.loops, both, compute, add.ns);
  }
  return program.add_conversion(sum, stored);
}

// One input is a copy, which is no step.
bool adds(const OpInstance& op) {
  return op.num_inputs() > 1 && find_tile_op("Add", compute_type(op.output_type(0))) != nullptr;
}

std::unique_ptr<Kernel> prepare_add_n(const PrepareContext& c) {
  if (c.output_type(0) == DType::kVariant) return prepare_add_lists(c);
  return adding(c.output_type(0), c.output_shape(0).num_elements(), c.num_inputs());
}

}  // namespace

void register_add_n_kernels(KernelRegistry& registry) {
  registry.add("AddN", {}, prepare_add_n);
  add_fusible_op("AddN", adds, add_sum);
}

}  // namespace treenail::host
