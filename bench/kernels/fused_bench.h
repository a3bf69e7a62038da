// SPDX-License-Identifier: Apache-2.0
#pragma once

namespace treenail {

// Groups of element-wise ops, and loops that move as many bytes.
void register_fused_benchmarks();

}  // namespace treenail
