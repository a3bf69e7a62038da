// SPDX-License-Identifier: Apache-2.0
// A seed nobody chose: 64 bits from the operating system.
#pragma once

#include <cstdint>

namespace treenail {

// Errors: Unavailable when the system gives none.
uint64_t system_seed();

}  // namespace treenail
