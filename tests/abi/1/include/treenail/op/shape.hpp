// SPDX-License-Identifier: Apache-2.0
// Shape rules: functions Status(InferenceContext*) that set the shape of every output from what is
// known of the inputs.
#ifndef TREENAIL_OP_SHAPE_HPP_
#define TREENAIL_OP_SHAPE_HPP_

#include <algorithm>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "treenail/op/attributes.hpp"

namespace tn {
namespace op {

using ShapeHandle = PartialTensorShape;
using DimensionHandle = int64_t;  // -1: unknown

class InferenceContext : public CallReader {
 public:
  static constexpr int64_t kUnknownDim = -1;

  explicit InferenceContext(tn_shape_context* context)
      : CallReader(host()->shape_call(context)), context_(context) {}
  tn_shape_context* get() const { return context_; }

  int num_inputs() const { return host()->call_num_inputs(call()); }
  int num_outputs() const { return host()->call_num_outputs(call()); }
  ShapeHandle input(int index) const {
    const int rank = host()->shape_input_rank(context_, index);
    if (rank < 0) return ShapeHandle();
    std::vector<int64_t> dims;
    for (int i = 0; i < rank; ++i) dims.push_back(host()->shape_input_dim(context_, index, i));
    return ShapeHandle(std::move(dims));
  }
  // The inputs that a declared one stands for: several of a list.
  Status input(const char* name, std::vector<ShapeHandle>* shapes) const {
    detail::Held status;
    int32_t begin = 0, end = 0;
    host()->call_input_range(call(), name, &begin, &end, status);
    shapes->clear();
    for (int32_t i = begin; i < end; ++i) shapes->push_back(input(i));
    return status.get();
  }
  // The value of an input where it is known, else a Tensor that is not initialized.
  Tensor input_tensor(int index) const {
    return Tensor(host()->shape_input_value(context_, index));
  }
  void set_output(int index, const ShapeHandle& shape) {
    if (shape.unknown_rank()) return;  // an output left alone
    detail::Held status;
    host()->shape_set_output(context_, index, shape.data(), shape.dims(), status);
    status.check();
  }
  Status set_output(const char* name, const std::vector<ShapeHandle>& shapes) {
    detail::Held status;
    int32_t begin = 0, end = 0;
    host()->call_output_range(call(), name, &begin, &end, status);
    TREENAIL_RETURN_IF_ERROR(status.get());
    if (static_cast<size_t>(end - begin) != shapes.size())
      return errors::InvalidArgument(shapes.size(), " shapes are given for \"", name,
                                     "\", which is ", end - begin, " outputs");
    for (int32_t i = begin; i < end; ++i) set_output(i, shapes[static_cast<size_t>(i - begin)]);
    return Status();
  }
  // Output `index` has the shape that the elements of an int32 or int64 input spell.
  Status set_output_from_tensor(int index, int input) {
    detail::Held status;
    host()->shape_from_input(context_, input, index, status);
    return status.get();
  }

  static bool RankKnown(const ShapeHandle& shape) { return !shape.unknown_rank(); }
  static int Rank(const ShapeHandle& shape) { return shape.dims(); }
  static bool ValueKnown(DimensionHandle dim) { return dim >= 0; }
  static int64_t Value(DimensionHandle dim) { return dim; }
  static bool FullyDefined(const ShapeHandle& shape) { return shape.IsFullyDefined(); }
  static std::string DebugString(const ShapeHandle& shape) { return shape.DebugString(); }
  // Axes from the end are negative. Unknown where the rank is.
  static DimensionHandle Dim(const ShapeHandle& shape, int axis) {
    if (shape.unknown_rank()) return kUnknownDim;
    const int at = axis < 0 ? axis + shape.dims() : axis;
    if (at < 0 || at >= shape.dims())
      throw Error(errors::OutOfRange("shape ", shape, " has no axis ", axis));
    return shape.dim_size(at);
  }

  static ShapeHandle UnknownShape() { return ShapeHandle(); }
  static ShapeHandle UnknownShapeOfRank(int rank) {
    return ShapeHandle(std::vector<int64_t>(static_cast<size_t>(rank), kUnknownDim));
  }
  static DimensionHandle UnknownDim() { return kUnknownDim; }
  static DimensionHandle MakeDim(int64_t size) { return size; }
  static ShapeHandle MakeShape(std::vector<DimensionHandle> dims) {
    return ShapeHandle(std::move(dims));
  }
  static ShapeHandle Scalar() { return ShapeHandle(std::vector<int64_t>()); }
  static ShapeHandle Vector(DimensionHandle size) { return ShapeHandle{size}; }
  static ShapeHandle Matrix(DimensionHandle a, DimensionHandle b) { return ShapeHandle{a, b}; }

