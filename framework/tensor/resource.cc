// SPDX-License-Identifier: Apache-2.0
// Resource's key function.
#include "framework/tensor/resource.h"

namespace treenail {

Resource::~Resource() = default;

}  // namespace treenail
