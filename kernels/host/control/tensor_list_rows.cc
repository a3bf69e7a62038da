// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/tensor_list.cc that make a tensor of many elements, or elements of the
// rows of a tensor, whose memory they share.
#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "framework/base/error.h"
#include "framework/op/shape_context.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/state/stored_value.h"
#include "kernels/host/control/tensor_lists.h"

namespace treenail::host {
namespace {

constexpr double kListNs = 2000;

// --- Elements as rows -------------------------------------------------------------------------

// The shape of all `rows` of a list. Errors: InvalidArgument for different ones, and where nothing
// tells it.
Shape row_shape(const TensorList& list, int64_t count, Rows rows, const PartialShape& told) {
  PartialShape shape =
      ShapeContext::merge(list.element_shape, told, "the elements of the list and element_shape");
  for (int64_t i = 0; i < count; ++i) {
    const Tensor& found = rows(i);
    if (!found.defined()) continue;
    if (!shape.compatible(found.shape())) {
      throw invalid_argument("row ", i, " has shape ", found.shape(),
                             ", which does not agree with ", shape,
                             " of the others: they cannot be stacked");
    }
    shape = found.shape();
  }
  if (shape.fully_known()) return shape.shape();
  if (list.size() != 0) return unset_shape(list, shape);
  throw invalid_argument(
      "Tried to stack elements of an empty list with non-fully-defined element_shape: ", shape);
}

std::unique_ptr<Kernel> prepare_stack(const PrepareContext& p) {
  return make_kernel(
      [dtype = p.op().get_type("element_dtype"),
       count = p.op().get_int("num_elements")](RunContext& c) {
        const TensorList& list = TensorList::in(c.input(0), dtype);
        if (count != -1 && list.size() != count) {
          throw invalid_argument("Operation expected a list with ", count,
                                 " elements but got a list with ", list.size(), " elements.");
        }
        const auto rows = [&](int64_t i) -> const Tensor& { return list.at(i); };
        const Shape row = row_shape(list, list.size(), rows, told_shape(c.input(1)));
        c.set_output(0, stacked(c, dtype, row, list.size(), rows));
      },
      kListNs);
}

std::unique_ptr<Kernel> prepare_gather(const PrepareContext& p) {
  return make_kernel(
      [dtype = p.op().get_type("element_dtype")](RunContext& c) {
        const TensorList& list = TensorList::in(c.input(0), dtype);
        const std::span<const int32_t> indices = c.input(1).values<int32_t>();
        for (const int32_t i : indices) {
          if (i >= 0 && i < list.size()) continue;
          throw invalid_argument("Trying to gather element ", i, " in a list with ", list.size(),
                                 " elements.");
        }
        const auto count = static_cast<int64_t>(indices.size());
        const auto rows = [&](int64_t i) -> const Tensor& {
          return list.at(indices[static_cast<size_t>(i)]);
        };
        const Shape row = row_shape(list, count, rows, told_shape(c.input(2)));
        c.set_output(0, stacked(c, dtype, row, count, rows));
      },
      kListNs);
}

// --- Elements one behind the other ------------------------------------------------------------

class ConcatKernel final : public Kernel {
 public:
  explicit ConcatKernel(const PrepareContext& p)
      : dtype_(p.op().get_type("element_dtype")), told_by_input_(p.num_inputs() > 1) {
    cost_ns = kListNs;
    if (!told_by_input_) told_ = p.op().get<PartialShape>("element_shape");
  }

