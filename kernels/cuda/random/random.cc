// SPDX-License-Identifier: Apache-2.0
// Random numbers of framework/ops/random.cc, the CPU's (kernels/cpu/random/random.cc): an execution
// takes as many blocks of its stream here as there.
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "framework/base/error.h"
#include "framework/base/philox_words.h"
#include "framework/runtime/kernel/kernel_random.h"
#include "kernels/cuda/driver/kernels.h"
#include "kernels/cuda/driver/registrations.h"
#include "kernels/cuda/random/seeds.h"

namespace treenail::cuda {
namespace {

using gpu::Seeds;

Seeds kind_of(const Tensor& seeds) {
  if (seeds.num_elements() == 6) return Seeds::kStream;
  switch (seeds.dtype()) {
    case DType::kInt32:
      return Seeds::kInt32;
    case DType::kUInt32:
      return Seeds::kUInt32;
    default:
      return Seeds::k64Bits;
  }
}

// Fills output 0 from a stream that the op counts in, or from that of the seeds in its input 1.
class Filling {
 public:
  Filling(const PrepareContext& p, std::string_view kernel)
      : function_(kept_name(concat("random_", kernel, "_", dtype_name(p.output_type(0))))) {
    if (p.op().def().random) counted_.emplace(p);
  }

  template <class... Parameters>
  void launch(RunContext& c, CudaDevice& device, Parameters... parameters) const {
    Tensor& y = c.output(0);
    const int64_t n = y.num_elements();
    philox::Words place = {};
    const void* seeds = nullptr;
    Seeds kind = Seeds::kNone;
    if (counted_) {
      place = counted_->next(blocks_for(n)).words();
    } else {
      seeds = c.input(1).raw();
      kind = kind_of(c.input(1));
    }
    const int64_t group = dtype_size(y.dtype()) == 8 ? 2 : 4;
    function_.launch(device, grid_for(device, n, group), n, place, seeds, kind, parameters...,
                     y.raw());
  }

 private:
  GpuFunction function_;
  std::optional<CountedStream> counted_;
};

std::unique_ptr<Kernel> prepare_real(const PrepareContext& p, std::string_view kernel) {
  return make_launching_kernel(p,
                               [filling = Filling(p, kernel)](RunContext& c, CudaDevice& device) {
                                 filling.launch(c, device);
                               });
}
std::unique_ptr<Kernel> prepare_uniform(const PrepareContext& p) {
  return prepare_real(p, "uniform");
}
std::unique_ptr<Kernel> prepare_normal(const PrepareContext& p) {
  return prepare_real(p, "normal");
}
std::unique_ptr<Kernel> prepare_truncated(const PrepareContext& p) {
  return prepare_real(p, "truncated_normal");
}

std::unique_ptr<Kernel> prepare_int(const PrepareContext& p) {
  const int low = p.op().def().input_index("minval");
  const int high = p.op().def().input_index("maxval");
  return dispatch<int32_t, int64_t>(p.output_type(0), [&]<class T>() -> std::unique_ptr<Kernel> {
    const T from = *p.host_value(low).data<T>(), to = *p.host_value(high).data<T>();
    return make_launching_kernel(
        p, [from, to, filling = Filling(p, "int")](RunContext& c, CudaDevice& device) {
          filling.launch(c, device, from, to);
        });
  });
}

std::unique_ptr<Kernel> prepare_stream(const PrepareContext& p) {
  static constinit const GpuFunction function("random_stream");
  return make_launching_kernel(p, [blocks = blocks_for(p.host_value(0)), stream = CountedStream(p)](
                                      RunContext& c, CudaDevice& device) {
    function.launch(device, Grid(), stream.next(blocks).words(), c.output(0).raw());
  });
}

}  // namespace

void register_random_kernels(KernelRegistrations& r) {
  r.add("RandomUniform", {}, prepare_uniform);
  r.add("RandomStandardNormal", {}, prepare_normal);
  r.add("TruncatedNormal", {}, prepare_truncated);
  r.add("RandomUniformInt", {}, prepare_int);
  r.add("RandomStream", {}, prepare_stream);
  r.add("StatelessRandomUniform", {}, prepare_uniform);
  r.add("StatelessRandomNormal", {}, prepare_normal);
  r.add("StatelessTruncatedNormal", {}, prepare_truncated);
  r.add("StatelessRandomUniformInt", {}, prepare_int);
}

}  // namespace treenail::cuda
