// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver/fault_word.h"

#include "kernels/cuda/driver/kernels.h"

namespace treenail::cuda {
namespace {

constinit const GpuFunction kValue32("value_at_fault_int32"), kValue64("value_at_fault_int64");

}  // namespace

FaultWord::FaultWord(CudaDevice& device)
    : device_(device), words_(static_cast<unsigned long long*>(device.allocate(sizeof(Words)))) {
  device.fill_bytes(words_, 0xff, sizeof(Words));
}

// What is queued until now still uses it; what gets it next is queued later.
FaultWord::~FaultWord() { device_.deallocate(words_, sizeof(Words)); }

std::shared_ptr<FaultWord::Words> FaultWord::read(const void* values, DType dtype,
                                                  int width) const {
  const Grid one{.threads = 1};
  if (dtype == DType::kInt32) {
    kValue32.launch(device_, one, static_cast<const int32_t*>(values), width, words_);
  } else {
    kValue64.launch(device_, one, static_cast<const int64_t*>(values), width, words_);
  }
  auto words = std::make_shared<Words>();
  device_.copy_out(words->data(), words_, sizeof(Words));
  return words;
}

}  // namespace treenail::cuda
