// SPDX-License-Identifier: Apache-2.0
// Entry points of memory. What a copy names is looked at twice: when it is asked for, and when its
// stream gets there, where a block may have been freed meanwhile.
#include <algorithm>
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "framework/base/hash.h"
#include "tests/cuda_sim/driver/driver.h"
#include "tests/simulated/violation.h"

namespace treenail::cuda_sim {
namespace {

using simulated::hex;
using simulated::violation;

// What the host sees of a copy out of the device that is not done yet.
constexpr unsigned char kPending = 0x5a;

bool all_pending(const void* at, size_t bytes) {
  const auto* const first = static_cast<const unsigned char*>(at);
  return *first == kPending && std::memcmp(first, first + 1, bytes - 1) == 0;
}

void require_usable(Device& device, const char* who, Use use, const void* at, size_t bytes) {
  require(usable(device, who, use, at, bytes));
}

// Whether the range is pinned memory; the host's other memory is pageable.
bool is_pinned(Driver& driver, const char* who, const void* at, size_t bytes) {
  require(at != nullptr);
  if (simulated::overlaps_device(at, bytes)) {
    violation(
        concat("simulated CUDA: ", who, " takes ", hex(at), " for host memory; it is a device's"));
    throw Failure{CUDA_ERROR_INVALID_VALUE};
  }
  if (driver.pinned().holds(at, bytes)) return true;
  if (!driver.pinned().overlaps(at, bytes)) return false;
  violation(concat("simulated CUDA: ", who, " uses ", bytes, " bytes at ", hex(at),
                   ", which go beyond a block of pinned memory or were freed"));
  throw Failure{CUDA_ERROR_INVALID_VALUE};
}

// Whether a copy's pinned memory is still there.
bool still_pinned(const char* who, const void* at, size_t bytes) {
  if (driver().pinned().holds(at, bytes)) return true;
  violation(concat("simulated CUDA: ", who, ": the pinned memory at ", hex(at),
                   " was freed before the copy was done"));
  return false;
}

void count_copy(Device& device, int copies, size_t bytes) {
  device.count(copies);
  device.count(copies + CUSIM_BYTES_IN - CUSIM_COPIES_IN, static_cast<int64_t>(bytes));
}

void do_copy_in(Device& device, void* to, const void* from, size_t bytes) {
  if (!usable(device, "cuMemcpyHtoDAsync", Use::kWrite, to, bytes)) return;
  std::memcpy(Memory::view(to), from, bytes);
  count_copy(device, CUSIM_COPIES_IN, bytes);
}

// The source is read late, and must not have changed.
void copy_in_pinned(Stream& stream, void* to, const void* from, size_t bytes) {
  const uint64_t asked = hash_bytes(from, bytes);
  stream.push([=, &device = stream.device()](bool lost) {
    if (lost || !still_pinned("cuMemcpyHtoDAsync", from, bytes)) return;
    if (hash_bytes(from, bytes) != asked) {
      violation(concat("simulated CUDA: cuMemcpyHtoDAsync of ", bytes, " bytes at ", hex(from),
                       ": pinned memory changed before the copy was done"));
    }
    do_copy_in(device, to, from, bytes);
  });
}

void copy_in_pageable(Stream& stream, void* to, const void* from, size_t bytes) {
  const auto* const begin = static_cast<const std::byte*>(from);
  const auto staged = std::make_shared<std::vector<std::byte>>(begin, begin + bytes);
  stream.push([=, &device = stream.device()](bool lost) {
    if (!lost) do_copy_in(device, to, staged->data(), bytes);
  });
}

void do_copy_out(Device& device, void* to, const void* from, size_t bytes) {
  if (!usable(device, "cuMemcpyDtoHAsync", Use::kRead, from, bytes)) return;
  std::memcpy(to, Memory::view(from), bytes);
  count_copy(device, CUSIM_COPIES_OUT, bytes);
}

// Until the copy is done its destination holds rubbish, and nobody else may write it.
void copy_out_pinned(Stream& stream, void* to, const void* from, size_t bytes) {
  std::memset(to, kPending, bytes);
  stream.push([=, &device = stream.device()](bool lost) {
    if (lost || !still_pinned("cuMemcpyDtoHAsync", to, bytes)) return;
    if (!all_pending(to, bytes)) {
      violation(concat("simulated CUDA: cuMemcpyDtoHAsync of ", bytes, " bytes to ", hex(to),
                       ": pinned memory was written before the copy was done"));
    }
    do_copy_out(device, to, from, bytes);
  });
}

// The call waits.
CUresult copy_out_pageable(Stream& stream, void* to, const void* from, size_t bytes) {
  Device& device = stream.device();
  device.count(CUSIM_SYNCHRONISATIONS);
  simulated::Event done;
  stream.push([&](bool lost) {
    if (!lost) do_copy_out(device, to, from, bytes);
    done.set(nullptr);
  });
  done.wait();
  return device.lost() ? CUDA_ERROR_LAUNCH_FAILED : CUDA_SUCCESS;
}

// From the memory of one device into that of another or the same.
void copy_between(Stream& stream, const char* who, std::pair<Device*, void*> to,
                  std::pair<Device*, const void*> from, size_t bytes) {
  require_usable(*from.first, who, Use::kRead, from.second, bytes);
  require_usable(*to.first, who, Use::kWrite, to.second, bytes);
  stream.push([=, &device = stream.device()](bool lost) {
    if (lost || !usable(*from.first, who, Use::kRead, from.second, bytes) ||
        !usable(*to.first, who, Use::kWrite, to.second, bytes))
      return;
    std::memmove(Memory::view(to.second), Memory::view(from.second), bytes);
    const bool within = driver().owner(to.second) == driver().owner(from.second);
    count_copy(device, within ? CUSIM_COPIES_WITHIN : CUSIM_COPIES_PEER, bytes);
  });
}

bool overlap(CUdeviceptr a, CUdeviceptr b, size_t bytes) { return a < b + bytes && b < a + bytes; }

template <class T>
CUresult fill(CUdeviceptr to, T value, size_t n, CUstream stream, const char* who) {
  return answer_in_context([&](Driver& driver, Device&) {
    require(to % sizeof(T) == 0);
    Stream& late = driver.stream(stream);
    if (n == 0) return CUDA_SUCCESS;
    const size_t bytes = n * sizeof(T);
    require_usable(late.device(), who, Use::kWrite, pointer(to), bytes);
    late.push([=, &device = late.device()](bool lost) {
      if (lost || !usable(device, who, Use::kWrite, pointer(to), bytes)) return;
      auto* const begin = static_cast<T*>(Memory::view(pointer(to)));
      std::fill(begin, begin + n, value);
      device.count(CUSIM_MEMSETS);
    });
    return CUDA_SUCCESS;
  });
}

}  // namespace
}  // namespace treenail::cuda_sim

