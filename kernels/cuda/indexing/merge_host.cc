// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/indexing/merge_host.h"

#include <algorithm>

#include "framework/base/error.h"
#include "framework/tensor/half.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/elementwise/added_as_host.h"
#include "kernels/cuda/indexing/row_merge.h"

namespace treenail::cuda {
namespace {

using gpu::RowMerge;
using gpu::RowRuns;

struct Function {
  std::string_view operation;
  DType dtype;
  GpuFunction of_short, of_long;
};
#define TN_MERGE(Op, S, type)                                   \
  {#Op, dtype_of<S>, GpuFunction("merge_short_" #Op "_" #type), \
   GpuFunction("merge_long_" #Op "_" #type)},
constinit const Function kFunctions[] = {TN_MERGES(TN_MERGE) TN_MEANS(TN_MERGE)};
#undef TN_MERGE

const Function* find(std::string_view operation, DType dtype) {
  for (const Function& function : kFunctions) {
    if (function.operation == operation && function.dtype == dtype) return &function;
  }
  return nullptr;
}

// How elements are combined: by a function, `numbers` of them each.
struct Combination {
  const Function* function;
  int numbers;
};

Combination combination_of(std::string_view operation, DType dtype) {
  if (const Function* function = find(operation, dtype)) return {function, 1};
  const AddedAs how = added_as(dtype);
  const bool known = how.numbers == 1 || operation == "Add" || operation == "Subtract";
  return {known ? find(operation, how.dtype) : nullptr, how.numbers};
}

// Groups of `lanes` threads for `items`, by `width` columns.
Grid grid_of_groups(const CudaDevice& device, int64_t items, int lanes, int64_t width) {
  constexpr int64_t kColumnBlocks = 64;
  Grid grid = grid_for(device, items * lanes);
  grid.blocks_y = static_cast<int>(std::clamp<int64_t>(width / (4 * lanes), 1, kColumnBlocks));
  return grid;
}

constinit const GpuFunction kPut1("put_rows_1"), kPut2("put_rows_2"), kPut4("put_rows_4"),
    kPut8("put_rows_8"), kPut16("put_rows_16");

const GpuFunction& put_function(size_t bytes) {
  switch (bytes) {
    case 1:
      return kPut1;
    case 2:
      return kPut2;
    case 4:
      return kPut4;
    case 8:
      return kPut8;
    default:
      return kPut16;
  }
}

int64_t width_of(const Tensor& target, const RowRuns& runs) {
  return runs.rows == 0 ? 0 : target.num_elements() / runs.rows;
}

}  // namespace

std::vector<DType> merge_types(std::string_view operation) {
  constexpr DType kAll[] = {DType::kFloat32,   DType::kFloat64,   DType::kFloat16, DType::kBFloat16,
                            DType::kInt8,      DType::kInt16,     DType::kInt32,   DType::kInt64,
                            DType::kUInt8,     DType::kUInt16,    DType::kUInt32,  DType::kUInt64,
                            DType::kComplex64, DType::kComplex128};
  std::vector<DType> types;
  for (const DType dtype : kAll) {
    if (combination_of(operation, dtype).function != nullptr) types.push_back(dtype);
  }
  return types;
}

void merge_rows(CudaDevice& device, const OrderedRows& order, std::string_view operation, bool onto,
                const Tensor& updates, Tensor& target) {
  const Combination how = combination_of(operation, target.dtype());
  if (how.function == nullptr)
    throw internal_error("no kernel merges ", target.dtype(), " by ", operation);
  RowRuns runs = order.runs;
  const RowMerge merge = {width_of(target, runs) * how.numbers,
                          updates.rank() == 0 ? how.numbers : 0, onto ? 1 : 0};
  const auto launch = [&](const GpuFunction& function, int64_t items, int most_lanes, bool blocks) {
    runs.lanes = std::min(lanes_for(merge.width, 1), most_lanes);
    Grid grid = grid_of_groups(device, items, blocks ? gpu::kMostThreads : runs.lanes, merge.width);
    if (blocks)
      grid.blocks_y = static_cast<int>(std::clamp<int64_t>(merge.width / runs.lanes, 1, 1024));
    function.launch(device, grid, runs, merge, order.keys, order.positions, updates.raw(),
                    target.raw(), order.fault);
  };
  launch(how.function->of_short, runs.n, gpu::kMostThreads, false);
  constexpr int kColumns = 32;
  if (runs.n >= gpu::kLongRun)
    launch(how.function->of_long, (runs.n + gpu::kLongRun - 1) / gpu::kLongRun, kColumns, true);
}

void put_rows(CudaDevice& device, const OrderedRows& order, const Tensor& updates, Tensor& target) {
  RowRuns runs = order.runs;
  const RowMerge merge = {width_of(target, runs), updates.rank() == 0 ? 1 : 0, 1};
  runs.lanes = lanes_for(merge.width, 1);
  put_function(dtype_size(target.dtype()))
      .launch(device, grid_of_groups(device, runs.n, runs.lanes, merge.width), runs, merge,
              order.keys, order.positions, updates.raw(), target.raw(), order.fault);
}

}  // namespace treenail::cuda
