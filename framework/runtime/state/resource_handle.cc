// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/resource_handle.h"

#include "framework/base/error.h"

namespace treenail {

Resource* resource_behind_handle(const Tensor& handle, std::string_view needed) {
  if (handle.dtype() != DType::kResource || handle.num_elements() != 1) {
    throw invalid_argument(needed, " is needed (a scalar of dtype resource), got ", handle);
  }
  Resource* resource = handle.data<ResourceElement>()->object.get();
  if (resource == nullptr)
    throw invalid_argument("the handle refers to nothing; ", needed, " is needed");
  return resource;
}

void throw_other_resource(const Resource& found, std::string_view needed) {
  throw invalid_argument("the handle refers to a ", found.kind(), "; ", needed, " is needed");
}

}  // namespace treenail
