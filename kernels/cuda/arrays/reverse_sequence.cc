// SPDX-License-Identifier: Apache-2.0
// ReverseSequence.
#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>

#include "kernels/cuda/arrays/sequence_space.h"
#include "kernels/cuda/driver/fault_word.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/host/arrays/sequence_layout.h"

namespace treenail::cuda {
namespace {

using gpu::SequenceSpace;

SequenceSpace space_of(const host::SequenceLayout& s) {
  const auto divisor = [](int64_t size) {
    return gpu::divisor_of(std::max<int64_t>(size, 1));  // of nothing nothing is divided
  };
  SequenceSpace space = {s.rows * s.row,        divisor(s.row),          divisor(s.seq_stride),
                         divisor(s.seq_extent), divisor(s.batch_stride), divisor(s.batch_extent),
                         s.batch_extent};
  space.seq_extent.size = s.seq_extent;
  return space;
}

std::unique_ptr<Kernel> prepare_reverse_sequence(const PrepareContext& p) {
  const std::string name =
      concat("reverse_sequence_", dtype_size(p.output_type(0)), "_", dtype_name(p.input_type(1)));
  return make_launching_kernel(
      p, [space = space_of(host::sequence_layout(p)), function = GpuFunction(kept_name(name))](
             RunContext& c, CudaDevice& device, Failure failure) {
        if (space.lengths == 0) return;
        const Tensor& lengths = c.input(1);
        const FaultWord fault(device);
        function.launch(device, grid_for(device, std::max(space.n, space.lengths)), space,
                        c.input(0).raw(), lengths.raw(), c.output(0).raw(), fault.word());
        fault.report(lengths.raw(), lengths.dtype(), failure,
                     [extent = space.seq_extent.size](int64_t place, int64_t length) {
                       host::throw_bad_length(place, length, extent);
                     });
      });
}

}  // namespace

void register_reverse_sequence_kernels(KernelRegistrations& r) {
  r.add_plain("ReverseSequence", prepare_reverse_sequence);
}

}  // namespace treenail::cuda
