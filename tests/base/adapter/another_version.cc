// SPDX-License-Identifier: Apache-2.0
// An adapter that another version of Treenail left behind.
#include "framework/base/adapter.h"

extern "C" const void* treenail_adapter(void);

namespace treenail {
namespace {

constexpr AdapterHeader kApi = {sizeof(AdapterHeader), "0.0.7"};

}  // namespace
}  // namespace treenail

extern "C" const void* treenail_adapter(void) { return &treenail::kApi; }
