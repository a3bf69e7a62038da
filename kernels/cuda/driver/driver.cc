// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver/driver.h"

#include <atomic>
#include <exception>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "kernels/cuda/driver/entries.h"

namespace treenail::cuda {
namespace {

std::string version_text(int version) {
  return concat("CUDA ", version / 1000, ".", version % 1000 / 10);
}

void fill(Driver& table) {
#define TN_ENTRY(name) TN_CUDA_ROW(name)
  const Entry entries[] = {
#include "kernels/cuda/driver/driver_entries.inc"
  };
#undef TN_ENTRY
  load_entries("NVIDIA's driver", "libcuda.so.1", version_text(CUDA_VERSION), entries);
}

void initialise(const Driver& table) {
  int version = 0;
  table.cuDriverGetVersion(&version);
  if (version / 1000 < CUDA_VERSION / 1000) {
    throw failed_precondition("NVIDIA's driver is for ", version_text(version),
                              "; this plugin was built for ", version_text(CUDA_VERSION),
                              " and needs a driver for CUDA ", CUDA_VERSION / 1000, ".0 or later");
  }
  const CUresult result = table.cuInit(0);
  if (result == CUDA_SUCCESS) return;
  if (result == CUDA_ERROR_NO_DEVICE)
    throw failed_precondition("NVIDIA's driver finds no GPU that this process may use");
  const char* name = nullptr;
  table.cuGetErrorName(result, &name);
  throw failed_precondition("NVIDIA's driver cannot be used: cuInit() says ",
                            name != nullptr ? name : std::to_string(result));
}

struct Opened {
  Driver table;
  std::exception_ptr error;
};

Opened* open() {
  auto* const opened = new Opened;
  try {
    fill(opened->table);
    initialise(opened->table);
  } catch (...) {
    opened->error = std::current_exception();
  }
  return opened;
}

}  // namespace

const Driver& driver() {
  static std::atomic<Opened*> opened{nullptr};
  const Opened& there = made_once(opened, open);
  if (there.error != nullptr) std::rethrow_exception(there.error);
  return there.table;
}

std::string result_text(CUresult result) {
  const char *name = nullptr, *text = nullptr;
  driver().cuGetErrorName(result, &name);
  driver().cuGetErrorString(result, &text);
  if (name == nullptr) return concat("CUDA error ", static_cast<int>(result));
  return concat(name, " (", text != nullptr ? text : "?", ")");
}

// What a kernel that went astray, the hardware or another process leaves behind.
bool is_loss(CUresult result) {
  const int code = result;
  return (code >= CUDA_ERROR_ILLEGAL_ADDRESS && code <= CUDA_ERROR_LAUNCH_FAILED) ||
         code == CUDA_ERROR_DEVICE_UNAVAILABLE || code == CUDA_ERROR_ECC_UNCORRECTABLE ||
         code == CUDA_ERROR_NVLINK_UNCORRECTABLE || code == CUDA_ERROR_CONTEXT_IS_DESTROYED ||
         code == CUDA_ERROR_UNKNOWN;
}

void check(CUresult result, const char* call) {
  if (result == CUDA_SUCCESS) return;
  if (result == CUDA_ERROR_OUT_OF_MEMORY)
    throw resource_exhausted(call, "(): ", result_text(result));
  if (is_loss(result)) throw error_of(Code::kUnavailable, {call, "(): ", result_text(result)});
  throw internal_error(call, "(): ", result_text(result));
}

}  // namespace treenail::cuda
