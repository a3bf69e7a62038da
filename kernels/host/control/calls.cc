// SPDX-License-Identifier: Apache-2.0
#include "kernels/host/control/calls.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/tensor/string_element.h"

namespace treenail::host {

FunctionBody& body_of(const PrepareContext& p, std::string_view role, const FunctionAttr& function,
                      const std::vector<bool>& wanted, std::span<const DType> types) {
  const std::string site =
      role.empty() ? std::string(p.node_name()) : concat(p.node_name(), "/", role);
  FunctionBody& found = p.functions().body(function, site, wanted);
  if (!std::ranges::equal(found.result_types(), types)) {
    throw invalid_argument("the results of function \"", function.name,
                           "\" are of other dtypes than the operation says");
  }
  return found;
}

std::vector<Tensor> inputs_from(RunContext& c, int first, int end) {
  std::vector<Tensor> values;
  values.reserve(static_cast<size_t>(end - first));
  for (int i = first; i < end; ++i) values.push_back(c.take_input(i));
  return values;
}

void set_outputs(RunContext& c, std::vector<Tensor>& values) {
  for (size_t i = 0; i < values.size(); ++i)
    c.set_output(static_cast<int>(i), std::move(values[i]));
}

bool is_true(const Tensor& value) {
  if (value.shape().rank() != 0) return value.num_elements() != 0;
  if (value.dtype() == DType::kString) return !value.data<StringElement>()->view().empty();
  const auto* const bytes = static_cast<const unsigned char*>(value.raw());
  const auto any = [&](size_t count, unsigned char mask) {
    for (size_t i = 0; i < count; ++i)
      if ((bytes[i] & (i + 1 == count ? mask : 0xff)) != 0) return true;
    return false;
  };
  // A negative zero is false.
  const bool sign = is_floating(value.dtype());
  return any(dtype_size(value.dtype()), sign ? 0x7f : 0xff);
}

}  // namespace treenail::host