using namespace treenail::cuda_sim;

CUSIM_ENTRY cuMemGetInfo(size_t* free, size_t* total) {
  return answer_in_context([&](Driver&, Device& device) {
    require(free != nullptr && total != nullptr);
    const int64_t limit = device.memory().limit();
    *total = static_cast<size_t>(limit);
    *free = static_cast<size_t>(std::max<int64_t>(limit - device.memory().stats().bytes_in_use, 0));
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuMemAlloc(CUdeviceptr* address, size_t bytes) {
  return answer_in_context([&](Driver&, Device& device) {
    require(address != nullptr && bytes != 0);
    *address = reinterpret_cast<CUdeviceptr>(device.memory().allocate(bytes));
    device.count(CUSIM_ALLOCATIONS);
    return CUDA_SUCCESS;
  });
}

// At once, unlike the real one, which waits for what the GPU is doing: whoever frees what a stream
// is still to use, is found.
CUSIM_ENTRY cuMemFree(CUdeviceptr address) {
  return answer([&](Driver& driver) {
    driver.check_ready();
    if (address == 0) return CUDA_SUCCESS;
    Device* const owner = driver.owner(pointer(address));
    if (owner == nullptr) {
      violation(treenail::concat("simulated CUDA: cuMemFree frees ", hex(pointer(address)),
                                 ", which is no memory of a device"));
      return CUDA_ERROR_INVALID_VALUE;
    }
    if (!owner->memory().retire(pointer(address), std::nullopt)) return CUDA_ERROR_INVALID_VALUE;
    driver.when_passed([owner, address] { owner->memory().release(pointer(address)); });
    driver.current();
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuMemHostAlloc(void** memory, size_t bytes, unsigned int flags) {
  constexpr unsigned kKnown =
      CU_MEMHOSTALLOC_PORTABLE | CU_MEMHOSTALLOC_DEVICEMAP | CU_MEMHOSTALLOC_WRITECOMBINED;
  return answer_in_context([&](Driver& driver, Device& device) {
    require(memory != nullptr && bytes != 0 && (flags & ~kKnown) == 0);
    *memory = driver.pinned().allocate(bytes);
    if (*memory == nullptr) return CUDA_ERROR_OUT_OF_MEMORY;
    device.count(CUSIM_ALLOCATIONS);
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuMemFreeHost(void* memory) {
  return answer([&](Driver& driver) {
    driver.check_ready();
    require(memory != nullptr && driver.pinned().retire(memory));
    driver.when_passed([&driver, memory] { driver.pinned().release(memory); });
    driver.current();
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuMemcpyHtoDAsync(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
  return answer_in_context([&](Driver& driver, Device&) {
    Stream& late = driver.stream(stream);
    if (bytes == 0) return CUDA_SUCCESS;
    require_usable(late.device(), "cuMemcpyHtoDAsync", Use::kWrite, pointer(to), bytes);
    if (is_pinned(driver, "cuMemcpyHtoDAsync", from, bytes))
      copy_in_pinned(late, pointer(to), from, bytes);
    else
      copy_in_pageable(late, pointer(to), from, bytes);
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuMemcpyDtoHAsync(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return answer_in_context([&](Driver& driver, Device&) {
    Stream& late = driver.stream(stream);
    if (bytes == 0) return CUDA_SUCCESS;
    require_usable(late.device(), "cuMemcpyDtoHAsync", Use::kRead, pointer(from), bytes);
    if (!is_pinned(driver, "cuMemcpyDtoHAsync", to, bytes))
      return copy_out_pageable(late, to, pointer(from), bytes);
    copy_out_pinned(late, to, pointer(from), bytes);
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuMemcpyDtoDAsync(CUdeviceptr to, CUdeviceptr from, size_t bytes, CUstream stream) {
  return answer_in_context([&](Driver& driver, Device&) {
    Stream& late = driver.stream(stream);
    if (bytes == 0) return CUDA_SUCCESS;
    if (overlap(to, from, bytes)) {
      violation(treenail::concat("simulated CUDA: cuMemcpyDtoDAsync of ", bytes, " bytes from ",
                                 hex(pointer(from)), " to ", hex(pointer(to)), ", which overlap"));
      return CUDA_ERROR_INVALID_VALUE;
    }
    Device* const device = &late.device();
    copy_between(late, "cuMemcpyDtoDAsync", {device, pointer(to)}, {device, pointer(from)}, bytes);
    return CUDA_SUCCESS;
  });
}

// Needs no peer access: without it the driver goes by way of the host.
CUSIM_ENTRY cuMemcpyPeerAsync(CUdeviceptr to, CUcontext to_context, CUdeviceptr from,
                              CUcontext from_context, size_t bytes, CUstream stream) {
  return answer_in_context([&](Driver& driver, Device&) {
    Stream& late = driver.stream(stream);
    Device& target = driver.context(to_context);
    Device& source = driver.context(from_context);
    require(!target.lost() && !source.lost(), CUDA_ERROR_LAUNCH_FAILED);
    require(&late.device() == &target || &late.device() == &source, CUDA_ERROR_INVALID_CONTEXT);
    if (bytes == 0) return CUDA_SUCCESS;
    copy_between(late, "cuMemcpyPeerAsync", {&target, pointer(to)}, {&source, pointer(from)},
                 bytes);
    return CUDA_SUCCESS;
  });
}

CUSIM_ENTRY cuMemsetD8Async(CUdeviceptr to, unsigned char value, size_t n, CUstream stream) {
  return fill(to, value, n, stream, "cuMemsetD8Async");
}

CUSIM_ENTRY cuMemsetD32Async(CUdeviceptr to, unsigned int value, size_t n, CUstream stream) {
  return fill(to, value, n, stream, "cuMemsetD32Async");
}
