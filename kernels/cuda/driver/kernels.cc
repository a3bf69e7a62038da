// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver/kernels.h"

#include <algorithm>
#include <atomic>
#include <bit>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "kernels/cuda/driver/driver.h"
#include "kernels/cuda/driver/images.h"

namespace treenail::cuda {
namespace {

// Some eight times what a processor holds: an H100 copied at 97 % of its bandwidth with these, at
// 92 % with an eighth of them.
constexpr int64_t kBlocksPerProcessor = 256;
constexpr int64_t kWidestWarp = 64;  // of any GPU

CUlibrary loaded(const treenail_cuda_image& image) {
  CUlibrary library = nullptr;
  const CUresult result =
      driver().cuLibraryLoadData(&library, image.begin, nullptr, nullptr, 0, nullptr, nullptr, 0);
  if (result == CUDA_SUCCESS) return library;
  throw failed_precondition("the device code ", image.name,
                            " cannot be loaded: ", result_text(result));
}

// All images of the plugin. The driver brings a kernel to a device when it is first launched there.
const std::vector<CUlibrary>& libraries() {
  static std::atomic<const std::vector<CUlibrary>*> all{nullptr};
  return made_once(all, [] {
    auto libraries = std::make_unique<std::vector<CUlibrary>>();
    for (const treenail_cuda_image* image = treenail_cuda_images; image->name != nullptr; ++image)
      libraries->push_back(loaded(*image));
    return libraries.release();
  });
}

}  // namespace

Grid grid_for(const CudaDevice& device, int64_t n, int64_t each) {
  Grid grid;
  if (n < grid.threads)
    grid.threads = static_cast<int>((n + kWidestWarp - 1) / kWidestWarp * kWidestWarp);
  const int64_t items = std::max<int64_t>(1, grid.threads * each);
  grid.blocks = std::min((n + items - 1) / items, device.processors() * kBlocksPerProcessor);
  return grid;
}

int lanes_for(int64_t n, int64_t each) {
  const auto wanted = static_cast<uint64_t>(std::clamp<int64_t>(n / each, 1, gpu::kMostThreads));
  return static_cast<int>(std::bit_ceil(wanted));
}

const char* kept_name(const std::string& name) {
  struct Names {
    ForkMutex mutex;
    std::set<std::string> all;
  };
  static std::atomic<Names*> names{nullptr};
  Names& kept = made_once(names, [] { return new Names; });
  const std::lock_guard lock(kept.mutex);
  return kept.all.insert(name).first->c_str();
}

GpuFunction function_for(std::string_view what, DType dtype) {
  return GpuFunction(kept_name(concat(what, "_", dtype_name(dtype))));
}

std::unique_ptr<Kernel> prepare_zeros(const PrepareContext& p) {
  const int outputs = p.op().num_outputs();
  return make_launching_kernel(p, [outputs](RunContext& c, CudaDevice& device) {
    for (int i = 0; i < outputs; ++i) device.zero(c.output(i).raw(), c.output(i).bytes());
  });
}

CUkernel GpuFunction::handle() const {
  CUkernel handle = handle_.load(std::memory_order_acquire);
  if (handle != nullptr) return handle;
  for (CUlibrary const library : libraries()) {
    if (driver().cuLibraryGetKernel(&handle, library, name_) != CUDA_SUCCESS) continue;
    handle_.store(handle, std::memory_order_release);
    return handle;
  }
  throw internal_error("the plugin has no kernel ", name_);
}

void GpuFunction::launch_with(CudaDevice& device, const Grid& grid, void** parameters) const {
  if (grid.blocks == 0 || grid.blocks_y == 0) return;
  CUstream const stream = device.enter();
  const CUresult result = driver().cuLaunchKernel(
      reinterpret_cast<CUfunction>(handle()), static_cast<unsigned>(grid.blocks),
      static_cast<unsigned>(grid.blocks_y), 1, static_cast<unsigned>(grid.threads), 1, 1,
      static_cast<unsigned>(grid.shared_bytes), stream, parameters, nullptr);
  if (result == CUDA_ERROR_NO_BINARY_FOR_GPU) {
    throw failed_precondition(to_text(device.name()),
                              ": the plugin holds no code for GPUs of "
                              "compute capability ",
                              device.capability(), ", as ", device.model(),
                              " is: build it with --cuda-arch");
  }
  device.check(result, name_);
}

}  // namespace treenail::cuda
