// SPDX-License-Identifier: Apache-2.0
// Attributes of optimisers' updates.
#pragma once

namespace treenail {

struct UpdateOptions {
  bool nesterov = false;
  bool update_slots = true;
};

}  // namespace treenail
