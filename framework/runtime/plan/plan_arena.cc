// SPDX-License-Identifier: Apache-2.0
// Memory of a plan: which values lie in the arena and where, which outlive the run, and when values
// that a run sets are released.
#include <algorithm>
#include <numeric>
#include <utility>

#include "framework/base/interrupt.h"
#include "framework/runtime/kernel/async_kernel.h"
#include "framework/runtime/plan/plan_builder.h"
#include "framework/tensor/tensor_bytes.h"

namespace treenail {

int32_t PlanBuilder::root_of(int32_t i) const { return root_[static_cast<size_t>(i)]; }

// What is fetched or stored outlives the run: fresh memory instead of the arena.
void PlanBuilder::mark_escaping() {
  const auto escapes = [&](int32_t value) {
    const int32_t root = root_of(value);
    if (slot(root).kind == Slot::Kind::kArena) slot(root).kind = Slot::Kind::kRun;
  };
  for (const int32_t fetched : plan_->fetch_slots) escapes(fetched);
  for (const PlanNode& p : plan_->nodes) {
    if (p.fused) continue;
    for (size_t i = 0; i < p.inputs.size(); ++i) {
      if (p.node->op().input_def(static_cast<int>(i)).stored) escapes(p.inputs[i]);
    }
  }
  choose_input_memory();
  forward_memory();
  for (PlanNode& p : plan_->nodes) {
    if (p.kind == PlanNode::Kind::kView) {
      const int32_t out = p.first_output;
      if (slot(out).kind == Slot::Kind::kArena && slot(root_of(out)).kind == Slot::Kind::kArena) {
        p.kind = PlanNode::Kind::kOrder;  // the frame holds the view already
      } else {
        slot(out).kind = Slot::Kind::kRun;
      }
    }
    if (p.kind != PlanNode::Kind::kKernel || p.node->op().def().allocates_outputs) continue;
    p.fresh.resize(0);
    for (int i = 0; i < p.node->num_outputs(); ++i) {
      if (slot(p.first_output + i).kind == Slot::Kind::kRun && (i > 0 || p.forwarded < 0))
        p.fresh.push_back(p.first_output + i);
    }
  }
}

// What a kernel wants to find in memory of its own is computed there (AsyncKernel::input_memory).
void PlanBuilder::choose_input_memory() {
  for (const PlanNode& p : plan_->nodes) {
    if (p.kind != PlanNode::Kind::kKernel || !p.asynchronous || p.queued) continue;
    const auto allocate = async_kernel(*p.kernel, p.node->op()).input_memory;
    if (allocate == nullptr) continue;
    for (const int32_t input : p.inputs) {
      Slot& root = slot(root_of(input));
      if (root.kind != Slot::Kind::kArena || !memory(root.memory).device->is_host()) continue;
      root.kind = Slot::Kind::kRun;
      root.allocate = allocate;
    }
  }
}

// Fresh memory is handed on along operations that may work in place: a value that one node alone
// reads is computed where that node's result will live, instead of in the arena beside it.
void PlanBuilder::forward_memory() {
  std::vector<int32_t> readers(plan_->slots.size());              // by root slot
  std::vector<const PlanNode*> last_reader(plan_->slots.size());  // a node may read one twice
  for (const PlanNode& p : plan_->nodes) {
    for (const int32_t input : p.inputs) {
      if (std::exchange(last_reader[static_cast<size_t>(input)], &p) != &p)
        ++readers[static_cast<size_t>(root_of(input))];
    }
  }
  for (auto node = plan_->nodes.rbegin(); node != plan_->nodes.rend(); ++node) {
    PlanNode& p = *node;
    const int32_t out = p.first_output;
    if (p.kind != PlanNode::Kind::kKernel || p.node->op().def().allocates_outputs ||
        p.node->num_outputs() != 1 || slot(out).kind != Slot::Kind::kRun)
      continue;
    const auto take = [&](int32_t source) {
      if (slot(source).kind != Slot::Kind::kArena || root_of(source) != source ||
          readers[static_cast<size_t>(source)] != 1 || !same_extent(source, out))
        return false;
      slot(source).kind = Slot::Kind::kRun;
      slot(source).allocate = slot(out).allocate;
      p.forwarded = source;
      return true;
    };
    any_in_place(p, 0, take);
  }
}

// Whether `take` takes one of the inputs whose memory the output may have. A group of element-wise
// ops writes an element after its last read of it, so that any input of the output's shape will do;
// a kernel that it runs with may write before that.
bool PlanBuilder::any_in_place(const PlanNode& p, int output, FunctionRef<bool(int32_t)> take) {
  if (p.fused) return !p.apart && std::any_of(p.inputs.begin(), p.inputs.end(), take);
  const OpInstance& op = p.node->op();
  return std::any_of(op.def().in_place.begin(), op.def().in_place.end(), [&](const auto& pair) {
    return pair.second == op.output_arg(output) &&
           take(p.inputs[static_cast<size_t>(op.input_range(pair.first).first)]);
  });
}

bool PlanBuilder::same_extent(int32_t a, int32_t b) {
  return slot(a).dtype == slot(b).dtype && slot(a).shape == slot(b).shape &&
         slot(a).memory == slot(b).memory;
}

void PlanBuilder::plan_arena() {
  block_of_.assign(plan_->slots.size(), -1);
  std::vector<std::pair<size_t, size_t>> scratch;  // plan node, block
  for (size_t n = 0; n < plan_->nodes.size(); ++n) {
    PlanNode& p = plan_->nodes[n];
    poll_interrupt();
    add_users(p, static_cast<int32_t>(n));
    if (p.kind != PlanNode::Kind::kKernel) continue;
    for (int i = 0; i < p.node->num_outputs(); ++i) {
      const int32_t out = p.first_output + i;
      if (slot(out).kind == Slot::Kind::kArena) place_output(p, static_cast<int32_t>(n), i, out);
    }
    if (p.kernel->scratch_bytes != 0) {
      scratch.emplace_back(n, blocks_.size());
      add_block(p.memory, static_cast<int64_t>(p.kernel->scratch_bytes), static_cast<int32_t>(n));
    }
  }
  for (int32_t i = 0; i < static_cast<int32_t>(plan_->memories.size()); ++i)
    if (memory(i).used) plan_memory_of(i);
  for (const auto& [n, block] : scratch) plan_->nodes[n].scratch_offset = blocks_[block].offset;
  for (size_t i = 0; i < plan_->slots.size(); ++i) {
    if (plan_->slots[i].kind != Slot::Kind::kArena) continue;
    const int32_t block = block_of_[static_cast<size_t>(root_of(static_cast<int32_t>(i)))];
    plan_->slots[i].offset = blocks_[static_cast<size_t>(block)].offset;
  }
}

// The number of a new block.
int32_t PlanBuilder::add_block(int32_t memory, int64_t bytes, int32_t writer) {
  blocks_.push_back({bytes, {writer}});
  memory_of_block_.push_back(memory);
  return static_cast<int32_t>(blocks_.size()) - 1;
}

void PlanBuilder::plan_memory_of(int32_t number) {
  PlanMemory& there = memory(number);
  std::vector<size_t> own;
  for (size_t i = 0; i < blocks_.size(); ++i)
    if (memory_of_block_[i] == number) own.push_back(i);
  if (own.size() == blocks_.size()) {
    there.arena_bytes = plan_memory(blocks_, before_, plan_->in_order());
  } else {
    std::vector<MemoryBlock> blocks;
    for (const size_t i : own) blocks.push_back(blocks_[i]);
    there.arena_bytes = plan_memory(blocks, before_, plan_->in_order());
    for (size_t i = 0; i < own.size(); ++i) blocks_[own[i]].offset = blocks[i].offset;
  }
  there.peak_bytes = added_bytes(there.arena_bytes, fresh_bytes(number));
  if (there.device->is_host())
    there.peak_bytes = added_bytes(there.peak_bytes, input_memory_bytes());
}

// What lies in such memory at most at once: a value goes after its last use.
int64_t PlanBuilder::input_memory_bytes() const {
  std::vector<MemoryBlock> blocks;
  std::vector<int32_t> block_of(plan_->slots.size(), -1);
  const auto block_at = [&](int32_t i) -> int32_t& { return block_of[static_cast<size_t>(i)]; };
  for (size_t n = 0; n < plan_->nodes.size(); ++n) {
    const PlanNode& p = plan_->nodes[n];
    for (const int32_t input : p.inputs) {
      const int32_t block = block_at(root_of(input));
      if (block >= 0) blocks[static_cast<size_t>(block)].users.push_back(static_cast<int32_t>(n));
    }
    if (p.forwarded >= 0) block_at(p.first_output) = block_at(root_of(p.forwarded));
    for (const int32_t out : p.fresh) {
      const Slot& value = plan_->slots[static_cast<size_t>(out)];
      if (value.allocate == nullptr) continue;
      block_at(out) = static_cast<int32_t>(blocks.size());
      blocks.push_back({tensor_bytes(value.dtype, value.shape.shape()), {static_cast<int32_t>(n)}});
    }
  }
  return blocks.empty() ? 0 : plan_memory(blocks, before_, plan_->in_order());
}

// They are fetched, or views of them are, so that all are there at the end.
int64_t PlanBuilder::fresh_bytes(int32_t memory) const {
  int64_t sum = 0;
  for (const PlanNode& p : plan_->nodes) {
    for (const int32_t out : p.fresh) {
      const Slot& value = plan_->slots[static_cast<size_t>(out)];
      if (value.memory == memory && value.allocate == nullptr)
        sum = added_bytes(sum, tensor_bytes(value.dtype, value.shape.shape()));
    }
  }
  return sum;
}

void PlanBuilder::add_users(const PlanNode& p, int32_t n) {
  for (const int32_t input : p.inputs) {
    const int32_t block = block_of_[static_cast<size_t>(root_of(input))];
    if (block >= 0) blocks_[static_cast<size_t>(block)].users.push_back(n);
  }
}

// A new block, or that of an input that dies here, where the op permits it.
void PlanBuilder::place_output(const PlanNode& p, int32_t n, int output, int32_t out) {
  const auto take = [&](int32_t source) {
    if (!may_overwrite(p, n, source, out)) return false;
    block_of_[static_cast<size_t>(out)] = block_of_[static_cast<size_t>(root_of(source))];
    return true;
  };
  if (any_in_place(p, output, take)) return;
  const int64_t bytes = tensor_bytes(slot(out).dtype, slot(out).shape.shape());
  block_of_[static_cast<size_t>(out)] = add_block(slot(out).memory, std::max<int64_t>(bytes, 1), n);
}

bool PlanBuilder::may_overwrite(const PlanNode& p, int32_t n, int32_t source, int32_t out) {
  return block_of_[static_cast<size_t>(root_of(source))] >= 0 && same_extent(source, out) &&
         dies_at(source, n) && !seen_under_another_shape(p, source);
}

// No node other than n, and nothing after n, reads the bytes behind this slot; no other output of
// n lies there already.
bool PlanBuilder::dies_at(int32_t source, int32_t n) {
  if (last_use_.empty()) find_last_uses();
  const int32_t root = root_of(source);
  if (last_use_[static_cast<size_t>(root)] != n) return false;
  const auto& users = blocks_[static_cast<size_t>(block_of_[static_cast<size_t>(root)])].users;
  for (int i = 0; i < plan_->nodes[static_cast<size_t>(n)].node->num_outputs(); ++i) {
    const int32_t out = plan_->nodes[static_cast<size_t>(n)].first_output + i;
    if (block_of_[static_cast<size_t>(out)] == block_of_[static_cast<size_t>(root)]) return false;
  }
  if (plan_->in_order()) return true;
  return std::all_of(users.begin(), users.end(),
                     [&](int32_t user) { return user == n || waits(n, user); });
}

// An element-wise kernel may overwrite an input that it also reads under the same shape, not
// under another one.
bool PlanBuilder::seen_under_another_shape(const PlanNode& p, int32_t source) {
  return std::any_of(p.inputs.begin(), p.inputs.end(), [&](int32_t input) {
    return root_of(input) == root_of(source) && !(slot(input).shape == slot(source).shape);
  });
}

// Direct edges suffice here: a use that is an ancestor only through others keeps its own memory.
bool PlanBuilder::waits(int32_t n, int32_t earlier) const {
  const auto& before = before_[static_cast<size_t>(n)];
  return std::binary_search(before.begin(), before.end(), earlier);
}

// By root slot: the last plan node in canonical order that reads or writes bytes there. In-place
// chains are followed because each output has a slot of its own that takes over the block's later
// uses.
void PlanBuilder::find_last_uses() {
  last_use_.assign(plan_->slots.size(), -1);
  for (size_t n = 0; n < plan_->nodes.size(); ++n) {
    for (const int32_t input : plan_->nodes[n].inputs) {
      last_use_[static_cast<size_t>(root_of(input))] = static_cast<int32_t>(n);
    }
  }
}

// A value whose memory was handed on is read by the node that took it over alone, so that both may
// have one slot: a run then hands nothing on.
void PlanBuilder::share_slots() {
  std::vector<int32_t> shared(plan_->slots.size());
  std::iota(shared.begin(), shared.end(), 0);
  const auto rename = [&](int32_t& i) { i = shared[static_cast<size_t>(i)]; };
  for (PlanNode& p : plan_->nodes) {
    std::ranges::for_each(p.inputs, rename);
    if (p.forwarded < 0) continue;
    rename(p.forwarded);
    slot(p.first_output).kind = Slot::Kind::kUnused;
    shared[static_cast<size_t>(p.first_output)] = p.forwarded;
    p.first_output = p.forwarded;
  }
  std::ranges::for_each(plan_->fetch_slots, rename);
}

void PlanBuilder::count_uses() {
  std::vector<bool> fetched(plan_->slots.size());
  for (const int32_t slot : plan_->fetch_slots) fetched[static_cast<size_t>(slot)] = true;
  // A session's feeds are its caller's; arguments of a function are given for good.
  const auto counts = [&](int32_t i) {
    const Slot::Kind kind = slot(i).kind;
    return kind == Slot::Kind::kRun || (kind == Slot::Kind::kArg && !topology_.call_path.empty());
  };
  for (PlanNode& p : plan_->nodes) {
    for (const int32_t input : p.inputs) {
      if (!counts(input) || fetched[static_cast<size_t>(input)]) continue;
      if (input == p.forwarded) continue;  // lives on as the output
      p.counted.push_back(input);
      ++slot(input).uses;
    }
  }
  for (size_t i = 0; i < plan_->slots.size(); ++i) {
    const Slot::Kind kind = plan_->slots[i].kind;
    if (kind == Slot::Kind::kRun || kind == Slot::Kind::kArg)
      plan_->run_slots.push_back(static_cast<int32_t>(i));
  }
}

}  // namespace treenail
