// SPDX-License-Identifier: Apache-2.0
// An adapter that offers nothing but its header.
#include "build_info.h"
#include "framework/base/adapter.h"

extern "C" const void* treenail_adapter(void);

namespace treenail {
namespace {

constexpr AdapterHeader kApi = {sizeof(AdapterHeader), build_info::kVersion};

}  // namespace
}  // namespace treenail

extern "C" const void* treenail_adapter(void) { return &treenail::kApi; }
