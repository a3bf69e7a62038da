// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/tensor_list.cc that make lists and work on their elements one by one; on
// many as rows of a tensor: tensor_list_rows.cc.
#include <algorithm>
#include <memory>
#include <utility>

#include "framework/base/error.h"
#include "framework/op/shape_context.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "framework/runtime/state/stored_value.h"
#include "kernels/host/control/tensor_lists.h"

namespace treenail::host {
namespace {

constexpr double kItemNs = 100;   // of a change in place
constexpr double kListNs = 2000;  // of work on every element of a list

int64_t checked_size(int64_t size, const char* what) {
  if (size < 0) throw invalid_argument(what, " must not be negative, got ", size);
  return size;
}

std::unique_ptr<Kernel> prepare_empty(const PrepareContext& p) {
  return make_kernel(
      [dtype = p.op().get_type("element_dtype")](RunContext& c) {
        auto list = make_counted<TensorList>(dtype, told_shape(c.input(0)));
        list->max_num_elements = scalar_int64(c.input(1));
        c.set_output(0, handle_of(list));
      },
      kItemNs);
}

std::unique_ptr<Kernel> prepare_reserve(const PrepareContext& p) {
  return make_kernel(
      [dtype = p.op().get_type("element_dtype")](RunContext& c) {
        const int64_t size = checked_size(scalar_int64(c.input(1)), "num_elements");
        c.set_output(0, handle_of(make_counted<TensorList>(dtype, told_shape(c.input(0)), size)));
      },
      kItemNs);
}

int64_t checked_index(const TensorList& list, int64_t i, const char* to) {
  if (i >= 0 && i < list.size()) return i;
  throw invalid_argument("Trying to ", to, " element ", i, " in a list with ", list.size(),
                         " elements.");
}

std::unique_ptr<Kernel> prepare_get_item(const PrepareContext& p) {
  return make_kernel(
      [dtype = p.op().get_type("element_dtype")](RunContext& c) {
        const TensorList& list = TensorList::in(c.input(0), dtype);
        const int64_t i = checked_index(list, scalar_int64(c.input(1)), "access");
        c.set_output(0, element(list, i, told_shape(c.input(2))));
      },
      kItemNs);
}

std::unique_ptr<Kernel> prepare_set_item(const PrepareContext&) {
  return make_kernel(
      [](RunContext& c) {
        const OwnList own = own_list(c.take_input(0));
        const int64_t i = checked_index(*own.list, scalar_int64(c.input(1)), "modify");
        own.list->check(c.input(2));
        own.list->set(i, stored_value(c.input(2)));
        c.set_output(0, own.handle);
      },
      kItemNs);
}

std::unique_ptr<Kernel> prepare_unset(const PrepareContext&) {
  return make_kernel(
      [](RunContext& c) {
        const OwnList own = own_list(c.take_input(0));
        for (const int32_t i : c.input(1).values<int32_t>())
          own.list->set(checked_index(*own.list, i, "unset"), Tensor());
        c.set_output(0, own.handle);
      },
      kItemNs);
}

std::unique_ptr<Kernel> prepare_push_back(const PrepareContext&) {
  return make_kernel(
      [](RunContext& c) {
        const OwnList own = own_list(c.take_input(0));
        TensorList& list = *own.list;
        if (list.max_num_elements >= 0 && list.size() >= list.max_num_elements) {
          throw invalid_argument("Tried to push item into a full list, list size: ", list.size(),
                                 " max_num_elements: ", list.max_num_elements);
        }
        list.check(c.input(1));
        list.resize(list.size() + 1);
        list.set(list.size() - 1, stored_value(c.input(1)));
        c.set_output(0, own.handle);
      },
      kItemNs);
}

std::unique_ptr<Kernel> prepare_pop_back(const PrepareContext& p) {
  return make_kernel(
      [dtype = p.op().get_type("element_dtype")](RunContext& c) {
        if (TensorList::in(c.input(0), dtype).size() == 0)
          throw invalid_argument("Trying to pop from an empty list.");
        const OwnList own = own_list(c.take_input(0));
        Tensor last = element(*own.list, own.list->size() - 1, told_shape(c.input(1)));
        own.list->resize(own.list->size() - 1);
        c.set_output(0, own.handle);
        c.set_output(1, std::move(last));
      },
      kItemNs);
}

std::unique_ptr<Kernel> prepare_resize(const PrepareContext&) {
  return make_kernel(
      [](RunContext& c) {
        const int64_t size = checked_size(scalar_int64(c.input(1)), "size");
        const OwnList own = own_list(c.take_input(0));
        own.list->resize(size);
        c.set_output(0, own.handle);
      },
      kItemNs);
}

std::unique_ptr<Kernel> prepare_length(const PrepareContext&) {
  return make_kernel(
      [](RunContext& c) {
        c.set_output(0, Tensor::scalar(static_cast<int32_t>(TensorList::in(c.input(0)).size())));
      },
      kItemNs);
}

std::unique_ptr<Kernel> prepare_element_shape(const PrepareContext& p) {
  return make_kernel(
      [type = p.op().get_type("shape_type")](RunContext& c) {
        const PartialShape& shape = TensorList::in(c.input(0)).element_shape;
        Tensor out(type, shape.rank_known() ? Shape({shape.rank()}) : Shape());
        dispatch<int32_t, int64_t>(type, [&]<class T>() {
          if (!shape.rank_known()) *out.data<T>() = -1;
          for (int i = 0; i < shape.rank(); ++i) out.data<T>()[i] = static_cast<T>(shape[i]);
        });
        c.set_output(0, std::move(out));
      },
      kItemNs);
}

std::unique_ptr<Kernel> prepare_concat_lists(const PrepareContext& p) {
  return make_kernel(
      [dtype = p.op().get_type("element_dtype")](RunContext& c) {
        TensorList::in(c.input(0), dtype);
        const TensorList& behind = TensorList::in(c.input(1), dtype);
        const OwnList own = own_list(c.take_input(0));
        TensorList& list = *own.list;
        if (!(list.element_shape == behind.element_shape)) list.element_shape = PartialShape();
        const int64_t first = list.size();
        list.resize(first + behind.size());
        for (int64_t i = behind.first_set(); i < behind.end_set(); ++i)
          list.set(first + i, behind.at(i));
        c.set_output(0, own.handle);
      },
      kListNs);
}

}  // namespace

void register_tensor_list_kernels(KernelRegistry& r) {
  r.add("EmptyTensorList", {}, prepare_empty);
  r.add("TensorListReserve", {}, prepare_reserve);
  r.add("TensorListGetItem", {}, prepare_get_item);
  r.add("TensorListSetItem", {}, prepare_set_item);
  r.add("TensorListUnset", {}, prepare_unset);
  r.add("TensorListPushBack", {}, prepare_push_back);
  r.add("TensorListPopBack", {}, prepare_pop_back);
  r.add("TensorListResize", {}, prepare_resize);
  r.add("TensorListLength", {}, prepare_length);
  r.add("TensorListElementShape", {}, prepare_element_shape);
  r.add("TensorListConcatLists", {}, prepare_concat_lists);
}

}  // namespace treenail::host
