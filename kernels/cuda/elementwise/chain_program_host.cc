// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/elementwise/chain_program_host.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <utility>

#include "framework/base/error.h"
#include "kernels/cuda/elementwise/kernel_choice_host.h"
#include "kernels/cuda/elementwise/operands_host.h"

namespace treenail::cuda {
namespace {

using gpu::Chain;
using gpu::ChainCode;
using gpu::ChainStep;
using gpu::ChainType;

std::optional<ChainType> chain_type(DType dtype) {
  switch (dtype) {
    case DType::kFloat32:
      return ChainType::kFloat32;
    case DType::kFloat16:
      return ChainType::kFloat16;
    case DType::kBFloat16:
      return ChainType::kBFloat16;
    case DType::kBool:
      return ChainType::kBool;
    default:
      return std::nullopt;
  }
}

struct ChainOp {
  std::string_view op;
  bool of_truth_values;
  ChainCode code;
};
constexpr bool is_bool(std::string_view type) { return type == "bool"; }
constexpr ChainOp kChainOps[] = {
#define TN_CHAIN_ROW(code, op, T, ...) {#op, is_bool(#T), ChainCode::k##code},
    TN_CHAIN_OPS
#undef TN_CHAIN_ROW
};

// Of ops that are one step by a row of their own.
std::optional<ChainCode> row_of(const OpInstance& op) {
  const bool of_truth_values = op.input_type(0) == DType::kBool;
  for (const ChainOp& row : kChainOps)
    if (row.op == op.name() && row.of_truth_values == of_truth_values) return row.code;
  return std::nullopt;
}

// The others: BiasAdd is an addition whose second operand lies along the channels.
enum class Special { kNone, kCast, kSelect, kBiasAdd, kAddN };
Special special(std::string_view op) {
  if (op == "Cast") return Special::kCast;
  if (op == "Select") return Special::kSelect;
  if (op == "BiasAdd") return Special::kBiasAdd;
  if (op == "AddN") return Special::kAddN;
  return Special::kNone;
}

bool has_chain_types(const OpInstance& op) {
  for (int i = 0; i < op.num_inputs(); ++i)
    if (!chain_type(op.input_type(i))) return false;
  return op.num_outputs() == 1 && chain_type(op.output_type(0)).has_value();
}

// A bias of [C] as it lies against a value of [N, C, H, W].
Shape bias_as_broadcast(const OpInstance& op, const Shape& bias, int value_rank) {
  Shape shape = bias;
  if (op.get_string("data_format") != "NCHW") return shape;
  for (int axis = 2; axis < value_rank; ++axis) shape = shape.inserted(shape.rank(), 1);
  return shape;
}

// Which slot holds what a step computed, from that step to the last that reads it.
class Slots {
 public:
  explicit Slots(size_t steps) : last_use_(steps, kNever), slot_(steps, gpu::kNoChainSlot) {}

  static constexpr size_t kNever = 0;
  // Step `reader` reads step `value`; one that comes right before needs no slot.
  void read(size_t value, size_t reader) {
    if (reader > value + 1) last_use_[value] = std::max(last_use_[value], reader);
  }
  // Of a step, all of whose operands have been taken; called in order.
  uint8_t give(size_t step) {
    if (last_use_[step] == kNever) return gpu::kNoChainSlot;
    const auto free =
        std::ranges::find_if(holder_, [&](size_t holder) { return last_use_[holder] <= step; });
    const auto at = static_cast<size_t>(free - holder_.begin());
    if (free == holder_.end()) holder_.push_back(step);
    holder_[at] = step;
    slot_[step] = static_cast<uint8_t>(at);
    return slot_[step];
  }
  uint8_t slot_of(size_t step) const { return slot_[step]; }
  size_t count() const { return holder_.size(); }

 private:
  std::vector<size_t> last_use_;  // by step
  std::vector<uint8_t> slot_;     // by step
  std::vector<size_t> holder_;    // by slot: the step whose result it was given last
};

class Builder {
 public:
  explicit Builder(const ElementwiseGroup& group) : group_(group) {}

  std::optional<ChainProgram> build() {
    for (const ElementwiseGroup::Step& step : group_.steps) add(step);
    put_in_order();
    if (steps_.size() > gpu::kMostChainSteps || views_.size() > gpu::kMostChainInputs) return {};
    Chain& chain = program_.chain;
    chain.steps = static_cast<int32_t>(steps_.size());
    place_results();
    if (program_.slots > gpu::kMostChainSlots || !describe_inputs()) return {};
    return std::move(program_);
  }

 private:
  // An input of the chain, or a step.
  struct Operand {
    bool is_step;
    size_t number;
  };
  struct Step {
    ChainStep step;
    std::vector<Operand> from;
  };

  // An input of the group as it lies against the result: one that is a bias and an operand besides
  // counts twice.
  Operand operand(int number, const Shape* view = nullptr) {
    const auto inputs = static_cast<int>(group_.input_types.size());
    if (number >= inputs) return {true, result_of_[static_cast<size_t>(number - inputs)]};
    const Shape& shape = view != nullptr ? *view : group_.input_shapes[static_cast<size_t>(number)];
    for (size_t i = 0; i < views_.size(); ++i)
      if (program_.inputs[i] == number && views_[i] == shape) return {false, i};
    program_.inputs.push_back(number);
    views_.push_back(shape);
    return {false, views_.size() - 1};
  }

