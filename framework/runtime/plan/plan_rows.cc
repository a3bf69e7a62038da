// SPDX-License-Identifier: Apache-2.0
// Which element-wise nodes and reductions run as one kernel, some rows at a time (row_kernel.h): a
// softmax, a layer norm, a loss per row, written with elementary ops. All see the same rows, on one
// device, and one value leaves.
#include <algorithm>
#include <set>
#include <utility>
#include <vector>

#include "framework/base/interrupt.h"
#include "framework/runtime/kernel/kernel_fusion.h"
#include "framework/runtime/plan/plan_builder.h"
#include "framework/runtime/plan/row_kernel.h"
#include "framework/tensor/tensor.h"

namespace treenail {
namespace {

// Chains whose largest value is smaller stay apart: it is in a cache when it is read again, and
// longer sweeps are the faster ones there.
constexpr int64_t kLeastBytes = 32 << 20;
// Of a block of rows all that lies between the stages, unless one row has more.
constexpr int64_t kBlockBytes = kRowBufferBytes / 2;

// The leading axes of a shape make the rows.
struct RowSpace {
  std::vector<int64_t> leading;
  int rank = 0;
  int32_t device = 0;

  int64_t rows() const {
    int64_t rows = 1;
    for (const int64_t extent : leading) rows *= extent;
    return rows;
  }
  // Does every row have its part of the value, whatever that is?
  bool begins(const Shape& shape) const {
    return shape.rank() >= static_cast<int>(leading.size()) &&
           std::equal(leading.begin(), leading.end(), shape.dims().begin());
  }
  // Is such a part, broadcast, still the row's own?
  bool has_part(const Shape& shape) const { return shape.rank() == rank && begins(shape); }
  // Is the value the same for all rows?
  bool is_shared(const Shape& shape) const {
    const int within = rank - static_cast<int>(leading.size());
    for (int i = 0; i < shape.rank() - within; ++i)
      if (shape.dim(i) != 1) return false;
    return shape.rank() <= rank;
  }
  // The shape of what so many rows have of it; of an input, which may be shared.
  Shape part_of_input(const Shape& shape, int64_t rows) const {
    return has_part(shape) ? part(shape, rows) : shape;
  }
  Shape part(const Shape& shape, int64_t rows) const {
    Shape part = shape;
    for (size_t i = 0; i < leading.size(); ++i)
      part = part.with_dim(static_cast<int>(i), i == 0 ? rows : 1);
    return part;
  }
};

}  // namespace

class RowChainFinder {
 public:
  explicit RowChainFinder(PlanBuilder& builder) : b_(builder), unit_of_(b_.states_.size(), -1) {}

  void find() {
    const auto reduces = [this](const Node* node) { return is_reduction(*node); };
    if (std::ranges::none_of(b_.topology_.order, reduces)) return;
    make_units();
    for (size_t i = 0; i < units_.size(); ++i) {
      poll_interrupt();
      if (!units_[i].taken && units_[i].group.members.empty()) find_chain_from(static_cast<int>(i));
    }
  }

 private:
  // What computes one value: element-wise nodes, or a reduction.
  struct Unit {
    FusionGroup group;               // of the former
    std::vector<const Node*> nodes;  // the last one's value leaves
    std::vector<Output> inputs;
    bool taken = false;
    int producer = -1;  // of a reduction: the unit that its stage computes along with it
  };

  Unit& unit(int i) { return units_[static_cast<size_t>(i)]; }
  const Node& last(int i) { return *unit(i).nodes.back(); }
  Shape shape_of(const Output& value) { return b_.info(value).shape.shape(); }
  Output value_of(const Unit& unit) { return {const_cast<Node*>(unit.nodes.back()), 0}; }
  int unit_of(const Node& node) const { return unit_of_[PlanBuilder::index(node)]; }
  bool runs(const Node& node) { return b_.state(node).needed && !b_.state(node).given; }

  static bool is_reduction(const Node& node) { return node.op().def().reduction; }
  // What drops axes can only be the last of a chain: its value is not broadcast by rows any more.
  bool drops_axes(int i) {
    return unit(i).group.members.empty() && !last(i).op().get_bool("keep_dims");
  }

  // In canonical order of their last nodes.
  void make_units() {
    for (const Node* node : b_.topology_.order) {
      const PlanBuilder::NodeState& s = b_.state(*node);
      if (!runs(*node) || s.fused || node->num_outputs() != 1 || !b_.can_prepare(*node) ||
          b_.fuser_of(*node) == nullptr || !b_.topology_.device_of(*node).is_host())
        continue;
      if (s.group >= 0) {
        const FusionGroup& group = b_.groups_[static_cast<size_t>(s.group)].group;
        add_unit({group, group.members, group.inputs});
      } else if (b_.fuser_of(*node)->accepts(node->op())) {
        const FusionGroup group = group_of_one(*node);
        add_unit({group, group.members, group.inputs});
      } else if (is_reduction(*node)) {
        add_unit({{}, {node}, {node->inputs().begin(), node->inputs().end()}});
      }
    }
  }