  void run(RunContext& c) const override {
    const TensorList& list = TensorList::in(c.input(0), dtype_);
    const PartialShape told =
        ShapeContext::merge(list.element_shape, told_by_input_ ? told_shape(c.input(1)) : told_,
                            "the elements of the list and element_shape");
    const Shape rest = shape_of_rows(list, told);
    const Tensor* const leading = told_by_input_ ? &c.input(2) : nullptr;
    std::vector<int64_t> lengths;
    int64_t rows = 0;
    for (int64_t i = 0; i < list.size(); ++i) {
      lengths.push_back(length(list, i, told, leading));
      if (__builtin_add_overflow(rows, lengths.back(), &rows))
        throw invalid_argument("the elements of the list have more than 2^63 - 1 rows");
    }
    c.set_output(0, joined(list, rest.inserted(0, rows), lengths));
    c.set_output(1, Tensor::vector(std::span<const int64_t>(lengths)));
  }

 private:
  // Without its first extent, in which alone elements may differ.
  static Shape shape_of_rows(const TensorList& list, const PartialShape& told) {
    PartialShape rest;
    const auto agree = [&](const PartialShape& shape) {
      if (shape.rank() == 0)
        throw invalid_argument(
            "Concat requires elements to be at least vectors, found scalars instead.");
      if (shape.rank_known())
        rest = ShapeContext::merge(rest, shape.sub(1, shape.rank()), "rows of the elements");
    };
    agree(told);
    for (int64_t i = list.first_set(); i < list.end_set(); ++i)
      if (list.at(i).defined()) agree(list.at(i).shape());
    if (rest.fully_known()) return rest.shape();
    throw invalid_argument(
        "All except the first dimension must be fully defined when concating an empty tensor "
        "list. element_shape: ",
        told);
  }

  static int64_t length(const TensorList& list, int64_t i, const PartialShape& told,
                        const Tensor* leading) {
    const Tensor& element = list.at(i);
    if (element.defined()) return element.dim(0);
    if (leading != nullptr && i < leading->num_elements()) {
      if (const int64_t rows = leading->data<int64_t>()[i]; rows >= 0) return rows;
    }
    if (told.rank_known() && told[0] != kUnknown) return told[0];
    throw invalid_argument("TensorList contains uninitialized tensor at index ", i,
                           " but leading_dims has only ",
                           leading == nullptr ? 0 : leading->num_elements(), " elements.");
  }

  Tensor joined(const TensorList& list, const Shape& shape,
                std::span<const int64_t> lengths) const {
    Tensor out = Tensor::zeros(dtype_, shape);
    const int64_t row = shape.sub(1, shape.rank()).num_elements();
    int64_t at = 0;
    for (size_t i = 0; i < lengths.size(); ++i) {
      const Tensor& element = list.at(static_cast<int64_t>(i));
      if (element.defined()) copy_range(element, 0, element.num_elements(), out, at);
      at += lengths[i] * row;
    }
    return out;
  }

