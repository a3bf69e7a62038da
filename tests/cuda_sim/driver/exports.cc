// SPDX-License-Identifier: Apache-2.0
#include "tests/cuda_sim/exports.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "tests/cuda_sim/driver/driver.h"
#include "tests/simulated/violation.h"

namespace treenail::cuda_sim {
namespace {

Device& device_at(int index) { return *driver().devices().at(static_cast<size_t>(index)); }

}  // namespace
}  // namespace treenail::cuda_sim

using namespace treenail;
using namespace treenail::cuda_sim;

void cusim_seed(uint64_t seed) { driver().set_seed(seed); }
void cusim_delays(int on) { driver().set_delays(on != 0); }
void cusim_hold(int device, int on) { device_at(device).hold(on != 0); }
void cusim_wait(int device) { device_at(device).wait(); }

void cusim_driver_version(int version) { driver().version = version == 0 ? CUDA_VERSION : version; }
void cusim_no_binary(int on) { driver().no_binary = on != 0; }

int64_t cusim_live_blocks(int device) { return device_at(device).memory().used_blocks(); }
int64_t cusim_live_bytes(int device) { return device_at(device).memory().stats().bytes_in_use; }
int64_t cusim_pinned_blocks(void) { return driver().pinned().blocks(); }
void cusim_set_limit(int device, int64_t bytes) { device_at(device).memory().set_limit(bytes); }
void cusim_fail_allocation(int device, int64_t nth) {
  if (device < 0) return driver().pinned().fail_allocation(nth);
  device_at(device).memory().fail_allocation(nth);
}

void cusim_lose(int device, int64_t after) { device_at(device).lose(after); }
void cusim_restore(int device) { device_at(device).restore(); }
int64_t cusim_count(int device, int what) { return device_at(device).counted(what); }

void cusim_record_violations(int on) { simulated::record_violations(on != 0); }
int cusim_violations(char* text, int size) {
  std::string last;
  const int count = simulated::take_violations(last);
  if (size <= 0) return count;
  const size_t length = std::min(last.size(), static_cast<size_t>(size) - 1);
  std::memcpy(text, last.data(), length);
  text[length] = '\0';
  return count;
}

int cusim_enqueue(void* stream, void (*work)(void* context, int lost), void* context) {
  return answer_in_context([&](Driver& driver, const Device&) {
    Stream& late = driver.stream(static_cast<CUstream>(stream));
    late.push([=, &device = late.device()](bool lost) {
      work(context, lost ? 1 : 0);
      if (!lost) device.count(CUSIM_LIBRARY_CALLS);
    });
    return CUDA_SUCCESS;
  });
}

void* cusim_view(void* stream, const char* who, const void* address, size_t bytes, int writes) {
  Device& device = static_cast<Stream*>(stream)->device();
  const Use use = writes != 0 ? Use::kWrite : Use::kRead;
  if (!usable(device, who, use, address, bytes)) return nullptr;
  return const_cast<void*>(Memory::view(address));
}

int cusim_is_device_memory(const void* address) {
  return driver().owner(address) != nullptr ? 1 : 0;
}
