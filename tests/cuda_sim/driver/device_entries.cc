// SPDX-License-Identifier: Apache-2.0
// Entry points of the driver itself, of devices and of contexts.
#include <algorithm>
#include <array>
#include <cstring>
#include <map>
#include <string>

#include "tests/cuda_sim/driver/driver.h"

namespace treenail::cuda_sim {
namespace {

struct ErrorText {
  CUresult error;
  const char* name;
  const char* text;
};

#define TN_ERROR(name, text) \
  ErrorText { name, #name, text }
constexpr std::array kErrors = {
    TN_ERROR(CUDA_SUCCESS, "no error"),
    TN_ERROR(CUDA_ERROR_INVALID_VALUE, "invalid argument"),
    TN_ERROR(CUDA_ERROR_OUT_OF_MEMORY, "out of memory"),
    TN_ERROR(CUDA_ERROR_NOT_INITIALIZED, "initialization error"),
    TN_ERROR(CUDA_ERROR_NO_DEVICE, "no CUDA-capable device is detected"),
    TN_ERROR(CUDA_ERROR_INVALID_DEVICE, "invalid device ordinal"),
    TN_ERROR(CUDA_ERROR_INVALID_IMAGE, "device kernel image is invalid"),
    TN_ERROR(CUDA_ERROR_INVALID_CONTEXT, "invalid device context"),
    TN_ERROR(CUDA_ERROR_NO_BINARY_FOR_GPU,
             "no kernel image is available for execution on the device"),
    TN_ERROR(CUDA_ERROR_INVALID_HANDLE, "invalid resource handle"),
    TN_ERROR(CUDA_ERROR_NOT_FOUND, "named symbol not found"),
    TN_ERROR(CUDA_ERROR_NOT_READY, "device not ready"),
    TN_ERROR(CUDA_ERROR_LAUNCH_FAILED, "unspecified launch failure"),
    TN_ERROR(CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED, "peer access is already enabled"),
    TN_ERROR(CUDA_ERROR_NOT_SUPPORTED, "operation not supported"),
    TN_ERROR(CUDA_ERROR_UNKNOWN, "unknown error"),
};
#undef TN_ERROR

CUresult error_text(CUresult error, const char** text, const char* ErrorText::*part) {
  if (text == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto* const found = std::ranges::find(kErrors, error, &ErrorText::error);
  *text = found == kErrors.end() ? nullptr : found->*part;
  return *text == nullptr ? CUDA_ERROR_INVALID_VALUE : CUDA_SUCCESS;
}

// What a plugin asks for; a small GPU of compute capability 9.0, so that grids stay small.
const std::map<CUdevice_attribute, int>& attributes() {
  static const auto* const made = new std::map<CUdevice_attribute, int>{
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_X, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Y, 1024},
      {CU_DEVICE_ATTRIBUTE_MAX_BLOCK_DIM_Z, 64},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_X, 2147483647},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Y, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_GRID_DIM_Z, 65535},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK, kMostShared},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, kMostShared},
      {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 4 * kMostShared},
      {CU_DEVICE_ATTRIBUTE_TOTAL_CONSTANT_MEMORY, 65536},
      {CU_DEVICE_ATTRIBUTE_WARP_SIZE, warp_size_from_environment()},
      {CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT, 4},
      {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 2048},
      {CU_DEVICE_ATTRIBUTE_MAX_REGISTERS_PER_BLOCK, 65536},
      {CU_DEVICE_ATTRIBUTE_CLOCK_RATE, 1000000},
      {CU_DEVICE_ATTRIBUTE_MEMORY_CLOCK_RATE, 1000000},
      {CU_DEVICE_ATTRIBUTE_GLOBAL_MEMORY_BUS_WIDTH, 1024},
      {CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE, 4 << 20},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR, 9},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR, 0},
      {CU_DEVICE_ATTRIBUTE_COMPUTE_MODE, CU_COMPUTEMODE_DEFAULT},
      {CU_DEVICE_ATTRIBUTE_INTEGRATED, 0},
      {CU_DEVICE_ATTRIBUTE_CAN_MAP_HOST_MEMORY, 1},
      {CU_DEVICE_ATTRIBUTE_UNIFIED_ADDRESSING, 1},
      {CU_DEVICE_ATTRIBUTE_CONCURRENT_KERNELS, 1},
      {CU_DEVICE_ATTRIBUTE_ASYNC_ENGINE_COUNT, 2},
      {CU_DEVICE_ATTRIBUTE_ECC_ENABLED, 1},
      {CU_DEVICE_ATTRIBUTE_PCI_DOMAIN_ID, 0},
      {CU_DEVICE_ATTRIBUTE_PCI_DEVICE_ID, 0},
  };
  return *made;
}

