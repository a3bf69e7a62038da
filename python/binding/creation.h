// SPDX-License-Identifier: Apache-2.0
// Where a node was created: up to 16 (code object, instruction offset) pairs of the Python stack,
// innermost first. Frames of this package are left out. Lines are looked up only when an error is
// printed.
#pragma once

#include <memory>
#include <string>

#include "framework/graph/graph.h"
#include "python/binding/python_api.h"

namespace treenail::python {

std::shared_ptr<const CreationStack> capture_creation();
// [(file name, line number, function name), ...], outermost first.
Ref creation_entries(const Node& node);
// Frames of code files below this directory are the package's own.
void set_package_directory(std::string directory);

}  // namespace treenail::python
