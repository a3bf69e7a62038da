// SPDX-License-Identifier: Apache-2.0
// A group of element-wise ops as one tile program: each op's own loops on tiles, its result rounded
// to its own dtype before the next reads it, so that bits are those of the ops one by one.
#include "kernels/host/elementwise/fusion.h"

#include <algorithm>
#include <map>
#include <memory>
#include <mutex>
#include <utility>
#include <vector>

#include "framework/base/fork.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/elementwise/tile_kernels.h"

namespace treenail::host {
namespace {

struct FusibleOp {
  bool (*accepts)(const OpInstance& op);
  AddStepsFn steps;
};

struct Table {
  ForkMutex mutex;
  std::map<std::string_view, FusibleOp> ops;
};

Table& table() {
  static Table* const instance = new Table;  // never destroyed, as the kernels' tables
  return *instance;
}

int add_table_op(TileProgram& program, const OpInstance& op, std::span<const int> operands) {
  return add_tile_op(program, *find_tile_op(op), op, operands);
}

// Null where the op cannot be a step.
AddStepsFn find_steps(const OpInstance& op) {
  if (find_tile_op(op) != nullptr) return add_table_op;
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  const auto at = t.ops.find(op.name());
  return at != t.ops.end() && at->second.accepts(op) ? at->second.steps : nullptr;
}

bool accepts(const OpInstance& op) { return find_steps(op) != nullptr; }

TileProgram program_of(const ElementwiseGroup& group) {
  TileProgram program;
  std::vector<int> registers;  // by operand number
  for (const DType type : group.input_types) registers.push_back(program.add_input(type));
  for (const ElementwiseGroup::Step& step : group.steps) {
    std::vector<int> operands;
    for (const int operand : step.operands)
      operands.push_back(registers[static_cast<size_t>(operand)]);
    registers.push_back(find_steps(*step.op)(program, *step.op, operands));
  }
  return program;
}

std::vector<const Shape*> shapes_of(const ElementwiseGroup& group) {
  std::vector<const Shape*> shapes;
  for (const Shape& shape : group.input_shapes) shapes.push_back(&shape);
  return shapes;
}

std::unique_ptr<Kernel> prepare(const ElementwiseGroup& group) {
  return make_tile_kernel(program_of(group), shapes_of(group), group.output_shape);
}

// A kernel that finishes in pieces, and the group that takes each of them on, in place.
class FollowedKernel final : public Kernel {
 public:
  FollowedKernel(std::unique_ptr<Kernel> producer, std::unique_ptr<ProgramKernel> group, int from,
                 int producer_inputs)
      : producer_(std::move(producer)),
        group_(std::move(group)),
        from_(static_cast<size_t>(from)),
        producer_inputs_(producer_inputs) {
    scratch_bytes = producer_->scratch_bytes;
    cost_ns = producer_->cost_ns + group_->cost_ns;
    finishes_in_pieces = true;
    hands_over = producer_->hands_over;
  }

  void run(RunContext& c) const override {
    int32_t slots[kMostFusedInputs];  // make_tile_space() refuses more
    const int32_t* other = c.input_slots_ + producer_inputs_;
    for (size_t k = 0; k < group_->sources.size(); ++k)
      slots[k] = k == from_ ? c.output_slot_ : *other++;
    RunContext following = c;
    following.input_slots_ = slots;
    if (c.sink() != nullptr) return hand_over(c, following);
    const auto follow = [&](const ElementBlock& block) {
      group_->walk(following, block);
      c.finished(block);
    };
    const FunctionRef<void(const ElementBlock&)> ref(follow);
    RunContext producing = c;
    producing.follow_ = &ref;
    producer_->run(producing);
  }

 private:
  void hand_over(const RunContext& c, RunContext& following) const {
    const auto take = [&](const ElementBlock& block, void* elements) {
      group_->walk(following, block, elements, static_cast<int>(from_));
      (*c.sink())(block, elements);
    };
    const BlockSink sink(take);
    RunContext producing = c;
    producing.sink_ = &sink;
    producer_->run(producing);
  }

  std::unique_ptr<Kernel> producer_;
  std::unique_ptr<ProgramKernel> group_;
  size_t from_;
  int producer_inputs_;
};

// Pieces are cut for the producer's work: what costs more than that may want finer ones.
constexpr double kLittleNs = 20000;

std::unique_ptr<Kernel> prepare_following(const ElementwiseGroup& group, int from,
                                          std::unique_ptr<Kernel>& producer, int producer_inputs) {
  if (group.output_shape.num_elements() == 0) return nullptr;
  auto program = resolve_program(program_of(group), shapes_of(group), group.output_shape);
  if (program == nullptr) return nullptr;
  if (program->cost_ns > std::max(producer->cost_ns, kLittleNs)) return nullptr;
  return std::make_unique<FollowedKernel>(std::move(producer), std::move(program), from,
                                          producer_inputs);
}

// A kernel that reads in pieces, and the group that computes them.
class FedKernel final : public Kernel {
 public:
  FedKernel(std::unique_ptr<ProgramKernel> group, std::unique_ptr<Kernel> reader, int reader_inputs)
      : group_(std::move(group)), reader_(std::move(reader)), reader_inputs_(reader_inputs) {
    scratch_bytes = reader_->scratch_bytes;
    cost_ns = reader_->cost_ns + group_->cost_ns;
    finishes_in_pieces = reader_->finishes_in_pieces;
  }

  void run(RunContext& c) const override {
    int32_t slots[kMostFusedInputs];  // prepare_feeding() refuses more
    slots[0] = c.output_slot_;        // never read
    std::copy_n(c.input_slots_ + group_->sources.size(), reader_inputs_ - 1, slots + 1);
    RunContext computing = c;
    const auto read = [&](const ElementBlock& block, void* to) {
      group_->walk(computing, block, to);
    };
    const ElementSource source{read, group_->ns};
    RunContext reading = c;
    reading.input_slots_ = slots;
    reading.source_ = &source;
    reader_->run(reading);
  }

 private:
  std::unique_ptr<ProgramKernel> group_;
  std::unique_ptr<Kernel> reader_;
  int reader_inputs_;
};

std::unique_ptr<Kernel> prepare_feeding(const ElementwiseGroup& group,
                                        std::unique_ptr<Kernel>& reader, int reader_inputs) {
  if (group.output_shape.num_elements() == 0 || reader_inputs > kMostFusedInputs) return nullptr;
  auto program = resolve_program(program_of(group), shapes_of(group), group.output_shape);
  if (program == nullptr) return nullptr;
  return std::make_unique<FedKernel>(std::move(program), std::move(reader), reader_inputs);
}

}  // namespace

void add_fusible_op(std::string_view op, bool (*accepts)(const OpInstance& op), AddStepsFn steps) {
  Table& t = table();
  const std::lock_guard lock(t.mutex);
  t.ops.insert_or_assign(op, FusibleOp{accepts, steps});
}

void register_fusion_kernels(KernelRegistry& registry) {
  registry.set_fuser({accepts, prepare, prepare_following, prepare_feeding});
}

}  // namespace treenail::host