  void add_unit(Unit unit) {
    for (const Node* node : unit.nodes)
      unit_of_[PlanBuilder::index(*node)] = static_cast<int>(units_.size());
    units_.push_back(std::move(unit));
  }

  // The first axis that the reduction reduces; its input's rank where there is none.
  int first_axis(const Node& reduction) {
    const int rank = shape_of(reduction.input(0)).rank();
    int64_t first = rank;
    int64_t storage[kMaxRank];
    for (const int64_t axis : as_int64(*b_.info(reduction.input(1)).constant, storage))
      first = std::min(first, axis < 0 ? axis + rank : axis);
    return static_cast<int>(first);
  }

  bool may_join(int i, const RowSpace& space) {
    const Unit& u = unit(i);
    const Shape shape = shape_of(value_of(u));
    if (u.taken || b_.device_of(last(i)) != space.device ||
        !(drops_axes(i) ? space.begins(shape) : space.has_part(shape)))
      return false;
    if (u.group.members.empty()) {
      return space.has_part(shape_of(u.inputs[0])) &&
             first_axis(last(i)) >= static_cast<int>(space.leading.size());
    }
    return std::ranges::all_of(u.inputs, [&](const Output& input) {
      return space.has_part(shape_of(input)) || space.is_shared(shape_of(input));
    });
  }

  // The units that read a unit's value; -1: something else does, or too many for a chain, so that
  // finding takes a time linear in the graph.
  std::set<int> consumers_of(int i) {
    std::set<int> found;
    if (last(i).consumers().size() > 4 * kMostRowStages) return {-1};
    for (const Node* consumer : last(i).consumers()) {
      const bool reads = std::ranges::any_of(
          consumer->inputs(), [&](const Output& input) { return input.node == &last(i); });
      if (reads && runs(*consumer)) found.insert(unit_of(*consumer));
    }
    return found;
  }

  void find_chain_from(int first) {
    const Shape shape = shape_of(last(first).input(0));
    const int axis = first_axis(last(first));
    const RowSpace space{{shape.dims().begin(), shape.dims().begin() + axis},
                         shape.rank(),
                         b_.device_of(last(first))};
    if (axis == 0 || space.rows() < 2 || drops_axes(first) || !may_join(first, space)) return;
    const int sink = sink_of(first, space);
    if (sink < 0) return;
    const std::set<int> chain = chain_to(sink, space);
    if (chain.contains(first)) make_chain(chain, space);
  }

  // The last unit, if any, through whose value alone all that is made of the first one's leaves.
  int sink_of(int first, const RowSpace& space) {
    std::set<int> reading = consumers_of(first);
    int sink = -1;
    for (int count = 1; count < kMostRowStages && !reading.empty(); ++count) {
      const int next = *reading.begin();
      if (next < 0 || !may_join(next, space)) break;
      reading.erase(reading.begin());
      if (reading.empty()) sink = next;
      if (drops_axes(next)) break;
      reading.merge(consumers_of(next));
    }
    return sink;
  }

  // The sink, and what only leads to it.
  std::set<int> chain_to(int sink, const RowSpace& space) {
    std::set<int> chain = {sink}, producers;
    const auto add_producers = [&](int i) {
      for (const Output& input : unit(i).inputs)
        if (unit_of(*input.node) >= 0) producers.insert(unit_of(*input.node));
    };
    add_producers(sink);
    while (!producers.empty() && chain.size() < kMostRowStages) {
      const int i = *producers.rbegin();
      producers.erase(i);
      const std::set<int> consumers = consumers_of(i);
      if (drops_axes(i) || !may_join(i, space) || !std::ranges::includes(chain, consumers))
        continue;
      chain.insert(i);
      add_producers(i);
    }
    return chain;
  }

  void make_chain(const std::set<int>& chain, const RowSpace& space) {
    PlanBuilder::PreparedGroup made;
    for (const int i : chain)
      made.nodes.insert(made.nodes.end(), unit(i).nodes.begin(), unit(i).nodes.end());
    const Node& sink = *made.nodes.back();
    if (!b_.only_feed(std::span(made.nodes).first(made.nodes.size() - 1), sink)) return;
    RowChain row_chain;
    if (!describe(stages_of(chain), space, made.inputs, row_chain)) return;
    made.kernel = make_row_kernel(std::move(row_chain));
    if (made.kernel == nullptr) return;
    made.apart = unit(*chain.rbegin()).group.members.empty();
    for (const int i : chain) unit(i).taken = true;
    b_.add_group(std::move(made));
  }

  // The units but those that a reduction of the chain has as its prologue.
  std::set<int> stages_of(std::set<int> chain) {
    for (const int i : std::set<int>(chain)) {
      Unit& u = unit(i);
      u.producer = -1;
      const int producer = unit_of(*u.inputs[0].node);
      if (!u.group.members.empty() || !chain.contains(producer) ||
          unit(producer).group.members.empty() || consumers_of(producer).size() != 1 ||
          !b_.prepare_early(last(i)) ||
          b_.fuser_of(last(i))->streamed_input(*b_.state(last(i)).kernel) != 0) {
        continue;
      }
      u.producer = producer;
      chain.erase(producer);
    }
    return chain;
  }

