// SPDX-License-Identifier: Apache-2.0
// Mutable state behind a resource tensor (variable, queue, iterator, table, random counter),
// counted. Between processes an element travels as device, container and name.
#pragma once

#include <string>

#include "framework/base/intrusive_ptr.h"

namespace treenail {

class Resource : public RefCounted {
 public:
  // "Variable", "Queue", ...: for messages when a handle of the wrong kind is given.
  virtual const char* kind() const = 0;

 protected:
  ~Resource() override;  // key function in libtreenail
};

class ResourceElement {
 public:
  IntrusivePtr<Resource> object;
};

static_assert(sizeof(ResourceElement) == sizeof(void*));

}  // namespace treenail
