// SPDX-License-Identifier: Apache-2.0
// Version, build, threads, plugins: what concerns the process.
#include <string>

#include "build_info.h"
#include "framework/base/thread_pool.h"
#include "framework/capi/guard.h"
#include "framework/capi/load_plugin.h"
#include "framework/runtime/kernel/kernel_library.h"

using treenail::capi::guarded;

const char* tn_version(void) noexcept { return treenail::build_info::kVersion; }

void tn_get_build_info(tn_build_info* info) noexcept {
  if (info == nullptr) return;
  namespace build = treenail::build_info;
  treenail::capi::fill_in(
      info,
      tn_build_info{sizeof(tn_build_info), build::kVersion, build::kMachine, build::kIsaBaseline,
                    build::kKernelLevels, build::kFeatures, build::kBuildType});
}

const char* tn_kernel_level(tn_status* status) noexcept {
  return guarded(status, [] { return treenail::kernel_library().level; });
}

int32_t tn_num_threads(void) noexcept {
  return guarded(nullptr, [] { return treenail::ThreadPool::instance().num_threads(); });
}

void tn_set_num_threads(int32_t threads, tn_status* status) noexcept {
  guarded(status, [&] { treenail::ThreadPool::instance().set_num_threads(threads); });
}

void tn_load_plugin(const char* path, tn_status* status) noexcept {
  guarded(status, [&] { treenail::load_plugin(std::string(treenail::capi::text(path, "path"))); });
}
