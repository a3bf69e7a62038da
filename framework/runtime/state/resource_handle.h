// SPDX-License-Identifier: Apache-2.0
// From a handle, a scalar of dtype resource, to the state behind it. Kernel-side header.
#pragma once

#include <string_view>

#include "framework/tensor/resource.h"
#include "framework/tensor/tensor.h"

namespace treenail {

// Never null. `needed`: "a variable's handle", for the text. Errors: InvalidArgument (not a scalar
// resource, empty handle).
Resource* resource_behind_handle(const Tensor& handle, std::string_view needed);
[[noreturn]] void throw_other_resource(const Resource& found, std::string_view needed);

// Errors: as above, and InvalidArgument for a resource of another class, naming what it is.
template <class T>
T& resource_from(const Tensor& handle, std::string_view needed) {
  Resource* const resource = resource_behind_handle(handle, needed);
  T* const object = dynamic_cast<T*>(resource);
  if (object == nullptr) throw_other_resource(*resource, needed);
  return *object;
}

}  // namespace treenail
