// SPDX-License-Identifier: Apache-2.0
// VariantObject's key function, and what a type without a serialiser answers.
#include "framework/tensor/variant.h"

#include <string>

namespace treenail {

VariantObject::~VariantObject() = default;

bool VariantObject::serialize(std::string&) const { return false; }

}  // namespace treenail
