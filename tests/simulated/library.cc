// SPDX-License-Identifier: Apache-2.0
// What the library of the simulated devices exports.
#include <cstdio>
#include <string>

#include "build_info.h"
#include "framework/runtime/kernel/device_library.h"
#include "tests/simulated/device.h"
#include "tests/simulated/exports.h"
#include "tests/simulated/kernels.h"
#include "tests/simulated/misuse.h"
#include "tests/simulated/violation.h"

namespace treenail::simulated {
namespace {

constexpr DeviceLibrary kLibrary = {kDeviceLibraryAbi, build_info::kBuildId, kKind, &make_devices,
                                    &make_kernels};

}  // namespace
}  // namespace treenail::simulated

using namespace treenail::simulated;  // NOLINT(google-build-using-namespace)

SIM_EXPORT const treenail::DeviceLibrary* treenail_device_library() { return &kLibrary; }

void sim_seed(uint64_t seed) {
  for (int i = 0; i < kDevices; ++i) device(i).queue().seed(seed);
}
void sim_delays(int on) {
  for (int i = 0; i < kDevices; ++i) device(i).queue().set_delays(on != 0);
}

int64_t sim_live_bytes(int index) {
  device(index).wait();
  return device(index).memory().live_bytes();
}
int64_t sim_live_blocks(int index) {
  device(index).wait();
  return device(index).memory().live_blocks();
}
void sim_set_limit(int index, int64_t bytes) { device(index).memory().set_limit(bytes); }
void sim_fail_allocation(int index, int64_t nth) { device(index).memory().fail_allocation(nth); }

void sim_lose(int index, int64_t after) { device(index).queue().lose(after); }
void sim_restore(int index) { device(index).queue().restore(); }

int64_t sim_kernels_run(int index) { return device(index).counts().kernels; }
int64_t sim_copies(int index, int what) {
  return device(index).counts().copies.at(static_cast<size_t>(what));
}
int64_t sim_copied_bytes(int index, int what) {
  return device(index).counts().copied_bytes.at(static_cast<size_t>(what));
}

void sim_record_violations(int on) { record_violations(on != 0); }
int sim_violations(char* text, int size) {
  std::string last;
  const int count = take_violations(last);
  if (text != nullptr && size > 0)
    std::snprintf(text, static_cast<size_t>(size), "%s", last.c_str());
  return count;
}

const char* sim_left_out() {
  static const auto* const list = new std::string(left_out());
  return list->c_str();
}

void sim_misuse(int index, int what) {
  commit_misuse(device(index), device((index + 1) % kDevices), what);
}
