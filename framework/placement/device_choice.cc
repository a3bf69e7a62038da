// SPDX-License-Identifier: Apache-2.0
#include "framework/placement/device_choice.h"

#include <algorithm>

#include "framework/base/error.h"

namespace treenail {
namespace {

std::string list_of(std::span<Device* const> devices) {
  constexpr size_t kShown = 8;
  std::string list;
  for (size_t i = 0; i < std::min(devices.size(), kShown); ++i)
    list += concat(i == 0 ? "" : ", ", to_text(devices[i]->name()));
  return devices.size() > kShown ? concat(list, ", ... (", devices.size(), " devices)") : list;
}

template <class Wanted>
std::optional<int32_t> first(std::span<Device* const> devices, Wanted&& wanted) {
  const auto found =
      std::ranges::find_if(devices, [&](const Device* device) { return wanted(device->name()); });
  if (found == devices.end()) return std::nullopt;
  return static_cast<int32_t>(found - devices.begin());
}

}  // namespace

std::optional<int32_t> choose_device(std::span<Device* const> devices, const DeviceName& request,
                                     bool soft) {
  const auto met = first(devices, [&](const DeviceName& d) { return satisfies(d, request); });
  if (met || !soft) return met;
  return first(devices, [&](const DeviceName& d) { return d.type == request.type; }).value_or(0);
}

std::string no_such_device(std::string_view request, std::string_view who,
                           std::span<Device* const> devices) {
  return concat("cannot be placed on \"", request, "\": ", who, " has ", list_of(devices),
                "; allow_soft_placement runs it there");
}

std::string no_kernel_there(const OpInstance& op, const Device& device, bool held) {
  std::string types;
  for (const DType type : op.input_types()) types += concat(types.empty() ? "" : ", ", type);
  return concat(
      "cannot be placed on ", to_text(device.name()), ": ", device.kind(),
      " devices have no kernel for it with inputs (", types, ")",
      held ? ", and what it works on is there" : "; allow_soft_placement runs it on the CPU");
}

std::string state_in_two_memories(std::string_view first, const Device& there,
                                  std::string_view other, const Device& elsewhere) {
  return concat("works on state in the memory of two devices: \"", first, "\" is on ",
                to_text(there.name()), ", \"", other, "\" on ", to_text(elsewhere.name()));
}

}  // namespace treenail
