// SPDX-License-Identifier: Apache-2.0
// What the setters of attributes share.
#pragma once

#include <string>

#include "framework/base/function_ref.h"
#include "framework/capi/handles.h"

namespace treenail::capi {

// `make` gives the value; whatever goes wrong is kept in `attrs`, with the attribute's name before
// it.
void set_attr(tn_attrs* attrs, const char* name, FunctionRef<AttrValue()> make) noexcept;

std::string bytes_of(const char* bytes, size_t length);
FunctionAttr function_of(const char* function, const tn_attrs* attrs);
// An attribute outlives what its caller lent: borrowed memory is copied.
Tensor lasting(const tn_tensor* tensor, const char* what);

}  // namespace treenail::capi
