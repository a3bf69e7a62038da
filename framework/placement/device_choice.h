// SPDX-License-Identifier: Apache-2.0
// Which of some devices meets a request, and how it is said that none does: the same for nodes of a
// graph (placer.h) and for what runs at once (eager/placed_call.h).
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "framework/op/op_def.h"
#include "framework/placement/placement_device.h"

namespace treenail {

// The number of the first device that satisfies the request; with soft placement where none does,
// of the first of that kind, or of the first of all.
std::optional<int32_t> choose_device(std::span<const PlacementDevice> devices,
                                     const DeviceName& request, bool soft);

// What follows the name of the op in a refusal. `who`: whose devices they are, "this session".
std::string no_such_device(std::string_view request, std::string_view who,
                           std::span<const PlacementDevice> devices);
// The op, with its dtypes, has no kernel for devices of this kind; `held`: soft placement does not
// help, for its state is there.
std::string no_kernel_there(const OpInstance& op, const DeviceName& device, bool held);
// Of state by name ("" where it has none): `first` is on the device `there`, `other` is not.
std::string state_in_two_memories(std::string_view first, const DeviceName& there,
                                  std::string_view other, const DeviceName& elsewhere);

}  // namespace treenail
