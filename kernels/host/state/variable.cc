// SPDX-License-Identifier: Apache-2.0
// Kernels of framework/ops/variable.cc that compute nothing. Arithmetic on variables:
// kernels/cpu/scatter/variable.cc.
#include "framework/runtime/state/variable.h"

#include <vector>

#include "framework/base/error.h"
#include "framework/op/index_check.h"
#include "framework/runtime/kernel/kernel_registry.h"
#include "kernels/host/arrays/elements.h"

namespace treenail::host {
namespace {

using KernelPtr = std::unique_ptr<Kernel>;

KernelPtr prepare_handle(const PrepareContext& p) {
  const OpInstance& op = p.op();
  const DType dtype = op.get_type("dtype");
  const PartialShape& shape = op.get<PartialShape>("shape");
  const std::string& shared = op.get_string("shared_name");
  const std::string name = shared.empty() ? std::string(p.node_name()) : shared;
  if (name.empty()) {  // in immediate execution
    return make_kernel(
        [dtype, shape, device = &p.device()](RunContext& c) {
          c.output(0).data<ResourceElement>()->object =
              make_counted<Variable>("", dtype, shape, device);
        },
        100);
  }
  IntrusivePtr<Variable> variable =
      named_variable(p.resources(), op.get_string("container"), name, dtype, shape, &p.device());
  return make_kernel(
      [variable](RunContext& c) { c.output(0).data<ResourceElement>()->object = variable; }, 10);
}

KernelPtr prepare_read(const PrepareContext& p) {
  return make_kernel(
      [dtype = p.op().get_type("dtype")](RunContext& c) {
        c.set_output(0, variable_of_dtype(c.input(0), dtype).read());
      },
      20);
}

KernelPtr prepare_variable_shape(const PrepareContext& p) {
  return make_kernel(
      [out_type = p.output_type(0)](RunContext& c) {
        const Tensor value = variable_from(c.input(0)).read();
        if (out_type == DType::kInt64) {
          c.set_output(0, Tensor::vector(value.shape().dims()));
          return;
        }
        Tensor shape(DType::kInt32, Shape({value.rank()}));
        for (int i = 0; i < value.rank(); ++i) {
          shape.data<int32_t>()[i] = static_cast<int32_t>(value.dim(i));
          if (shape.data<int32_t>()[i] != value.dim(i)) {
            throw invalid_argument("out_type must be int64 since the extent ", value.dim(i),
                                   " does not fit into int32");
          }
        }
        c.set_output(0, std::move(shape));
      },
      50);
}

KernelPtr prepare_is_initialized(const PrepareContext&) {
  return make_kernel(
      [](RunContext& c) { *c.output(0).data<bool>() = variable_from(c.input(0)).initialized(); },
      20);
}

KernelPtr prepare_initialized_value(const PrepareContext& p) {
  return make_kernel(
      [dtype = p.op().get_type("dtype")](RunContext& c) {
        const Variable& variable = variable_of_dtype(c.input(0), dtype);
        c.set_output(0, variable.initialized() ? variable.read() : c.input(1).deep_copy());
      },
      50);
}

KernelPtr prepare_destroy(const PrepareContext& p) {
  return make_kernel(
      [ignore = p.op().get_bool("ignore_lookup_error")](RunContext& c) {
        Variable& variable = variable_from(c.input(0));
        if (!ignore && !variable.initialized()) {
          throw not_found("variable ", variable.name(), " has no value to free");
        }
        variable.reset();
      },
      50);
}

KernelPtr prepare_assign(const PrepareContext&) {
  return make_kernel([](RunContext& c) { variable_from(c.input(0)).assign(c.input(1)); }, 50);
}

template <class T>
void count_up_to(RunContext& c, int64_t limit) {
  Variable& variable = variable_of_dtype(c.input(0), dtype_of<T>);
  const Variable::Write write(variable);
  Tensor& value = write.value();
  if (value.num_elements() != 1 || value.rank() != 0)
    throw invalid_argument("a counter is a scalar, variable ", variable.name(), " is ", value);
  T& count = *value.data<T>();
  if (count >= limit)
    throw out_of_range("Reached limit of ", limit, ": variable ", variable.name(), " is ", count);
  *c.output(0).data<T>() = count++;
}

KernelPtr prepare_count_up_to(const PrepareContext& p) {
  const int64_t limit = p.op().get_int("limit");
  const bool narrow = p.op().get_type("T") == DType::kInt32;
  return make_kernel(
      [limit, narrow](RunContext& c) {
        if (narrow) {
          count_up_to<int32_t>(c, limit);
        } else {
          count_up_to<int64_t>(c, limit);
        }
      },
      50);
}

// --- Rows -------------------------------------------------------------------------------------

template <class T, class Index>
void gather_rows(RunContext& c, const Tensor& value, const Shape& output_shape) {
  const std::span<const Index> indices = c.input(1).values<Index>();
  check_indices("indices", c.input(1), value.dim(0));
  Tensor output(value.dtype(), output_shape);
  const int64_t row = value.shape().removed(0).num_elements();
  const T* from = elements<T>(value);
  T* to = elements<T>(output);
  const int64_t grain = row >= kMoveGrain<T> ? 1 : kMoveGrain<T> / (row > 0 ? row : 1);
  c.parallel_for(static_cast<int64_t>(indices.size()), grain,
                 2 + kMoveCost<T> * static_cast<double>(row), [&](int64_t begin, int64_t end) {
                   for (int64_t i = begin; i < end; ++i) {
                     copy_elements(
                         to + i * row,
                         from + static_cast<int64_t>(indices[static_cast<size_t>(i)]) * row, row);
                   }
                 });
  c.set_output(0, std::move(output));
}

KernelPtr prepare_resource_gather(const PrepareContext& p) {
  const DType dtype = p.op().get_type("dtype");
  const double cost = 100 + 10.0 * static_cast<double>(p.input_shape(1).num_elements());
  return make_kernel(
      [dtype](RunContext& c) {
        const Tensor value = variable_of_dtype(c.input(0), dtype).read();
        if (value.rank() < 1)
          throw invalid_argument("params must be at least 1 dimensional, the variable is a scalar");
        const Shape shape = c.input(1).shape().concatenated(value.shape().removed(0));
        dispatch_element(dtype, [&]<class T>() {
          if (c.input(1).dtype() == DType::kInt32) {
            gather_rows<T, int32_t>(c, value, shape);
          } else {
            gather_rows<T, int64_t>(c, value, shape);
          }
        });
      },
      cost);
}

template <class T, class Index>
void update_rows(RunContext& c, Variable& variable) {
  const std::span<const Index> indices = c.input(1).values<Index>();
  const Tensor& updates = c.input(2);
  const Variable::Write write(variable);
  Tensor& value = write.value();
  check_row_updates(value.shape(), c.input(1).shape(), updates.shape());
  check_indices("indices", c.input(1), value.dim(0));
  const int64_t row = value.shape().removed(0).num_elements();
  T* to = elements<T>(value);
  const T* from = elements<T>(updates);
  for (size_t i = 0; i < indices.size(); ++i) {
    T* at = to + static_cast<int64_t>(indices[i]) * row;
    if (updates.rank() == 0) {
      fill_elements(at, *from, row);
    } else {
      copy_elements(at, from + static_cast<int64_t>(i) * row, row);
    }
  }
}

KernelPtr prepare_scatter_update(const PrepareContext& p) {
  const DType dtype = p.op().get_type("dtype");
  return make_kernel(
      [dtype](RunContext& c) {
        Variable& variable = variable_of_dtype(c.input(0), dtype);
        dispatch_element(dtype, [&]<class T>() {
          if (c.input(1).dtype() == DType::kInt32) {
            update_rows<T, int32_t>(c, variable);
          } else {
            update_rows<T, int64_t>(c, variable);
          }
        });
      },
      100 + 0.1 * static_cast<double>(p.input_shape(2).num_elements()) *
                static_cast<double>(dtype_size(dtype)));
}

}  // namespace

void register_variable_kernels(KernelRegistry& r) {
  r.add("VarHandleOp", {}, prepare_handle);
  r.add("ReadVariableOp", {}, prepare_read);
  r.add("VariableShape", {}, prepare_variable_shape);
  r.add("VarIsInitializedOp", {}, prepare_is_initialized);
  r.add("InitializedValue", {}, prepare_initialized_value);
  r.add("DestroyResourceOp", {}, prepare_destroy);
  r.add("AssignVariableOp", {}, prepare_assign);
  r.add("ResourceCountUpTo", {}, prepare_count_up_to);
  r.add("ResourceGather", {}, prepare_resource_gather);
  r.add("ResourceScatterUpdate", {}, prepare_scatter_update);
}

}  // namespace treenail::host