  Operand add_step(ChainCode code, DType type, std::vector<Operand> from, double value = 0) {
    Step step;
    step.step.code = code;
    step.step.type = *chain_type(type);
    step.step.operands = static_cast<uint8_t>(from.size());
    step.step.value = static_cast<float>(value);
    step.from = std::move(from);
    steps_.push_back(std::move(step));
    return {true, steps_.size() - 1};
  }

  void add(const ElementwiseGroup::Step& step) {
    const OpInstance& op = *step.op;
    std::vector<Operand> from;
    Shape bias;
    for (size_t i = 0; i < step.operands.size(); ++i) {
      const bool is_bias = special(op.name()) == Special::kBiasAdd && i == 1;
      if (is_bias) {
        bias = bias_as_broadcast(op, group_.input_shapes[static_cast<size_t>(step.operands[i])],
                                 group_.output_shape.rank());
      }
      from.push_back(operand(step.operands[i], is_bias ? &bias : nullptr));
    }
    result_of_.push_back(add_steps(op, std::move(from)).number);
  }

  Operand add_steps(const OpInstance& op, std::vector<Operand> from) {
    const DType type = op.output_type(0);
    switch (special(op.name())) {
      case Special::kCast: {
        const bool asks = type == DType::kBool && op.input_type(0) != DType::kBool;
        return add_step(asks ? ChainCode::kIsTrue : ChainCode::kCopy, type, std::move(from));
      }
      case Special::kSelect:
        return add_step(ChainCode::kSelect, type, std::move(from));
      case Special::kBiasAdd:
        return add_step(ChainCode::kAdd, type, std::move(from));
      case Special::kAddN:
        return add_sum(type, from);
      case Special::kNone:
        break;
    }
    return add_step(*row_of(op), type, std::move(from), value_of(op));
  }

  // In the order given, rounded at the end.
  Operand add_sum(DType type, const std::vector<Operand>& from) {
    if (from.size() == 1) return add_step(ChainCode::kCopy, type, from);
    Operand sum = from[0];
    for (size_t i = 1; i < from.size(); ++i) {
      const bool last = i + 1 == from.size();
      sum = add_step(ChainCode::kAdd, last ? type : DType::kFloat32, {sum, from[i]});
    }
    return sum;
  }

  // Each step right before the first that reads it, so that few results wait.
  void put_in_order() {
    std::vector<Step> ordered;
    std::vector<size_t> place(steps_.size(), steps_.size());
    emit(steps_.size() - 1, ordered, place);
    steps_ = std::move(ordered);
  }
  void emit(size_t number, std::vector<Step>& ordered, std::vector<size_t>& place) {
    if (place[number] != steps_.size()) return;
    Step& step = steps_[number];
    for (Operand& from : step.from) {
      if (!from.is_step) continue;
      emit(from.number, ordered, place);
      from.number = place[from.number];
    }
    place[number] = ordered.size();
    ordered.push_back(std::move(step));
  }

  void place_results() {
    Slots slots(steps_.size());
    for (size_t s = 0; s < steps_.size(); ++s)
      for (const Operand& from : steps_[s].from)
        if (from.is_step) slots.read(from.number, s);
    for (size_t s = 0; s < steps_.size(); ++s) {
      ChainStep& step = program_.chain.step[s] = steps_[s].step;
      for (size_t i = 0; i < steps_[s].from.size(); ++i) {
        const Operand& from = steps_[s].from[i];
        const size_t number = !from.is_step ? from.number
                              : from.number + 1 == s
                                  ? gpu::kChainLast
                                  : gpu::kFirstChainSlot + slots.slot_of(from.number);
        step.from[i] = static_cast<uint8_t>(number);
      }
      step.slot = slots.give(s);
    }
    program_.slots = static_cast<int>(slots.count());
  }

  // False where they lie in more ways than a launch can say.
  bool describe_inputs() {
    Chain& chain = program_.chain;
    try {
      chain.how = broadcast_of<gpu::kMostChainInputs>(group_.output_shape, views_);
    } catch (const Error&) {
      return false;
    }
    for (size_t i = 0; i < views_.size(); ++i) {
      const DType type = group_.input_types[static_cast<size_t>(program_.inputs[i])];
      chain.input[i].type = *chain_type(type);
      chain.input[i].together = lies_together(static_cast<int>(i));
    }
    return true;
  }

  bool lies_together(int input) const {
    const auto& how = program_.chain.how;
    const int64_t* const stride = how.stride[input];
    if (std::all_of(stride, stride + how.rank, [](int64_t s) { return s == 0; })) return true;
    if (how.rank > 1 && how.size[0].size % gpu::kChainGroup != 0) return false;
    return stride[0] == 0 ||
           (stride[0] == 1 && std::all_of(stride + 1, stride + how.rank,
                                          [](int64_t s) { return s % gpu::kChainGroup == 0; }));
  }

  const ElementwiseGroup& group_;
  ChainProgram program_;
  std::vector<Shape> views_;  // by input of the chain
  std::vector<Step> steps_;
  std::vector<size_t> result_of_;  // by step of the group: the step of the chain
};

}  // namespace

bool is_chain_op(const OpInstance& op) {
  return has_chain_types(op) && (special(op.name()) != Special::kNone || row_of(op).has_value());
}

std::optional<ChainProgram> chain_program(const ElementwiseGroup& group) {
  return Builder(group).build();
}

}  // namespace treenail::cuda