CUresult write_text(const std::string& text, char* to, int size) {
  require(to != nullptr && size > 0);
  const size_t length = std::min(text.size(), static_cast<size_t>(size) - 1);
  std::memcpy(to, text.data(), length);
  to[length] = '\0';
  return CUDA_SUCCESS;
}

// Of an entry point that asks about a device.
template <class F>
CUresult answer_of_device(CUdevice device, F body) {
  return answer([&](Driver& driver) {
    driver.check_ready();
    return body(driver, driver.device(device));
  });
}

template <class T>
CUresult give(T* to, T value) {
  require(to != nullptr);
  *to = value;
  return CUDA_SUCCESS;
}

}  // namespace
}  // namespace treenail::cuda_sim

using namespace treenail::cuda_sim;

CUSIM_ENTRY cuInit(unsigned int flags) {
  return answer([&](Driver& driver) {
    require(flags == 0);
    return driver.initialise();
  });
}

CUSIM_ENTRY cuDriverGetVersion(int* version) {
  return answer([&](Driver& driver) { return give(version, driver.version.load()); });
}

CUSIM_ENTRY cuGetErrorName(CUresult error, const char** name) {
  return error_text(error, name, &ErrorText::name);
}

CUSIM_ENTRY cuGetErrorString(CUresult error, const char** text) {
  return error_text(error, text, &ErrorText::text);
}

CUSIM_ENTRY cuDeviceGetCount(int* count) {
  return answer([&](Driver& driver) {
    driver.check_ready();
    return give(count, static_cast<int>(driver.devices().size()));
  });
}

CUSIM_ENTRY cuDeviceGet(CUdevice* device, int index) {
  return answer_of_device(index, [&](Driver&, const Device&) { return give(device, index); });
}

CUSIM_ENTRY cuDeviceGetName(char* name, int size, CUdevice device) {
  return answer_of_device(device, [&](Driver&, const Device&) {
    return write_text("Simulated CUDA device", name, size);
  });
}

CUSIM_ENTRY cuDeviceGetAttribute(int* value, CUdevice_attribute attribute, CUdevice device) {
  return answer_of_device(device, [&](Driver&, const Device& found) {
    if (attribute == CU_DEVICE_ATTRIBUTE_PCI_BUS_ID) return give(value, found.index() + 1);
    const auto known = attributes().find(attribute);
    require(known != attributes().end());
    return give(value, known->second);
  });
}

CUSIM_ENTRY cuDeviceTotalMem(size_t* bytes, CUdevice device) {
  return answer_of_device(device, [&](Driver&, Device& found) {
    return give(bytes, static_cast<size_t>(found.memory().limit()));
  });
}

CUSIM_ENTRY cuDeviceGetPCIBusId(char* id, int size, CUdevice device) {
  return answer_of_device(device, [&](Driver&, const Device& found) {
    return write_text(treenail::concat("0000:0", found.index() + 1, ":00.0"), id, size);
  });
}

CUSIM_ENTRY cuDeviceCanAccessPeer(int* can, CUdevice device, CUdevice peer) {
  return answer_of_device(device, [&](Driver& driver, const Device& found) {
    return give(can, &driver.device(peer) == &found ? 0 : 1);
  });
}

CUSIM_ENTRY cuDevicePrimaryCtxRetain(CUcontext* context, CUdevice device) {
  return answer_of_device(device, [&](Driver&, Device& found) {
    return give(context, reinterpret_cast<CUcontext>(&found));
  });
}

CUSIM_ENTRY cuCtxSetCurrent(CUcontext context) {
  return answer([&](Driver& driver) {
    driver.check_ready();
    driver.set_current(context == nullptr ? nullptr : &driver.context(context));
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuCtxEnablePeerAccess(CUcontext peer, unsigned int flags) {
  return answer_in_context([&](Driver& driver, Device& device) {
    require(flags == 0);
    Device& other = driver.context(peer);
    require(&other != &device, CUDA_ERROR_INVALID_DEVICE);
    return device.enable_peer(other) ? CUDA_SUCCESS : CUDA_ERROR_PEER_ACCESS_ALREADY_ENABLED;
  });
}