  const DType dtype_;
  const bool told_by_input_;
  PartialShape told_;
};

std::unique_ptr<Kernel> prepare_concat(const PrepareContext& p) {
  return std::make_unique<ConcatKernel>(p);
}

// --- Rows as elements -------------------------------------------------------------------------

Tensor row(const Tensor& tensor, int64_t i) {
  return tensor.rows(i, i + 1).reshaped(tensor.shape().sub(1, tensor.rank()));
}

std::unique_ptr<Kernel> prepare_from_tensor(const PrepareContext& p) {
  return make_kernel(
      [dtype = p.op().get_type("element_dtype")](RunContext& c) {
        const Tensor tensor = stored_value(c.input(0));
        auto list = make_counted<TensorList>(dtype, told_shape(c.input(1)), tensor.dim(0));
        for (int64_t i = 0; i < list->size(); ++i) {
          const Tensor element = row(tensor, i);
          list->check(element);
          list->set(i, element);
        }
        c.set_output(0, handle_of(list));
      },
      kListNs);
}

std::unique_ptr<Kernel> prepare_split(const PrepareContext& p) {
  return make_kernel(
      [dtype = p.op().get_type("element_dtype")](RunContext& c) {
        const Tensor tensor = stored_value(c.input(0));
        const std::span<const int64_t> lengths = c.input(2).values<int64_t>();
        auto list = make_counted<TensorList>(dtype, told_shape(c.input(1)),
                                             static_cast<int64_t>(lengths.size()));
        int64_t at = 0;
        for (size_t i = 0; i < lengths.size(); ++i) {
          if (lengths[i] < 0) throw invalid_argument("Invalid value in lengths: ", lengths[i]);
          if (lengths[i] > tensor.dim(0) - at) {
            throw invalid_argument("Attempting to slice [", at, ", ", lengths[i],
                                   "] from tensor with length ", tensor.dim(0));
          }
          const Tensor element = tensor.rows(at, at + lengths[i]);
          list->check(element);
          list->set(static_cast<int64_t>(i), element);
          at += lengths[i];
        }
        if (at != tensor.dim(0)) {
          throw invalid_argument("Unused values in tensor. Length of tensor: ", tensor.dim(0),
                                 " Values used: ", at);
        }
        c.set_output(0, handle_of(list));
      },
      kListNs);
}

// Row i of the tensor as element indices[i].
void scatter(const Tensor& tensor, std::span<const int32_t> indices, TensorList& list) {
  for (size_t i = 0; i < indices.size(); ++i) {
    const Tensor element = row(tensor, static_cast<int64_t>(i));
    list.check(element);
    list.set(indices[i], element);
  }
}

// Of a list with all of these elements. Errors: InvalidArgument for a negative one.
int64_t size_for(std::span<const int32_t> indices) {
  int64_t size = 0;
  for (const int32_t i : indices) {
    if (i < 0)
      throw invalid_argument("Indices in TensorListScatter must all be non-negative, got ", i);
    size = std::max<int64_t>(size, int64_t{i} + 1);
  }
  return size;
}

std::unique_ptr<Kernel> prepare_scatter(const PrepareContext& p) {
  return make_kernel(
      [dtype = p.op().get_type("element_dtype"), sized = p.num_inputs() > 3](RunContext& c) {
        const std::span<const int32_t> indices = c.input(1).values<int32_t>();
        const int64_t needed = size_for(indices), given = sized ? scalar_int64(c.input(3)) : -1;
        if (given < -1) {
          throw invalid_argument("TensorListScatter expects num_elements >= -1, found: ", given);
        }
        if (given != -1 && needed > given) {
          throw invalid_argument("TensorListScatter: Trying to scatter at index ", needed - 1,
                                 " in list with size ", given);
        }
        auto list =
            make_counted<TensorList>(dtype, told_shape(c.input(2)), given == -1 ? needed : given);
        scatter(stored_value(c.input(0)), indices, *list);
        c.set_output(0, handle_of(list));
      },
      kListNs);
}

std::unique_ptr<Kernel> prepare_scatter_into(const PrepareContext&) {
  return make_kernel(
      [](RunContext& c) {
        const std::span<const int32_t> indices = c.input(2).values<int32_t>();
        const int64_t needed = size_for(indices);
        const OwnList own = own_list(c.take_input(0));
        if (needed > own.list->size()) own.list->resize(needed);
        scatter(stored_value(c.input(1)), indices, *own.list);
        c.set_output(0, own.handle);
      },
      kListNs);
}

}  // namespace

void register_tensor_list_rows_kernels(KernelRegistry& r) {
  r.add("TensorListStack", {}, prepare_stack);
  r.add("TensorListGather", {}, prepare_gather);
  for (const char* op : {"TensorListConcat", "TensorListConcatV2"}) r.add(op, {}, prepare_concat);
  r.add("TensorListFromTensor", {}, prepare_from_tensor);
  r.add("TensorListSplit", {}, prepare_split);
  for (const char* op : {"TensorListScatter", "TensorListScatterV2"})
    r.add(op, {}, prepare_scatter);
  r.add("TensorListScatterIntoExistingList", {}, prepare_scatter_into);
}

}  // namespace treenail::host
