// SPDX-License-Identifier: Apache-2.0
// Ops for tests of graph files: one with every kind of attribute, one with two lists, one with an
// older version.
#pragma once

#include "framework/op/attribute.h"

namespace treenail::test {

// Into the registry of the process; once.
void register_serialize_ops();
NamedAttrs every_attr();
// A vector of floats of unknown length.
NamedAttrs float_placeholder();

}  // namespace treenail::test
