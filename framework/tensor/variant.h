// SPDX-License-Identifier: Apache-2.0
// One element of a variant tensor: a counted immutable object with a type name and an optional
// serialiser (lists, datasets, optionals; optionals and lists come with later ops).
#pragma once

#include <string>

#include "framework/base/intrusive_ptr.h"

namespace treenail {

class VariantObject : public RefCounted {
 public:
  virtual const char* type_name() const = 0;
  // Appends the serialised form; false when this type cannot leave the process.
  virtual bool serialize(std::string& out) const;

 protected:
  ~VariantObject() override;
};

class VariantElement {
 public:
  IntrusivePtr<const VariantObject> object;
};

static_assert(sizeof(VariantElement) == sizeof(void*));

}  // namespace treenail
