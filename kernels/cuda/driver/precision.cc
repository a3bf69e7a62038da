// SPDX-License-Identifier: Apache-2.0
#include "kernels/cuda/driver/precision.h"

#include <array>
#include <string_view>

#include "framework/base/environment.h"

namespace treenail::cuda {

bool takes_tf32() {
  constexpr std::array<std::string_view, 2> kChoices = {"0", "1"};
  return env_choice("TREENAIL_GPU_TF32", kChoices) == 1;
}

}  // namespace treenail::cuda
