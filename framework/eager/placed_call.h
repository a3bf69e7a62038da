// SPDX-License-Identifier: Apache-2.0
// Where a call of immediate execution runs, and its inputs in the memory where it needs them:
//
// - what works on state runs where the state is, whatever is asked for;
// - else on the device that is asked for;
// - else where the first of its inputs in an accelerator's memory lies, if that kind has a kernel
//   for it: gradients that are taken outside of a `with` run where the values are;
// - else on the CPU.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "framework/device/accelerators.h"
#include "framework/eager/prepared_call.h"

namespace treenail {

// Whether a call has to be placed at all: else it runs on the CPU, on inputs that lie there.
inline bool may_leave_host(std::string_view request) {
  return !request.empty() || accelerators_there.load(std::memory_order_acquire);
}

class PlacedCall {
 public:
  // `request`: the text that asks for a device, "" for none. What `call` refers to stays. Errors,
  // without the op's name: as requested_device(); InvalidArgument where the device has no kernel
  // for the op, and soft placement is off or does not help; where state lies in the memory of two
  // devices; where the process's DevicePolicy forbids a copy.
  PlacedCall(const ImmediateCall& call, std::string_view request);
  PlacedCall(const PlacedCall&) = delete;
  PlacedCall& operator=(const PlacedCall&) = delete;

  // Whether bring_inputs() has anything to do, and may sleep.
  bool has_copies() const { return !copies_.empty(); }
  // Errors: as in_memory_of().
  void bring_inputs();
  // The call there, once the inputs are.
  ImmediateCall call() const;

 private:
  struct Copy {
    const Tensor* source;
    Device* memory;
    Tensor made;
  };
  void go_to_state();
  void place(const OpInstance& op, std::string_view request);
  void plan_copies(const OpInstance& op);
  const Tensor* copy_of(const Tensor& source, Device* memory);

  const ImmediateCall& given_;
  Device* device_ = nullptr;           // null: a CPU
  const Tensor* handle_ = nullptr;     // of state that the op works on, which is there
  std::vector<Copy> copies_;           // of each value one for a memory; they stay where they are
  std::vector<const Tensor*> inputs_;  // empty: as given
};

}  // namespace treenail
