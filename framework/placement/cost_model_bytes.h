// SPDX-License-Identifier: Apache-2.0
// A cost model as a protocol-buffer message, as sessions send it to the server that they are at.
// What tasks tell of themselves (CostModel::told) is not in it: the server knows that.
#pragma once

#include <string>
#include <string_view>

#include "framework/placement/cost_placer.h"

namespace treenail {

// Never empty.
std::string cost_model_to_bytes(const CostModel& model);
// Errors: InvalidArgument for what is no such message, and for numbers that no device has; as
// PlacementProfile::from_text.
CostModel cost_model_from_bytes(std::string_view bytes);

}  // namespace treenail
