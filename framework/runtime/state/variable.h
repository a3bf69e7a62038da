// SPDX-License-Identifier: Apache-2.0
// A variable: the state behind a handle of VarHandleOp. Kernel-side header. Reading shares the
// bytes; writing is in place when nobody else shares them, else on a fresh copy, so a value once
// read never changes under its reader.
#pragma once

#include <atomic>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "framework/base/fork.h"
#include "framework/tensor/resource.h"
#include "framework/tensor/tensor.h"

namespace treenail {

class ResourceManager;

class Variable final : public Resource {
 public:
  // `device`: in whose memory its values lie, if it has its own and they are plain; null: the
  // host's.
  Variable(std::string name, DType dtype, PartialShape shape, Device* device = nullptr);
  ~Variable() override;
  const char* kind() const override { return "Variable"; }

  const std::string& name() const { return name_; }
  DType dtype() const { return dtype_; }
  Device* device() const { return device_; }
  PartialShape declared_shape() const;
  // Of the current value; none where there is none.
  std::optional<Shape> known_shape() const;
  // Tapes of immediate execution watch it by themselves.
  bool trainable() const { return trainable_.load(std::memory_order_relaxed); }
  void set_trainable(bool trainable) { trainable_.store(trainable, std::memory_order_relaxed); }
  // From now on values of every shape that `shape` admits are taken; false, and nothing changes,
  // unless it admits all that was admitted before.
  bool widen(const PartialShape& shape);

  bool initialized() const;
  // A share of the current value. Errors: FailedPrecondition when uninitialised, naming the
  // variable.
  Tensor read() const;
  // Stores `value`: takes over exclusive memory, copies borrowed or arena memory. Errors:
  // InvalidArgument (dtype, shape).
  void assign(const Tensor& value);
  void reset();  // uninitialised again

  // Holds the variable's lock; value() is exclusive memory: update it in place. Errors: as read(),
  // ResourceExhausted.
  class Write {
   public:
    explicit Write(Variable& variable);
    ~Write();
    Write(const Write&) = delete;
    Write& operator=(const Write&) = delete;
    Tensor& value() const { return variable_.value_; }

   private:
    Variable& variable_;
    std::unique_lock<ForkMutex> lock_;
  };

 private:
  void check_initialized() const;  // the lock is held
  // In a child forked while a thread wrote the value, the variable is uninitialised.
  std::unique_lock<ForkMutex> locked() const;

  std::string name_;
  DType dtype_;
  Device* device_;
  std::atomic<bool> trainable_{false};
  PartialShape shape_;
  mutable ForkMutex mutex_;
  mutable Tensor value_;
  mutable bool writing_ = false;
};

// The variable behind a handle tensor. Errors: InvalidArgument (not a scalar resource, empty
// handle), naming what it is.
Variable& variable_from(const Tensor& handle);
// The same; Errors also: InvalidArgument when its dtype is another.
Variable& variable_of_dtype(const Tensor& handle, DType dtype);

// Null where the handle is of something else.
const Variable* variable_behind(const Tensor& handle);
// In whose memory the values of the state behind the handle lie; null: the host's.
Device* home_of(const Tensor& handle);

// The variable of that name in a session's state, made (uninitialised) at first use; one of a
// narrower shape is widened. Errors: InvalidArgument when the name belongs to something else, or to
// a variable of another dtype or shape, or one that lives elsewhere.
IntrusivePtr<Variable> named_variable(ResourceManager& resources, std::string_view container,
                                      std::string_view name, DType dtype, const PartialShape& shape,
                                      Device* device = nullptr);

}  // namespace treenail
