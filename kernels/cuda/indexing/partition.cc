// SPDX-License-Identifier: Apache-2.0
// DynamicPartition: the numbers of partitions are sorted, with the rows that they stand for, so
// that those of a partition are neighbours in their order. DynamicStitch: rows are put where
// indices say, list after list.
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "kernels/cuda/driver/counted_kernel.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/indexing/merge_host.h"
#include "kernels/cuda/indexing/row_order_host.h"
#include "kernels/host/arrays/stitch_errors.h"

namespace treenail::cuda {
namespace {

constinit const GpuFunction kBegins("run_begins"), kNamed("named_rows"), kTake1("take_rows_1"),
    kTake2("take_rows_2"), kTake4("take_rows_4"), kTake8("take_rows_8"), kTake16("take_rows_16");

const GpuFunction& take_function(size_t bytes) {
  switch (bytes) {
    case 1:
      return kTake1;
    case 2:
      return kTake2;
    case 4:
      return kTake4;
    case 8:
      return kTake8;
    default:
      return kTake16;
  }
}

// --- DynamicPartition ---------------------------------------------------------------------------

// Where in the order each partition begins, and the last one ends, when the queue is past it.
using Begins = std::vector<int64_t>;

std::shared_ptr<Begins> begins_of(CudaDevice& device, const RowOrder& order, int64_t partitions) {
  Tensor there(DType::kInt64, Shape({partitions + 1}), &device);
  kBegins.launch(device, grid_for(device, partitions + 1), order.runs(), order.keys(),
                 there.data<int64_t>());
  auto begins = std::make_shared<Begins>(static_cast<size_t>(partitions + 1));
  device.copy_out(begins->data(), there.raw(), there.bytes());
  return begins;
}

// The rows of data at `positions`.
Tensor taken_rows(CudaDevice& device, const Tensor& data, const Shape& row,
                  const uint32_t* positions, int64_t n) {
  Tensor part(data.dtype(), row.inserted(0, n), &device);
  if (part.num_elements() == 0) return part;
  const int64_t width = row.num_elements();
  const int lanes = lanes_for(width, 1);
  take_function(dtype_size(data.dtype()))
      .launch(device, grid_for(device, n * lanes), n, width, lanes, positions, data.raw(),
              part.raw());
  return part;
}

void set_parts(RunContext& c, CudaDevice& device, const RowOrder& order, const Begins& begins) {
  const Tensor& data = c.input(0);
  const Shape row = data.shape().sub(c.input(1).rank(), data.rank());
  for (size_t k = 0; k + 1 < begins.size(); ++k) {
    c.set_output(static_cast<int>(k), taken_rows(device, data, row, order.positions() + begins[k],
                                                 begins[k + 1] - begins[k]));
  }
}

void set_empty_parts(RunContext& c, CudaDevice& device, int64_t partitions) {
  const Tensor& data = c.input(0);
  const Shape row = data.shape().sub(c.input(1).rank(), data.rank());
  for (int64_t k = 0; k < partitions; ++k)
    c.set_output(static_cast<int>(k), Tensor(data.dtype(), row.inserted(0, 0), &device));
}

std::unique_ptr<Kernel> prepare_partition(const PrepareContext& p) {
  const int64_t partitions = p.op().get_int("num_partitions");
  return make_counted_kernel(
      p, [partitions](RunContext& c, CudaDevice& device, const Refusal& refusal) {
        const Tensor& numbers = c.input(1);
        std::shared_ptr<const RowOrder> order;
        std::shared_ptr<const Begins> begins;
        if (numbers.num_elements() > 0) {
          order = std::make_shared<RowOrder>(device, rows_in(partitions, numbers.shape()), numbers);
          begins = begins_of(device, *order, partitions);
          report_bad_row(order->fault(), numbers, partitions, refusal, "partitions");
        }
        return [partitions, order, begins](RunContext& c, CudaDevice& device) {
          if (order == nullptr) return set_empty_parts(c, device, partitions);
          set_parts(c, device, *order, *begins);
        };
      });
}

// --- DynamicStitch ------------------------------------------------------------------------------

// As many rows as all lists name, when the queue is past it.
std::shared_ptr<const uint64_t> named_rows(RunContext& c, CudaDevice& device, int lists,
                                           const Refusal& refusal) {
  const Tensor there(DType::kUInt64, Shape(), &device);
  auto* const most = static_cast<unsigned long long*>(const_cast<void*>(there.raw()));
  device.zero(most, there.bytes());
  for (int i = 0; i < lists; ++i) {
    const Tensor& indices = c.input(i);
    const int64_t n = indices.num_elements();
    if (n == 0) continue;
    const FaultWord fault(device);
    kNamed.launch(device, grid_for(device, n), n, indices.data<int32_t>(), most, fault.word());
    fault.report(indices.raw(), indices.dtype(), refusal, [i](int64_t place, int64_t index) {
      host::throw_negative_index(i, place, index);
    });
  }
  auto rows = std::make_shared<uint64_t>(0);
  device.copy_out(rows.get(), most, sizeof *rows);
  return rows;
}

Tensor stitched(RunContext& c, CudaDevice& device, int lists, int64_t rows) {
  const Tensor& first = c.input(lists);
  const Shape row = first.shape().sub(c.input(0).rank(), first.rank());
  Tensor y(first.dtype(), row.inserted(0, rows), &device);
  device.zero(y.raw(), y.bytes());
  if (y.num_elements() == 0) return y;
  for (int i = 0; i < lists; ++i) {
    const Tensor& indices = c.input(i);
    const int64_t n = indices.num_elements();
    if (n == 0) continue;
    const RowOrder order(device, rows_in(rows, indices.shape()), indices);
    put_rows(device, order.rows(), c.input(lists + i).reshaped(row.inserted(0, n)), y);
  }
  return y;
}

std::unique_ptr<Kernel> prepare_stitch(const PrepareContext& p) {
  return make_counted_kernel(
      p, [lists = p.num_inputs() / 2](RunContext& c, CudaDevice& device, const Refusal& refusal) {
        return [lists, rows = named_rows(c, device, lists, refusal)](RunContext& c,
                                                                     CudaDevice& device) {
          c.set_output(0, stitched(c, device, lists, static_cast<int64_t>(*rows)));
        };
      });
}

}  // namespace

void register_partition_kernels(KernelRegistrations& r) {
  r.add_plain("DynamicPartition", prepare_partition);
  r.add_plain("DynamicStitch", prepare_stitch);
}

}  // namespace treenail::cuda
