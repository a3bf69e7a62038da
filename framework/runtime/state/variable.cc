// SPDX-License-Identifier: Apache-2.0
#include "framework/runtime/state/variable.h"

#include <algorithm>
#include <utility>

#include "framework/base/error.h"
#include "framework/base/fork.h"
#include "framework/device/device.h"
#include "framework/runtime/state/resource_handle.h"
#include "framework/runtime/state/resource_manager.h"
#include "framework/runtime/state/stored_value.h"

namespace treenail {
namespace {

// Has every shape that `narrow` stands for a place in `wide`?
bool admits(const PartialShape& wide, const PartialShape& narrow) {
  if (!wide.rank_known()) return true;
  if (!narrow.rank_known() || wide.rank() != narrow.rank()) return false;
  return std::ranges::equal(wide.dims(), narrow.dims(),
                            [](int64_t any, int64_t one) { return any == kUnknown || any == one; });
}

// Null: the host's.
Device* with_own_memory(Device* device, DType dtype) {
  return device == nullptr || device->is_host() || !is_plain(dtype) ? nullptr : device;
}

std::string place_text(const Device* device) {
  return device == nullptr ? "the host" : to_text(device->name());
}

}  // namespace

Variable::Variable(std::string name, DType dtype, PartialShape shape, Device* device)
    : name_(std::move(name)),
      dtype_(dtype),
      device_(with_own_memory(device, dtype)),
      shape_(std::move(shape)) {}

Variable::~Variable() = default;

std::unique_lock<ForkMutex> Variable::locked() const {
  std::unique_lock<ForkMutex> lock(mutex_);
  if (mutex_.abandoned() && writing_) {
    begin_anew(value_);
    writing_ = false;
  }
  return lock;
}

PartialShape Variable::declared_shape() const {
  const std::unique_lock<ForkMutex> lock = locked();
  return shape_;
}

std::optional<Shape> Variable::known_shape() const {
  const std::unique_lock<ForkMutex> lock = locked();
  if (!value_.defined()) return std::nullopt;
  return value_.shape();
}

bool Variable::widen(const PartialShape& shape) {
  const std::unique_lock<ForkMutex> lock = locked();
  if (!admits(shape, shape_)) return false;
  shape_ = shape;
  return true;
}

bool Variable::initialized() const {
  const std::unique_lock<ForkMutex> lock = locked();
  return value_.defined();
}

Tensor Variable::read() const {
  const std::unique_lock<ForkMutex> lock = locked();
  check_initialized();
  return value_;
}

void Variable::check_initialized() const {
  if (value_.defined()) return;
  throw failed_precondition("Attempting to use uninitialized value ",
                            name_.empty() ? "<unnamed>" : name_, ": variable of dtype ", dtype_,
                            " and shape ", shape_,
                            " needs its initializer run, or a checkpoint restored, first");
}

void Variable::assign(const Tensor& value) {
  if (value.dtype() != dtype_) {
    throw invalid_argument("variable ", name_, " has dtype ", dtype_, ", the value assigned is ",
                           value);
  }
  if (value.device() != device_) {
    throw invalid_argument("variable ", name_, " lives on ", place_text(device_),
                           ", the value assigned on ", place_text(value.device()));
  }
  // The next write copies unless the variable is alone with the memory by then.
  Tensor stored = stored_value(value);
  if (stored.buffer()) stored.buffer()->keep_prepacked();
  const std::unique_lock<ForkMutex> lock = locked();
  if (!shape_.compatible(value.shape())) {
    throw invalid_argument("variable ", name_, " has shape ", shape_, ", the value assigned is ",
                           value);
  }
  writing_ = true;
  std::swap(value_, stored);  // the old value is released after the lock
  writing_ = false;
}

void Variable::reset() {
  Tensor last;
  const std::unique_lock<ForkMutex> lock = locked();
  writing_ = true;
  std::swap(value_, last);
  writing_ = false;
}

Variable::Write::Write(Variable& variable) : variable_(variable), lock_(variable.locked()) {
  variable.check_initialized();
  variable.writing_ = true;
  Buffer* const buffer = variable.value_.buffer().get();
  if (buffer != nullptr && buffer->unique()) buffer->forget_prepacked();
  if (variable.value_.exclusive()) return;
  try {
    variable.value_ = variable.value_.deep_copy();
  } catch (...) {
    variable.writing_ = false;
    throw;
  }
}

Variable::Write::~Write() {
  variable_.writing_ = false;
  if (const auto& buffer = variable_.value_.buffer()) buffer->keep_prepacked();
}

Variable& variable_from(const Tensor& handle) {
  return resource_from<Variable>(handle, "a variable's handle");
}

Variable& variable_of_dtype(const Tensor& handle, DType dtype) {
  Variable& variable = variable_from(handle);
  if (variable.dtype() == dtype) return variable;
  throw invalid_argument("variable ", variable.name(), " has dtype ", variable.dtype(),
                         ", the operation works on ", dtype);
}

const Variable* variable_behind(const Tensor& handle) {
  if (handle.dtype() != DType::kResource || handle.rank() != 0) return nullptr;
  return dynamic_cast<const Variable*>(handle.data<ResourceElement>()->object.get());
}

Device* home_of(const Tensor& handle) {
  const Variable* const variable = variable_behind(handle);
  return variable != nullptr ? variable->device() : nullptr;
}

IntrusivePtr<Variable> named_variable(ResourceManager& resources, std::string_view container,
                                      std::string_view name, DType dtype, const PartialShape& shape,
                                      Device* device) {
  device = with_own_memory(device, dtype);
  auto make = [&] { return make_counted<Variable>(std::string(name), dtype, shape, device); };
  IntrusivePtr<Variable> variable = resources.lookup_or_create<Variable>(container, name, make);
  if (variable->dtype() != dtype || !variable->widen(shape)) {
    throw invalid_argument("variable ", name, " exists with dtype ", variable->dtype(),
                           " and shape ", variable->declared_shape(),
                           "; it is asked for with dtype ", dtype, " and shape ", shape);
  }
  if (variable->device() != device) {
    throw invalid_argument("variable ", name, " lives on ", place_text(variable->device()),
                           "; it is asked for on ", place_text(device));
  }
  return variable;
}

}  // namespace treenail
