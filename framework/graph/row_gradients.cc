// SPDX-License-Identifier: Apache-2.0
#include "framework/graph/row_gradients.h"

#include <algorithm>
#include <string>

namespace treenail {
namespace {

// The gradient of StridedSlice and Slice by entries: entry 0 says which rows, the others what of
// each.
class RowGradient {
 public:
  RowGradient(const Node& node, GraphEmitter& e, Value gradient)
      : e_(e),
        op_(node.op()),
        index_(op_.get_type("Index")),
        gradient_(gradient),
        shape_(e.shape_of(GraphEmitter::value_of(node.input(0)), index_)),
        begin_(GraphEmitter::value_of(node.input(1))),
        end_(GraphEmitter::value_of(node.input(2))) {}

  Gradient of_strided_slice(Value strides) {
    const bool one = (op_.get_int("shrink_axis_mask") & 1) != 0;
    const bool from_start = !one && (op_.get_int("begin_mask") & 1) != 0;
    const Value start = from_start ? number(0) : within(part(begin_, 0), one);
    const Value count = one ? number(1) : part(e_.shape_of(gradient_, index_), 0);
    if (e_.shape(begin_) == PartialShape(Shape{1}))
      return rows(one ? e_.call("ExpandDims", {gradient_, number(0)}) : gradient_, start, count);
    NamedAttrs masks;
    for (const char* name :
         {"begin_mask", "end_mask", "ellipsis_mask", "new_axis_mask", "shrink_axis_mask"})
      masks.emplace_back(name, op_.get_int(name));
    const Value whole = with_first(count, shape_);
    return rows(
        e_.call("StridedSliceGrad",
                {whole, with_first(number(0), begin_), with_first(count, end_), strides, gradient_},
                masks),
        start, count);
  }

  Gradient of_slice() {
    const Value extents = e_.shape_of(gradient_, index_);
    const Value count = part(extents, 0);
    const Value begin = with_first(number(0), begin_);
    return rows(
        e_.call("StridedSliceGrad", {with_first(count, shape_), begin, e_.add(begin, extents),
                                     e_.ones_like(begin), gradient_}),
        part(begin_, 0), count);
  }

 private:
  Value number(int64_t n) { return e_.const_scalar(index_, static_cast<double>(n)); }
  Value ends(int64_t end) { return e_.const_ints(DType::kInt32, std::span(&end, 1)); }

  Value part(Value vector, int64_t i) {
    return e_.call("StridedSlice", {vector, ends(i), ends(i + 1), ends(1)},
                   {{"shrink_axis_mask", 1}});
  }
  Value with_first(Value first, Value vector) {
    const Value rest =
        e_.call("StridedSlice", {vector, ends(1), ends(0), ends(1)}, {{"end_mask", 1}});
    const Value axis = e_.const_scalar(DType::kInt32, 0);
    return e_.call("Concat", {e_.call("ExpandDims", {first, axis}), rest, axis});
  }
  // A place among the rows: negative ones count from the end, and a range begins at one of them.
  Value within(Value place, bool one) {
    const Value extent = part(shape_, 0);
    const Value negative = e_.cast(e_.call("Less", {place, number(0)}), index_);
    const Value found = e_.add(place, e_.mul(negative, extent));
    if (one) return found;
    return e_.call("Minimum", {e_.call("Maximum", {found, number(0)}), extent});
  }
  Gradient rows(Value values, Value start, Value count) {
    const Value indices = e_.call("Range", {start, e_.add(start, count), number(1)});
    return Gradient::slices(values, indices, shape_);
  }

  GraphEmitter& e_;
  const OpInstance& op_;
  const DType index_;
  const Value gradient_, shape_, begin_, end_;
};

// Whether entry 0 of a StridedSlice takes one row, or rows that lie side by side, but not all.
bool takes_rows(const Node& node, const GraphEmitter& e) {
  const OpInstance& op = node.op();
  const auto bit = [&](const char* mask) { return (op.get_int(mask) & 1) != 0; };
  if (bit("ellipsis_mask") || bit("new_axis_mask")) return false;
  if (bit("begin_mask") && bit("end_mask") && !bit("shrink_axis_mask")) return false;
  const PartialShape entries = e.shape(GraphEmitter::value_of(node.input(1)));
  if (!entries.rank_known() || entries[0] < 1) return false;
  const Tensor* strides = e.constant(GraphEmitter::value_of(node.input(3)));
  if (strides == nullptr) return false;
  return (strides->dtype() == DType::kInt32 ? strides->data<int32_t>()[0]
                                            : strides->data<int64_t>()[0]) == 1;
}

}  // namespace

Output RowSources::behind(const Output& value) const {
  if (std::ranges::find(values, value) != values.end()) return value;
  if (value.node->type() != "ReadVariableOp") return {};
  const Output& variable = value.node->input(0);
  return std::ranges::find(values, variable) != values.end() ? variable : Output();
}

bool RowSources::is_sliced(const Output& value) const {
  return std::ranges::find(sliced, value) != sliced.end();
}

Value no_rows_of(Value value, GraphEmitter& e) {
  const auto ints = [&](int64_t n) { return e.const_ints(DType::kInt32, std::span(&n, 1)); };
  return e.call("StridedSlice", {value, ints(0), ints(0), ints(1)});
}

bool row_gradient(const Node& node, RowSources& sources, GraphEmitter& emitter,
                  const Gradient& output_gradient, Gradient& result) {
  const bool strided = node.type() == "StridedSlice";
  if (!strided && node.type() != "Slice") return false;
  const Output source = sources.behind(node.input(0));
  if (source.node == nullptr || (strided && !takes_rows(node, emitter))) return false;
  sources.sliced.push_back(source);
  RowGradient rows(node, emitter, emitter.densified(output_gradient));
  result = strided ? rows.of_strided_slice(GraphEmitter::value_of(node.input(3))) : rows.of_slice();
  return true;
}

}  // namespace treenail