  std::vector<Output> inputs_of(const Unit& u) {
    if (u.producer < 0) return u.inputs;
    std::vector<Output> inputs = unit(u.producer).inputs;
    inputs.insert(inputs.end(), u.inputs.begin() + 1, u.inputs.end());
    return inputs;
  }

  // Numbers the values, chooses how many rows make a block, and prepares the stages.
  bool describe(const std::set<int>& stages, const RowSpace& space, std::vector<Output>& inputs,
                RowChain& out) {
    std::vector<Output> values;
    const auto add = [&](const Output& value) {
      if (number_of(values, value) < 0) values.push_back(value);
    };
    for (const int i : stages)
      for (const Output& input : inputs_of(unit(i)))
        if (!stages.contains(unit_of(*input.node))) add(input);
    inputs = values;
    for (const int i : stages) add(value_of(unit(i)));
    out.rows = space.rows();
    out.inputs = static_cast<int32_t>(inputs.size());
    if (!choose_block(values, space, out)) return false;
    for (const int i : stages) {
      RowStage stage;
      for (const Output& input : inputs_of(unit(i)))
        stage.inputs.push_back(number_of(values, input));
      const bool last = i == *stages.rbegin();
      stage.block = prepare_stage(unit(i), space, out.block_rows, last);
      stage.rest = prepare_stage(unit(i), space, rest_of(out), last);
      if (stage.block == nullptr || stage.rest == nullptr) return false;
      out.stages.push_back(std::move(stage));
    }
    return true;
  }

  static int32_t number_of(const std::vector<Output>& values, const Output& value) {
    for (size_t i = 0; i < values.size(); ++i)
      if (values[i].node == value.node && values[i].index == value.index)
        return static_cast<int32_t>(i);
    return -1;
  }
  static int64_t rest_of(const RowChain& chain) {
    const int64_t rest = chain.rows % chain.block_rows;
    return rest == 0 ? chain.block_rows : rest;
  }

  bool choose_block(const std::vector<Output>& values, const RowSpace& space, RowChain& out) {
    const auto is_last = [&](size_t i) { return i + 1 == values.size(); };
    const auto part = [&](size_t i, int64_t rows) {
      const Shape shape = shape_of(values[i]);
      return is_last(i) ? space.part(shape, rows) : space.part_of_input(shape, rows);
    };
    int64_t within = 0, widest = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      const Shape shape = shape_of(values[i]);
      RowValue value{b_.info(values[i]).dtype, {}, {}, 0};
      const auto size = static_cast<int64_t>(dtype_size(value.dtype));
      if (space.has_part(shape) || is_last(i))
        value.row_bytes = shape.num_elements() / out.rows * size;
      widest = std::max(widest, value.row_bytes);
      if (i >= static_cast<size_t>(out.inputs) && !is_last(i)) within += value.row_bytes;
      out.values.push_back(std::move(value));
    }
    if (widest * out.rows < kLeastBytes || within == 0) return false;
    out.block_rows = std::min(out.rows, std::max<int64_t>(1, kBlockBytes / within));
    for (size_t i = 0; i < values.size(); ++i) {
      out.values[i].block = part(i, out.block_rows);
      out.values[i].rest = part(i, rest_of(out));
    }
    return true;
  }

  std::unique_ptr<Kernel> prepare_stage(const Unit& u, const RowSpace& space, int64_t rows,
                                        bool last) {
    std::unique_ptr<Kernel> kernel = prepare(u, space, rows, last);
    if (u.producer < 0) return kernel;
    const Unit& before = unit(u.producer);
    std::unique_ptr<Kernel> producer = prepare(before, space, rows, false);
    return b_.fuser_of(*u.nodes.back())
        ->compose(producer, static_cast<int>(before.inputs.size()), kernel,
                  static_cast<int>(u.inputs.size()));
  }

  // The unit's kernel for so many rows; `last`: of what leaves the chain.
  std::unique_ptr<Kernel> prepare(const Unit& u, const RowSpace& space, int64_t rows, bool last) {
    std::vector<Shape> shapes;
    for (const Output& input : u.inputs)
      shapes.push_back(space.part_of_input(shape_of(input), rows));
    const Shape output = space.part(shape_of(value_of(u)), rows);
    if (!u.group.members.empty()) {
      ElementwiseGroup group = describe_group(u.group, std::move(shapes), output,
                                              b_.topology_.device_of(*u.nodes.back()));
      if (last) group.parts = space.rows() / rows;
      return b_.fuser_of(*u.nodes.back())->prepare(group);
    }
    return b_.prepare_kernel(*u.nodes.back(), shapes, {output});
  }

  PlanBuilder& b_;
  std::vector<Unit> units_;
  std::vector<int> unit_of_;  // by node id; -1: none
};

void PlanBuilder::find_row_chains() {
  if (topology_.fuse_elementwise) RowChainFinder(*this).find();
}

}  // namespace treenail
