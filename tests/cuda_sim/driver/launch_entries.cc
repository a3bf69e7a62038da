// SPDX-License-Identifier: Apache-2.0
// Entry points of libraries, kernels and launches.
#include <memory>
#include <string>
#include <utility>

#include "tests/cuda_sim/driver/driver.h"
#include "tests/cuda_sim/driver/kernel_table.h"
#include "tests/simulated/violation.h"

namespace treenail::cuda_sim {
namespace {

using simulated::hex;
using simulated::violation;

constexpr unsigned kMostBlocksX = 0x7fffffff, kMostBlocksY = 65535;

void* as_pointer(uintptr_t address) { return reinterpret_cast<void*>(address); }

// "", or why the device's kernels may not use the address.
std::string pointer_problem(Device& device, const void* at) {
  Device* const owner = driver().owner(at);
  if (owner == nullptr) return "which is no memory of a device";
  if (!device.reaches(*owner))
    return concat("memory of device ", owner->index(), ", to which it has no peer access");
  return owner->memory().pointer_problem(at);
}

// Every pointer, or none: null is as good as a pointer into a live block.
class PointerCheck final : public ArgumentVisitor {
 public:
  PointerCheck(Device& device, const char* kernel) : device_(device), kernel_(kernel) {}

  void pointer(int parameter, uintptr_t& address) override {
    if (address == 0) return;
    const std::string problem = pointer_problem(device_, as_pointer(address));
    if (problem.empty()) return;
    passed_ = false;
    violation(concat("simulated CUDA: kernel ", kernel_, " on device ", device_.index(),
                     ": parameter ", parameter, " is ", hex(as_pointer(address)), ", ", problem));
  }
  void word(uintptr_t&) override {}
  bool passed() const { return passed_; }

 private:
  Device& device_;
  const char* const kernel_;
  bool passed_ = true;
};

// From what the host may not touch to the view behind it. What a struct has of pointers to dead
// memory stays as it is, and faults where it is used.
class PointerShift final : public ArgumentVisitor {
 public:
  explicit PointerShift(Device& device) : device_(device) {}

  void pointer(int, uintptr_t& address) override {
    if (address != 0) address += Memory::kShift;
  }
  void word(uintptr_t& bits) override {
    if (driver().owner(as_pointer(bits)) == nullptr) return;
    if (pointer_problem(device_, as_pointer(bits)).empty()) bits += Memory::kShift;
  }

 private:
  Device& device_;
};

struct Extent {
  unsigned x, y, z;
};

// Blocks of one dimension, grids of two: more is not of the language.
void require_limits(const Extent& blocks, const Extent& threads) {
  require(blocks.x - 1 < kMostBlocksX && blocks.y - 1 < kMostBlocksY && blocks.z != 0);
  require(threads.x != 0 && threads.y != 0 && threads.z != 0);
  require(blocks.z == 1 && threads.y == 1 && threads.z == 1, CUDA_ERROR_NOT_SUPPORTED);
}

struct Launch {
  const KernelEntry* kernel;
  Grid grid;
  std::unique_ptr<Call> call;

  bool may_run(Device& device) const {
    PointerCheck check(device, kernel->name);
    call->visit(check);
    return check.passed();
  }
  void run(Stream& stream) const {
    if (!may_run(stream.device())) return;
    PointerShift shift(stream.device());
    call->visit(shift);
    stream.engine().launch(kernel->name, grid, *call);
    stream.device().count(CUSIM_LAUNCHES);
  }
};

}  // namespace
}  // namespace treenail::cuda_sim

using namespace treenail::cuda_sim;

CUSIM_ENTRY cuLibraryLoadData(CUlibrary* library, const void* code, CUjit_option*, void**,
                              unsigned int jit_options, CUlibraryOption*, void**,
                              unsigned int library_options) {
  return answer([&](Driver& driver) {
    driver.check_ready();
    require(library != nullptr && code != nullptr);
    require(jit_options == 0 && library_options == 0, CUDA_ERROR_NOT_SUPPORTED);
    require(Image::is_fat_binary(code), CUDA_ERROR_INVALID_IMAGE);
    *library = reinterpret_cast<CUlibrary>(const_cast<Image*>(driver.add_image(code)));
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuLibraryGetKernel(CUkernel* kernel, CUlibrary library, const char* name) {
  return answer([&](Driver& driver) {
    driver.check_ready();
    require(kernel != nullptr && name != nullptr);
    const Image& image = driver.image(library);
    const KernelEntry* const found = find_kernel(name);
    require(found != nullptr && image.may_have(name), CUDA_ERROR_NOT_FOUND);
    driver.add_kernel(found);
    *kernel = reinterpret_cast<CUkernel>(const_cast<KernelEntry*>(found));
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuLaunchKernel(CUfunction function, unsigned int blocks_x, unsigned int blocks_y,
                           unsigned int blocks_z, unsigned int threads_x, unsigned int threads_y,
                           unsigned int threads_z, unsigned int shared_bytes, CUstream stream,
                           void** parameters, void** extra) {
  return answer_in_context([&](Driver& driver, Device& device) {
    const KernelEntry& kernel = driver.kernel(function);
    Stream& late = driver.stream(stream);
    require(&late.device() == &device, CUDA_ERROR_INVALID_HANDLE);
    require_limits({blocks_x, blocks_y, blocks_z}, {threads_x, threads_y, threads_z});
    require(threads_x <= static_cast<unsigned>(kernel.most_threads) && shared_bytes <= kMostShared);
    require(kernel.parameters == 0 || parameters != nullptr);
    require(extra == nullptr, CUDA_ERROR_NOT_SUPPORTED);
    require(!driver.no_binary, CUDA_ERROR_NO_BINARY_FOR_GPU);
    const Grid grid{blocks_x, static_cast<int>(blocks_y), static_cast<int>(threads_x),
                    shared_bytes};
    const auto launch = std::make_shared<const Launch>(
        Launch{&kernel, grid, kernel.make_call(kernel.function, parameters)});
    require(launch->may_run(device));
    late.push([launch, &late](bool lost) {
      if (!lost) launch->run(late);
    });
    return CUDA_SUCCESS;
  });
}
