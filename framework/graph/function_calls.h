// SPDX-License-Identifier: Apache-2.0
// Which functions of its graph an op calls: calls, branches and loops name them by attributes.
#pragma once

#include <string>
#include <vector>

#include "framework/op/op_def.h"

namespace treenail {

// Whether it has an attribute that names one.
bool calls_functions(const OpInstance& op);
// Their names, in the order of its attributes.
std::vector<std::string> functions_called(const OpInstance& op);

}  // namespace treenail
