// SPDX-License-Identifier: Apache-2.0
// Values put into parts of others: borders around them, diagonals, slices of variables.
#include <algorithm>
#include <memory>
#include <utility>

#include "framework/op/slice_spec.h"
#include "framework/runtime/state/variable.h"
#include "kernels/cuda/arrays/fill_host.h"
#include "kernels/cuda/arrays/strided_launch_host.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/elementwise/add_n_host.h"
#include "kernels/host/arrays/slice_copy.h"

namespace treenail::cuda {
namespace {

using host::StridedCopy;

std::unique_ptr<Kernel> prepare_pad(const PrepareContext& p) {
  const Shape &inner = p.input_shape(0), &outer = p.output_shape(0);
  const host::Strides from = host::dense_strides(inner), to = host::dense_strides(outer);
  const Tensor& paddings = p.host_value(1);
  StridedCopy copy(p.output_type(0));
  int64_t offset = 0;
  for (int i = 0; i < inner.rank(); ++i) {
    const int64_t before = paddings.dtype() == DType::kInt32 ? paddings.data<int32_t>()[2 * i]
                                                             : paddings.data<int64_t>()[2 * i];
    copy.axis(inner.dim(i), from[i], to[i]);
    offset += before * to[i];
  }
  copy.offsets(0, offset).finish();
  return make_launching_kernel(p, [copy](RunContext& c, CudaDevice& device) {
    fill(device, c.input(2).raw(), c.output(0));
    launch_copy(device, copy, c.input(0).raw(), c.output(0).raw());
  });
}

// Of a batch of matrices; a diagonal steps by one row and one column.
struct Diagonals {
  int64_t count, rows, columns;

  static Diagonals of(const Shape& shape) {
    const int rank = shape.rank();
    return {shape.sub(0, rank - 2).num_elements(), shape.dim(rank - 2), shape.dim(rank - 1)};
  }
  // A tensor whose shape is some shape twice is one square matrix.
  static Diagonals doubled(const Shape& half) {
    return {1, half.num_elements(), half.num_elements()};
  }

  StridedCopy copy(DType dtype, bool into_matrices) const {
    const int64_t length = std::min(rows, columns), whole = rows * columns, step = columns + 1;
    StridedCopy copy(dtype);
    if (into_matrices) {
      copy.axis(count, length, whole).axis(length, 1, step);
    } else {
      copy.axis(count, whole, length).axis(length, step, 1);
    }
    return copy.finish();
  }
};

std::unique_ptr<Kernel> make_diagonal(const PrepareContext& p, const Diagonals& diagonals) {
  return make_launching_kernel(
      p, [copy = diagonals.copy(p.output_type(0), true)](RunContext& c, CudaDevice& device) {
        device.zero(c.output(0).raw(), c.output(0).bytes());
        launch_copy(device, copy, c.input(0).raw(), c.output(0).raw());
      });
}
std::unique_ptr<Kernel> take_diagonal(const PrepareContext& p, const Diagonals& diagonals) {
  return make_launching_kernel(
      p, [copy = diagonals.copy(p.output_type(0), false)](RunContext& c, CudaDevice& device) {
        launch_copy(device, copy, c.input(0).raw(), c.output(0).raw());
      });
}

std::unique_ptr<Kernel> prepare_diag(const PrepareContext& p) {
  return make_diagonal(p, Diagonals::doubled(p.input_shape(0)));
}
std::unique_ptr<Kernel> prepare_diag_part(const PrepareContext& p) {
  return take_diagonal(p, Diagonals::doubled(p.output_shape(0)));
}
std::unique_ptr<Kernel> prepare_matrix_diag(const PrepareContext& p) {
  return make_diagonal(p, Diagonals::of(p.output_shape(0)));
}
std::unique_ptr<Kernel> prepare_matrix_diag_part(const PrepareContext& p) {
  return take_diagonal(p, Diagonals::of(p.input_shape(0)));
}

std::unique_ptr<Kernel> prepare_matrix_set_diag(const PrepareContext& p) {
  const Diagonals diagonals = Diagonals::of(p.output_shape(0));
  return make_launching_kernel(
      p, [copy = diagonals.copy(p.output_type(0), true)](RunContext& c, CudaDevice& device) {
        Tensor& y = c.output(0);
        if (y.raw() != c.input(0).raw()) device.copy(y.raw(), c.input(0).raw(), y.bytes());
        launch_copy(device, copy, c.input(1).raw(), y.raw());
      });
}

// The array itself where nothing else reads it: then its slice alone is touched.
Tensor taken_array(RunContext& c, CudaDevice& device) {
  Tensor array = c.take_input(0);
  if (array.exclusive()) return array;
  Tensor copy(array.dtype(), array.shape(), &device);
  device.copy(copy.raw(), array.raw(), array.bytes());
  return copy;
}

std::unique_ptr<Kernel> prepare_slice_add(const PrepareContext& p) {
  const DType dtype = p.input_type(0);
  const Shape& shape = p.input_shape(0);
  const SliceSpec spec = host::slice_of(p, shape, 1);
  return make_launching_kernel(
      p, [out = host::slice_copy(dtype, shape, spec, false),
          in = host::slice_copy(dtype, shape, spec, true)](RunContext& c, CudaDevice& device) {
        Tensor whole = taken_array(c, device);
        const Tensor& value = c.input(4);
        Tensor sum(whole.dtype(), value.shape(), &device);
        launch_copy(device, out, whole.raw(), sum.raw());
        const void* const terms[] = {sum.raw(), value.raw()};
        add_arrays(device, terms, sum);
        launch_copy(device, in, sum.raw(), whole.raw());
        c.set_output(0, std::move(whole));
      });
}

// The variable's shape is known when it is run.
std::unique_ptr<Kernel> prepare_slice_assign(const PrepareContext& p) {
  return make_launching_kernel(
      p, [dtype = p.input_type(4), begin = partial_value_of(p.host_value(1)),
          end = partial_value_of(p.host_value(2)), strides = partial_value_of(p.host_value(3)),
          entries = p.input_shape(1).dim(0),
          masks = SliceMasks::of(p.op())](RunContext& c, CudaDevice& device) {
        const Tensor& given = c.input(4);
        const Variable::Write write(variable_of_dtype(c.input(0), dtype));
        Tensor& value = write.value();
        const SliceSpec spec =
            resolve_slice(value.shape(), begin.get(), end.get(), strides.get(), entries, masks);
        host::check_slice_value(spec, given.shape());
        launch_copy(device, host::slice_copy(dtype, value.shape(), spec, true), given.raw(),
                    value.raw());
      });
}

}  // namespace

void register_parts_kernels(KernelRegistrations& r) {
  r.add_plain("Pad", prepare_pad);
  r.add_plain("Diag", prepare_diag);
  r.add_plain("DiagPart", prepare_diag_part);
  r.add_plain("MatrixDiag", prepare_matrix_diag);
  r.add_plain("MatrixDiagPart", prepare_matrix_diag_part);
  r.add_plain("MatrixSetDiag", prepare_matrix_set_diag);
  r.add("TensorStridedSliceAdd", {{"T", added_types()}}, prepare_slice_add);
  r.add_plain("ResourceStridedSliceAssign", prepare_slice_assign);
}

}  // namespace treenail::cuda