  // These fail where what is known contradicts; *out is what is known then.
  static Status WithRank(const ShapeHandle& shape, int rank, ShapeHandle* out) {
    if (shape.unknown_rank()) return Give(UnknownShapeOfRank(rank), out);
    if (shape.dims() == rank) return Give(shape, out);
    return errors::InvalidArgument("Shape must be rank ", rank, " but is rank ", shape.dims(), ": ",
                                   shape);
  }
  static Status WithRankAtLeast(const ShapeHandle& shape, int rank, ShapeHandle* out) {
    if (shape.unknown_rank() || shape.dims() >= rank) return Give(shape, out);
    return errors::InvalidArgument("Shape must be at least rank ", rank, " but is rank ",
                                   shape.dims(), ": ", shape);
  }
  static Status WithRankAtMost(const ShapeHandle& shape, int rank, ShapeHandle* out) {
    if (shape.unknown_rank() || shape.dims() <= rank) return Give(shape, out);
    return errors::InvalidArgument("Shape must be at most rank ", rank, " but is rank ",
                                   shape.dims(), ": ", shape);
  }
  static Status WithValue(DimensionHandle dim, int64_t value, DimensionHandle* out) {
    if (dim < 0 || dim == value) return Give(value, out);
    return errors::InvalidArgument("Dimension must be ", value, " but is ", dim);
  }
  static Status Merge(DimensionHandle a, DimensionHandle b, DimensionHandle* out) {
    if (a < 0 || b < 0 || a == b) return Give(a < 0 ? b : a, out);
    return errors::InvalidArgument("Dimensions must be equal, but are ", a, " and ", b);
  }
  static Status Merge(const ShapeHandle& a, const ShapeHandle& b, ShapeHandle* out) {
    if (a.unknown_rank() || b.unknown_rank()) return Give(a.unknown_rank() ? b : a, out);
    if (a.dims() != b.dims())
      return errors::InvalidArgument("Shapes must be equal rank, but are ", a, " and ", b);
    std::vector<int64_t> dims(static_cast<size_t>(a.dims()));
    for (int i = 0; i < a.dims(); ++i) {
      if (!Merge(a.dim_size(i), b.dim_size(i), &dims[static_cast<size_t>(i)]).ok())
        return errors::InvalidArgument("Dimension ", i, " must be equal, but the shapes are ", a,
                                       " and ", b);
    }
    return Give(ShapeHandle(std::move(dims)), out);
  }
  static Status Concatenate(const ShapeHandle& a, const ShapeHandle& b, ShapeHandle* out) {
    if (a.unknown_rank() || b.unknown_rank()) return Give(ShapeHandle(), out);
    std::vector<int64_t> dims = a.dim_sizes();
    dims.insert(dims.end(), b.dim_sizes().begin(), b.dim_sizes().end());
    return Give(ShapeHandle(std::move(dims)), out);
  }
  // Axes [start, end); negative ones count from the end.
  static Status Subshape(const ShapeHandle& shape, int start, int end, ShapeHandle* out) {
    if (shape.unknown_rank()) return Give(ShapeHandle(), out);
    const int rank = shape.dims();
    const int first = start < 0 ? start + rank : start;
    const int last = end < 0 ? end + rank : std::min(end, rank);
    if (first < 0 || last < first)
      return errors::InvalidArgument("Shape ", shape, " has no axes [", start, ",", end, ")");
    return Give(ShapeHandle(shape.data() + first, last - first), out);
  }
  static Status Subshape(const ShapeHandle& shape, int start, ShapeHandle* out) {
    return Subshape(shape, start, std::max(start, shape.dims()), out);
  }
  static Status ReplaceDim(const ShapeHandle& shape, int axis, DimensionHandle dim,
                           ShapeHandle* out) {
    if (shape.unknown_rank()) return Give(ShapeHandle(), out);
    const int at = axis < 0 ? axis + shape.dims() : axis;
    if (at < 0 || at >= shape.dims())
      return errors::InvalidArgument("Shape ", shape, " has no axis ", axis);
    std::vector<int64_t> dims = shape.dim_sizes();
    dims[static_cast<size_t>(at)] = dim;
    return Give(ShapeHandle(std::move(dims)), out);
  }

 private:
  template <class T>
  static Status Give(T value, T* out) {
    *out = std::move(value);
    return Status();
  }

  tn_shape_context* context_;
};

using ShapeFn = Status (*)(InferenceContext*);

// Rules that serve many ops.
namespace shape_fn {

inline Status UnknownShape(InferenceContext*) { return Status(); }
inline Status UnchangedShape(InferenceContext* c) {
  c->set_output(0, c->input(0));
  return Status();
}
inline Status ScalarShape(InferenceContext* c) {
  c->set_output(0, InferenceContext::Scalar());
  return Status();
}
// Inputs 0 and 1 broadcast to output 0.
inline Status BroadcastBinaryOpShapeFn(InferenceContext* c) {
  detail::Held status;
  host()->shape_broadcast(c->get(), 0, 1, 0, status);
  return status.get();
}

}  // namespace shape_fn
}  // namespace op
}  // namespace tn

#endif  // TREENAIL_OP_SHAPE_HPP_
